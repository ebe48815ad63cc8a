#include "knot_coll.h"

#include <errno.h>

#define ASKED 256 /* so many ranks are asked for what one of them is in: all of them would be n squared */

static const struct ni_hang_op *open_op(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  const struct ni_hang_op *op = ni_hang_open_from(x, NI_KIND_COLL, func, sn);
  return op && ni_hang_is(op, func, sn) ? op : NULL;
}

static const struct ni_hang_op *known_op(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  const struct ni_hang_op *op = open_op(x, func, sn);
  for (uint32_t i = 0; !op && i < x->n_recent; i++)
    if (ni_hang_is(&x->recent[i], func, sn)) op = &x->recent[i];
  return op;
}

static bool counted(const struct ni_hang_member *x, uint16_t func) {
  for (uint8_t i = 0; i < x->n_fin; i++)
    if (x->fin[i].func == func) return true;
  return false;
}

static bool finished(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  for (uint8_t i = 0; i < x->n_fin; i++)
    if (x->fin[i].func == func) return x->fin[i].next > sn && !open_op(x, func, sn);
  return false;
}

/*
 * Numbers of operations are the same on all ranks unless one of them saw a part only (the activation mask was off for a
 * while). What two ranks both know tells by how much they differ. False: they have nothing in common.
 */
static bool shift_of(const struct ni_hang_member *ref, const struct ni_hang_member *x, int64_t *shift) {
  for (int pass = 0; pass < 2; pass++) {
    const struct ni_hang_op *op = pass ? x->recent : x->open;
    size_t n = pass ? x->n_recent : x->n_open;
    for (size_t i = 0; i < n; i++) {
      if (op[i].kind != NI_KIND_COLL || op[i].rec_sn == NI_HANG_NONE) continue;
      const struct ni_hang_op *same = known_op(ref, op[i].func, op[i].sn);
      if (!same || same->rec_sn == NI_HANG_NONE) continue;
      *shift = (int64_t)(op[i].rec_sn - same->rec_sn);
      return true;
    }
  }
  *shift = 0;
  return false;
}

/* The first collective in flight of a member, by its own numbers; NULL: none. */
static const struct ni_hang_op *first_open(const struct ni_hang_member *x) {
  const struct ni_hang_op *first = NULL;
  for (size_t i = 0; i < x->n_open; i++)
    if (x->open[i].kind == NI_KIND_COLL && (!first || x->open[i].rec_sn < first->rec_sn)) first = &x->open[i];
  return first;
}

/* The first one in flight anywhere: in a member's numbers, shifted to those of the first member that has any. */
static const struct ni_hang_op *first_of_all(const struct ni_hang_group *c, const struct ni_hang_member **ref) {
  const struct ni_hang_op *best = NULL;
  int64_t at = 0;
  *ref = NULL;
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_op *op = first_open(c->x[i]);
    int64_t shift = 0;
    if (!op) continue;
    if (!*ref) *ref = c->x[i];
    else (void)shift_of(*ref, c->x[i], &shift);
    int64_t here = (int64_t)(op->rec_sn - (uint64_t)shift);
    if (!best || here < at) {
      best = op;
      at = here;
    }
  }
  return best;
}

/* It has started more than that, and nothing is in flight. A call without a kernel takes a number, too. */
static bool passed_by(const struct ni_hang_member *x, uint64_t at) {
  uint64_t started = x->started[NI_KIND_COLL];
  return started != NI_HANG_NONE && started > at && x->started_ns <= x->open_ns && !x->invisible;
}

/* Where a rank is that has neither finished the operation nor has it in flight. */
static void place_absent(const struct ni_hang_finding *f, const struct ni_hang_group *c, struct ni_hang_knot *k, struct ni_hang_view *w,
                         const struct ni_hang_member *ref) {
  const struct ni_hang_member *x = w->member;
  const struct ni_hang_process *p = &f->m->process[x->who->process];
  int64_t shift;
  bool comparable = shift_of(ref, x, &shift);
  uint64_t at = k->op.rec_sn + (uint64_t)shift;
  w->op = first_open(x);
  /* A stuck line, newer than all that says what was not in flight: it is in another one, and not in this. */
  if (w->op && w->op->seen_ns > x->open_ns) w->where = NI_HANG_OTHER_CALL;
  else if (!ni_hang_known_at(x, p, k->first_ns)) w->where = NI_HANG_NO_DATA;
  else if (!w->op && passed_by(x, at)) {
    w->where = NI_HANG_FINISHED;
    k->unsure |= x->calls > 0 && !p->has_log; /* a box alone does not tell of calls without a kernel */
  } else if (w->op) w->where = NI_HANG_OTHER_CALL;
  else w->where = NI_HANG_NEVER;
  if (w->where == NI_HANG_NEVER && !comparable && x->n_recent && ref->n_recent) k->unsure = true;
  /* It is inside another one. If nothing is known of its calls of this function, and the others know that other one,
   * it may have passed here long ago. */
  if (w->where == NI_HANG_OTHER_CALL && !counted(x, k->op.func)) {
    for (size_t i = 0; i < c->n && i < ASKED && w->where == NI_HANG_OTHER_CALL; i++)
      if (c->x[i] != x && (known_op(c->x[i], w->op->func, w->op->sn) || finished(c->x[i], w->op->func, w->op->sn))) {
        w->where = NI_HANG_FINISHED;
        k->unsure = true;
      }
  }
  k->call_mismatch |= w->where == NI_HANG_OTHER_CALL;
  if (w->where == NI_HANG_FINISHED || w->where == NI_HANG_OTHER_CALL) return;
  if (ni_hang_dead_before(c, p)) w->where = NI_HANG_GONE;
  else if (ni_hang_has_left(x, p)) w->where = NI_HANG_HAS_LEFT;
  else if (w->where == NI_HANG_NEVER) {
    /* Its calls are numbered alike on all ranks: one of this number was made, and nothing launched. */
    if (k->op.call_sn && x->calls >= k->op.call_sn) w->where = NI_HANG_API_ONLY;
    k->blind += x->invisible > 0;
  }
}

static void place(const struct ni_hang_finding *f, const struct ni_hang_group *c, struct ni_hang_knot *k, struct ni_hang_view *w,
                  const struct ni_hang_member *ref) {
  w->op = open_op(w->member, k->op.func, k->op.sn);
  if (w->op) {
    w->where = ni_hang_dead_before(c, &f->m->process[w->member->who->process]) ? NI_HANG_GONE : ni_hang_where_of(w->op);
    return;
  }
  if (finished(w->member, k->op.func, k->op.sn)) {
    w->where = NI_HANG_FINISHED;
    w->op = known_op(w->member, k->op.func, k->op.sn);
    return;
  }
  place_absent(f, c, k, w, ref);
}

static void compare(struct ni_hang_knot *k) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_op *op = k->view[i].op;
    if (!op || !ni_hang_is(op, k->op.func, k->op.sn)) continue;
    k->size_mismatch |= op->bytes != k->op.bytes;
    k->type_mismatch |= op->datatype && k->op.datatype && op->datatype != k->op.datatype;
    k->root_mismatch |= op->root >= 0 && k->op.root >= 0 && op->root != k->op.root;
  }
}

/* The newest collective that every member with any data has finished. */
static void find_last(struct ni_hang_knot *k) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_member *x = k->view[i].member;
    for (uint32_t r = 0; r < x->n_recent; r++) {
      const struct ni_hang_op *op = &x->recent[r];
      if (op->rec_sn == NI_HANG_NONE || (k->has_last && op->rec_sn <= k->last.rec_sn)) continue;
      bool all = true;
      for (size_t j = 0; j < k->n && all; j++)
        all = k->view[j].where == NI_HANG_NO_DATA || k->view[j].where == NI_HANG_NEVER
                  ? !k->view[j].member->n_fin || finished(k->view[j].member, op->func, op->sn)
                  : finished(k->view[j].member, op->func, op->sn);
      if (!all) continue;
      k->has_last = true;
      k->last = *op;
    }
    if (i >= 8) break; /* the newest ones of a few ranks name it; all of them would be n squared */
  }
}

int ni_hang_collectives(struct ni_hang_finding *f, const struct ni_hang_group *c) {
  const struct ni_hang_member *ref;
  const struct ni_hang_op *first = first_of_all(c, &ref);
  if (!first) return 0;
  struct ni_hang_knot *k = ni_hang_new_knot(f, c, NI_KIND_COLL);
  if (!k) return -ENOMEM;
  k->op = *first;
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_op *op = open_op(c->x[i], first->func, first->sn);
    if (!op) continue;
    ref = c->x[i];
    k->op.rec_sn = op->rec_sn;
    ni_hang_times(k, op->enqueue_ns);
  }
  if (k->first_ns == UINT64_MAX) k->first_ns = 0;
  for (size_t i = 0; i < c->n; i++) place(f, c, k, &k->view[i], ref);
  compare(k);
  find_last(k);
  ni_hang_count(k);
  return 0;
}
