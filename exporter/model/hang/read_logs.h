/*
 * Logs -> model: records say what finished, stuck and in_flight lines what has not, dump_stats how much was
 * started.
 *
 * A log is written behind the event and only when there is something to write. So it proves what was called
 * and what finished; that something was *not* called it proves only up to a dump_stats line with nothing in
 * flight.
 *
 * What a log has said is small, and lies in an index (atlas.h, standing.h): the next time what it grew by is
 * read.
 */
#ifndef NI_HANG_READ_LOGS_H
#define NI_HANG_READ_LOGS_H

#include "exporter/index/atlas.h"
#include "model.h"

/*
 * Reads the files into *m. Files that cannot be read are counted there. index: where it lies, or that there
 * is none. who: for messages of it. 0 or -ENOMEM.
 */
int ni_hang_read_logs(struct ni_hang_model *m, const struct ni_files *files,
                      const struct ni_atlas_options *index, const char *who, struct ni_progress *progress);

#endif
