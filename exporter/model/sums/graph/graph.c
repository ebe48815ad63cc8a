#include "graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

/* The join of an operation; NI_BLAME_NONE: no memory. */
static uint32_t find_or_add_join(struct ni_graph *g, uint64_t key, uint32_t link, uint32_t bin, float exec) {
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&g->at, key, &i)) != NI_INDEX_NONE;)
    if (g->op[k].key == key) {
      if (exec < g->op[k].transfer)
        g->op[k].transfer = exec;
      g->join[k].n++;
      return k;
    }
  if (!ni_array_room(g->join, g->n_joins, g->cap_joins) || !ni_array_room(g->op, g->n_joins, g->cap_ops) ||
      ni_index_add(&g->at, key, g->n_joins) < 0)
    return NI_BLAME_NONE;
  g->join[g->n_joins] = (struct ni_graph_join){.n = 1};
  g->op[g->n_joins] =
      (struct ni_graph_op){.key = key, .transfer = exec, .link = link, .bin = bin, .peers = NI_BLAME_NONE};
  return g->n_joins++;
}

/* The operations like this one; NI_BLAME_NONE: no memory. */
static uint32_t find_or_add_peer_transfers(struct ni_graph *g, uint64_t key) {
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&g->peers_at, key, &i)) != NI_INDEX_NONE;)
    if (g->peers[k].key == key)
      return k;
  if (!ni_array_room(g->peers, g->n_peer_sets, g->cap_peers) ||
      ni_index_add(&g->peers_at, key, g->n_peer_sets) < 0)
    return NI_BLAME_NONE;
  g->peers[g->n_peer_sets] = (struct ni_graph_peers){.key = key};
  return g->n_peer_sets++;
}

/*
 * The place of the number-th operation of a step on a slot; of like ranks alone where there are some.
 * NI_BLAME_NONE: no memory.
 */
static uint32_t find_or_add_spot(struct ni_graph *g, const struct ni_blame_rank *o, uint32_t slot,
                                 uint32_t number) {
  const bool of_peers = o->cls != NI_BLAME_NONE && g->has_peers[o->cls];
  const uint64_t key = ni_hash(ni_hash(o->slot[slot].shape, number), of_peers ? o->cls + 1 : 0);
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&g->spot_at, key, &i)) != NI_INDEX_NONE;)
    if (g->spot[k].key == key)
      return k;
  if (!ni_array_room(g->spot, g->n_spots, g->cap_spots) || ni_index_add(&g->spot_at, key, g->n_spots) < 0)
    return NI_BLAME_NONE;
  g->spot[g->n_spots] = (struct ni_graph_spot){.key = key};
  return g->n_spots++;
}

/* The late rank's own part of a spot. NI_BLAME_NONE: no memory. */
static uint32_t find_or_add_late_spot(struct ni_graph *g, uint32_t rank, uint32_t spot) {
  const uint64_t key = ni_hash(spot, rank);
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&g->late_spot_at, key, &i)) != NI_INDEX_NONE;)
    if (g->late_spot[k].key == key)
      return k;
  if (!ni_array_room(g->late_spot, g->n_late_spots, g->cap_late_spots) ||
      ni_index_add(&g->late_spot_at, key, g->n_late_spots) < 0)
    return NI_BLAME_NONE;
  g->late_spot[g->n_late_spots] = (struct ni_graph_late_spot){.key = key, .rank = rank, .spot = spot};
  return g->n_late_spots++;
}

/* Which place of the step the node is; number: of the slot's operation in it. 0 or -ENOMEM. */
static int set_spot(struct ni_graph *g, struct ni_graph_node *n, uint32_t rank, uint32_t slot,
                    uint32_t number) {
  const struct ni_blame_rank *o = &g->b->rank[rank];
  if (!g->launches && !g->any_late)
    return 0;
  n->spot = find_or_add_spot(g, o, slot, number);
  if (n->spot == NI_BLAME_NONE)
    return -ENOMEM;
  if (!g->is_late[rank] || o->cls == NI_BLAME_NONE || !g->has_peers[o->cls])
    return 0;
  n->late_spot = find_or_add_late_spot(g, rank, n->spot);
  return n->late_spot == NI_BLAME_NONE ? -ENOMEM : 0;
}

static uint32_t get_block(const struct ni_blame_rank *o, size_t i) {
  return (o->sample[i].step + (uint32_t)o->shift) / NI_BLAME_BLOCK;
}

/* Begin of the rank's sample since the first operation of the first rank. */
static double get_us_since_first(const struct ni_blame *b, uint32_t rank) {
  return (double)(b->rank[rank].sample_ns - b->rank[0].first_ns) / 1e3;
}

/*
 * Operations of a slot in a step that carry half as much as the largest of them, or more: buckets, and no
 * norm.
 */
struct buckets {
  size_t first, last; /* in the sample */
  uint64_t bytes;
  uint32_t n;
};

static void count_bucket(struct buckets *k, size_t at, uint64_t bytes) {
  if (bytes > 2 * k->bytes)
    *k = (struct buckets){.first = at};
  if (2 * bytes < k->bytes)
    return;
  if (bytes > k->bytes)
    k->bytes = bytes;
  k->last = at;
  k->n++;
}

/*
 * The last operation in line that ended before `at` began, in its step; *us: that long before. SIZE_MAX:
 * none.
 */
static size_t find_in_line_before(const struct ni_blame_rank *o, size_t first, size_t at, float *us) {
  double since = 0; /* from the start of one to that of `at` */
  for (size_t i = at; i-- > first && o->sample[i].step == o->sample[at].step;) {
    since += o->sample[i + 1].after_us;
    *us = (float)(since - o->sample[i].exec_us);
    if (!o->slot[o->sample[i].slot].overlapped && *us >= 0)
      return i;
  }
  return SIZE_MAX;
}

/*
 * Buckets of gradients that queue up behind a slow one begin when the one before has ended, and nothing says
 * since when they were ready. The last one of a step was not before the computing in line had ended, by as
 * much as the first one, which waited for nothing else, began behind what it followed.
 */
static void set_ready_join(struct ni_graph *g, const struct ni_blame_rank *o, const struct ni_graph_part *s,
                           const struct buckets *k) {
  const struct ni_blame_sampled *first = &o->sample[k->first];
  struct ni_graph_node *last = &g->node[s->first + k->last - s->from];
  float us = 0;
  if (k->n < 2 || last->main == NI_BLAME_NONE || last->main != last->slot)
    return;
  const size_t in_line = find_in_line_before(o, s->from, k->last, &us);
  if (in_line == SIZE_MAX)
    return;
  const bool follows = first->main && k->first - s->from >= first->main;
  const bool of_computing = follows && !o->slot[o->sample[k->first - first->main].slot].overlapped;
  last->ready = g->node[s->first + in_line - s->from].join;
  last->ready_gap = of_computing ? fminf(us, first->gap_us - first->pause_us) : 0;
}

/* Of each step, and of each slot that overlaps the computing. */
static void find_ready_joins(struct ni_graph *g, const struct ni_blame_rank *o,
                             const struct ni_graph_part *s) {
  for (size_t i = s->from, to; i < s->to; i = to) {
    struct buckets of[NI_BLAME_SLOTS] = {0};
    for (to = i; to < s->to && o->sample[to].step == o->sample[i].step; to++) {
      const struct ni_blame_sampled *op = &o->sample[to];
      if (o->slot[op->slot].overlapped)
        count_bucket(&of[op->slot], to, o->token_bytes[op->token]);
    }
    for (uint32_t k = 0; k < o->n_slots && k < NI_BLAME_SLOTS; k++)
      if (of[k].n)
        set_ready_join(g, o, s, &of[k]);
  }
}

/* t0: begin of the block, since sample_ns of the rank. */
static int load_rank(struct ni_graph *g, uint32_t rank, double t0) {
  const struct ni_blame_rank *o = &g->b->rank[rank];
  struct ni_graph_part *s = &g->part[rank];
  /* number: of the next operation of the step */
  uint32_t last[NI_BLAME_SLOTS], number[NI_BLAME_SLOTS] = {0}, step = NI_BLAME_NONE;
  double t = s->start_us, end = 0, launched = 0; /* launched: the last one that was launched late */
  memset(last, 0xff, sizeof last);
  s->first = g->n_nodes;
  for (size_t i = s->from; i < s->to; i++) {
    const struct ni_blame_sampled *op = &o->sample[i];
    const struct ni_blame_slot *slot = &o->slot[op->slot];
    if (i > s->from)
      t += op->after_us;
    struct ni_graph_node *n = &g->node[g->n_nodes++];
    *n = (struct ni_graph_node){.gap = op->gap_us,
                                .pause = op->pause_us,
                                .main = NI_BLAME_NONE,
                                .slot = last[op->slot],
                                .ready = NI_BLAME_NONE,
                                .bin = (op->step + (uint32_t)o->shift) / g->b->bin_steps,
                                .launched_late = op->launched_late,
                                .spot = NI_BLAME_NONE,
                                .late_spot = NI_BLAME_NONE};
    if (op->step != step)
      memset(number, 0, sizeof number);
    step = op->step;
    if (set_spot(g, n, rank, op->slot, number[op->slot]++) < 0)
      return -ENOMEM;
    if (op->main && i - s->from >= op->main) {
      n->main = g->node[s->first + i - s->from - op->main].join;
      n->beside = o->one_comm ? o->sample[i - op->main].exec_us : 0;
      n->since_launch = o->one_comm && op->launched_late && launched > 0 ? (float)(t - launched) : 0;
    } else {
      n->gap = (float)(t - t0);
      n->pause = 0;
    }
    bool coll = slot->kind == NI_BLAME_COLL;
    uint64_t name = coll ? ni_mix(o->token_hash[op->token]) ^ op->sn : op->sn;
    n->join = find_or_add_join(g, ni_hash(ni_hash(slot->link, coll), name), slot->link, n->bin, op->exec_us);
    if (n->join == NI_BLAME_NONE)
      return -ENOMEM;
    struct ni_graph_op *w = &g->op[n->join];
    if (g->compares && w->peers == NI_BLAME_NONE) {
      uint64_t work = coll ? o->token_hash[op->token] : o->token_bytes[op->token];
      if ((w->peers = find_or_add_peer_transfers(
               g, ni_hash(ni_hash(g->b->link[slot->link].cls, coll), ni_mix(work)))) == NI_BLAME_NONE)
        return -ENOMEM;
    }
    if (op->launched_late)
      launched = t;
    last[op->slot] = n->join;
    end = t + op->exec_us;
    n->end = (float)(end - t0);
  }
  s->n = g->n_nodes - s->first;
  s->took = end - s->start_us;
  s->start_us = t;
  find_ready_joins(g, o, s);
  return 0;
}

/* The rank's part of the sample that is the block; us: from its first start to its last. */
static double select_block(struct ni_graph_part *s, const struct ni_blame_rank *o, uint32_t block) {
  double us = 0;
  s->n = 0;
  for (s->from = s->to; s->from < o->n_sample && get_block(o, s->from) < block; s->from++)
    s->start_us += o->sample[s->from].after_us;
  for (s->to = s->from; s->to < o->n_sample && get_block(o, s->to) == block; s->to++)
    us += s->to > s->from ? o->sample[s->to].after_us : 0;
  if (s->from < s->to)
    s->start_us += o->sample[s->from].after_us;
  return us;
}

/*
 * When the block begins on each host, in begin_us. All do the same steps at the same time, so a host that
 * begins more than a block before or behind the first one has a clock that could not be compared (hosts that
 * exchange messages alone): its own begin counts for it. For the others it is the earliest of theirs.
 */
static void find_host_begins(struct ni_graph *g, double block_us) {
  const struct ni_blame *b = g->b;
  double first = NAN, earliest = INFINITY;
  for (uint32_t h = 0; h < b->s->n_hosts; h++)
    g->begin_us[h] = INFINITY;
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_graph_part *s = &g->part[r];
    if (!b->rank[r].judged || s->from >= s->to)
      continue;
    double *begin = &g->begin_us[ni_blame_host(b, r)];
    *begin = fmin(*begin, s->start_us + get_us_since_first(b, r));
    if (isnan(first))
      first = *begin;
  }
  for (uint32_t h = 0; h < b->s->n_hosts; h++)
    if (fabs(g->begin_us[h] - first) <= block_us)
      earliest = fmin(earliest, g->begin_us[h]);
  for (uint32_t h = 0; h < b->s->n_hosts; h++)
    if (fabs(g->begin_us[h] - first) <= block_us)
      g->begin_us[h] = earliest;
}

/*
 * Of a message whose other side has no log all the wait for that side would be transfer, which no cause makes
 * shorter. It took as long as others like it; who else does the same work, and meets ranks with logs, holds
 * it up.
 */
static void shorten_one_sided_messages(struct ni_graph *g) {
  for (uint32_t i = 0; i < g->n_joins; i++) {
    const struct ni_blame_link *l = &g->b->link[g->op[i].link];
    if (l->from >= 0 && l->n_ranks == 1 && l->baseline_us < g->op[i].transfer)
      g->op[i].transfer = l->baseline_us;
  }
}

int ni_graph_load(struct ni_graph *g, uint32_t block) {
  const struct ni_blame *b = g->b;
  double block_us = 0;
  size_t nodes = 0;
  int e = 0;
  g->n_nodes = g->n_joins = 0;
  ni_index_free(&g->at);
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    struct ni_graph_part *s = &g->part[r];
    s->n = 0;
    if (!b->rank[r].judged)
      continue;
    block_us = fmax(block_us, select_block(s, &b->rank[r], block));
    nodes += s->to - s->from;
  }
  find_host_begins(g, block_us);
  if (nodes > g->cap_nodes && !ni_array_exact(&g->node, &g->cap_nodes, nodes, sizeof *g->node))
    return -ENOMEM;
  for (uint32_t r = 0; e == 0 && r < b->n_ranks; r++)
    if (b->rank[r].judged)
      e = load_rank(g, r, g->begin_us[ni_blame_host(b, r)] - get_us_since_first(b, r));
  if (e == 0)
    shorten_one_sided_messages(g);
  return e < 0 ? e : g->n_nodes > 0;
}

/* Since when it was ready matters where it need not queue up as it did. */
static uint32_t get_ready_join(const struct ni_graph *g, const struct ni_graph_node *n) {
  return g->quicker ? n->ready : NI_BLAME_NONE;
}

static bool must_wait_for(const struct ni_graph *g, uint32_t join) {
  return join != NI_BLAME_NONE && g->join[join].arrived < g->join[join].n;
}

/* The node's place in the step, where enough is known of it; NULL: it is not. */
static const struct ni_graph_spot *find_known_spot(const struct ni_graph *g, const struct ni_graph_node *n) {
  const struct ni_graph_spot *p = n->spot == NI_BLAME_NONE ? NULL : &g->spot[n->spot];
  const bool is_known = p && p->n_usual >= NI_GRAPH_PEERS_MIN && p->n_late >= NI_GRAPH_PEERS_MIN;
  return is_known && p->late_us > 0 ? p : NULL;
}

/* Own time before what was launched late: as much less as it is usually less in that place of the step. */
static float find_launch_factor(const struct ni_graph *g, const struct ni_graph_change *s,
                                const struct ni_graph_node *n) {
  const struct ni_graph_spot *p = find_known_spot(g, n);
  const bool untold = !p || (ni_graph_hides(p) && !(g->launch_factor > 0));
  if (untold)
    return s->factor;
  return (float)fmax(0, fmin(1, p->usual_us / p->n_usual / (p->late_us / p->n_late)));
}

/*
 * The CPU was what it waited for last. Stamps that are off hide that now and then: where most of what a slow
 * CPU launches in this place of the step is late, all of it is.
 */
static bool is_launched_late(const struct ni_graph *g, const struct ni_graph_node *n) {
  const struct ni_graph_spot *p = find_known_spot(g, n);
  return n->launched_late || (p && p->n_late * 2 > p->n_slow);
}

static bool is_changed(const struct ni_graph *g, const struct ni_graph_change *s,
                       const struct ni_graph_node *n) {
  const bool in_interval = n->bin >= s->from && n->bin < s->to;
  const bool there = in_interval && (!s->at || s->at[n->bin]);
  return there && (!s->launches || is_launched_late(g, n));
}

/*
 * When a CPU that is not slow has launched the node, where others' own time does not say so since they
 * compute while they wait: from launch to launch it takes as much less as where nothing hides it. -INFINITY:
 * not asked.
 */
static double find_launch(const struct ni_graph *g, const struct ni_graph_part *s,
                          const struct ni_graph_node *n) {
  const bool launches = s->change.launches && is_changed(g, &s->change, n);
  const struct ni_graph_spot *p = launches && n->since_launch > 0 ? find_known_spot(g, n) : NULL;
  return p && ni_graph_hides(p) ? s->launched + (double)n->since_launch * g->launch_factor : -INFINITY;
}

float ni_graph_changed_gap(const struct ni_graph *g, const struct ni_graph_change *s,
                           const struct ni_graph_node *n) {
  const float own = ni_graph_own_time(g, n);
  const bool changed = is_changed(g, s, n);
  /* a pause that ends with a late launch is the CPU's as well */
  const bool is_cpus = (changed && s->launches && n->launched_late) || (s->pauses_at && s->pauses_at[n->bin]);
  const bool no_pause = s->no_pauses || is_cpus;
  const float gap = no_pause ? own - n->pause : own;
  if (!changed)
    return gap;
  float less = 1 - (s->launches ? find_launch_factor(g, s, n) : s->factor);
  if (s->by_spot && n->late_spot != NI_BLAME_NONE)
    less = g->late_spot[n->late_spot].less;
  return gap - (own - n->pause) * less;
}

double ni_graph_find_start(const struct ni_graph *g, const struct ni_graph_part *s,
                           const struct ni_graph_node *n, uint32_t *by) {
  double began = n->gap, slot = n->slot == NI_BLAME_NONE ? -INFINITY : g->join[n->slot].end;
  *by = n->main;
  if (n->main != NI_BLAME_NONE)
    began = fmax(g->join[n->main].end + ni_graph_changed_gap(g, &s->change, n), find_launch(g, s, n));
  const uint32_t ready = get_ready_join(g, n);
  if (ready != NI_BLAME_NONE && g->join[ready].end + n->ready_gap > began) {
    began = g->join[ready].end + n->ready_gap;
    *by = ready;
  }
  if (n->slot == NI_BLAME_NONE || n->slot == n->main)
    return began;
  if (n->main != NI_BLAME_NONE && slot <= began)
    return began;
  *by = n->slot;
  return slot > began ? slot : began;
}

static void complete_join(struct ni_graph *g, struct ni_graph_join *j) {
  j->arrived = j->n;
  j->end = j->start + j->us;
  for (uint32_t r = j->waiting; r; r = g->part[r - 1].next)
    g->stack[g->n_stack++] = r - 1;
  j->waiting = 0;
}

/* Goes on with a rank until it has to wait. */
static void run_rank(struct ni_graph *g, uint32_t rank) {
  struct ni_graph_part *s = &g->part[rank];
  for (; s->at < s->n; s->at++) {
    const struct ni_graph_node *n = &g->node[s->first + s->at];
    uint32_t by = must_wait_for(g, n->main)      ? n->main
        : must_wait_for(g, get_ready_join(g, n)) ? n->ready
                                                 : n->slot;
    if (must_wait_for(g, by)) {
      s->waits = by;
      s->next = g->join[by].waiting;
      g->join[by].waiting = rank + 1;
      return;
    }
    struct ni_graph_join *j = &g->join[n->join];
    double began = ni_graph_find_start(g, s, n, &by);
    if (n->launched_late)
      s->launched = began;
    /* it went on without this rank, which is there all the same: see ni_graph_run() */
    if (j->arrived >= j->n) {
      g->torn = true;
      continue;
    }
    if (j->arrived == 0 || began > j->start) {
      j->start = began;
      g->op[n->join].last = s->first + s->at;
      g->op[n->join].rank = rank;
    }
    if (++j->arrived == j->n)
      complete_join(g, j);
  }
}

double ni_graph_run(struct ni_graph *g) {
  const uint32_t ranks = g->b->n_ranks;
  double end = 0;
  for (uint32_t i = 0; i < g->n_joins; i++)
    g->join[i].arrived = g->join[i].waiting = 0;
  g->n_stack = 0;
  g->torn = false;
  for (uint32_t r = ranks; r-- > 0;) {
    g->part[r].at = 0;
    g->part[r].launched = -INFINITY;
    if (g->part[r].n)
      g->stack[g->n_stack++] = r;
  }
  while (g->n_stack)
    run_rank(g, g->stack[--g->n_stack]);
  /* records that are missing, or cut off by the block's end: nobody comes any more */
  for (uint32_t r = 0; r < ranks; r++)
    while (g->part[r].at < g->part[r].n) {
      complete_join(g, &g->join[g->part[r].waits]);
      while (g->n_stack)
        run_rank(g, g->stack[--g->n_stack]);
    }
  for (uint32_t i = 0; i < g->n_joins; i++)
    end = fmax(end, g->join[i].end);
  return end;
}

int ni_graph_begin(struct ni_graph *g, const struct ni_blame *b) {
  *g = (struct ni_graph){.b = b,
                         .part = calloc(b->n_ranks + 1, sizeof *g->part),
                         .begin_us = malloc((b->s->n_hosts + 1) * sizeof *g->begin_us),
                         .stack = malloc((b->n_ranks + 1) * sizeof *g->stack),
                         .is_late = calloc(b->n_ranks + 1, sizeof *g->is_late),
                         .has_peers = calloc(b->n_classes + 1, sizeof *g->has_peers)};
  const bool has_stack = g->begin_us && g->stack;
  const bool has_flags = g->is_late && g->has_peers;
  return g->part && has_stack && has_flags ? 0 : -ENOMEM;
}

void ni_graph_rewind(struct ni_graph *g) { memset(g->part, 0, (g->b->n_ranks + 1) * sizeof *g->part); }

void ni_graph_free(struct ni_graph *g) {
  ni_index_free(&g->at);
  ni_index_free(&g->peers_at);
  ni_index_free(&g->spot_at);
  ni_index_free(&g->late_spot_at);
  free(g->node);
  free(g->join);
  free(g->op);
  free(g->part);
  free(g->stack);
  free(g->begin_us);
  free(g->peers);
  free(g->has_peers);
  free(g->spot);
  free(g->is_late);
  free(g->late_spot);
}
