#include "causes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peer_groups.h"
#include "exporter/base/array.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/work/islands.h"

struct ni_cause *ni_cause_add(struct ni_causes *c, enum ni_finding_kind kind, enum ni_finding_level level,
                              uint32_t of) {
  if (c->n == NI_CAUSES_MAX) {
    c->left_out++;
    return NULL;
  }
  c->item[c->n] = (struct ni_cause){
      .kind = kind, .level = level, .of = of, .other = NI_BLAME_NONE, .lead = {.part = 1, .apart = 1}};
  return &c->item[c->n++];
}

static void free_cause(struct ni_cause *c) {
  free(c->item);
  free(c->unmatched);
  free(c->beside);
  free(c->at);
  free(c->pauses_at);
}

void ni_cause_remove(struct ni_causes *causes, struct ni_cause *c) {
  free_cause(c);
  memmove(c, c + 1, (size_t)(&causes->item[--causes->n] - c) * sizeof *c);
}

void ni_cause_take_delay(struct ni_cause *c, const struct ni_cause *from) {
  c->from = from->from;
  c->to = from->to;
  c->excess_us = from->excess_us;
  c->share = from->share;
  c->of_gaps = from->of_gaps;
  c->seen_us = from->seen_us;
  c->lead = from->lead;
  c->rest = from->rest;
  c->n_peers = from->n_peers;
}

static int append_index(uint32_t **list, uint32_t *n, uint32_t x) {
  size_t cap = *n;
  if (!ni_array_exact(list, &cap, *n + 1, sizeof **list))
    return -ENOMEM;
  (*list)[(*n)++] = x;
  return 0;
}

int ni_cause_add_item(struct ni_cause *c, uint32_t item) { return append_index(&c->item, &c->n_items, item); }
int ni_cause_add_unmatched(struct ni_cause *c, uint32_t link) {
  return append_index(&c->unmatched, &c->n_unmatched, link);
}
bool ni_cause_has_unmatched(const struct ni_cause *c, uint32_t link) {
  bool has = false;
  for (uint32_t i = 0; i < c->n_unmatched; i++)
    has |= c->unmatched[i] == link;
  return has;
}
int ni_cause_add_beside(struct ni_cause *c, uint32_t rank) {
  return append_index(&c->beside, &c->n_beside, rank);
}

bool ni_cause_comes_and_goes(const struct ni_blame *b, const struct ni_cause *c) {
  uint32_t n = 0;
  if (!c->links && !c->at)
    return false;
  for (uint32_t k = c->from; k < c->to && k < b->bins; k++)
    n += ni_cause_is_active(c, k);
  return n > 0 && (float)n <= NI_CAUSE_NOW_AND_THEN * (float)b->bins;
}

enum {
  LENGTHS_OF = 64, /* ranks that are asked how long a bin took */
  AROUND = 32,     /* bins on each side of a cause that say how long it is without */
  AROUND_MIN = 8,  /* at least so many of them in all, else more are asked */
  FAR_OFF = 3,     /* times their median: a bin counts for no more, since something else made it so long */
  MOVES_LESS = 5,  /* a cause that is so many times smaller moves the length of steps by little */
  QUIET_PART = 8,  /* fewer than an eighth of the bins are quiet: causes are dense */
  OUTER_PART = 6   /* a sixth of them on each side lies beyond one standard deviation from their mean */
};
/*
 * The same of what does not last: times what a quarter of them are longer than their median, or this part of
 * it. A step that something else made long is hardly one of its few steps. What lasts has its share of these.
 */
#define OFF 4
#define CLOSE 0.01f
#define CLOCK_DOUBT 0.1 /* of a cost: ranks and steps differ in what else they do */

/*
 * The first steps of a job take longer, until all is loaded and allocated: they are no measure of others.
 * They last until one takes no longer than most of the run do: a quarter of it can be first ones. Steps in
 * which a cause is at work are no measure of that: an evaluation each fourth step is a quarter as well.
 */
static uint32_t count_first_bins(const float *us, const uint8_t *causes, uint32_t bins, float *scratch) {
  size_t n = 0, all = 0;
  uint32_t first = 0;
  for (uint32_t k = 0; k < bins; k++) {
    all += !isnan(us[k]);
    if (!isnan(us[k]) && !causes[k])
      scratch[n++] = us[k];
  }
  const double most = n ? fmax(0.5, 1 - 0.25 * (double)all / (double)n) : 0;
  const float usual = n ? ni_blame_quantile(scratch, n, most) : INFINITY;
  while (first < bins && !(us[first] <= usual))
    first++;
  return first;
}

/* How long the bin took on this rank; NAN: not known. */
static float measure_bin(const struct ni_blame *b, uint32_t rank, uint32_t bin) {
  const struct ni_blame_cell *here = ni_blame_cell_at(b, rank, bin);
  const struct ni_blame_cell *next = here ? ni_blame_cell_at(b, rank, bin + 1) : NULL;
  return next ? (float)(next->start_ns - here->start_ns) / 1e3f : NAN;
}

/* Of ranks that wait for each other in each step: the median. The first and the last bins are not whole. */
static void measure_common_lengths(const struct ni_blame *b, float *us) {
  uint32_t judged = 0; /* the other ranks are of another run in the folder */
  for (uint32_t r = 0; r < b->n_ranks; r++)
    judged += b->rank[r].judged;
  const uint32_t every = judged / LENGTHS_OF + 1;
  float of[LENGTHS_OF + 1];
  for (uint32_t k = 1; k + 2 < b->bins; k++) {
    uint32_t number = 0;
    size_t n = 0;
    for (uint32_t r = 0; r < b->n_ranks && n < LENGTHS_OF; r++) {
      if (!b->rank[r].judged || number++ % every)
        continue;
      of[n] = measure_bin(b, r, k);
      n += !isnan(of[n]);
    }
    if (n)
      us[k] = ni_blame_quantile(of, n, 0.5);
  }
}

struct island_length {
  double us;
  uint32_t n;
};

/*
 * Islands do not wait for each other but where they meet. So of each step the slowest one counts, without
 * what it waits for others.
 */
static int measure_island_lengths(const struct ni_blame *b, float *us) {
  struct island_length *of = malloc((b->n_islands + 1) * sizeof *of);
  if (!of)
    return -ENOMEM;
  for (uint32_t k = 1; k + 2 < b->bins; k++) {
    memset(of, 0, b->n_islands * sizeof *of);
    for (uint32_t r = 0; r < b->n_ranks; r++) {
      const float mine = b->rank[r].judged ? measure_bin(b, r, k) : NAN;
      if (isnan(mine))
        continue;
      of[b->island[r]].us += mine - ni_islands_measure_wait(b, r, k);
      of[b->island[r]].n++;
    }
    for (uint32_t i = 0; i < b->n_islands; i++)
      us[k] = fmaxf(us[k], of[i].n ? (float)(of[i].us / of[i].n) : NAN);
  }
  free(of);
  return 0;
}

int ni_causes_bin_lengths(const struct ni_blame *b, float *us) {
  for (uint32_t k = 0; k < b->bins; k++)
    us[k] = NAN;
  if (b->island)
    return measure_island_lengths(b, us);
  measure_common_lengths(b, us);
  return 0;
}

struct clock_costs {
  const struct ni_blame *b;
  float *us;       /* of a bin */
  uint32_t first;  /* so many take longer, since the job begins */
  uint8_t *causes; /* at work there, of those that are counted by the clock */
  /* causes are at work in or beside nearly all bins: those beside them are counted as quiet ones */
  bool dense;
  float *quiet; /* scratch */
};

/* A cause is at work in this bin or in one next to it. */
static bool is_near_any_cause(const struct clock_costs *w, uint32_t bin) {
  const bool before = bin > 0 && w->causes[bin - 1];
  const bool after = bin + 1 < w->b->bins && w->causes[bin + 1];
  return w->causes[bin] || (!w->dense && (before || after));
}

/* Steps that have more to do are what the job does: others are measured by these as by any. */
static bool is_of_steps(const struct ni_cause *c) {
  return c->kind == NI_FIND_UNEVEN && c->level == NI_LEVEL_JOB;
}

static bool is_near_cause(const struct clock_costs *w, const struct ni_cause *c, uint32_t bin) {
  const bool beside = (bin > 0 && ni_cause_is_active(c, bin - 1)) || ni_cause_is_active(c, bin + 1);
  return ni_cause_is_active(c, bin) || (!w->dense && beside);
}

/*
 * What comes each third step leaves hardly any bin that is not beside it, and these few are the first ones of
 * the job, or others that are not like the rest.
 */
static bool is_dense(const struct clock_costs *w) {
  uint32_t quiet = 0;
  for (uint32_t k = 0; k < w->b->bins; k++)
    quiet += k >= w->first && !isnan(w->us[k]) && !is_near_any_cause(w, k);
  return quiet * QUIET_PART < w->b->bins;
}

/* What joins islands in the bin: bins are compared with those in which it is the same. */
static uint64_t get_exchange(const struct clock_costs *w, uint32_t bin) {
  return w->b->exchange ? w->b->exchange[bin] : 0;
}

/*
 * Mean of the bins nearest to from..to in which no such cause is at work, of those in which islands meet as
 * they do in bin `like`, those far off clipped; lasts: the cause is of links; *apart: two of their standard
 * deviations.
 */
static double find_baseline_around(const struct clock_costs *w, uint32_t from, uint32_t to, uint32_t like,
                                   bool lasts, float *apart) {
  size_t n = 0;
  double sum = 0;
  for (uint32_t around = AROUND; n < AROUND_MIN && around / 2 < w->b->bins; around *= 2) {
    n = 0;
    for (uint32_t k = from > around ? from - around : 0; k < to + around && k < w->b->bins; k++) {
      const bool is_first = !lasts && k < w->first;
      const bool is_alike = get_exchange(w, k) == get_exchange(w, like);
      if (!is_near_any_cause(w, k) && !isnan(w->us[k]) && !is_first && is_alike)
        w->quiet[n++] = w->us[k];
    }
  }
  if (!n)
    return NAN;
  const float middle = ni_blame_quantile(w->quiet, n, 0.5), upper = ni_blame_quantile(w->quiet, n, 0.75);
  float most = FAR_OFF * middle;
  if (!lasts)
    most = fminf(most, middle + OFF * fmaxf(upper - middle, CLOSE * middle));
  for (size_t i = 0; i < n; i++)
    sum += fminf(w->quiet[i], most);
  *apart = fminf(w->quiet[n - 1 - n / OUTER_PART], most) - w->quiet[n / OUTER_PART];
  return sum / (double)n;
}

/*
 * Adds what the bins of k..to took longer than others. Returns how many of them are known: none where a
 * cause is at work in all bins like one of them, as where it comes each time that islands meet.
 */
static uint32_t count_run(const struct clock_costs *w, const struct ni_cause *c, uint32_t k, uint32_t to,
                          double *sum, double *squares) {
  double longer = 0, doubt = 0, baseline = NAN;
  uint32_t seen = 0;
  float apart = 0;
  for (uint32_t i = k; i < to; i++) {
    if (i == k || get_exchange(w, i) != get_exchange(w, i - 1))
      baseline = find_baseline_around(w, k, to, i, c->links, &apart);
    const bool of_another = w->causes[i] && !ni_cause_is_active(c, i);
    if (isnan(w->us[i]) || of_another)
      continue;
    if (isnan(baseline))
      return 0;
    longer += w->us[i] - baseline;
    doubt += apart * apart;
    seen++;
  }
  *sum += longer;
  *squares += doubt;
  return seen;
}

static void count_clock_cost(const struct clock_costs *w, struct ni_cause *c) {
  const uint32_t bins = w->b->bins;
  double sum = 0, squares = 0;
  uint32_t seen = 0;
  for (uint32_t k = c->from ? c->from - 1 : 0, to; k <= c->to && k < bins; k = to) {
    to = k + 1;
    if (!is_near_cause(w, c, k))
      continue;
    while (to < bins && is_near_cause(w, c, to))
      to++;
    seen += count_run(w, c, k, to, &sum, &squares);
  }
  c->not_clocked = seen == 0;
  const double doubt = sqrt(squares) + CLOCK_DOUBT * fabs(sum);
  c->cost_us = fmax(0, sum);
  c->low_us = fmax(0, sum - doubt);
  c->high_us = fmax(0, sum + doubt);
}

/*
 * A pause beside which other causes are at work all the time is counted as if it were alone: else it would
 * cost nothing, and mostly the others are chance. What it can cost at most is known.
 */
static void count_clock_cost_alone(struct clock_costs *w, struct ni_cause *c) {
  uint8_t *causes = w->causes;
  const bool dense = w->dense;
  uint8_t *own = calloc(w->b->bins + 1, sizeof *own);
  if (!own)
    return; /* no memory: it costs what the replay says */
  for (uint32_t k = 0; k < w->b->bins; k++)
    own[k] = ni_cause_is_active(c, k);
  w->causes = own;
  w->dense = is_dense(w);
  count_clock_cost(w, c);
  w->causes = causes;
  w->dense = dense;
  free(own);
}

/* It lasts, and for a part of the run alone. */
static bool has_begin_or_end(const struct ni_blame *b, const struct ni_cause *c) {
  const bool is_part = c->from > 0 || c->to < b->bins;
  return is_part && !c->at && !c->links;
}

static double measure_weight(const struct ni_cause *c) { return (double)c->excess_us * (c->to - c->from); }

/* It begins or ends as well, and is not far smaller. */
static bool moves_as_much(const struct ni_blame *b, const struct ni_cause *other, const struct ni_cause *c) {
  return has_begin_or_end(b, other) && measure_weight(other) * MOVES_LESS > measure_weight(c);
}

/*
 * A rank that is late from some step on costs no more than steps are longer from there on. Own time can say
 * far more: where operations overlap the computing, all gaps of the last rank show, and none of the others.
 * Not where another cause has begun or ended as well, nor where marks number the steps: these may hold more
 * or less of what the operations repeat.
 */
static void bound_by_clock(const struct clock_costs *w, const struct ni_causes *causes, struct ni_cause *c) {
  size_t n = 0;
  uint32_t seen = 0;
  if (w->b->r && w->b->r->marks.n)
    return;
  for (uint32_t i = 0; i < causes->n; i++)
    if (&causes->item[i] != c && moves_as_much(w->b, &causes->item[i], c))
      return;
  for (uint32_t k = w->first; k < w->b->bins; k++)
    if (!ni_cause_is_active(c, k) && !w->causes[k] && !isnan(w->us[k]))
      w->quiet[n++] = w->us[k];
  if (n < AROUND_MIN)
    return;
  const double baseline = ni_blame_middle(w->quiet, n);
  const float apart = w->quiet[n - 1 - n / OUTER_PART] - w->quiet[n / OUTER_PART];
  n = 0;
  for (uint32_t k = 0; k < w->b->bins; k++) {
    seen += ni_cause_is_active(c, k);
    if (ni_cause_is_active(c, k) && !w->causes[k] && !isnan(w->us[k]))
      w->quiet[n++] = w->us[k];
  }
  if (n < AROUND_MIN)
    return;
  const double inside = ni_blame_middle(w->quiet, n);
  c->most_us = fmax(0, inside - baseline) * seen + apart * sqrt(seen);
}

static bool is_counted_with_others(const struct ni_blame *b, const struct ni_cause *c) {
  return ni_cause_comes_and_goes(b, c) && !is_of_steps(c);
}

int ni_count_clock_costs(const struct ni_blame *b, struct ni_causes *causes) {
  struct clock_costs w = {.b = b};
  bool any = false;
  for (uint32_t i = 0; i < causes->n; i++)
    any |= ni_cause_comes_and_goes(b, &causes->item[i]) || has_begin_or_end(b, &causes->item[i]);
  if (!any)
    return 0;
  w.us = malloc((2 * (size_t)b->bins + 1) * sizeof *w.us);
  w.causes = calloc(b->bins + 1, sizeof *w.causes);
  if (w.us && w.causes && ni_causes_bin_lengths(b, w.us) == 0) {
    w.quiet = w.us + b->bins;
    for (uint32_t i = 0; i < causes->n; i++)
      for (uint32_t k = 0; k < b->bins && is_counted_with_others(b, &causes->item[i]); k++)
        w.causes[k] |= ni_cause_is_active(&causes->item[i], k);
    w.first = count_first_bins(w.us, w.causes, b->bins, w.quiet);
    w.dense = is_dense(&w);
    for (uint32_t i = 0; i < causes->n; i++)
      if (ni_cause_comes_and_goes(b, &causes->item[i])) {
        struct ni_cause *c = &causes->item[i];
        if (!is_of_steps(c))
          count_clock_cost(&w, c);
        if (is_of_steps(c) || (c->not_clocked && c->most_us > 0 && !c->links))
          count_clock_cost_alone(&w, c);
      }
    for (uint32_t i = 0; i < causes->n; i++)
      if (has_begin_or_end(b, &causes->item[i]))
        bound_by_clock(&w, causes, &causes->item[i]);
  }
  const bool had_room = w.us && w.causes;
  free(w.us);
  free(w.causes);
  return had_room ? 0 : -ENOMEM;
}

void ni_causes_free(struct ni_causes *c) {
  for (uint32_t i = 0; i < c->n; i++)
    free_cause(&c->item[i]);
  free(c->crowded);
  c->crowded = NULL;
}

bool ni_find_longest_above(const float *x, uint32_t n, float floor, uint32_t *from, uint32_t *to) {
  double sum = 0, best = 0;
  uint32_t start = 0;
  *from = *to = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (!isnan(x[k]))
      sum += x[k] - floor;
    if (sum <= 0) {
      sum = 0;
      start = k + 1;
    } else if (sum > best) {
      best = sum;
      *from = start;
      *to = k + 1;
    }
  }
  return best > 0;
}
