#include "after.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/program.h"
#include "exporter/cmds/check/ends.h"
#include "exporter/cmds/check/print.h"
#include "exporter/cmds/doctor/findings.h"
#include "exporter/cmds/result.h"
#include "exporter/cmds/summarize.h"
#include "exporter/cmds/summary_print.h"
#include "exporter/index/atlas.h"
#include "exporter/model/ledger/judge.h"
#include "exporter/model/sums/findings.h"

static const struct ni_after *after; /* ni_result_of() hands nothing on to who shows its result */
static bool has_told;                /* the result, with the folder of the logs */

/* ---- no rank has loaded the plugin ---- */

/*
 * Does this finding explain that there are no logs? What the plugin does where it is loaded explains nothing.
 */
static bool explains_no_logs(const struct ni_doctor_finding *f) {
  static const char *const others[] = {"shm", "clock", "simulation"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(f->check, others[i]) == 0)
      return false;
  return f->status != NI_DOC_OK && (f->status != NI_DOC_NOTE || f->advice);
}

static int report_no_logs(const struct ni_after *a) {
  const struct ni_launch *l = a->l;
  struct ni_doctor d = {0};
  bool problem = false;
  ni_say(stdout, "%s: no rank of %s has loaded the plugin: there is no %slog in %s. What may be the cause:\n",
         l->who, a->command, l->before.n ? "new " : "", l->logs.path[0]);
  if (a->code)
    ni_doctor_add(&d, "command", NI_DOC_NOTE, "Look at what it says itself.",
                  "%s ended with %d, perhaps before it came to NCCL", a->command, a->code);
  ni_doctor_look(&d);
  for (size_t i = 0; i < d.n; i++)
    problem |= d.finding[i].status == NI_DOC_PROBLEM;
  if (!problem) {
    ni_doctor_add(&d, "command", NI_DOC_NOTE,
                  "NCCL_DEBUG=INFO shows whether NCCL begins, and what it makes of NCCL_PROFILER_PLUGIN.",
                  "%s has not used NCCL, or one older than 2.23", a->command);
    ni_doctor_add(&d, "variables", NI_DOC_NOTE,
                  "Let each rank start us: mpirun -np 8 nccl-inspector run --out DIR -- COMMAND. Or hand "
                  "them on: mpirun -x NAME, srun --export=ALL, docker run -e NAME.",
                  "the ranks have not got the variables: a launcher to other hosts, a container");
    ni_doctor_add(&d, "path", NI_DOC_NOTE,
                  "Mount it there, or set NCCL_PROFILER_PLUGIN to where it is there.",
                  "%s is not to be seen where the ranks run: another host, a container",
                  getenv("NCCL_PROFILER_PLUGIN"));
  }
  for (size_t i = 0; i < d.n; i++)
    if (explains_no_logs(&d.finding[i]))
      ni_doctor_say(&d.finding[i]);
  ni_say(stdout, "next     %s doctor, where the ranks run\n", ni_program_text());
  ni_doctor_free(&d);
  ni_launch_undo(l);
  return NI_EXIT_INCOMPLETE;
}

/* ---- the logs ---- */

/* Is the log of a rank, or the rest of it, still to come? By the account that check makes. */
static bool is_more_to_come(struct ni_files *files) {
  static const enum ni_problem_code unended[] = {NI_PROBLEM_NO_END, NI_PROBLEM_NO_FINAL, NI_PROBLEM_RANKS};
  struct ni_progress none = NI_PROGRESS_INIT;
  struct ni_runs runs = {0};
  struct ni_ledger c = {0};
  struct ni_atlas *atlas = NULL;
  bool more = false;
  none.mode = NI_PROGRESS_NONE;
  int e = ni_runs_find(&runs, files);
  if (e == 0)
    ni_ledger_runs(&c, &runs, files);
  if (e == 0)
    e = ni_atlas_open(&atlas, after->l->who, files, &(struct ni_atlas_options){0}, false);
  if (e == 0)
    e = ni_atlas_read_ledger(atlas, &c, files, ni_scan_jobs(), &none);
  ni_atlas_close(atlas, e == 0, NULL);
  if (e == 0)
    e = ni_ledger_judge(&c);
  for (size_t i = 0; e == 0 && i < sizeof unended / sizeof *unended; i++)
    more |= c.problem[unended[i]].places > 0;
  ni_ledger_free(&c);
  ni_runs_free(&runs);
  return more;
}

/* 0 or -ENOMEM. */
static int find_logs(const struct ni_after *a, struct ni_files *files) {
  const uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + a->wait_s * UINT64_C(1000000000);
  for (;;) {
    int e = ni_launch_logs(a->l, files);
    bool waits = e == 0 && ni_now_ns(CLOCK_MONOTONIC) < until &&
        (!ni_launch_has_ranks(files) || is_more_to_come(files));
    if (!waits)
      return e;
    ni_files_free(files);
    *files = (struct ni_files){0};
    (void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
  }
}

/* ---- five lines ---- */

/* The first thing that stands out, as summary has it. */
static const struct ni_finding *first_finding(const struct ni_summary *s) {
  for (size_t i = 0; i < s->n_findings; i++)
    if (!ni_finding_is_note(&s->finding[i]))
      return &s->finding[i];
  return NULL;
}

/*
 * Who was missing comes first: in the words of the run while it went, else as logs and black boxes have it.
 * NULL: it did not hang. A job that was killed at work is told by its findings.
 */
static const char *find_hang_text(const struct ni_summary *s) {
  return !s->complete && s->stood_still ? s->hang : NULL;
}

/*
 * What --run says for this run alone, in a folder that has logs of others as well, which commands would judge
 * together with it. NULL: there are no others, or nobody can tell. which: 16 bytes.
 */
static const char *name_run(const struct ni_run *r, char which[16]) {
  const struct ni_launch *l = after->l;
  struct ni_files all = {0};
  struct ni_runs runs = {0};
  uint32_t run = 0;
  bool is_one = true;
  int e = l->before.n ? ni_discover(&all, l->logs.path, l->logs.n) : -ENOENT;
  if (e == 0)
    e = ni_runs_find(&runs, &all);
  for (size_t i = 0; e == 0 && i < all.n; i++) {
    size_t k = 0;
    while (k < r->files.n &&
           (r->files.file[k].ino != all.file[i].ino || r->files.file[k].dev != all.file[i].dev))
      k++;
    if (k == r->files.n || !all.file[i].run)
      continue;
    is_one &= !run || run == all.file[i].run;
    run = all.file[i].run;
  }
  const bool is_named = is_one && run && runs.n > 1;
  if (is_named && run == runs.n)
    snprintf(which, 16, "last");
  else if (is_named)
    snprintf(which, 16, "%u", run);
  ni_files_free(&all);
  ni_runs_free(&runs);
  return is_named ? which : NULL;
}

static void print_next(const struct ni_run *r, const struct ni_summary *s, const struct ni_finding *first) {
  const struct ni_problem *p = r->ledger.problem;
  const char *next = "trace LOGS -o trace.json.gz", *hang = find_hang_text(s);
  if (hang)
    next = "hang LOGS";
  else if (p[NI_PROBLEM_NO_END].places)
    next = "recover LOGS";
  else if (!s->complete)
    next = "check LOGS";
  else if (first && *first->next)
    next = first->next;
  if (!hang && !p[NI_PROBLEM_NO_END].places && p[NI_PROBLEM_RANKS].places) {
    ni_say(stdout,
           "  next    run --out DIR with a folder that all hosts see, or put their logs together and "
           "`nccl-inspector check` them\n");
    return;
  }
  struct ni_inputs logs = r->opt.inputs; /* which stay the run's */
  char which[16];
  logs.run = name_run(r, which);
  ni_say(stdout, "  next    ");
  ni_print_next(next, &logs, stdout);
}

static void print_folder(const struct ni_run *r) {
  const struct ni_inputs *logs = &after->l->logs;
  char size[32];
  uint64_t bytes = 0;
  for (size_t i = 0; i < r->files.n; i++)
    bytes += r->files.file[i].bytes;
  ni_say(stdout, "  logs    %s", logs->path[0]);
  for (size_t i = 1; i < logs->n; i++)
    ni_say(stdout, " and %s", logs->path[i]);
  ni_say(stdout, " (%zu %s, %s)\n", r->files.n, ni_plural(r->files.n, "file", "files"),
         ni_bytes_text(bytes, size));
}

/* A page needs a megabyte, and a build that has it; without one the figures are there all the same. */
static void print_report(const struct ni_run *r) {
  char page[PATH_MAX];
  const bool fits = snprintf(page, sizeof page, "%s/report.html", r->out_dir) < (int)sizeof page;
  if (fits && access(page, F_OK) == 0)
    ni_say(stdout, "  report  %s\n", page);
  else
    ni_say(stdout, "  report  %s/summary/summary.json, and no page: %s/output.log says why\n", r->out_dir,
           r->out_dir);
}

static void print_summary(const struct ni_run *r, const struct ni_summary *s) {
  const struct ni_launch *l = after->l;
  const struct ni_finding *first = first_finding(s);
  const char *hang = find_hang_text(s);
  char head[NI_HEAD_TEXT];
  ni_say(stdout, "%s: %s", l->who, ni_head_text(s, head));
  if (!s->complete) {
    ni_say(stdout, ": ");
    ni_check_reasons(&r->ledger);
  }
  ni_say(stdout, "\n  first   %s\n",
         hang        ? hang
             : first ? first->text
                     : "no rank, host or communicator stands out");
  print_report(r);
  print_folder(r);
  print_next(r, s, first);
}

/* The ledger is judged by then. */
static void print_all(const struct ni_run *r, const struct ni_summary *s) {
  ni_check_tell_ends((struct ni_ledger *)(uintptr_t)&r->ledger, after->l->box_dir);
  print_summary(r, s);
  has_told = true;
}

int ni_after_tell(const struct ni_after *a) {
  char *out = NULL;
  struct ni_run r;
  int code = NI_EXIT_COULD_NOT_RUN, e = 0;
  after = a;
  (void)dup2(STDERR_FILENO, STDOUT_FILENO);
  if (ni_summarize_init(&r) < 0 || asprintf(&out, "%s/report", a->l->out) < 0)
    e = -ENOMEM;
  if (e == 0)
    e = find_logs(a, &r.files);
  if (e == 0 && !ni_launch_has_ranks(&r.files)) {
    code = report_no_logs(a);
  } else {
    r.opt.output_dir = out;
    r.opt.no_plots = r.opt.no_parquet = r.opt.no_csv = true;
    r.opt.seen_hang = *a->hang ? a->hang : NULL;
    r.opt.box_dir = a->l->box_dir;
    for (size_t i = 0; e == 0 && i < a->l->logs.n; i++)
      e = ni_inputs_add(&r.opt.inputs, a->l->logs.path[i]);
    if (e == 0)
      e = ni_runs_find(&r.runs, &r.files);
    if (e == 0)
      code = ni_result_of(&r, a->l->who, ni_summarize, print_all);
    if (e == 0 && code == NI_EXIT_COULD_NOT_RUN && !has_told)
      print_folder(&r); /* why there is no report has been said */
  }
  if (e < 0)
    ni_say(stdout, "%s: %s\n", a->l->who, strerror(-e));
  fflush(stdout);
  ni_summarize_free(&r);
  free(out);
  return code;
}
