#include "calls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/blame/peer_groups.h"

enum {
  KNOWN_BINS = 5, /* a rank has to have so many, or nobody knows what is usual */
  PEERS_MIN = 2,  /* ranks elsewhere with the same work */
  HOST_RANKS = 2, /* of fewer nobody knows whether it is the host or the rank */
  BUSY_BINS = 3   /* in fewer it is chance */
};
/* Times what is idle before late launches: places that are not compared have some, too. */
#define LATE_MOST 2.0
/* The host is busy in so many of the bins, */
#define BUSY_PART 0.02f
/* in each of which so many ranks of other hosts may be as slow. */
#define BUSY_ELSEWHERE 0.25f

/* Bins of a rank, before its steps have the numbers of the job. */
static uint32_t find_most_bins(const struct ni_blame *b) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].n_bins > most)
      most = b->rank[i].n_bins;
  return most;
}

static float measure_usual(const struct ni_blame *b, uint32_t rank, float *scratch) {
  const struct ni_blame_rank *o = &b->rank[rank];
  size_t n = 0;
  for (uint32_t k = 0; k < o->n_bins; k++)
    if (o->cell[k].call_us > 0)
      scratch[n++] = o->cell[k].call_us;
  return n >= KNOWN_BINS ? ni_blame_quantile(scratch, n, 0.5) : NAN;
}

static bool is_known(const struct ni_blame *b, const float *usual_us, uint32_t rank) {
  return b->rank[rank].judged && !isnan(usual_us[rank]);
}

/* Fills scratch with what its peers take, those on its own host or elsewhere. Returns how many there are. */
static size_t fill_peers(const struct ni_blame *b, const float *usual_us, uint32_t rank, bool elsewhere,
                         float *scratch) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const bool is_peer = i != rank && is_known(b, usual_us, i) && b->rank[i].cls == b->rank[rank].cls;
    if (is_peer && (!elsewhere || ni_blame_host(b, i) != ni_blame_host(b, rank)))
      scratch[n++] = usual_us[i];
  }
  return n;
}

/* How many times as long as its peers it takes; 0: as long as they do, or there are too few of them. */
static float compare_rank(const struct ni_blame *b, const float *usual_us, uint32_t rank, bool elsewhere,
                          float *scratch) {
  if (!is_known(b, usual_us, rank) || b->rank[rank].cls == NI_BLAME_NONE)
    return 0;
  const size_t n = fill_peers(b, usual_us, rank, elsewhere, scratch);
  if (n < PEERS_MIN)
    return 0;
  const float middle = ni_blame_quantile(scratch, n, 0.5);
  const float low = scratch[(size_t)(NI_CAUSE_SPREAD_LOW * (double)(n - 1) + 0.5)];
  const float high = scratch[(size_t)(NI_CAUSE_SPREAD_HIGH * (double)(n - 1) + 0.5)];
  const float apart_us = (high - low) / NI_CAUSE_SPREAD;
  const bool is_slow = usual_us[rank] >= NI_CALLS_SLOW * middle;
  return is_slow && usual_us[rank] - middle >= NI_CALLS_APART * apart_us ? usual_us[rank] / middle : 0;
}

/* Ranks of a host, and those of them that are slow. */
struct host_calls {
  uint32_t ranks, slow;
};

static struct host_calls count_slow(const struct ni_blame *b, const float *usual_us, const float *times,
                                    uint32_t host) {
  struct host_calls x = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (ni_blame_host(b, i) != host || !is_known(b, usual_us, i))
      continue;
    x.ranks++;
    x.slow += times[i] > 0;
  }
  return x;
}

int ni_calls_compare(const struct ni_blame *b, float *usual_us, float *times) {
  float *scratch = malloc((b->n_ranks + find_most_bins(b) + 1) * sizeof *scratch);
  if (!scratch)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    usual_us[i] = b->rank[i].judged ? measure_usual(b, i, scratch) : NAN;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    times[i] = compare_rank(b, usual_us, i, true, scratch);
  for (uint32_t h = 0; h < b->s->n_hosts; h++) {
    const struct host_calls x = count_slow(b, usual_us, times, h);
    const bool is_host = x.ranks >= HOST_RANKS && (float)x.slow >= NI_CAUSE_OF_HOST * (float)x.ranks;
    for (uint32_t i = 0; i < b->n_ranks && !is_host; i++)
      if (ni_blame_host(b, i) == h)
        times[i] = compare_rank(b, usual_us, i, false, scratch);
    const bool is_one = !is_host && count_slow(b, usual_us, times, h).slow == 1;
    for (uint32_t i = 0; i < b->n_ranks && !is_host && !is_one; i++)
      if (ni_blame_host(b, i) == h)
        times[i] = 0;
  }
  free(scratch);
  return 0;
}

/* How long one operation of the rank takes, what lies before it included. */
static float measure_each(const struct ni_blame_rank *o) {
  return o->ops > 1 ? (float)(o->last_ns - o->first_ns) / 1e3f / (float)(o->ops - 1) : NAN;
}

int ni_calls_tell(const struct ni_blame *b, struct ni_summary *s) {
  float *usual_us = malloc((b->n_ranks + 1) * sizeof *usual_us);
  float *times = malloc((b->n_ranks + 1) * sizeof *times);
  float *scratch = malloc((b->n_ranks + 1) * sizeof *scratch);
  int e = usual_us && times && scratch ? ni_calls_compare(b, usual_us, times) : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    size_t n = 0;
    if (!(times[i] > 0))
      continue;
    for (uint32_t k = 0; k < b->n_ranks; k++)
      if (is_known(b, usual_us, k) && !(times[k] > 0))
        scratch[n++] = measure_each(&b->rank[k]);
    struct ni_process *p = &s->process[b->rank[i].process];
    const float others = n ? ni_blame_quantile(scratch, n, 0.5) : NAN;
    p->calls = times[i];
    p->slower = measure_each(&b->rank[i]) / others - 1;
  }
  free(usual_us);
  free(times);
  free(scratch);
  return e;
}

/*
 * Pauses of a bin, or (late) what is idle before late launches: the median over ranks of the host (here), or
 * of others.
 */
static float find_middle(const struct ni_blame *b, uint32_t host, uint32_t bin, bool here, bool late,
                         float *scratch) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const bool is_here = ni_blame_host(b, i) == host;
    const struct ni_blame_cell *c = b->rank[i].judged && is_here == here ? ni_blame_cell_at(b, i, bin) : NULL;
    if (c)
      scratch[n++] = late ? c->late_idle : c->burst;
  }
  return n ? ni_blame_quantile(scratch, n, 0.5) : 0;
}

int ni_calls_find_pauses(const struct ni_blame *b, struct ni_cause *c) {
  float *scratch = malloc((b->n_ranks + 1) * sizeof *scratch);
  double pauses_us = 0, late_us = 0;
  c->pauses_at = calloc(b->bins + 1, sizeof *c->pauses_at);
  for (uint32_t k = 0; scratch && c->pauses_at && k < b->bins; k++) {
    const float here = find_middle(b, c->of, k, true, false, scratch);
    const float longer = here - find_middle(b, c->of, k, false, false, scratch);
    c->pauses_at[k] = longer >= NI_BLAME_BURST_US;
    pauses_us += c->pauses_at[k] ? longer : 0;
    late_us += find_middle(b, c->of, k, true, true, scratch);
  }
  if (pauses_us > 0)
    c->most_us = pauses_us + LATE_MOST * late_us;
  const bool had_room = scratch && c->pauses_at;
  free(scratch);
  return had_room ? 0 : -ENOMEM;
}

/* Of a bin: ranks that are known there, and those that take far longer than they usually do. */
struct busy_ranks {
  uint32_t here, busy_here, elsewhere, busy_elsewhere;
  float times; /* sum of how many times as long, of the busy ones here */
};

static struct busy_ranks count_busy(const struct ni_blame *b, const float *usual_us, uint32_t host,
                                    uint32_t bin) {
  struct busy_ranks x = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_cell *c = is_known(b, usual_us, i) ? ni_blame_cell_at(b, i, bin) : NULL;
    if (!c || !(c->call_us > 0))
      continue;
    const bool is_busy = c->call_us >= NI_CALLS_BUSY * usual_us[i];
    if (ni_blame_host(b, i) != host) {
      x.elsewhere++;
      x.busy_elsewhere += is_busy;
      continue;
    }
    x.here++;
    x.busy_here += is_busy;
    x.times += is_busy ? c->call_us / usual_us[i] : 0;
  }
  return x;
}

/* The bins in which a host is busy. */
struct busy_host {
  bool *at;
  uint32_t bins, spells;
  float times; /* mean of the bins: from call to call so many times as long */
};

static int find_busy_bins(const struct ni_blame *b, const float *usual_us, uint32_t host,
                          struct busy_host *x) {
  *x = (struct busy_host){.at = calloc(b->bins + 1, sizeof *x->at)};
  if (!x->at)
    return -ENOMEM;
  for (uint32_t k = 1; k < b->bins; k++) {
    const struct busy_ranks n = count_busy(b, usual_us, host, k);
    const bool is_host = n.here >= HOST_RANKS && (float)n.busy_here >= NI_CAUSE_OF_HOST * (float)n.here;
    const bool is_alone = n.elsewhere > 0 && (float)n.busy_elsewhere <= BUSY_ELSEWHERE * (float)n.elsewhere;
    if (!is_host || !is_alone)
      continue;
    x->at[k] = true;
    x->bins++;
    x->spells += !x->at[k - 1];
    x->times += n.times / (float)n.busy_here;
  }
  x->times /= (float)(x->bins ? x->bins : 1);
  return 0;
}

/* Pauses of the whole host that have been found. */
static struct ni_cause *find_pauses_of_host(struct ni_causes *out, uint32_t host) {
  for (uint32_t i = 0; i < out->n; i++) {
    struct ni_cause *c = &out->item[i];
    if (c->kind == NI_FIND_PAUSES && c->level == NI_LEVEL_HOST && c->of == host && c->at)
      return c;
  }
  return NULL;
}

static int add_busy_host(const struct ni_blame *b, const float *usual_us, uint32_t host, struct busy_host *x,
                         struct ni_causes *out) {
  struct ni_cause *c = find_pauses_of_host(out, host);
  if (c) {
    for (uint32_t k = 0; k < b->bins; k++)
      c->at[k] |= x->at[k];
    c->from = 0;
    c->to = b->bins;
    c->calls = x->times;
    return 0;
  }
  c = ni_cause_add(out, NI_FIND_SLOW_HOST, NI_LEVEL_HOST, host);
  if (!c)
    return 0;
  c->to = b->bins;
  c->at = x->at;
  x->at = NULL;
  c->bins_hit = x->spells;
  c->of_run = (float)x->bins / (float)b->bins;
  c->calls = x->times;
  c->share = x->times - 1;
  c->launch = true;
  c->n_peers = b->n_ranks;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (is_known(b, usual_us, i) && ni_blame_host(b, i) == host)
      e = ni_cause_add_item(c, i);
  return e;
}

int ni_find_busy_cpus(const struct ni_blame *b, struct ni_causes *out) {
  float *usual_us = malloc((b->n_ranks + 1) * sizeof *usual_us);
  float *scratch = malloc((find_most_bins(b) + 1) * sizeof *scratch);
  int e = usual_us && scratch ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    usual_us[i] = b->rank[i].judged ? measure_usual(b, i, scratch) : NAN;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++) {
    struct busy_host x;
    e = find_busy_bins(b, usual_us, h, &x);
    const float part = (float)x.bins / (float)b->bins;
    const bool is_busy = x.bins >= BUSY_BINS && part >= BUSY_PART && part <= NI_CAUSE_NOW_AND_THEN;
    if (e == 0 && is_busy)
      e = add_busy_host(b, usual_us, h, &x, out);
    free(x.at);
  }
  free(usual_us);
  free(scratch);
  return e;
}
