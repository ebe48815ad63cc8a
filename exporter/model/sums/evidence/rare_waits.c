#include "rare_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/order.h"

/* Of the longest wait in an operation: a second rank that is as late as that may be to blame as well. */
#define ONE_OF_SEVERAL 0.5
#define WAITED_TOO 0.5 /* of a wait: a rank that waited for so long itself, shortly before, did not pause */
#define SHORTLY_BEFORE 2.0 /* times as long as the wait: that is how far back is looked */

struct wait {
  int64_t at_us; /* the late rank's start */
  uint64_t sn;
  double us;
  uint32_t comm, group, process;
  bool several;
};

struct wait_search {
  const struct ni_summary *s;
  struct wait *wait; /* by time */
  size_t n;
  uint32_t *own_comm;    /* by process: where it has the most operations; UINT32_MAX: nowhere */
  struct ni_pausing *of; /* by process */
};

static NI_ORDER_BY(by_operation, struct wait, group, comm, sn, at_us, process);
static NI_ORDER_BY(by_time, struct wait, at_us, comm, sn, process);

static bool is_same_operation(const struct wait *x, const struct wait *y) {
  return x->group == y->group && x->comm == y->comm && x->sn == y->sn;
}

/* Keeps the longest wait of each operation. */
static void keep_longest_waits(struct wait_search *w) {
  size_t n = 0;
  for (size_t from = 0, to; from < w->n; from = to) {
    const struct wait *x = &w->wait[from];
    size_t longest = from;
    for (to = from; to < w->n && is_same_operation(&w->wait[to], x); to++)
      if (w->wait[to].us > w->wait[longest].us)
        longest = to;
    struct wait kept = w->wait[longest];
    for (size_t i = from; i < to; i++)
      kept.several |= i != longest && w->wait[i].us >= ONE_OF_SEVERAL * kept.us;
    w->wait[n++] = kept;
  }
  w->n = n;
}

static int gather_waits(struct wait_search *w) {
  const struct ni_summary *s = w->s;
  w->wait = malloc((s->n_outliers + 1) * sizeof *w->wait);
  w->own_comm = malloc((s->n_processes + 1) * sizeof *w->own_comm);
  w->of = calloc(s->n_processes + 1, sizeof *w->of);
  uint64_t *most = calloc(s->n_processes + 1, sizeof *most);
  const bool has_comms = w->own_comm && most;
  const bool ok = w->wait && w->of && has_comms;
  for (size_t i = 0; ok && i < s->n_outliers; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    if (o->kind == NI_OUTLIER_LATE && o->lost_us >= NI_RARE_WAIT_US)
      w->wait[w->n++] = (struct wait){o->time_us, o->sn, o->lost_us, o->comm, o->group, o->process, false};
  }
  for (size_t i = 0; ok && i < s->n_processes; i++)
    w->own_comm[i] = UINT32_MAX;
  for (size_t i = 0; ok && i < s->n_seats; i++) {
    const struct ni_seat *x = &s->seat[i];
    if (x->met <= most[x->process])
      continue;
    most[x->process] = x->met;
    w->own_comm[x->process] = x->comm;
  }
  free(most);
  return ok ? 0 : -ENOMEM;
}

struct seat_key {
  uint32_t comm, process;
};
static NI_FIRST_FROM(find_first_seat, struct ni_seat, struct seat_key, NI_BY(x, &from, comm, process) < 0);

static bool is_in_comm(const struct ni_summary *s, uint32_t comm, uint32_t process) {
  const size_t i = find_first_seat(s->seat, s->n_seats, (struct seat_key){comm, process});
  return i < s->n_seats && s->seat[i].comm == comm && s->seat[i].process == process;
}

/* Its rank waited for another one shortly before. */
static bool is_passed_on(const struct wait_search *w, size_t at) {
  const struct wait *x = &w->wait[at];
  for (size_t i = at; i-- > 0 && (double)(x->at_us - w->wait[i].at_us) <= SHORTLY_BEFORE * x->us;) {
    const struct wait *y = &w->wait[i];
    if (y->process != x->process && y->us >= WAITED_TOO * x->us && is_in_comm(w->s, y->comm, x->process))
      return true;
  }
  return false;
}

static bool is_rare(const struct wait_search *w, const struct ni_pausing *x) {
  for (size_t i = 0; i < w->s->n_seats; i++)
    if (w->s->seat[i].process == x->process && w->s->seat[i].comm == x->comm)
      return x->times <= NI_RARE_SHARE * (double)w->s->seat[i].met;
  return false;
}

int ni_find_rare_waits(const struct ni_summary *s, struct ni_pausing *out) {
  struct wait_search w = {.s = s};
  int e = gather_waits(&w);
  double next = 0;
  *out = (struct ni_pausing){.process = UINT32_MAX};
  if (e == 0 && w.n) {
    qsort(w.wait, w.n, sizeof *w.wait, by_operation);
    keep_longest_waits(&w);
    qsort(w.wait, w.n, sizeof *w.wait, by_time);
  }
  for (size_t i = 0; e == 0 && i < w.n; i++) {
    const struct wait *x = &w.wait[i];
    if (x->several || x->comm != w.own_comm[x->process] || is_passed_on(&w, i))
      continue;
    struct ni_pausing *p = &w.of[x->process];
    p->process = x->process;
    p->comm = x->comm;
    p->times++;
    p->us += x->us;
  }
  for (size_t i = 0; e == 0 && i < s->n_processes; i++) {
    if (w.of[i].us > out->us) {
      next = out->us;
      *out = w.of[i];
    } else if (w.of[i].us > next)
      next = w.of[i].us;
  }
  const bool enough = out->times >= NI_RARE_MIN && out->us >= NI_RARE_TIMES * next &&
      out->us * s->one_in >= NI_RARE_OF_RUN * (double)(s->last_us - s->first_us);
  if (e == 0 && !(enough && is_rare(&w, out)))
    out->process = UINT32_MAX;
  free(w.wait);
  free(w.own_comm);
  free(w.of);
  return e;
}
