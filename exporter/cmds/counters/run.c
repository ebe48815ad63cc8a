/*
 * nccl-inspector counters run: all counters before and after a command, a time series beside it, and what
 * they mean.
 *
 * The command is our child, in our process group, as foreground.h has it: what is sent to us alone goes on to
 * it; what a terminal sends has reached it already.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/foreground.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"
#include "exporter/input/scan_files.h"
#include "over_time.h"
#include "recorder.h"

enum { CODE_OWN = 125, ROWS = 16 };

struct run {
  struct ni_record_options o;
  char **command;
  const char *json, *html;
  bool quiet, own_dir;        /* own_dir: the series is for the page alone */
  struct ni_foreground front; /* the command */
  struct ni_sampling before, after;
  double seconds;
};

const struct ni_command ni_counters_run_command = {
    .name = "counters run",
    .need = NI_NEED_COUNTERS,
    .purpose = "a command, and what NICs and GPUs counted meanwhile",
    .about = "Runs COMMAND and says what NICs, GPUs and the host counted meanwhile, and what that means.",
    .synopsis = "[OPTION...] [--] COMMAND [ARGUMENT...]",
    .opt =
        (const struct ni_opt[]){
            {NULL, 0, NI_OPT_REST, "COMMAND...", NULL, NI_INTO(struct run, command), .min = 1,
             .want = "which command? for example: counters run -- mpirun -np 8 ./a.out"},
            {"output", 'o', NI_OPT_TEXT, "DIR",
             "Also write a time series into DIR, such as the folder of the job's logs",
             NI_INTO(struct run, o.dir), .min = 1},
            NI_ROWS_SAMPLING(struct run),
            NI_ROW_CPUS(struct run),
            {"json", 0, NI_OPT_TEXT, "FILE", "What was found, as JSON (schema nccl-inspector-counters-run-1)",
             NI_INTO(struct run, json), .min = 1},
            {"html", 0, NI_OPT_TEXT, "FILE",
             "A page with everything, also over time, to look at in a browser", NI_INTO(struct run, html),
             .min = 1},
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Say nothing on standard error but what went wrong",
             NI_INTO(struct run, quiet)},
            {0}},
    .more =
        "Standard input, output and error are the command's; what this has to say comes on standard error "
        "when it has ended.\n"
        "Signals are passed on. All counters are read before and after; the time series is taken with "
        "processor time that nobody else wants.",
    .exits = {{"N", "the command's own code"},
              {"128+N", "it was killed by signal N"},
              {"125", "could not run: the command was not started"},
              {"126", "the command could not be started"},
              {"127", "there is no such command"}},
    .examples = {{"-- torchrun --nproc-per-node 8 train.py", "what did the NICs of this node do meanwhile?"},
                 {"-o logs/ -- mpirun -np 16 ./all_reduce_perf", "with a time series beside the logs"}},
    .files = {{"HOST-counters-START.jsonl.gz", "in DIR: the time series"}},
    .run = ni_counters_run_run};

static int read_everything(struct ni_sampling *s) {
  int e = ni_sampling_open(s, NULL);
  if (e == 0)
    ni_sampling_read(s, ni_scan_jobs());
  return e;
}

/* ---- what there is to say ---- */

/* Checks it before the command runs, which may take days. */
static bool can_write(const char *option, const char *path, const char *who) {
  if (!path)
    return true;
  struct ni_out_stream o;
  int e = ni_out_open(&o, path);
  if (e < 0)
    ni_say(stderr, "%s: %s %s: %s\n", who, option, path, o.why);
  (void)ni_out_close(&o, -ECANCELED, true);
  return e == 0;
}

static void write_json(const struct run *r, const char *who, const struct ni_counters_view *v, int code,
                       const char *series) {
  struct ni_out_stream o;
  int e = ni_out_open(&o, r->json);
  if (e == 0) {
    struct ni_json json, *j = &json;
    ni_json_open(j, o.f, "nccl-inspector-counters-run-1");
    ni_json_text(j, "command", r->command[0]);
    ni_json_i64(j, "exit_code", code);
    ni_json_f64(j, "seconds", r->seconds);
    ni_json_text(j, "series", series);
    NI_JSON_ARRAY (j, "findings")
      for (size_t i = 0; i < v->findings.n; i++)
        ni_counters_json_finding(j, &v->findings.finding[i]);
    ni_figures_json(j, v->figures, v->n_figures);
    ni_json_close(j);
  }
  if (ni_out_close(&o, e, true) < 0)
    ni_say(stderr, "%s: --json %s: %s\n", who, r->json, o.why);
}

static void print_verdict(const struct run *r, const char *who, const struct ni_counters_view *v, int code) {
  const struct ni_pair *p = &v->pair;
  char time[32];
  ni_say(stderr, "\n%s: %s ended with %d after %s; %s of %s counters of %zu %s changed\n", who, r->command[0],
         code, ni_duration_text(r->seconds * 1e6, time), NI_COUNT(v->changed), NI_COUNT(p->n_rows),
         p->n_entities, ni_plural(p->n_entities, "source", "sources"));
  for (size_t i = 0; i < v->findings.n; i++) {
    const struct ni_counter_finding *x = &v->findings.finding[i];
    ni_say(stderr, "%-9s %s\n          %s\n", ni_level_name(x->level), x->text, x->advice);
  }
  if (!v->findings.n_faults)
    ni_say(stderr, "%s\n",
           p->n_rows ? "no finding: no counter says that anything held this back"
                     : "no counter can be read here");
  ni_figures_print(v->figures, v->n_figures, ROWS, stderr);
}

/* Makes a sweep of the sampling. It still belongs to the sampling. */
static struct ni_sweep make_sweep(const struct ni_sampling *s, const char *name, char started[40],
                                  char finished[40]) {
  return (struct ni_sweep){
      .set = *ni_collector_set(s->c),
      .reading = s->at,
      .path = name,
      .duration_s = (double)s->when.ns / 1e9,
      .started = ni_utc_text(s->when.real_ns / 1000, 'T', 6, started),
      .finished = ni_utc_text((s->when.real_ns + (int64_t)s->when.ns) / 1000, 'T', 6, finished)};
}

/* Reports what both sweeps say. The recorder, if it runs, ends before the page is made of what it wrote. */
static void report_run(const struct run *r, const char *who, int code, const char *series,
                       struct ni_recorder *recorder) {
  char time[4][40];
  struct ni_counters_view v = {.sweep = {make_sweep(&r->before, "before", time[0], time[1]),
                                         make_sweep(&r->after, "after", time[2], time[3])}};
  const bool made = ni_counters_view_make(&v);
  if (!made)
    ni_say(stderr, "%s: %s\n", who, strerror(ENOMEM));
  if (made && !r->quiet)
    print_verdict(r, who, &v, code);
  if (made && r->json)
    write_json(r, who, &v, code, r->own_dir ? NULL : series);
  (void)ni_recorder_stop(recorder);
  if (made && r->html)
    (void)ni_counters_page_over_time(&v, series, r->html, who);
  v.sweep[0] = v.sweep[1] = (struct ni_sweep){0};
  ni_counters_view_free(&v);
}

/*
 * Starts the recorder. If only the page is wanted, a temporary series is recorded. Without a folder for it
 * the page has no lines.
 */
static bool start_recorder(struct run *r, const char *who, struct ni_recorder *recorder,
                           char own_dir[PATH_MAX]) {
  const char *tmp = getenv("TMPDIR");
  r->own_dir = r->html && !r->o.dir;
  snprintf(own_dir, PATH_MAX, "%s/nccl-inspector-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (r->own_dir)
    r->o.dir = mkdtemp(own_dir);
  return !r->o.dir ||
      ni_recorder_start(recorder, &r->o, who, r->quiet || r->own_dir) != NI_EXIT_COULD_NOT_RUN || r->own_dir;
}

static int run_between_sweeps(struct run *r, const char *who) {
  struct ni_recorder recorder = {0};
  char own_dir[PATH_MAX];
  ni_foreground_begin(&r->front);
  ni_collector_raise_limit();
  if (!can_write("--json", r->json, who) || !can_write("--html", r->html, who))
    return CODE_OWN;
  bool can = read_everything(&r->before) == 0;
  if (!can)
    ni_say(stderr, "%s: %s\n", who, strerror(ENOMEM));
  if (!start_recorder(r, who, &recorder, own_dir))
    return CODE_OWN;
  char *series = recorder.writer ? strdup(ni_series_path(recorder.writer)) : NULL;
  uint64_t from = ni_now_ns(CLOCK_MONOTONIC);
  int told = ni_foreground_told_to_end(), code,
      e = told ? 0 : ni_foreground_start(&r->front, r->command, false);
  siginfo_t signal;
  while (r->front.child)
    if (ni_foreground_wait(&r->front, UINT64_MAX, &signal) == NI_FOREGROUND_SIGNAL)
      ni_foreground_pass(&r->front, &signal);
  r->seconds = (double)(ni_now_ns(CLOCK_MONOTONIC) - from) / 1e9;
  if (told) {
    code = 128 + told;
  } else if (e < 0) {
    ni_say(stderr, "%s: %s: %s\n", who, r->command[0], strerror(-e));
    code = ni_foreground_code_of_error(e);
  } else {
    code = ni_foreground_code(&r->front);
    if (can && read_everything(&r->after) == 0)
      report_run(r, who, code, series, &recorder);
  }
  (void)ni_recorder_stop(&recorder);
  if (r->own_dir && series)
    unlink(series);
  if (r->own_dir && r->o.dir)
    rmdir(r->o.dir);
  free(series);
  return code;
}

int ni_counters_run_run(int argc, char **argv) {
  struct run r = {0};
  int done, code = ni_words_parse(&ni_counters_run_command, argc, argv, &r, &done);
  if (!done)
    code = run_between_sweeps(&r, argv[0]);
  ni_sampling_close(&r.before);
  ni_sampling_close(&r.after);
  ni_words_free(&r.o.counters);
  ni_ranks_free(&r.o.cpus);
  return code;
}
