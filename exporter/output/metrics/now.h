/*
 * What every rank does now, as JSON (schema nccl-inspector-now-1, docs/agent.md): what /v1/now answers and
 * `top` shows.
 *
 * One thread; write errors stay in f. Everything stays with the caller.
 */
#ifndef NI_METRICS_NOW_H
#define NI_METRICS_NOW_H

#include <stdio.h>

#include "metrics.h"

void ni_now_json(FILE *f, const struct ni_metrics_in *in);

#endif
