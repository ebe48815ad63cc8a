/* Own time: ranks beside their like, then hosts most of whose ranks stand out, then stages beside each other. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike.h"
#include "causes.h"

struct late {                  /* what one rank shows */
  bool late, pauses, launch;
  uint32_t from, to, n_pauses;
  float excess_us, share, of_gaps;
  uint32_t alike;
};

struct own {
  const struct ni_blame *b;
  struct late *late;           /* by rank */
  uint32_t *member;            /* of the class at hand */
  uint32_t n;
  float *x;                    /* [member][bin]: own time beyond that of its like, as a part of `of_us`; NAN: nothing */
  float *scratch, *over_us;    /* over_us: by rank, usual own time of a step more than that of its like */
  /* Of the class at hand: own time of a step that is seen, and what is taken for all of it. Where operations run beside the computing much
   * of it is not seen between them; half of the step is taken then. */
  float level_us, of_us, apart; /* apart: standard deviation of the ranks' means, as a part of of_us */
};

struct at_place {
  uint64_t name;
  uint32_t rank;
  float usual_us;
};
static int by_place(const void *a, const void *b) {
  const struct at_place *x = a, *y = b;
  if (x->name != y->name) return x->name < y->name ? -1 : 1;
  return x->usual_us != y->usual_us ? (x->usual_us < y->usual_us ? -1 : 1) : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Of each member its usual own time beside the lower quartile of the class, over the places that most members have. */
static int compare_places(struct own *w) {
  const struct ni_blame *b = w->b;
  size_t n = 0, all = 0;
  for (uint32_t i = 0; i < w->n; i++) all += b->rank[w->member[i]].n_places;
  struct at_place *at = malloc((all + 1) * sizeof *at);
  double *sum = calloc((size_t)b->n_ranks + 1, sizeof *sum);
  bool *any = calloc((size_t)b->n_ranks + 1, sizeof *any);
  if (!at || !sum || !any) {
    free(at);
    free(sum);
    free(any);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < w->n; i++)
    for (uint32_t k = 0; k < b->rank[w->member[i]].n_places; k++)
      at[n++] = (struct at_place){b->rank[w->member[i]].place[k].name, w->member[i], b->rank[w->member[i]].place[k].usual_us};
  qsort(at, n, sizeof *at, by_place);
  w->level_us = 0;
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && at[to].name == at[from].name; to++) {}
    if (to - from < 2 || (to - from) * 4 < (size_t)w->n * 3) continue;
    float usual = at[from + (to - from == 2 ? 0 : (to - from - 1) / 4)].usual_us;
    w->level_us += usual;
    for (size_t i = from; i < to; i++) {
      sum[at[i].rank] += at[i].usual_us - usual;
      any[at[i].rank] = true;
    }
  }
  for (uint32_t i = 0; i < w->n; i++) {
    const struct ni_blame_rank *o = &b->rank[w->member[i]];
    w->over_us[w->member[i]] = any[w->member[i]] ? (float)sum[w->member[i]] : NAN;
    w->scratch[i] = (float)(o->last_ns - o->first_ns) / 1e3f / (float)o->n_steps;
  }
  w->of_us = fmaxf(w->level_us, ni_blame_quantile(w->scratch, w->n, 0.5) / 2);
  free(at);
  free(sum);
  free(any);
  return 0;
}

/*
 * Own time of the members beyond that of their like, of each bin. What is usual is the lower quartile of the members' means over the
 * run, since up to half of them can be slow; from bin to bin all of them move by what they have in common. (A lower quartile of
 * each bin alone would take noise for speed.)
 */
static void excess(struct own *w, float *mean) {
  const struct ni_blame *b = w->b;
  size_t means = 0;
  for (uint32_t i = 0; i < w->n; i++) {
    float *x = &w->x[(size_t)i * b->bins], over = w->over_us[w->member[i]];
    size_t n = 0;
    for (uint32_t k = 0; k < b->bins; k++) {
      const struct ni_blame_cell *c = ni_blame_cell_at(b, w->member[i], k);
      x[k] = c && c->places ? (over + c->dev / (float)b->bin_steps) / w->of_us : NAN;
      if (!isnan(x[k])) w->scratch[n++] = x[k];
    }
    mean[i] = ni_blame_middle(w->scratch, n);
    if (n) mean[w->n + means++] = mean[i];
  }
  float usual = ni_blame_quantile(mean + w->n, means, means == 2 ? 0 : 0.25);
  /* How far ranks lie apart that are not slow: 10 and 40 % of them lie below these, 1.03 standard deviations from each other. */
  w->apart = means >= 8 ? (mean[w->n + (size_t)(0.4 * (double)(means - 1) + 0.5)] - mean[w->n + (size_t)(0.1 * (double)(means - 1) + 0.5)]) / 1.03f : 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    size_t n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
      float x = w->x[(size_t)i * b->bins + k];
      if (!isnan(x)) w->scratch[n++] = x - mean[i];
    }
    float common = ni_blame_quantile(w->scratch, n, 0.4);
    for (uint32_t i = 0; i < w->n; i++) w->x[(size_t)i * b->bins + k] -= usual + common;
  }
}

/* Noise of one rank from bin to bin, of the rank in the middle. */
static float noise_of(struct own *w, float *each) {
  const struct ni_blame *b = w->b;
  size_t n = 0;
  for (uint32_t i = 0; i < w->n; i++) {
    const float *x = &w->x[(size_t)i * b->bins];
    size_t m = 0;
    for (uint32_t k = 1; k < b->bins; k++)
      if (!isnan(x[k]) && !isnan(x[k - 1])) w->scratch[m++] = fabsf(x[k] - x[k - 1]);
    if (m) each[n++] = ni_blame_quantile(w->scratch, m, 0.5) * 1.0484f; /* median |difference| = 0.954 sigma */
  }
  return ni_blame_quantile(each, n, 0.5);
}

static bool late_interval(const float *x, uint32_t bins, uint32_t *from, uint32_t *to) {
  if (!ni_longest_above(x, bins, NI_CAUSE_OWN_FLOOR, from, to)) return false;
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t k = *from; k < *to; k++)
    if (!isnan(x[k])) sum += x[k], n++;
  /* Its ends are sharper with half of its height for a floor. */
  float half = n ? (float)(sum / n / 2) : 0;
  return half <= NI_CAUSE_OWN_FLOOR || ni_longest_above(x, bins, half, from, to);
}

static void judge_rank(struct own *w, uint32_t i, float noise) {
  const struct ni_blame *b = w->b;
  float *x = &w->x[(size_t)i * b->bins];
  struct late *l = &w->late[w->member[i]];
  uint32_t from, to, n = 0;
  double sum = 0;
  /* The first and the last bin are begun or ended in the middle of a step. */
  x[0] = x[b->bins - 1] = NAN;
  memcpy(w->scratch, x, b->bins * sizeof *x);
  for (uint32_t k = 0; k < b->bins; k++)
    if (x[k] > 1) x[k] = 1; /* one bin says no more than that */
  if (!late_interval(x, b->bins, &from, &to)) return;
  for (uint32_t k = from; k < to; k++)
    if (!isnan(x[k])) sum += w->scratch[k], n++;
  float mean = n ? (float)(sum / n) : 0;
  float least = fmaxf(fmaxf(NI_CAUSE_OWN, NI_CAUSE_APART * w->apart), NI_CAUSE_SIGMA * noise / sqrtf((float)n));
  if (n < NI_CAUSE_BINS || mean < least || sum < NI_CAUSE_OF_RUN * b->bins) return;
  uint32_t near = b->bins / 20 > 3 ? b->bins / 20 : 3;
  *l = (struct late){.late = true, .from = from <= near ? 0 : from, .to = to + near >= b->bins ? b->bins : to,
                     .excess_us = mean * w->of_us, .share = mean,
                     .of_gaps = mean * w->of_us / w->level_us, .alike = w->n, .pauses = l->pauses, .n_pauses = l->n_pauses};
}

/* Chance of n or more where `mean` are usual. */
static double chance(uint32_t n, double mean) {
  double p = exp(-mean), below = 0;
  for (uint32_t i = 0; i < n && i < 10000; i++) {
    below += p;
    p *= mean / (i + 1);
  }
  return below < 1 - 1e-12 ? 1 - below : p; /* beyond, the first term that is left is nearly all */
}

/* Pauses of each rank beside those of all others. Half as many again as the others have is still chance: they come in groups. */
static void judge_pauses(struct own *w) {
  const struct ni_blame *b = w->b;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged) w->scratch[n++] = (float)b->rank[i].incidents;
  float usual = ni_blame_quantile(w->scratch, n, 0.75);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    struct late *l = &w->late[i];
    if (!o->judged || o->incidents < NI_CAUSE_PAUSES_MIN || n < 2) continue;
    if (chance((uint32_t)o->incidents, 1.5 * fmaxf(usual, 1)) >= NI_CAUSE_PAUSES) continue;
    double burst = 0;
    for (uint32_t k = 0; k < o->n_bins; k++) burst += o->cell[k].burst;
    l->pauses = true;
    l->n_pauses = (uint32_t)o->incidents;
    if (!l->late) {
      l->to = b->bins;
      l->excess_us = (float)(burst / b->steps);
      l->alike = (uint32_t)n;
    }
  }
}

static bool launched_late(const struct ni_blame_rank *o, float usual) {
  return o->judged && o->idle_us > 0 && (float)(o->late_idle_us / o->idle_us) >= usual + NI_CAUSE_LAUNCHED;
}

/*
 * A CPU that launches too slowly: the GPU is idle before kernels that begin as soon as they are launched, far more than elsewhere in the
 * job, and longer in all than ranks alike (or, where all of these are so: than the rank in the middle). Own time in single places says little
 * then: what is waited for changes from step to step.
 */
static void judge_launches(struct own *w) {
  const struct ni_blame *b = w->b;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && b->rank[i].idle_us > 0) w->scratch[n++] = (float)(b->rank[i].late_idle_us / b->rank[i].idle_us);
  float usual = ni_blame_quantile(w->scratch, n, 0.25);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    size_t alike = 0, others = 0;
    if (!launched_late(o, usual)) continue;
    for (uint32_t k = 0; k < b->n_ranks; k++)
      alike += b->rank[k].cls == o->cls && b->rank[k].judged && !launched_late(&b->rank[k], usual);
    for (uint32_t k = 0; k < b->n_ranks; k++)
      if (b->rank[k].judged && !launched_late(&b->rank[k], usual) && (!alike || b->rank[k].cls == o->cls))
        w->scratch[others++] = (float)(b->rank[k].own_us / b->rank[k].n_steps);
    float own = ni_blame_quantile(w->scratch, others, alike ? 0.25 : 0.5);
    float late = (float)(o->late_idle_us / o->n_steps), excess = (float)(o->own_us / o->n_steps) - own;
    if (!others || excess < NI_CAUSE_LAUNCH_OWN * own) continue;
    if (excess > 0.98f * late) excess = 0.98f * late;
    w->late[i] = (struct late){.launch = true, .to = b->bins, .excess_us = excess, .share = excess / own, .of_gaps = late / (late - excess) - 1,
                               .alike = (uint32_t)others + 1};
  }
}

static int judge_class(struct own *w, uint32_t cls) {
  const struct ni_blame *b = w->b;
  w->n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].cls == cls) w->member[w->n++] = i;
  if (w->n < 2 || b->bins < 2 * NI_CAUSE_BINS) return 0;
  float *each = malloc(2 * (size_t)w->n * sizeof *each);
  w->x = malloc((size_t)w->n * b->bins * sizeof *w->x);
  if (!w->x || !each) {
    free(each);
    return -ENOMEM;
  }
  int e = compare_places(w);
  if (e == 0) {
    excess(w, each);
    float noise = noise_of(w, each);
    for (uint32_t i = 0; i < w->n; i++) judge_rank(w, i, noise);
  }
  free(w->x);
  free(each);
  w->x = NULL;
  return e;
}

static int add_ranks(struct ni_cause *c, const struct own *w, bool (*belongs)(const struct own *, uint32_t, uint32_t), uint32_t of) {
  int e = 0;
  for (uint32_t i = 0; c && e == 0 && i < w->b->n_ranks; i++)
    if (w->b->rank[i].judged && belongs(w, i, of)) e = ni_cause_item(c, i);
  return e;
}

static bool late_on(const struct own *w, uint32_t rank, uint32_t host) { return ni_blame_host(w->b, rank) == host && w->late[rank].late; }
static bool launched_on(const struct own *w, uint32_t rank, uint32_t host) { return ni_blame_host(w->b, rank) == host && w->late[rank].launch; }
static bool paused_on(const struct own *w, uint32_t rank, uint32_t host) { return ni_blame_host(w->b, rank) == host && w->late[rank].pauses; }
static bool itself(const struct own *w, uint32_t rank, uint32_t of) { return (void)w, rank == of; }
static bool of_class(const struct own *w, uint32_t rank, uint32_t cls) { return w->b->rank[rank].cls == cls; }

/* Most ranks of a host: the host, in the interval that most of them share. */
static int name_hosts(struct own *w, struct ni_causes *out, bool (*belongs)(const struct own *, uint32_t, uint32_t)) {
  const struct ni_blame *b = w->b;
  bool pauses = belongs == paused_on;
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++) {
    uint32_t there = 0, n = 0, from = 0, to = 0, count = 0;
    float sum = 0, share = 0, of_gaps = 0, most = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      if (!b->rank[i].judged || ni_blame_host(b, i) != h) continue;
      there++;
      if (!belongs(w, i, h)) continue;
      if (n == 0 || w->late[i].from < from) from = w->late[i].from;
      if (w->late[i].to > to) to = w->late[i].to;
      sum += w->late[i].excess_us;
      most = fmaxf(most, w->late[i].excess_us);
      share += w->late[i].share;
      of_gaps += w->late[i].of_gaps;
      count += w->late[i].n_pauses;
      n++;
    }
    if (n < 2 || (float)n < NI_CAUSE_OF_HOST * (float)there || most * (float)n > NI_CAUSE_OF_HOST_MOST * sum) continue;
    struct ni_cause *c = ni_cause_add(out, pauses ? NI_FIND_PAUSES : NI_FIND_SLOW_HOST, NI_LEVEL_HOST, h);
    if (!c) return 0;
    c->from = from;
    c->to = to;
    c->excess_us = sum / (float)n;
    c->share = share / (float)n;
    c->of_gaps = of_gaps / (float)n;
    c->bins_hit = pauses ? count : 0;
    c->launch = belongs == launched_on;
    c->rest = belongs == late_on;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (ni_blame_host(b, i) == h) c->rest &= b->rank[i].n_slots <= 1;
    c->alike = b->n_ranks;
    if ((e = add_ranks(c, w, belongs, h)) < 0) return e;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].judged && ni_blame_host(b, i) == h) *(pauses ? &w->late[i].pauses : c->launch ? &w->late[i].launch : &w->late[i].late) = false;
  }
  return e;
}

static int name_ranks(struct own *w, struct ni_causes *out) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_ranks; i++) {
    const struct late *l = &w->late[i];
    for (int pauses = 0; e == 0 && pauses < 2; pauses++) {
      if (!(pauses ? l->pauses : l->late || l->launch)) continue;
      struct ni_cause *c = ni_cause_add(out, pauses ? NI_FIND_PAUSES : NI_FIND_LATE_RANK, NI_LEVEL_RANK, i);
      if (!c) return 0;
      c->from = pauses ? 0 : l->from;
      c->to = pauses ? w->b->bins : l->to;
      c->excess_us = l->excess_us;
      c->share = l->share;
      c->of_gaps = l->of_gaps;
      c->bins_hit = pauses ? l->n_pauses : 0;
      c->launch = l->launch;
      c->rest = !pauses && !l->launch && w->b->rank[i].n_slots == 1;
      c->alike = l->alike;
      e = add_ranks(c, w, itself, i);
    }
  }
  return e;
}

enum { STAGE_PLACES = 32 };

struct stage {
  float us[STAGE_PLACES];      /* the longest places of one rank in the middle of it */
  uint32_t n;
  float off;                   /* how far that rank is from its like */
};

static int longer(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x > y ? -1 : x < y;
}

static void take_stage(const struct own *w, uint32_t rank, struct stage *s) {
  const struct ni_blame_rank *o = &w->b->rank[rank];
  float off = fabsf(w->over_us[rank]), *us;
  if (s->n && !(off < s->off)) return;
  if (!(us = malloc((o->n_places + 1) * sizeof *us))) return; /* one rank less to compare with */
  for (uint32_t i = 0; i < o->n_places; i++) us[i] = o->place[i].usual_us;
  qsort(us, o->n_places, sizeof *us, longer);
  s->n = o->n_places < STAGE_PLACES ? o->n_places : STAGE_PLACES;
  memcpy(s->us, us, s->n * sizeof *us);
  s->off = off;
  free(us);
}

/* So many places of x are as long as one of y, if all of x took 1/by of their time. */
static uint32_t agree(const struct stage *x, const struct stage *y, float by) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < y->n; k++)
      if (fabsf(x->us[i] / by - y->us[k]) <= 0.015f * y->us[k]) {
        n++;
        break;
      }
  return n;
}

/*
 * How much longer x computes than y: the factor with which most places agree. Stages have the same layers in another order, and the first and
 * the last one do something more, so neither places nor sums can be compared.
 */
static float times_longer(const struct stage *x, const struct stage *y) {
  uint32_t most = 0, near = 0;
  float best = 1, best_near = 1;
  for (uint32_t i = 0; i < x->n; i++)
    for (uint32_t k = 0; k < y->n; k++) {
      float by = x->us[i] / y->us[k];
      uint32_t n = by > 0.6f && by < 1.7f ? agree(x, y, by) : 0;
      if (n > most || (n == most && fabsf(by - 1) < fabsf(best - 1))) {
        most = n;
        best = by;
      }
      if (fabsf(by - 1) < 0.25f && (n > near || (n == near && fabsf(by - 1) < fabsf(best_near - 1)))) {
        near = n;
        best_near = by;
      }
    }
  /* Layers forward and backward take times of which one can be 1.5 of the other: a small factor that explains nearly as much is the right one. */
  if (near * 10 >= most * 7) most = near, best = best_near;
  return most * 2 >= x->n ? best : 1;
}

/* Beside the stage in the middle; of two: the other. */
static int compare_stages(struct own *w, float *share) {
  const struct ni_blame *b = w->b;
  struct stage *stage = calloc(b->n_classes + 1, sizeof *stage);
  float *x = malloc((b->n_classes + 1) * sizeof *x);
  int e = stage && x ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].cls != NI_BLAME_NONE) take_stage(w, i, &stage[b->rank[i].cls]);
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) {
    size_t n = 0;
    for (uint32_t k = 0; k < b->n_classes; k++)
      if (k != c && stage[k].n && stage[c].n) x[n++] = times_longer(&stage[c], &stage[k]);
    share[c] = n ? ni_blame_quantile(x, n, 0.5) - 1 : 0;
  }
  free(stage);
  free(x);
  return e;
}

static int name_stages(struct own *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  float *share = calloc(b->n_classes + 1, sizeof *share);
  int e = share ? compare_stages(w, share) : -ENOMEM;
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) {
    if (!(share[c] > NI_CAUSE_STAGE - 1)) continue;
    struct ni_cause *x = ni_cause_add(out, NI_FIND_SLOW_STAGE, NI_LEVEL_STAGE, c);
    if (!x) break;
    x->to = b->bins;
    x->share = x->of_gaps = share[c];
    x->alike = b->n_classes;
    for (uint32_t i = 0; i < b->n_ranks && x->excess_us <= 0; i++) {
      float us = 0;
      for (uint32_t k = 0; b->rank[i].cls == c && k < b->rank[i].n_places; k++) us += b->rank[i].place[k].usual_us;
      x->excess_us = us * (1 - 1 / (1 + share[c]));
    }
    e = add_ranks(x, w, of_class, c);
  }
  free(share);
  return e;
}

int ni_causes_own(const struct ni_blame *b, struct ni_causes *out) {
  struct own w = {.b = b, .late = calloc(b->n_ranks + 1, sizeof *w.late), .member = malloc((b->n_ranks + 1) * sizeof *w.member),
                  .scratch = malloc((b->n_ranks + b->bins + 1) * sizeof *w.scratch), .over_us = calloc(b->n_ranks + 1, sizeof *w.over_us)};
  int e = w.late && w.member && w.scratch && w.over_us ? 0 : -ENOMEM;
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) e = judge_class(&w, c);
  if (e == 0) judge_launches(&w);
  if (e == 0) judge_pauses(&w);
  if (e == 0) e = name_hosts(&w, out, launched_on);
  if (e == 0) e = name_hosts(&w, out, late_on);
  if (e == 0) e = name_hosts(&w, out, paused_on);
  if (e == 0) e = name_ranks(&w, out);
  if (e == 0 && b->stages) e = name_stages(&w, out);
  free(w.late);
  free(w.member);
  free(w.scratch);
  free(w.over_us);
  return e;
}
