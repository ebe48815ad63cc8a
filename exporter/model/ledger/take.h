/* Lines into the account of a part. The thread that reads the part. */
#ifndef NI_LEDGER_TAKE_H
#define NI_LEDGER_TAKE_H

#include "ledger.h"

/* A part begins. first: at the beginning of the file. */
void ni_ledger_begin(struct ni_ledger *c, const struct ni_file *file, bool first);
/* For struct ni_scan_to; arg is the ledger. */
int ni_ledger_take(void *arg, struct ni_line *l, uint64_t line_no);
int ni_ledger_fault(void *arg, const struct ni_fault *f);
/* The part is read. */
void ni_ledger_end(struct ni_ledger *c, const struct ni_scan_end *end);

#endif
