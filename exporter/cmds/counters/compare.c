/*
 * nccl-inspector counters compare: a good run and a bad one, by what their counters did a second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/cli/command.h"
#include "exporter/output/counters/versus.h"

struct compare {
  struct ni_inputs inputs;
  unsigned top;
  uint64_t min_diff;
  bool json, gate;
};

/* A summary's JSON, or two sweeps as "BEFORE,AFTER"; a file whose own name has a comma is a summary. */
static bool read_run(struct ni_counters_view *v, const char *word, char *why, size_t cap) {
  const char *comma = access(word, F_OK) == 0 ? NULL : strchr(word, ',');
  if (!comma) return ni_counters_view_read(v, word, NULL, why, cap);
  char *before = strndup(word, (size_t)(comma - word));
  bool fine = before && ni_counters_view_read(v, before, comma + 1, why, cap);
  if (!before) snprintf(why, cap, "%s", strerror(ENOMEM));
  free(before);
  return fine;
}

static int judge(const struct compare *c, const struct ni_versus *v) {
  const struct ni_counter_finding *f;
  for (size_t at = 0; c->gate && (f = ni_versus_new(v, 1, &at));)
    if (f->level >= NI_LEVEL_WARNING) return NI_EXIT_FINDING;
  return v->run[0]->incomplete || v->run[1]->incomplete ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
}

static int run(const struct compare *c, const char *name) {
  struct ni_counters_view good = {.ranked = NULL}, bad = {.ranked = NULL};
  struct ni_versus v = {.row = NULL};
  char why[1024];
  int code = NI_EXIT_COULD_NOT_RUN;
  if (!read_run(&good, c->inputs.path[0], why, sizeof why) || !read_run(&bad, c->inputs.path[1], why, sizeof why)) {
    ni_say(stderr, "%s: %s\n", name, why);
  } else if (!ni_versus_make(&v, &good, &bad, (double)c->min_diff)) {
    ni_say(stderr, "%s: %s\n", name, strerror(ENOMEM));
  } else {
    code = judge(c, &v);
    if (c->json) ni_versus_json(&v, stdout);
    else ni_versus_print(&v, c->top);
  }
  ni_versus_free(&v);
  ni_counters_view_free(&good);
  ni_counters_view_free(&bad);
  return code;
}

static const char *refuse(void *into) {
  return ((struct compare *)into)->inputs.n == 2 ? NULL : "two runs: GOOD and BAD, each a summary's JSON or BEFORE,AFTER";
}

const struct ni_command ni_counters_compare_command = {
    .name = "counters compare", .need = NI_NEED_COUNTERS, .purpose = "what NICs and GPUs did in a good run and in a bad one",
    .about = "Compares a good run and a bad one by what their counters did a second; verdicts that only one has come first.",
    .synopsis = "[OPTION...] GOOD BAD", .refuse = refuse, .run = ni_counters_compare_run,
    .opt = (const struct ni_opt[]){
        {NULL, 0, NI_OPT_INPUTS, "GOOD BAD", NULL, NI_INTO(struct compare, inputs), .min = 1,
         .want = "which runs? GOOD and BAD, each a summary's JSON or BEFORE,AFTER"},
        {"top", 0, NI_OPT_NUMBER, "N", "Rows a table, the most unusual first", NI_INTO(struct compare, top), .def = "20"},
        {"min-diff", 0, NI_OPT_NUMBER, "N", "Only what differs by N a second or more", NI_INTO(struct compare, min_diff), .def = "0"},
        NI_ROW_JSON(struct compare, "counters-compare"),
        {"gate", 0, NI_OPT_FLAG, NULL, "Exit code 3 for a warning or worse that only BAD has", NI_INTO(struct compare, gate)},
        {0}},
    .more = "A run is what `counters summarize --json` wrote, or two sweeps with a comma between: BEFORE,AFTER.",
    .exits = {{"0", "done"}, {"1", "could not run: a file is not there, or no summary and no sweep"},
              {"2", "a run is incomplete"}, {"3", "with --gate: a warning or worse that only BAD has"}},
    .examples = {{"good.json bad.json", "what is new in bad"}, {"monday-before.json,monday-after.json bad.json", "the same, of two sweeps"}}};

int ni_counters_compare_run(int argc, char **argv) {
  struct compare c = {0};
  int done, code = ni_words_parse(&ni_counters_compare_command, argc, argv, &c, &done);
  if (!done) code = run(&c, argv[0]);
  ni_inputs_free(&c.inputs);
  return code;
}
