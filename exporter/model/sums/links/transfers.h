/*
 * Transfers of links from bin to bin: what is asked of them both where the whole network is judged (fabric.c)
 * and where single links are (judged.c).
 *
 * Numbers by bin are NAN where nothing is known. What comes each so many steps, as the exchange of islands
 * (work/islands.h), has no neighbours but those that are as far from each other.
 *
 * Pure; any thread.
 */
#ifndef NI_LINKS_TRANSFERS_H
#define NI_LINKS_TRANSFERS_H

#include "exporter/model/sums/blame/causes.h"

/* Length of a usual step, us, by the ranks that were seen longest. */
double ni_transfers_step_us(const struct ni_blame *b);
/* Its transfers are so much of a step, of step_us, that it is worth to be judged. */
bool ni_transfers_are_long(const struct ni_blame_link *l, double step_us);
/*
 * All of its ranks have logs. Where one is missing it may be the last to come, and what looks like a transfer
 * is waiting for it.
 */
bool ni_transfers_have_all_ranks(const struct ni_blame *b, const struct ni_blame_link *l);
/* Deviation of a link from bin to bin, as a share. scratch: room for all bins. */
float ni_transfers_noise(const float *x, uint32_t bins, float *scratch);
/*
 * A bin that is slower than this is a drop. Where transfers differ much from bin to bin (experts), it is
 * higher.
 */
float ni_transfers_drop_threshold(float noise);
/* The nearest number before bin k, or (step 1) behind it; NAN: there is none. */
float ni_transfers_neighbour(const float *x, uint32_t bins, uint32_t k, int step);
/* How many of the bins from..to are known. */
uint32_t ni_transfers_known(const float *x, uint32_t from, uint32_t to);

#endif
