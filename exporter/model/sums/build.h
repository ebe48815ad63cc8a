/* The result: hosts, processes, communicators and cells in their order; after the join, what follows from all
 * cells. The main thread. 0 or -ENOMEM. */
#ifndef NI_SUMMARY_BUILD_H
#define NI_SUMMARY_BUILD_H

#include "state.h"

int ni_build_begin(struct ni_run *r, struct ni_summary *s);
int ni_build_end(struct ni_run *r, struct ni_summary *s);

#endif
