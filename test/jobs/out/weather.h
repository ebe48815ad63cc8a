/*
 * Weather: what logs of one and the same job differ by (job.h, struct nj_weather). It changes what is written
 * and nothing that happens, but for tokens, experts and stages, which are as uneven with the cause as without
 * it.
 *   nj_weather_set()    what a user asks for, one by one
 *   nj_weather_draw()   all of it by chance, as real logs vary; what was asked for stays
 *   nj_weather_place()  whom it concerns: after nj_layout()
 */
#ifndef NI_JOBS_WEATHER_H
#define NI_JOBS_WEATHER_H

#include "test/jobs/job.h"

/* "sample=8". False: there is no such thing, or no such value. */
bool nj_weather_set(struct nj_job *job, const char *text);
/* From the job's seed and layout, which are set. May set steps that are 0. */
void nj_weather_draw(struct nj_job *job);
/* Fills missing, unrecorded, and the host and moment of a step of a clock. */
void nj_weather_place(struct nj_job *job);
/*
 * Writes what lies beside the job into the same folder, and sets when the job itself begins. without_ns: how
 * long it takes without its cause. Before the job's own lines are opened.
 */
void nj_weather_beside(struct nj_job *job, double without_ns, const char *dir);

#endif
