#include "pass.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "steps.h"
#include "usual.h"

enum { KEY_PLACES = 2 * NI_BLAME_KEYS, POSITIONS = 4096, TOKENS_MAX = 512 };

#define ALONE_PART 0.4     /* of the own time in places that are alone: then only these are compared */
#define SAME_LAYER 0.025f  /* usual times of places with the same layers differ by no more */

/* A place in the step: slot and number in it. */
struct key {
  uint32_t name;               /* slot * POSITIONS + number + 1; 0: free */
  uint32_t n;
  struct ni_usual usual;
  double own;                  /* of `steady` gaps, that are no pauses */
  uint32_t steady;
};

struct token {
  float least;                 /* of the bin */
  uint32_t n, slot, function;  /* function: the first token of its function on its slot, whose numbers it shares */
  uint64_t last_sn, ops;
  bool any;
};

struct pass {
  struct ni_blame *b;
  struct ni_blame_rank *out;
  struct ni_blame_op *op;      /* the chunk */
  size_t n;
  struct key key[KEY_PLACES];
  uint32_t n_keys;
  bool alone;                  /* places that are alone have enough of the own time: they are judged by */
  struct token token[TOKENS_MAX];
  struct ni_step_mark mark;
  /* Along the way, from one chunk to the next: */
  int64_t end[NI_BLAME_SLOTS][2]; /* of the last two operations of a slot */
  int64_t started, began[NI_BLAME_SLOTS]; /* the last operation; of each group */
  /* Messages to many peers (experts) go out as one group: of their slots the first stands for all, in places and in what is waited for. */
  uint16_t group[NI_BLAME_SLOTS];
  uint64_t messages[NI_BLAME_SLOTS];
  uint32_t key_of_group[NI_BLAME_SLOTS]; /* of the first operation that began with the last one */
  bool inner[NI_BLAME_SLOTS];  /* its places are compared: slots with many operations a step lie closest to the computing */
  uint32_t position[NI_BLAME_SLOTS];
  /* Operations of a slot come in one order, and as many in each step: their number in it does not depend on when the step ended. */
  uint32_t per_step[NI_BLAME_SLOTS]; /* 0: as many as there happen to be */
  uint64_t index[NI_BLAME_SLOTS], base[NI_BLAME_SLOTS];
  uint32_t step, bin, bins_max;
  size_t cap_sample, cap_cells;
};

/* What precedes an operation. ns; -1: not known. */
struct gap {
  int64_t own;                 /* since the last end of what it waits for */
  int64_t idle;                /* since anything ended or started */
  uint32_t key;
};

static uint32_t key_of(struct pass *x, uint32_t slot, uint32_t position) {
  uint32_t name = slot * POSITIONS + (position < POSITIONS - 1 ? position : POSITIONS - 1) + 1;
  for (uint32_t at = (uint32_t)ni_mix(name) & (KEY_PLACES - 1);; at = (at + 1) & (KEY_PLACES - 1)) {
    if (x->key[at].name == name) return at;
    if (x->key[at].name) continue;
    if (x->n_keys == NI_BLAME_KEYS) return NI_BLAME_NONE;
    x->n_keys++;
    x->key[at] = (struct key){.name = name, .usual.us = NAN, .usual.or_us = NAN, .usual.waits_for = UINT64_C(1) << slot};
    return at;
  }
}

static void next_step(struct pass *x) { memset(x->position, 0, sizeof x->position); }

static uint32_t position_of(const struct pass *x, uint32_t slot) {
  return x->per_step[slot] ? (uint32_t)(x->index[slot] % x->per_step[slot]) : x->position[slot];
}

/* From the first operation on again. */
static void rewind_all(struct pass *x) {
  memset(x->end, 0, sizeof x->end);
  memcpy(x->index, x->base, sizeof x->index);
  memset(x->messages, 0, sizeof x->messages);
  memset(x->began, 0, sizeof x->began);
  for (size_t i = 0; i < TOKENS_MAX; i++) x->token[i].any = false;
  x->started = 0;
  next_step(x);
}

static bool grouped(const struct ni_blame_rank *o, uint32_t slot) {
  uint32_t peers = 0;
  for (uint32_t k = 0; k < o->n_slots; k++) peers += o->slot[k].comm == o->slot[slot].comm && o->slot[k].kind == NI_BLAME_SEND;
  return o->slot[slot].kind != NI_BLAME_COLL && peers > 2;
}

static void find_groups(struct pass *x) {
  const struct ni_blame_rank *o = x->out;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    x->group[i] = (uint16_t)i;
    for (uint32_t k = 0; k < i && grouped(o, i); k++)
      if (o->slot[k].comm == o->slot[i].comm && o->slot[k].kind != NI_BLAME_COLL) {
        x->group[i] = (uint16_t)k;
        break;
      }
  }
}

static void find_inner(struct pass *x) {
  const struct ni_blame_rank *o = x->out;
  uint64_t ops[NI_BLAME_SLOTS] = {0}, most = 0;
  for (size_t i = 0; i < x->n; i++) ops[x->group[x->op[i].slot]]++;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    if (o->slot[i].kind != NI_BLAME_COLL && !grouped(o, i)) ops[i] = 0;
    if (ops[i] > most) most = ops[i];
  }
  for (uint32_t i = 0; i < o->n_slots; i++) x->inner[i] = ops[i] * 4 >= most && ops[i];
}

/* How many operations of each slot a step has, and where the log begins in it: numbers of collectives count from the begin of the communicator. */
static void find_per_step(struct pass *x) {
  struct ni_step_mark mark = x->mark;
  uint64_t n[NI_BLAME_SLOTS] = {0}, first[NI_BLAME_SLOTS] = {0}, last[NI_BLAME_SLOTS] = {0};
  uint32_t marks = 0;
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_blame_op *op = &x->op[i];
    struct token *t = &x->token[x->token[op->token < TOKENS_MAX ? op->token : TOKENS_MAX - 1].function];
    bool ends = ni_steps_take(&mark, op);
    if (!t->any && x->out->slot[op->slot].kind == NI_BLAME_COLL) x->base[op->slot] += op->sn;
    t->any = true;
    n[x->group[op->slot]]++;
    if (!ends) continue;
    if (marks++ == 0) memcpy(first, n, sizeof n);
    memcpy(last, n, sizeof n);
  }
  for (uint32_t k = 0; k < x->out->n_slots && marks > 2; k++) {
    double each = (double)(last[k] - first[k]) / (marks - 1);
    uint32_t whole = (uint32_t)(each + 0.5);
    x->per_step[k] = whole && fabs(each - whole) <= 2.0 / marks ? whole : 0;
  }
}


/* The latest end of a slot at or before t; 0: none. Of its last two operations. */
static int64_t end_before(const struct pass *x, uint32_t slot, int64_t t) {
  int64_t e = x->end[slot][0] <= t ? x->end[slot][0] : x->end[slot][1];
  return e <= t ? e : 0;
}

/* False: a record of the same function on the slot is missing before this one, so what lies between is not known. Messages
 * of a group begin together, in any order. */
static bool follows(struct pass *x, const struct ni_blame_op *op) {
  struct token *t = &x->token[x->token[op->token < TOKENS_MAX ? op->token : TOKENS_MAX - 1].function];
  bool ok = !t->any || op->sn == t->last_sn + 1 || x->out->slot[op->slot].kind != NI_BLAME_COLL;
  t->any = true;
  t->last_sn = op->sn;
  return ok;
}

/* Takes one operation: its gap, and what the next ones need to know. */
static struct gap take(struct pass *x, const struct ni_blame_op *op) {
  uint32_t group = x->group[op->slot];
  struct gap g = {-1, -1, key_of(x, group, position_of(x, group))};
  uint64_t waits = g.key == NI_BLAME_NONE ? 0 : x->key[g.key].usual.waits_for;
  int64_t mine = 0, last = 0, *end = x->end[group];
  for (uint32_t i = 0; i < x->out->n_slots; i++) {
    int64_t e = end_before(x, i, op->start_ns);
    if (e > last) last = e;
    if (waits >> i & 1 && e > mine) mine = e;
  }
  float room = mine && waits ? ni_usual_room(x->key[g.key].usual.us, (float)(op->start_ns - mine) / 1e3f) : NAN;
  for (uint32_t i = 0; !isnan(room) && i < x->out->n_slots; i++) {
    int64_t e = end_before(x, i, op->start_ns - (int64_t)(room * 1e3f));
    if (e > mine) mine = e;
  }
  bool with = group != op->slot || x->out->slot[op->slot].kind != NI_BLAME_COLL ? op->start_ns - x->began[group] < 1000 && x->began[group] : false;
  if (with) g.key = x->key_of_group[group];
  else x->key_of_group[group] = g.key;
  if (follows(x, op) && mine && !with) {
    g.own = op->start_ns - mine;
    g.idle = op->start_ns - (x->started > last ? x->started : last);
  }
  x->started = x->began[group] = op->start_ns;
  x->position[group]++;
  x->index[group]++;
  x->messages[op->slot]++;
  if (op->end_ns >= end[0]) {
    end[1] = end[0];
    end[0] = op->end_ns;
  }
  return g;
}

/*
 * Which slots run beside: while an operation of theirs runs, operations of another one begin, more often (for each of
 * theirs) than theirs begin while one of the other runs. Overlapped gradients hold many operations of the layers; an operation
 * of a layer now and then sees the begin of one of the gradients.
 */
static int find_beside(struct pass *x) {
  struct ni_blame_rank *o = x->out;
  uint32_t (*within)[NI_BLAME_SLOTS] = calloc(NI_BLAME_SLOTS, sizeof *within), ops[NI_BLAME_SLOTS] = {0};
  int64_t end[NI_BLAME_SLOTS] = {0};
  if (!within) return -ENOMEM;
  for (size_t i = 0; i < x->n; i++) {
    const struct ni_blame_op *op = &x->op[i];
    for (uint32_t k = 0; k < o->n_slots; k++) /* begins as one kernel with it: a group */
      within[k][op->slot] += o->slot[k].comm != o->slot[op->slot].comm && end[k] > op->start_ns + 1000;
    end[op->slot] = op->end_ns;
    ops[op->slot]++;
  }
  for (uint32_t a = 0; a < o->n_slots; a++)
    for (uint32_t c = 0; c < o->n_slots && ops[a]; c++) {
      double mine = (double)within[a][c] / ops[a], theirs = ops[c] ? (double)within[c][a] / ops[c] : 0;
      if (mine >= 0.1 && mine > theirs) o->slot[a].beside = true;
    }
  free(within);
  return 0;
}

/* Puts the times since the last end on each slot into the samples of its place. */
static void sample_gaps(const struct pass *x, const struct ni_blame_op *op, float *gap) {
  for (uint32_t i = 0; i < x->out->n_slots; i++) {
    int64_t e = end_before(x, i, op->start_ns);
    gap[i] = e ? (float)(op->start_ns - e) / 1e3f : INFINITY;
  }
}

/*
 * Where nothing tells whether another slot is waited for (a message that always takes as long), the places of which it is known do: a rank
 * computes the same layers in many of them.
 */
static void settle(struct pass *x) {
  for (uint32_t i = 0; i < KEY_PLACES; i++) {
    struct ni_usual *u = &x->key[i].usual;
    bool as_is = false, other = false;
    if (!x->key[i].name || isnan(u->or_us)) continue;
    for (uint32_t k = 0; k < KEY_PLACES; k++) {
      const struct ni_usual *v = &x->key[k].usual;
      if (!x->key[k].name || (x->key[k].name - 1) / POSITIONS != (x->key[i].name - 1) / POSITIONS || !v->steady || !isnan(v->or_us)) continue;
      as_is |= fabsf(u->us - v->us) <= SAME_LAYER * v->us;
      other |= fabsf(u->or_us - v->us) <= SAME_LAYER * v->us;
    }
    if (as_is || !other) continue;
    u->us = u->or_us;
    u->waits_for |= UINT64_C(1) << u->or_slot;
    u->alone = false;
  }
}

/* What is usual in each place, and what it waits for: by samples of the chunk. */
static int find_usual(struct pass *x) {
  uint32_t slots = x->out->n_slots, *of = calloc(KEY_PLACES, sizeof *of), n_keys = 0;
  struct ni_step_mark mark = x->mark;
  float *gap = NULL;
  uint16_t *seen = calloc(KEY_PLACES, sizeof *seen);
  for (int pass = 0; of && seen && pass < 2; pass++) {
    /* The first pass counts, the second takes every so many; the last chosen one of a place may be the whole chunk's. */
    if (pass == 1) {
      for (uint32_t i = 0; i < KEY_PLACES; i++)
        if (x->key[i].name) of[i] = n_keys++;
      if (!(gap = malloc(((size_t)n_keys * NI_USUAL_SAMPLES + 1) * slots * sizeof *gap))) break;
    }
    mark = x->mark;
    rewind_all(x);
    for (size_t i = 0; i < x->n; i++) {
      const struct ni_blame_op *op = &x->op[i];
      bool ends = ni_steps_take(&mark, op);
      if (ends && !mark.n) next_step(x);
      uint32_t group = x->group[op->slot], key = key_of(x, group, position_of(x, group));
      if (key != NI_BLAME_NONE && pass == 0) x->key[key].n++;
      else if (key != NI_BLAME_NONE && seen[key] < NI_USUAL_SAMPLES && of[key] < n_keys &&
               x->key[key].n-- % (1 + x->key[key].usual.samples / NI_USUAL_SAMPLES) == 0 && end_before(x, group, op->start_ns))
        sample_gaps(x, op, gap + ((size_t)of[key] * NI_USUAL_SAMPLES + seen[key]++) * slots);
      (void)take(x, op);
      if (ends && mark.n) next_step(x);
    }
    for (uint32_t i = 0; pass == 0 && i < KEY_PLACES; i++) x->key[i].usual.samples = x->key[i].n;
  }
  int e = of && seen && gap ? 0 : -ENOMEM;
  double steady = 0, alone = 0;
  for (uint32_t i = 0; e == 0 && i < KEY_PLACES; i++) {
    struct key *k = &x->key[i];
    if (k->name) ni_usual_find(&k->usual, gap + (size_t)of[i] * NI_USUAL_SAMPLES * slots, seen[i], slots, (k->name - 1) / POSITIONS,
                               (k->name - 1) % POSITIONS == 0);
    bool inner = k->name && x->inner[(k->name - 1) / POSITIONS];
    if (inner && k->usual.steady) steady += k->usual.us;
    if (inner && k->usual.alone) alone += k->usual.us;
    k->n = 0;
  }
  free(of);
  free(seen);
  settle(x);
  x->alone = alone >= ALONE_PART * steady;
  free(gap);
  rewind_all(x);
  return e;
}

/* Two bins become one. */
void ni_blame_coarsen(struct ni_blame_rank *o) {
  uint32_t n = o->n_bins / 2;
  for (uint32_t i = 0; i < n; i++) {
    struct ni_blame_cell *a = &o->cell[2 * i], *c = a + 1;
    o->cell[i] = (struct ni_blame_cell){a->start_ns, a->dev + c->dev, a->usual + c->usual, a->burst + c->burst,
                                        a->exposed + c->exposed, a->hidden + c->hidden, a->places + c->places};
    for (uint32_t k = 0; k < o->max_slots; k++) {
      struct ni_blame_link_cell *p = &o->link_cell[(size_t)2 * i * o->max_slots + k], *q = p + o->max_slots;
      o->link_cell[(size_t)i * o->max_slots + k] = (struct ni_blame_link_cell){p->exec + q->exec, p->least + q->least, p->n + q->n};
    }
  }
  memset(&o->cell[n], 0, (o->n_bins - n) * sizeof *o->cell);
  memset(&o->link_cell[(size_t)n * o->max_slots], 0, (size_t)(o->n_bins - n) * o->max_slots * sizeof *o->link_cell);
  o->n_bins = n;
  o->bin_steps *= 2;
}

static void flush_tokens(struct pass *x) {
  struct ni_blame_link_cell *at = &x->out->link_cell[(size_t)x->bin * x->out->max_slots];
  for (uint32_t i = 0; i < x->out->n_tokens && i < TOKENS_MAX; i++) {
    struct token *t = &x->token[i];
    if (t->n) at[t->slot].least += t->least * (float)t->n;
    t->n = 0;
  }
}

static int to_bin(struct pass *x) {
  struct ni_blame_rank *o = x->out;
  flush_tokens(x);
  if (x->step / o->bin_steps >= x->bins_max) ni_blame_coarsen(o);
  x->bin = x->step / o->bin_steps;
  if (x->bin < o->n_bins) return 0;
  if (x->bin >= x->cap_cells) {
    size_t was = x->cap_cells, cap = was, links = was * o->max_slots, cap_links = links;
    if (!ni_array_more(&o->cell, &cap, x->bin + 1, sizeof *o->cell) ||
        !ni_array_exact(&o->link_cell, &cap_links, cap * o->max_slots, sizeof *o->link_cell))
      return -ENOMEM;
    memset(o->cell + was, 0, (cap - was) * sizeof *o->cell);
    memset(o->link_cell + links, 0, (cap_links - links) * sizeof *o->link_cell);
    x->cap_cells = cap;
  }
  o->n_bins = x->bin + 1;
  return 0;
}

static bool shorter(const struct ni_blame_incident *a, const struct ni_blame_incident *b) { return a->us < b->us; }

static int add_incident(struct ni_blame_rank *o, int64_t end_ns, float us, uint32_t step) {
  const struct ni_blame_incident i = {end_ns, us, step};
  if (!o->incident && !(o->incident = malloc(NI_BLAME_INCIDENTS * sizeof *o->incident))) return -ENOMEM;
  o->incidents++;
#define BEFORE(a, b) shorter(&(a), &(b))
  if (o->n_incidents < NI_BLAME_INCIDENTS) {
    o->incident[o->n_incidents++] = i;
    ni_heap_up(o->incident, o->n_incidents - 1, BEFORE);
  } else if (us > o->incident[0].us) {
    o->incident[0] = i;
    ni_heap_down(o->incident, o->n_incidents, 0, BEFORE);
  }
  return 0;
}

/* Own time of an operation goes to the bin. */
static int count_own(struct pass *x, struct ni_blame_cell *c, const struct gap *g, const struct ni_blame_op *op) {
  struct key *k = &x->key[g->key];
  float own = (float)g->own / 1e3f, idle = (float)g->idle / 1e3f;
  float usual = k->usual.us;
  k->n++;
  x->out->idle_us += idle;
  if (op->launched_late) x->out->late_idle_us += idle;
  if (x->inner[x->group[op->slot]]) x->out->own_us += own;
  if (isnan(usual)) return 0;
  if (idle - usual > NI_BLAME_BURST_US && idle > 1.5f * usual) {
    c->burst += idle - usual;
    return add_incident(x->out, op->start_ns, idle - usual, x->step);
  }
  if (!x->inner[x->group[op->slot]] || !(x->alone ? k->usual.alone : k->usual.steady) ||
      own > fmaxf(usual + NI_BLAME_BURST_US, 1.5f * usual))
    return 0;
  c->places++;
  c->dev += own - usual;
  k->own += own;
  k->steady++;
  c->usual += usual;
  return 0;
}

static int take_op(struct pass *x, struct ni_blame_op *op) {
  struct ni_blame_rank *o = x->out;
  struct ni_blame_slot *s = &o->slot[op->slot];
  float us = (float)(op->end_ns - op->start_ns) / 1e3f;
  int64_t busy = 0;
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (!o->slot[i].beside && x->end[x->group[i]][0] > busy) busy = x->end[x->group[i]][0];
  /* The k-th Send of a rank meets the k-th Recv of its peer; records' own numbers count all messages of a communicator. */
  if (s->kind != NI_BLAME_COLL) op->sn = x->messages[op->slot];
  struct gap g = take(x, op);
  struct ni_blame_cell *c = &o->cell[x->bin];
  struct ni_blame_link_cell *l = &o->link_cell[(size_t)x->bin * o->max_slots + op->slot];
  if (!c->start_ns) c->start_ns = op->start_ns;
  s->ops++;
  s->exec_us += us;
  l->n++;
  l->exec += us;
  struct token *t = &x->token[op->token < TOKENS_MAX ? op->token : TOKENS_MAX - 1];
  o->ops++;
  o->late_ops += op->launched_late;
  t->ops++;
  s->bytes += o->token_bytes[op->token];
  if ((t->n && t->slot != op->slot) || op->token >= TOKENS_MAX - 1) { /* messages of one size to several peers; too many sizes */
    l->least += us;
  } else {
    if (t->n++ == 0 || us < t->least) t->least = us;
    t->slot = op->slot;
  }
  if (s->beside) c->hidden += us;
  else if (op->end_ns > busy) c->exposed += op->start_ns >= busy ? us : (float)(op->end_ns - busy) / 1e3f;
  int e = g.own >= 0 ? count_own(x, c, &g, op) : 0;
  if (e < 0) return e;
  if (x->step / NI_BLAME_BLOCK % x->b->sample_every) return 0;
  if (!ni_array_room(o->sample, o->n_sample, x->cap_sample)) return -ENOMEM;
  op->step = x->step;
  op->usual_us = g.key == NI_BLAME_NONE ? NAN : x->key[g.key].usual.us;
  uint64_t waits = g.key == NI_BLAME_NONE ? UINT64_C(1) << x->group[op->slot] : x->key[g.key].usual.waits_for;
  op->waits_for = 0;
  for (uint32_t i = 0; i < o->n_slots; i++) op->waits_for |= (waits >> x->group[i] & 1) << i;
  o->sample[o->n_sample++] = *op;
  return 0;
}

static int take_chunk(struct pass *x) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    struct ni_blame_op *op = &x->op[i];
    bool ends = ni_steps_take(&x->mark, op), before = ends && !x->mark.n;
    if (!before) e = take_op(x, op);
    if (e == 0 && ends) {
      x->step++;
      next_step(x);
      e = to_bin(x);
    }
    if (e == 0 && before) e = take_op(x, op);
    x->out->last_ns = op->end_ns;
  }
  return e;
}

static int next_chunk(struct pass *x, struct ni_blame_stream *s) {
  int e = 1;
  for (x->n = 0; x->n < NI_PASS_CHUNK && (e = ni_blame_next(s, &x->op[x->n])) > 0;) x->n++;
  return e < 0 ? e : 0;
}

static int by_name(const void *a, const void *b) {
  const struct ni_blame_place *x = a, *y = b;
  return x->name < y->name ? -1 : x->name > y->name;
}

/* Slots of one shape are told apart by their order, that of their communicators. */
static void shapes(struct pass *x) {
  struct ni_blame_rank *o = x->out;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const struct ni_comm_row *c = &x->b->s->comm[o->slot[i].comm];
    uint64_t most = 0, token = 0;
    for (uint32_t t = 0; t < o->n_tokens && t < TOKENS_MAX; t++)
      if (x->token[t].slot == i && x->token[t].ops > most) most = x->token[t].ops, token = o->token_hash[t];
    /* Sizes and order of messages are the rank's own. */
    bool message = o->slot[i].kind != NI_BLAME_COLL;
    uint64_t shape = ni_mix(ni_mix((message ? 0 : token) + (uint64_t)c->n_ranks) + (message && x->group[i] == i && grouped(o, i) ? 7 : o->slot[i].kind) + 1);
    for (uint32_t k = 0; k < i; k++)
      if (o->slot[k].shape == shape) shape = ni_mix(shape + 1);
    o->slot[i].shape = shape;
  }
}

static int sum_up(struct pass *x) {
  struct ni_blame_rank *o = x->out;
  o->n_steps = x->step + 1;
  shapes(x);
  if (!(o->place = malloc((x->n_keys + 1) * sizeof *o->place))) return -ENOMEM;
  for (uint32_t i = 0; i < KEY_PLACES; i++) {
    const struct key *k = &x->key[i];
    if (!k->name || !x->inner[(k->name - 1) / POSITIONS] || !(x->alone ? k->usual.alone : k->usual.steady) || k->n * 2 < o->n_steps) continue;
    uint64_t shape = o->slot[(k->name - 1) / POSITIONS].shape;
    uint64_t waits = 0;
    for (uint32_t m = 0; m < o->n_slots; m++)
      if (k->usual.waits_for >> m & 1) waits += ni_mix(o->slot[m].shape);
    float mean_us = k->steady ? (float)(k->own / k->steady) : k->usual.us;
    o->place[o->n_places++] = (struct ni_blame_place){ni_mix(ni_mix(shape + (k->name - 1) % POSITIONS + 1) + waits), k->usual.us, mean_us};
  }
  qsort(o->place, o->n_places, sizeof *o->place, by_name);
  /* The same work: as many collectives of each size, on communicators as large, in a step; as many slots with messages. */
  for (uint32_t i = 0; i < o->n_tokens && i < TOKENS_MAX; i++) {
    double per_step = (double)x->token[i].ops / o->n_steps;
    if (x->token[i].ops && o->slot[x->token[i].slot].kind == NI_BLAME_COLL && per_step > 0.5)
      o->signature += ni_mix(o->token_hash[i] ^ (uint64_t)(per_step + 0.5));
  }
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind != NI_BLAME_COLL && o->slot[i].ops * 2 > o->n_steps) o->signature += ni_mix(o->slot[i].kind);
  o->judged = o->n_places > 0 && o->n_steps >= 5;
  if (!o->judged) o->why_not = "nothing lies between its operations";
  return 0;
}

static int run(struct pass *x, struct ni_blame_stream *s) {
  struct ni_blame_rank *o = x->out;
  int e = next_chunk(x, s);
  if (e < 0 || x->n == 0) return e;
  o->first_ns = x->op[0].start_ns;
  o->max_slots = o->n_slots;
  for (size_t i = 0; i < x->n; i++) {
    struct token *t = &x->token[x->op[i].token < TOKENS_MAX ? x->op[i].token : TOKENS_MAX - 1];
    t->slot = x->op[i].slot;
    o->slot[x->op[i].slot].ops++;
  }
  for (uint32_t i = 0; i < o->n_tokens && i < TOKENS_MAX; i++)
    for (uint32_t k = 0; k <= i; k++)
      if (x->token[k].slot == x->token[i].slot && o->token_func[k] == o->token_func[i]) {
        x->token[i].function = k;
        break;
      }
  e = ni_steps_find(x->b, o, x->op, x->n, &x->mark);
  for (uint32_t i = 0; i < o->n_slots; i++) o->slot[i].ops = 0;
  if (e < 0) return e;
  if (!x->mark.found) {
    o->why_not = "no steps were found in its operations";
    return 0;
  }
  o->mark_slot = x->mark.slot;
  o->mark_func = x->mark.n ? o->token_func[x->mark.token] : NULL;
  if ((e = find_beside(x)) < 0) return e;
  find_groups(x);
  find_inner(x);
  find_per_step(x);
  if ((e = find_usual(x)) < 0) return e;
  o->bin_steps = 1;
  e = to_bin(x);
  while (e == 0 && x->n) {
    e = take_chunk(x);
    if (e == 0) e = x->n == NI_PASS_CHUNK ? next_chunk(x, s) : (x->n = 0, 0);
  }
  if (e == 0) flush_tokens(x);
  return e < 0 ? e : sum_up(x);
}

int ni_blame_pass(struct ni_blame *b, uint32_t process, const struct ni_blame_piece *item, size_t n) {
  struct ni_blame_rank *o = &b->rank[process];
  struct ni_blame_stream *s = NULL;
  struct pass *x = calloc(1, sizeof *x);
  int e = x ? 0 : -ENOMEM;
  if (e == 0) {
    x->b = b;
    x->out = o;
    size_t share = NI_BLAME_CELLS / b->n_ranks / (sizeof *o->cell + 8 * sizeof *o->link_cell);
    x->bins_max = share < NI_BLAME_BINS_MIN ? NI_BLAME_BINS_MIN : share > NI_BLAME_BINS_MAX ? NI_BLAME_BINS_MAX : (uint32_t)share;
    x->op = malloc(NI_PASS_CHUNK * sizeof *x->op);
    e = x->op ? ni_blame_open(&s, b->r, item, n, o) : -ENOMEM;
  }
  if (e == 0) e = run(x, s);
  if (e == 0 && s && ni_blame_no_start(s)) {
    o->judged = false;
    o->why_not = "its log does not say when operations started";
  }
  ni_blame_close(s);
  if (x) free(x->op);
  free(x);
  return e;
}
