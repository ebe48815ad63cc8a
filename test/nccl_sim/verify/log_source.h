/*
 * The plugin's logs as parsed lines, whatever files they lie in; the only place that knows the exporter's
 * reader. One thread. `line` is valid during the call. Returns the number of files, or -1 after a message.
 */
#ifndef NI_SIM_LOG_SOURCE_H
#define NI_SIM_LOG_SOURCE_H

#include "format/line.h"

struct ni_log_totals {
  uint64_t files, lines, bad, damaged;
};

int ni_logs_read(const char *path, void (*each)(const struct ni_line *line, void *arg), void *arg,
                 struct ni_log_totals *totals);

#endif
