/*
 * nccl-inspector check: the command line of it.
 */
#include "exporter/model/ledger/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/cli/command.h"

enum { OPT_EXPECT = NI_OPT_OWN, OPT_PARTIAL, OPT_ALL };

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct ni_check *c = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&c->inputs, arg) < 0 ? ENOMEM : 0;
    case NI_OPT_JSON: c->json = true; return 0;
    case 'q': c->quiet = true; return 0;
    case OPT_PARTIAL: c->partial = true; return 0;
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
  struct ni_check c = {0};
  int done, code = ni_options_parse(&argp, argc, argv, &c, &done), e;
  if (done) goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&c.inputs, argv[0], &c.files);
  if (e == -ENOENT) goto out;
  if (e == 0) e = ni_check_read(&c);
  if (e == 0) e = ni_check_judge(&c);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
    goto out;
  }
  if (c.json) ni_check_print_json(&c);
  else ni_check_print(&c);
  code = ni_check_complete(&c) ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
out:
  ni_check_free(&c);
  return code;
}
