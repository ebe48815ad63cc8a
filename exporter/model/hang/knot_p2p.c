#include "knot_p2p.h"

#include <errno.h>

/* Has the peer the other half of this operation in flight? */
static bool answered(const struct ni_hang_finding *f, const struct ni_hang_member *peer, const struct ni_hang_op *op, int32_t me) {
  bool send = op->func == f->send;
  const struct ni_hang_op *half = ni_hang_open_from(peer, NI_KIND_P2P, me, send ? 0 : f->send);
  if (send && half && half->root == me && half->func == f->send) half = ni_hang_open_from(peer, NI_KIND_P2P, me, f->send + 1u);
  return half && half->root == me && (half->func == f->send) != send;
}

/* The oldest operation of a rank whose other half is missing, else its oldest. */
static void place_p2p(const struct ni_hang_finding *f, struct ni_hang_knot *k, struct ni_hang_view *w) {
  const struct ni_hang_member *x = w->member;
  w->where = NI_HANG_NOT_INVOLVED;
  for (size_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    if (op->kind != NI_KIND_P2P) continue;
    struct ni_hang_view *peer = op->root == w->rank ? NULL : ni_hang_view_of(k, op->root);
    bool missing = op->root != w->rank && op->root >= 0 && !(peer && answered(f, peer->member, op, w->rank));
    bool better = !w->op || (missing && w->waits_for < 0) ||
                  (missing == (w->waits_for >= 0) && op->rec_sn < w->op->rec_sn);
    ni_hang_times(k, op->enqueue_ns);
    if (!better) continue;
    w->op = op;
    w->waits_for = missing ? op->root : -1;
    w->where = ni_hang_where_of(op);
  }
}

/* A rank that others wait for and that waits for nobody itself. */
static void place_waited_for(const struct ni_hang_finding *f, const struct ni_hang_group *c, struct ni_hang_knot *k, struct ni_hang_view *w) {
  const struct ni_hang_member *x = w->member;
  const struct ni_hang_process *p = &f->m->process[x->who->process];
  if (ni_hang_dead_before(c, p)) w->where = NI_HANG_GONE;
  else if (w->op) return; /* inside something that is answered */
  else if (ni_hang_has_left(x, p)) w->where = NI_HANG_HAS_LEFT;
  else if (!ni_hang_known_at(x, p, k->first_ns)) w->where = NI_HANG_NO_DATA;
  else w->where = NI_HANG_NEVER;
}

int ni_hang_transfers(struct ni_hang_finding *f, const struct ni_hang_group *c) {
  bool any = false;
  for (size_t i = 0; i < c->n && !any; i++)
    for (size_t j = 0; j < c->x[i]->n_open && !any; j++) any = c->x[i]->open[j].kind == NI_KIND_P2P;
  if (!any) return 0;
  struct ni_hang_knot *k = ni_hang_new_knot(f, c, NI_KIND_P2P);
  if (!k) return -ENOMEM;
  k->unseen = 0; /* those that are waited for and not there are counted below */
  for (size_t i = 0; i < c->n; i++) place_p2p(f, k, &k->view[i]);
  if (k->first_ns == UINT64_MAX) k->first_ns = 0;
  for (size_t i = 0; i < c->n; i++) {
    struct ni_hang_view *w = &k->view[i], *peer;
    if (w->waits_for < 0) continue;
    if ((peer = ni_hang_view_of(k, w->waits_for))) place_waited_for(f, c, k, peer);
    else k->unseen++;
  }
  /* What is named: the wait at whose end nobody waits, the oldest of those. */
  for (int pass = 0; pass < 2 && !k->op.enqueue_ns; pass++)
    for (size_t i = 0; i < c->n; i++) {
      struct ni_hang_view *w = &k->view[i], *peer = w->waits_for >= 0 ? ni_hang_view_of(k, w->waits_for) : NULL;
      if (!w->op || (pass == 0 && (w->waits_for < 0 || (peer && peer->op && peer->where != NI_HANG_GONE)))) continue;
      if (!k->op.enqueue_ns || w->op->enqueue_ns < k->op.enqueue_ns) k->op = *w->op;
    }
  ni_hang_count(k);
  return 0;
}
