#include "links.h"

#include <math.h>

#include "test/jobs/plan/fault.h"

#define INSIDE_NS 12e3 /* latency within a host */
#define ACROSS_NS 30e3 /* between two, and for each further host of a ring */
#define HOP_NS 4e3

/* The slowest of the links in a ring: NICs of its ranks, ways between its neighbours. */
static double slowest_across(const struct nj_job *job, unsigned active, const struct nj_comm *c,
                             struct nj_when when) {
  double by = 1;
  for (int i = 0; active && i < c->n; i++) {
    int next = c->rank[(i + 1) % c->n];
    by = fmax(by, nj_nic_factor(job, active, c->rank[i], when));
    if (job->rank[c->rank[i]].host != job->rank[next].host)
      by = fmax(by, nj_way_factor(job, active, c->rank[i], next, when));
  }
  return by;
}

static double slowest_inside(const struct nj_job *job, unsigned active, const struct nj_comm *c,
                             struct nj_when when) {
  double by = 1;
  for (int i = 0; active && i < c->n_hosts; i++)
    by = fmax(by, nj_nvlink_factor(job, active, c->host[i], when));
  return by;
}

double nj_coll_ns(const struct nj_job *job, unsigned active, const struct nj_comm *c, enum nj_func func,
                  double bytes, struct nj_when when) {
  double gpus = (double)c->n / c->n_hosts, others = c->n - 1, gpu = 1;
  /* through each link of a ring */
  double passed = func == NJ_ALL_REDUCE ? 2 * others / c->n * bytes : others * bytes;
  double inside =
      c->n_hosts == 1 || gpus > 1 ? passed / job->model.nvlink * slowest_inside(job, active, c, when) : 0;
  double across = 0, latency = INSIDE_NS;
  if (c->n_hosts > 1) {
    /* Each GPU of a host has a NIC of its own, and a ring through each of them its part. */
    across = passed / (job->model.nic * gpus) * slowest_across(job, active, c, when);
    if (func == NJ_ALL_TO_ALL)
      across = (c->n - gpus) * bytes / job->model.nic * slowest_across(job, active, c, when);
    latency = ACROSS_NS + HOP_NS * c->n_hosts;
  }
  for (int i = 0; active && i < c->n; i++)
    gpu = fmax(gpu, nj_gpu_factor(job, active, c->rank[i], when));
  return latency + fmax(inside, across) * gpu;
}

double nj_p2p_ns(const struct nj_job *job, unsigned active, int from, int to, double bytes, int share,
                 struct nj_when when) {
  const struct nj_rank *a = &job->rank[from], *b = &job->rank[to];
  double gpu = fmax(nj_gpu_factor(job, active, from, when), nj_gpu_factor(job, active, to, when));
  if (a->host == b->host)
    return INSIDE_NS + bytes / job->model.nvlink * nj_nvlink_factor(job, active, a->host, when) * gpu;
  double by = fmax(nj_nic_factor(job, active, from, when), nj_nic_factor(job, active, to, when));
  by = fmax(by, nj_way_factor(job, active, from, to, when));
  return ACROSS_NS + bytes / job->model.nic * share * by * gpu;
}
