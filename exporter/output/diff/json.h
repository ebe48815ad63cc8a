/* Two runs beside each other, as JSON (schema nccl-inspector-diff-1) and as a page. One thread. Same struct, same bytes. */
#ifndef NI_DIFF_JSON_H
#define NI_DIFF_JSON_H

#include <stdio.h>

#include "exporter/model/diff/diff.h"

/* gate: below 0: not asked for; over: the row that is beyond it, NULL: none. */
void ni_diff_json(const struct ni_diff *d, double gate, const struct ni_diff_row *over, FILE *f);
/* As ni_counters_page() (exporter/output/counters/page.h): 0; -ENOTSUP: built without npm; -ENOMEM; -errno. */
int ni_diff_page(const struct ni_diff *d, const char *path);

#endif
