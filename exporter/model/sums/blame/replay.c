#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"

/*
 * What usually lies before an operation of a place in the step, on ranks whose CPU is not slow, and where it is slow before what is launched
 * late. A rank's own time is not longer by one factor there: the GPU idles where it would not, and computes as before elsewhere. Where a
 * communicator with slow ranks is the only one, it says nothing of what is usual: while the others wait in it they compute what comes next.
 */
struct spot {
  uint64_t key;
  double usual_us, late_us;    /* sums */
  uint32_t n_usual, n_late;
};

struct node {                  /* an operation of one rank; times in µs from the begin of the block */
  float gap, pause;            /* own time before it, and what of that is a pause; where it waited for nothing: its start */
  uint32_t join;
  uint32_t main, slot;         /* joins: what it waited for; the one before on its slot */
  uint32_t bin : 31, launched_late : 1;
  uint32_t spot;               /* NI_BLAME_NONE: not asked */
};

struct join {                  /* an operation of all its ranks */
  double start, end;
  float us;                    /* its transfer in the scenario */
  uint32_t n, arrived;
  uint32_t waiting;            /* rank + 1, a chain */
};

/* Operations of the same function and size on like links, those left out in which a cause is at work. */
struct same {
  uint64_t key;
  double log_us;               /* sum of ln(transfer): a few that took ten times as long do not count for ten */
  uint32_t n;
};
enum { SAME_MIN = 8 };         /* so many say what is usual */

struct what {                  /* it is */
  uint64_t key;
  float transfer;
  uint32_t link, bin;
  uint32_t same;               /* NI_BLAME_NONE: not asked */
  uint32_t last, rank;         /* the node that came last, and its rank */
};

/* On the longest way through the block as recorded: a join, and the own time before its last node (NI_BLAME_NONE: none). */
struct way {
  uint32_t join, node, rank;
};

struct change {                /* of a rank's own time in the scenario */
  float factor;
  uint32_t from, to;           /* bins */
  const bool *at;              /* in these of them; NULL: in all */
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
  uint64_t *causes_of;         /* of a link: bit i: cause i */
  bool compares;               /* causes of links are replayed: what is usual there is asked for */
  struct same *same;
  uint32_t n_same;
  size_t cap_same;
  struct ni_index same_at;
  bool launches;               /* a slow CPU is replayed: what lies before operations elsewhere is asked for */
  bool *launch_late;           /* of a rank: its CPU is slow */
  bool *with_late;             /* of a link: such a rank takes part */
  bool *has_like;              /* of a class: a rank of it has a CPU that is not slow */
  struct spot *spot;
  uint32_t n_spots;
  size_t cap_spots;
  struct ni_index spot_at;
  uint32_t *stack, n_nodes, n_joins, n_stack;
  bool torn;                   /* the block's ranks state orders that contradict each other: its times mean nothing */
  size_t cap_nodes, cap_joins, cap_what, cap_way;
  struct ni_index at;
  double own, pauses, transfer, recorded, replayed;
  /* By communicator: transfers on the longest way; what all causes together cost there, those apart whose cost is counted by the clock. */
  double *path, *lost, *lost_now_and_then;
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
  x->what[x->n_joins] = (struct what){.key = key, .transfer = exec, .link = link, .bin = bin, .same = NI_BLAME_NONE};
  return x->n_joins++;
}

/* The operations like this one; NI_BLAME_NONE: no memory. */
static uint32_t same_of(struct replay *x, uint64_t key) {
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&x->same_at, key, &i)) != NI_INDEX_NONE;)
    if (x->same[k].key == key) return k;
  if (!ni_array_room(x->same, x->n_same, x->cap_same) || ni_index_add(&x->same_at, key, x->n_same) < 0) return NI_BLAME_NONE;
  x->same[x->n_same] = (struct same){.key = key};
  return x->n_same++;
}

/* The place of the number-th operation of a step on a slot; of like ranks alone where there are some. NI_BLAME_NONE: no memory. */
static uint32_t spot_of(struct replay *x, const struct ni_blame_rank *o, uint32_t slot, uint32_t number) {
  const bool like = o->cls != NI_BLAME_NONE && x->has_like[o->cls];
  const uint64_t key = ni_hash(ni_hash(o->slot[slot].shape, number), like ? o->cls + 1 : 0);
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&x->spot_at, key, &i)) != NI_INDEX_NONE;)
    if (x->spot[k].key == key) return k;
  if (!ni_array_room(x->spot, x->n_spots, x->cap_spots) || ni_index_add(&x->spot_at, key, x->n_spots) < 0) return NI_BLAME_NONE;
  x->spot[x->n_spots] = (struct spot){.key = key};
  return x->n_spots++;
}

static uint32_t block_of(const struct ni_blame_rank *o, size_t i) { return (o->sample[i].step + (uint32_t)o->shift) / NI_BLAME_BLOCK; }

/* t0: begin of the block, since sample_ns of the rank. */
static int load_rank(struct replay *x, uint32_t rank, double t0) {
  const struct ni_blame_rank *o = &x->b->rank[rank];
  struct side *s = &x->side[rank];
  uint32_t last[NI_BLAME_SLOTS], number[NI_BLAME_SLOTS] = {0}, step = NI_BLAME_NONE; /* number: of the next operation of the step */
  double t = s->start_us, end = 0;
  memset(last, 0xff, sizeof last);
  s->first = x->n_nodes;
  for (size_t i = s->from; i < s->to; i++) {
    const struct ni_blame_sampled *op = &o->sample[i];
    const struct ni_blame_slot *slot = &o->slot[op->slot];
    if (i > s->from) t += op->after_us;
    struct node *n = &x->node[x->n_nodes++];
    *n = (struct node){op->gap_us, op->pause_us, 0, NI_BLAME_NONE, last[op->slot], (op->step + (uint32_t)o->shift) / x->b->bin_steps,
                       op->launched_late, NI_BLAME_NONE};
    if (op->step != step) memset(number, 0, sizeof number);
    step = op->step;
    if (x->launches && (n->spot = spot_of(x, o, op->slot, number[op->slot]++)) == NI_BLAME_NONE) return -ENOMEM;
    if (op->main && i - s->from >= op->main) n->main = x->node[s->first + i - s->from - op->main].join;
    else n->gap = (float)(t - t0), n->pause = 0;
    bool coll = slot->kind == NI_BLAME_COLL;
    uint64_t name = coll ? ni_mix(o->token_hash[op->token]) ^ op->sn : op->sn;
    n->join = join_of(x, ni_hash(ni_hash(slot->link, coll), name), slot->link, n->bin, op->exec_us);
    if (n->join == NI_BLAME_NONE) return -ENOMEM;
    struct what *w = &x->what[n->join];
    if (x->compares && w->same == NI_BLAME_NONE) {
      uint64_t work = coll ? o->token_hash[op->token] : o->token_bytes[op->token];
      if ((w->same = same_of(x, ni_hash(ni_hash(x->b->link[slot->link].cls, coll), ni_mix(work)))) == NI_BLAME_NONE) return -ENOMEM;
    }
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

/* Own time before what was launched late: as much less as it is usually less in that place of the step. */
static float launch_factor(const struct replay *x, const struct change *s, const struct node *n) {
  const struct spot *p = n->spot == NI_BLAME_NONE ? NULL : &x->spot[n->spot];
  if (!p || p->n_usual < SAME_MIN || p->n_late < SAME_MIN || !(p->late_us > 0)) return s->factor;
  return (float)fmax(0, fmin(1, p->usual_us / p->n_usual / (p->late_us / p->n_late)));
}

static float gap_of(const struct replay *x, const struct change *s, const struct node *n) {
  float gap = s->no_pauses ? n->gap - n->pause : n->gap;
  const bool there = n->bin >= s->from && n->bin < s->to && (!s->at || s->at[n->bin]);
  const float factor = s->launches && n->launched_late ? launch_factor(x, s, n) : s->factor;
  if (there && (!s->launches || n->launched_late)) gap -= (n->gap - n->pause) * (1 - factor);
  return gap;
}

/* When the node begins, and the join that it waited for. */
static double begin(const struct replay *x, const struct side *s, const struct node *n, uint32_t *by) {
  double began = n->gap, slot = n->slot == NI_BLAME_NONE ? -INFINITY : x->join[n->slot].end;
  *by = n->main;
  if (n->main != NI_BLAME_NONE) began = x->join[n->main].end + gap_of(x, &s->change, n);
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

static bool works_in(const struct replay *x, uint32_t cause, uint32_t link, uint32_t bin) {
  return x->causes_of[link] >> cause & 1 && ni_cause_at(&x->causes->item[cause], bin);
}

/* Transfers as they usually are: each one as long as those of its size on like links. */
static void quicken(struct replay *x, uint32_t cause) {
  for (uint32_t i = 0; i < x->n_joins; i++) {
    const struct what *w = &x->what[i];
    const struct same *s = &x->same[w->same];
    if (!works_in(x, cause, w->link, w->bin)) continue;
    if (s->n >= SAME_MIN) x->join[i].us = (float)exp(s->log_us / s->n);
    else x->join[i].us /= 1 + x->causes->item[cause].share;
  }
}

static void count_spots(struct replay *x) {
  for (uint32_t r = 0; r < x->b->n_ranks; r++)
    for (uint32_t i = 0; i < x->side[r].n; i++) {
      const struct node *n = &x->node[x->side[r].first + i];
      struct spot *p = &x->spot[n->spot];
      if (n->main == NI_BLAME_NONE) continue;
      const bool hidden = x->b->rank[r].n_slots == 1 && x->with_late[x->what[n->join].link];
      if (!x->launch_late[r] && !hidden) p->usual_us += n->gap - n->pause, p->n_usual++;
      else if (n->launched_late) p->late_us += n->gap - n->pause, p->n_late++;
    }
}

/* Once through the sample, to its begin again: how long transfers take where no cause is at work, and what lies before operations. */
static int find_usual(struct replay *x, uint32_t blocks) {
  int got = 0;
  for (uint32_t k = 0; got >= 0 && k < blocks; k++) {
    if (k % x->b->sample_every || (got = load_block(x, k)) <= 0) continue;
    for (uint32_t i = 0; i < x->n_joins; i++) {
      const struct what *w = &x->what[i];
      bool touched = false;
      for (uint64_t of = x->causes_of[w->link]; of && !touched; of &= of - 1)
        touched = ni_cause_at(&x->causes->item[__builtin_ctzll(of)], w->bin);
      if (touched || !x->compares) continue;
      x->same[w->same].log_us += log(fmax(w->transfer, 0.1));
      x->same[w->same].n++;
    }
    if (x->launches) count_spots(x);
  }
  memset(x->side, 0, (x->b->n_ranks + 1) * sizeof *x->side);
  return got < 0 ? got : 0;
}

static int ask_usual(struct replay *x, uint32_t blocks) {
  const struct ni_causes *c = x->causes;
  for (uint32_t i = 0; i < c->n; i++) {
    x->compares |= c->item[i].links;
    for (uint32_t k = 0; c->item[i].links && k < c->item[i].n_items; k++) x->causes_of[c->item[i].item[k]] |= UINT64_C(1) << i;
    x->launches |= c->item[i].launch;
    for (uint32_t k = 0; c->item[i].launch && k < c->item[i].n_items; k++) x->launch_late[c->item[i].item[k]] = true;
  }
  for (uint32_t r = 0; r < x->b->n_ranks; r++)
    if (x->b->rank[r].judged && x->b->rank[r].cls != NI_BLAME_NONE && !x->launch_late[r]) x->has_like[x->b->rank[r].cls] = true;
  for (uint32_t i = 0; i < x->b->n_links; i++)
    for (uint32_t k = 0; k < x->b->link[i].n_ranks; k++) x->with_late[i] |= x->launch_late[x->b->link[i].rank[k]];
  return x->compares || x->launches ? find_usual(x, blocks) : 0;
}

/* Of uneven work: its ranks have messages as large as their like, and so have communicators that are all theirs. */
static bool is_of(const struct ni_cause *c, const struct ni_blame_link *l) {
  uint32_t there = 0;
  for (uint32_t k = 0; k < l->n_ranks; k++)
    for (uint32_t i = 0; i < c->n_items; i++) there += c->item[i] == l->rank[k];
  return l->from < 0 ? there == l->n_ranks : there > 0;
}

static void carry_less(struct replay *x, const struct ni_cause *c) {
  for (uint32_t i = 0; i < x->n_joins; i++) {
    const struct what *w = &x->what[i];
    if (ni_cause_at(c, w->bin) && is_of(c, &x->b->link[w->link])) x->join[i].us /= 1 + c->more_bytes;
  }
}

/* Takes a cause away. */
static void without(struct replay *x, uint32_t cause) {
  const struct ni_cause *c = &x->causes->item[cause];
  if (c->links) quicken(x, cause);
  if (c->kind == NI_FIND_UNEVEN) carry_less(x, c);
  for (uint32_t i = 0; i < c->n_items && !c->links; i++) {
    struct change *s = &x->side[c->item[i]].change;
    if (c->kind == NI_FIND_PAUSES || c->kind == NI_FIND_PERIODIC) s->no_pauses = true;
    else *s = (struct change){1 / (1 + c->of_gaps), c->from, c->to, c->at, s->no_pauses, c->launch};
  }
}

/* The longest way is as long as before: then so is the block, whatever else is shorter. */
static bool as_long(const struct replay *x) {
  for (uint32_t i = 0; i < x->n_way; i++) {
    const struct way *w = &x->way[i];
    if (x->join[w->join].us < x->what[w->join].transfer) return false;
    if (w->node != NI_BLAME_NONE && gap_of(x, &x->side[w->rank].change, &x->node[w->node]) < x->node[w->node].gap) return false;
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
  return us + fmax(0, n->gap - gap_of(x, &x->side[w->rank].change, n));
}

static double shorter_in_all(const struct replay *x) {
  double all = 0;
  for (uint32_t i = 0; i < x->n_way; i++) all += shorter(x, &x->way[i]);
  return all;
}

/* Runs the scenario. What it saves is put down to the communicators on the longest way, by how much shorter each part of it gets. */
static double put_down(struct replay *x, double took, double *lost) {
  const double all = shorter_in_all(x), saved = took - run(x);
  for (uint32_t i = 0; i < x->n_way && all > 0; i++)
    lost[x->b->link[x->what[x->way[i].join].link].comm] += shorter(x, &x->way[i]) * saved / all;
  return saved;
}

/* What the block saves without all causes of which clocked[] is `which`. Without any of them it would be as long as it is. */
static double without_those(struct replay *x, const bool *clocked, bool which, double took, double *lost) {
  uint32_t n = 0;
  plain(x);
  for (uint32_t i = 0; i < x->causes->n; i++)
    if (clocked[i] == which) without(x, i), n++;
  return n ? put_down(x, took, lost) : 0;
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
  for (uint32_t i = from > c->from ? from : c->from; i < to && i < c->to && i < b->bins; i++) n += ni_cause_at(c, i);
  return n;
}

enum { CLOCK_SEEN_MIN = 4 };   /* bins of a cause in the sample: then the replay has a say where its cost is counted by the clock, */
#define CLOCK_MOST 2.0         /* which may say so many times as much: what made the links look slow may have made the steps long by itself */

static void bound_cost(struct ni_cause *c, double most) {
  if (c->cost_us <= most) return;
  c->low_us *= most / c->cost_us;
  c->high_us *= most / c->cost_us;
  c->cost_us = most;
}

/* torn: also blocks whose ranks contradict each other, as where stamps of a busy machine have changed the order of operations. */
static int replay_blocks(struct replay *x, struct ni_causes *causes, bool torn, struct ni_replay *out) {
  const struct ni_blame *b = x->b;
  uint32_t blocks = b->steps / NI_BLAME_BLOCK + 1;
  uint32_t seen[NI_CAUSES_MAX] = {0};
  bool clocked[NI_CAUSES_MAX];
  double *cost = calloc((size_t)blocks * (causes->n + 1), sizeof *cost), all = 0, all_clocked = 0, base = 0;
  int e = cost ? ask_usual(x, blocks) : -ENOMEM, got = 0;
  for (uint32_t i = 0; i < causes->n; i++) clocked[i] = ni_cause_at_times(b, &causes->item[i]);
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
      without(x, i);
      if (!as_long(x)) cost[(size_t)i * blocks + out->blocks] = t - run(x);
      seen[i] += bins_of(x, &causes->item[i], k);
    }
    all += without_those(x, clocked, false, t, x->lost);
    all_clocked += without_those(x, clocked, true, t, x->lost_now_and_then);
    out->blocks++;
  }
  out->run_us = run_us(b);
  if (e == 0) e = ni_costs_by_clock(b, causes);
  if (e == 0 && base > 0) {
    double scale = out->run_us / base, on_way = x->own + x->pauses + x->transfer, plain_us = 0, said_us = 0, clocked_us = 0;
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
      if (clocked[i]) {
        if (c->most_us > 0) bound_cost(c, c->most_us);
        if (c->links && seen[i] >= CLOCK_SEEN_MIN) bound_cost(c, CLOCK_MOST * sum * bins_of(x, c, NI_BLAME_NONE) / seen[i]);
        clocked_us += c->cost_us;
        continue;
      }
      double mine_scale = seen[i] ? (double)bins_of(x, c, NI_BLAME_NONE) / seen[i] : scale;
      double most = (double)c->lead.part * c->excess_us * bins_of(x, c, NI_BLAME_NONE) * b->bin_steps;
      c->cost_us = fmax(0, sum * mine_scale);
      if (most < c->cost_us && c->lead.apart < 1) c->cost_us = pow(most, 1 - c->lead.apart) * pow(c->cost_us, c->lead.apart);
      c->low_us = c->cost_us * fmax(0, 1 - d);
      c->high_us = c->cost_us * (1 + d);
      plain_us += sum * scale;
      said_us += c->cost_us;
    }
    /* What all of them cost together, in the measure of what each is said to cost: of one cause it is the same number. */
    const double measure_of = plain_us > 0 ? scale * said_us / plain_us : 0;
    const double measure_of_clocked = all_clocked > 0 ? clocked_us / all_clocked : 0;
    out->without_us = fmax(0, out->run_us - all * measure_of - clocked_us);
    for (uint32_t i = 0; i < b->s->n_comms; i++) {
      b->s->comm[i].path_us = x->path[i] / on_way * out->run_us;
      b->s->comm[i].cost_us = x->lost[i] * measure_of + x->lost_now_and_then[i] * measure_of_clocked;
    }
  }
  free(cost);
  return e;
}

int ni_replay(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  struct replay x = {.b = b, .causes = causes, .side = calloc(b->n_ranks + 1, sizeof *x.side), .stack = malloc((b->n_ranks + 1) * sizeof *x.stack),
                     .causes_of = calloc(b->n_links + 1, sizeof *x.causes_of), .launch_late = calloc(b->n_ranks + 1, sizeof(bool)),
                     .with_late = calloc(b->n_links + 1, sizeof(bool)), .has_like = calloc(b->n_classes + 1, sizeof(bool)),
                     .path = calloc(b->s->n_comms + 1, sizeof *x.path), .lost = calloc(b->s->n_comms + 1, sizeof *x.lost),
                     .lost_now_and_then = calloc(b->s->n_comms + 1, sizeof *x.lost_now_and_then)};
  const bool has_room = x.side && x.stack && x.causes_of && x.launch_late && x.with_late && x.has_like && x.path && x.lost && x.lost_now_and_then;
  *out = (struct ni_replay){.model = NAN};
  int e = has_room ? replay_blocks(&x, causes, false, out) : -ENOMEM;
  if (e == 0 && !out->blocks) {
    memset(x.side, 0, (b->n_ranks + 1) * sizeof *x.side);
    e = replay_blocks(&x, causes, true, out);
  }
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    if (!b->rank[r].judged) continue; /* of another run in the folder, whose turn comes */
    free(b->rank[r].sample);
    b->rank[r].sample = NULL;
    b->rank[r].n_sample = 0;
  }
  ni_index_free(&x.at);
  free(x.node);
  free(x.join);
  free(x.what);
  free(x.way);
  free(x.side);
  free(x.stack);
  free(x.path);
  free(x.lost);
  free(x.lost_now_and_then);
  free(x.causes_of);
  free(x.launch_late);
  free(x.with_late);
  free(x.has_like);
  ni_index_free(&x.spot_at);
  free(x.spot);
  ni_index_free(&x.same_at);
  free(x.same);
  return e;
}
