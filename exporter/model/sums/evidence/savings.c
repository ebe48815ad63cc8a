#include "savings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A program has a barrier where it begins and one where it ends. With more, groups wait for each other. */
enum { JOINS_MIN = 3 };
#define SAVINGS_TOGETHER 0.01 /* of the run: groups end together if no further from each other, */
#define SAVINGS_BEGIN 0.05    /* and begin together so: a host whose CPU is slow takes longer to load */

struct comm_reach { /* whether a communicator has ranks of the group, and others; neither if it does little */
  bool inside, outside;
};

static struct comm_reach *find_reach(const struct ni_summary *s, uint32_t group) {
  struct comm_reach *reach = calloc(s->n_comms + 1, sizeof *reach);
  bool *inside = calloc(s->n_processes + 1, sizeof *inside);
  const bool has_room = reach && inside;
  for (size_t i = 0; has_room && i < s->n_seats; i++)
    inside[s->seat[i].process] |= s->seat[i].comm == group;
  for (size_t i = 0; has_room && i < s->n_seats; i++) {
    const struct ni_seat *x = &s->seat[i];
    if (s->comm[x->comm].operations < JOINS_MIN)
      continue;
    reach[x->comm].inside |= inside[x->process];
    reach[x->comm].outside |= !inside[x->process];
  }
  free(inside);
  if (has_room)
    return reach;
  free(reach);
  return NULL;
}

static double count_saving(const struct ni_summary *s, const struct comm_reach *reach, uint32_t group,
                           double waited_us) {
  const int64_t together = (int64_t)(SAVINGS_TOGETHER * (double)(s->last_us - s->first_us));
  const int64_t begin_together = (int64_t)(SAVINGS_BEGIN * (double)(s->last_us - s->first_us));
  const struct ni_comm_row *g = &s->comm[group];
  int64_t first_end = INT64_MAX, last_end = INT64_MIN;
  for (uint32_t i = 0; i < s->n_comms; i++) {
    const struct ni_comm_row *x = &s->comm[i];
    if (reach[i].inside && reach[i].outside)
      return NAN;
    if (!reach[i].outside)
      continue;
    if (llabs(x->first_us - g->first_us) > begin_together)
      return NAN;
    first_end = x->last_us < first_end ? x->last_us : first_end;
    last_end = x->last_us > last_end ? x->last_us : last_end;
  }
  if (last_end == INT64_MIN) /* it is the only group */
    return waited_us;
  if (llabs(g->last_us - first_end) <= together && llabs(g->last_us - last_end) <= together)
    return NAN;
  return fmin(waited_us, fmax(0, (double)(g->last_us - last_end)));
}

int ni_savings_find(const struct ni_summary *s, uint32_t comm, double waited_us, double *out) {
  *out = NAN;
  if (!s->steps_differ || s->job.runs > 1)
    return 0;
  struct comm_reach *reach = find_reach(s, comm);
  if (!reach)
    return -ENOMEM;
  *out = count_saving(s, reach, comm, waited_us);
  free(reach);
  return 0;
}

bool ni_savings_is_waited_lost(const struct ni_summary *s, uint32_t process, uint32_t comm) {
  bool has_messages = false;
  uint32_t comms = 0;
  for (size_t i = 0; i < s->n_seats; i++) {
    if (s->seat[i].process != process)
      continue;
    comms++;
    has_messages |= !s->seat[i].met;
  }
  const bool has_all = !has_messages && !s->process[process].may_wait_unseen;
  const bool computes_beside = comms == 1 && s->comm[comm].one_host < 0;
  return !s->steps_differ && s->job.runs <= 1 && has_all && !computes_beside;
}
