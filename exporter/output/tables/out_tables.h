/* summary.csv, the same by communicator, rank and host, and the tables of pairs and rollups. Main thread. */
#ifndef NI_OUT_TABLES_H
#define NI_OUT_TABLES_H

#include <stdio.h>

#include "exporter/model/sums/model.h"

/* Into `dir`, which is there. 0 or -errno; path, of PATH_MAX bytes, is then that of the file that failed. */
int ni_write_tables(const struct ni_summary *s, const char *dir, char *path);

#endif
