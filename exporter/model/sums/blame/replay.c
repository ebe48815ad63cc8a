#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "usual.h"

struct node {                  /* an operation of one rank; times in µs from the begin of the block */
  double start, end;           /* as recorded */
  double began;                /* as replayed */
  uint32_t join;
  uint32_t main, slot;         /* nodes: what it waited for; the one before on its slot */
  uint32_t by;                 /* of these the one that it waited for */
  uint32_t rank, step;
  bool launched_late;
  float usual;                 /* own time; NAN: not known */
};

struct join {                  /* an operation of all its ranks */
  double start, end, transfer, cut;
  uint32_t n, arrived, last;   /* last: the node that came last */
  uint32_t waiting;            /* rank + 1, a chain */
  uint32_t link, step;
  uint64_t key;
};

struct side {                  /* a rank in the block */
  size_t from, to;             /* of its sample */
  uint32_t first, n, at;       /* nodes */
  uint32_t next;               /* chain */
  float factor;                /* own time in the scenario */
  uint32_t factor_from, factor_to;
  bool no_pauses, launches;    /* launches: factor is of own time before what was launched late */
};

struct replay {
  const struct ni_blame *b;
  const struct ni_causes *causes;
  struct node *node;
  struct join *join;
  struct side *side;
  uint32_t *stack, n_nodes, n_joins, n_stack;
  size_t cap_nodes, cap_joins;
  struct ni_index at;
  double own, pauses, transfer, recorded, replayed;
};

/* The join of an operation; *at NI_BLAME_NONE: no memory. */
static uint32_t join_of(struct replay *x, uint64_t key, uint32_t link, uint32_t step, double exec) {
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&x->at, key, &i)) != NI_INDEX_NONE;)
    if (x->join[k].key == key) {
      if (exec < x->join[k].transfer) x->join[k].transfer = exec;
      x->join[k].n++;
      return k;
    }
  if (!ni_array_room(x->join, x->n_joins, x->cap_joins) || ni_index_add(&x->at, key, x->n_joins) < 0) return NI_BLAME_NONE;
  x->join[x->n_joins] = (struct join){.n = 1, .link = link, .step = step, .key = key, .transfer = exec};
  return x->n_joins++;
}

/* The last end at or before t on the slots of a set. */
static uint32_t last_of(const struct replay *x, const uint32_t (*last)[2], uint32_t n_slots, uint64_t set, double t) {
  uint32_t best = NI_BLAME_NONE;
  for (uint32_t k = 0; k < n_slots; k++)
    for (int j = 0; j < 2 && set >> k & 1; j++) {
      uint32_t c = last[k][j];
      if (c == NI_BLAME_NONE || x->node[c].end > t) continue;
      if (best == NI_BLAME_NONE || x->node[c].end > x->node[best].end) best = c;
    }
  return best;
}

/* What an operation waited for: the last end on what its place waits for, or what ni_usual_room() allows besides. */
static uint32_t main_of(const struct replay *x, const uint32_t (*last)[2], uint32_t n_slots, const struct ni_blame_op *op, double start) {
  uint32_t best = last_of(x, last, n_slots, op->waits_for, start), other;
  float gap = best == NI_BLAME_NONE ? 0 : (float)(start - x->node[best].end), room = ni_usual_room(op->usual_us, gap);
  if (isnan(room)) return best;
  other = last_of(x, last, n_slots, UINT64_MAX, start - room);
  return other != NI_BLAME_NONE && x->node[other].end > x->node[best].end ? other : best;
}

static int load_rank(struct replay *x, uint32_t rank, int64_t t0) {
  const struct ni_blame_rank *o = &x->b->rank[rank];
  struct side *s = &x->side[rank];
  uint32_t last[NI_BLAME_SLOTS][2];
  memset(last, 0xff, sizeof last);
  s->first = x->n_nodes;
  for (size_t i = s->from; i < s->to; i++) {
    const struct ni_blame_op *op = &o->sample[i];
    const struct ni_blame_slot *slot = &o->slot[op->slot];
    if (!ni_array_room(x->node, x->n_nodes, x->cap_nodes)) return -ENOMEM;
    uint32_t at = x->n_nodes++;
    struct node *n = &x->node[at];
    *n = (struct node){.start = (double)(op->start_ns - t0) / 1e3, .end = (double)(op->end_ns - t0) / 1e3,
                       .slot = last[op->slot][0], .rank = rank, .step = op->step, .usual = op->usual_us,
                       .launched_late = op->launched_late};
    n->main = main_of(x, last, o->n_slots, op, n->start);
    uint64_t name = slot->kind == NI_BLAME_COLL ? ni_mix(o->token_hash[op->token]) ^ op->sn : op->sn;
    n->join = join_of(x, ni_hash(ni_hash(slot->link, slot->kind == NI_BLAME_COLL), name), slot->link, op->step, n->end - n->start);
    if (n->join == NI_BLAME_NONE) return -ENOMEM;
    last[op->slot][1] = last[op->slot][0];
    last[op->slot][0] = at;
  }
  s->n = x->n_nodes - s->first;
  return 0;
}

/* All ranks' operations of a block: the next ones of their samples. 0: no more. */
static int load_block(struct replay *x, uint32_t block) {
  const struct ni_blame *b = x->b;
  int64_t t0 = INT64_MAX;
  int e = 0;
  x->n_nodes = x->n_joins = 0;
  ni_index_free(&x->at);
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_blame_rank *o = &b->rank[r];
    struct side *s = &x->side[r];
    for (s->from = s->to; s->from < o->n_sample && (o->sample[s->from].step + (uint32_t)o->shift) / NI_BLAME_BLOCK < block; s->from++) {}
    for (s->to = s->from; s->to < o->n_sample && (o->sample[s->to].step + (uint32_t)o->shift) / NI_BLAME_BLOCK == block; s->to++) {}
    if (o->judged && s->from < s->to && o->sample[s->from].start_ns < t0) t0 = o->sample[s->from].start_ns;
  }
  for (uint32_t r = 0; e == 0 && r < b->n_ranks; r++) {
    x->side[r].n = 0;
    if (b->rank[r].judged) e = load_rank(x, r, t0);
  }
  return e < 0 ? e : x->n_nodes > 0;
}

static double end_of(const struct replay *x, uint32_t node) { return x->join[x->node[node].join].end; }

static bool ended(const struct replay *x, uint32_t node) {
  const struct join *j = &x->join[x->node[node].join];
  return j->arrived >= j->n;
}

/* What of the own time before the node is a pause. */
static double pause_of(const struct node *n, double gap) {
  double over = isnan(n->usual) ? 0 : gap - n->usual;
  return over > NI_BLAME_BURST_US && over > n->usual / 2 ? over : 0;
}

static void place(struct replay *x, const struct side *s, uint32_t at) {
  struct node *n = &x->node[at];
  uint32_t bin = n->step / x->b->bin_steps;
  n->began = n->start;
  n->by = n->main;
  if (n->main != NI_BLAME_NONE) {
    double gap = n->start - x->node[n->main].end, pause = pause_of(n, gap);
    if (s->no_pauses) gap -= pause;
    if (bin >= s->factor_from && bin < s->factor_to && (!s->launches || n->launched_late)) gap -= (n->start - x->node[n->main].end - pause) * (1 - s->factor);
    n->began = end_of(x, n->main) + gap;
  }
  if (n->slot != NI_BLAME_NONE && (n->by == NI_BLAME_NONE || end_of(x, n->slot) > n->began) && n->slot != n->main) {
    n->began = n->by == NI_BLAME_NONE && n->start > end_of(x, n->slot) ? n->start : end_of(x, n->slot);
    n->by = n->slot;
  }
}

static void complete(struct replay *x, struct join *j) {
  j->arrived = j->n;
  j->end = j->start + j->transfer * j->cut;
  for (uint32_t r = j->waiting; r; r = x->side[r - 1].next) x->stack[x->n_stack++] = r - 1;
  j->waiting = 0;
}

/* Goes on with a rank until it has to wait. */
static void go_on(struct replay *x, uint32_t rank) {
  struct side *s = &x->side[rank];
  for (; s->at < s->n; s->at++) {
    struct node *n = &x->node[s->first + s->at];
    const uint32_t from[2] = {n->main, n->slot};
    for (int i = 0; i < 2; i++)
      if (from[i] != NI_BLAME_NONE && !ended(x, from[i])) {
        struct join *j = &x->join[x->node[from[i]].join];
        s->next = j->waiting;
        j->waiting = rank + 1;
        return;
      }
    place(x, s, s->first + s->at);
    struct join *j = &x->join[n->join];
    if (j->arrived == 0 || n->began > j->start) {
      j->start = n->began;
      j->last = s->first + s->at;
    }
    if (++j->arrived == j->n) complete(x, j);
  }
}

/* Runs the block; returns when its last operation ends. */
static double run(struct replay *x) {
  double end = 0;
  for (uint32_t i = 0; i < x->n_joins; i++) x->join[i].arrived = x->join[i].waiting = 0;
  x->n_stack = 0;
  for (uint32_t r = x->b->n_ranks; r-- > 0;) {
    x->side[r].at = 0;
    if (x->side[r].n) x->stack[x->n_stack++] = r;
  }
  bool more = true;
  while (more) {
    while (x->n_stack) go_on(x, x->stack[--x->n_stack]);
    /* Records that are missing, or cut off by the block's end: nobody comes any more. */
    more = false;
    for (uint32_t i = 0; i < x->n_joins; i++) {
      if (!x->join[i].waiting) continue;
      complete(x, &x->join[i]);
      while (x->n_stack) go_on(x, x->stack[--x->n_stack]);
      more = true;
    }
  }
  for (uint32_t i = 0; i < x->n_joins; i++) {
    struct join *j = &x->join[i];
    if (j->arrived < j->n) complete(x, j);
    if (j->end > end) end = j->end;
  }
  return end;
}

static void plain(struct replay *x) {
  for (uint32_t i = 0; i < x->n_joins; i++) x->join[i].cut = 1;
  for (uint32_t r = 0; r < x->b->n_ranks; r++) {
    x->side[r].factor = 1;
    x->side[r].factor_from = x->side[r].factor_to = 0;
    x->side[r].no_pauses = x->side[r].launches = false;
  }
}

static void quicken(struct replay *x, const struct ni_cause *c) {
  const struct ni_blame *b = x->b;
  for (uint32_t i = 0; i < x->n_joins; i++) {
    struct join *j = &x->join[i];
    const struct ni_blame_link *l = &b->link[j->link];
    uint32_t bin = j->step / b->bin_steps;
    bool in = false;
    for (uint32_t k = 0; k < c->n_items && !in; k++) in = c->item[k] == j->link;
    if (!in || bin < c->from || bin >= c->to || bin >= b->bins) continue;
    bool fabric = c->kind == NI_FIND_CONGESTION;
    if (fabric && !x->causes->crowded[bin]) continue;
    float ratio = fabric ? l->us[bin] / l->quiet_us : 1 + c->share;
    if (ratio > 1) j->cut /= ratio;
  }
}

/* Takes a cause away. */
static void without(struct replay *x, const struct ni_cause *c) {
  if (c->links) {
    quicken(x, c);
    return;
  }
  for (uint32_t i = 0; i < c->n_items; i++) {
    struct side *s = &x->side[c->item[i]];
    if (c->kind == NI_FIND_PAUSES) {
      s->no_pauses = true;
      continue;
    }
    s->factor = 1 / (1 + c->of_gaps);
    s->launches = c->launch;
    s->factor_from = c->from;
    s->factor_to = c->to;
  }
}

/* From the last operation back: what each waited for. */
static void follow(struct replay *x, double end) {
  uint32_t at = 0;
  for (uint32_t i = 1; i < x->n_joins; i++)
    if (x->join[i].end > x->join[at].end) at = i;
  double t = end;
  for (uint32_t i = 0; i < x->n_nodes; i++) { /* each at most once */
    const struct join *j = &x->join[at];
    const struct node *n = &x->node[j->last];
    x->transfer += t - j->start;
    if (n->by == NI_BLAME_NONE) {
      x->own += n->began; /* before the first operation of the block */
      break;
    }
    const struct node *by = &x->node[n->by];
    double gap = n->began - x->join[by->join].end, pause = n->by == n->main ? pause_of(n, gap) : 0;
    x->pauses += pause;
    x->own += gap - pause;
    t = x->join[by->join].end;
    at = by->join;
  }
}

static void measure(struct replay *x) {
  for (uint32_t r = 0; r < x->b->n_ranks; r++) {
    const struct side *s = &x->side[r];
    if (s->n < 2) continue;
    const struct node *first = &x->node[s->first], *last = &x->node[s->first + s->n - 1];
    x->recorded += last->end - first->start;
    x->replayed += end_of(x, s->first + s->n - 1) - first->began;
  }
}

static double run_us(const struct ni_blame *b) {
  double best = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    double us = (double)(b->rank[i].last_ns - b->rank[i].first_ns) / 1e3;
    if (b->rank[i].judged && us > best) best = us;
  }
  return best;
}

/* Relative, of twice the standard error: of what is usual, of the blocks that are in the sample, and of the model. */
static double doubt(const struct ni_blame *b, const struct ni_cause *c, const double *cost, uint32_t blocks, double part, double model) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < blocks; i++) sum += cost[i], squares += cost[i] * cost[i];
  double mean = sum / blocks, sampling = blocks > 1 && mean > 0 ? sqrt(fmax(0, squares / blocks - mean * mean) / (blocks - 1)) / mean : 1;
  double usual = c->share > 0 ? 0.01 / c->share : 0;
  (void)b;
  return 2 * sqrt(0.05 * 0.05 + usual * usual / 4 + sampling * sampling * (1 - part) + (1 - model) * (1 - model));
}

static int replay_blocks(struct replay *x, struct ni_causes *causes, struct ni_replay *out) {
  const struct ni_blame *b = x->b;
  uint32_t blocks = b->steps / NI_BLAME_BLOCK + 1;
  double *cost = calloc((size_t)blocks * (causes->n + 1), sizeof *cost), all = 0, base = 0;
  int e = cost ? 0 : -ENOMEM, got = 0;
  for (uint32_t k = 0; e == 0 && k < blocks; k++) {
    if (k % b->sample_every) continue;
    if ((got = load_block(x, k)) < 0) e = got;
    if (got <= 0) continue;
    plain(x);
    double t = run(x);
    base += t;
    follow(x, t);
    measure(x);
    for (uint32_t i = 0; i < causes->n; i++) {
      plain(x);
      without(x, &causes->item[i]);
      cost[(size_t)i * blocks + out->blocks] = t - run(x);
    }
    plain(x);
    for (uint32_t i = 0; i < causes->n; i++) without(x, &causes->item[i]);
    all += causes->n ? t - run(x) : 0;
    out->blocks++;
  }
  out->run_us = run_us(b);
  if (e == 0 && base > 0) {
    double scale = out->run_us / base, on_way = x->own + x->pauses + x->transfer;
    out->model = x->recorded > 0 ? x->replayed / x->recorded : 1;
    out->own = x->own / on_way;
    out->pauses = x->pauses / on_way;
    out->transfer = x->transfer / on_way;
    out->without_us = out->run_us - all * scale;
    for (uint32_t i = 0; i < causes->n; i++) {
      struct ni_cause *c = &causes->item[i];
      const double *mine = &cost[(size_t)i * blocks];
      double sum = 0;
      for (uint32_t k = 0; k < out->blocks; k++) sum += mine[k];
      double d = doubt(b, c, mine, out->blocks, fmin(1, 1 / scale), out->model);
      c->cost_us = fmax(0, sum * scale);
      c->low_us = c->cost_us * fmax(0, 1 - d);
      c->high_us = c->cost_us * (1 + d);
    }
  }
  free(cost);
  return e;
}

int ni_replay(const struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  struct replay x = {.b = b, .causes = causes, .side = calloc(b->n_ranks + 1, sizeof *x.side), .stack = malloc((b->n_ranks + 1) * sizeof *x.stack)};
  *out = (struct ni_replay){.model = NAN};
  int e = x.side && x.stack ? replay_blocks(&x, causes, out) : -ENOMEM;
  ni_index_free(&x.at);
  free(x.node);
  free(x.join);
  free(x.side);
  free(x.stack);
  return e;
}
