/* The account of one file as bytes, for the index. Any thread, one for each account. */
#ifndef NI_LEDGER_SAVED_H
#define NI_LEDGER_SAVED_H

#include "exporter/base/pack/pack.h"
#include "ledger.h"

/*
 * Puts the account of one file that is not judged yet, or takes it into an empty one after ni_ledger_begin(). Paths are left out: a
 * file that was moved has the same bytes. What was read is sound enough to be merged and judged, whoever wrote it; p->bad otherwise.
 */
void ni_ledger_pack(struct ni_pack *p, struct ni_ledger *c);

#endif
