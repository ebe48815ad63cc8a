/*
 * Who is where: ranks, hosts and communicators of a layout, and the job's constants.
 *   A  TP 8 within a host, DP 4          B  TP 8, PP 2, DP 2         C  TP 4, PP 4, DP 2: a stage is a host
 *   P  as C, but ranks go by tp, pp, dp: a host has two stages, and DP crosses hosts
 *   F  FSDP over 32 ranks                D  DDP over 32 ranks        M  experts over 8 ranks on four hosts, DP 32
 *   L  TP 8, PP 8, DP 16: 1,024 ranks
 * Ranks of A, B, C, L go by tp, then dp, then pp, as Megatron numbers them.
 */
#ifndef NI_JOBS_LAYOUT_H
#define NI_JOBS_LAYOUT_H

#include "test/jobs/job.h"

#define NJ_LAYOUTS "ABCPFDML"

/*
 * Fills ranks and communicators of job (layout, seed and steps are set; steps 0: the layout's). Memory is
 * never given back.
 */
void nj_layout(struct nj_job *job);
/* The rank's own number of its communicator of that role; -1: it is in none. */
int nj_comm_of(const struct nj_job *job, int rank, char role);
/* What all that allocate here use: without memory the program ends. */
void *nj_more(void *p, unsigned long bytes);

#endif
