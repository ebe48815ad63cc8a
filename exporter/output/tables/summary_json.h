/* summary.json: schema nccl-inspector-summary-1. Main thread. */
#ifndef NI_SUMMARY_JSON_H
#define NI_SUMMARY_JSON_H

#include <stdio.h>

#include "exporter/model/sums/model.h"

/* Writes the file `path`. 0 or -errno. */
int ni_write_json(const struct ni_summary *s, const char *path);
/* Write errors stay in f. */
void ni_json_summary(const struct ni_summary *s, FILE *f);

#endif
