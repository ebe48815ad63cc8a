#include "knot.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

bool ni_hang_dead_before(const struct ni_hang_group *c, const struct ni_hang_process *p) {
  return p->life == NI_HANG_DEAD &&
      (c->runs_ns > p->alive_ns || c->seen_ns > p->alive_ns + NI_HANG_OUTLIVED_NS);
}

uint64_t ni_hang_was_in_until(const struct ni_hang_member *x, const struct ni_hang_process *p) {
  if (x->destroyed)
    return x->end_ns ? x->end_ns : p->alive_ns;
  return p->life == NI_HANG_LEFT || p->life == NI_HANG_DEAD ? p->alive_ns : UINT64_MAX;
}

bool ni_hang_left_before(const struct ni_hang_group *c, const struct ni_hang_member *x,
                         const struct ni_hang_process *p) {
  if (!x->destroyed && p->life != NI_HANG_LEFT)
    return false;
  return c->until_ns == UINT64_MAX || c->until_ns > ni_hang_was_in_until(x, p) + NI_HANG_OUTLIVED_NS;
}

bool ni_hang_stays(const struct ni_hang_group *c, const struct ni_hang_member *x,
                   const struct ni_hang_process *p) {
  return !ni_hang_dead_before(c, p) && !ni_hang_left_before(c, x, p);
}

bool ni_hang_is_known_at(const struct ni_hang_member *x, const struct ni_hang_process *p, uint64_t ns) {
  return x->open_ns != 0 && (x->open_ns >= ns || p->life == NI_HANG_DEAD);
}

enum ni_hang_where ni_hang_where_of(const struct ni_hang_op *op) {
  switch (op->state) {
    case NI_HANG_LAUNCHED:
      return NI_HANG_QUEUED;
    case NI_HANG_REPLAYED:
      return NI_HANG_IN_REPLAY;
    case NI_HANG_CALLED:
      return NI_HANG_API_ONLY;
    default:
      return NI_HANG_INSIDE;
  }
}

struct ni_hang_knot *ni_hang_new_knot(struct ni_hang_finding *f, const struct ni_hang_group *c,
                                      enum ni_kind kind) {
  struct ni_hang_verdict *v = f->v;
  if (!ni_array_room(v->knot, v->n, f->cap))
    return NULL;
  struct ni_hang_knot *k = &v->knot[v->n];
  *k = (struct ni_hang_knot){.any = c->x[0], .kind = kind, .leads_to = -1, .first_ns = UINT64_MAX};
  k->view = calloc(c->n, sizeof *k->view);
  if (!k->view)
    return NULL;
  v->n++;
  k->n = c->n;
  k->past = c->past;
  k->unseen = (uint64_t)c->x[0]->who->n_ranks > c->n ? (uint64_t)c->x[0]->who->n_ranks - c->n : 0;
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_process *p = &f->m->process[c->x[i]->who->process];
    /*
     * Where a process has several ranks of a communicator, nothing tells which ranks of two communicators are
     * one.
     */
    uint64_t alone = ((uint64_t)(k - v->knot) + 1) << 32 | i;
    k->view[i] = (struct ni_hang_view){.member = c->x[i],
                                       .rank = c->x[i]->who->rank,
                                       .waits_for = -1,
                                       .seat = p->several ? alone : c->x[i]->who->process};
    if (c->x[i]->who->name && !k->any->who->name)
      k->any = c->x[i];
  }
  return k;
}

void ni_hang_count(struct ni_hang_knot *k) {
  memset(k->count, 0, sizeof k->count);
  for (size_t i = 0; i < k->n; i++)
    k->count[k->view[i].where]++;
  k->count[NI_HANG_NO_DATA] += k->unseen;
}

void ni_hang_set_where(struct ni_hang_knot *k, struct ni_hang_view *w, enum ni_hang_where where) {
  k->count[w->where]--;
  k->count[where]++;
  w->where = where;
}

void ni_hang_note_call(struct ni_hang_knot *k, uint64_t enqueue_ns) {
  if (!enqueue_ns)
    return;
  if (enqueue_ns < k->first_ns)
    k->first_ns = enqueue_ns;
  if (enqueue_ns > k->newest_ns)
    k->newest_ns = enqueue_ns;
}

struct ni_hang_view *ni_hang_view_of(const struct ni_hang_knot *k, int32_t rank) {
  size_t i;
  ni_array_search(i, k->n, k->view[i].rank < rank);
  return i < k->n && k->view[i].rank == rank ? &k->view[i] : NULL;
}

bool ni_hang_blocks(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  switch (w->where) {
    case NI_HANG_NEVER:
    case NI_HANG_OTHER_CALL:
    case NI_HANG_GONE:
    case NI_HANG_HAS_LEFT:
    case NI_HANG_ELSEWHERE:
    case NI_HANG_API_ONLY:
      return true;
    /* The others are in the kernel and this rank's has not begun: its GPU does something else. */
    case NI_HANG_QUEUED:
      return ni_hang_count_inside(k) > 0;
    default:
      return false;
  }
}

bool ni_hang_waits(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || w->where == NI_HANG_IN_REPLAY || w->where == NI_HANG_QUEUED ||
      w->where == NI_HANG_API_ONLY;
}

bool ni_hang_is_held(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  return !w->went_on && (ni_hang_waits(w) || (k->behind_it && w->later));
}

bool ni_hang_has_same_values(const struct ni_hang_knot *k, const struct ni_hang_op *a,
                             const struct ni_hang_op *b) {
  return (!k->size_mismatch || a->bytes == b->bytes) && (!k->type_mismatch || a->datatype == b->datatype) &&
      (!k->root_mismatch || a->root == b->root);
}

bool ni_hang_is_one_too_many(const struct ni_hang_knot *k) {
  size_t not_called = k->count[NI_HANG_NEVER] + k->count[NI_HANG_ELSEWHERE] + k->count[NI_HANG_QUEUED];
  return k->kind == NI_KIND_COLL && ni_hang_count_inside(k) == 1 && not_called >= 2 &&
      k->missing == not_called;
}

bool ni_hang_is_cause(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  if (k->odd)
    return w->op && ni_hang_is(w->op, k->op.func, k->op.sn) && ni_hang_has_same_values(k, w->op, k->odd);
  if (ni_hang_is_one_too_many(k))
    return w->where == NI_HANG_INSIDE || w->where == NI_HANG_IN_REPLAY;
  if (k->missing)
    return ni_hang_blocks(k, w);
  if (k->count[NI_HANG_NO_DATA])
    return w->where == NI_HANG_NO_DATA;
  if (k->kind == NI_KIND_P2P)
    return w->unlike;
  return k->count[NI_HANG_FINISHED] && ni_hang_waits(w);
}

/* It is in a replay, or behind one in a later replay. As far as anybody knows, its kernel is over. */
static bool is_in_replay(const struct ni_hang_view *w) {
  return w->where == NI_HANG_IN_REPLAY || (w->later && w->later->state == NI_HANG_REPLAYED);
}

bool ni_hang_misses(const struct ni_hang_knot *k) {
  for (size_t i = 0; i < k->n; i++)
    if (ni_hang_blocks(k, &k->view[i]))
      return true;
  return false;
}

bool ni_hang_is_wait(const struct ni_hang_knot *k) {
  bool misses = ni_hang_misses(k), nobody_missing = !misses && !k->count[NI_HANG_NO_DATA];
  bool passed = k->kind == NI_KIND_COLL && nobody_missing && k->count[NI_HANG_FINISHED];
  if (passed && !k->behind_it && !k->needed)
    return false;
  bool held = false;
  for (size_t i = 0; i < k->n && !held; i++) {
    const bool counts = misses || !is_in_replay(&k->view[i]);
    held = ni_hang_is_held(k, &k->view[i]) && k->view[i].where != NI_HANG_API_ONLY && counts;
  }
  return held;
}

bool ni_hang_is_told(const struct ni_hang_knot *k) {
  return ni_hang_is_wait(k) && k->waited_ns >= ni_hang_least(NI_HANG_TELL_NS, k->limit_ns / 2);
}

bool ni_hang_is_enough(const struct ni_hang_verdict *v, uint64_t pending_ns, uint64_t limit_ns) {
  /* A log tells of each rank once, when its own call has reached that age. There a little less is enough. */
  return pending_ns >= (v->model->boxes ? limit_ns : limit_ns - limit_ns / 20);
}
