#include "host_paces.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "causes.h"
#include "exporter/base/mix.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/ranks/quantile.h"

enum {
  PEERS_MIN = 4, /* ranks with a pace: of fewer nobody knows what is usual */
  HOST_RANKS = 2 /* of fewer nobody knows whether it is the host or the rank */
};

/* A pace of a rank. */
struct paced {
  uint64_t what; /* function, and kind of the communicator */
  uint64_t ops, firsts;
  int32_t size;
  uint32_t run, rank, at;
  float us, first_us;
  float usual_us, usual_first_us; /* 0: not compared */
};

static NI_ORDER_BY(by_pace, struct paced, run, what, size, us, rank, at);
static NI_ORDER_BY(by_rank, struct paced, rank, size, what, at);

/* How much longer a rank takes. */
struct rank_pace {
  double longer;          /* as a share; NAN: not known */
  double own_us, lost_us; /* in all */
  double later_us;        /* with what lies before batches, for which GPUs wait for CPUs */
  uint32_t sizes;
  bool at_all_sizes;
};

/* Nothing that is not in the logs lies between two neighbours on the communicator. */
static bool is_told(const struct ni_blame *b, const struct ni_process *p, const struct ni_comm_row *c) {
  const bool is_all_there = !p->may_wait_unseen || c->neighbours;
  return p->ranks <= 1 && is_all_there && !b->messages_left_out;
}

static size_t gather_paces(const struct ni_blame *b, struct paced *x) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    for (uint32_t k = 0; k < o->n_paces; k++) {
      const struct ni_blame_pace *pace = &o->pace[k];
      const struct ni_comm_row *c = &b->s->comm[pace->comm];
      const uint64_t kind = (uint64_t)c->role << 8 | (uint64_t)c->type;
      if (!is_told(b, &b->s->process[o->process], c))
        continue;
      x[n++] = (struct paced){.what = ni_mix(pace->function + kind),
                              .ops = pace->ops,
                              .firsts = pace->firsts,
                              .size = pace->size,
                              .run = o->run,
                              .rank = i,
                              .at = k,
                              .us = pace->us,
                              .first_us = pace->first_us};
    }
  }
  return n;
}

static bool is_same_pace(const struct paced *a, const struct paced *b) {
  return a->run == b->run && a->what == b->what && a->size == b->size;
}

/* x[from, to): one pace, quickest first. */
static bool is_on_several_hosts(const struct ni_blame *b, const struct paced *x, size_t from, size_t to) {
  for (size_t i = from + 1; i < to; i++)
    if (ni_blame_host(b, x[i].rank) != ni_blame_host(b, x[from].rank))
      return true;
  return false;
}

/* Before the first operations of batches. */
static void fill_usual_first(const struct ni_blame *b, struct paced *x, size_t from, size_t to,
                             float *scratch) {
  size_t n = 0, elsewhere = 0;
  uint32_t host = 0;
  for (size_t i = from; i < to; i++) {
    if (!x[i].firsts)
      continue;
    if (n == 0)
      host = ni_blame_host(b, x[i].rank);
    elsewhere += ni_blame_host(b, x[i].rank) != host;
    scratch[n++] = x[i].first_us;
  }
  const float usual = n >= PEERS_MIN && elsewhere ? ni_blame_quantile(scratch, n, NI_CAUSE_BASELINE) : 0;
  for (size_t i = from; i < to; i++)
    x[i].usual_first_us = x[i].firsts ? usual : 0;
}

/* scratch: n. */
static void fill_usual(const struct ni_blame *b, struct paced *x, size_t n, float *scratch) {
  qsort(x, n, sizeof *x, by_pace);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && is_same_pace(&x[from], &x[to]); to++) {}
    if (to - from < PEERS_MIN || !is_on_several_hosts(b, x, from, to))
      continue;
    const float usual = x[from + (size_t)(NI_CAUSE_BASELINE * (double)(to - from - 1) + 0.5)].us;
    for (size_t i = from; i < to; i++)
      x[i].usual_us = usual;
    fill_usual_first(b, x, from, to, scratch);
  }
}

/* By how much x[from, to) take longer, as a share of what is usual; 0: nothing is known. */
static double sum_up_longer(const struct paced *x, size_t from, size_t to) {
  double us = 0, usual = 0;
  for (size_t i = from; i < to; i++) {
    us += (double)x[i].ops * (x[i].usual_us > 0 ? x[i].us : 0);
    usual += (double)x[i].ops * x[i].usual_us;
  }
  return usual > 0 ? us / usual - 1 : 0;
}

static double measure_later(const struct paced *x) {
  const uint64_t firsts = x->usual_first_us > 0 ? x->firsts : 0;
  return (double)(x->ops - firsts) * (x->us - x->usual_us) +
      (double)firsts * (x->first_us - x->usual_first_us);
}

/* x[from, to): paces of one rank, by size. */
static struct rank_pace compare_rank(struct paced *x, size_t from, size_t to) {
  struct rank_pace out = {.longer = NAN};
  size_t n = from;
  for (size_t i = from; i < to; i++)
    if (x[i].usual_us > 0) {
      out.own_us += (double)x[i].ops * x[i].us;
      out.lost_us += (double)x[i].ops * (x[i].us - x[i].usual_us);
      out.later_us += measure_later(&x[i]);
      x[n++] = x[i];
    }
  out.sizes = (uint32_t)(n - from);
  if (out.sizes == 0)
    return out;
  const size_t third = (n - from) / 3;
  const bool are_several = out.sizes >= NI_PACE_SIZES && x[n - 1].size - x[from].size >= NI_PACE_RANGE;
  out.longer = sum_up_longer(x, from, n);
  out.at_all_sizes = are_several && sum_up_longer(x, from, from + third) >= NI_PACE_OF_ALL * out.longer &&
      sum_up_longer(x, n - third, n) >= NI_PACE_OF_ALL * out.longer;
  return out;
}

static int compare_ranks(const struct ni_blame *b, struct rank_pace *of) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    n += b->rank[i].n_paces;
    of[i] = (struct rank_pace){.longer = NAN};
  }
  struct paced *x = malloc((n + 1) * sizeof *x);
  float *scratch = malloc((n + 1) * sizeof *scratch);
  if (!x || !scratch) {
    free(x);
    free(scratch);
    return -ENOMEM;
  }
  n = gather_paces(b, x);
  fill_usual(b, x, n, scratch);
  free(scratch);
  qsort(x, n, sizeof *x, by_rank);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && x[to].rank == x[from].rank; to++) {}
    of[x[from].rank] = compare_rank(x, from, to);
  }
  free(x);
  return 0;
}

static NI_ORDER_OF(by_number, double);

/* Of ranks of other hosts in the run: the middle, and how far those that are not slow lie apart. */
struct others {
  double middle, apart;
  double later_us; /* the middle */
  size_t n;
};

static struct others measure_others(const struct ni_blame *b, const struct rank_pace *of, uint32_t host,
                                    uint32_t run, double *scratch) {
  struct others x = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (ni_blame_host(b, i) != host && b->rank[i].run == run && !isnan(of[i].longer))
      scratch[x.n++] = of[i].later_us;
  if (x.n == 0)
    return x;
  qsort(scratch, x.n, sizeof *scratch, by_number);
  x.later_us = scratch[(x.n - 1) / 2];
  x.n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (ni_blame_host(b, i) != host && b->rank[i].run == run && !isnan(of[i].longer))
      scratch[x.n++] = of[i].longer;
  qsort(scratch, x.n, sizeof *scratch, by_number);
  const double low = scratch[(size_t)(NI_CAUSE_SPREAD_LOW * (double)(x.n - 1) + 0.5)];
  const double high = scratch[(size_t)(NI_CAUSE_SPREAD_HIGH * (double)(x.n - 1) + 0.5)];
  x.apart = (high - low) / (double)NI_CAUSE_SPREAD;
  x.middle = scratch[(x.n - 1) / 2];
  return x;
}

static bool has_messages(const struct ni_blame_rank *o) {
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind != NI_BLAME_COLL)
      return true;
  return false;
}

/* Ranks of a host in one run. */
struct host_pace {
  uint32_t known, slow, sizes;
  double longer, most, lost_us; /* longer, lost_us: sums over the slow ones */
  double own_us, later_us;      /* of all that are known */
  bool in_stage;
};

static struct host_pace sum_up_host(const struct ni_blame *b, const struct rank_pace *of, uint32_t host,
                                    uint32_t run) {
  struct host_pace h = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const bool is_here = ni_blame_host(b, i) == host && b->rank[i].run == run;
    if (!is_here || isnan(of[i].longer))
      continue;
    const bool in_stage = has_messages(&b->rank[i]);
    h.known++;
    h.own_us += of[i].own_us;
    h.later_us += of[i].later_us;
    h.in_stage |= in_stage;
    if (of[i].longer < (in_stage ? NI_PACE_SLOW_STAGE : NI_PACE_SLOW) || !of[i].at_all_sizes)
      continue;
    h.slow++;
    h.sizes = of[i].sizes;
    h.longer += of[i].longer;
    h.most = fmax(h.most, of[i].longer);
    h.lost_us += of[i].lost_us;
  }
  return h;
}

/* Communicators of the host that have paces. */
static uint32_t count_groups(const struct ni_blame *b, uint32_t host, bool *is_seen) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; ni_blame_host(b, i) == host && k < b->rank[i].n_paces; k++) {
      const uint32_t comm = b->rank[i].pace[k].comm;
      n += !is_seen[comm];
      is_seen[comm] = true;
    }
  return n;
}

/* As one run has it: the one in which it is slow, or its last. */
static void tell_host(const struct ni_blame *b, const struct rank_pace *of, uint32_t host, uint32_t run,
                      double *scratch, struct ni_summary *s) {
  const struct host_pace h = sum_up_host(b, of, host, run);
  struct ni_paced *x = &s->host[host].paced;
  if (h.known == 0 || x->times > 0)
    return;
  const struct others others = measure_others(b, of, host, run, scratch);
  const bool can_be_later = others.n && !h.in_stage; /* stages begin a batch in other ways */
  x->own_us = h.own_us / h.known;
  x->later_us = can_be_later ? h.later_us / h.known - others.later_us : 0;
  const bool are_most = h.slow >= HOST_RANKS && h.slow >= (double)NI_CAUSE_OF_HOST * h.known;
  if (!are_most || others.n < HOST_RANKS)
    return;
  const double longer = h.longer / h.slow, beyond = longer - others.middle;
  const bool is_apart =
      beyond >= NI_PACE_APART * others.apart && beyond >= (h.in_stage ? NI_PACE_SLOW_STAGE : NI_PACE_SLOW);
  if (h.most > (double)NI_CAUSE_OF_HOST_MOST * longer || !is_apart)
    return;
  x->times = (1 + longer) / (1 + others.middle);
  x->lost_us = h.lost_us / h.slow * beyond / longer;
  x->sizes = h.sizes;
  x->in_stage = h.in_stage;
}

int ni_paces_tell(const struct ni_blame *b, struct ni_summary *s) {
  struct rank_pace *of = malloc((b->n_ranks + 1) * sizeof *of);
  double *scratch = malloc((b->n_ranks + 1) * sizeof *scratch);
  bool *is_seen = calloc(s->n_comms + 1, sizeof *is_seen);
  uint32_t last_run = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    last_run = b->rank[i].run > last_run ? b->rank[i].run : last_run;
  int e = of && scratch && is_seen ? compare_ranks(b, of) : -ENOMEM;
  for (uint32_t h = 0; e == 0 && h < s->n_hosts; h++) {
    for (uint32_t run = 0; run <= last_run; run++)
      tell_host(b, of, h, run, scratch, s);
    s->host[h].paced.groups = count_groups(b, h, is_seen);
  }
  free(is_seen);
  free(of);
  free(scratch);
  return e;
}
