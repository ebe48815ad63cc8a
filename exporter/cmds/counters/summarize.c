/*
 * nccl-inspector counters summarize: what every counter did between two sweeps, and what that means.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/cli/command.h"
#include "over_time.h"

struct summarize {
  struct ni_inputs inputs;
  const char *csv, *html, *series;
  unsigned top;
  bool json, groups, gate;
};

/* Into the file, or for "-" to standard output. false: said. */
static bool write_csv(const struct ni_counters_view *v, const char *path, const char *name) {
  struct ni_out_file o = {.dir = -1, .fd = -1};
  const char *file = "";
  char why[512] = "";
  bool standard = strcmp(path, "-") == 0;
  int e = standard ? 0 : ni_out_begin_at(&o, path, &file, why, sizeof why);
  FILE *f = standard ? stdout : e == 0 ? fdopen(o.fd, "w") : NULL;
  if (f) ni_counters_csv(v, f);
  else if (e == 0) e = -errno;
  if (f && !standard) {
    o.fd = -1;
    e = ni_out_end(f);
    if (e == 0) e = ni_out_commit(&o, file, true);
  }
  if (e < 0) {
    ni_say(stderr, "%s: --csv %s: %s\n", name, path, *why ? why : strerror(-e));
    ni_out_drop(&o);
  }
  if (o.dir >= 0) close(o.dir);
  return e == 0;
}

static int run(const struct summarize *s, const char *name) {
  struct ni_counters_view v;
  char why[1024];
  if (!ni_counters_view_read(&v, s->inputs.path[0], s->inputs.n > 1 ? s->inputs.path[1] : NULL, why, sizeof why)) {
    ni_say(stderr, "%s: %s\n", name, why);
    return NI_EXIT_COULD_NOT_RUN;
  }
  int code = s->gate && v.findings.n_faults ? NI_EXIT_FINDING : v.incomplete ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
  if (s->csv && !write_csv(&v, s->csv, name)) code = NI_EXIT_COULD_NOT_RUN;
  if (s->html && !ni_counters_page_over_time(&v, s->series, s->html, name)) code = NI_EXIT_COULD_NOT_RUN;
  if (s->json) ni_counters_json(&v, stdout);
  else if (!s->csv || strcmp(s->csv, "-") != 0) ni_counters_print(&v, s->top, s->groups);
  ni_counters_view_free(&v);
  return code;
}

static const char *refuse(void *into) {
  const struct summarize *s = into;
  if (s->inputs.n > 2) return "two sweeps: BEFORE and AFTER";
  if (s->series && !s->html) return "--series is for the page: give --html FILE as well";
  return s->json && s->csv && strcmp(s->csv, "-") == 0 ? "either --json or --csv - to standard output" : NULL;
}

const struct ni_command ni_counters_summarize_command = {
    .name = "counters summarize", .need = NI_NEED_COUNTERS, .purpose = "what NICs and GPUs counted between two sweeps, and what it means",
    .about = "Says what every counter did between two sweeps: differences, rates, shares of link or time, and what they mean.",
    .synopsis = "[OPTION...] BEFORE AFTER", .refuse = refuse, .run = ni_counters_summarize_run,
    .opt = (const struct ni_opt[]){
        {NULL, 0, NI_OPT_INPUTS, "BEFORE AFTER", NULL, NI_INTO(struct summarize, inputs), .min = 1,
         .want = "which sweeps? BEFORE and AFTER, as `counters collect` or net_prof wrote them"},
        {"top", 0, NI_OPT_NUMBER, "N", "Counters a NIC or GPU, the most unusual first; 0: none", NI_INTO(struct summarize, top), .def = "20"},
        {"groups", 0, NI_OPT_FLAG, NULL, "Also what changed in each of net_prof's groups", NI_INTO(struct summarize, groups)},
        NI_ROW_JSON(struct summarize, "counters"),
        {"csv", 0, NI_OPT_TEXT, "FILE", "A row a counter as CSV; - writes to standard output", NI_INTO(struct summarize, csv), .min = 1},
        {"html", 0, NI_OPT_TEXT, "FILE", "A page with everything, to look at in a browser", NI_INTO(struct summarize, html), .min = 1},
        {"series", 0, NI_OPT_TEXT, "FILE", "With --html: rates over time as well, from a series of the time between them",
         NI_INTO(struct summarize, series), .min = 1},
        {"gate", 0, NI_OPT_FLAG, NULL, "Exit code 3 for a warning or worse", NI_INTO(struct summarize, gate)},
        {0}},
    .more = "Reads what `counters collect` writes, net_prof's JSON (0.1.6 and 0.1.11) and its text, plain or gzip; instead of "
            "both also the JSON of this command.",
    .exits = {{"0", "done"}, {"1", "could not run: a file is not there, or no sweep"},
              {"2", "incomplete: a NIC or a counter is in one sweep alone, or could not be read"}, {"3", "with --gate: a warning or worse"}},
    .examples = {{"before.json after.json", "what happened in between"},
                 {"--json before.json after.json >good.json", "for `counters compare`"}}};

int ni_counters_summarize_run(int argc, char **argv) {
  struct summarize s = {0};
  int done, code = ni_words_parse(&ni_counters_summarize_command, argc, argv, &s, &done);
  if (!done) code = run(&s, argv[0]);
  ni_inputs_free(&s.inputs);
  return code;
}
