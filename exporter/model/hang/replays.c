#include "replays.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

#define AHEAD_OPS 8
#define AHEAD_NS \
  UINT64_C( \
      10000000000) /* no host launches so far ahead: it waits for its GPU once a step, or its queue is \
                           full */

static bool is_unknown_replay(const struct ni_hang_op *op) {
  return op->kind == NI_KIND_COLL && op->started <= 0 && !op->given_up &&
      (op->state == NI_HANG_LAUNCHED || op->state == NI_HANG_UNSTATED);
}

int ni_hang_finish_unknown_replays(struct ni_hang_member *x) {
  uint64_t first_ns = UINT64_MAX, newest_ns = 0;
  size_t n = 0, kept = 0;
  int e = 0;
  for (size_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    if (op->kind != NI_KIND_COLL)
      continue;
    if (!is_unknown_replay(op))
      return 0; /* kernels are shown here: what has not started waits for that one */
    n++;
    if (op->enqueue_ns < first_ns)
      first_ns = op->enqueue_ns;
    ni_hang_raise(&newest_ns, op->enqueue_ns);
  }
  if (n < AHEAD_OPS || !first_ns || newest_ns < first_ns + AHEAD_NS)
    return 0;
  for (size_t i = 0; i < x->n_open; i++) {
    struct ni_hang_op op = x->open[i];
    if (op.kind != NI_KIND_COLL) {
      x->open[kept++] = op;
      continue;
    }
    op.replay = true;
    op.seen_ns = op.enqueue_ns;
    if (ni_hang_finished(x, &op) < 0)
      e = -ENOMEM;
  }
  x->n_open = kept;
  return e;
}

/*
 * Operations of a member with numbers below this are over: it is the number after what runs, or has run, by
 * events of its kernel.
 */
static uint64_t find_shown_number(const struct ni_hang_member *x) {
  uint64_t next = 0;
  for (uint32_t i = 0; i < x->n_recent; i++) {
    const struct ni_hang_op *op = &x->recent[i];
    const bool has_number = op->kind == NI_KIND_COLL && op->rec_sn != NI_HANG_NONE;
    if (has_number && !op->replay && op->want != 0)
      ni_hang_raise(&next, op->rec_sn + 1);
  }
  for (size_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    bool runs = op->started > 0 || op->state == NI_HANG_KERNEL || op->state == NI_HANG_NETWORK;
    if (op->kind == NI_KIND_COLL && runs && op->rec_sn != NI_HANG_NONE)
      ni_hang_raise(&next, op->rec_sn + 1);
  }
  return next;
}

static bool is_standing_replay(const struct ni_hang_op *op, uint64_t shown) {
  return op->replay && op->rec_sn != NI_HANG_NONE && op->rec_sn >= shown;
}

const struct ni_hang_op *ni_hang_last_replay(const struct ni_hang_member *x) {
  const uint64_t shown = find_shown_number(x);
  const struct ni_hang_op *last = NULL;
  for (uint32_t i = 0; i < x->n_recent; i++) {
    const struct ni_hang_op *op = &x->recent[i];
    bool says_more =
        last && op->rec_sn == last->rec_sn && op->every_ns; /* a box and a log may both have it */
    const bool is_newer = !last || op->rec_sn > last->rec_sn;
    if (is_standing_replay(op, shown) && (is_newer || says_more))
      last = op;
  }
  return last;
}

/* ---- what a peer has not come to ---- */

/* How far the members of one communicator have come, by function: the member that is least far. */
struct least {
  uint16_t func;
  uint64_t next;
  size_t members;
};

struct replay_peers {
  struct ni_hang_member **x;
  size_t n;
  struct least least[NI_HANG_FUNCS];
  size_t n_least;
};

static void count_next(struct replay_peers *c, uint16_t func, uint64_t next) {
  size_t k = 0;
  while (k < c->n_least && c->least[k].func != func)
    k++;
  if (k == NI_HANG_FUNCS)
    return;
  if (k == c->n_least)
    c->least[c->n_least++] = (struct least){.func = func, .next = next};
  if (next < c->least[k].next)
    c->least[k].next = next;
  c->least[k].members++;
}

static void count_peers(struct replay_peers *c) {
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_member *x = c->x[i];
    for (uint8_t k = 0; k < x->n_fin; k++)
      count_next(c, x->fin[k].func, x->fin[k].next);
  }
}

static bool is_lacked_by_peers(const struct replay_peers *c, const struct ni_hang_op *op) {
  for (size_t k = 0; k < c->n_least; k++)
    if (c->least[k].func == op->func)
      return c->least[k].members < c->n || c->least[k].next <= op->sn;
  return false;
}

static int open_replays_of(const struct replay_peers *c, struct ni_hang_member *x) {
  const uint64_t shown = find_shown_number(x);
  const size_t before = x->n_open;
  for (uint32_t i = 0; i < x->n_recent; i++) {
    struct ni_hang_op op = x->recent[i];
    bool twice = false; /* a box and a log may both have it */
    for (size_t k = before; k < x->n_open; k++)
      twice |= x->open[k].rec_sn == op.rec_sn;
    if (twice || !is_standing_replay(&op, shown) || !is_lacked_by_peers(c, &op))
      continue;
    op.state = NI_HANG_REPLAYED;
    if (!ni_array_room(x->open, x->n_open, x->cap_open))
      return -ENOMEM;
    x->open[x->n_open++] = op;
  }
  if (x->n_open > before)
    ni_hang_order_open(x);
  return 0;
}

static int by_comm(const void *a, const void *b) {
  const struct ni_who_member *x = (*(struct ni_hang_member *const *)a)->who,
                             *y = (*(struct ni_hang_member *const *)b)->who;
  return NI_BY(x, y, comm, rank, process, init_ns);
}

int ni_hang_open_replays(struct ni_hang_model *m) {
  struct ni_hang_member **all = malloc((m->n_members + 1) * sizeof *all);
  int e = all ? 0 : -ENOMEM;
  size_t n = 0;
  for (size_t i = 0; all && i < m->n_members; i++)
    if (!m->member[i]->dump)
      all[n++] = m->member[i];
  if (n > 1)
    qsort(all, n, sizeof *all, by_comm);
  for (size_t i = 0, end; e == 0 && i < n; i = end) {
    for (end = i + 1; end < n && all[end]->who->comm == all[i]->who->comm; end++) {}
    struct replay_peers c = {.x = all + i, .n = end - i};
    count_peers(&c);
    for (size_t k = i; e == 0 && k < end; k++)
      e = open_replays_of(&c, all[k]);
  }
  free(all);
  return e;
}
