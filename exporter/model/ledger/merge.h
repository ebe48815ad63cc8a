/* The account of a part to that of all. One at a time; see ledger.h. */
#ifndef NI_LEDGER_MERGE_H
#define NI_LEDGER_MERGE_H

#include "ledger.h"

/* Adds part, which is empty then. part comes right behind what was merged before. 0 or -ENOMEM. */
int ni_ledger_merge(struct ni_ledger *all, struct ni_ledger *part);

#endif
