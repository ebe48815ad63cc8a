/*
 * Which operations of a process may have been left out by NCCL_INSPECTOR_SAMPLE, in the words that all commands use.
 *
 * dump_stats lines count what was left out (`sampled`). Behind the newest one of a process that was killed or still runs nobody
 * has counted: a number without a record there was left out, lost, or is in flight, and only `recover` tells which. Numbers
 * below are judged as always. Pure functions.
 */
#ifndef NI_SAMPLING_H
#define NI_SAMPLING_H

#include "format/line.h"

/* N of 1/N that a process or control line states; 0: the line says nothing of it. */
uint64_t ni_sampling_of(const struct ni_line *l);

/* What such numbers are; with the count and, in brackets or behind a colon, the place. */
#define NI_SAMPLING_ONE "operation without a record since the last accounting: sampled out or lost, `recover` tells which"
#define NI_SAMPLING_MANY "operations without a record since the last accounting: sampled out or lost, `recover` tells which"

#endif
