/*
 * nccl-inspector counters summarize: what every counter did between two sweeps, and what that means. And
 * counters diff: a good run and a bad one, by what their counters did a second.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cli/command.h"
#include "exporter/output/counters/versus.h"
#include "over_time.h"

struct summarize {
  struct ni_inputs inputs;
  const char *csv, *html, *series;
  unsigned top;
  bool json, groups, gate;
};

/* Writes into the file, or for "-" to standard output. false: the reason was printed. */
static bool write_csv(const struct ni_counters_view *v, const char *path, const char *name) {
  struct ni_out_stream o;
  int e = ni_out_open(&o, strcmp(path, "-") != 0 ? path : NULL);
  if (e == 0)
    ni_counters_csv(v, o.f);
  e = ni_out_close(&o, e, true);
  if (e < 0)
    ni_say(stderr, "%s: --csv %s: %s\n", name, path, o.why);
  return e == 0;
}

static int summarize_sweeps(const struct summarize *s, const char *name) {
  struct ni_counters_view v;
  char why[1024];
  if (!ni_counters_view_read(&v, s->inputs.path[0], s->inputs.n > 1 ? s->inputs.path[1] : NULL, why,
                             sizeof why)) {
    ni_say(stderr, "%s: %s\n", name, why);
    return NI_EXIT_COULD_NOT_RUN;
  }
  int code = s->gate && v.findings.n_faults ? NI_EXIT_FINDING
      : v.incomplete                        ? NI_EXIT_INCOMPLETE
                                            : NI_EXIT_FINE;
  if (s->csv && !write_csv(&v, s->csv, name))
    code = NI_EXIT_COULD_NOT_RUN;
  if (s->html && !ni_counters_page_over_time(&v, s->series, s->html, name))
    code = NI_EXIT_COULD_NOT_RUN;
  if (s->json)
    ni_counters_json(&v, stdout);
  else if (!s->csv || strcmp(s->csv, "-") != 0)
    ni_counters_print(&v, s->top, s->groups);
  ni_counters_view_free(&v);
  return code;
}

static const char *refuse_summarize(void *into) {
  const struct summarize *s = into;
  if (s->inputs.n > 2)
    return "two sweeps: BEFORE and AFTER";
  if (s->series && !s->html)
    return "--series is for the page: give --html FILE as well";
  return s->json && s->csv && strcmp(s->csv, "-") == 0 ? "either --json or --csv - to standard output" : NULL;
}

const struct ni_command ni_counters_summarize_command = {
    .name = "counters summarize",
    .need = NI_NEED_COUNTERS,
    .purpose = "what NICs and GPUs counted between two sweeps, and what it means",
    .about =
        "Says what every counter did between two sweeps: differences, rates, shares of link or time, and "
        "what they mean.",
    .synopsis = "[OPTION...] BEFORE AFTER",
    .refuse = refuse_summarize,
    .run = ni_counters_summarize_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_INPUTS, "BEFORE AFTER", NULL, NI_INTO(struct summarize, inputs), .min = 1,
             .want = "which sweeps? BEFORE and AFTER, as `counters collect` or net_prof wrote them"},
            {"top", 0, NI_OPT_NUMBER, "N", "Counters a NIC or GPU, the most unusual first; 0: none",
             NI_INTO(struct summarize, top), .def = "5"},
            {"groups", 0, NI_OPT_FLAG, NULL, "Also what changed in each of net_prof's groups",
             NI_INTO(struct summarize, groups)},
            NI_ROW_JSON(struct summarize, "counters"),
            {"csv", 0, NI_OPT_TEXT, "FILE", "A row a counter as CSV; - writes to standard output",
             NI_INTO(struct summarize, csv), .min = 1},
            {"html", 0, NI_OPT_TEXT, "FILE", "A page with everything, to look at in a browser",
             NI_INTO(struct summarize, html), .min = 1},
            {"series", 0, NI_OPT_TEXT, "FILE",
             "With --html: rates over time as well, from a series of the time between them",
             NI_INTO(struct summarize, series), .min = 1},
            {"gate", 0, NI_OPT_FLAG, NULL, "Exit code 3 for a warning or worse",
             NI_INTO(struct summarize, gate)},
            {0}},
    .more =
        "Reads what `counters collect` writes, net_prof's JSON (0.1.6 and 0.1.11) and its text, plain or "
        "gzip; instead of both also the JSON of this command.",
    .exits = {{"0", "done"},
              {"1", "could not run: a file is not there, or no sweep"},
              {"2", "incomplete: a NIC or a counter is in one sweep alone, or could not be read"},
              {"3", "with --gate: a warning or worse"}},
    .examples = {{"before.json after.json", "what happened in between"},
                 {"--json before.json after.json >good.json", "for `counters diff`"}}};

int ni_counters_summarize_run(int argc, char **argv) {
  struct summarize s = {0};
  int done, code = ni_words_parse(&ni_counters_summarize_command, argc, argv, &s, &done);
  if (!done)
    code = summarize_sweeps(&s, argv[0]);
  ni_inputs_free(&s.inputs);
  return code;
}

struct compare {
  struct ni_inputs inputs;
  unsigned top;
  uint64_t min_diff;
  bool json, gate;
};

/*
 * Reads the JSON of a summary, or two sweeps as "BEFORE,AFTER". A file with a comma in its name is a summary.
 */
static bool read_run(struct ni_counters_view *v, const char *word, char *why, size_t cap) {
  const char *comma = access(word, F_OK) == 0 ? NULL : strchr(word, ',');
  if (!comma)
    return ni_counters_view_read(v, word, NULL, why, cap);
  char *before = strndup(word, (size_t)(comma - word));
  bool fine = before && ni_counters_view_read(v, before, comma + 1, why, cap);
  if (!before)
    snprintf(why, cap, "%s", strerror(ENOMEM));
  free(before);
  return fine;
}

static int report_comparison(const struct compare *c, const struct ni_versus *v) {
  const struct ni_counter_finding *f;
  for (size_t at = 0; c->gate && (f = ni_versus_new(v, 1, &at));)
    if (f->level >= NI_LEVEL_WARNING)
      return NI_EXIT_FINDING;
  return v->run[0]->incomplete || v->run[1]->incomplete ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
}

static int compare_runs(const struct compare *c, const char *name) {
  struct ni_counters_view good = {.ranked = NULL}, bad = {.ranked = NULL};
  struct ni_versus v = {.row = NULL};
  char why[1024];
  int code = NI_EXIT_COULD_NOT_RUN;
  if (!read_run(&good, c->inputs.path[0], why, sizeof why) ||
      !read_run(&bad, c->inputs.path[1], why, sizeof why)) {
    ni_say(stderr, "%s: %s\n", name, why);
  } else if (!ni_versus_make(&v, &good, &bad, (double)c->min_diff)) {
    ni_say(stderr, "%s: %s\n", name, strerror(ENOMEM));
  } else {
    code = report_comparison(c, &v);
    if (c->json)
      ni_versus_json(&v, stdout);
    else
      ni_versus_print(&v, c->top);
  }
  ni_versus_free(&v);
  ni_counters_view_free(&good);
  ni_counters_view_free(&bad);
  return code;
}

static const char *refuse_compare(void *into) {
  return ((struct compare *)into)->inputs.n == 2
      ? NULL
      : "two runs: GOOD and BAD, each a summary's JSON or BEFORE,AFTER";
}

const struct ni_command ni_counters_diff_command = {
    .name = "counters diff",
    .need = NI_NEED_COUNTERS,
    .purpose = "what NICs and GPUs did in a good run and in a bad one",
    .about =
        "Compares a good run and a bad one by what their counters did a second; verdicts that only one has "
        "come first.",
    .synopsis = "[OPTION...] GOOD BAD",
    .refuse = refuse_compare,
    .run = ni_counters_diff_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_INPUTS, "GOOD BAD", NULL, NI_INTO(struct compare, inputs), .min = 1,
             .want = "which runs? GOOD and BAD, each a summary's JSON or BEFORE,AFTER"},
            {"top", 0, NI_OPT_NUMBER, "N", "Rows a table, the most unusual first",
             NI_INTO(struct compare, top), .def = "20"},
            {"min-diff", 0, NI_OPT_NUMBER, "N", "Only what differs by N a second or more",
             NI_INTO(struct compare, min_diff), .def = "0"},
            NI_ROW_JSON(struct compare, "counters-compare"),
            {"gate", 0, NI_OPT_FLAG, NULL, "Exit code 3 for a warning or worse that only BAD has",
             NI_INTO(struct compare, gate)},
            {0}},
    .more =
        "A run is what `counters summarize --json` wrote, or two sweeps with a comma between: BEFORE,AFTER.",
    .exits = {{"0", "done"},
              {"1", "could not run: a file is not there, or no summary and no sweep"},
              {"2", "a run is incomplete"},
              {"3", "with --gate: a warning or worse that only BAD has"}},
    .examples = {{"good.json bad.json", "what is new in bad"},
                 {"monday-before.json,monday-after.json bad.json", "the same, of two sweeps"}}};

int ni_counters_diff_run(int argc, char **argv) {
  struct compare c = {0};
  int done, code = ni_words_parse(&ni_counters_diff_command, argc, argv, &c, &done);
  if (!done)
    code = compare_runs(&c, argv[0]);
  ni_inputs_free(&c.inputs);
  return code;
}
