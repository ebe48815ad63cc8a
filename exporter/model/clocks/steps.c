#include "steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "hosts.h"
#include "turn.h"

/* A clock that runs too fast or too slow makes this much of a long time, and that is no step. */
#define DRIFT_MOST 1e-3

/*
 * What one stream says of one host. Where two hosts alone did both operations the other one may have stepped
 * as well, by as much the other way.
 */
struct found_step {
  uint32_t host, other; /* other: ALONE where more hosts agree */
  struct ni_clock_step step, of_other;
  double sure; /* what the host measured is that much less usual than what the other one did; ns */
};

#define ALONE UINT32_MAX
/* What pairs say is compared with each other. Of more than so many, in time that grows with their square, the
 * one that measures less is believed. */
enum { PAIRS_COMPARED = 4096 };

struct operation_row { /* an operation */
  const struct ni_clocks_mark *mark;
  size_t n;
};

struct step_finding {
  struct operation_row *row; /* of the stream at hand */
  size_t n_rows, cap_rows;
  int64_t *span;  /* room for one a host */
  int64_t *usual; /* between operations of the stream, as its hosts measured it; sorted */
  size_t n_usual, cap_usual;
  int64_t least_ns; /* of a step */
  struct found_step *found;
  size_t n_found, cap_found;
};

/* What more than two hosts say first. */
static int by_certainty_and_time(const void *a, const void *b) {
  const struct found_step *x = a, *y = b;
  if ((x->other == ALONE) != (y->other == ALONE))
    return x->other == ALONE ? -1 : 1;
  return NI_BY(x, y, host, step.before_ns, step.after_ns, step.by_ns, other);
}
static NI_ORDER_BY(by_before, struct ni_clock_step, before_ns);

static bool same_stream(const struct ni_clocks_mark *a, const struct ni_clocks_mark *b) {
  return a->comm == b->comm && a->func == b->func;
}

static bool is_same_operation(const struct ni_clocks_mark *a, const struct ni_clocks_mark *b) {
  return same_stream(a, b) && a->sn == b->sn && a->bytes == b->bytes;
}

static const struct ni_clocks_mark *find_mark_of_host(const struct operation_row *r, uint32_t host) {
  size_t i;
  ni_array_search(i, r->n, r->mark[i].host < host);
  return i < r->n && r->mark[i].host == host ? &r->mark[i] : NULL;
}

/*
 * How long it was between the ends of two operations: the median of what the hosts that did both measured. Of
 * two hosts the one that measured less, if that can be. INT64_MIN: fewer than two hosts did both.
 */
static int64_t measure_between(struct step_finding *f, size_t a, size_t b) {
  size_t n = 0;
  for (size_t i = 0; i < f->row[a].n; i++) {
    const struct ni_clocks_mark *x = &f->row[a].mark[i], *y = find_mark_of_host(&f->row[b], x->host);
    if (y)
      f->span[n++] = y->end_ns - x->end_ns;
  }
  if (n < 2)
    return INT64_MIN;
  qsort(f->span, n, sizeof *f->span, ni_by_i64);
  const bool cannot_be = n == 2 && f->span[0] < -f->least_ns;
  return f->span[cannot_be ? 1 : (n - 1) / 2];
}

/*
 * By how much more than the median this host measured. 0: it did not do both, or noise and drift explain it.
 */
static int64_t measure_excess(struct step_finding *f, size_t a, size_t b, uint32_t host) {
  const struct ni_clocks_mark *x = find_mark_of_host(&f->row[a], host),
                              *y = find_mark_of_host(&f->row[b], host);
  const int64_t between = x && y ? measure_between(f, a, b) : INT64_MIN;
  if (between == INT64_MIN)
    return 0;
  const int64_t more = y->end_ns - x->end_ns - between;
  return llabs(more) > f->least_ns + (int64_t)(DRIFT_MOST * (double)llabs(between)) ? more : 0;
}

static bool is_same_step_size(int64_t a, int64_t b) {
  return llabs(a - b) <= NI_CLOCKS_STEP_NS / 2 + llabs(a) / 10;
}

/*
 * One late end of one rank looks like a step and a step back. So the operations around it have to say the
 * same.
 */
static bool step_lasts(struct step_finding *f, size_t k, uint32_t host, int64_t by) {
  return k > 0 && k + 2 < f->n_rows && is_same_step_size(by, measure_excess(f, k, k + 2, host)) &&
      is_same_step_size(by, measure_excess(f, k - 1, k + 1, host));
}

/* What all hosts measured between neighbours of the stream. Once a stream, where it is asked. */
static int gather_usual(struct step_finding *f) {
  for (size_t k = 0; k + 1 < f->n_rows; k++)
    for (size_t i = 0; i < f->row[k].n; i++) {
      const struct ni_clocks_mark *x = &f->row[k].mark[i], *y = find_mark_of_host(&f->row[k + 1], x->host);
      if (y && !ni_array_room(f->usual, f->n_usual, f->cap_usual))
        return -ENOMEM;
      if (y)
        f->usual[f->n_usual++] = y->end_ns - x->end_ns;
    }
  qsort(f->usual, f->n_usual, sizeof *f->usual, ni_by_i64);
  return 0;
}

/* The other one of the two hosts that did both operations; ALONE: there are more. */
static uint32_t find_other_of_two(const struct step_finding *f, size_t a, size_t b, uint32_t host) {
  uint32_t other = ALONE, both = 0;
  for (size_t i = 0; i < f->row[a].n; i++) {
    const uint32_t x = f->row[a].mark[i].host;
    if (x == host || !find_mark_of_host(&f->row[b], x))
      continue;
    other = x;
    both++;
  }
  return both == 1 ? other : ALONE;
}

static int add_found(struct step_finding *f, size_t k, uint32_t host, int64_t by) {
  const struct ni_clocks_mark *x = find_mark_of_host(&f->row[k], host),
                              *y = find_mark_of_host(&f->row[k + 1], host);
  struct found_step found = {.host = host,
                             .other = find_other_of_two(f, k, k + 1, host),
                             .step = {.before_ns = x->end_ns, .after_ns = y->end_ns, .by_ns = by}};
  if (found.other != ALONE) {
    const int64_t its_ns = y->end_ns - x->end_ns;
    x = find_mark_of_host(&f->row[k], found.other);
    y = find_mark_of_host(&f->row[k + 1], found.other);
    found.of_other = (struct ni_clock_step){.before_ns = x->end_ns, .after_ns = y->end_ns, .by_ns = -by};
    if (!f->n_usual && gather_usual(f) < 0)
      return -ENOMEM;
    const int64_t others_ns = y->end_ns - x->end_ns;
    found.sure = fmin((double)llabs(by), ni_clock_measure_oddness(f->usual, f->n_usual, its_ns, 1)) -
        fmin((double)llabs(by), ni_clock_measure_oddness(f->usual, f->n_usual, others_ns, 1));
  }
  if (!ni_array_room(f->found, f->n_found, f->cap_found))
    return -ENOMEM;
  f->found[f->n_found++] = found;
  return 0;
}

static int find_steps_of_stream(struct step_finding *f) {
  f->n_usual = 0;
  for (size_t k = 0; k + 1 < f->n_rows; k++) {
    const int64_t between = measure_between(f, k, k + 1);
    if (between == INT64_MIN)
      continue;
    for (size_t i = 0; i < f->row[k].n; i++) {
      const struct ni_clocks_mark *x = &f->row[k].mark[i], *y = find_mark_of_host(&f->row[k + 1], x->host);
      if (!y || llabs(y->end_ns - x->end_ns - between) < f->least_ns)
        continue;
      const int64_t by = measure_excess(f, k, k + 1, x->host);
      if (by && step_lasts(f, k, x->host, by) && add_found(f, k, x->host, by) < 0)
        return -ENOMEM;
    }
  }
  f->n_rows = 0;
  return 0;
}

/* Do both steps lie around the same moment? By the clock before the step. */
static bool steps_overlap(const struct ni_clock_step *a, const struct ni_clock_step *b) {
  const int64_t from = a->before_ns > b->before_ns ? a->before_ns : b->before_ns;
  const int64_t ends[] = {a->after_ns - a->by_ns, b->after_ns - b->by_ns},
                to = ends[0] < ends[1] ? ends[0] : ends[1];
  return from <= to + NI_CLOCKS_STEP_NS;
}

static struct ni_clock_step *find_known_step(struct ni_host_clock *c, const struct ni_clock_step *x) {
  for (uint32_t k = 0; k < c->n_steps; k++)
    if (is_same_step_size(c->step[k].by_ns, x->by_ns) && steps_overlap(&c->step[k], x))
      return &c->step[k];
  return NULL;
}

/* It lies between the nearest operations that any stream has. */
static void join_step(struct ni_host_clock *c, const struct ni_clock_step *x) {
  struct ni_clock_step *s = find_known_step(c, x);
  if (!s && c->n_steps < NI_CLOCK_STEPS)
    c->step[c->n_steps++] = *x;
  if (s && x->before_ns > s->before_ns)
    s->before_ns = x->before_ns;
  if (s && x->after_ns < s->after_ns)
    s->after_ns = x->after_ns;
}

/* Another host says the same of x->other: then that one has stepped, and not both of them. */
static bool is_said_by_another(const struct step_finding *f, const struct found_step *x) {
  for (size_t i = 0; i < f->n_found; i++) {
    const struct found_step *y = &f->found[i];
    const bool is_of_it = y->other == x->other && y->host != x->host;
    if (is_of_it && is_same_step_size(y->of_other.by_ns, x->of_other.by_ns) &&
        steps_overlap(&y->of_other, &x->of_other))
      return true;
  }
  return false;
}

/* How sure the streams are of that host, all together. */
static double sum_sure(const struct step_finding *f, uint32_t host, uint32_t other,
                       const struct ni_clock_step *of_host) {
  double sum = 0;
  for (size_t i = 0; i < f->n_found; i++) {
    const struct found_step *y = &f->found[i];
    const bool is_of_both = y->host == host && y->other == other;
    if (is_of_both && is_same_step_size(y->step.by_ns, of_host->by_ns) && steps_overlap(&y->step, of_host))
      sum += y->sure;
  }
  return sum;
}

/* Of all that is said by pairs: it is the other host that has stepped. */
static bool do_pairs_say_other(const struct step_finding *f, const struct found_step *x) {
  return is_said_by_another(f, x) ||
      sum_sure(f, x->other, x->host, &x->of_other) > sum_sure(f, x->host, x->other, &x->step);
}

/*
 * Joins what several streams say of one step. Of two hosts that are alone in a stream the one has stepped of
 * which streams of more hosts say so, or which has others beside it that say so; else the one that the
 * streams are more sure of.
 */
static void join_found(struct step_finding *f, struct ni_host_clock *clock) {
  if (f->n_found > 1)
    qsort(f->found, f->n_found, sizeof *f->found, by_certainty_and_time);
  size_t pairs = 0;
  for (size_t i = 0; i < f->n_found; i++)
    pairs += f->found[i].other != ALONE;
  const bool may_compare = pairs <= PAIRS_COMPARED;
  for (size_t i = 0; i < f->n_found; i++) {
    const struct found_step *x = &f->found[i];
    const bool is_pair = x->other != ALONE;
    const bool is_of_other = is_pair &&
        (find_known_step(&clock[x->other], &x->of_other) || (may_compare && do_pairs_say_other(f, x)));
    if (is_of_other)
      join_step(&clock[x->other], &x->of_other);
    else
      join_step(&clock[x->host], &x->step);
  }
}

int ni_clocks_find_steps(const struct ni_clocks_mark *mark, size_t n, struct ni_host_clock *clock,
                         uint32_t n_hosts, int64_t least_ns) {
  struct step_finding f = {.least_ns = least_ns, .span = malloc((n_hosts + 1) * sizeof *f.span)};
  int e = f.span ? 0 : -ENOMEM;
  for (size_t i = 0, end; e == 0 && i < n; i = end) {
    for (end = i + 1; end < n && is_same_operation(&mark[end], &mark[i]); end++) {}
    if (i > 0 && !same_stream(&mark[i], &mark[i - 1]))
      e = find_steps_of_stream(&f);
    if (e == 0 && !ni_array_room(f.row, f.n_rows, f.cap_rows))
      e = -ENOMEM;
    if (e == 0)
      f.row[f.n_rows++] = (struct operation_row){&mark[i], end - i};
  }
  if (e == 0)
    e = find_steps_of_stream(&f);
  if (e == 0)
    join_found(&f, clock);
  for (uint32_t i = 0; e == 0 && i < n_hosts; i++)
    if (clock[i].n_steps > 1)
      qsort(clock[i].step, clock[i].n_steps, sizeof *clock[i].step, by_before);
  free(f.span);
  free(f.usual);
  free(f.row);
  free(f.found);
  return e;
}

/* Of one host's marks of a stream, which are marks[of[0..n)]. t_ns: room for n. */
static int remove_steps_of_host(struct ni_clocks_mark *mark, const size_t *of, size_t n,
                                const struct ni_host_clock *clock, int64_t *t_ns) {
  size_t turn[NI_CLOCK_STEPS];
  for (size_t i = 0; i < n; i++)
    t_ns[i] = mark[of[i]].end_ns;
  const int e = ni_clock_find_turns(clock, t_ns, n, turn);
  for (size_t i = 0; e == 0 && i < n; i++) {
    struct ni_clocks_mark *x = &mark[of[i]];
    const int64_t length = x->end_ns - x->start_ns;
    uint32_t steps = 0;
    while (steps < clock->n_steps && i >= turn[steps])
      steps++;
    x->end_ns = ni_clock_unset(clock, steps, x->end_ns);
    x->start_ns = x->end_ns - length;
  }
  return e;
}

int ni_clocks_remove_steps(struct ni_clocks_mark *mark, size_t n, const struct ni_host_clock *clock,
                           uint32_t n_hosts) {
  size_t *of = malloc((n + 1) * sizeof *of);
  int64_t *t_ns = malloc((n + 1) * sizeof *t_ns);
  int e = of && t_ns ? 0 : -ENOMEM;
  for (uint32_t host = 0; host < n_hosts; host++)
    for (size_t i = 0, end; e == 0 && clock[host].n_steps && i < n; i = end) {
      size_t of_host = 0;
      for (end = i; end < n && same_stream(&mark[end], &mark[i]); end++)
        if (mark[end].host == host)
          of[of_host++] = end;
      e = remove_steps_of_host(mark, of, of_host, &clock[host], t_ns);
    }
  free(of);
  free(t_ns);
  return e;
}
