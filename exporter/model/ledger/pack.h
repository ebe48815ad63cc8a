/* The account of one file as bytes, and back (bytes/wire.h): for the index and for partial results. */
#ifndef NI_LEDGER_PACK_H
#define NI_LEDGER_PACK_H

#include "exporter/base/bytes/wire.h"
#include "ledger.h"

/*
 * Stores the account of one whole file that nobody has judged, or loads it into an empty one after
 * ni_ledger_begin(). Paths are left out: a file that was moved has the same bytes. What was loaded is sound
 * enough to be merged and judged, whoever wrote it; w->bad otherwise, and c is to be freed all the same. Any
 * thread, one for each account.
 */
void ni_ledger_wire(struct ni_wire *w, struct ni_ledger *c);

#endif
