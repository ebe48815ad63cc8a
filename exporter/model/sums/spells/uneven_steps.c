/*
 * Steps that have more to do than others. Nearly all ranks take longer in them (pauses.c), and nothing says
 * how far they are from each other. What else was found then, a network that was slow or an evaluation, is no
 * such step, nor are the first ones.
 */
#include "spells.h"

/* One in so many of all steps is one; the first ones are so many, and one in so many of all. */
enum { ONE_IN = 40, FIRST = 2, BEGIN = 40 };

static bool is_of_steps(const struct ni_cause *c) {
  return c->kind == NI_FIND_UNEVEN && c->level == NI_LEVEL_JOB;
}

/* Another cause that comes and goes is at work in this bin, or was in the one before it. */
static bool is_explained(const struct ni_blame *b, const struct ni_causes *causes, uint32_t bin) {
  for (uint32_t i = 0; i < causes->n; i++) {
    const struct ni_cause *c = &causes->item[i];
    const bool is_other = !is_of_steps(c) && ni_cause_comes_and_goes(b, c);
    if (is_other && (ni_cause_is_active(c, bin) || (bin && ni_cause_is_active(c, bin - 1))))
      return true;
  }
  return false;
}

static void settle(const struct ni_blame *b, struct ni_causes *causes, struct ni_cause *c) {
  const uint32_t first = b->bins / BEGIN + FIRST;
  c->bins_hit = 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    c->at[k] = c->at[k] && k >= first && !is_explained(b, causes, k);
    c->bins_hit += c->at[k];
  }
  c->of_run = (float)c->bins_hit / (float)b->bins;
  const bool are_few = c->bins_hit < NI_SPELLS_UNEVEN_LEAST || c->bins_hit * ONE_IN < b->bins;
  if (are_few || !ni_cause_comes_and_goes(b, c))
    ni_cause_remove(causes, c);
}

void ni_settle_uneven_steps(const struct ni_blame *b, struct ni_causes *causes) {
  for (uint32_t i = causes->n; i-- > 0;)
    if (is_of_steps(&causes->item[i]))
      settle(b, causes, &causes->item[i]);
}
