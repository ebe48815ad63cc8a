/*
 * Which causes a job has, and what they do: factors on computes, links and launches by rank, host and step. 1
 * (or 0) where a fault does not reach. `active` is a set of the job's faults by number (bit i: fault i), so
 * that a job can be run with each.
 */
#ifndef NI_JOBS_FAULT_H
#define NI_JOBS_FAULT_H

#include "test/jobs/job.h"

extern const char *const nj_kind_names[NJ_KINDS];
/* What size means of a kind: its unit ("%", "x", "ms") and its default. NULL where it has none. */
const char *nj_size_unit(enum nj_kind kind);
double nj_size_default(enum nj_kind kind);
/* Whether its strength is a time: ns here, seconds in truth.json. */
bool nj_in_seconds(enum nj_kind kind);
/* Draws culprits and times. NULL, or why this layout cannot have this kind. */
const char *nj_faults(struct nj_job *job);
/* Moments in true time of a job that takes `ns` without its faults: before the first run with them. */
void nj_faults_moments(struct nj_job *job, double ns);
/* Strength times `by`, of all faults. */
void nj_faults_scale(struct nj_job *job, double by);
/*
 * Makes the fault another one's, of the same kind, times and strength: the rank's, or its host's, stage's or
 * replica's. False where it is nobody's, or the rank's host has no way to another one.
 */
bool nj_fault_move(struct nj_job *job, int which, int rank);

/* Whether the fault is at work at this moment. */
bool nj_at_work(const struct nj_fault *f, struct nj_when when);
double nj_compute_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when);
/* ns that are added to the instruction of a step, mostly 0. */
/* Tokens of the rank's replica in a step over the usual number: requests, or a replica that has more. */
double nj_batch(const struct nj_job *job, unsigned active, int rank, int step);
/*
 * A pause of the rank's CPU that is planted in this step, ns, mostly 0; where: the instruction before which
 * it is, of n.
 */
double nj_planted_pause(const struct nj_job *job, unsigned active, int rank, int step, int n, int *where);
/* Rounds of an evaluation before a step; 0: none. */
int nj_eval_rounds(const struct nj_job *job, unsigned active, int step);
/* Whether the rank is one of those that a cause with `who` concerns. */
bool nj_concerns(const struct nj_job *job, const struct nj_fault *f, int rank);
double nj_compute_extra(const struct nj_job *job, unsigned active, int rank, int step, int instr);
double nj_launch_factor(const struct nj_job *job, unsigned active, int rank, int step);
double nj_nvlink_factor(const struct nj_job *job, unsigned active, int host, struct nj_when when);
/* Of a rank's NIC; and of the way between two ranks on different hosts, their NICs left out. */
double nj_nic_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when);
double nj_way_factor(const struct nj_job *job, unsigned active, int rank, int other, struct nj_when when);
/* What a GPU's own slowness adds to all its transfers. */
double nj_gpu_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when);
/* How many tokens the expert of a rank gets over the fair share: routing, and an uneven job. */
double nj_route(const struct nj_job *job, unsigned active, int rank, int expert, int step);

#endif
