/*
 * The clocks of hosts and GPUs: true time (ns from the job's begin) as a host's CLOCK_REALTIME and a GPU's
 * timer show it. A host's clock is off and drifts, and may step (job.h, struct nj_weather). A GPU's timer
 * goes as its host's clock does, and the plugin knows how far they are apart but for the shortest delivery
 * time.
 */
#ifndef NI_JOBS_CLOCKS_H
#define NI_JOBS_CLOCKS_H

#include "test/jobs/job.h"

/* Unix ns of the job's begin. */
int64_t nj_epoch(const struct nj_job *job);
double nj_host_offset_ns(const struct nj_job *job, int host);
double nj_host_drift_ppm(const struct nj_job *job, int host);
int64_t nj_host_ns(const struct nj_job *job, int host, double at);
/* The same by a clock that never steps, as CLOCK_MONOTONIC: what durations and differences are made of. */
int64_t nj_steady_ns(const struct nj_job *job, int host, double at);
/* How far the host's CLOCK_REALTIME is from nj_steady_ns() then: its step. */
int64_t nj_stepped_ns(const struct nj_job *job, int host, double at);
/*
 * What the GPU's timer shows of a kernel of true times from `at` to `end`, in nj_steady_ns(); which: the
 * rank's number of the operation.
 */
void nj_stamps(const struct nj_job *job, int rank, uint64_t which, double at, double end, int64_t *start,
               int64_t *stop);
/* What the plugin states as gpu_offset_ns, and how much of it is delivery time. */
int64_t nj_gpu_offset_ns(const struct nj_job *job, int rank);
int64_t nj_delivery_ns(const struct nj_job *job, int rank);

#endif
