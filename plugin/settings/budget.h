/*
 * How far detail is stepped down so that recording stays within NCCL_INSPECTOR_MAX_OVERHEAD_PERCENT. Pure arithmetic on
 * what a window of NI_BUDGET_WINDOW_MS has cost; the caller measures, applies the level and says so in the log.
 *
 *   level 0: as asked for ─▶ 1: nothing per network transfer ─▶ 2: coll, p2p, kernelch ─▶ 3: coll, p2p
 *
 * Down by one level that changes something, at once, when the callbacks took more than the limit of one CPU, or more than
 * the limit of the operations was dropped (not below level 2: an operation without KernelCh holds its slot longer). Up
 * again by one when NI_BUDGET_CALM windows in a row cost less than half the limit and dropped nothing; each time that is
 * followed by a step down within as many windows, the wait doubles, up to NI_BUDGET_CALM_MAX.
 */
#ifndef NI_BUDGET_H
#define NI_BUDGET_H

#include <stdint.h>

#define NI_BUDGET_WINDOW_MS 2000u
#define NI_BUDGET_CALM 30u       /* windows: a minute */
#define NI_BUDGET_CALM_MAX 1800u /* an hour */
#define NI_BUDGET_LEVELS 4

struct ni_budget {
  uint64_t limit; /* thousandths of a percent */
  int level;
  uint32_t calm, wait, since_up; /* calm windows in a row; how many are wanted; windows since the last step up */
  uint8_t went_up, at_end; /* at_end: over the limit, and nothing is left to leave out */
};

struct ni_budget_window {
  uint64_t elapsed_ns, callback_ns, started, dropped;
};

enum ni_budget_step { NI_BUDGET_KEEP = 0, NI_BUDGET_DOWN_COST, NI_BUDGET_DOWN_DROPS, NI_BUDGET_UP, NI_BUDGET_NO_LOWER };

/* Kinds of event that are left of `kinds` at a level. */
uint32_t ni_budget_kinds(uint32_t kinds, int level);

/* Judges a window; changes b->level. kinds: what is asked for. NO_LOWER is said once until the limit is kept again. */
enum ni_budget_step ni_budget_judge(struct ni_budget *b, uint32_t kinds, const struct ni_budget_window *w);

/* Thousandths of a percent of one CPU. */
uint64_t ni_budget_share(const struct ni_budget_window *w);

#endif
