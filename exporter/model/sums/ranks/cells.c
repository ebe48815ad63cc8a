#include "cells.h"

#include <math.h>
#include <string.h>

/* Long ones that are not told from each other: none takes so many times as long as another. */
#define LONG_ALIKE 2.0f

void ni_cell_add_long(struct ni_blame_link_cell *l, float us, uint32_t of) {
  uint32_t *kept = l->longest_of, last = of;
  if (!of || us * LONG_ALIKE < l->longest)
    return;
  if (us > LONG_ALIKE * l->longest)
    memset(kept, 0, sizeof l->longest_of);
  l->longest = fmaxf(l->longest, us);
  for (uint32_t i = 0; i < NI_BLAME_LONG && last != kept[i]; i++)
    if (!kept[i] || last < kept[i]) {
      const uint32_t next = kept[i];
      kept[i] = last;
      last = next;
      if (!last)
        return;
    }
}

static struct ni_blame_link_cell add_link_cells(const struct ni_blame_link_cell *p,
                                                const struct ni_blame_link_cell *q) {
  const bool only_one = !p->n || !q->n;
  const unsigned fewer = p->alike < q->alike ? p->alike : q->alike, other = p->alike | q->alike;
  struct ni_blame_link_cell sum = *p;
  sum.exec += q->exec;
  sum.least += q->least;
  sum.n = p->n + q->n;
  sum.alike = only_one ? other : fewer;
  for (uint32_t i = 0; i < NI_BLAME_LONG; i++)
    ni_cell_add_long(&sum, q->longest, q->longest_of[i]);
  return sum;
}

static float join_call_times(float a, float b) {
  const bool both = a > 0 && b > 0;
  return both ? (a + b) / 2 : fmaxf(a, b);
}

void ni_blame_coarsen(struct ni_blame_rank *o) {
  uint32_t n = o->n_bins / 2;
  for (uint32_t i = 0; i < n; i++) {
    struct ni_blame_cell *a = &o->cell[2 * i], *c = a + 1;
    o->cell[i] = (struct ni_blame_cell){.start_ns = a->start_ns,
                                        .dev = a->dev + c->dev,
                                        .baseline = a->baseline + c->baseline,
                                        .burst = a->burst + c->burst,
                                        .idle = a->idle + c->idle,
                                        .late_idle = a->late_idle + c->late_idle,
                                        .exposed = a->exposed + c->exposed,
                                        .hidden = a->hidden + c->hidden,
                                        .call_us = join_call_times(a->call_us, c->call_us),
                                        .places = a->places + c->places};
    for (uint32_t k = 0; k < o->max_slots; k++) {
      struct ni_blame_link_cell *p = &o->link_cell[(size_t)2 * i * o->max_slots + k], *q = p + o->max_slots;
      o->link_cell[(size_t)i * o->max_slots + k] = add_link_cells(p, q);
    }
  }
  memset(&o->cell[n], 0, (o->n_bins - n) * sizeof *o->cell);
  memset(&o->link_cell[(size_t)n * o->max_slots], 0,
         (size_t)(o->n_bins - n) * o->max_slots * sizeof *o->link_cell);
  o->n_bins = n;
  o->bin_steps *= 2;
}
