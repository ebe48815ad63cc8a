/*
 * Files of PyTorch's profiler beside the logs (struct ni_tr_with): whose they are, and their clock, from the
 * NCCL kernels that both recorded. One thread. 0 or -errno, told by ni_tr_fail().
 */
#ifndef NI_TRACE_WITH_H
#define NI_TRACE_WITH_H

#include "trace.h"

int ni_tr_with_find(struct ni_tr *r); /* which files: before hours of work */
/* After the first pass: all of them are read once. */
int ni_tr_with_scan(struct ni_tr *r);
/* In the second pass, of each operation on a GPU: aligned. */
int ni_tr_with_note(struct ni_tr *r, uint32_t unit, int64_t start_ns, const struct ni_record *o);
/* After it. */
int ni_tr_with_fit(struct ni_tr *r);
/* A time of the file on the timeline's clock: where no kernels tell, by the clock of the rank's host. */
int64_t ni_tr_with_time(const struct ni_tr *r, const struct ni_tr_with *w, int64_t ts_ns);
/* What a place of the file is called; NULL: not said. */
const char *ni_tr_with_place(const struct ni_tr *r, const struct ni_tr_with *w, uint64_t key);

#endif
