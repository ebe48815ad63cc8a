/*
 * Logs -> model: records say what finished, stuck and in_flight lines what has not, dump_stats how much was started.
 *
 * A log is written behind the event and only when there is something to write. So it proves what was called and what
 * finished; that something was *not* called it proves only up to a dump_stats line with nothing in flight.
 */
#ifndef NI_HANG_READ_LOGS_H
#define NI_HANG_READ_LOGS_H

#include "exporter/input/scan_files.h"
#include "model.h"

/* Reads the files into *m. What cannot be read is counted there. 0 or -ENOMEM. */
int ni_hang_read_logs(struct ni_hang_model *m, const struct ni_files *files, struct ni_progress *progress);

#endif
