/*
 * nccl-inspector diff: what got slower or faster between two runs, and a gate for scripts.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/cli/command.h"
#include "exporter/model/diff/gather.h"
#include "exporter/model/diff/judge.h"
#include "exporter/model/diff/read_json.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/output/diff/show.h"
#include "summarize.h"

struct diff {
  struct ni_inputs inputs;
  const char *html;
  double gate; /* a part; below 0: not asked for */
  unsigned jobs;
  uint64_t memory;
  bool json, all;
};

static int parse_gate(const struct ni_opt *o, void *into, const char *arg) {
  char *end;
  double v = strtod(arg, &end);
  if (*end == '%' && !end[1]) {
    v /= 100;
    end++;
  }
  const bool is_part = v >= 0 && v < 1;
  if (end == arg || *end || !is_part)
    return -EINVAL;
  ((struct diff *)into)->gate = v;
  return 0;
}

/* The summary.json that a word means: itself, or that of a folder of `summary`. NULL: logs. */
static const char *find_summary(const char *word, char out[PATH_MAX]) {
  struct stat st;
  size_t n = strlen(word);
  const bool is_json = n > 5 && strcmp(word + n - 5, ".json") == 0;
  if (is_json && stat(word, &st) == 0 && S_ISREG(st.st_mode))
    return word;
  for (int k = 0; k < 2; k++)
    if (snprintf(out, PATH_MAX, "%s%s/summary.json", word, k ? "" : "/summary") < PATH_MAX &&
        access(out, R_OK) == 0)
      return out;
  return NULL;
}

/* Any other JSON, or "BEFORE,AFTER": whoever compares counters says what is wrong with it. */
static bool is_counters(const char *word) {
  char head[4096] = "", path[PATH_MAX];
  const char *summary = find_summary(word, path);
  FILE *f = summary ? fopen(summary, "re") : NULL;
  if (!f)
    return access(word, F_OK) != 0 && strchr(word, ',');
  head[fread(head, 1, sizeof head - 1, f)] = 0;
  fclose(f);
  return *head && !strstr(head, "\"nccl-inspector-summary-");
}

static int read_logs(const struct diff *d, struct ni_diff_run *out, struct ni_digest *steps,
                     const char *name) {
  struct ni_run r;
  struct ni_summary s = {0};
  struct ni_blame b = {0};
  int e = ni_summarize_init(&r);
  if (e == 0)
    e = ni_inputs_add(&r.opt.inputs, out->path);
  if (d->jobs)
    r.opt.jobs = d->jobs;
  r.opt.memory_bytes = d->memory;
  r.opt.no_parquet = r.opt.no_csv = true;
  r.opt.inputs.progress_json = d->inputs.progress_json;
  if (e == 0)
    e = ni_inputs_find(&r.opt.inputs, name, &r.files, &r.runs);
  bool said = e == -ENOENT;
  if (e == 0)
    e = ni_summarize_tables(&r, &s, &b, steps);
  if (e == 0)
    e = ni_diff_gather(out, &s, &b);
  if (r.has_counters && !out->n)
    out->from = "counters";
  if (e < 0 && !said)
    ni_say(stderr, "%s: %s: %s\n", name, out->path, *r.error_text ? r.error_text : strerror(-e));
  ni_blame_free(&b);
  ni_summary_free(&s);
  ni_summarize_free(&r);
  return e;
}

/*
 * Prints the comparison. Returns what the gate or a run says, or -1: it failed, and the reason is in `why` or
 * was printed.
 */
static int print_comparison(const struct diff *d, struct ni_diff *x, const char *name, char *why,
                            size_t cap) {
  char path[PATH_MAX];
  for (struct ni_diff_run *r = x->run; r < x->run + 2; r++) {
    r->path = d->inputs.path[r - x->run];
    const char *summary = find_summary(r->path, path);
    if (summary) {
      if (!ni_diff_read_json(r, summary, why, cap))
        return -1;
    } else if (read_logs(d, r, &x->steps[r - x->run], name) < 0) {
      return -1;
    }
  }
  if (ni_step_changes_find(&x->steps[0], &x->steps[1], &x->changes) < 0) {
    snprintf(why, cap, "%s", strerror(ENOMEM));
    return -1;
  }
  int e = ni_diff_pair(x, why, cap);
  if (e < 0 && e != -EINVAL)
    snprintf(why, cap, "%s", strerror(-e));
  if (e == -EINVAL)
    ni_diff_print_program(x, stderr);
  if (e < 0)
    return -1;
  const struct ni_diff_row *gate = d->gate >= 0 ? ni_diff_gate(x, d->gate) : NULL;
  if (d->json)
    ni_diff_json(x, d->gate, gate, stdout);
  else
    ni_diff_print(x, d->all, d->gate, gate, stdout);
  if (d->html && (e = ni_diff_page(x, d->html)) < 0) {
    snprintf(why, cap, "%s: %s", d->html,
             e == -ENOTSUP ? "this build makes no page: it had no npm" : strerror(-e));
    return -1;
  }
  return gate                                    ? NI_EXIT_FINDING
      : *x->run[0].trouble || *x->run[1].trouble ? NI_EXIT_INCOMPLETE
                                                 : NI_EXIT_FINE;
}

static const char *refuse_diff(void *into) {
  return ((struct diff *)into)->inputs.n == 2
      ? NULL
      : "two runs: A, the good one, and B, each a folder of logs or a summary.json";
}

#define IN(member) NI_INTO(struct diff, member)
const struct ni_command ni_diff_command = {
    .name = "diff",
    .need = NI_NEED_AFTER,
    .purpose = "what got slower or faster between two runs, and a gate for scripts",
    .about = "Compares two runs of a job: steps, ranks, hosts, links and functions, each with an interval.",
    .synopsis = "[OPTION...] A B",
    .refuse = refuse_diff,
    .run = ni_diff_run,
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_INPUTS, "A B", NULL, IN(inputs), .min = 1,
             .want = "which runs? A, the good one, and B"},
            {"gate", 0, NI_OPT_TAKE, "LIMIT",
             "Exit code 3 when B's steps take longer by more than LIMIT: 5% or 0.05", .take = parse_gate,
             .want = "a part, such as 5% or 0.05"},
            {"all", 0, NI_OPT_FLAG, NULL, "All rows, also of what did not change", IN(all)},
            {"html", 0, NI_OPT_TEXT, "FILE", "Also a page with both runs", IN(html), .min = 1,
             .want = "a file"},
            NI_ROW_JSON(struct diff, "diff"),
            NI_ROW_PROGRESS(struct diff),
            {"jobs", 'j', NI_OPT_NUMBER, "N", "Threads, by default one for each CPU this process may use",
             IN(jobs), .min = 1, .max = 1024},
            {"memory", 0, NI_OPT_SIZE, "SIZE",
             "Keep about so much in memory, put the rest into a temporary file in $TMPDIR", IN(memory),
             .def = "128M", .min = 16 << 20},
            {0}},
    .more =
        "A run is a folder of logs, a file or a pattern; a folder that `summary` wrote, or its "
        "summary.json; or counters, as for `counters diff`.",
    .exits = {{"0", "compared, whatever was found"},
              {"1", "could not compare: why is said"},
              {"2", "the data of a run is incomplete"},
              {"3", "with --gate: slower by more"}},
    .examples = {
        {"monday/ tuesday/", "what changed since Monday"},
        {"--gate 5% good/ new/", "in a script that tests a change"},
        {"--html diff.html good/summary.json new/", "a page; of the good run the summary was kept"}}};

int ni_diff_run(int argc, char **argv) {
  struct diff d = {.gate = -1};
  struct ni_diff x = {0};
  char why[4096] = "";
  int done, code = ni_words_parse(&ni_diff_command, argc, argv, &d, &done);
  if (!done && is_counters(d.inputs.path[0]) && is_counters(d.inputs.path[1]))
    code = ni_counters_diff_run(3 + d.json,
                                (char *[]){argv[0], d.inputs.path[0], d.inputs.path[1], "--json", NULL});
  else if (!done && (code = print_comparison(&d, &x, argv[0], why, sizeof why)) < 0)
    code = NI_EXIT_COULD_NOT_RUN;
  if (*why)
    ni_say(stderr, "%s: %s\n", argv[0], why);
  ni_diff_free(&x);
  ni_inputs_free(&d.inputs);
  return code;
}
