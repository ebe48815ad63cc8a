/*
 * A sweep as a file that net_prof reads, and we (exporter/input/netprof/sweep.h): its 0.1.11 form, to the
 * key, of Cassini's counters. What net_prof does not know stands under one more key, "nccl_inspector", which
 * it passes over: other fabrics, links, the other clock, what could not be read. Times have their
 * nanoseconds.
 */
#ifndef NI_SWEEP_JSON_H
#define NI_SWEEP_JSON_H

#include "exporter/collect/set.h"

/* input_path: what was read; started, finished: Unix ns. 0; -ENOMEM; write errors stay in f. One thread. */
int ni_sweep_json(FILE *f, const struct ni_set *s, const struct ni_reading *reading, const char *input_path,
                  int64_t started, int64_t finished);

#endif
