#include "places.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantile.h"

/* of the own time in places that are alone: then only these are compared */
#define ALONE_PART 0.4
/* What is more than that in a row has changed places, as where a host's clock was set back. */
enum { MISSING_MOST = 1000 };
/* What is extra makes its steps longer by an operation in nine of ten. */
enum { EXTRA_OF_TEN = 9 };
/* times what single steps have more or fewer of an operation: it adds up from step to step */
#define VARIES_FAR 3.0
#define SAME_LAYER 0.025f /* baselines of places with the same layers differ by no more */

/* Numbers of the places in a step; behind them come those of what is extra. */
enum { POSITIONS_IN_STEP = NI_PLACE_POSITIONS / 2 };

static bool is_extra(const struct ni_places *x, const struct ni_blame_op *op) {
  if (op->what >= x->n_extra)
    return false;
  return x->extra[op->what] || (x->last_what == op->what + 1 && x->extra[x->n_extra + op->what]);
}

static uint32_t number_in_step(const struct ni_places *x, const struct ni_blame_op *op, uint32_t slot) {
  if (is_extra(x, op))
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

bool ni_places_is_group(const struct ni_blame_rank *o, uint32_t slot) {
  uint32_t peers = 0;
  for (uint32_t k = 0; k < o->n_slots; k++)
    peers += o->slot[k].comm == o->slot[slot].comm && o->slot[k].kind == NI_BLAME_SEND;
  return o->slot[slot].kind != NI_BLAME_COLL && peers > 2;
}

static void group_messages(struct ni_places *x) {
  const struct ni_blame_rank *o = x->out;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    x->group[i] = (uint16_t)i;
    for (uint32_t k = 0; k < i && ni_places_is_group(o, i); k++)
      if (o->slot[k].comm == o->slot[i].comm && o->slot[k].kind != NI_BLAME_COLL) {
        x->group[i] = (uint16_t)k;
        break;
      }
    x->heads |= UINT64_C(1) << x->group[i];
  }
}

/*
 * Before a collective, a group of messages, or a message to the next stage a rank computes; where it waits
 * for a message it does not. In a pipeline without tensor parallelism nearly all computing lies before what
 * is sent.
 */
static bool can_be_inner(const struct ni_blame_rank *o, uint32_t slot) {
  return o->slot[slot].kind != NI_BLAME_RECV || ni_places_is_group(o, slot);
}

static void find_inner_slots(struct ni_places *x, const struct ni_blame_op *op, size_t n) {
  const struct ni_blame_rank *o = x->out;
  uint64_t messages[NI_BLAME_SLOTS] = {0}, ops[NI_BLAME_SLOTS] = {0}, most = 0;
  for (size_t i = 0; i < n; i++)
    messages[op[i].slot]++;
  /* messages to many peers go out together: one to each of them is one operation */
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (messages[i] > ops[x->group[i]])
      ops[x->group[i]] = messages[i];
  for (uint32_t i = 0; i < o->n_slots; i++) {
    if (!can_be_inner(o, i))
      ops[i] = 0;
    if (ops[i] > most)
      most = ops[i];
  }
  for (uint32_t i = 0; i < o->n_slots; i++)
    x->inner[i] = ops[i] * 2 >= most && ops[i];
}

static uint64_t *last_sn_of(struct ni_places *x, const struct ni_blame_op *op) {
  return &x->last_sn[x->function[op->token]];
}

/* What the steps of the first operations show of one collective. */
struct in_steps {
  uint32_t last, with,
      more; /* the last step that has it, + 1; steps with it; those that have more than most */
};

/* colls: [step][slot], collectives of so many steps. most: by slot, of most steps. */
static void find_usual_colls(const struct ni_places *x, const uint16_t *colls, uint32_t steps, float *scratch,
                             float *most) {
  const uint32_t slots = x->out->n_slots;
  for (uint32_t k = 0; k < slots; k++) {
    for (uint32_t i = 0; i < steps; i++)
      scratch[i] = colls[(size_t)i * slots + k];
    most[k] = ni_blame_quantile(scratch, steps, 0.5);
  }
}

/* Which step each operation is in. Returns how many end: the one behind them may not be whole. */
static uint32_t number_steps(const struct ni_blame_op *op, size_t n, struct ni_step_mark mark,
                             uint32_t *step_of) {
  uint32_t step = 0;
  for (size_t i = 0; i < n; i++) {
    const bool ends = ni_steps_advance(&mark, &op[i]);
    step += ends && !mark.n;
    step_of[i] = step;
    step += ends && mark.n;
  }
  return step;
}

static void count_colls(const struct ni_places *x, const struct ni_blame_op *op, size_t n,
                        const uint32_t *step_of, uint16_t *colls) {
  for (size_t i = 0; i < n; i++) {
    uint16_t *count = &colls[(size_t)step_of[i] * x->out->n_slots + op[i].slot];
    *count += x->out->slot[op[i].slot].kind == NI_BLAME_COLL && *count < UINT16_MAX;
  }
}

static void count_step_with(struct in_steps *w, uint32_t step, bool has_more) {
  if (w->last == step + 1)
    return;
  w->last = step + 1;
  w->with++;
  w->more += has_more;
}

/* what: of each kind of operation, then of each right behind one of its kind. */
static void count_steps_with(const struct ni_places *x, const struct ni_blame_op *op, size_t n,
                             const uint32_t *step_of, const uint16_t *colls, const float *most,
                             struct in_steps *what) {
  for (size_t i = 0; i < n; i++) {
    const bool counts = op[i].what < x->n_extra && x->out->slot[op[i].slot].kind == NI_BLAME_COLL;
    if (!counts)
      continue;
    const bool has_more = (float)colls[(size_t)step_of[i] * x->out->n_slots + op[i].slot] > most[op[i].slot];
    count_step_with(&what[op[i].what], step_of[i], has_more);
    if (i && op[i - 1].what == op[i].what)
      count_step_with(&what[x->n_extra + op[i].what], step_of[i], has_more);
  }
}

static bool is_one_more(const struct in_steps *w, uint32_t steps) {
  return w->with > 0 && w->with * 2 < steps && w->more * 10 >= w->with * EXTRA_OF_TEN;
}

/* most: by slot, collectives of most steps. */
static bool has_one_communicator(const struct ni_blame_rank *o, const float *most) {
  uint32_t usual = 0;
  for (uint32_t k = 0; k < o->n_slots; k++)
    usual += most[k] > 0 || o->slot[k].kind != NI_BLAME_COLL;
  return o->n_slots == 1 || usual == 1;
}

/*
 * Fills x->extra: what is one operation more than most steps have on its slot, in fewer than half of them;
 * and one_comm of the rank.
 * Sizes that come now and then in the place of another one are none.
 */
static int find_extra(struct ni_places *x, const struct ni_blame_op *op, size_t n, struct ni_step_mark mark) {
  const uint32_t slots = x->out->n_slots;
  float most[NI_BLAME_SLOTS];
  x->n_extra = x->out->n_tokens;
  x->extra = calloc(2 * (size_t)x->n_extra + 1, sizeof *x->extra);
  struct in_steps *what = calloc(2 * (size_t)x->n_extra + 1, sizeof *what);
  uint32_t *step_of = malloc((n + 1) * sizeof *step_of);
  const uint32_t steps = step_of ? number_steps(op, n, mark, step_of) : 0;
  uint16_t *colls = calloc((size_t)(steps + 1) * slots, sizeof *colls);
  float *scratch = malloc((steps + 1) * sizeof *scratch);
  const bool has_room = x->extra && what && step_of && colls && scratch;
  if (has_room) {
    count_colls(x, op, n, step_of, colls);
    find_usual_colls(x, colls, steps, scratch, most);
    x->out->one_comm = has_one_communicator(x->out, most);
    count_steps_with(x, op, n, step_of, colls, most, what);
    for (uint32_t i = 0; i < 2 * x->n_extra; i++)
      x->extra[i] = is_one_more(&what[i], steps);
  }
  free(what);
  free(step_of);
  free(colls);
  free(scratch);
  return has_room ? 0 : -ENOMEM;
}

/* How far the operations of a slot are from as many in each step, */
struct variation {
  uint64_t in_step, sum; /* now; since the first mark */
  uint64_t off;          /* sum over steps of how many there are more or fewer, */
  uint32_t steps_off;    /* and so many steps have two more or fewer */
  double far;            /* in all there were so many more or fewer, at most */
};

static void count_variation(struct variation *v, uint32_t each, uint32_t steps) {
  const double off = fabs((double)v->in_step - each);
  v->sum += v->in_step;
  v->off += (uint64_t)off;
  v->steps_off += off > 1;
  v->far = fmax(v->far, fabs((double)v->sum - (double)each * steps));
  v->in_step = 0;
}

/*
 * A step has as many operations as it happens to have, as where tokens are generated until an answer ends:
 * most steps have more or fewer, and these add up. Where delays move operations to the next step they do not.
 */
static bool is_by_chance(const struct variation *v, uint32_t steps) {
  return v->steps_off * 2 > steps && v->far > VARIES_FAR * (double)v->off / steps + 2;
}

/* Clears per_step of slots of which it is chance how many operations a step has. */
static void leave_out_varying(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                              struct ni_step_mark mark) {
  struct variation of[NI_BLAME_SLOTS] = {{0}};
  uint32_t marks = 0;
  x->last_what = 0;
  for (size_t i = 0; i < n; i++, op++) {
    of[x->group[op->slot]].in_step += !is_extra(x, op);
    x->last_what = op->what + 1;
    if (!ni_steps_advance(&mark, op))
      continue;
    for (uint32_t k = 0; marks && k < x->out->n_slots; k++)
      count_variation(&of[k], x->per_step[k], marks);
    if (marks++ == 0)
      memset(of, 0, sizeof of);
  }
  for (uint32_t k = 0; marks > 2 && k < x->out->n_slots; k++) {
    if (x->out->slot[k].kind != NI_BLAME_COLL || !is_by_chance(&of[k], marks - 1))
      continue;
    x->per_step[k] = 0;
    x->out->ops_vary = true;
  }
}

/*
 * How many operations of each slot a step has, and where the log begins in it: numbers of collectives count
 * from the begin of the communicator, those of messages where the log states them.
 */
static void count_per_step(struct ni_places *x, const struct ni_blame_op *op, size_t n_ops,
                           struct ni_step_mark mark) {
  uint64_t n[NI_BLAME_SLOTS] = {0}, first[NI_BLAME_SLOTS] = {0}, last[NI_BLAME_SLOTS] = {0};
  uint32_t marks = 0;
  for (size_t i = 0; i < n_ops; i++, op++) {
    if (!*last_sn_of(x, op) && x->out->slot[op->slot].kind == NI_BLAME_COLL)
      x->base[op->slot] += op->sn;
    *last_sn_of(x, op) = 1;
    if (op->paired && n[op->slot] == 0 && !ni_places_is_group(x->out, op->slot))
      x->base[op->slot] = op->sn;
    n[x->group[op->slot]] += !is_extra(x, op);
    x->last_what = op->what + 1;
    if (!ni_steps_advance(&mark, op))
      continue;
    if (marks++ == 0)
      memcpy(first, n, sizeof n);
    memcpy(last, n, sizeof n);
  }
  for (uint32_t k = 0; k < x->out->n_slots && marks > 2; k++) {
    double each = (double)(last[k] - first[k]) / (marks - 1);
    uint32_t whole = (uint32_t)(each + 0.5);
    /*
     * Where delays change the order of overlapped operations, the mark falls some operations of another slot
     * earlier or later: not a whole step.
     */
    x->per_step[k] = whole && fabs(each - whole) <= fmax(2, 0.6 * whole) / marks ? whole : 0;
    /* A log that does not say which message is which does not say where in a step it begins either. */
    if (x->out->slot[k].kind != NI_BLAME_COLL && x->base[k] >= NI_PAIR_APART)
      x->per_step[k] = 0;
  }
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
  uint64_t *sn = last_sn_of(x, op);
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
                           .extra = is_extra(x, op),
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
  x->position[group] += !is_extra(x, op);
  x->index[group] += !is_extra(x, op);
  x->messages[op->slot]++;
  x->last_what = op->what + 1;
  if (op->end_ns < end[0].ns)
    return;
  end[1] = end[0];
  end[0] = (struct ni_place_end){op->end_ns, op->end_ns - op->start_ns, at};
}

/*
 * So many operations of a slot that begin before the last one of another has ended; of these by less than
 * half of the shorter one; by less than half of the earlier one; and so many that begin up to as much behind
 * that end as stamps can be off, the first ones since it began.
 */
struct followed {
  uint32_t over, little, little_of_earlier, behind;
};

enum { FOLLOWED_MIN = 8 };
/* of them by less than half: the one follows the other, and stamps are off */
#define FOLLOWED 0.8

static int64_t measure_length(const struct ni_blame_op *op) { return op->end_ns - op->start_ns; }

/* Does an operation begin before an earlier one has ended, by less than half of the shorter one? */
static bool overlaps_little(const struct ni_blame_op *earlier, const struct ni_blame_op *op) {
  const int64_t overlap = earlier->end_ns - op->start_ns;
  const int64_t mine = measure_length(op), theirs = measure_length(earlier);
  return overlap > 0 && overlap * 2 < (mine < theirs ? mine : theirs);
}

/*
 * The same where an operation is shorter than stamps are off, as the norm of the gradients behind their last
 * bucket: by less than half of the earlier one. What overlaps with it begins before its end, too, but
 * never a little behind it.
 */
static bool overlaps_earlier_little(const struct ni_blame_op *earlier, const struct ni_blame_op *op,
                                    const struct followed *f) {
  const int64_t overlap = earlier->end_ns - op->start_ns;
  const bool off_both_ways = f->behind >= FOLLOWED_MIN && f->behind * 8 >= f->over;
  return off_both_ways && overlap > 0 && overlap < NI_PLACE_OVERLAP_MOST_NS &&
      overlap * 2 < measure_length(earlier);
}

static bool begins_behind(const struct ni_blame_op *earlier, const struct ni_blame_op *op,
                          const struct ni_blame_op *own) {
  const bool first = !own || own->start_ns < earlier->start_ns;
  return first && op->start_ns - earlier->end_ns <= NI_PLACE_OVERLAP_MOST_NS;
}

/* Passes over the operations: who begins behind whom; by how much they overlap; and the list of these. */
enum overlap_pass { COUNT_BEHIND, COUNT_LITTLE, LIST_LITTLE, OVERLAP_PASSES };

struct overlaps {
  struct followed *pair; /* of each two slots */
  bool of_earlier;       /* too few by the shorter one's length: the earlier one's is the measure */
  float *ns;
  size_t n;
};

static bool follows_slot(const struct ni_blame_rank *o, const struct overlaps *x, uint32_t of,
                         uint32_t slot) {
  const struct followed *f = &x->pair[of * o->n_slots + slot];
  if (of == slot)
    return o->slot[slot].kind == NI_BLAME_COLL;
  return f->over >= FOLLOWED_MIN && (x->of_earlier ? f->little_of_earlier : f->little) >= FOLLOWED * f->over;
}

/* One operation; before[] has the last one of each slot. */
static void count_overlaps(const struct ni_blame_rank *o, struct overlaps *x,
                           const struct ni_blame_op **before, const struct ni_blame_op *op,
                           enum overlap_pass pass) {
  for (uint32_t k = 0; k < o->n_slots; k++) {
    struct followed *f = &x->pair[k * o->n_slots + op->slot];
    const struct ni_blame_op *earlier = before[k];
    if (!earlier)
      continue;
    const bool ended = earlier->end_ns <= op->start_ns;
    if (pass == COUNT_BEHIND) {
      f->over += !ended;
      f->behind += ended && k != op->slot && begins_behind(earlier, op, before[op->slot]);
    } else if (pass == COUNT_LITTLE) {
      f->little += overlaps_little(earlier, op);
      f->little_of_earlier += overlaps_little(earlier, op) || overlaps_earlier_little(earlier, op, f);
    } else {
      const bool little =
          overlaps_little(earlier, op) || (x->of_earlier && overlaps_earlier_little(earlier, op, f));
      if (little && follows_slot(o, x, k, op->slot))
        x->ns[x->n++] = (float)(earlier->end_ns - op->start_ns);
    }
  }
  before[op->slot] = op;
}

/* Room for the list, and by whose length it is. */
static bool prepare_overlap_list(const struct ni_blame_rank *o, struct overlaps *x) {
  size_t most = 0, by_shorter = 0;
  for (uint32_t k = 0; k < o->n_slots; k++) {
    for (uint32_t i = 0; i < o->n_slots; i++) {
      const struct followed *f = &x->pair[k * o->n_slots + i];
      most += f->little_of_earlier;
      by_shorter += follows_slot(o, x, k, i) ? f->little : 0;
    }
  }
  x->of_earlier = by_shorter < FOLLOWED_MIN;
  x->ns = malloc((most + 1) * sizeof *x->ns);
  return x->ns;
}

/*
 * By how much stamps of back-to-back kernels overlap: nineteen in twenty of those that do. Collectives of
 * one communicator follow each other in any case. Of two slots one follows the other where its operations
 * hardly ever begin long before the other's end: what it overlaps with begins anywhere in it. What overlaps
 * by half of the shorter one and more are calls that NCCL has put into one kernel.
 */
static int measure_stamp_overlap(struct ni_places *x, const struct ni_blame_op *op, size_t n) {
  const uint32_t slots = x->out->n_slots;
  struct overlaps of = {.pair = calloc((size_t)slots * slots + 1, sizeof *of.pair)};
  for (int pass = 0; of.pair && pass < OVERLAP_PASSES; pass++) {
    const struct ni_blame_op *before[NI_BLAME_SLOTS] = {NULL};
    if (pass == LIST_LITTLE && !prepare_overlap_list(x->out, &of))
      break;
    for (size_t i = 0; i < n; i++)
      count_overlaps(x->out, &of, before, &op[i], (enum overlap_pass)pass);
  }
  const bool had_room = of.ns != NULL;
  const float most = of.n ? ni_blame_quantile(of.ns, of.n, 0.95) : 0;
  free(of.pair);
  free(of.ns);
  x->overlap_ns =
      (int64_t)fminf(fmaxf(most, (float)NI_PLACE_OVERLAP_LEAST_NS), (float)NI_PLACE_OVERLAP_MOST_NS);
  return had_room ? 0 : -ENOMEM;
}

/*
 * Which slots are overlapped: while an operation of theirs runs, operations of another one begin, more often
 * (for each of theirs) than the other way round. Overlapped gradients hold many operations of the layers;
 * these see the begin of one of the gradients now and then.
 */
static void find_overlapped_slots(struct ni_blame_rank *o, const struct ni_blame_op *op, size_t n,
                                  int64_t overlap_ns) {
  uint32_t within[NI_BLAME_SLOTS][NI_BLAME_SLOTS] = {0}, ops[NI_BLAME_SLOTS] = {0};
  int64_t end[NI_BLAME_SLOTS] = {0};
  for (size_t i = 0; i < n; i++, op++) {
    for (uint32_t k = 0; k < o->n_slots; k++) /* begins as one kernel with it: a group */
      within[k][op->slot] += o->slot[k].comm != o->slot[op->slot].comm && end[k] > op->start_ns + overlap_ns;
    end[op->slot] = op->end_ns;
    ops[op->slot]++;
  }
  for (uint32_t a = 0; a < o->n_slots; a++)
    for (uint32_t c = 0; c < o->n_slots && ops[a]; c++) {
      double mine = (double)within[a][c] / ops[a], theirs = ops[c] ? (double)within[c][a] / ops[c] : 0;
      if (mine >= 0.1 && mine > theirs)
        o->slot[a].overlapped = true;
    }
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
  int e = measure_stamp_overlap(x, op, n);
  if (e < 0)
    return e;
  find_overlapped_slots(x->out, op, n, x->overlap_ns);
  group_messages(x);
  x->waits_for_cpu = is_often_launched_late(op, n);
  find_inner_slots(x, op, n);
  if ((e = find_extra(x, op, n, *mark)) < 0)
    return e;
  count_per_step(x, op, n, *mark);
  leave_out_varying(x, op, n, *mark);
  e = find_baselines(x, op, n, mark);
  rewind_all(x);
  return e;
}

void ni_places_free(struct ni_places *x) {
  free(x->extra);
  x->extra = NULL;
}
