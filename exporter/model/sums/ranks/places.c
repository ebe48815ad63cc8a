#include "places.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "overlaps.h"
#include "usual_step.h"

/* of the own time in places that are alone: then only these are compared */
#define ALONE_PART 0.4
/* What is more than that in a row has changed places, as where a host's clock was set back. */
enum { MISSING_MOST = 1000 };

#define SAME_LAYER 0.025f /* baselines of places with the same layers differ by no more */

/* Numbers of the places in a step; behind them come those of what is extra. */
enum { POSITIONS_IN_STEP = NI_PLACE_POSITIONS / 2 };

static uint32_t number_in_step(const struct ni_places *x, const struct ni_blame_op *op, uint32_t slot) {
  if (ni_place_is_extra(x, op))
    return POSITIONS_IN_STEP + op->what % POSITIONS_IN_STEP;
  const uint32_t number =
      x->per_step[slot] ? (uint32_t)(x->index[slot] % x->per_step[slot]) : x->position[slot];
  return number < POSITIONS_IN_STEP ? number : POSITIONS_IN_STEP - 1;
}

static uint32_t find_or_add_key(struct ni_places *x, const struct ni_blame_op *op) {
  const uint32_t slot = x->group[op->slot], position = number_in_step(x, op, slot);
  const uint32_t name = slot * NI_PLACE_POSITIONS + position + 1;
  for (uint32_t at = (uint32_t)ni_mix(name) & (NI_PLACE_KEYS - 1);; at = (at + 1) & (NI_PLACE_KEYS - 1)) {
    if (x->key[at].name == name)
      return at;
    if (x->key[at].name)
      continue;
    if (x->n_keys == NI_BLAME_KEYS)
      return NI_BLAME_NONE;
    x->n_keys++;
    x->key[at] = (struct ni_place_key){.name = name,
                                       .baseline.us = NAN,
                                       .baseline.alternative_us = NAN,
                                       .baseline.waits_for = UINT64_C(1) << slot};
    return at;
  }
}

void ni_places_next_step(struct ni_places *x) { memset(x->position, 0, sizeof x->position); }

/* From the first operation on again. */
static void rewind_all(struct ni_places *x) {
  memset(x->end, 0, sizeof x->end);
  memcpy(x->index, x->base, sizeof x->index);
  memset(x->messages, 0, sizeof x->messages);
  memset(x->began, 0, sizeof x->began);
  memset(x->began_before, 0, sizeof x->began_before);
  memset(x->last_sn, 0, sizeof x->last_sn);
  x->started = 0;
  x->last_what = 0;
  ni_places_next_step(x);
}

/*
 * How far behind the start of an operation of slot `own` an end on slot `of` may lie and still be what came
 * before it: less than half of how long it took. What had begun just before has ended no earlier than the
 * operation will, as of two messages in one kernel, however far stamps are off.
 */
static int64_t measure_slack(const struct ni_places *x, uint32_t own, uint32_t of,
                             const struct ni_place_end *e) {
  const bool is_in_order = own == of && x->out->slot[own].kind == NI_BLAME_COLL;
  const int64_t doubt = (int64_t)(NI_PLACE_DRIFT * (double)e->took_ns), off = x->overlap_ns + doubt;
  const int64_t most =
      e->took_ns / 2 > NI_PLACE_OVERLAP_LEAST_NS ? e->took_ns / 2 : NI_PLACE_OVERLAP_LEAST_NS;
  if (is_in_order)
    return INT64_MAX / 2;
  return off < most ? off : most;
}

/*
 * The latest end before an operation of slot `own` that starts at t, on the slots of a set. Of their last two
 * operations.
 */
static struct ni_place_end find_end_before(const struct ni_places *x, uint64_t set, uint32_t own, int64_t t) {
  struct ni_place_end best = {0};
  for (; set; set &= set - 1) {
    const uint32_t of = (uint32_t)__builtin_ctzll(set);
    const struct ni_place_end *e = x->end[of];
    if (e->ns > t && e->ns - t > measure_slack(x, own, of, e))
      e++;
    if (e->ns > t && e->ns - t > measure_slack(x, own, of, e))
      continue;
    if (e->ns > best.ns)
      best = *e;
  }
  if (best.ns > t)
    best.ns = t;
  return best;
}

/*
 * Something ends when the operation starts: then the operation waited for that, though the stamp of the end
 * lies further behind its start than stamps are normally off. It is nothing next to the time in question.
 */
/* NI_BLAME_BURST_US: what is shorter is no pause in any case */
#define PAUSE_LEAST_NS INT64_C(3000000)

static bool has_end_at_start(const struct ni_places *x, int64_t start, int64_t idle) {
  for (uint64_t set = x->heads; set; set &= set - 1) {
    const int64_t behind = x->end[__builtin_ctzll(set)][0].ns - start;
    if (behind > 0 && (double)behind <= NI_PLACE_ENDS_WITH * (double)idle)
      return true;
  }
  return false;
}

/* What came with the last operation of its group of messages, and so waited for the same? */
static bool began_with_last(const struct ni_places *x, const struct ni_blame_op *op, uint32_t group) {
  return x->began[group] && op->start_ns - x->began[group] < x->overlap_ns;
}

/* What the operation waited for where the gap is much longer than the baseline: anything that ended late. */
static struct ni_place_end find_late_end(const struct ni_places *x, const struct ni_blame_op *op,
                                         uint32_t group, float baseline_us, struct ni_place_end main) {
  const float least_own_us = ni_baseline_least_own(baseline_us, (float)(op->start_ns - main.ns) / 1e3f);
  if (isnan(least_own_us))
    return main;
  const struct ni_place_end e =
      find_end_before(x, x->heads, group, op->start_ns - (int64_t)(least_own_us * 1e3f));
  return e.ns > main.ns ? e : main;
}

/* Where the log states which message is which. Those of a group come in any order. */
static bool misses_messages(struct ni_places *x, const struct ni_blame_op *op) {
  uint64_t *last = &x->last_pair[op->slot];
  const bool misses = op->paired && *last && op->sn > *last && op->sn - *last < MISSING_MOST;
  if (op->paired)
    *last = op->sn + 1;
  return misses;
}

/*
 * Is no record of its function missing before it, or as many as each time in its place? What lies between is
 * not known else. Where as many are missing each time, as a size that is left out, all its ranks had as many
 * operations there, and waited for each other in them: the rank's own time is what it was late by in the last
 * part. Messages of a group come in any order.
 */
static bool follows_last_record(struct ni_places *x, const struct ni_blame_op *op, uint32_t key,
                                bool *misses) {
  const bool coll = x->out->slot[op->slot].kind == NI_BLAME_COLL;
  uint64_t *sn = ni_place_last_sn(x, op);
  const uint64_t missing = coll && *sn ? op->sn - *sn : 0;
  const bool follows = missing == 0 || (key != NI_BLAME_NONE && missing == x->key[key].missing);
  if (key != NI_BLAME_NONE)
    x->key[key].missing = missing;
  *sn = op->sn + 1;
  *misses = coll ? !follows && missing < MISSING_MOST : misses_messages(x, op);
  return follows;
}

struct ni_place_gap ni_places_measure_gap(struct ni_places *x, const struct ni_blame_op *op) {
  const uint32_t group = x->group[op->slot];
  const bool coll = x->out->slot[op->slot].kind == NI_BLAME_COLL;
  bool with = !coll && began_with_last(x, op, group);
  struct ni_place_gap g = {.own = -1,
                           .idle = -1,
                           .cycle = -1,
                           .key = with ? x->key_of_group[group] : find_or_add_key(x, op),
                           .extra = ni_place_is_extra(x, op),
                           .main = x->main_of_group[group]};
  const struct ni_baseline none = {.us = NAN, .waits_for = UINT64_C(1) << group},
                           *u = g.key == NI_BLAME_NONE ? &none : &x->key[g.key].baseline;
  if (!with) {
    const struct ni_place_end main = find_end_before(x, u->waits_for, group, op->start_ns);
    /*
     * The last ends on the slot are of messages that began just before it: it waited for what these waited
     * for.
     */
    with = !coll && !main.ns && g.main.ns;
    if (with)
      g.key = x->key_of_group[group];
    else
      g.main = main;
  }
  /*
   * What began as soon as it was launched waited for the CPU, and for nothing that ended before. Where that
   * is rare the CPU itself may have waited for that end: a host that stops for a slow network launches late.
   */
  const bool waited_for_cpu = op->launched_late && x->waits_for_cpu;
  if (g.main.ns && !with && !waited_for_cpu)
    g.main = find_late_end(x, op, group, u->us, g.main);
  x->key_of_group[group] = g.key;
  x->main_of_group[group] = g.main;
  const bool follows = follows_last_record(x, op, g.key, &g.misses);
  const bool has_own_time = follows && g.main.ns && !with && g.key != NI_BLAME_NONE;
  if (!has_own_time)
    return g;
  const int64_t last = find_end_before(x, x->heads, group, op->start_ns).ns;
  g.own = op->start_ns - g.main.ns;
  g.idle = op->start_ns - (x->started > last ? x->started : last);
  if (x->began_before[group])
    g.cycle = op->start_ns - x->began_before[group];
  if (g.idle > PAUSE_LEAST_NS && has_end_at_start(x, op->start_ns, g.idle))
    g.idle = 0;
  return g;
}

void ni_places_count(struct ni_places *x, const struct ni_blame_op *op, uint32_t at) {
  uint32_t group = x->group[op->slot];
  struct ni_place_end *end = x->end[group];
  x->began_before[group] = x->began[group];
  x->started = x->began[group] = op->start_ns;
  x->position[group] += !ni_place_is_extra(x, op);
  x->index[group] += !ni_place_is_extra(x, op);
  x->messages[op->slot]++;
  x->last_what = op->what + 1;
  if (op->end_ns < end[0].ns)
    return;
  end[1] = end[0];
  end[0] = (struct ni_place_end){op->end_ns, op->end_ns - op->start_ns, at};
}

/*
 * Where nothing tells whether another slot is waited for (a message that always takes as long), the places of
 * which it is known do: a rank computes the same layers in many of them.
 */
static void settle_alternatives(struct ni_places *x) {
  for (uint32_t i = 0; i < NI_PLACE_KEYS; i++) {
    struct ni_baseline *u = &x->key[i].baseline;
    bool is_confirmed = false, is_alternative = false;
    if (!x->key[i].name || isnan(u->alternative_us))
      continue;
    for (uint32_t k = 0; k < NI_PLACE_KEYS; k++) {
      const struct ni_baseline *v = &x->key[k].baseline;
      const bool is_like = x->key[k].name && ni_place_slot(&x->key[k]) == ni_place_slot(&x->key[i]);
      if (!is_like || !v->steady || !isnan(v->alternative_us))
        continue;
      is_confirmed |= fabsf(u->us - v->us) <= SAME_LAYER * v->us;
      is_alternative |= fabsf(u->alternative_us - v->us) <= SAME_LAYER * v->us;
    }
    if (is_confirmed || !is_alternative)
      continue;
    u->us = u->alternative_us;
    u->waits_for |= UINT64_C(1) << u->alternative_slot;
    u->alone = false;
  }
}

/*
 * Is the next operation of a place one of its samples? `steady` counts those that are taken; the last chosen
 * one of a place may be the whole chunk's.
 */
static bool is_drawn(struct ni_place_key *key) {
  return key->steady < NI_BASELINE_SAMPLES &&
      key->n-- % (1 + key->baseline.samples / NI_BASELINE_SAMPLES) == 0;
}

/*
 * Goes through the operations; gap NULL: counts them in their places; else the times since the last end on
 * each slot of every so many go there.
 */
static void sample_gaps(struct ni_places *x, const struct ni_blame_op *op, size_t n, struct ni_step_mark mark,
                        const uint32_t *of, float *gap) {
  uint32_t slots = x->out->n_slots;
  rewind_all(x);
  for (size_t i = 0; i < n; i++, op++) {
    bool ends = ni_steps_advance(&mark, op);
    if (ends && !mark.n)
      ni_places_next_step(x);
    const uint32_t group = x->group[op->slot];
    const bool coll = x->out->slot[op->slot].kind == NI_BLAME_COLL;
    const uint32_t at = coll || !began_with_last(x, op, group) ? find_or_add_key(x, op) : NI_BLAME_NONE;
    struct ni_place_key *key = at == NI_BLAME_NONE ? NULL : &x->key[at];
    if (key && !gap)
      key->n++;
    else if (key && is_drawn(key) && find_end_before(x, UINT64_C(1) << group, group, op->start_ns).ns) {
      float *to = gap + ((size_t)of[at] + key->steady++) * slots;
      for (uint32_t k = 0; k < slots; k++) {
        int64_t e = find_end_before(x, UINT64_C(1) << k, group, op->start_ns).ns;
        to[k] = e ? (float)(op->start_ns - e) / 1e3f : INFINITY;
      }
    }
    ni_places_count(x, op, 0);
    if (ends && mark.n)
      ni_places_next_step(x);
  }
}

/* The baseline of each place, and what it waits for: by samples. */
static int find_baselines(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                          const struct ni_step_mark *mark) {
  uint32_t slots = x->out->n_slots, of[NI_PLACE_KEYS] = {0}, all = 0;
  double steady = 0, alone = 0;
  sample_gaps(x, op, n, *mark, of, NULL);
  for (uint32_t i = 0; i < NI_PLACE_KEYS; i++) {
    uint32_t samples = x->key[i].baseline.samples = x->key[i].n;
    of[i] = all;
    all += samples < NI_BASELINE_SAMPLES ? samples : NI_BASELINE_SAMPLES;
  }
  float *gap = malloc(((size_t)all + 1) * slots * sizeof *gap);
  if (!gap)
    return -ENOMEM;
  sample_gaps(x, op, n, *mark, of, gap);
  for (uint32_t i = 0; i < NI_PLACE_KEYS; i++) {
    struct ni_place_key *k = &x->key[i];
    if (!k->name)
      continue;
    ni_baseline_find(&k->baseline, gap + (size_t)of[i] * slots, k->steady, slots, ni_place_slot(k),
                     (k->name - 1) % NI_PLACE_POSITIONS == 0, (float)x->overlap_ns / 1e3f);
    const double own_us = (double)k->baseline.us * k->baseline.samples;
    if (x->inner[ni_place_slot(k)] && k->baseline.steady)
      steady += own_us;
    if (x->inner[ni_place_slot(k)] && k->baseline.alone)
      alone += own_us;
    k->n = k->steady = 0;
  }
  free(gap);
  settle_alternatives(x);
  x->alone = alone >= ALONE_PART * steady;
  return 0;
}

/* So many of a rank's operations are launched late where its CPU is slow; of others one in six at most. */
#define LATE_PART 0.25

static bool is_often_launched_late(const struct ni_blame_op *op, size_t n) {
  size_t late = 0;
  for (size_t i = 0; i < n; i++)
    late += op[i].launched_late;
  return (double)late >= LATE_PART * (double)n;
}

int ni_places_find(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                   const struct ni_step_mark *mark) {
  int e = ni_overlaps_measure(x->out, op, n, &x->overlap_ns);
  if (e < 0)
    return e;
  ni_overlaps_find_slots(x->out, op, n, x->overlap_ns);
  x->waits_for_cpu = is_often_launched_late(op, n);
  ni_usual_step_group(x, op, n);
  if ((e = ni_usual_step_count(x, op, n, *mark)) < 0)
    return e;
  e = find_baselines(x, op, n, mark);
  rewind_all(x);
  return e;
}

void ni_places_free(struct ni_places *x) {
  free(x->extra);
  x->extra = NULL;
}
