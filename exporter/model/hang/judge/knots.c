/*
 * Communicators whose ranks have not all finished what some of them called, and where each rank is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "knots.h"
#include "knot.h"
#include "exporter/model/hang/lost.h"
#include "exporter/model/hang/replays.h"

#define VALUES 64 /* so many different ones of a call are compared */

/* ---- the collective that not all ranks of a communicator have finished, and where each is ---- */

static const struct ni_hang_op *find_open_op(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  const struct ni_hang_op *op = ni_hang_open_from(x, NI_KIND_COLL, func, sn);
  return op && ni_hang_is(op, func, sn) ? op : NULL;
}

static const struct ni_hang_op *find_known_op(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  const struct ni_hang_op *op = find_open_op(x, func, sn);
  for (uint32_t i = 0; !op && i < x->n_recent; i++)
    if (ni_hang_is(&x->recent[i], func, sn))
      op = &x->recent[i];
  return op;
}

static bool has_counts_of(const struct ni_hang_member *x, uint16_t func) {
  for (uint8_t i = 0; i < x->n_fin; i++)
    if (x->fin[i].func == func)
      return true;
  return false;
}

/*
 * Operations have the same numbers on all ranks, unless one rank saw only a part (its activation mask was off
 * for a while). The operations that two ranks both know tell by how much their numbers differ. False: they
 * have none in common.
 */
static bool find_shift(const struct ni_hang_member *ref, const struct ni_hang_member *x, int64_t *shift) {
  for (int pass = 0; pass < 2;
       pass++) { /* what both have finished first: in flight a rank may be in another call */
    const struct ni_hang_op *op = pass ? x->open : x->recent;
    size_t n = pass ? x->n_open : x->n_recent;
    for (size_t i = 0; i < n; i++) {
      if (op[i].kind != NI_KIND_COLL || op[i].rec_sn == NI_HANG_NONE)
        continue;
      const struct ni_hang_op *same = find_known_op(ref, op[i].func, op[i].sn);
      if (!same || same->rec_sn == NI_HANG_NONE)
        continue;
      *shift = (int64_t)(op[i].rec_sn - same->rec_sn);
      return true;
    }
  }
  *shift = 0;
  return false;
}

/* The first collective in flight of a member, by its own numbers; NULL: none. */
static const struct ni_hang_op *find_first_open(const struct ni_hang_member *x) {
  const struct ni_hang_op *first = NULL;
  for (size_t i = 0; i < x->n_open; i++)
    if (x->open[i].kind == NI_KIND_COLL && (!first || x->open[i].rec_sn < first->rec_sn))
      first = &x->open[i];
  return first;
}

/*
 * The first collective in flight on any rank, in a numbering shifted to that of the first member that has
 * one. Where ranks called different ones, the one of most ranks (a vote: the candidate changes when it has no
 * lead). What a rank left behind that is no longer in the communicator says nothing: its peers may have
 * passed it long ago.
 */
static const struct ni_hang_op *find_first_of_all(const struct ni_hang_finding *f,
                                                  const struct ni_hang_group *c,
                                                  const struct ni_hang_member **ref) {
  const struct ni_hang_op *best = NULL;
  int64_t at = 0;
  size_t lead = 0;
  *ref = NULL;
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_op *op = find_first_open(c->x[i]);
    int64_t shift = 0;
    if (!op || !ni_hang_stays(c, c->x[i], &f->m->process[c->x[i]->who->process]))
      continue;
    if (!*ref)
      *ref = c->x[i];
    else
      (void)find_shift(*ref, c->x[i], &shift);
    int64_t here = (int64_t)(op->rec_sn - (uint64_t)shift);
    if (best && here > at)
      continue;
    if (best && here == at && ni_hang_is(op, best->func, best->sn))
      lead++;
    else if (best && here == at && lead)
      lead--;
    else {
      best = op;
      at = here;
      lead = 1;
    }
  }
  return best;
}

/* It has started more than that, and nothing is in flight. A call without a kernel takes a number as well. */
static bool has_passed(const struct ni_hang_member *x, uint64_t at) {
  uint64_t started = x->started[NI_KIND_COLL];
  return started != NI_HANG_NONE && started > at && x->started_ns <= x->open_ns && !x->invisible;
}

/*
 * What a rank has in flight instead of this operation: another one, after which this one may come. NULL:
 * nothing.
 */
static const struct ni_hang_op *find_op_called_instead(const struct ni_hang_knot *k,
                                                       const struct ni_hang_member *x,
                                                       const struct ni_hang_member *ref) {
  const struct ni_hang_op *first = find_first_open(x);
  int64_t shift;
  bool there = first && find_shift(ref, x, &shift) && first->rec_sn == k->op.rec_sn + (uint64_t)shift;
  return there && !ni_hang_is(first, k->op.func, k->op.sn) ? first : NULL;
}

/* Locates a rank that has neither finished the operation nor has it in flight. */
static void locate_absent(const struct ni_hang_finding *f, struct ni_hang_knot *k, struct ni_hang_view *w,
                          const struct ni_hang_member *ref) {
  const struct ni_hang_member *x = w->member;
  const struct ni_hang_process *p = &f->m->process[x->who->process];
  int64_t shift;
  bool comparable = find_shift(ref, x, &shift);
  uint64_t at = k->op.rec_sn + (uint64_t)shift;
  const bool is_behind_replay = k->op.replay && !comparable && x->started[NI_KIND_COLL];
  w->op = find_first_open(x);
  /*
   * A stuck line, newer than anything that says what was not in flight: it is in another operation, not in
   * this one.
   */
  if (w->op && w->op->seen_ns > x->open_ns)
    w->where = NI_HANG_OTHER_CALL;
  else if (!ni_hang_is_known_at(x, p, k->first_ns) || is_behind_replay)
    w->where = NI_HANG_NO_DATA;
  else if (!w->op && has_passed(x, at)) {
    w->where = NI_HANG_FINISHED;
    k->unsure |= x->calls > 0 && !p->has_log; /* a box alone does not tell of calls without a kernel */
  } else if (w->op)
    w->where = NI_HANG_OTHER_CALL;
  else
    w->where = NI_HANG_NEVER;
  const bool have_finished = x->n_recent && ref->n_recent;
  if (w->where == NI_HANG_NEVER && !comparable && have_finished)
    k->unsure = true;
  if (w->where == NI_HANG_OTHER_CALL && !has_counts_of(x, k->op.func) &&
      w->op->rec_sn > at) { /* a later one: it may have passed */
    w->where = NI_HANG_FINISHED;
    k->unsure = true;
  }
  k->call_mismatch |= w->where == NI_HANG_OTHER_CALL;
  if (w->where == NI_HANG_NEVER) {
    /* Calls have the same numbers on all ranks: it made the call of this number, and nothing was launched. */
    if (k->op.call_sn && x->calls >= k->op.call_sn && !k->op.replay)
      w->where = NI_HANG_API_ONLY;
    k->blind += x->invisible > 0;
  }
}

/*
 * Is it known that this rank had not come to the operation? Its peers may be idle behind a replay, so if the
 * rank is gone, this has to be known. Its box is complete up to its death. Its log is complete if it ended in
 * order, or as of a line that is newer than the call.
 */
static bool is_told_of(const struct ni_hang_knot *k, const struct ni_hang_member *x,
                       const struct ni_hang_process *p, bool gone) {
  if (has_passed(x, k->op.rec_sn))
    return false;
  return p->has_box || (gone ? x->open_ns >= k->first_ns : p->has_log && !p->unwritten);
}

static void locate_rank(const struct ni_hang_finding *f, const struct ni_hang_group *c,
                        struct ni_hang_knot *k, struct ni_hang_view *w, const struct ni_hang_member *ref) {
  const struct ni_hang_process *p = &f->m->process[w->member->who->process];
  bool finished = ni_hang_has_finished(w->member, k->op.func, k->op.sn),
       stays = ni_hang_stays(c, w->member, p);
  w->op = find_open_op(w->member, k->op.func, k->op.sn);
  if (!finished && !stays) {
    bool gone = ni_hang_dead_before(c, p);
    w->where = gone ? NI_HANG_GONE : NI_HANG_HAS_LEFT;
    if (k->op.replay && !is_told_of(k, w->member, p, gone))
      w->where = NI_HANG_NO_DATA;
    return;
  }
  const struct ni_hang_op *other = w->op ? find_op_called_instead(k, w->member, ref) : NULL;
  if (other)
    w->op = other;
  if (w->op) {
    w->where = other ? NI_HANG_OTHER_CALL : ni_hang_where_of(w->op);
    k->call_mismatch |= other != NULL;
    return;
  }
  if (!finished) {
    locate_absent(f, k, w, ref);
    return;
  }
  w->where = NI_HANG_FINISHED;
  w->op = find_known_op(w->member, k->op.func, k->op.sn);
  if (stays)
    w->later = find_first_open(w->member);
  k->behind_it += w->later != NULL;
}

static bool has_called_it(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  return w->op && ni_hang_is(w->op, k->op.func, k->op.sn);
}

/* Ranks made the same call with different values. Finds one call of most ranks, and one of the fewest. */
static void find_odd(struct ni_hang_knot *k) {
  size_t n_majority = 0, n_odd = SIZE_MAX;
  for (size_t i = 0, values = 0; i < k->n && values < VALUES; i++) {
    const struct ni_hang_op *op = k->view[i].op;
    if (!has_called_it(k, &k->view[i]))
      continue;
    const bool is_of_majority = k->majority && ni_hang_has_same_values(k, op, k->majority);
    if (is_of_majority || (k->odd && ni_hang_has_same_values(k, op, k->odd)))
      continue;
    size_t n = 0;
    values++;
    for (size_t j = i; j < k->n; j++)
      n += has_called_it(k, &k->view[j]) && ni_hang_has_same_values(k, k->view[j].op, op);
    if (n > n_majority) {
      n_majority = n;
      k->majority = op;
    }
    if (n <= n_odd) {
      n_odd = n;
      k->odd = op;
    } /* of equals the later one */
  }
  if (k->majority == k->odd)
    k->majority = k->odd = NULL;
}

static void compare_calls(struct ni_hang_knot *k) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_op *op = k->view[i].op;
    if (!has_called_it(k, &k->view[i]))
      continue;
    k->size_mismatch |= op->bytes != k->op.bytes;
    k->type_mismatch |= op->datatype && k->op.datatype && op->datatype != k->op.datatype;
    k->root_mismatch |= op->root >= 0 && k->op.root >= 0 && op->root != k->op.root;
  }
  if (k->size_mismatch || k->type_mismatch || k->root_mismatch)
    find_odd(k);
}

/* The newest collective that every member with any data has finished. */
static void find_last_finished(struct ni_hang_knot *k) {
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_member *x = k->view[i].member;
    for (uint32_t r = 0; r < x->n_recent; r++) {
      const struct ni_hang_op *op = &x->recent[r];
      if (op->rec_sn == NI_HANG_NONE || (k->has_last && op->rec_sn <= k->last.rec_sn))
        continue;
      bool all = true;
      for (size_t j = 0; j < k->n && all; j++)
        all = k->view[j].where == NI_HANG_NO_DATA || k->view[j].where == NI_HANG_NEVER
            ? !k->view[j].member->n_fin || ni_hang_has_finished(k->view[j].member, op->func, op->sn)
            : ni_hang_has_finished(k->view[j].member, op->func, op->sn);
      if (!all)
        continue;
      k->has_last = true;
      k->last = *op;
    }
    if (i >= 8)
      break; /* the newest ones of a few ranks name it; all of them would be n squared */
  }
}

/*
 * The operation in which a dead process waited until it was ended, for example by a watchdog: it had called
 * the operation long before.
 */
static const struct ni_hang_op *find_wait_until_death(const struct ni_hang_finding *f,
                                                      const struct ni_hang_knot *k,
                                                      const struct ni_hang_view *w) {
  const struct ni_hang_process *p = &f->m->process[w->member->who->process];
  const struct ni_hang_op *op =
      w->where == NI_HANG_GONE ? find_open_op(w->member, k->op.func, k->op.sn) : NULL;
  bool waited = op && op->enqueue_ns && p->alive_ns >= op->enqueue_ns + NI_HANG_OUTLIVED_NS;
  return waited ? op : NULL;
}

/*
 * The processes of a job may end one after the other, each by its own watchdog. Those that had waited until
 * then are not missing, as long as somebody else is: a rank that never called it, or that died before. If
 * nobody else is missing, their death is all that is known.
 */
static void spare_those_who_waited(const struct ni_hang_finding *f, struct ni_hang_knot *k) {
  bool others_owe = false;
  for (size_t i = 0; i < k->n && !others_owe; i++) {
    const struct ni_hang_view *w = &k->view[i];
    bool gone_before = w->where == NI_HANG_GONE && !find_wait_until_death(f, k, w);
    others_owe = gone_before || w->where == NI_HANG_NEVER || w->where == NI_HANG_OTHER_CALL ||
        w->where == NI_HANG_HAS_LEFT;
  }
  for (size_t i = 0; i < k->n && others_owe; i++) {
    struct ni_hang_view *w = &k->view[i];
    const struct ni_hang_op *op = find_wait_until_death(f, k, w);
    if (!op)
      continue;
    w->op = op;
    w->where = ni_hang_where_of(op);
  }
}

/*
 * All ranks that have called it are queued, and the last operation before it is a replay. Perhaps the replay
 * does not end.
 */
static void find_replay_before(struct ni_hang_knot *k) {
  const struct ni_hang_op *before = NULL;
  if (ni_hang_count_inside(k))
    return;
  for (size_t i = 0; i < k->n; i++) {
    if (k->view[i].where != NI_HANG_QUEUED)
      continue;
    before = ni_hang_last_replay(k->view[i].member);
    if (!before || before->rec_sn + 1 != k->view[i].op->rec_sn)
      return;
  }
  k->behind_replay = before;
}

static int find_collective_knots(struct ni_hang_finding *f, const struct ni_hang_group *c) {
  const struct ni_hang_member *ref;
  const struct ni_hang_op *first = find_first_of_all(f, c, &ref);
  if (!first)
    return 0;
  struct ni_hang_knot *k = ni_hang_new_knot(f, c, NI_KIND_COLL);
  if (!k)
    return -ENOMEM;
  k->op = *first;
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_op *op = find_open_op(c->x[i], first->func, first->sn);
    if (!op)
      continue;
    if (op == find_first_open(c->x[i])) {
      ref = c->x[i];
      k->op.rec_sn = op->rec_sn;
    }
    ni_hang_note_call(k, op->enqueue_ns);
  }
  if (k->first_ns == UINT64_MAX)
    k->first_ns = 0;
  for (size_t i = 0; i < c->n; i++)
    locate_rank(f, c, k, &k->view[i], ref);
  spare_those_who_waited(f, k);
  compare_calls(k);
  find_last_finished(k);
  ni_hang_count(k);
  if (k->op.replay && !ni_hang_misses(k)) { /* nobody waits there, as far as anybody knows */
    free(k->view);
    f->v->n--;
    return 0;
  }
  find_replay_before(k);
  return 0;
}

/* ---- sends and receives that are in flight, and who waits for whom ---- */

/* The other half of this operation, where the peer has it in flight. */
static const struct ni_hang_op *find_other_half(const struct ni_hang_finding *f,
                                                const struct ni_hang_member *peer,
                                                const struct ni_hang_op *op, int32_t me) {
  bool send = op->func == f->send;
  const struct ni_hang_op *half = ni_hang_open_from(peer, NI_KIND_P2P, me, send ? 0 : f->send);
  const bool is_send_too = half && half->root == me && half->func == f->send;
  if (send && is_send_too)
    half = ni_hang_open_from(peer, NI_KIND_P2P, me, f->send + 1u);
  return half && half->root == me && (half->func == f->send) != send ? half : NULL;
}

/*
 * Finds the oldest operation of a rank whose other half is missing, else its oldest one; among those that
 * have begun, else among all. What a rank left behind that is no longer there is nobody's other half.
 */
static void locate_p2p(const struct ni_hang_finding *f, const struct ni_hang_group *c, struct ni_hang_knot *k,
                       struct ni_hang_view *w) {
  const struct ni_hang_member *x = w->member;
  w->where = NI_HANG_NOT_INVOLVED;
  if (!ni_hang_stays(c, x, &f->m->process[x->who->process]))
    return;
  for (size_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    if (op->kind != NI_KIND_P2P)
      continue;
    struct ni_hang_view *peer = op->root == w->rank ? NULL : ni_hang_view_of(k, op->root);
    bool there = peer && ni_hang_stays(c, peer->member, &f->m->process[peer->member->who->process]);
    const struct ni_hang_op *half = there ? find_other_half(f, peer->member, op, w->rank) : NULL;
    bool missing = op->root != w->rank && op->root >= 0 && !half;
    int has = 2 * (ni_hang_where_of(op) == NI_HANG_INSIDE) + missing;
    int had = 2 * (w->where == NI_HANG_INSIDE) + (w->waits_for >= 0);
    bool better = !w->op || has > had || (has == had && op->rec_sn < w->op->rec_sn);
    ni_hang_note_call(k, op->enqueue_ns);
    if (!better)
      continue;
    w->op = op;
    w->unlike = half && half->bytes != op->bytes;
    w->waits_for = missing ? op->root : -1;
    w->where = ni_hang_where_of(op);
  }
}

/* Locates a rank that others wait for and that waits for nobody itself. */
static void locate_waited_for(const struct ni_hang_finding *f, const struct ni_hang_group *c,
                              struct ni_hang_knot *k, struct ni_hang_view *w) {
  const struct ni_hang_member *x = w->member;
  const struct ni_hang_process *p = &f->m->process[x->who->process];
  if (ni_hang_dead_before(c, p))
    w->where = NI_HANG_GONE;
  else if (w->op)
    return; /* inside something that is answered */
  else if (ni_hang_left_before(c, x, p))
    w->where = NI_HANG_HAS_LEFT;
  else if (!ni_hang_is_known_at(x, p, k->first_ns))
    w->where = NI_HANG_NO_DATA;
  else
    w->where = NI_HANG_NEVER;
}

static int find_transfer_knots(struct ni_hang_finding *f, const struct ni_hang_group *c) {
  bool any = false;
  for (size_t i = 0; i < c->n && !any; i++)
    any = ni_hang_stays(c, c->x[i], &f->m->process[c->x[i]->who->process]) &&
        ni_hang_open_from(c->x[i], NI_KIND_P2P, INT64_MIN, 0);
  if (!any)
    return 0;
  struct ni_hang_knot *k = ni_hang_new_knot(f, c, NI_KIND_P2P);
  if (!k)
    return -ENOMEM;
  k->unseen = 0; /* those that are waited for and not there are counted below */
  for (size_t i = 0; i < c->n; i++)
    locate_p2p(f, c, k, &k->view[i]);
  if (k->first_ns == UINT64_MAX)
    k->first_ns = 0;
  for (size_t i = 0; i < c->n; i++) {
    struct ni_hang_view *w = &k->view[i], *peer;
    if (w->where == NI_HANG_INSIDE && (peer = ni_hang_view_of(k, w->op->root)))
      peer->awaited = true;
    if (w->waits_for < 0)
      continue;
    if ((peer = ni_hang_view_of(k, w->waits_for)))
      locate_waited_for(f, c, k, peer);
    else
      k->unseen++;
  }
  /*
   * What is named: the oldest of the waits for a rank that waits for nobody; else the oldest whose other half
   * is missing.
   */
  for (int pass = 0; pass < 3 && !k->op.enqueue_ns; pass++)
    for (size_t i = 0; i < c->n; i++) {
      struct ni_hang_view *w = &k->view[i],
                          *peer = w->waits_for >= 0 ? ni_hang_view_of(k, w->waits_for) : NULL;
      const bool has_peer_op = peer && peer->op && peer->where != NI_HANG_GONE;
      if (!w->op || (pass < 2 && w->waits_for < 0))
        continue;
      if (pass == 0 && has_peer_op)
        continue;
      if (!k->op.enqueue_ns || w->op->enqueue_ns < k->op.enqueue_ns)
        k->op = *w->op;
    }
  ni_hang_count(k);
  return 0;
}

/* ---- communicators ---- */

static uint64_t newest_op_ns(const struct ni_hang_member *x) {
  uint64_t t = x->active_ns;
  ni_hang_raise(&t, x->open_ns);
  ni_hang_raise(&t, x->log_ns);
  return t;
}

static int by_comm(const void *a, const void *b) {
  const struct ni_hang_member *x = *(const struct ni_hang_member *const *)a,
                              *y = *(const struct ni_hang_member *const *)b;
  int k = NI_BY(x, y, who->hash, who->n_ranks, who->rank);
  uint64_t s = newest_op_ns(x), t = newest_op_ns(y);
  if (k == 0 && s != t)
    k = s > t ? -1 : 1; /* the newest first: a job that ran again, a communicator made anew */
  if (k == 0)
    k = NI_BY(y, x, who->init_ns);
  return k ? k : NI_BY(x, y, who->process);
}

static bool is_same_comm(const struct ni_hang_member *x, const struct ni_hang_member *y) {
  return x->who->comm == y->who->comm;
}

static void mark_several(struct ni_hang_model *m, const struct ni_hang_member **all, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n && is_same_comm(all[j], all[i]) && j < i + 256; j++)
      if (all[j]->who->process == all[i]->who->process && all[j]->who->rank != all[i]->who->rank) {
        m->process[all[i]->who->process].several = true;
        break;
      }
}

/* If two communicators miss the same number of ranks, the larger one says more. */
static void note_unseen(struct ni_hang_fate *f, const struct ni_hang_group *c) {
  const struct ni_hang_member *x = c->x[0];
  size_t unseen = x->who->n_ranks > 0 && (size_t)x->who->n_ranks > c->n ? (size_t)x->who->n_ranks - c->n : 0;
  if (unseen < f->unseen || !unseen)
    return;
  if (unseen == f->unseen && x->who->n_ranks <= f->unseen_in->who->n_ranks)
    return;
  f->unseen = unseen;
  f->unseen_in = x;
}

/*
 * Have all of its ranks come to the same replay, and to nothing after it? If several communicators stand like
 * that, the newest replay counts.
 */
static void note_quiet(struct ni_hang_verdict *v, const struct ni_hang_group *c) {
  struct ni_hang_quiet q = {.any = c->x[0], .ranks = c->n};
  for (size_t i = 0; i < c->n; i++) {
    const struct ni_hang_op *op = ni_hang_last_replay(c->x[i]);
    const bool is_other = op && i && !ni_hang_is(op, q.op.func, q.op.sn);
    if (!op || is_other || c->x[i]->n_open)
      return;
    if (i == 0)
      q.op = *op;
    ni_hang_raise(&q.since_ns, op->seen_ns > op->enqueue_ns ? op->seen_ns : op->enqueue_ns);
    ni_hang_raise(&q.every_ns, op->every_ns);
    if (c->x[i]->who->name && !q.any->who->name)
      q.any = c->x[i];
  }
  if (q.since_ns > v->quiet.since_ns)
    v->quiet = q;
}

int ni_hang_find_knots(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  struct ni_hang_finding f = {.v = v, .m = m};
  const struct ni_hang_member **all = malloc((m->n_members + 1) * sizeof *all);
  size_t n = 0, kept = 0;
  int e = all ? 0 : -ENOMEM;
  for (size_t i = 0; all && i < m->n_members; i++)
    all[n++] = m->member[i];
  for (size_t i = 1; i < m->n_names; i++)
    if (strcmp(m->name[i], "Send") == 0)
      f.send = (uint16_t)i;
  if (n > 1)
    qsort(all, n, sizeof *all, by_comm);
  for (size_t i = 0; i < n; i++) /* one a rank: the newest */
    if (!kept || !is_same_comm(all[kept - 1], all[i]) || all[kept - 1]->who->rank != all[i]->who->rank)
      all[kept++] = all[i];
  if (all)
    mark_several((struct ni_hang_model *)(uintptr_t)m, all, kept);
  for (size_t i = 0, end; e == 0 && i < kept; i = end) {
    for (end = i + 1; end < kept && is_same_comm(all[end], all[i]); end++) {}
    struct ni_hang_group c = {.x = all + i, .n = end - i, .past = true};
    bool blind = false;
    for (size_t j = i; j < end; j++) {
      blind |= all[j]->invisible > 0;
      c.past &= v->earlier[all[j]->who->process];
      const struct ni_hang_process *p = &m->process[all[j]->who->process];
      ni_hang_raise(&c.seen_ns, p->alive_ns);
      ni_hang_raise(&c.until_ns, ni_hang_was_in_until(all[j], p));
      bool runs = p->life != NI_HANG_DEAD && p->life != NI_HANG_LEFT;
      if (runs)
        ni_hang_raise(&c.runs_ns, p->alive_ns);
    }
    /*
     * Nobody is in it any more, and the job went on: what was waited for there is history. Of an orderly end
     * it is told.
     */
    bool deserted = c.until_ns != UINT64_MAX && !c.past, killed = v->fate.in[NI_HANG_DEAD] > 0;
    bool went_on = !v->fate.over || (killed && v->fate.last_ns > c.until_ns + NI_HANG_OUTLIVED_NS);
    bool history = deserted && went_on;
    v->blind += blind && !c.past;
    v->n_communicators += !c.past;
    if (!c.past)
      note_unseen(&v->fate, &c);
    if (!c.past)
      note_quiet(v, &c);
    if (history)
      continue;
    if ((e = find_collective_knots(&f, &c)) == 0)
      e = find_transfer_knots(&f, &c);
  }
  free(all);
  return e;
}
