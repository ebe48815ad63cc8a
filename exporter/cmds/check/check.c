/*
 * nccl-inspector check: the command line of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/cli/command.h"
#include "exporter/cmds/result.h"
#include "exporter/index/atlas.h"
#include "exporter/model/ledger/judge.h"
#include "ends.h"
#include "ni_box.h"
#include "print.h"

struct check {
  struct ni_inputs inputs;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_expect {
    char *func;
    uint64_t count;
  } *expect;
  size_t n_expect, cap_expect;
  bool json, quiet, all;
  const char *box_dir;
  struct ni_atlas_options index;
  struct ni_progress progress;
  struct ni_ledger ledger;
  struct ni_clocks clocks;
};

/* "name=count" */
static int parse_expected(const struct ni_opt *o, void *into, const char *arg) {
  struct check *c = into;
  const char *eq = strrchr(arg, '=');
  char *end;
  const bool has_name = eq && eq > arg;
  if (!has_name || eq[1] < '0' || eq[1] > '9')
    return -EINVAL;
  errno = 0;
  unsigned long long n = strtoull(eq + 1, &end, 10);
  if (errno || *end)
    return -EINVAL;
  if (!ni_array_room(c->expect, c->n_expect, c->cap_expect))
    return -ENOMEM;
  c->expect[c->n_expect] = (struct ni_expect){strndup(arg, (size_t)(eq - arg)), n};
  return c->expect[c->n_expect].func ? (void)c->n_expect++, 0 : -ENOMEM;
}

const struct ni_command ni_check_command = {
    .name = "check",
    .need = NI_NEED_AFTER,
    .purpose = "are these logs complete and sound? losses by cause, a verdict",
    .about = "Are these logs complete and sound? Totals, losses by cause, and a verdict.",
    .run = ni_check_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_LOGS(struct check, 1),
            NI_ROWS_INDEX(struct check),
            {"expect", 0, NI_OPT_TAKE, "FUNC=N",
             "Exactly N operations of FUNC in the whole input; repeatable", .take = parse_expected,
             .want = "FUNCTION=NUMBER with a number from 0 on, such as --expect AllReduce=40000"},
            {"partial", 0, NI_OPT_FLAG, NULL,
             "The input holds some of the ranks only: do not ask for the others",
             NI_INTO(struct check, ledger.partial)},
            NI_ROW_BOX_DIR(struct check),
            NI_ROW_JSON(struct check, "check"),
            {"quiet", 'q', NI_OPT_FLAG, NULL, "The verdict line only", NI_INTO(struct check, quiet)},
            {"all", 0, NI_OPT_FLAG, NULL, "All communicators in the table, however many",
             NI_INTO(struct check, all)},
            {0}},
    .more = "The last line is COMPLETE or INCOMPLETE: what, how many and where.",
    .exits = {{"0", "complete"}, {"1", "could not run"}, {"2", "incomplete"}},
    .examples = {{"logs/", "the logs of a job: is everything there?"},
                 {"--quiet --expect AllReduce=40000 logs/", "one line for a script; so many must be there"},
                 {"--partial 'logs/node-17-*'", "the logs of one node"}}};

static void judge_expected(struct check *c) {
  const struct ni_tally *t = &c->ledger.funcs;
  for (size_t i = 0; i < c->n_expect; i++) {
    uint64_t have = 0, want = c->expect[i].count;
    for (size_t k = 0; k < t->n; k++)
      if (strcmp(t->item[k].name, c->expect[i].func) == 0)
        have = t->item[k].count;
    if (have != want)
      ni_ledger_problem(&c->ledger, NI_PROBLEM_EXPECT, have > want ? have - want : want - have,
                        "%s: %" PRIu64 ", expected %" PRIu64, c->expect[i].func, have, want);
  }
}

static const struct ni_atlas_options *index_options; /* of the command line */

static int read_in_one_process(struct ni_ledger *c, struct ni_files *files, const struct ni_inputs *in,
                               struct ni_progress *progress) {
  struct ni_atlas *atlas;
  int e = ni_atlas_open(&atlas, "nccl-inspector check", files, index_options, false);
  if (e == 0)
    e = ni_atlas_read_ledger(atlas, c, files, ni_scan_jobs(), progress);
  ni_atlas_close(atlas, e == 0, NULL);
  return e;
}

int (*ni_check_work)(struct ni_ledger *c, struct ni_files *files, const struct ni_inputs *in,
                     struct ni_progress *progress) = read_in_one_process;

int ni_check_run(int argc, char **argv) {
  struct check c = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_words_parse(&ni_check_command, argc, argv, &c, &done), e;
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&c.inputs, argv[0], &c.files, &c.runs);
  if (e == -ENOENT)
    goto out;
  if (e == 0)
    ni_ledger_runs(&c.ledger, &c.runs, &c.files);
  c.progress.mode = ni_inputs_progress(&c.inputs, c.quiet);
  index_options = &c.index;
  if (e == 0)
    e = ni_check_work(&c.ledger, &c.files, &c.inputs, &c.progress);
  if (e == 0)
    e = ni_ledger_judge(&c.ledger);
  if (e == 0)
    e = ni_clocks_of_ledger(&c.clocks, &c.ledger);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
    goto out;
  }
  judge_expected(&c);
  ni_check_tell_ends(&c.ledger, c.box_dir);
  if (c.json)
    ni_check_json(&c.ledger, &c.clocks);
  else if (c.quiet)
    ni_check_verdict(&c.ledger);
  else
    ni_check_print(&c.ledger, &c.clocks, c.all);
  code = ni_ledger_complete(&c.ledger) ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
out:
  for (size_t i = 0; i < c.n_expect; i++)
    free(c.expect[i].func);
  free(c.expect);
  ni_clocks_free(&c.clocks);
  ni_ledger_free(&c.ledger);
  ni_files_free(&c.files);
  ni_runs_free(&c.runs);
  ni_inputs_free(&c.inputs);
  return code;
}
