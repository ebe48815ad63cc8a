#include "lost.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/order.h"

/*
 * Calls nearer together may be of one launch: of a group in C, or of one that Python fills with sends and
 * receives.
 */
#define TOGETHER_NS UINT64_C(1000000)
#define TOGETHER_P2P_NS UINT64_C(100000000)

/* Has one of its kind with a higher number finished? */
static bool is_overtaken(const struct ni_hang_member *x, const struct ni_hang_op *op) {
  const struct ni_seq_set *recorded = &x->recorded[op->kind];
  return op->rec_sn != NI_HANG_NONE && recorded->distinct && recorded->highest > op->rec_sn;
}

/*
 * Was a finished operation called later, and not in the same launch? For one kind, numbers say what is later.
 * For two kinds only times do, since PyTorch's groups have separate communicators for most sends and
 * receives.
 */
static bool is_passed(const struct ni_hang_member *x, const struct ni_hang_op *op) {
  uint64_t apart = op->kind == NI_KIND_COLL ? TOGETHER_NS : TOGETHER_P2P_NS;
  int other = op->kind == NI_KIND_COLL ? NI_KIND_P2P : NI_KIND_COLL;
  if (!op->enqueue_ns)
    return false;
  if (is_overtaken(x, op) && x->passed_ns[op->kind] > op->enqueue_ns + apart)
    return true;
  return !x->dump && x->passed_ns[other] > op->enqueue_ns + TOGETHER_P2P_NS;
}

bool ni_hang_has_finished(const struct ni_hang_member *x, uint16_t func, uint64_t sn) {
  const struct ni_hang_op *open = ni_hang_open_from(x, NI_KIND_COLL, func, sn);
  if (open && ni_hang_is(open, func, sn))
    return false;
  for (uint8_t i = 0; i < x->n_fin; i++)
    if (x->fin[i].func == func)
      return x->fin[i].next > sn;
  return false;
}

struct lost_peers {
  struct ni_hang_member **x; /* of one communicator */
  size_t n;
};

static bool is_lost(const struct lost_peers *c, const struct ni_hang_member *x, const struct ni_hang_op *op) {
  if (is_passed(x, op))
    return true;
  if (op->kind != NI_KIND_COLL || !is_overtaken(x, op))
    return false;
  for (size_t i = 0; i < c->n; i++)
    if (c->x[i] != x && ni_hang_has_finished(c->x[i], op->func, op->sn))
      return true;
  return false;
}

static void drop_lost_ops(const struct lost_peers *c, struct ni_hang_member *x) {
  size_t kept = 0;
  for (size_t i = 0; i < x->n_open; i++) {
    bool lost = is_lost(c, x, &x->open[i]);
    x->lost += lost;
    if (!lost)
      x->open[kept++] = x->open[i];
  }
  x->n_open = kept;
}

static int by_comm(const void *a, const void *b) {
  const struct ni_who_member *x = (*(struct ni_hang_member *const *)a)->who,
                             *y = (*(struct ni_hang_member *const *)b)->who;
  return NI_BY(x, y, comm, rank, process, init_ns);
}

int ni_hang_drop_lost(struct ni_hang_model *m) {
  struct ni_hang_member **all = malloc((m->n_members + 1) * sizeof *all);
  if (!all)
    return -ENOMEM;
  for (size_t i = 0; i < m->n_members; i++)
    all[i] = m->member[i];
  if (m->n_members > 1)
    qsort(all, m->n_members, sizeof *all, by_comm);
  for (size_t i = 0, end; i < m->n_members; i = end) {
    for (end = i + 1; end < m->n_members && all[end]->who->comm == all[i]->who->comm; end++) {}
    const struct lost_peers c = {all + i, end - i};
    for (size_t j = i; j < end; j++)
      drop_lost_ops(&c, all[j]);
  }
  free(all);
  return 0;
}
