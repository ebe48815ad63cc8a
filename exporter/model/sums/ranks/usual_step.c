#include "usual_step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantile.h"

/* What is extra makes its steps longer by an operation in nine of ten. */
enum { EXTRA_OF_TEN = 9 };
/* times what single steps have more or fewer of an operation: it adds up from step to step */
#define VARIES_FAR 3.0

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
    of[x->group[op->slot]].in_step += !ni_place_is_extra(x, op);
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
    if (!*ni_place_last_sn(x, op) && x->out->slot[op->slot].kind == NI_BLAME_COLL)
      x->base[op->slot] += op->sn;
    *ni_place_last_sn(x, op) = 1;
    if (op->paired && n[op->slot] == 0 && !ni_places_is_group(x->out, op->slot))
      x->base[op->slot] = op->sn;
    n[x->group[op->slot]] += !ni_place_is_extra(x, op);
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

void ni_usual_step_group(struct ni_places *x, const struct ni_blame_op *op, size_t n) {
  group_messages(x);
  find_inner_slots(x, op, n);
}

int ni_usual_step_count(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                        struct ni_step_mark mark) {
  const int e = find_extra(x, op, n, mark);
  if (e < 0)
    return e;
  count_per_step(x, op, n, mark);
  leave_out_varying(x, op, n, mark);
  return 0;
}
