/* How long transfers take, from sizes, links and what is wrong with them. ns; bytes/ns. */
#ifndef NI_JOBS_LINKS_H
#define NI_JOBS_LINKS_H

#include "test/jobs/job.h"

/*
 * A collective once its last rank is there. bytes as NCCL counts: one rank's share of AllGather,
 * ReduceScatter, AlltoAll.
 */
double nj_coll_ns(const struct nj_job *job, unsigned active, const struct nj_comm *c, enum nj_func func,
                  double bytes, struct nj_when when);
/* A message between two ranks, one of `share` that leave a GPU at the same time. */
double nj_p2p_ns(const struct nj_job *job, unsigned active, int from, int to, double bytes, int share,
                 struct nj_when when);

#endif
