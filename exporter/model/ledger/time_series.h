/* Time series of counters in the account: samples, and those that are not there. As ledger.h; files before their parts. */
#ifndef NI_LEDGER_SERIES_H
#define NI_LEDGER_SERIES_H

#include "ledger.h"

/* A line of a time series. 0 or -ENOMEM. */
int ni_ledger_take_series(struct ni_ledger *c, const struct ni_line *l);
/* Parts of one file become one. 0 or -ENOMEM. */
int ni_ledger_merge_series(struct ni_ledger *all, struct ni_ledger *part);
/* Samples that were not taken, or that a file has lost, become notes. */
void ni_ledger_judge_series(struct ni_ledger *c);

#endif
