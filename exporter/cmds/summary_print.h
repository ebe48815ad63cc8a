/* The last thing that a summary says on the terminal. Main thread. */
#ifndef NI_SUMMARY_PRINT_H
#define NI_SUMMARY_PRINT_H

#include "exporter/model/sums/state.h"

void ni_print_summary(const struct ni_summary *s, const struct ni_run *r, FILE *f);
/*
 * "nccl-inspector show --sn 4 logs/", a line to copy: the command of a finding, with the program as it was
 * called (exporter/cli/program.h), and the inputs for LOGS.
 */
void ni_print_next(const char *next, const struct ni_inputs *in, FILE *f);
void ni_print_nccl_tests(const struct ni_summary *s, FILE *f);

#endif
