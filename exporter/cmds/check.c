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

enum { OPT_EXPECT = NI_OPT_OWN, OPT_PARTIAL, OPT_ALL };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct ni_check *c = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&c->inputs, arg) < 0 ? ENOMEM : 0;
    case NI_OPT_JSON: c->json = true; return 0;
    case 'q': c->quiet = true; return 0;
    case OPT_PARTIAL: c->ledger.partial = true; return 0;
    case OPT_ALL: c->all = true; return 0;
    case OPT_EXPECT: {
      if (!ni_array_room(c->expect, c->n_expect, c->cap_expect)) return ENOMEM;
      int e = ni_parse_expect(arg, &c->expect[c->n_expect].func, &c->expect[c->n_expect].count);
      if (e == -ENOMEM) return ENOMEM;
      if (e < 0)
        argp_error(state, "--expect=%s: want FUNCTION=NUMBER with a number from 0 on, such as --expect AllReduce=40000",
                   arg);
      c->n_expect++;
      return 0;
    }
    case ARGP_KEY_END:
      if (c->inputs.n == 0) argp_error(state, "which logs? give a directory, files or a pattern");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

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
  ni_inputs_free(&c->inputs);
}

int ni_check_run(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"input-dir", NI_OPT_INPUT_DIR, "DIR", 0, "Logs to read: a directory, a file or a pattern (also as plain argument)", 0},
      {"expect", OPT_EXPECT, "FUNC=N", 0, "Exactly N operations of FUNC in the whole input; repeatable", 0},
      {"partial", OPT_PARTIAL, NULL, 0, "The input holds some of the ranks only: do not ask for the others", 0},
      {"json", NI_OPT_JSON, NULL, 0, "JSON on standard output (schema nccl-inspector-check-1)", 0},
      {"quiet", 'q', NULL, 0, "The verdict line only", 0},
      {"all", OPT_ALL, NULL, 0, "All communicators in the table, however many", 0},
      {0}};
  static const struct argp argp = {
      options, parse_option, "DIR|FILE|PATTERN...",
      "Are these logs complete and sound? Totals, losses by cause, and a verdict."
      "\vThe last line is COMPLETE (exit code 0) or INCOMPLETE: what, how many and where (exit code 2). Exit code 1: "
      "could not run; 64: wrong usage.", NULL, NULL, NULL};
  struct ni_check c = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_options_parse(&argp, argc, argv, &c, &done), e;
  if (done) goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&c.inputs, argv[0], &c.files);
  if (e == -ENOENT) goto out;
  if (c.quiet) c.progress.mode = NI_PROGRESS_NONE;
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
