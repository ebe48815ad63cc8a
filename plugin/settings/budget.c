#include "budget.h"

#include "format/events.h"

#define STANDARD_LEVEL 2

uint32_t ni_budget_kinds(uint32_t kinds, int level) {
  if (level >= 1)
    kinds &= ~(NI_KINDS(NI_EVENT_STEPS) | NI_KINDS(NI_EVENT_PROXY_STEP) | NI_KINDS(NI_EVENT_NET) | NI_KINDS(NI_EVENT_PROXY_CTRL));
  if (level >= STANDARD_LEVEL) kinds &= NI_KINDS_STANDARD;
  if (level >= 3) kinds &= ~NI_KINDS(NI_EVENT_KERNEL_CH);
  return kinds;
}

uint64_t ni_budget_share(const struct ni_budget_window *w) {
  return w->elapsed_ns ? (uint64_t)((double)w->callback_ns / (double)w->elapsed_ns * 100000.0 + 0.5) : 0;
}

/* The next level up to max that changes something; the same if there is none. */
static int lower(int level, int max, uint32_t kinds) {
  for (int i = level + 1; i <= max; i++)
    if (ni_budget_kinds(kinds, i) != ni_budget_kinds(kinds, level)) return i;
  return level;
}

static int higher(int level, uint32_t kinds) {
  for (int i = level - 1; i >= 0; i--)
    if (ni_budget_kinds(kinds, i) != ni_budget_kinds(kinds, level)) return i;
  return 0;
}

enum ni_budget_step ni_budget_judge(struct ni_budget *b, uint32_t kinds, const struct ni_budget_window *w) {
  uint64_t share = ni_budget_share(w), all = w->started ? w->started : w->dropped;
  int costly = share > b->limit, dropping = w->dropped && w->dropped * 100000 > b->limit * all;
  if (b->wait == 0) b->wait = NI_BUDGET_CALM;
  if (b->since_up < UINT32_MAX) b->since_up++;
  if (costly || dropping) {
    int to = lower(b->level, costly ? NI_BUDGET_LEVELS - 1 : STANDARD_LEVEL, kinds);
    b->calm = 0;
    if (to == b->level) {
      int said = b->at_end;
      b->at_end = 1;
      return said ? NI_BUDGET_KEEP : NI_BUDGET_NO_LOWER;
    }
    if (b->went_up && b->since_up <= b->wait) b->wait = b->wait < NI_BUDGET_CALM_MAX / 2 ? 2 * b->wait : NI_BUDGET_CALM_MAX;
    else if (b->went_up) b->wait = NI_BUDGET_CALM; /* the step up had lasted */
    b->went_up = 0;
    b->level = to;
    return costly ? NI_BUDGET_DOWN_COST : NI_BUDGET_DOWN_DROPS;
  }
  b->at_end = 0;
  b->calm = share * 2 <= b->limit && !w->dropped ? b->calm + 1 : 0;
  if (b->level == 0 || b->calm < b->wait) return NI_BUDGET_KEEP;
  int to = higher(b->level, kinds), same = ni_budget_kinds(kinds, to) == ni_budget_kinds(kinds, b->level);
  b->level = to;
  b->calm = 0;
  if (same) return NI_BUDGET_KEEP; /* less is asked for by now, and all of it is on */
  b->since_up = 0;
  b->went_up = 1;
  return NI_BUDGET_UP;
}
