#include "settle.h"

#include <errno.h>

#include "clocks.h"
#include "lost.h"
#include "replays.h"

/* 0 or -ENOMEM. */
static int settle_member(struct ni_hang_member *x, const struct ni_hang_process *p) {
  uint32_t kept = 0;
  int e = 0;
  ni_hang_keep_newest(x);
  if (p->nccl_version >= NI_HANG_DROPS_QUEUED)
    e = ni_hang_finish_unknown_replays(x);
  for (uint32_t i = 0; i < x->n_open; i++) {
    const struct ni_hang_op *op = &x->open[i];
    bool done = op->rec_sn != NI_HANG_NONE && ni_seq_set_has(&x->recorded[op->kind], op->rec_sn);
    /* A newer look shows everything in flight, and not this one: it has finished since. */
    done |= op->seen_ns < x->open_ns && !op->given_up;
    if (!done)
      x->open[kept++] = *op;
  }
  x->n_open = kept;
  ni_hang_order_open(x);
  return e;
}

int ni_hang_model_settle(struct ni_hang_model *m) {
  for (size_t i = 0; i < m->n_processes; i++)
    m->process[i].who = &m->who.process[i];
  for (size_t i = 0; i < m->n_members; i++)
    m->member[i]->who = &m->who.member[i];
  int e = ni_hang_align_clocks(m);
  for (size_t i = 0; i < m->n_members; i++) {
    struct ni_hang_process *p = &m->process[m->who.member[i].process];
    if (settle_member(m->member[i], p) < 0)
      e = -ENOMEM;
    p->n_members++;
  }
  if (e == 0)
    e = ni_hang_drop_lost(m);
  return e ? e : ni_hang_open_replays(m);
}
