/* summary.csv, the same by communicator, rank and host, and the tables of pairs and rollups. Main thread. */
#ifndef NI_OUT_TABLES_H
#define NI_OUT_TABLES_H

#include <stdio.h>

#include "exporter/model/sums/model.h"

/* Into `dir`, which is there. 0 or -errno. */
int ni_write_tables(const struct ni_summary *s, const char *dir);

/* A cell of text: quoted where needed (RFC 4180), what could steer a terminal as '?' (safe_text.h), and an apostrophe in front
 * of what a spreadsheet would run; NULL: empty. Write errors stay in the FILE. */
void ni_csv_text(FILE *f, const char *text);

#endif
