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

/* inside: by process. NULL: no memory. */
static struct comm_reach *find_reach(const struct ni_summary *s, const bool *inside) {
  struct comm_reach *reach = calloc(s->n_comms + 1, sizeof *reach);
  for (size_t i = 0; reach && i < s->n_seats; i++) {
    const struct ni_seat *x = &s->seat[i];
    if (s->comm[x->comm].operations < JOINS_MIN)
      continue;
    reach[x->comm].inside |= inside[x->process];
    reach[x->comm].outside |= !inside[x->process];
  }
  return reach;
}

static bool is_joined(const struct ni_summary *s, const struct comm_reach *reach) {
  for (uint32_t i = 0; i < s->n_comms; i++)
    if (reach[i].inside && reach[i].outside)
      return true;
  return false;
}

/* When communicators work that have ranks of the engine, or of others alone. */
struct worked {
  int64_t first_begin, last_begin, first_end, last_end; /* first_begin INT64_MAX: there are none */
};

static struct worked find_worked(const struct ni_summary *s, const struct comm_reach *reach, bool inside) {
  struct worked w = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN};
  for (uint32_t i = 0; i < s->n_comms; i++) {
    const struct ni_comm_row *x = &s->comm[i];
    if (!(inside ? reach[i].inside : reach[i].outside))
      continue;
    w.first_begin = x->first_us < w.first_begin ? x->first_us : w.first_begin;
    w.last_begin = x->first_us > w.last_begin ? x->first_us : w.last_begin;
    w.first_end = x->last_us < w.first_end ? x->last_us : w.first_end;
    w.last_end = x->last_us > w.last_end ? x->last_us : w.last_end;
  }
  return w;
}

/* Of an engine that nothing joins with others. */
static double count_saving(const struct ni_summary *s, const struct comm_reach *reach, double lost_us) {
  const int64_t together = (int64_t)(SAVINGS_TOGETHER * (double)(s->last_us - s->first_us));
  const int64_t begin_together = (int64_t)(SAVINGS_BEGIN * (double)(s->last_us - s->first_us));
  const struct worked own = find_worked(s, reach, true), others = find_worked(s, reach, false);
  if (others.first_begin == INT64_MAX) /* it is the only one */
    return lost_us;
  const int64_t sooner = own.first_begin - others.first_begin, later = others.last_begin - own.first_begin;
  if (sooner > begin_together || later > begin_together)
    return NAN;
  const int64_t behind_first = own.last_end - others.first_end, behind_last = own.last_end - others.last_end;
  if (llabs(behind_first) <= together && llabs(behind_last) <= together)
    return NAN;
  return fmin(lost_us, fmax(0, (double)behind_last));
}

/* What the stages compute adds up to no more than the run. */
static bool take_turns(const struct ni_summary *s) {
  double own_us = 0;
  for (uint32_t i = 0; i < s->n_hosts; i++) {
    if (!(s->host[i].paced.own_us > 0))
      return false;
    own_us += s->host[i].paced.own_us * s->host[i].paced.groups;
  }
  return own_us <= (double)(s->last_us - s->first_us);
}

/* Those that communicators join with them, too. 0 or -ENOMEM. */
static int add_engine(const struct ni_summary *s, bool *inside) {
  for (bool has_grown = true; has_grown;) {
    struct comm_reach *reach = find_reach(s, inside);
    if (!reach)
      return -ENOMEM;
    has_grown = false;
    for (size_t i = 0; i < s->n_seats; i++) {
      const struct ni_seat *x = &s->seat[i];
      const bool is_new = reach[x->comm].inside && !inside[x->process];
      inside[x->process] |= is_new;
      has_grown |= is_new;
    }
    free(reach);
  }
  return 0;
}

/*
 * What those inside lost; of several stages each. inside: by process, given back; NULL: no memory. 0 or
 * -ENOMEM.
 */
static int find_saving(const struct ni_summary *s, bool *inside, double lost_us, uint32_t stages,
                       double *out) {
  struct comm_reach *reach = inside ? find_reach(s, inside) : NULL;
  int e = reach ? 0 : -ENOMEM;
  const bool of_engine = e == 0 && is_joined(s, reach);
  bool is_one_engine = true;
  if (of_engine) {
    e = add_engine(s, inside);
    for (uint32_t i = 0; i < s->n_processes; i++)
      is_one_engine &= inside[i];
  }
  if (e == 0 && !of_engine)
    *out = count_saving(s, reach, lost_us);
  else if (e == 0 && is_one_engine && take_turns(s))
    *out = lost_us * stages;
  free(reach);
  free(inside);
  return e;
}

int ni_savings_find(const struct ni_summary *s, uint32_t comm, double waited_us, double *out) {
  *out = NAN;
  if (!s->steps_differ || s->job.runs > 1)
    return 0;
  bool *inside = calloc(s->n_processes + 1, sizeof *inside);
  for (size_t i = 0; inside && i < s->n_seats; i++)
    inside[s->seat[i].process] |= s->seat[i].comm == comm;
  return find_saving(s, inside, waited_us, 1, out);
}

int ni_savings_find_of_host(const struct ni_summary *s, uint32_t host, double lost_us, double *out) {
  *out = NAN;
  if (s->job.runs > 1)
    return 0;
  bool *inside = calloc(s->n_processes + 1, sizeof *inside);
  for (uint32_t i = 0; inside && i < s->n_processes; i++)
    inside[i] = s->process[i].host == host;
  return find_saving(s, inside, lost_us, s->host[host].paced.groups, out);
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
