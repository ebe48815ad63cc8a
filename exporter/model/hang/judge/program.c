#include "program.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/names_alike.h"
#include "knot.h"
#include "exporter/model/hang/lost.h"

#define ASKED 8 /* waiting ranks of a knot */

static int by_process(const void *a, const void *b) {
  const struct ni_who_member *x = (*(const struct ni_hang_member *const *)a)->who,
                             *y = (*(const struct ni_hang_member *const *)b)->who;
  return NI_BY(x, y, process, hash, rank);
}

int ni_hang_program_of(struct ni_hang_program *p, const struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  *p = (struct ni_hang_program){
      .v = v, .by_process = malloc((m->n_members + 1) * sizeof *p->by_process), .n = m->n_members};
  if (!p->by_process)
    return -ENOMEM;
  for (size_t i = 0; i < p->n; i++)
    p->by_process[i] = m->member[i];
  if (p->n > 1)
    qsort(p->by_process, p->n, sizeof *p->by_process, by_process);
  return 0;
}

/*
 * The member of that process in a communicator like the one of the knot: the same one, or one with its name
 * and size. If there are several, the one in which the process is what `as` is in the knot; a stage of a
 * pipeline has one with the stage before and one with the next stage. NULL: none, or several.
 */
static const struct ni_hang_member *find_similar_member(const struct ni_hang_program *p, uint32_t process,
                                                        const struct ni_hang_knot *k,
                                                        const struct ni_hang_view *as) {
  const struct ni_who_member *of = k->any->who;
  const struct ni_hang_member *found = NULL, *found_as = NULL;
  size_t i, n = 0, n_as = 0;
  ni_array_search(i, p->n, p->by_process[i]->who->process < process);
  for (; i < p->n && p->by_process[i]->who->process == process; i++) {
    const struct ni_hang_member *x = p->by_process[i];
    if (x->who->comm == of->comm)
      return x;
    if (x->dump != k->any->dump || x->who->n_ranks != of->n_ranks || !ni_names_alike(of->name, x->who->name))
      continue;
    found = x;
    n++;
    if (x->who->rank != as->rank)
      continue;
    found_as = x;
    n_as++;
  }
  return n == 1 ? found : n_as == 1 ? found_as : NULL;
}

/* Was it called before the other one? If both were called at the same moment: has it begun? */
static bool is_earlier(const struct ni_hang_op *op, const struct ni_hang_op *other) {
  if (op->enqueue_ns != other->enqueue_ns)
    return op->enqueue_ns < other->enqueue_ns;
  return ni_hang_where_of(op) == NI_HANG_INSIDE;
}

/* The newest finished operations are known one by one. NULL: it is none of them. */
static const struct ni_hang_op *find_recent_op(const struct ni_hang_member *x, const struct ni_hang_op *op) {
  for (uint32_t i = 0; i < x->n_recent; i++)
    if (ni_hang_is(&x->recent[i], op->func, op->sn) && x->recent[i].enqueue_ns)
      return &x->recent[i];
  return NULL;
}

/*
 * Had x called that operation before the one it waits in? For finished operations the call counts as well: on
 * another stream a later one may end first.
 */
static int has_come_to(const struct ni_hang_member *x, const struct ni_hang_op *op,
                       const struct ni_hang_op *waits_in) {
  const struct ni_hang_op *open = ni_hang_open_from(x, NI_KIND_COLL, op->func, op->sn);
  if (open && ni_hang_is(open, op->func, op->sn))
    return is_earlier(open, waits_in) ? 1 : -1;
  if (!ni_hang_has_finished(x, op->func, op->sn))
    return -1;
  const struct ni_hang_op *done = find_recent_op(x, op);
  if (done && done->enqueue_ns == waits_in->enqueue_ns)
    return 0;
  return !done || done->enqueue_ns < waits_in->enqueue_ns ? 1 : -1;
}

/* In a dump `started` says everything: its records are numbered over all groups. */
static uint64_t count_transfers_called(const struct ni_hang_member *x) {
  const struct ni_seq_set *recorded = &x->recorded[NI_KIND_P2P];
  uint64_t n = x->started[NI_KIND_P2P] == NI_HANG_NONE ? 0 : x->started[NI_KIND_P2P];
  if (x->dump)
    return n;
  ni_hang_raise(&n, recorded->distinct ? recorded->highest + 1 : 0);
  for (size_t i = 0; i < x->n_open; i++)
    if (x->open[i].kind == NI_KIND_P2P && x->open[i].rec_sn != NI_HANG_NONE)
      ni_hang_raise(&n, x->open[i].rec_sn + 1);
  return n;
}

static uint64_t count_transfers_open(const struct ni_hang_member *x) {
  uint64_t n = 0;
  for (size_t i = 0; i < x->n_open; i++)
    n += x->open[i].kind == NI_KIND_P2P;
  return n;
}

/*
 * Does its peer know how far the missing rank has come? If there are two ranks, one has called at least what
 * the other has finished, and the one who waits has written that.
 */
static bool is_told_by_peer(const struct ni_hang_knot *k) {
  return k->kind == NI_KIND_P2P && k->any->who->n_ranks == 2;
}

/* How many the missing rank has called at least, even if what it wrote is not complete. */
static uint64_t least_called(const struct ni_hang_knot *k, const struct ni_hang_view *missing) {
  uint64_t n = count_transfers_called(missing->member);
  for (size_t i = 0; i < k->n && is_told_by_peer(k); i++) {
    uint64_t called = count_transfers_called(k->view[i].member),
             open = count_transfers_open(k->view[i].member);
    if (&k->view[i] != missing && called > open)
      ni_hang_raise(&n, called - open);
  }
  return n;
}

/* The view of the rank that both miss; NULL: none. */
static const struct ni_hang_view *find_common_missing(const struct ni_hang_knot *k,
                                                      const struct ni_hang_knot *other) {
  for (size_t i = 0; i < k->n; i++)
    for (size_t j = 0; ni_hang_is_cause(k, &k->view[i]) && j < other->n; j++)
      if (other->view[j].seat == k->view[i].seat && ni_hang_is_cause(other, &other->view[j]))
        return &k->view[i];
  return NULL;
}

/*
 * Is what is known of the missing rank as new as the operation? A killed process may not have written
 * everything.
 */
static bool is_up_to(const struct ni_hang_program *p, const struct ni_hang_knot *k,
                     const struct ni_hang_view *missing) {
  const struct ni_hang_process *of = ni_hang_process_at(p->v, missing);
  if (of->has_box || of->has_dump || of->life == NI_HANG_LEFT || k->op.sn == 0)
    return true;
  return of->alive_ns >= k->newest_ns && ni_hang_has_finished(missing->member, k->op.func, k->op.sn - 1);
}

/*
 * Sends and receives have no common numbers. Had x called more of them before what it waits in than the
 * missing rank has called altogether?
 */
static int has_gone_ahead(const struct ni_hang_member *x, uint64_t missing_called,
                          const struct ni_hang_op *waits_in) {
  uint64_t called = count_transfers_called(x), behind = 0;
  /* how many it called since nobody has counted */
  if (x->passed_ns[NI_KIND_P2P] > waits_in->enqueue_ns)
    return 0;
  for (size_t i = 0; i < x->n_open; i++)
    behind += x->open[i].kind == NI_KIND_P2P && !is_earlier(&x->open[i], waits_in);
  called -= behind < called ? behind : called;
  return called > missing_called ? 1 : -1;
}

/* What those who wait in collective a show of b. Above 0: b comes first. */
static int order_by_waiters(const struct ni_hang_program *p, const struct ni_hang_knot *a,
                            const struct ni_hang_knot *b) {
  const struct ni_hang_view *missing = find_common_missing(b, a), *in_a = find_common_missing(a, b);
  size_t n = 0;
  int sum = 0;
  if (a->kind != NI_KIND_COLL || !missing || !in_a)
    return 0;
  if (b->kind == NI_KIND_P2P && !is_told_by_peer(b) && !is_up_to(p, a, in_a))
    return 0;
  for (size_t i = 0; i < a->n && n < ASKED; i++) {
    const struct ni_hang_view *w = &a->view[i];
    bool waits = w->where == NI_HANG_INSIDE || w->where == NI_HANG_IN_REPLAY || w->where == NI_HANG_QUEUED;
    const struct ni_hang_member *x =
        waits && w->op ? find_similar_member(p, w->member->who->process, b, missing) : NULL;
    if (!x)
      continue;
    n++;
    sum += b->kind == NI_KIND_COLL ? has_come_to(x, &b->op, w->op)
                                   : has_gone_ahead(x, least_called(b, missing), w->op);
  }
  return sum;
}

/* What the missing rank itself had called of it and not finished when it died; NULL: nothing. */
static const struct ni_hang_op *find_op_left_open(const struct ni_hang_knot *k,
                                                  const struct ni_hang_view *missing) {
  const struct ni_hang_member *x = missing->member;
  const struct ni_hang_op *first = NULL;
  if (k->kind == NI_KIND_COLL) {
    first = ni_hang_open_from(x, NI_KIND_COLL, k->op.func, k->op.sn);
    return first && ni_hang_is(first, k->op.func, k->op.sn) ? first : NULL;
  }
  for (size_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    const struct ni_hang_view *peer = ni_hang_view_of(k, op->root);
    bool awaited = op->root < 0 ||
        (peer && peer->waits_for == missing->rank); /* `incomplete` lines do not say the peer */
    const bool is_first = !first || is_earlier(op, first);
    if (op->kind == NI_KIND_P2P && awaited && is_first)
      first = op;
  }
  return first;
}

/* If the missing rank had called one of the two, its own black box shows the order. */
static int order_by_missing_rank(const struct ni_hang_knot *a, const struct ni_hang_knot *b) {
  const struct ni_hang_view *in_a = find_common_missing(a, b), *in_b = find_common_missing(b, a);
  const struct ni_hang_op *x = in_a ? find_op_left_open(a, in_a) : NULL,
                          *y = in_b ? find_op_left_open(b, in_b) : NULL;
  if (!x || !y)
    return (x != NULL) - (y != NULL);
  return is_earlier(x, y) ? 1 : -1;
}

int ni_hang_comes_before(const struct ni_hang_program *p, const struct ni_hang_knot *a,
                         const struct ni_hang_knot *b) {
  int own = order_by_missing_rank(a, b);
  if (own)
    return own;
  return order_by_waiters(p, b, a) - order_by_waiters(p, a, b);
}
