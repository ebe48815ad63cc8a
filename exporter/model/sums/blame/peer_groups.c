#include "peer_groups.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "causes.h"
#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/work/islands.h"

void ni_blame_free_rank(struct ni_blame_rank *o) {
  free(o->slot);
  free(o->token_func);
  free(o->token_hash);
  free(o->token_bytes);
  free(o->cell);
  free(o->link_cell);
  free(o->incident);
  free(o->sample);
  free(o->place);
  free(o->pace);
}

void ni_blame_reset_rank(struct ni_blame_rank *o, uint64_t ops) {
  const struct ni_blame_rank anew = {.process = o->process,
                                     .run = o->run,
                                     .usual_steps = o->usual_steps,
                                     .usual_span_s = o->usual_span_s,
                                     .usual_mark = o->usual_mark,
                                     .ops_before = ops,
                                     .all_ops = o->all_ops};
  ni_blame_free_rank(o);
  *o = anew;
}

void ni_blame_free_links(struct ni_blame *b) {
  for (uint32_t i = 0; i < b->n_links; i++) {
    free(b->link[i].rank);
    free(b->link[i].us);
    free(b->link[i].ops);
    free(b->link[i].longest);
    free(b->link[i].longest_of);
    free(b->link[i].within);
  }
  free(b->link);
  free(b->beyond_us);
  free(b->island);
  free(b->exchange);
  b->link = NULL;
  b->beyond_us = NULL;
  b->island = NULL;
  b->exchange = NULL;
  b->n_islands = 0;
  b->n_links = b->n_classes = b->bins = b->bin_steps = b->steps = 0;
}

void ni_blame_free(struct ni_blame *b) {
  for (uint32_t i = 0; b->rank && i < b->n_ranks; i++)
    ni_blame_free_rank(&b->rank[i]);
  ni_blame_free_links(b);
  free(b->rank);
  b->rank = NULL;
}

struct comm_seat { /* a judged rank in a communicator */
  uint32_t comm, rank;
  bool messages;
  bool weights; /* collectives that carry parameters or their gradients */
};
static NI_ORDER_BY(by_comm, struct comm_seat, comm, rank);

struct peer {
  uint64_t work;
  uint32_t root, rank, joined; /* joined: with others by collectives (join_ranks()) */
  float colls, bytes;          /* collectives of a step, and what they carry */
};
static NI_ORDER_BY(by_colls, struct peer, work, root, colls, rank);
static NI_ORDER_BY(by_bytes, struct peer, bytes, rank);

/* ranks whose collectives of a step are within this factor of the next rank's have as much to do, */
#define AS_MANY 1.03f
/* and whose bytes are: a replica with more of the batch is like the others */
#define AS_LARGE 1.25f

/* Collectives of a step, in bytes. */
static float get_step_bytes(const struct ni_blame_rank *o) {
  double bytes = 0;
  for (uint32_t k = 0; k < o->n_slots; k++)
    if (o->slot[k].kind == NI_BLAME_COLL)
      bytes += (double)o->slot[k].bytes;
  return (float)(bytes / o->n_steps);
}

/*
 * Numbers the classes of ranks with the same functions in the same stage. In order of collectives, then of
 * bytes, a new class begins where either leaps. Bytes do not if collectives that not all ranks are in join
 * the two, as gradients join replicas: they hold the same layers, and one has far more to do.
 */
static void number_classes(struct ni_blame *b, struct peer *peer, size_t n) {
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && peer[to].colls <= AS_MANY * peer[to - 1].colls; to++) {}
    qsort(peer + from, to - from, sizeof *peer, by_bytes);
    for (size_t i = from; i < to; i++) {
      const bool leaps = i > from && peer[i].bytes > AS_LARGE * peer[i - 1].bytes;
      if (leaps && peer[i].joined != peer[i - 1].joined)
        b->n_classes++;
      b->rank[peer[i].rank].cls = b->n_classes;
    }
    b->n_classes++;
  }
}

/* The slot has messages to the next stage or back, not to many peers (experts). */
static bool is_in_pipeline(const struct ni_blame_rank *o, uint32_t slot) {
  uint32_t peers = 0;
  for (uint32_t i = 0; i < o->n_slots; i++)
    peers += o->slot[i].comm == o->slot[slot].comm && o->slot[i].kind == NI_BLAME_SEND;
  return o->slot[slot].kind != NI_BLAME_COLL && peers <= 2;
}

/* Collectives of parameters carry this part of what messages do, or more; a norm is a few bytes. */
#define WEIGHTS_OF_MESSAGES 0.001

/*
 * Most of what this rank's collectives carry goes through this communicator, and beside its messages that is
 * much more than a norm or a loss: parameters or their gradients. Ranks that exchange these hold the same
 * layers, so they are no stages, even if it is all ranks that do, as where sequences go round in a ring of
 * messages beside sharded parameters.
 */
static bool carries_weights(const struct ni_blame_rank *o, uint32_t comm) {
  double here = 0, all = 0, messages = 0;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const double bytes = (double)o->slot[i].bytes;
    if (o->slot[i].kind != NI_BLAME_COLL)
      messages += bytes;
    else
      all += bytes;
    if (o->slot[i].kind == NI_BLAME_COLL && o->slot[i].comm == comm)
      here += bytes;
  }
  return 2 * here > all && here >= WEIGHTS_OF_MESSAGES * messages;
}

/*
 * Both have messages to their neighbours on one communicator, which not all ranks are in: they are stages of
 * one pipeline. So what joins them as well is a norm of the whole model, or the embedding that the first
 * stage and the last one share.
 */
static bool are_of_one_pipeline(const struct ni_blame *b, uint32_t rank, uint32_t other, uint32_t judged) {
  const struct ni_blame_rank *x = &b->rank[rank], *y = &b->rank[other];
  for (uint32_t i = 0; i < x->n_slots; i++) {
    const uint32_t comm = x->slot[i].comm;
    if (!is_in_pipeline(x, i) || b->s->comm[comm].n_ranks >= (int32_t)judged)
      continue;
    for (uint32_t k = 0; k < y->n_slots; k++)
      if (y->slot[k].comm == comm && is_in_pipeline(y, k))
        return rank != other;
  }
  return false;
}

/* Its messages go to later stages alone, or to earlier ones alone, as numbered in their communicators. */
struct ends {
  bool first, last;
};

static struct ends find_ends(const struct ni_blame_rank *o) {
  bool earlier = false, later = false;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    earlier |= is_in_pipeline(o, i) && o->slot[i].peer < o->slot[i].rank;
    later |= is_in_pipeline(o, i) && o->slot[i].peer > o->slot[i].rank;
  }
  return (struct ends){later && !earlier, earlier && !later};
}

/* The first stage and the last one, which share an embedding. */
static bool are_opposite_ends(const struct ni_blame *b, uint32_t rank, uint32_t other) {
  const struct ends x = find_ends(&b->rank[rank]), y = find_ends(&b->rank[other]);
  return (x.first && y.last) || (x.last && y.first);
}

/*
 * Of a communicator's seats: stages of one pipeline are in it, those of its first rank. Then it joins none of
 * its ranks, as a norm over all that hold a part of one replica: that is several stages with the same work.
 */
static bool joins_stages(const struct ni_blame *b, const struct comm_seat *seat, uint32_t n,
                         uint32_t judged) {
  bool joins = false;
  for (uint32_t i = 1; i < n && !joins; i++)
    joins = are_of_one_pipeline(b, seat[0].rank, seat[i].rank, judged) ||
        are_opposite_ends(b, seat[0].rank, seat[i].rank);
  return joins;
}

/* By collectives of parameters, or of what the ranks of one stage share: two ranks with the same work. */
static bool joins_peers(const struct ni_blame *b, const struct comm_seat *x, const struct comm_seat *y,
                        bool of_one_stage) {
  const bool by_messages = x->messages || y->messages;
  if (by_messages || b->rank[x->rank].signature != b->rank[y->rank].signature)
    return false;
  return of_one_stage || (x->weights && y->weights);
}

/*
 * Joins ranks (in up) by collectives of communicators that not all ranks are in, or that carry weights.
 * Returns whether messages go between ranks that are not joined: then they are stages.
 */
static bool join_ranks(const struct ni_blame *b, struct comm_seat *seat, uint32_t n, uint32_t judged,
                       uint32_t *up) {
  bool stages = false;
  qsort(seat, n, sizeof *seat, by_comm);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t from = 0, to; from < n; from = to) {
      uint32_t members = 1;
      for (to = from + 1; to < n && seat[to].comm == seat[from].comm; to++)
        members += seat[to].rank != seat[to - 1].rank;
      const bool of_one_stage =
          pass == 0 && members < judged && !joins_stages(b, seat + from, to - from, judged);
      for (uint32_t i = from; i < to; i++) {
        const uint32_t a = seat[from].rank, z = seat[i].rank;
        if (pass == 1)
          stages |= seat[i].messages && ni_disjoint_root(up, a) != ni_disjoint_root(up, z);
        else if (joins_peers(b, &seat[from], &seat[i], of_one_stage))
          ni_disjoint_join(up, a, z);
      }
    }
  return stages;
}

/* Where logs leave messages out: ranks are joined in several parts, so messages go between these. */
static bool has_parts_apart(const struct ni_blame *b, uint32_t *up) {
  uint32_t first = NI_BLAME_NONE;
  bool joined = false, apart = false;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged)
      continue;
    const uint32_t root = ni_disjoint_root(up, i);
    if (first == NI_BLAME_NONE)
      first = root;
    joined |= root != i;
    apart |= root != first;
  }
  return joined && apart;
}

/*
 * The communicator whose ranks wait alike (ni_blame_rank, team). Messages of stages are none, because each of
 * their ranks waits for another one. Nor are communicators between whose ranks others lie (work/joined.h).
 */
static uint32_t find_team(const struct ni_blame *b, const struct ni_blame_rank *o) {
  uint32_t team = NI_BLAME_NONE;
  uint64_t most = 0;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const bool is_most = o->slot[i].ops > most && !is_in_pipeline(o, i);
    if (is_most) {
      most = o->slot[i].ops;
      team = o->slot[i].comm;
    }
  }
  return team != NI_BLAME_NONE && b->s->comm[team].neighbours ? team : NI_BLAME_NONE;
}

/* There are teams, and none of them is the whole job. */
static bool has_teams(const struct ni_blame *b, uint32_t judged) {
  bool any = false;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged || b->rank[i].team == NI_BLAME_NONE)
      continue;
    if (b->s->comm[b->rank[i].team].n_ranks >= (int32_t)judged)
      return false;
    any = true;
  }
  return any;
}

static int find_classes(struct ni_blame *b) {
  uint32_t *up = malloc((b->n_ranks + 1) * sizeof *up), n = 0, judged = 0;
  size_t slots = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    slots += b->rank[i].n_slots;
  struct comm_seat *seat = malloc((slots + 1) * sizeof *seat);
  struct peer *peer = malloc((b->n_ranks + 1) * sizeof *peer);
  if (!up || !seat || !peer) {
    free(up);
    free(seat);
    free(peer);
    return -ENOMEM;
  }
  ni_disjoint_begin(up, b->n_ranks);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    if (o->judged)
      judged++;
    for (uint32_t k = 0; o->judged && k < o->n_slots; k++)
      if (o->slot[k].ops)
        seat[n++] = (struct comm_seat){.comm = o->slot[k].comm,
                                       .rank = i,
                                       .messages = is_in_pipeline(o, k),
                                       .weights = carries_weights(o, o->slot[k].comm)};
  }
  bool stages = join_ranks(b, seat, n, judged, up);
  if (b->messages_left_out)
    stages |= has_parts_apart(b, up);
  n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    b->rank[i].cls = NI_BLAME_NONE;
    b->rank[i].team = find_team(b, &b->rank[i]);
    if (!b->rank[i].judged)
      continue;
    peer[n++] = (struct peer){.work = b->rank[i].signature,
                              .root = stages ? ni_disjoint_root(up, i) : 0,
                              .rank = i,
                              .joined = ni_disjoint_root(up, i),
                              .colls = b->rank[i].colls,
                              .bytes = get_step_bytes(&b->rank[i])};
  }
  qsort(peer, n, sizeof *peer, by_colls);
  for (uint32_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && peer[to].work == peer[from].work && peer[to].root == peer[from].root;
         to++) {}
    number_classes(b, peer + from, to - from);
  }
  b->stages = stages;
  b->waits_unseen = stages && b->messages_left_out;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    b->waits_unseen |= b->rank[i].judged && b->s->process[b->rank[i].process].may_wait_unseen;
  /* stages also wait for each other's messages, each micro-batch, and these are recorded */
  const bool joined = !stages && !b->waits_unseen;
  b->teams_wait_unseen = joined && b->collectives_left_out && has_teams(b, judged);
  free(up);
  free(seat);
  free(peer);
  return 0;
}

/* The link that a slot is of; it is made where it is new. */
static int64_t find_or_add_link(struct ni_blame *b, struct ni_index *at, size_t *cap,
                                const struct ni_blame_slot *s) {
  int32_t from = s->kind == NI_BLAME_COLL ? -1 : s->kind == NI_BLAME_SEND ? s->rank : s->peer;
  int32_t to = s->kind == NI_BLAME_COLL ? -1 : s->kind == NI_BLAME_SEND ? s->peer : s->rank;
  const uint64_t hash = ni_hash(ni_hash(s->comm, (uint32_t)from), (uint32_t)to);
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(at, hash, &i)) != NI_INDEX_NONE;)
    if (b->link[k].comm == s->comm && b->link[k].from == from && b->link[k].to == to)
      return k;
  if (!ni_array_room(b->link, b->n_links, *cap) || ni_index_add(at, hash, b->n_links) < 0)
    return -ENOMEM;
  b->link[b->n_links] = (struct ni_blame_link){
      .comm = s->comm, .from = from, .to = to, .host = -1, .ratio = NAN, .baseline_us = NAN};
  return b->n_links++;
}

/*
 * Adds a rank to a link, whose transfer in a bin is the least over its ranks. Logs may begin at different
 * steps: until all of its ranks have a whole bin the least is no transfer, but what somebody waited for ranks
 * whose logs had not begun (clear_link_begins()).
 */
static int add_rank_to_link(struct ni_blame *b, struct ni_blame_link *l, uint32_t rank, uint32_t slot) {
  const struct ni_blame_rank *o = &b->rank[rank];
  const struct ni_blame_slot *s = &o->slot[slot];
  size_t cap = l->n_ranks;
  if (!l->us) {
    l->us = malloc((b->bins + 1) * sizeof *l->us);
    l->ops = calloc(b->bins + 1, sizeof *l->ops);
    if (!l->us || !l->ops)
      return -ENOMEM;
    for (uint32_t k = 0; k < b->bins; k++)
      l->us[k] = NAN;
  }
  if (!ni_array_exact(&l->rank, &cap, l->n_ranks + 1, sizeof *l->rank))
    return -ENOMEM;
  l->host =
      l->n_ranks == 0 || l->host == (int32_t)ni_blame_host(b, rank) ? (int32_t)ni_blame_host(b, rank) : -1;
  if (l->n_ranks == 0)
    l->shape = s->shape;
  l->rank[l->n_ranks++] = rank;
  double per_op = s->ops ? (double)s->bytes / (double)s->ops : 0, per_step = (double)s->ops / o->n_steps;
  if (per_op > l->bytes)
    l->bytes = per_op;
  if (per_step > l->per_step)
    l->per_step = per_step;
  uint32_t first = NI_BLAME_NONE;
  for (uint32_t k = 0; k < o->n_bins; k++) {
    const struct ni_blame_link_cell *c = &o->link_cell[(size_t)k * o->max_slots + slot];
    uint32_t at = k + (uint32_t)o->shift / b->bin_steps;
    if (c->n == 0 || at >= b->bins)
      continue;
    if (first == NI_BLAME_NONE)
      first = at;
    float us = c->least / (float)c->n;
    if (isnan(l->us[at]) || c->alike < l->ops[at])
      l->ops[at] = c->alike;
    if (isnan(l->us[at]) || us < l->us[at])
      l->us[at] = us;
  }
  if (first == NI_BLAME_NONE)
    return 0;
  if (l->n_ranks == 1 || first < l->first_bin)
    l->first_bin = first;
  if (l->n_ranks == 1 || first > l->last_begin)
    l->last_begin = first;
  return 0;
}

/* Of a rank, in the job's bin `at`; all 0: nothing happened. */
static struct ni_blame_link_cell get_link_cell(const struct ni_blame *b, const struct ni_blame_rank *o,
                                               uint32_t slot, int64_t at) {
  const int64_t k = at - o->shift / (int32_t)b->bin_steps;
  const bool is_there = k >= 0 && k < o->n_bins;
  return is_there ? o->link_cell[(size_t)k * o->max_slots + slot] : (struct ni_blame_link_cell){0};
}

static bool has_long_one(const struct ni_blame_link_cell *c, uint32_t of) {
  bool has = false;
  for (uint32_t i = 0; i < NI_BLAME_LONG; i++)
    has |= c->longest_of[i] == of;
  return has;
}

/*
 * The rank's cell of the bin, or the one beside it that has this long operation: a step may end a little
 * before it on one rank and a little behind it on another.
 */
static struct ni_blame_link_cell find_long_cell(const struct ni_blame *b, const struct ni_blame_rank *o,
                                                uint32_t slot, uint32_t at, uint32_t of) {
  const struct ni_blame_link_cell here = get_link_cell(b, o, slot, at);
  for (int64_t k = (int64_t)at - 1; !has_long_one(&here, of) && k <= (int64_t)at + 1; k += 2) {
    const struct ni_blame_link_cell c = get_link_cell(b, o, slot, k);
    if (has_long_one(&c, of))
      return c;
  }
  return here;
}

/*
 * Of the long operations of a bin those stay that the rank states as well. None: no transfer of the bin took
 * longer than the shortest of those that are stated.
 */
static void keep_long_ones(const struct ni_blame *b, struct ni_blame_link *l, uint32_t rank, uint32_t slot,
                           uint32_t at) {
  const struct ni_blame_rank *o = &b->rank[rank];
  uint32_t *of = l->longest_of[at], n = 0;
  float us = get_link_cell(b, o, slot, at).longest;
  for (uint32_t i = 0; i < NI_BLAME_LONG && of[i]; i++) {
    const struct ni_blame_link_cell c = find_long_cell(b, o, slot, at, of[i]);
    if (!has_long_one(&c, of[i]))
      continue;
    us = n ? fminf(us, c.longest) : c.longest;
    of[n++] = of[i];
  }
  for (uint32_t i = n; i < NI_BLAME_LONG; i++)
    of[i] = i ? 0 : NI_BLAME_NONE;
  l->longest[at] = fminf(l->longest[at], us);
}

/*
 * Where an operation of a bin is long on all of its ranks, the shortest of these is how long it took. Where
 * ranks waited for each other in turn these are different ones (NI_BLAME_NONE), and no transfer of the bin
 * took longer than the shortest of them.
 */
static int add_longest_to_link(const struct ni_blame *b, struct ni_blame_link *l, uint32_t rank,
                               uint32_t slot) {
  const struct ni_blame_rank *o = &b->rank[rank];
  const bool first = !l->longest;
  if (first) {
    l->longest = calloc(b->bins + 1, sizeof *l->longest);
    l->longest_of = calloc(b->bins + 1, sizeof *l->longest_of);
    l->within = calloc(b->bins + 1, sizeof *l->within);
    if (!l->longest || !l->longest_of || !l->within)
      return -ENOMEM;
  }
  for (uint32_t at = 0; at < b->bins; at++) {
    const struct ni_blame_link_cell c = get_link_cell(b, o, slot, at);
    l->within[at] = first ? c.exec : fminf(l->within[at], c.exec);
    if (!first) {
      keep_long_ones(b, l, rank, slot, at);
      continue;
    }
    l->longest[at] = c.longest;
    memcpy(l->longest_of[at], c.longest_of, sizeof c.longest_of);
  }
  return 0;
}

static void clear_link_begins(struct ni_blame *b) {
  for (uint32_t i = 0; i < b->n_links; i++) {
    struct ni_blame_link *l = &b->link[i];
    for (uint32_t k = l->first_bin; l->last_begin > l->first_bin && k <= l->last_begin; k++)
      l->us[k] = NAN;
  }
}

static int build_links(struct ni_blame *b) {
  struct ni_index at = {0};
  size_t cap = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    for (uint32_t k = 0; e == 0 && b->rank[i].judged && k < b->rank[i].n_slots; k++) {
      struct ni_blame_slot *s = &b->rank[i].slot[k];
      int64_t l = s->ops ? find_or_add_link(b, &at, &cap, s) : NI_BLAME_NONE;
      if (l < 0)
        e = (int)l;
      else if (l != NI_BLAME_NONE) {
        s->link = (uint32_t)l;
        e = add_rank_to_link(b, &b->link[l], i, k);
        if (e == 0 && s->kind == NI_BLAME_COLL)
          e = add_longest_to_link(b, &b->link[l], i, k);
      }
    }
  ni_index_free(&at);
  if (e == 0)
    clear_link_begins(b);
  return e;
}

static bool is_near(double a, double b) { return fabs(a - b) <= NI_BLAME_EQUAL * fmax(a, b); }

/* Stages differ in the number of their layers: what they send for each of them takes as long. */
#define AS_OFTEN 2.0

static bool is_as_often(const struct ni_blame_link *x, const struct ni_blame_link *y) {
  if (is_near(x->per_step, y->per_step))
    return true;
  const double more = fmax(x->per_step, y->per_step), less = fmin(x->per_step, y->per_step);
  return x->from < 0 && x->shape == y->shape && more <= AS_OFTEN * less;
}

/*
 * Both are collectives, or messages in the same direction. Messages to the next stage and back are sent and
 * waited for in different places of the step, so they differ in how long both sides are in them together.
 */
static bool goes_same_way(const struct ni_blame_link *x, const struct ni_blame_link *y) {
  return (x->from < 0) == (y->from < 0) && (x->from < x->to) == (y->from < y->to);
}

static float get_link_bytes(const struct ni_blame_link *l) { return l->bytes > 1 ? (float)l->bytes : 1; }

/*
 * Experts' messages are as large as routing makes them, so hardly two links have messages of one size. Long
 * ones are compared by what a byte takes: what comes before the first byte is tens of us.
 */
#define LONG_US 300.0f
#define AS_BIG 2.0

static bool is_as_large(const struct ni_blame_link *x, const struct ni_blame_link *y) {
  if (is_near(x->bytes, y->bytes))
    return true;
  const bool by_byte = x->from >= 0 && x->mean_us >= LONG_US && y->mean_us >= LONG_US;
  return by_byte && fmax(x->bytes, y->bytes) <= AS_BIG * fmin(x->bytes, y->bytes);
}

static bool are_peers(const struct ni_blame *b, const struct ni_blame_link *x,
                      const struct ni_blame_link *y) {
  const bool has_as_many_ranks = b->s->comm[x->comm].n_ranks == b->s->comm[y->comm].n_ranks;
  const bool crosses_hosts_too = (x->host < 0) == (y->host < 0);
  if (!has_as_many_ranks || !crosses_hosts_too || !goes_same_way(x, y))
    return false;
  return is_as_large(x, y) && is_as_often(x, y);
}

/* One standard deviation of those that are not slow, as a share. x: n links in order. */
static float measure_apart(const float *x, size_t n, float baseline) {
  if (n < NI_CAUSE_LIKE_MIN)
    return 0;
  const size_t low = (size_t)(NI_CAUSE_SPREAD_LOW * (double)(n - 1) + 0.5);
  const size_t high = (size_t)(NI_CAUSE_SPREAD_HIGH * (double)(n - 1) + 0.5);
  return (x[high] - x[low]) / NI_CAUSE_SPREAD / baseline;
}

/*
 * What is usual is asked of all bins: of those alone in which all ranks state the same operation nearly all
 * may be such that something stopped. Half of all bins can be such. scratch: room for all bins.
 */
static void measure_longest(const struct ni_blame *b, struct ni_blame_link *l, float *scratch) {
  l->usual_longest = NAN;
  if (!l->longest || !b->bins)
    return;
  for (uint32_t k = 0; k < b->bins; k++) {
    scratch[k] = l->longest[k];
    if (l->longest_of[k][0] == NI_BLAME_NONE)
      l->longest[k] = 0;
  }
  l->usual_longest = fmaxf(ni_blame_quantile(scratch, b->bins, NI_CAUSE_BASELINE), l->quiet_us);
}

/* Fills each link's mean over the bins, and compares it with the baseline of its peers for as many bytes. */
static int compare_links(struct ni_blame *b) {
  float *x = malloc((b->n_links + b->bins + 1) * sizeof *x);
  if (!x)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_links; i++) {
    struct ni_blame_link *l = &b->link[i];
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < b->bins; k++)
      if (!isnan(l->us[k])) {
        sum += l->us[k];
        x[n++] = l->us[k];
      }
    l->mean_us = n ? (float)(sum / n) : NAN;
    l->quiet_us = ni_blame_quantile(x, n, NI_CAUSE_BASELINE);
    measure_longest(b, l, x);
    l->cls = NI_BLAME_NONE;
  }
  uint32_t classes = 0;
  for (uint32_t i = 0; i < b->n_links && classes < NI_BLAME_LINK_CLASSES; i++) {
    if (b->link[i].cls != NI_BLAME_NONE)
      continue;
    size_t n = 0;
    for (uint32_t k = i; k < b->n_links; k++) {
      struct ni_blame_link *l = &b->link[k];
      if (l->cls != NI_BLAME_NONE || !are_peers(b, &b->link[i], l))
        continue;
      l->cls = classes;
      if (!isnan(l->mean_us))
        x[n++] = l->mean_us / get_link_bytes(l);
    }
    const float baseline = ni_blame_quantile(x, n, n == 2 ? 0 : NI_CAUSE_BASELINE);
    const float apart = measure_apart(x, n, baseline);
    for (uint32_t k = i; k < b->n_links; k++) {
      struct ni_blame_link *l = &b->link[k];
      if (l->cls != classes)
        continue;
      l->apart = apart;
      l->baseline_us = baseline * get_link_bytes(l);
      l->alike = (uint32_t)n;
      l->ratio = l->mean_us / l->baseline_us;
    }
    classes++;
  }
  free(x);
  return 0;
}

int ni_group_peers(struct ni_blame *b) {
  int e = find_classes(b);
  if (e == 0)
    e = build_links(b);
  if (e == 0)
    e = ni_islands_find(b);
  if (e == 0)
    e = compare_links(b);
  return e < 0 ? e : ni_islands_find_exchanges(b);
}
