#include "rolled_waits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/reading/long_waits.h"
#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"
#include "seats.h"

/* Of a seat or a process, from each step on: operations as long as that, and their time by the histogram. */
struct long_sums {
  uint64_t n[NI_LONG_STEPS];
  double us[NI_LONG_STEPS];
};

/* The least of a communicator, and the least of those elsewhere than where that one is. */
struct least_pair {
  uint64_t n, next_n;
  uint32_t of;
};

struct rolled_search {
  const struct ni_summary *s;
  struct long_sums *seat;    /* collectives in which all do the same */
  struct long_sums *process; /* all that its log counts */
  struct ni_process_span *span;
  uint32_t *joined; /* of a process: the first one of those it works with, directly or not */
  double *x;        /* scratch: processes */
};

static void add_steps(struct long_sums *to, const struct ni_long_waits *x) {
  uint64_t n = 0;
  double us = 0;
  for (unsigned i = NI_LONG_STEPS; i-- > 0;) {
    n += x->n[i];
    us += (double)x->n[i] * ni_long_waits_middle_us(i);
    to->n[i] += n;
    to->us[i] += us;
  }
}

static int begin_search(struct rolled_search *w) {
  const struct ni_summary *s = w->s;
  w->seat = calloc(s->n_seats + 1, sizeof *w->seat);
  w->process = calloc(s->n_processes + 1, sizeof *w->process);
  w->span = malloc((s->n_processes + 1) * sizeof *w->span);
  w->joined = malloc((s->n_processes + 1) * sizeof *w->joined);
  w->x = malloc((s->n_processes + 1) * sizeof *w->x);
  const bool has_sums = w->seat && w->process && w->x;
  if (!has_sums || !w->span || !w->joined)
    return -ENOMEM;
  ni_disjoint_begin(w->joined, s->n_processes);
  ni_seats_find_spans(s, w->span);
  uint32_t first = 0;
  for (size_t i = 0; i < s->n_seats; i++) {
    const struct ni_seat *x = &s->seat[i];
    add_steps(&w->seat[i], &s->long_waits[i].alike);
    add_steps(&w->process[x->process], &s->long_waits[i].alike);
    add_steps(&w->process[x->process], &s->long_waits[i].rest);
    if (i == 0 || s->seat[i - 1].comm != x->comm)
      first = x->process;
    ni_disjoint_join(w->joined, x->process, first);
  }
  return 0;
}

static void end_search(struct rolled_search *w) {
  free(w->seat);
  free(w->process);
  free(w->span);
  free(w->joined);
  free(w->x);
}

/* So many operations of the communicator at most are not in the roll-ups of one of its ranks. */
static uint64_t count_missing(const struct ni_summary *s, size_t from, size_t to) {
  uint64_t most = 0, least = UINT64_MAX, unknown = 0;
  for (size_t i = from; i < to; i++) {
    const struct ni_long_waits *x = &s->long_waits[i].alike;
    most = x->count > most ? x->count : most;
    least = x->count < least ? x->count : least;
    unknown = x->unknown > unknown ? x->unknown : unknown;
  }
  return most - least + unknown;
}

/* by_host: others are those of other hosts. */
static struct least_pair find_least(const struct rolled_search *w, size_t from, size_t to, unsigned step,
                                    bool by_host) {
  const struct ni_summary *s = w->s;
  struct least_pair least = {UINT64_MAX, UINT64_MAX, UINT32_MAX};
  for (size_t i = from; i < to; i++) {
    const uint64_t n = w->seat[i].n[step];
    const uint32_t of = by_host ? s->process[s->seat[i].process].host : s->seat[i].process;
    if (of == least.of) {
      least.n = n < least.n ? n : least.n;
    } else if (n < least.n) {
      least.next_n = least.n;
      least.n = n;
      least.of = of;
    } else if (n < least.next_n)
      least.next_n = n;
  }
  return least;
}

static int by_number(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static bool is_other(const struct rolled_search *w, uint32_t i, uint32_t process, bool by_host) {
  const struct ni_process *of = w->s->process;
  const bool is_same = by_host ? of[i].host == of[process].host : i == process;
  return !is_same && ni_disjoint_root(w->joined, i) == ni_disjoint_root(w->joined, process);
}

/* All others wait for who pauses, sooner or later. Who does not may be whom the process waited for. */
static bool have_all_waited(const struct rolled_search *w, uint32_t process, unsigned step, bool by_host,
                            uint64_t times) {
  const double least = (double)w->process[process].n[step] + NI_ROLLED_OWN * (double)times;
  for (uint32_t i = 0; i < w->s->n_processes; i++)
    if (is_other(w, i, process, by_host) && (double)w->process[i].n[step] < least)
      return false;
  return true;
}

/*
 * What the run loses: what those waited that work with the process, beyond what it did. Of these the lower
 * quartile counts, since some have work left meanwhile. But no more than the next one in the communicator.
 */
static double find_waited(const struct rolled_search *w, size_t seat, unsigned step, bool by_host) {
  const struct ni_summary *s = w->s;
  const uint32_t process = s->seat[seat].process, comm = s->seat[seat].comm;
  double next = INFINITY;
  size_t n = 0, from = seat;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (is_other(w, i, process, by_host))
      w->x[n++] = w->process[i].us[step] - w->process[process].us[step];
  while (from > 0 && s->seat[from - 1].comm == comm)
    from--;
  for (size_t i = from; i < s->n_seats && s->seat[i].comm == comm; i++)
    if (is_other(w, s->seat[i].process, process, by_host))
      next = fmin(next, w->seat[i].us[step] - w->seat[seat].us[step]);
  qsort(w->x, n, sizeof *w->x, by_number);
  return n ? fmin(next, w->x[(n - 1) / 4]) : 0;
}

/*
 * How many more long operations the one in the middle has than the one with the fewest: what is no chance
 * lies further away.
 */
static uint64_t find_spread(const struct rolled_search *w, size_t from, size_t to, unsigned step,
                            uint32_t but, bool by_host) {
  const struct ni_summary *s = w->s;
  size_t n = 0;
  for (size_t i = from; i < to; i++) {
    const uint32_t process = s->seat[i].process;
    if ((by_host ? s->process[process].host : process) != but)
      w->x[n++] = (double)w->seat[i].n[step];
  }
  qsort(w->x, n, sizeof *w->x, by_number);
  return n ? (uint64_t)(w->x[(n - 1) / 2] - w->x[0]) : 0;
}

/* Whether a seat's process pauses, by the length that shows most of it; false: no length does. */
static bool judge_seat(const struct rolled_search *w, size_t from, size_t to, size_t seat, bool by_host,
                       const struct least_pair *least, uint64_t missing, struct ni_rolled_pause *out) {
  const struct ni_summary *s = w->s;
  const uint32_t process = s->seat[seat].process;
  const uint64_t operations = s->long_waits[seat].alike.count;
  const uint32_t me = by_host ? s->process[process].host : process;
  bool found = false;
  for (unsigned k = 0; k < NI_LONG_STEPS && !found; k++) {
    const uint64_t others = least[k].of == me ? least[k].next_n : least[k].n;
    const uint64_t own = w->seat[seat].n[k];
    if (others == UINT64_MAX || others <= own)
      continue;
    const uint64_t times = others - own;
    const double edge_us = ni_long_waits_edge_us(k);
    const bool are_enough =
        times >= NI_ROLLED_MIN || (times >= NI_ROLLED_LONG_MIN && edge_us >= NI_ROLLED_LONG_US);
    const bool are_rare = (double)times <= NI_ROLLED_SHARE * (double)operations;
    const bool waits_itself = (double)w->process[process].n[k] > NI_ROLLED_OWN * (double)times;
    if (!are_enough || !are_rare || waits_itself || 4 * missing > times)
      continue;
    const double spread = (double)find_spread(w, from, to, k, me, by_host);
    if (spread > NI_ROLLED_APART * (double)times || !have_all_waited(w, process, k, by_host, times))
      continue;
    const double run_us = (double)(w->span[process].last_us - w->span[process].first_us);
    const double cost_us = find_waited(w, seat, k, by_host);
    found = cost_us >= NI_ROLLED_OF_RUN * run_us;
    if (found)
      *out = (struct ni_rolled_pause){.host = by_host,
                                      .of = me,
                                      .comm = s->seat[seat].comm,
                                      .times = times,
                                      .operations = operations,
                                      .least_us = edge_us,
                                      .cost_us = cost_us,
                                      .run_us = run_us};
  }
  return found;
}

/* best: by process; cost 0: it does not pause. */
static void judge_comm(const struct rolled_search *w, size_t from, size_t to, bool by_host,
                       struct ni_rolled_pause *best) {
  const struct ni_summary *s = w->s;
  const uint64_t missing = count_missing(s, from, to);
  struct least_pair least[NI_LONG_STEPS];
  for (unsigned k = 0; k < NI_LONG_STEPS; k++)
    least[k] = find_least(w, from, to, k, by_host);
  for (size_t i = from; i < to; i++) {
    const struct ni_process *p = &s->process[s->seat[i].process];
    struct ni_rolled_pause x;
    struct ni_rolled_pause *known = &best[s->seat[i].process];
    if (p->ranks > 1 || p->may_wait_unseen || !s->long_waits[i].alike.count)
      continue;
    if (judge_seat(w, from, to, i, by_host, least, missing, &x) && x.cost_us > known->cost_us)
      *known = x;
  }
}

static void judge_comms(const struct rolled_search *w, bool by_host, struct ni_rolled_pause *best) {
  const struct ni_summary *s = w->s;
  for (size_t from = 0, to; from < s->n_seats; from = to) {
    for (to = from; to < s->n_seats && s->seat[to].comm == s->seat[from].comm; to++) {}
    if (to - from > 1)
      judge_comm(w, from, to, by_host, best);
  }
}

static int by_cost(const void *a, const void *b) {
  const struct ni_rolled_pause *x = a, *y = b;
  if (x->cost_us != y->cost_us)
    return x->cost_us > y->cost_us ? -1 : 1;
  return x->of < y->of ? -1 : x->of > y->of;
}

/* Hosts most of whose ranks pause, by the one of them that costs most: the others wait for it. */
static void append_hosts(const struct rolled_search *w, const struct ni_rolled_pause *of_process,
                         struct ni_rolled_pauses *out) {
  const struct ni_summary *s = w->s;
  for (uint32_t h = 0; h < s->n_hosts && s->n_hosts > 1; h++) {
    uint32_t there = 0, pausing = 0;
    struct ni_rolled_pause x = {0};
    for (uint32_t i = 0; i < s->n_processes; i++) {
      if (s->process[i].host != h)
        continue;
      there++;
      pausing += of_process[i].cost_us > 0;
      if (of_process[i].cost_us > x.cost_us)
        x = of_process[i];
    }
    if (pausing >= 2 && pausing >= NI_ROLLED_OF_HOST * there)
      out->item[out->n++] = x;
  }
}

static bool has_host(const struct ni_rolled_pauses *x, uint32_t host) {
  for (size_t i = 0; i < x->n; i++)
    if (x->item[i].host && x->item[i].of == host)
      return true;
  return false;
}

/* Whoever has records of collectives has roll-ups of them. */
static bool has_all(const struct ni_summary *s) {
  for (size_t i = 0; s->long_waits && i < s->n_seats; i++)
    if (s->seat[i].met && !s->long_waits[i].alike.count)
      return false;
  return s->long_waits;
}

int ni_find_rolled_pauses(const struct ni_summary *s, struct ni_rolled_pauses *out) {
  struct rolled_search w = {.s = s};
  *out = (struct ni_rolled_pauses){.known = has_all(s)};
  if (!s->long_waits)
    return 0;
  out->item = calloc(s->n_processes + s->n_hosts + 1, sizeof *out->item);
  struct ni_rolled_pause *of_process = calloc(s->n_processes + 1, sizeof *of_process);
  int e = out->item && of_process ? begin_search(&w) : -ENOMEM;
  if (e == 0) {
    judge_comms(&w, true, of_process);
    append_hosts(&w, of_process, out);
    for (size_t i = 0; i < s->n_processes; i++)
      of_process[i] = (struct ni_rolled_pause){0};
    judge_comms(&w, false, of_process);
    for (uint32_t i = 0; i < s->n_processes; i++)
      if (of_process[i].cost_us > 0 && !has_host(out, s->process[i].host))
        out->item[out->n++] = of_process[i];
    qsort(out->item, out->n, sizeof *out->item, by_cost);
  }
  end_search(&w);
  free(of_process);
  return e;
}

void ni_rolled_pauses_free(struct ni_rolled_pauses *x) { free(x->item); }
