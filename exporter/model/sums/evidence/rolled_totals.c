#include "rolled_totals.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"
#include "seats.h"

/* These quantiles are both of peers that are not late, and so many standard deviations from each other. */
#define SPREAD_LOW 0.1
#define SPREAD_HIGH 0.4
#define SPREAD 1.03
enum { SPREAD_MIN = 7 }; /* peers; of fewer all of their range counts */

struct total {        /* of a process */
  double alike, rest; /* operations */
  double us;          /* in all of them */
  bool told, named, has_messages;
};

struct totals_judge {
  const struct ni_summary *s;
  struct total *of;
  struct ni_process_span *span; /* by process */
  uint32_t *team;               /* by process: the same where they work with each other */
  size_t *first;                /* of a communicator, its first seat; one more at the end */
  uint32_t *seat_of;            /* seats by process */
  size_t *first_of;             /* of a process in seat_of; one more at the end */
  bool *peer;                   /* scratch: processes */
  double *x;                    /* scratch: processes */
};

static NI_ORDER_OF(by_number, double);

static int begin_totals(struct totals_judge *w) {
  const struct ni_summary *s = w->s;
  w->of = calloc(s->n_processes + 1, sizeof *w->of);
  w->span = malloc((s->n_processes + 1) * sizeof *w->span);
  w->team = malloc((s->n_processes + 1) * sizeof *w->team);
  w->first = calloc(s->n_comms + 2, sizeof *w->first);
  w->seat_of = malloc((s->n_seats + 1) * sizeof *w->seat_of);
  w->first_of = calloc(s->n_processes + 2, sizeof *w->first_of);
  w->peer = calloc(s->n_processes + 1, sizeof *w->peer);
  w->x = malloc((s->n_processes + 1) * sizeof *w->x);
  const bool has_index = w->first && w->seat_of && w->first_of && w->team;
  const bool has_sums = w->of && w->span && w->x;
  return has_sums && has_index && w->peer ? 0 : -ENOMEM;
}

static void end_totals(struct totals_judge *w) {
  free(w->of);
  free(w->span);
  free(w->team);
  free(w->first);
  free(w->seat_of);
  free(w->first_of);
  free(w->peer);
  free(w->x);
}

static void sum_up_totals(struct totals_judge *w) {
  const struct ni_summary *s = w->s;
  ni_disjoint_begin(w->team, s->n_processes);
  ni_seats_find_spans(s, w->span);
  for (uint32_t i = 0; i < s->n_processes && !s->long_waits; i++) {
    w->of[i].alike = (double)s->process[i].records;
    w->of[i].us = s->process[i].exec_ns / 1e3 * s->one_in;
  }
  for (size_t i = 0; i < s->n_seats; i++) {
    const struct ni_seat *x = &s->seat[i];
    const struct ni_comm_row *c = &s->comm[x->comm];
    struct total *t = &w->of[x->process];
    w->first[x->comm + 1]++;
    w->first_of[x->process + 2]++;
    if (s->long_waits) {
      const struct ni_seat_waits *y = &s->long_waits[i];
      t->alike += (double)y->alike.count;
      t->rest += (double)y->rest.count;
      t->us += (double)(y->alike.ns + y->rest.ns) / 1e3;
    }
    if (i > 0 && s->seat[i - 1].comm == x->comm && c->operations >= NI_TOTALS_JOIN)
      ni_disjoint_join(w->team, x->process, s->seat[i - 1].process);
  }
  for (size_t i = 0; i < s->n_comms; i++)
    w->first[i + 1] += w->first[i];
  for (size_t i = 0; i < s->n_processes; i++)
    w->first_of[i + 2] += w->first_of[i + 1];
  for (uint32_t i = 0; i < s->n_seats; i++)
    w->seat_of[w->first_of[s->seat[i].process + 1]++] = i;
  for (size_t i = 0; i < s->n_pairs; i++) {
    const struct ni_p2p_pair *x = &s->pair[i];
    if (x->from_process < s->n_processes)
      w->of[x->from_process].has_messages = true;
    if (x->to_process < s->n_processes)
      w->of[x->to_process].has_messages = true;
  }
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    const bool is_one_rank = p->ranks <= 1 && !p->may_wait_unseen;
    w->of[i].told = is_one_rank && w->of[i].alike + w->of[i].rest >= NI_TOTALS_OPERATIONS;
  }
}

static bool are_as_many(double a, double b) { return fabs(a - b) <= NI_TOTALS_ALIKE * fmax(a, b); }

static bool have_same_work(const struct totals_judge *w, uint32_t a, uint32_t b) {
  const struct total *x = &w->of[a], *y = &w->of[b];
  return are_as_many(x->alike, y->alike) && are_as_many(x->rest, y->rest);
}

/* In a pipeline ranks of one stage share such a communicator. */
static bool is_of_stage(const struct ni_comm_row *c) {
  return c->role == NI_ROLE_TP || c->role == NI_ROLE_DP || c->role == NI_ROLE_EP;
}

/* Marks the peers of a process in w->peer. */
static void mark_peers(struct totals_judge *w, uint32_t process) {
  const struct ni_summary *s = w->s;
  const bool has_messages = w->of[process].has_messages;
  for (uint32_t i = 0; i < s->n_processes; i++)
    w->peer[i] = !has_messages;
  for (size_t k = w->first_of[process]; has_messages && k < w->first_of[process + 1]; k++) {
    const uint32_t comm = s->seat[w->seat_of[k]].comm;
    for (size_t i = w->first[comm]; i < w->first[comm + 1] && is_of_stage(&s->comm[comm]); i++)
      w->peer[s->seat[i].process] = true;
  }
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const bool is_near = i != process && ni_disjoint_root(w->team, i) == ni_disjoint_root(w->team, process);
    w->peer[i] &= is_near && w->of[i].told && have_same_work(w, process, i);
  }
}

/* What peers spend in operations, for as many as the process has. */
struct peer_totals {
  size_t n;
  double least, low, apart;
};

static struct peer_totals sum_up_peers(struct totals_judge *w, uint32_t process, bool of_other_hosts) {
  const struct ni_summary *s = w->s;
  const struct total *me = &w->of[process];
  struct peer_totals t = {0};
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct total *x = &w->of[i];
    const bool is_left_out = of_other_hosts && (x->named || s->process[i].host == s->process[process].host);
    if (w->peer[i] && !is_left_out)
      w->x[t.n++] = x->us * (me->alike + me->rest) / (x->alike + x->rest);
  }
  if (t.n < NI_TOTALS_PEERS)
    return t;
  qsort(w->x, t.n, sizeof *w->x, by_number);
  t.least = w->x[0];
  t.low = w->x[(t.n - 1) / 4];
  double low = w->x[0], high = w->x[t.n - 1];
  if (t.n >= SPREAD_MIN) {
    low = w->x[(size_t)(SPREAD_LOW * (double)(t.n - 1) + 0.5)];
    high = w->x[(size_t)(SPREAD_HIGH * (double)(t.n - 1) + 0.5)];
  }
  t.apart = (high - low) / SPREAD;
  return t;
}

static double get_run_us(const struct totals_judge *w, uint32_t process) {
  return (double)(w->span[process].last_us - w->span[process].first_us);
}

static void find_late_ranks(struct totals_judge *w, struct ni_rolled_totals *out) {
  for (uint32_t i = 0; i < w->s->n_processes; i++) {
    struct total *me = &w->of[i];
    out->less_us[i] = NAN;
    if (!me->told)
      continue;
    mark_peers(w, i);
    const struct peer_totals t = sum_up_peers(w, i, false);
    if (t.n < NI_TOTALS_PEERS)
      continue;
    const double less_us = out->less_us[i] = t.low - me->us;
    const bool is_much =
        less_us >= NI_TOTALS_OF_RUN * get_run_us(w, i) && less_us >= NI_TOTALS_APART * t.apart;
    if (!is_much || t.least - me->us < NI_TOTALS_ALONE * less_us)
      continue;
    me->named = true;
    out->item[out->n++] = (struct ni_rolled_late){
        .of = i, .peers = (uint32_t)t.n, .us = me->us, .peers_us = t.low, .run_us = get_run_us(w, i)};
  }
}

static void find_late_host(struct totals_judge *w, uint32_t host, struct ni_rolled_totals *out) {
  const struct ni_summary *s = w->s;
  struct ni_rolled_late x = {.host = true, .of = host};
  double most = 0, sum = 0;
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct total *me = &w->of[i];
    if (s->process[i].host != host || !me->told)
      continue;
    x.there++;
    mark_peers(w, i);
    const struct peer_totals t = sum_up_peers(w, i, true);
    const double less_us = t.n >= NI_TOTALS_PEERS ? t.low - me->us : 0;
    const bool is_much = less_us >= NI_TOTALS_OF_RUN * get_run_us(w, i);
    if (me->named || !is_much || less_us < NI_TOTALS_APART_HOST * t.apart || t.least < me->us)
      continue;
    x.late++;
    x.us += me->us;
    x.peers_us += t.low;
    x.peers = (uint32_t)t.n;
    x.run_us = fmax(x.run_us, get_run_us(w, i));
    sum += less_us;
    most = fmax(most, less_us);
  }
  const bool all_are_late = x.late >= 2 && x.late == x.there;
  if (!all_are_late || most * x.late > NI_TOTALS_STANDS_OUT * sum)
    return;
  x.us /= x.late;
  x.peers_us /= x.late;
  out->item[out->n++] = x;
}

static int by_less(const void *a, const void *b) {
  const struct ni_rolled_late *x = a, *y = b;
  const double one = x->peers_us - x->us, other = y->peers_us - y->us;
  if (one != other)
    return one > other ? -1 : 1;
  return x->of < y->of ? -1 : x->of > y->of;
}

int ni_find_rolled_totals(const struct ni_summary *s, struct ni_rolled_totals *out) {
  struct totals_judge w = {.s = s};
  *out = (struct ni_rolled_totals){0};
  if (s->has_left_out)
    return 0;
  out->item = calloc(s->n_processes + s->n_hosts + 1, sizeof *out->item);
  out->less_us = calloc(s->n_processes + 1, sizeof *out->less_us);
  const int e = out->item && out->less_us ? begin_totals(&w) : -ENOMEM;
  if (e == 0) {
    out->known = true;
    sum_up_totals(&w);
    find_late_ranks(&w, out);
    for (uint32_t h = 0; h < s->n_hosts && s->n_hosts > 1; h++)
      find_late_host(&w, h, out);
    qsort(out->item, out->n, sizeof *out->item, by_less);
    const double most_us = out->n ? out->item[0].peers_us - out->item[0].us : 0;
    while (out->n && out->item[out->n - 1].peers_us - out->item[out->n - 1].us < NI_TOTALS_OF_MOST * most_us)
      out->n--;
  }
  end_totals(&w);
  return e;
}

void ni_rolled_totals_free(struct ni_rolled_totals *x) {
  free(x->item);
  free(x->less_us);
}
