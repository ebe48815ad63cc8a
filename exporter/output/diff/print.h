/* Two runs beside each other, on the terminal. One thread. */
#ifndef NI_DIFF_PRINT_H
#define NI_DIFF_PRINT_H

#include <stdio.h>

#include "exporter/model/diff/diff.h"

/* all: also what did not change. gate: below 0: not asked for; over: the row that is beyond it, NULL: none. */
void ni_diff_print(const struct ni_diff *d, bool all, double gate, const struct ni_diff_row *over, FILE *f);

#endif
