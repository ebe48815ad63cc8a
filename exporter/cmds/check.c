/*
 * nccl-inspector check: the command line of it.
 */
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/cli/command.h"
#include "exporter/input/scan_files.h"
#include "exporter/model/ledger/read.h"
#include "exporter/model/ledger/judge.h"

static int expect(const struct ni_opt *o, void *into, const char *arg) {
  struct ni_check *c = into;
  (void)o;
  if (!ni_array_room(c->expect, c->n_expect, c->cap_expect)) return -ENOMEM;
  int e = ni_parse_expect(arg, &c->expect[c->n_expect].func, &c->expect[c->n_expect].count);
  c->n_expect += e == 0;
  return e;
}

const struct ni_command ni_check_command = {
    .name = "check", .need = NI_NEED_AFTER, .purpose = "are these logs complete and sound? losses by cause, a verdict",
    .about = "Are these logs complete and sound? Totals, losses by cause, and a verdict.", .run = ni_check_run,
    .opt = (const struct ni_opt[]){
        NI_ROWS_LOGS(struct ni_check, 1),
        {"expect", 0, NI_OPT_TAKE, "FUNC=N", "Exactly N operations of FUNC in the whole input; repeatable", .take = expect,
         .want = "FUNCTION=NUMBER with a number from 0 on, such as --expect AllReduce=40000"},
        {"partial", 0, NI_OPT_FLAG, NULL, "The input holds some of the ranks only: do not ask for the others",
         NI_INTO(struct ni_check, ledger.partial)},
        NI_ROW_JSON(struct ni_check, "check"),
        {"quiet", 'q', NI_OPT_FLAG, NULL, "The verdict line only", NI_INTO(struct ni_check, quiet)},
        {"all", 0, NI_OPT_FLAG, NULL, "All communicators in the table, however many", NI_INTO(struct ni_check, all)},
        {0}},
    .more = "The last line is COMPLETE or INCOMPLETE: what, how many and where.",
    .exits = {{"0", "complete"}, {"1", "could not run"}, {"2", "incomplete"}},
    .examples = {{"logs/", "the logs of a job: is everything there?"},
                 {"--quiet --expect AllReduce=40000 logs/", "one line for a script; so many must be there"},
                 {"--partial 'logs/node-17-*'", "the logs of one node"}}};

static void judge_expect(struct ni_check *c) {
  const struct ni_tally *t = &c->ledger.funcs;
  for (size_t i = 0; i < c->n_expect; i++) {
    uint64_t have = 0, want = c->expect[i].count;
    for (size_t k = 0; k < t->n; k++)
      if (strcmp(t->item[k].name, c->expect[i].func) == 0) have = t->item[k].count;
    if (have != want)
      ni_ledger_problem(&c->ledger, NI_PROBLEM_EXPECT, have > want ? have - want : want - have, "%s: %" PRIu64 " of %" PRIu64,
                        c->expect[i].func, have, want);
  }
}

static void free_check(struct ni_check *c) {
  for (size_t i = 0; i < c->n_expect; i++) free(c->expect[i].func);
  free(c->expect);
  ni_ledger_free(&c->ledger);
  ni_files_free(&c->files);
  ni_runs_free(&c->runs);
  ni_inputs_free(&c->inputs);
}

int ni_check_run(int argc, char **argv) {
  struct ni_check c = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_words_parse(&ni_check_command, argc, argv, &c, &done), e;
  if (done) goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&c.inputs, argv[0], &c.files, &c.runs);
  if (e == -ENOENT) goto out;
  if (e == 0) ni_ledger_runs(&c.ledger, &c.runs, &c.files);
  c.progress.mode = ni_inputs_progress(&c.inputs, c.quiet);
  if (e == 0) e = ni_ledger_read(&c.ledger, &c.files, ni_scan_jobs(), &c.progress);
  if (e == 0) e = ni_ledger_judge(&c.ledger);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
    goto out;
  }
  judge_expect(&c);
  if (c.json) ni_check_print_json(&c);
  else ni_check_print(&c);
  code = ni_ledger_complete(&c.ledger) ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
out:
  free_check(&c);
  return code;
}
