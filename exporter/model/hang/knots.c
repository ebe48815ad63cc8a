/*
 * Communicators whose ranks have not all finished what some of them called, and where each rank is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "knots.h"
#include "knot_coll.h"
#include "knot_p2p.h"

static uint64_t newest(const struct ni_hang_member *x) {
  uint64_t t = x->active_ns;
  ni_hang_raise(&t, x->open_ns);
  ni_hang_raise(&t, x->log_ns);
  return t;
}

static int by_comm(const void *a, const void *b) {
  const struct ni_hang_member *x = *(const struct ni_hang_member *const *)a, *y = *(const struct ni_hang_member *const *)b;
  if (x->who->hash != y->who->hash) return x->who->hash < y->who->hash ? -1 : 1;
  if (x->who->n_ranks != y->who->n_ranks) return x->who->n_ranks < y->who->n_ranks ? -1 : 1;
  if (x->who->rank != y->who->rank) return x->who->rank < y->who->rank ? -1 : 1;
  uint64_t s = newest(x), t = newest(y);
  if (s != t) return s > t ? -1 : 1; /* the newest first: a job that ran again, a communicator made anew */
  if (x->who->init_ns != y->who->init_ns) return x->who->init_ns > y->who->init_ns ? -1 : 1;
  return x->who->process < y->who->process ? -1 : x->who->process > y->who->process;
}

static bool same_comm(const struct ni_hang_member *x, const struct ni_hang_member *y) { return x->who->comm == y->who->comm; }

static void mark_several(struct ni_hang_model *m, const struct ni_hang_member **all, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n && same_comm(all[j], all[i]) && j < i + 256; j++)
      if (all[j]->who->process == all[i]->who->process && all[j]->who->rank != all[i]->who->rank) {
        m->process[all[i]->who->process].several = true;
        break;
      }
}

/* Of communicators that miss equally many ranks the larger one: it says more. */
static void note_unseen(struct ni_hang_fate *f, const struct ni_hang_group *c) {
  const struct ni_hang_member *x = c->x[0];
  size_t unseen = x->who->n_ranks > 0 && (size_t)x->who->n_ranks > c->n ? (size_t)x->who->n_ranks - c->n : 0;
  if (unseen < f->unseen || !unseen || (unseen == f->unseen && x->who->n_ranks <= f->unseen_in->who->n_ranks)) return;
  f->unseen = unseen;
  f->unseen_in = x;
}

int ni_hang_find_knots(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  struct ni_hang_finding f = {.v = v, .m = m};
  const struct ni_hang_member **all = malloc((m->n_members + 1) * sizeof *all);
  size_t n = 0, kept = 0;
  int e = all ? 0 : -ENOMEM;
  for (size_t i = 0; all && i < m->n_members; i++) all[n++] = m->member[i];
  for (size_t i = 1; i < m->n_names; i++)
    if (strcmp(m->name[i], "Send") == 0) f.send = (uint16_t)i;
  if (n > 1) qsort(all, n, sizeof *all, by_comm);
  for (size_t i = 0; i < n; i++) /* one a rank: the newest */
    if (!kept || !same_comm(all[kept - 1], all[i]) || all[kept - 1]->who->rank != all[i]->who->rank)
      all[kept++] = all[i];
  if (all) mark_several((struct ni_hang_model *)(uintptr_t)m, all, kept);
  for (size_t i = 0, end; e == 0 && i < kept; i = end) {
    for (end = i + 1; end < kept && same_comm(all[end], all[i]); end++) {}
    struct ni_hang_group c = {.x = all + i, .n = end - i, .past = true};
    bool blind = false;
    for (size_t j = i; j < end; j++) {
      blind |= all[j]->invisible > 0;
      c.past &= v->earlier[all[j]->who->process];
      const struct ni_hang_process *p = &m->process[all[j]->who->process];
      ni_hang_raise(&c.seen_ns, p->alive_ns);
      if (p->life != NI_HANG_DEAD) ni_hang_raise(&c.runs_ns, p->alive_ns);
    }
    v->blind += blind && !c.past;
    v->n_communicators += !c.past;
    if (!c.past) note_unseen(&v->fate, &c);
    if ((e = ni_hang_collectives(&f, &c)) == 0) e = ni_hang_transfers(&f, &c);
  }
  free(all);
  return e;
}
