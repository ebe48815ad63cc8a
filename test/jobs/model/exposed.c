#include "exposed.h"

#include <stdlib.h>
#include <string.h>

#include "test/jobs/plan/layout.h"

struct edge { /* where a kernel begins or ends */
  double at;
  int step;
  signed char comm, work;
};

struct nj_exposed {
  const struct nj_job *job;
  struct {
    int rank;
    struct edge *edge;
    size_t n, cap;
  } of[NJ_TRACKED];
};

struct nj_exposed *nj_exposed_new(const struct nj_job *job) {
  struct nj_exposed *x = nj_more(NULL, sizeof *x);
  memset(x, 0, sizeof *x);
  x->job = job;
  for (int i = 0; i < NJ_TRACKED; i++)
    x->of[i].rank = i * (job->world / NJ_TRACKED) + i % NJ_HOST_GPUS;
  return x;
}

int nj_exposed_rank(const struct nj_exposed *x, int which) { return x->of[which].rank; }

static void add(struct nj_exposed *x, int rank, int step, double from, double to, int comm) {
  for (int i = 0; i < NJ_TRACKED; i++) {
    if (x->of[i].rank != rank)
      continue;
    if (x->of[i].n + 2 > x->of[i].cap) {
      x->of[i].cap = x->of[i].cap ? 2 * x->of[i].cap : 4096;
      x->of[i].edge = nj_more(x->of[i].edge, x->of[i].cap * sizeof *x->of[i].edge);
    }
    for (int k = 0; k < 2; k++)
      x->of[i].edge[x->of[i].n++] = (struct edge){k ? to : from, step, (signed char)(comm ? 1 - 2 * k : 0),
                                                  (signed char)(comm ? 0 : 1 - 2 * k)};
  }
}

void nj_exposed_done(struct nj_exposed *x, const struct nj_done *d) {
  add(x, d->rank, d->step, d->start, d->end, 1);
}
void nj_exposed_worked(struct nj_exposed *x, int rank, int step, double from, double to) {
  add(x, rank, step, from, to, 0);
}

static int by_time(const void *a, const void *b) {
  double x = ((const struct edge *)a)->at, y = ((const struct edge *)b)->at;
  return x < y ? -1 : x > y;
}

/*
 * All streams have ended when a step ends, so what is between two edges belongs to the step of the later one.
 */
void nj_exposed_steps(struct nj_exposed *x, int which, double *out) {
  int comm = 0, work = 0;
  double before = 0;
  struct edge *e = x->of[which].edge;
  for (int i = 0; i < x->job->steps; i++)
    out[i] = 0;
  if (x->of[which].n)
    qsort(e, x->of[which].n, sizeof *e, by_time);
  for (size_t i = 0; i < x->of[which].n; i++) {
    if (comm > 0 && work == 0)
      out[e[i].step] += e[i].at - before;
    comm += e[i].comm;
    work += e[i].work;
    before = e[i].at;
  }
}
