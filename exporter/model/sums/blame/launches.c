#include "launches.h"

#include "alike.h"
#include "causes.h"
#include "exporter/model/sums/ranks/quantile.h"

/* Of a step, in which the GPU was idle and what came next began as soon as it was launched. */
static float launched_us(const struct ni_blame_rank *o) { return (float)(o->late_idle_us / o->n_steps); }

bool ni_launches_stand_out(const struct ni_blame *b, uint32_t rank, float *scratch) {
  const uint32_t host = ni_blame_host(b, rank);
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && ni_blame_host(b, i) != host) scratch[n++] = launched_us(&b->rank[i]);
  for (uint32_t i = 0; n < 2 && i < b->n_ranks; i++)
    if (b->rank[i].judged && i != rank) scratch[n++] = launched_us(&b->rank[i]);
  if (n < 2) return true;
  const float middle = ni_blame_quantile(scratch, n, 0.5);
  const float low = scratch[(size_t)(0.1 * (double)(n - 1) + 0.5)],
              high = scratch[(size_t)(0.9 * (double)(n - 1) + 0.5)];
  return launched_us(&b->rank[rank]) - middle >=
         NI_CAUSE_LAUNCH_APART * (high - low) / 2.56f; /* 2.56 standard deviations */
}

bool ni_launches_pace(const struct ni_blame *b, uint32_t rank, float *scratch) {
  const struct ni_blame_rank *o = &b->rank[rank];
  return o->late_idle_us * 2 > o->idle_us && !ni_launches_stand_out(b, rank, scratch);
}

bool ni_launches_late(const struct ni_blame_rank *o, float usual) {
  return o->judged && o->idle_us > 0 && (float)(o->late_idle_us / o->idle_us) >= usual + NI_CAUSE_LAUNCHED;
}

float ni_launches_beyond(const struct ni_blame *b, const struct ni_blame_rank *o, float launched, bool idle,
                         float *scratch, struct ni_launches_of *of) {
  size_t alike = 0, n = 0;
  for (uint32_t k = 0; k < b->n_ranks; k++)
    alike += b->rank[k].cls == o->cls && b->rank[k].judged && !ni_launches_late(&b->rank[k], launched);
  for (uint32_t k = 0; k < b->n_ranks; k++)
    if (b->rank[k].judged && !ni_launches_late(&b->rank[k], launched) && (!alike || b->rank[k].cls == o->cls))
      scratch[n++] = (float)((idle ? b->rank[k].idle_us : b->rank[k].own_us) / b->rank[k].n_steps);
  of->usual = ni_blame_quantile(scratch, n, alike ? 0.25 : 0.5);
  of->others = (uint32_t)n;
  of->has_like = alike > 0;
  float beyond = (float)((idle ? o->idle_us : o->own_us) / o->n_steps) - of->usual;
  return n && beyond >= NI_CAUSE_LAUNCH_OWN * of->usual ? beyond : 0;
}
