#include "stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/ranks/quantile.h"

/*
 * Stages do not have the same places: one has more layers than the other, and the first and the last one do
 * something besides. But a layer computes as long in one stage as in another. So the times between operations
 * of one stage, all of them by one factor, are found again in the other, and the factor under which most of
 * them are found again says how much longer the stage computes. Each time is found once only: a layer that
 * takes 1.2 times as long forward as backward does not make its stage 1.2 times as long. What a stage does
 * besides is a few places, however long they are.
 */
enum { STAGE_PLACES = 32, STAGE_PLACES_MIN = 8 }; /* fewer places can agree by chance */
#define STAGE_SAME 0.02f                          /* times that differ by no more are the same; */
#define STAGE_FOUND 0.7f                          /* so many of both must be found again; */
#define STAGE_AS_GOOD \
  0.85f /* a factor half as far from one under which so many of those are found is the right one */
#define STAGE_MOST 2.0f   /* larger factors are other work */
#define STAGE_PARTLY 0.2f /* so many of its places as long as in the other are no chance */
/* of the longest place: in less there is no layer, as where a kernel follows on another */
#define STAGE_LEAST 0.01f
enum { STAGE_LEFT_MIN = 6 }; /* places of those that are left without these */

struct stage {
  /*
   * Places of one rank in the middle of it, longest first. Of more than there is room for, as many of each
   * length as their share is: the longest ones can be what the stage does besides, such as a loss.
   */
  float us[STAGE_PLACES];
  uint32_t n;    /* 0: too few to find a factor by */
  uint32_t n_us; /* so many there are in any case */
  float pass_us; /* nothing but whole passes lies before its messages: of one; 0: there is more */
  float idle_us,
      late_us; /* of a step that rank is idle, or computes; late_us: before what is launched late */
  float off;   /* how far that rank is from its peers */
  bool whole;  /* all its layers lie in each of its places: without tensor parallelism */
  bool at_end; /* the first or the last one */
  bool taken;
  uint32_t ranks;
  /* of its ranks' own collectives, a step: gradients, and what its layers exchange */
  double bytes;
};

static int compare_longest_first(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x > y ? -1 : x < y;
}

/* Its messages go to earlier stages alone, or to later ones, as numbered in their communicators. */
static bool is_end_stage(const struct ni_blame_rank *o) {
  bool earlier = false, later = false;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    if (o->slot[i].kind == NI_BLAME_COLL)
      continue;
    earlier |= o->slot[i].peer < o->slot[i].rank;
    later |= o->slot[i].peer > o->slot[i].rank;
  }
  return !earlier || !later;
}

/*
 * The last stage goes on from the forward pass of a micro-batch to its backward pass, and talks to nobody
 * between: all that lies before its messages is as long. 0: it is not so.
 */
enum { PASSES_MIN = 2 };

static float find_whole_pass(const struct ni_blame_rank *o) {
  float shortest = INFINITY, longest = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_places; i++) {
    if (!o->place[i].message)
      continue;
    shortest = fminf(shortest, o->place[i].usual_us);
    longest = fmaxf(longest, o->place[i].usual_us);
    n++;
  }
  return n >= PASSES_MIN && longest <= (1 + 2 * STAGE_SAME) * shortest ? (longest + shortest) / 2 : 0;
}

static int fill_stage(const struct ni_blame *b, uint32_t rank, float off, struct stage *s) {
  const struct ni_blame_rank *o = &b->rank[rank];
  if (s->taken && !(off < s->off))
    return 0;
  float *us = malloc((o->n_places + 1) * sizeof *us);
  if (!us)
    return -ENOMEM;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_places; i++)
    if (!o->place[i].message)
      us[n++] = o->place[i].usual_us; /* before a message lie all layers of a stage, however many they are */
  s->whole = n < STAGE_PLACES_MIN;
  for (uint32_t i = 0; s->whole && i < o->n_places; i++)
    if (o->place[i].message)
      us[n++] = o->place[i].usual_us;
  s->bytes = 0;
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind == NI_BLAME_COLL && b->s->comm[o->slot[i].comm].n_ranks <= (int64_t)s->ranks)
      s->bytes += (double)o->slot[i].bytes / o->n_steps;
  qsort(us, n, sizeof *us, compare_longest_first);
  const bool enough = n >= STAGE_PLACES_MIN;
  while (n && us[n - 1] < STAGE_LEAST * us[0])
    n--;
  s->n_us = n < STAGE_PLACES ? n : STAGE_PLACES;
  s->n = enough && n >= STAGE_LEFT_MIN ? s->n_us : 0;
  for (uint32_t i = 0; i < s->n_us; i++)
    s->us[i] = us[(2 * i + 1) * n / (2 * s->n_us)];
  s->pass_us = s->whole ? find_whole_pass(o) : 0;
  s->idle_us = (float)(o->idle_us / o->n_steps);
  s->late_us = (float)(o->late_idle_us / o->n_steps);
  s->off = off;
  s->taken = true;
  s->at_end = is_end_stage(o);
  free(us);
  return 0;
}

/*
 * Where all layers of a stage lie in each place, the bytes of its gradients say how many these are. Stages
 * with other ones are compared for as many layers, and whether they are slow, or layers differ in what they
 * do, cannot be told. Times of several lengths, such as forward and backward, have to be found again. The
 * first and the last one can have more to do all the same: an embedding or a loss takes as many times longer
 * backward than forward as layers do. So no other stage is compared with them, and whether they are slow
 * cannot be told.
 */
#define STAGE_LENGTHS 1.5f /* times the shortest one of them is the longest */
#define STAGE_LAYERS 4.0   /* times as many layers: of a stage with more, nobody says so by its gradients */

static bool can_compare(const struct stage *x, const struct stage *y) {
  if (x->whole != y->whole)
    return false;
  /* Logs of ranks are missing: those that are there may be of one replica. */
  if (2 * x->ranks <= y->ranks || 2 * y->ranks <= x->ranks)
    return false;
  if (!x->whole)
    return true;
  if (y->at_end && !x->at_end)
    return false;
  const double more = fmax(x->bytes, y->bytes), less = fmin(x->bytes, y->bytes);
  return less > 0 && more <= STAGE_LAYERS * less;
}

/* By the bytes of their gradients. */
static bool has_as_many_layers(const struct stage *x, const struct stage *y) {
  return fabs(x->bytes - y->bytes) <= NI_BLAME_EQUAL * fmax(x->bytes, y->bytes);
}

/* A backward pass takes so many times as long as the forward pass of the same layers. */
#define BACKWARD_LEAST 1.5f
#define BACKWARD_MOST 4.0f
/* How much longer a stage is idle in a step may differ by so much from how much longer it computes. */
#define STAGE_IDLE 0.04f

/*
 * Of two whole stages, where only whole passes lie before the messages of one: as long as that is a place of
 * the other one (a backward pass with the next forward pass), or two of them, a forward and a backward pass.
 * Which of them it is all the time says that they compute in a step: gradients that run beside the computing
 * hide some of that, so alone it says little. Returns how much longer x computes than y; NAN: not known.
 */
static float compare_whole_passes(const struct stage *x, const struct stage *y) {
  const struct stage *other = x->pass_us > 0 ? y : x;
  const float pass_us = x->pass_us > 0 ? x->pass_us : y->pass_us;
  const float rough = x->idle_us / y->idle_us;
  float best = NAN;
  if (2 * x->late_us > x->idle_us - y->idle_us)
    return NAN;
  for (uint32_t i = 0; i < other->n_us; i++)
    for (uint32_t k = i; k < other->n_us; k++) {
      const float back = other->us[i], forth = k == i ? 0 : other->us[k];
      if (k > i && !(back >= BACKWARD_LEAST * forth && back <= BACKWARD_MOST * forth))
        continue;
      const float times = other == y ? pass_us / (back + forth) : (back + forth) / pass_us;
      if (!(fabsf(times - rough) >= fabsf(best - rough)))
        best = times;
    }
  return fabsf(best - rough) <= STAGE_IDLE * rough ? best : NAN;
}

/*
 * The share of the places of both that are found in the other, if all of x took 1/by of its time. ratio: how
 * much longer x takes in the middle one of these.
 */
static float match_stage_places(const struct stage *x, const struct stage *y, float by, float *ratio) {
  float longest = 0, shortest = INFINITY, times[STAGE_PLACES];
  uint32_t i = 0, k = 0, n = 0;
  while (i < x->n && k < y->n) {
    float mine = x->us[i] / by, theirs = y->us[k];
    if (fabsf(mine - theirs) <= STAGE_SAME * theirs) {
      times[n++] = x->us[i] / theirs;
      longest = fmaxf(longest, theirs);
      shortest = fminf(shortest, theirs);
      i++;
      k++;
    } else if (mine > theirs)
      i++;
    else
      k++;
  }
  if (ratio)
    *ratio = n ? ni_blame_quantile(times, n, 0.5) : by;
  if (x->whole && longest < STAGE_LENGTHS * shortest)
    return 0;
  return 2.0f * (float)n / (float)(x->n + y->n);
}

/*
 * Is a part of x as long as in y, beside what is found again if all of x took 1/by of its time? All of a slow
 * stage is slow: a stage of which some layers are as long as elsewhere has other work in the rest.
 */
static bool is_partly_as_long(const struct stage *x, const struct stage *y, float by) {
  struct stage rest = {0}, others = {0};
  uint32_t i = 0, k = 0;
  while (i < x->n || k < y->n) {
    const float mine = i < x->n ? x->us[i] / by : 0, theirs = k < y->n ? y->us[k] : 0;
    if (i < x->n && k < y->n && fabsf(mine - theirs) <= STAGE_SAME * theirs) {
      others.us[others.n++] = y->us[k++];
      i++;
    } else if (k == y->n || (i < x->n && mine > theirs)) {
      rest.us[rest.n++] = x->us[i++];
    } else {
      others.us[others.n++] = y->us[k++];
    }
  }
  return match_stage_places(&rest, &others, 1, NULL) * (float)(rest.n + others.n) >
      2 * STAGE_PARTLY * (float)x->n;
}

/* How much longer x computes than y, by the places of both; 1: as long. NAN: they do other work. */
static float compare_stage_places(const struct stage *x, const struct stage *y) {
  if (x->n == 0 || y->n == 0)
    return NAN;
  float best = 1, most = match_stage_places(x, y, 1, NULL), ratio,
        right = INFINITY; /* right: the one nearest to 1 that is as good */
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < x->n; i++)
      for (uint32_t k = 0; k < y->n; k++) {
        float by = y->us[k] > 0 ? x->us[i] / y->us[k] : 0;
        if (!(by < STAGE_MOST && by * STAGE_MOST > 1))
          continue;
        float found = match_stage_places(x, y, by, NULL);
        const bool is_better = found > most || (found == most && fabsf(by - 1) < fabsf(best - 1));
        if (pass == 0 && is_better) {
          most = found;
          best = by;
        }
        bool nearer = fabsf(by - 1) <= fabsf(best - 1) / 2 && fabsf(by - 1) < fabsf(right - 1);
        if (pass == 1 && nearer && found >= STAGE_AS_GOOD * most)
          right = by;
      }
  if (most < STAGE_FOUND)
    return NAN;
  if (match_stage_places(x, y, 1, NULL) >= STAGE_AS_GOOD * most)
    return 1;
  if (isinf(right))
    right = best;
  if (is_partly_as_long(x, y, right))
    return NAN;
  (void)match_stage_places(x, y, right, &ratio);
  return ratio;
}

static float compare_stage_times(const struct stage *x, const struct stage *y) {
  return x->pass_us > 0 || y->pass_us > 0 ? compare_whole_passes(x, y) : compare_stage_places(x, y);
}

/* The same for as many layers. */
static float compare_stage_pair(const struct stage *x, const struct stage *y) {
  if (!can_compare(x, y))
    return NAN;
  const float times = compare_stage_times(x, y);
  return x->whole ? times * (float)(y->bytes / x->bytes) : times;
}

/*
 * A stage in the middle that has no like, as the one of three. An embedding and a loss make the first and the
 * last stage longer, never shorter. So if it takes longer than both, and has no more layers by the bytes of
 * its gradients, it is slow by that or by more. Returns how much longer it computes; NAN: nothing says so.
 */
static float compare_with_ends(const struct stage *x, const struct stage *stage, uint32_t n) {
  float least = INFINITY;
  uint32_t ends = 0;
  if (!x->whole || x->at_end || !(x->bytes > 0))
    return NAN;
  for (uint32_t k = 0; k < n; k++) {
    const struct stage *y = &stage[k];
    if (!y->at_end)
      continue;
    const bool is_as_large = y->whole && x->bytes <= (1 + NI_BLAME_EQUAL) * y->bytes;
    const float times = is_as_large ? compare_stage_times(x, y) : NAN;
    if (!(times > 1))
      return NAN;
    least = fminf(least, times);
    ends++;
  }
  return ends == 2 ? least : NAN;
}

/*
 * Where stages differ by nature, as layers of several kinds do, each of them is longer than some others. So
 * of three and more another one has to be near the middle one, that is at `at` of those in order.
 */
#define STAGE_AGREES 0.5f

static bool agree_others(const float *x, size_t n, size_t at) {
  const float most = STAGE_AGREES * fabsf(x[at] - 1);
  const bool longer = at > 0 && x[at - 1] - x[at] <= most;
  return n < 3 || longer || (at + 1 < n && x[at] - x[at + 1] <= most);
}

/*
 * The middle one of n factors by which a stage is longer than others; of an even number the smaller one of
 * the two. 1: the others do not agree. Of what is told as a note they need not.
 */
static float find_middle_factor(float *x, size_t n, bool is_note) {
  if (n == 0)
    return 1;
  qsort(x, n, sizeof *x, compare_longest_first);
  return is_note || agree_others(x, n, n / 2) ? x[n / 2] : 1;
}

/* What comes with an embedding or a loss is among the places of a stage: by so much they make it longer. */
#define END_WORK 0.045f

int ni_compare_stages(const struct ni_blame *b, const float *over_us, struct ni_stage_more *more) {
  struct stage *stage = calloc(b->n_classes + 1, sizeof *stage);
  float *x = malloc((b->n_classes + 1) * sizeof *x);
  int e = stage && x ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].cls != NI_BLAME_NONE)
      stage[b->rank[i].cls].ranks++;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].cls != NI_BLAME_NONE)
      e = fill_stage(b, i, fabsf(over_us[i]), &stage[b->rank[i].cls]);
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) {
    size_t n = 0, alike = 0;
    for (uint32_t k = 0; k < b->n_classes; k++) {
      const float times = k == c ? NAN : compare_stage_pair(&stage[c], &stage[k]);
      if (isnan(times))
        continue;
      x[n++] = times;
      alike += has_as_many_layers(&stage[c], &stage[k]);
    }
    const bool is_note = stage[c].whole && stage[c].at_end;
    const float beside_ends = n ? NAN : compare_with_ends(&stage[c], stage, b->n_classes);
    more[c].share = (isnan(beside_ends) ? find_middle_factor(x, n, is_note) : beside_ends) - 1;
    more[c].at_end = stage[c].at_end;
    more[c].by_layers = stage[c].whole && alike < n;
    const bool by_end = is_note || (stage[c].at_end && more[c].share < END_WORK);
    more[c].can_be_work = by_end || (stage[c].whole && alike == 0 && isnan(beside_ends));
  }
  free(stage);
  free(x);
  return e;
}
