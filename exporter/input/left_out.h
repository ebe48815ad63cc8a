/*
 * What the settings of a process leave out of its log, in the words that all commands use. Pure functions.
 *
 * Sampling: dump_stats lines count what NCCL_INSPECTOR_SAMPLE left out (`sampled`). Behind the newest one of a process that was
 * killed or still runs nobody has counted: a number without a record there was left out, lost, or is in flight, and only
 * `recover` tells which. Numbers below are judged as always.
 *
 * Expiry: the log counts the records of deleted files (`expired` on the process's last line); why they went is in its settings.
 */
#ifndef NI_LEFT_OUT_H
#define NI_LEFT_OUT_H

#include "format/line.h"

/* N of 1/N that a process or control line states; 0: the line says nothing of it. */
uint64_t ni_sampling_of(const struct ni_line *l);

/* What such numbers are; with the count and, in brackets or behind a colon, the place. */
#define NI_SAMPLING_ONE "operation without a record since the last accounting: sampled out or lost, `recover` tells which"
#define NI_SAMPLING_MANY "operations without a record since the last accounting: sampled out or lost, `recover` tells which"

enum { NI_EXPIRES_BY_SIZE = 1, NI_EXPIRES_BY_AGE = 2 };

/* NI_EXPIRES_*, or'ed; 0: nothing of this process expires. */
unsigned ni_expiry_limits(const struct ni_process_line *p);
/* The settings by name; of 0: that its process line is not there. */
const char *ni_expiry_text(unsigned limits);

#endif
