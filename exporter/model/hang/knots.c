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
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->n_ranks != y->n_ranks) return x->n_ranks < y->n_ranks ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  uint64_t s = newest(x), t = newest(y);
  if (s != t) return s > t ? -1 : 1; /* the newest first: a job that ran again, a communicator made anew */
  if (x->init_ns != y->init_ns) return x->init_ns > y->init_ns ? -1 : 1;
  return x->process < y->process ? -1 : x->process > y->process;
}

/* A communicator is its hash and its size. */
static bool same_comm(const struct ni_hang_member *x, const struct ni_hang_member *y) {
  return x->hash == y->hash && x->n_ranks == y->n_ranks;
}

static void mark_several(struct ni_hang_model *m, const struct ni_hang_member **all, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t j = i + 1; j < n && same_comm(all[j], all[i]) && j < i + 256; j++)
      if (all[j]->process == all[i]->process && all[j]->rank != all[i]->rank) {
        m->process[all[i]->process].several = true;
        break;
      }
}

/* Of communicators that miss equally many ranks the larger one: it says more. */
static void note_unseen(struct ni_hang_fate *f, const struct ni_hang_group *c) {
  const struct ni_hang_member *x = c->x[0];
  size_t unseen = x->n_ranks > 0 && (size_t)x->n_ranks > c->n ? (size_t)x->n_ranks - c->n : 0;
  if (unseen < f->unseen || !unseen || (unseen == f->unseen && x->n_ranks <= f->unseen_in->n_ranks)) return;
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
    if (!kept || !same_comm(all[kept - 1], all[i]) || all[kept - 1]->rank != all[i]->rank)
      all[kept++] = all[i];
  if (all) mark_several((struct ni_hang_model *)(uintptr_t)m, all, kept);
  for (size_t i = 0, end; e == 0 && i < kept; i = end) {
    for (end = i + 1; end < kept && same_comm(all[end], all[i]); end++) {}
    struct ni_hang_group c = {.x = all + i, .n = end - i, .past = true};
    bool blind = false;
    for (size_t j = i; j < end; j++) {
      blind |= all[j]->invisible > 0;
      c.past &= v->earlier[all[j]->process];
      const struct ni_hang_process *p = &m->process[all[j]->process];
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
