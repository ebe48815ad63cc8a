/* The read phase. The main thread, which starts the others. 0 or -errno, with r->error_text. */
#ifndef NI_SUMMARY_READ_H
#define NI_SUMMARY_READ_H

#include "exporter/model/sums/state.h"

int ni_read_all(struct ni_run *r);
/* Adds one of a thread, or of another part of the input, to r->tally. Any thread; takes the lock. */
void ni_tally_sum_add(struct ni_run *r, const struct ni_tally_sum *t);

#endif
