/*
 * Sends and receives put together: who sent to whom, how long both sides took, and which of them waited.
 *
 * Model: a message is a Send of rank a to peer b and the Recv of rank b from peer a, in one communicator, of
 * one size. Numbers of P2P records count each rank's own operations, so the two sides do not share them; but
 * NCCL keeps the order within a pair: the k-th Send a to b meets the k-th Recv at b from a. Both cells of a
 * size are read in order of their numbers side by side, and what has no counterpart yet waits in a queue of
 * its pair. Where a record is lost on one side the counts differ (the table shows both) and later messages of
 * that pair may be matched one off. Where logs state which message of a pair each one is (pair_sn), those of
 * one number meet, and nobody else.
 *
 * Bounds: PAIRS_OPEN pairs of one size at a time, WAITING_MAX records in all queues, NI_SUM_PAIRS rows in the
 * result, those with most time; what is left out is counted. Threads: main only, before the cells are joined
 * and freed. Failure: -ENOMEM, -errno of the spill file.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "p2p_pairs.h"
#include "exporter/model/sums/team/team.h"

enum { PAIRS_OPEN = 4096, DIST_LIMIT = 256 };
#define WAITING_MAX (1u << 20)

struct waiting {
  uint64_t exec_ns, pair_sn; /* pair_sn: NI_NO_SN: not stated */
  uint8_t timing;
};

struct waiting_queue {
  struct waiting *item;
  uint32_t first, n, cap;
};

struct open_pair {
  uint32_t comm; /* in the result */
  int32_t from, to;
  uint32_t from_process, to_process;
  uint64_t count[2], matched, exec_ns, waited_ns[2]; /* [0] Send, [1] Recv */
  struct ni_dist us[2], transfer;
  struct waiting_queue queue[2];
  bool unmatchable; /* its queue did not fit, or its records were sampled: its order is lost */
};

struct matching {
  struct ni_run *r;
  struct ni_summary *s;
  struct open_pair *pair;
  uint32_t n;
  struct ni_index at_hash;
  uint64_t waiting;
  size_t cap_pairs; /* of s->pair */
  bool *sampled;    /* by communicator in the result: each rank kept records of its own choice */
};

/* *out NULL: there are too many. */
static int find_or_add_pair(struct matching *m, uint32_t comm, int32_t from, int32_t to,
                            struct open_pair **out) {
  const uint64_t hash = ni_hash(ni_hash(comm, (uint32_t)from), (uint32_t)to);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&m->at_hash, hash, &at)) != NI_INDEX_NONE;) {
    struct open_pair *p = *out = &m->pair[k];
    if (p->comm == comm && p->from == from && p->to == to)
      return 0;
  }
  *out = NULL;
  if (m->n == PAIRS_OPEN)
    return 0;
  if (ni_index_add(&m->at_hash, hash, m->n) < 0)
    return -ENOMEM;
  struct open_pair *p = *out = &m->pair[m->n++];
  *p = (struct open_pair){.comm = comm,
                          .from = from,
                          .to = to,
                          .from_process = UINT32_MAX,
                          .to_process = UINT32_MAX,
                          .us = {{.limit = DIST_LIMIT}, {.limit = DIST_LIMIT}},
                          .transfer = {.limit = DIST_LIMIT},
                          .unmatchable = m->sampled[comm]};
  return 0;
}

static int push_waiting(struct waiting_queue *q, const struct waiting *w) {
  if (q->n == q->cap) {
    uint32_t cap = q->cap ? 2 * q->cap : 8;
    struct waiting *p = malloc(cap * sizeof *p);
    if (!p)
      return -ENOMEM;
    for (uint32_t i = 0; i < q->n; i++)
      p[i] = q->item[(q->first + i) % q->cap];
    free(q->item);
    *q = (struct waiting_queue){p, 0, q->n, cap};
  }
  q->item[(q->first + q->n++) % q->cap] = *w;
  return 0;
}

/* x stands before y, by their numbers: of whatever follows y on its side none is that of x. */
static bool is_number_before(const struct waiting *x, const struct waiting *y) {
  return x->pair_sn != NI_NO_SN && y->pair_sn != NI_NO_SN && x->pair_sn < y->pair_sn;
}

static struct waiting pop_waiting(struct matching *m, struct waiting_queue *q) {
  const struct waiting first = q->item[q->first];
  q->first = (q->first + 1) % q->cap;
  q->n--;
  m->waiting--;
  return first;
}

/* Who waited in a message, and how long it took: as long as the shorter one of both. */
static int compare_sides(struct open_pair *p, const struct waiting *send, const struct waiting *recv) {
  /*
   * Durations by different clocks are not compared, and the bracket around the enqueue says nothing of the
   * kernel.
   */
  if (send->timing != recv->timing || recv->timing == NI_TIMING_COLLECTIVE_CPU)
    return 0;
  if (send->exec_ns > recv->exec_ns)
    p->waited_ns[0] += send->exec_ns - recv->exec_ns;
  else
    p->waited_ns[1] += recv->exec_ns - send->exec_ns;
  return ni_dist_add(&p->transfer, send->exec_ns < recv->exec_ns ? send->exec_ns : recv->exec_ns);
}

/* side: 0 Send, 1 Recv. */
static int match_record(struct matching *m, const struct ni_op_part *part, uint32_t comm, int side) {
  const int32_t peer = ni_entry_peer(&part->e), from = side ? peer : part->rank,
                to = side ? part->rank : peer;
  struct open_pair *p;
  int e = find_or_add_pair(m, comm, from, to, &p);
  if (!p) {
    m->s->pair_records_left_out += e == 0;
    return e;
  }
  *(side ? &p->to_process : &p->from_process) = part->process;
  p->count[side]++;
  p->exec_ns += part->e.exec_ns;
  e = ni_dist_add(&p->us[side], part->e.exec_ns);
  if (e < 0 || p->unmatchable)
    return e;
  const struct waiting w = {part->e.exec_ns, ni_entry_pair_sn(&part->e), part->e.timing};
  struct waiting_queue *other = &p->queue[!side];
  while (other->n && is_number_before(&other->item[other->first], &w))
    pop_waiting(m, other);
  if (other->n && is_number_before(&w, &other->item[other->first]))
    return 0; /* the other side did not record it */
  if (other->n == 0) {
    if (m->waiting == WAITING_MAX) {
      p->unmatchable = true;
      return 0;
    }
    m->waiting++;
    return push_waiting(&p->queue[side], &w);
  }
  const struct waiting x = pop_waiting(m, other);
  p->matched++;
  return side ? compare_sides(p, &x, &w) : compare_sides(p, &w, &x);
}

/* One side of a size: its join, and the operation that comes next. */
struct pair_side {
  struct ni_join *join;
  struct ni_operation op;
  uint64_t *taken; /* --skip-first, by communicator */
  bool has;
};

static int advance_side(struct matching *m, struct pair_side *x) {
  int got = 0;
  while (x->join && (got = ni_join_next(x->join, &x->op)) > 0)
    if (!m->r->opt.skip_first || x->taken[x->op.comm]++ >= m->r->opt.skip_first)
      break;
  x->has = got > 0;
  return got < 0 ? got : 0;
}

static int add_pair_rows(struct matching *m, const struct ni_cell *cell) {
  struct ni_summary *s = m->s;
  if (s->n_pairs + m->n > m->cap_pairs &&
      !ni_array_more(&s->pair, &m->cap_pairs, s->n_pairs + m->n, sizeof *s->pair))
    return -ENOMEM;
  for (uint32_t i = 0; i < m->n; i++) {
    struct open_pair *p = &m->pair[i];
    struct ni_p2p_pair *x = &s->pair[s->n_pairs++];
    *x = (struct ni_p2p_pair){.comm = p->comm,
                              .from = p->from,
                              .to = p->to,
                              .from_process = p->from_process,
                              .to_process = p->to_process,
                              .msg_bytes = cell->msg_bytes,
                              .sends = p->count[0],
                              .recvs = p->count[1],
                              .matched = p->matched,
                              .exec_ns = (double)p->exec_ns,
                              .sender_waited_us = (double)p->waited_ns[0] / 1e3,
                              .receiver_waited_us = (double)p->waited_ns[1] / 1e3};
    memcpy(x->human, cell->human, sizeof x->human);
    int e = ni_dist_stats(&p->us[0], 1e3, &x->send_us);
    if (e == 0)
      e = ni_dist_stats(&p->us[1], 1e3, &x->recv_us);
    if (e == 0)
      e = ni_dist_stats(&p->transfer, 1e3, &x->transfer_us);
    if (e < 0)
      return e;
    x->bandwidth_gbs = x->transfer_us.p50 > 0 ? (double)cell->msg_bytes / (x->transfer_us.p50 * 1e3) : NAN;
  }
  return 0;
}

static void free_open_pairs(struct matching *m) {
  for (uint32_t i = 0; i < m->n; i++) {
    struct open_pair *p = &m->pair[i];
    for (int k = 0; k < 2; k++) {
      ni_dist_free(&p->us[k]);
      free(p->queue[k].item);
    }
    ni_dist_free(&p->transfer);
  }
  m->n = 0;
  m->waiting = 0;
  ni_index_free(&m->at_hash);
}

static bool is_cell_of(const struct ni_cell *c, const char *func) {
  return c->kind == NI_KIND_P2P && strcmp(c->func, func) == 0;
}

/* Send and Recv of one communicator type and size; either may be missing (NULL). */
static int match_size(struct matching *m, const struct ni_cell *cell, struct ni_sum_cell *send,
                      struct ni_sum_cell *recv) {
  struct ni_run *r = m->r;
  struct pair_side side[2] = {0};
  struct ni_sum_cell *from[2] = {send, recv};
  int e = 0;
  for (int k = 0; e == 0 && k < 2; k++) {
    if (!(side[k].taken = calloc(r->who.n_comms + 1, sizeof *side[k].taken)))
      e = -ENOMEM;
    if (e == 0 && from[k])
      e = ni_join_begin(&side[k].join, r, from[k]);
    if (e == 0)
      e = advance_side(m, &side[k]);
  }
  uint64_t n = 0;
  while (e == 0 && (side[0].has || side[1].has)) {
    int k = !side[0].has || (side[1].has && side[1].op.sn < side[0].op.sn);
    if ((++n & 1023) == 0 && ni_run_stopped(r))
      e = -EINTR;
    uint32_t comm = r->comm_at[side[k].op.comm];
    for (uint32_t i = 0; e == 0 && i < side[k].op.n; i++)
      e = match_record(m, &side[k].op.part[i], comm, k);
    if (e == 0)
      e = advance_side(m, &side[k]);
  }
  if (e == 0)
    e = add_pair_rows(m, cell);
  for (int k = 0; k < 2; k++) {
    ni_join_end(side[k].join);
    free(side[k].taken);
  }
  free_open_pairs(m);
  return e;
}

static int compare_by_ranks(const struct ni_p2p_pair *x, const struct ni_p2p_pair *y) {
  return NI_BY(x, y, comm, from, to, msg_bytes);
}
static int compare_pairs(const void *a, const void *b) { return compare_by_ranks(a, b); }
static int compare_pairs_by_time(const void *a, const void *b) {
  const struct ni_p2p_pair *x = a, *y = b;
  return x->exec_ns != y->exec_ns ? (x->exec_ns > y->exec_ns ? -1 : 1) : compare_by_ranks(x, y);
}

static int compare_with_counterpart(const struct ni_cell *x, const struct ni_cell *c, const char *func) {
  int k = NI_BY(x, c, type);
  if (k == 0 && x->kind != NI_KIND_P2P)
    k = -1;
  if (k == 0)
    k = strcmp(x->func, func);
  return k ? k : NI_BY(x, c, msg_bytes);
}

/*
 * The other function's cell of the same type and size. Cells stand by type, kind, function (by name), size.
 */
static const struct ni_cell *find_counterpart_cell(const struct ni_summary *s, const struct ni_cell *c,
                                                   const char *func) {
  size_t i;
  ni_array_search(i, s->n_cells, compare_with_counterpart(&s->cell[i], c, func) < 0);
  return i < s->n_cells && compare_with_counterpart(&s->cell[i], c, func) == 0 ? &s->cell[i] : NULL;
}

/* Keeps the rows with the most time. */
static void keep_longest_pairs(struct ni_summary *s) {
  if (s->n_pairs <= NI_SUM_PAIRS)
    return;
  qsort(s->pair, s->n_pairs, sizeof *s->pair, compare_pairs_by_time);
  for (size_t i = NI_SUM_PAIRS; i < s->n_pairs; i++)
    s->pair_records_left_out += s->pair[i].sends + s->pair[i].recvs;
  s->n_pairs = NI_SUM_PAIRS;
}

/* All ranks' rows come to rank 0 of the team. */
static int gather_team_pairs(const struct ni_run *r, struct ni_summary *s) {
  const struct ni_team *t = r->team;
  struct ni_wire w = {0};
  if (t->rank) {
    ni_wire_u64(&w, &s->pair_records_left_out);
    ni_wire_bytes(&w, s->pair, s->n_pairs * sizeof *s->pair);
    int e = ni_team_give(t, &w);
    ni_wire_free(&w);
    return e;
  }
  for (int i = 1; i < t->size; i++) {
    struct ni_bytes got = {0};
    uint64_t left_out = 0;
    int e = t->swap(-1, NULL, i, &got);
    if (e < 0)
      return e;
    w = ni_wire_load(got.at, got.n);
    ni_wire_u64(&w, &left_out);
    const size_t n = (size_t)(w.end - w.at) / sizeof *s->pair;
    void *all = realloc(s->pair, (s->n_pairs + n + 1) * sizeof *s->pair);
    if (all)
      s->pair = all;
    if (all && n)
      memcpy(s->pair + s->n_pairs, w.at, n * sizeof *s->pair);
    s->n_pairs += all ? n : 0;
    s->pair_records_left_out += left_out;
    free(got.at);
    if (!all)
      return -ENOMEM;
    keep_longest_pairs(s);
  }
  return 0;
}

int ni_pairs_match(struct ni_run *r, struct ni_summary *s) {
  struct matching m = {.r = r, .s = s};
  int e = 0;
  bool any = false;
  for (size_t i = 0; i < s->n_cells; i++)
    any = any || s->cell[i].kind == NI_KIND_P2P;
  if (!any || r->opt.compat)
    return 0;
  m.pair = malloc(PAIRS_OPEN * sizeof *m.pair);
  m.sampled = calloc(s->n_comms + 1, sizeof *m.sampled);
  if (!m.pair || !m.sampled)
    e = -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < r->who.n_comms; i++)
    if (r->comm[i].p2p_sampled && r->comm_at[i] < s->n_comms)
      m.sampled[r->comm_at[i]] = true;
  for (size_t i = 0; e == 0 && i < s->n_cells; i++) {
    const struct ni_cell *c = &s->cell[i];
    bool send = is_cell_of(c, "Send"), recv = is_cell_of(c, "Recv");
    if (!send && !recv)
      continue;
    const struct ni_cell *pair = find_counterpart_cell(s, c, send ? "Recv" : "Send");
    struct ni_sum_cell *other = pair ? &r->cell[r->cell_order[pair - s->cell]] : NULL;
    struct ni_sum_cell *own = &r->cell[r->cell_order[i]];
    if (send)
      e = match_size(&m, c, own, other);
    else if (!other)
      e = match_size(&m, c, NULL, own);
    if (e == 0)
      keep_longest_pairs(s);
  }
  free(m.pair);
  free(m.sampled);
  if (e == 0 && r->team)
    e = gather_team_pairs(r, s);
  if (e == 0 && s->n_pairs)
    qsort(s->pair, s->n_pairs, sizeof *s->pair, compare_pairs);
  return e;
}
