/* The account of a file that has been read, as bytes and back (bytes/wire.h): for partial results. */
#ifndef NI_LEDGER_PACK_H
#define NI_LEDGER_PACK_H

#include "exporter/base/bytes/wire.h"
#include "ledger.h"

/*
 * Stores or loads c, which nobody has judged. For loading c is empty but for its file; afterwards it can be merged like the
 * original. Where the wire is bad then, c is to be freed all the same. Any thread.
 */
void ni_ledger_wire(struct ni_wire *w, struct ni_ledger *c);

#endif
