/*
 * The clocks of hosts and GPUs: true time (ns from the job's begin) as a host's CLOCK_REALTIME and a GPU's timer show it.
 * A GPU's timer goes as its host's clock does, and the plugin knows how far they are apart but for the shortest delivery
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
/* What the plugin states as gpu_offset_ns, and how much of it is delivery time. */
int64_t nj_gpu_offset_ns(const struct nj_job *job, int rank);
int64_t nj_delivery_ns(const struct nj_job *job, int rank);

#endif
