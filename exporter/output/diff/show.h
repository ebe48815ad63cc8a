/*
 * Two runs on the terminal, as JSON (schema nccl-inspector-diff-1), as a page. One thread. Same struct, same
 * bytes.
 */
#ifndef NI_DIFF_SHOW_H
#define NI_DIFF_SHOW_H

#include <stdio.h>

#include "exporter/model/diff/diff.h"

/*
 * all: also what did not change. gate: below 0: not asked for; over: the row that is beyond it, NULL: none.
 */
void ni_diff_print(const struct ni_diff *d, bool all, double gate, const struct ni_diff_row *over, FILE *f);
/* What the step's program has differently: a line each; nothing where it is the same, or not known. */
void ni_diff_print_program(const struct ni_diff *d, FILE *f);
void ni_diff_json(const struct ni_diff *d, double gate, const struct ni_diff_row *over, FILE *f);
/*
 * As ni_counters_page() (exporter/output/counters/page.h): 0; -ENOTSUP: built without npm; -ENOMEM; -errno.
 */
int ni_diff_page(const struct ni_diff *d, const char *path);

#endif
