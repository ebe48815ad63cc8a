/*
 * Weather: what logs of one and the same job differ by (job.h, struct nj_weather). It changes what is written and nothing that
 * happens, but for what truth.json calls `tokens` and `experts`.
 */
#ifndef NI_JOBS_WEATHER_H
#define NI_JOBS_WEATHER_H

#include "test/jobs/job.h"

/* Of which host, and when; what was asked for stays as it is. After nj_layout(). */
void nj_weather_place(struct nj_job *job);

#endif
