#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"

struct node {                  /* an operation of one rank; times in µs from the begin of the block */
  float gap, pause;            /* own time before it, and what of that is a pause; where it waited for nothing: its start */
  uint32_t join;
  uint32_t main, slot;         /* joins: what it waited for; the one before on its slot */
  uint32_t bin : 31, launched_late : 1;
};

struct join {                  /* an operation of all its ranks */
  double start, end;
  float us;                    /* its transfer in the scenario */
  uint32_t n, arrived;
  uint32_t waiting;            /* rank + 1, a chain */
};

struct what {                  /* it is */
  uint64_t key;
  float transfer;
  uint32_t link, bin;
  uint32_t last, rank;         /* the node that came last, and its rank */
};

/* On the longest way through the block as recorded: a join, and the own time before its last node (NI_BLAME_NONE: none). */
struct way {
  uint32_t join, node, rank;
};

struct change {                /* of a rank's own time in the scenario */
  float factor;
  uint32_t from, to;           /* bins */
  const bool *hit;             /* in these of them; NULL: in all */
  bool no_pauses, launches;    /* launches: factor is of own time before what was launched late */
};

struct side {                  /* a rank in the block */
  size_t from, to;             /* of its sample */
  double start_us;             /* of the last operation of its sample that was looked at, since sample_ns */
  double took;                 /* as recorded */
  uint32_t first, n, at;       /* nodes */
  uint32_t next, waits;        /* chain; for this join */
  struct change change;
};

struct replay {
  const struct ni_blame *b;
  const struct ni_causes *causes;
  struct node *node;
  struct join *join;
  struct what *what;           /* joins */
  struct side *side;
  struct way *way;
  uint32_t n_way;
  bool *in;                    /* links of a cause */
  uint32_t *stack, n_nodes, n_joins, n_stack;
  bool torn;                   /* the block's ranks state orders that contradict each other: its times mean nothing */
  size_t cap_nodes, cap_joins, cap_what, cap_way;
  struct ni_index at;
  double own, pauses, transfer, recorded, replayed;
  double *path, *lost;         /* by communicator: transfers on the longest way; what all causes together cost there */
};

/* The join of an operation; NI_BLAME_NONE: no memory. */
static uint32_t join_of(struct replay *x, uint64_t key, uint32_t link, uint32_t bin, float exec) {
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&x->at, key, &i)) != NI_INDEX_NONE;)
    if (x->what[k].key == key) {
      if (exec < x->what[k].transfer) x->what[k].transfer = exec;
      x->join[k].n++;
      return k;
    }
  if (!ni_array_room(x->join, x->n_joins, x->cap_joins) || !ni_array_room(x->what, x->n_joins, x->cap_what) ||
      ni_index_add(&x->at, key, x->n_joins) < 0)
    return NI_BLAME_NONE;
  x->join[x->n_joins] = (struct join){.n = 1};
  x->what[x->n_joins] = (struct what){.key = key, .transfer = exec, .link = link, .bin = bin};
  return x->n_joins++;
}

static uint32_t block_of(const struct ni_blame_rank *o, size_t i) { return (o->sample[i].step + (uint32_t)o->shift) / NI_BLAME_BLOCK; }

/* t0: begin of the block, since sample_ns of the rank. */
static int load_rank(struct replay *x, uint32_t rank, double t0) {
  const struct ni_blame_rank *o = &x->b->rank[rank];
  struct side *s = &x->side[rank];
  uint32_t last[NI_BLAME_SLOTS];
  double t = s->start_us, end = 0;
  memset(last, 0xff, sizeof last);
  s->first = x->n_nodes;
  for (size_t i = s->from; i < s->to; i++) {
    const struct ni_blame_sampled *op = &o->sample[i];
    const struct ni_blame_slot *slot = &o->slot[op->slot];
    if (i > s->from) t += op->after_us;
    struct node *n = &x->node[x->n_nodes++];
    *n = (struct node){op->gap_us, op->pause_us, 0, NI_BLAME_NONE, last[op->slot], (op->step + (uint32_t)o->shift) / x->b->bin_steps,
                       op->launched_late};
    if (op->main && i - s->from >= op->main) n->main = x->node[s->first + i - s->from - op->main].join;
    else n->gap = (float)(t - t0), n->pause = 0;
    bool coll = slot->kind == NI_BLAME_COLL;
    uint64_t name = coll ? ni_mix(o->token_hash[op->token]) ^ op->sn : op->sn;
    n->join = join_of(x, ni_hash(ni_hash(slot->link, coll), name), slot->link, n->bin, op->exec_us);
    if (n->join == NI_BLAME_NONE) return -ENOMEM;
    last[op->slot] = n->join;
    end = t + op->exec_us;
  }
  s->n = x->n_nodes - s->first;
  s->took = end - s->start_us;
  s->start_us = t;
  return 0;
}

/* All ranks' operations of a block: the next ones of their samples. 0: no more. */
static int load_block(struct replay *x, uint32_t block) {
  const struct ni_blame *b = x->b;
  double t0 = INFINITY;
  size_t nodes = 0;
  int e = 0;
  x->n_nodes = x->n_joins = 0;
  ni_index_free(&x->at);
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_blame_rank *o = &b->rank[r];
    struct side *s = &x->side[r];
    s->n = 0;
    if (!o->judged) continue;
    for (s->from = s->to; s->from < o->n_sample && block_of(o, s->from) < block; s->from++) s->start_us += o->sample[s->from].after_us;
    for (s->to = s->from; s->to < o->n_sample && block_of(o, s->to) == block; s->to++) {}
    if (s->from < s->to) s->start_us += o->sample[s->from].after_us;
    nodes += s->to - s->from;
    if (s->from < s->to) t0 = fmin(t0, s->start_us + (double)(o->sample_ns - b->rank[0].first_ns) / 1e3);
  }
  if (nodes > x->cap_nodes && !ni_array_exact(&x->node, &x->cap_nodes, nodes, sizeof *x->node)) return -ENOMEM;
  for (uint32_t r = 0; e == 0 && r < b->n_ranks; r++)
    if (b->rank[r].judged) e = load_rank(x, r, t0 - (double)(b->rank[r].sample_ns - b->rank[0].first_ns) / 1e3);
  return e < 0 ? e : x->n_nodes > 0;
}

static bool waits_for(const struct replay *x, uint32_t join) { return join != NI_BLAME_NONE && x->join[join].arrived < x->join[join].n; }

static float gap_of(const struct change *s, const struct node *n) {
  float gap = s->no_pauses ? n->gap - n->pause : n->gap;
  const bool there = n->bin >= s->from && n->bin < s->to && (!s->hit || s->hit[n->bin]);
  if (there && (!s->launches || n->launched_late)) gap -= (n->gap - n->pause) * (1 - s->factor);
  return gap;
}

/* When the node begins, and the join that it waited for. */
static double begin(const struct replay *x, const struct side *s, const struct node *n, uint32_t *by) {
  double began = n->gap, slot = n->slot == NI_BLAME_NONE ? -INFINITY : x->join[n->slot].end;
  *by = n->main;
  if (n->main != NI_BLAME_NONE) began = x->join[n->main].end + gap_of(&s->change, n);
  if (n->slot == NI_BLAME_NONE || n->slot == n->main || (n->main != NI_BLAME_NONE && slot <= began)) return began;
  *by = n->slot;
  return slot > began ? slot : began;
}

static void complete(struct replay *x, struct join *j) {
  j->arrived = j->n;
  j->end = j->start + j->us;
  for (uint32_t r = j->waiting; r; r = x->side[r - 1].next) x->stack[x->n_stack++] = r - 1;
  j->waiting = 0;
}

/* Goes on with a rank until it has to wait. */
static void go_on(struct replay *x, uint32_t rank) {
  struct side *s = &x->side[rank];
  for (; s->at < s->n; s->at++) {
    const struct node *n = &x->node[s->first + s->at];
    uint32_t by = waits_for(x, n->main) ? n->main : n->slot;
    if (waits_for(x, by)) {
      s->waits = by;
      s->next = x->join[by].waiting;
      x->join[by].waiting = rank + 1;
      return;
    }
    struct join *j = &x->join[n->join];
    double began = begin(x, s, n, &by);
    if (j->arrived >= j->n) { /* it went on without this rank, which is there all the same: see run() */
      x->torn = true;
      continue;
    }
    if (j->arrived == 0 || began > j->start) {
      j->start = began;
      x->what[n->join].last = s->first + s->at;
      x->what[n->join].rank = rank;
    }
    if (++j->arrived == j->n) complete(x, j);
  }
}

/* Runs the block; returns when its last operation ends. */
static double run(struct replay *x) {
  const uint32_t ranks = x->b->n_ranks;
  double end = 0;
  for (uint32_t i = 0; i < x->n_joins; i++) x->join[i].arrived = x->join[i].waiting = 0;
  x->n_stack = 0;
  x->torn = false;
  for (uint32_t r = ranks; r-- > 0;) {
    x->side[r].at = 0;
    if (x->side[r].n) x->stack[x->n_stack++] = r;
  }
  while (x->n_stack) go_on(x, x->stack[--x->n_stack]);
  for (uint32_t r = 0; r < ranks; r++) /* records that are missing, or cut off by the block's end: nobody comes any more */
    while (x->side[r].at < x->side[r].n) {
      complete(x, &x->join[x->side[r].waits]);
      while (x->n_stack) go_on(x, x->stack[--x->n_stack]);
    }
  for (uint32_t i = 0; i < x->n_joins; i++) end = fmax(end, x->join[i].end);
  return end;
}

static void plain(struct replay *x) {
  for (uint32_t i = 0; i < x->n_joins; i++) x->join[i].us = x->what[i].transfer;
  for (uint32_t r = 0; r < x->b->n_ranks; r++) x->side[r].change = (struct change){.factor = 1};
}

static void quicken(struct replay *x, const struct ni_cause *c) {
  const struct ni_blame *b = x->b;
  const bool fabric = c->kind == NI_FIND_CONGESTION;
  memset(x->in, 0, b->n_links * sizeof *x->in);
  for (uint32_t k = 0; k < c->n_items; k++) x->in[c->item[k]] = true;
  for (uint32_t i = 0; i < x->n_joins; i++) {
    const struct what *w = &x->what[i];
    const struct ni_blame_link *l = &b->link[w->link];
    if (!x->in[w->link] || w->bin < c->from || w->bin >= c->to || w->bin >= b->bins || (fabric && !x->causes->crowded[w->bin])) continue;
    float ratio = fabric ? l->us[w->bin] / l->quiet_us : 1 + c->share;
    if (ratio > 1) x->join[i].us /= ratio;
  }
}

/* Takes a cause away. */
static void without(struct replay *x, const struct ni_cause *c) {
  if (c->links) quicken(x, c);
  for (uint32_t i = 0; i < c->n_items && !c->links; i++) {
    struct change *s = &x->side[c->item[i]].change;
    if (c->kind == NI_FIND_PAUSES || c->kind == NI_FIND_PERIODIC) s->no_pauses = true;
    else *s = (struct change){1 / (1 + c->of_gaps), c->from, c->to, c->hit, s->no_pauses, c->launch};
  }
}

/* The longest way is as long as before: then so is the block, whatever else is shorter. */
static bool as_long(const struct replay *x) {
  for (uint32_t i = 0; i < x->n_way; i++) {
    const struct way *w = &x->way[i];
    if (x->join[w->join].us < x->what[w->join].transfer) return false;
    if (w->node != NI_BLAME_NONE && gap_of(&x->side[w->rank].change, &x->node[w->node]) < x->node[w->node].gap) return false;
  }
  return true;
}

/* From the last operation back: what each waited for. */
static int follow(struct replay *x, double end) {
  uint32_t at = 0, by;
  for (uint32_t i = 1; i < x->n_joins; i++)
    if (x->join[i].end > x->join[at].end) at = i;
  x->n_way = 0;
  for (uint32_t i = 0; i < x->n_nodes; i++, at = by) { /* each at most once */
    const struct what *w = &x->what[at];
    const struct node *n = &x->node[w->last];
    double began = begin(x, &x->side[w->rank], n, &by), pause = by == n->main ? n->pause : 0;
    bool first = by == NI_BLAME_NONE; /* before the first operation of the block all is own time */
    if (!ni_array_room(x->way, x->n_way, x->cap_way)) return -ENOMEM;
    x->way[x->n_way++] = (struct way){at, !first && by == n->main ? w->last : NI_BLAME_NONE, w->rank};
    x->transfer += end - x->join[at].start;
    x->path[x->b->link[w->link].comm] += end - x->join[at].start;
    end = first ? 0 : x->join[by].end;
    x->pauses += pause;
    x->own += began - end - pause;
    if (first) break;
  }
  return 0;
}

/*
 * What the block saves without all causes, put down to the communicators whose operations came earlier on its longest way: as
 * much as own time before them and their transfers are shorter by. Call between without() of all causes and run().
 */
static double shorter(const struct replay *x, const struct way *w) {
  double us = fmax(0, x->what[w->join].transfer - x->join[w->join].us);
  if (w->node == NI_BLAME_NONE) return us;
  const struct node *n = &x->node[w->node];
  return us + fmax(0, n->gap - gap_of(&x->side[w->rank].change, n));
}

static double shorter_in_all(const struct replay *x) {
  double all = 0;
  for (uint32_t i = 0; i < x->n_way; i++) all += shorter(x, &x->way[i]);
  return all;
}

static void put_down(struct replay *x, double saved, double all) {
  for (uint32_t i = 0; i < x->n_way && all > 0; i++)
    x->lost[x->b->link[x->what[x->way[i].join].link].comm] += shorter(x, &x->way[i]) * saved / all;
}

static void measure(struct replay *x) {
  uint32_t by;
  NI_EACH(const struct side, s, x->side, x->b->n_ranks) {
    const struct node *n = &x->node[s->first];
    if (s->n < 2) continue;
    x->recorded += s->took;
    x->replayed += x->join[n[s->n - 1].join].end - begin(x, s, n, &by);
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
static double doubt(const struct ni_cause *c, const double *cost, uint32_t blocks, double part, double model) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < blocks; i++) sum += cost[i], squares += cost[i] * cost[i];
  double mean = sum / blocks, sampling = blocks > 1 && mean > 0 ? sqrt(fmax(0, squares / blocks - mean * mean) / (blocks - 1)) / mean : 1;
  double usual = c->share > 0 ? 0.01 / c->share : 0;
  return 2 * sqrt(0.05 * 0.05 + usual * usual / 4 + sampling * sampling * (1 - part) + (1 - model) * (1 - model));
}

/* Bins in which the cause is at work: of the job; of those, the ones of block k's steps (or all: k is NI_BLAME_NONE). */
static uint32_t bins_of(const struct replay *x, const struct ni_cause *c, uint32_t k) {
  const struct ni_blame *b = x->b;
  uint32_t from = k == NI_BLAME_NONE ? 0 : k * NI_BLAME_BLOCK / b->bin_steps, n = 0;
  uint32_t to = k == NI_BLAME_NONE ? b->bins : ((k + 1) * NI_BLAME_BLOCK + b->bin_steps - 1) / b->bin_steps;
  for (uint32_t i = from > c->from ? from : c->from; i < to && i < c->to && i < b->bins; i++) n += c->kind != NI_FIND_CONGESTION || x->causes->crowded[i];
  return n;
}

/* torn: also blocks whose ranks contradict each other, as where stamps of a busy machine have changed the order of operations. */
static int replay_blocks(struct replay *x, struct ni_causes *causes, bool torn, struct ni_replay *out) {
  const struct ni_blame *b = x->b;
  uint32_t blocks = b->steps / NI_BLAME_BLOCK + 1;
  uint32_t seen[NI_CAUSES_MAX] = {0};
  double *cost = calloc((size_t)blocks * (causes->n + 1), sizeof *cost), all = 0, base = 0;
  int e = cost ? 0 : -ENOMEM, got = 0;
  for (uint32_t k = 0; e == 0 && k < blocks; k++) {
    if (k % b->sample_every) continue;
    if ((got = load_block(x, k)) < 0) e = got;
    if (got <= 0) continue;
    plain(x);
    double t = run(x);
    if (x->torn && !torn) continue;
    base += t;
    if ((e = follow(x, t)) < 0) break;
    measure(x);
    for (uint32_t i = 0; i < causes->n; i++) {
      plain(x);
      without(x, &causes->item[i]);
      if (!as_long(x)) cost[(size_t)i * blocks + out->blocks] = t - run(x);
      seen[i] += bins_of(x, &causes->item[i], k);
    }
    plain(x);
    for (uint32_t i = 0; i < causes->n; i++) without(x, &causes->item[i]);
    double part = shorter_in_all(x), saved = causes->n ? t - run(x) : 0;
    put_down(x, saved, part);
    all += saved;
    out->blocks++;
  }
  out->run_us = run_us(b);
  if (e == 0 && base > 0) {
    double scale = out->run_us / base, on_way = x->own + x->pauses + x->transfer, plain_us = 0, said_us = 0;
    out->model = x->recorded > 0 ? x->replayed / x->recorded : 1;
    out->own = x->own / on_way;
    out->pauses = x->pauses / on_way;
    out->transfer = x->transfer / on_way;
    for (uint32_t i = 0; i < causes->n; i++) {
      struct ni_cause *c = &causes->item[i];
      const double *mine = &cost[(size_t)i * blocks];
      double sum = 0;
      for (uint32_t k = 0; k < out->blocks; k++) sum += mine[k];
      double d = doubt(c, mine, out->blocks, fmin(1, 1 / scale), out->model);
      /* Of what is at work now and then the blocks may have seen more or less than their share. */
      double mine_scale = seen[i] ? (double)bins_of(x, c, NI_BLAME_NONE) / seen[i] : scale;
      double most = (double)c->lead.part * c->excess_us * bins_of(x, c, NI_BLAME_NONE) * b->bin_steps;
      c->cost_us = fmax(0, sum * mine_scale);
      if (most < c->cost_us && c->lead.apart < 1) c->cost_us = pow(most, 1 - c->lead.apart) * pow(c->cost_us, c->lead.apart);
      c->low_us = c->cost_us * fmax(0, 1 - d);
      c->high_us = c->cost_us * (1 + d);
      const bool *hit = c->kind == NI_FIND_CONGESTION ? causes->crowded : c->hit;
      if (hit && (e = ni_steps_cost(b, hit, c)) < 0) break;
      e = 0;
      plain_us += sum * scale;
      said_us += c->cost_us;
    }
    /* What all of them cost together, in the measure of what each is said to cost: of one cause it is the same number. */
    double measure_of = plain_us > 0 ? scale * said_us / plain_us : 0;
    out->without_us = fmax(0, out->run_us - all * measure_of);
    for (uint32_t i = 0; i < b->s->n_comms; i++) {
      b->s->comm[i].path_us = x->path[i] / on_way * out->run_us;
      b->s->comm[i].cost_us = x->lost[i] * measure_of;
    }
  }
  free(cost);
  return e;
}

int ni_replay(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  struct replay x = {.b = b, .causes = causes, .side = calloc(b->n_ranks + 1, sizeof *x.side), .stack = malloc((b->n_ranks + 1) * sizeof *x.stack),
                     .in = malloc(b->n_links + 1), .path = calloc(b->s->n_comms + 1, sizeof *x.path),
                     .lost = calloc(b->s->n_comms + 1, sizeof *x.lost)};
  *out = (struct ni_replay){.model = NAN};
  int e = x.side && x.stack && x.in && x.path && x.lost ? replay_blocks(&x, causes, false, out) : -ENOMEM;
  if (e == 0 && !out->blocks) {
    memset(x.side, 0, (b->n_ranks + 1) * sizeof *x.side);
    e = replay_blocks(&x, causes, true, out);
  }
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    free(b->rank[r].sample);
    b->rank[r].sample = NULL;
  }
  ni_index_free(&x.at);
  free(x.node);
  free(x.join);
  free(x.what);
  free(x.way);
  free(x.side);
  free(x.stack);
  free(x.in);
  free(x.path);
  free(x.lost);
  return e;
}
