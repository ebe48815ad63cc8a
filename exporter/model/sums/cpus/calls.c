#include "calls.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Fills least with the quickest rank of each class: who is not far behind that one need not be compared. */
static void find_quickest(const struct ni_blame *b, const float *usual_us, float *least) {
  for (uint32_t c = 0; c <= b->n_classes; c++)
    least[c] = INFINITY;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (is_known(b, usual_us, i) && b->rank[i].cls <= b->n_classes)
      least[b->rank[i].cls] = fminf(least[b->rank[i].cls], usual_us[i]);
}

/* How many times as long as its peers it takes; 0: as long as they do, or there are too few of them. */
static float compare_rank(const struct ni_blame *b, const float *usual_us, const float *least, uint32_t rank,
                          bool elsewhere, float *scratch) {
  const uint32_t cls = b->rank[rank].cls;
  if (!is_known(b, usual_us, rank) || cls > b->n_classes || usual_us[rank] < NI_CALLS_SLOW * least[cls])
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

bool ni_calls_are_alike(const struct ni_blame *b, const float *usual_us, uint32_t rank, float *scratch) {
  if (!is_known(b, usual_us, rank))
    return false;
  const size_t n = fill_peers(b, usual_us, rank, true, scratch);
  if (n < PEERS_MIN)
    return false;
  const float middle = ni_blame_quantile(scratch, n, 0.5);
  return fabsf(usual_us[rank] - middle) <= NI_CALLS_ALIKE * middle;
}

bool ni_calls_are_usual(const struct ni_blame *b, const float *usual_us, uint32_t rank, float *scratch) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (is_known(b, usual_us, i) && ni_blame_host(b, i) != ni_blame_host(b, rank))
      scratch[n++] = usual_us[i];
  const bool is_told = is_known(b, usual_us, rank) && n >= PEERS_MIN;
  return is_told && usual_us[rank] < NI_CALLS_SLOW * ni_blame_quantile(scratch, n, 0.5);
}

/* Ranks of a host, and those of them that are slow. */
struct host_calls {
  uint32_t ranks, slow;
  bool is_slow; /* as a whole */
};

static void count_slow(const struct ni_blame *b, const float *usual_us, const float *times,
                       struct host_calls *host) {
  for (uint32_t h = 0; h < b->s->n_hosts; h++)
    host[h].ranks = host[h].slow = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!is_known(b, usual_us, i))
      continue;
    host[ni_blame_host(b, i)].ranks++;
    host[ni_blame_host(b, i)].slow += times[i] > 0;
  }
}

static void find_slow_hosts(const struct ni_blame *b, struct host_calls *host) {
  for (uint32_t h = 0; h < b->s->n_hosts; h++) {
    const bool are_most = (float)host[h].slow >= NI_CAUSE_OF_HOST * (float)host[h].ranks;
    host[h].is_slow = host[h].ranks >= HOST_RANKS && are_most;
  }
}

/* Of hosts that are not slow as a whole one rank alone can be, also beside the others there. */
static void compare_single_ranks(const struct ni_blame *b, const float *usual_us, const float *least,
                                 struct host_calls *host, float *times, float *scratch) {
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (!host[ni_blame_host(b, i)].is_slow)
      times[i] = compare_rank(b, usual_us, least, i, false, scratch);
  count_slow(b, usual_us, times, host);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct host_calls *x = &host[ni_blame_host(b, i)];
    if (!x->is_slow && x->slow != 1)
      times[i] = 0;
  }
}

int ni_calls_compare(const struct ni_blame *b, float *usual_us, float *times) {
  float *scratch = malloc((b->n_ranks + find_most_bins(b) + 1) * sizeof *scratch);
  float *least = malloc((b->n_classes + 1) * sizeof *least);
  struct host_calls *host = calloc(b->s->n_hosts + 1, sizeof *host);
  const bool had_room = scratch && least && host;
  if (had_room) {
    for (uint32_t i = 0; i < b->n_ranks; i++)
      usual_us[i] = b->rank[i].judged ? measure_usual(b, i, scratch) : NAN;
    find_quickest(b, usual_us, least);
    for (uint32_t i = 0; i < b->n_ranks; i++)
      times[i] = compare_rank(b, usual_us, least, i, true, scratch);
    count_slow(b, usual_us, times, host);
    find_slow_hosts(b, host);
    compare_single_ranks(b, usual_us, least, host, times, scratch);
  }
  free(scratch);
  free(least);
  free(host);
  return had_room ? 0 : -ENOMEM;
}

int ni_calls_tell(const struct ni_blame *b, struct ni_summary *s) {
  float *usual_us = malloc((b->n_ranks + 1) * sizeof *usual_us);
  float *times = malloc((b->n_ranks + 1) * sizeof *times);
  const int e = usual_us && times ? ni_calls_compare(b, usual_us, times) : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (times[i] > 0)
      s->process[b->rank[i].process].calls = times[i];
  free(usual_us);
  free(times);
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
  uint32_t known, busy;
  float times; /* sum of how many times as long, of the busy ones */
};

/* Adds the rank's bins. */
static void count_busy(const struct ni_blame *b, const float *usual_us, uint32_t rank, struct busy_ranks *x) {
  for (uint32_t k = 0; is_known(b, usual_us, rank) && k < b->bins; k++) {
    const struct ni_blame_cell *c = ni_blame_cell_at(b, rank, k);
    if (!c || !(c->call_us > 0))
      continue;
    const float times = c->call_us / usual_us[rank];
    x[k].known++;
    if (times < NI_CALLS_BUSY)
      continue;
    x[k].busy++;
    x[k].times += times;
  }
}

/* The bins in which a host is busy. */
struct busy_host {
  bool *at;
  uint32_t bins, spells;
  float times; /* mean of the bins: from call to call so many times as long */
};

/* Most of the host's ranks are busy in the bin, and few of all others are. */
static bool is_busy_alone(const struct busy_ranks *here, const struct busy_ranks *all) {
  const uint32_t elsewhere = all->known - here->known, busy_elsewhere = all->busy - here->busy;
  const bool is_host =
      here->known >= HOST_RANKS && (float)here->busy >= NI_CAUSE_OF_HOST * (float)here->known;
  return is_host && elsewhere > 0 && (float)busy_elsewhere <= BUSY_ELSEWHERE * (float)elsewhere;
}

/* Ranks of another host pause in this bin, or did in the one before: who waits for them calls late, too. */
static bool is_waiting(const struct ni_blame *b, const struct ni_causes *out, uint32_t host, uint32_t bin) {
  for (uint32_t i = 0; i < out->n; i++) {
    const struct ni_cause *c = &out->item[i];
    const bool is_here = c->level == NI_LEVEL_HOST ? c->of == host
        : c->level == NI_LEVEL_RANK                ? ni_blame_host(b, c->of) == host
                                                   : false;
    if (c->links || !c->at || is_here)
      continue;
    if (ni_cause_is_active(c, bin) || (bin && ni_cause_is_active(c, bin - 1)))
      return true;
  }
  return false;
}

/*
 * Stages wait for each other, and a CPU that has launched as far ahead as it may calls when its GPU goes on.
 * So beside a host whose CPU is slow all the time no other one is busy.
 */
static bool waits_for_slow_cpu(const struct ni_blame *b, const struct ni_causes *out) {
  for (uint32_t i = 0; i < out->n; i++)
    if (b->stages && (out->item[i].launch || out->item[i].calls > 0) && !out->item[i].at)
      return true;
  return false;
}

/* all, here: by bin, of all ranks; scratch. */
static int find_busy_bins(const struct ni_blame *b, const struct ni_causes *out, const float *usual_us,
                          uint32_t host, const struct busy_ranks *all, struct busy_ranks *here,
                          struct busy_host *x) {
  *x = (struct busy_host){.at = calloc(b->bins + 1, sizeof *x->at)};
  if (!x->at)
    return -ENOMEM;
  memset(here, 0, b->bins * sizeof *here);
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (ni_blame_host(b, i) == host)
      count_busy(b, usual_us, i, here);
  for (uint32_t k = 1; k < b->bins; k++) {
    if (!is_busy_alone(&here[k], &all[k]) || is_waiting(b, out, host, k))
      continue;
    x->at[k] = true;
    x->bins++;
    x->spells += !x->at[k - 1];
    x->times += here[k].times / (float)here[k].busy;
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
  struct busy_ranks *all = calloc(2 * (size_t)b->bins + 1, sizeof *all);
  int e = usual_us && scratch && all ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    usual_us[i] = b->rank[i].judged ? measure_usual(b, i, scratch) : NAN;
    count_busy(b, usual_us, i, all);
  }
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts && !waits_for_slow_cpu(b, out); h++) {
    struct busy_host x;
    e = find_busy_bins(b, out, usual_us, h, all, all + b->bins, &x);
    const float part = (float)x.bins / (float)b->bins;
    const bool is_busy = x.bins >= BUSY_BINS && part >= BUSY_PART && part <= NI_CAUSE_NOW_AND_THEN;
    if (e == 0 && is_busy)
      e = add_busy_host(b, usual_us, h, &x, out);
    free(x.at);
  }
  free(usual_us);
  free(scratch);
  free(all);
  return e;
}
