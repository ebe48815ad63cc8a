/*
 * Send and Recv matched. The main thread, before ni_figures_sum(), which gives the segments back. 0 or
 * -errno.
 */
#ifndef NI_SUMMARY_P2P_PAIRS_H
#define NI_SUMMARY_P2P_PAIRS_H

#include "exporter/model/sums/state.h"

int ni_pairs_match(struct ni_run *r, struct ni_summary *s);

#endif
