/*
 * Inside the scenario reader: one line's words, variables, and the open block. One thread; the parser lives
 * as long as one ni_scn_parse. Failure: ni_bad ends the program with file, line, value and what is accepted.
 */
#ifndef NI_SIM_SCENARIO_PARSER_H
#define NI_SIM_SCENARIO_PARSER_H

#include "scenario.h"

enum { NI_MAX_ARGS = 32, NI_MAX_VARS = 64 };

struct ni_arg {
  char *key, *value;
  bool used;
};

struct ni_parser_state {
  struct ni_scn *scn;
  int line;
  struct ni_arg args[NI_MAX_ARGS];
  int n_args;
  char *name; /* positional word after the verb */
  struct {
    char name[32], value[64];
    bool fixed; /* from the command line */
    bool used;
  } vars[NI_MAX_VARS];
  int n_vars;
  struct ni_step *block; /* open group or graph */
  int block_plans;
  bool block_fused;
  int loops[16], n_loops;
  char graph_names[16][32];
};

_Noreturn void ni_bad(const struct ni_parser_state *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- scenario_args.c: words of the line */
const char *ni_arg_expand(struct ni_parser_state *p, const char *value);
const char *ni_arg_text(struct ni_parser_state *p, const char *key, const char *def);
double ni_arg_num(struct ni_parser_state *p, const char *key, double def, double min, double max);
void ni_arg_set_var(struct ni_parser_state *p, const char *name, const char *value, bool fixed);
int ni_arg_find_comm(struct ni_parser_state *p, const char *name);
int ni_arg_comm(struct ni_parser_state *p);
/* "0-3,6,8-14/2"; the caller frees. */
int *ni_arg_ranks(struct ni_parser_state *p, const char *text, int *n);

/* ---- scenario_tasks.c: operations */
struct ni_step *ni_scn_add_step(struct ni_parser_state *p, enum ni_verb verb);
void ni_scn_step_keys(struct ni_parser_state *p, struct ni_step *st);
void ni_scn_coll(struct ni_parser_state *p);
void ni_scn_p2p(struct ni_parser_state *p);
void ni_scn_shifts(struct ni_parser_state *p, int from, int to);
/* Gather or Scatter: every rank sends to the root, or the root to every rank. */
void ni_scn_rooted(struct ni_parser_state *p, bool gather);
void ni_scn_ce(struct ni_parser_state *p);

#endif
