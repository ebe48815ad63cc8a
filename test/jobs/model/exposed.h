/*
 * Exposed communication: how long in each step communication ran on a rank and no compute did. Of a few
 * ranks, from what the engine tells; union of the one less the other, in true time.
 */
#ifndef NI_JOBS_EXPOSED_H
#define NI_JOBS_EXPOSED_H

#include "engine.h"

#define NJ_TRACKED 4

struct nj_exposed;

struct nj_exposed *nj_exposed_new(const struct nj_job *job);
void nj_exposed_done(struct nj_exposed *x, const struct nj_done *d);
void nj_exposed_worked(struct nj_exposed *x, int rank, int step, double from, double to);
/* The tracked ranks; ns of each of the job's steps into out. */
int nj_exposed_rank(const struct nj_exposed *x, int which);
void nj_exposed_steps(struct nj_exposed *x, int which, double *out);

#endif
