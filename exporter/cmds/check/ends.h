/*
 * What the black boxes of this machine say of processes that have no last line in their log: whether they
 * live, died or ended. Beside the account, which knows logs alone.
 *
 * Main thread. Failure: what cannot be read is not told.
 */
#ifndef NI_CHECK_ENDS_H
#define NI_CHECK_ENDS_H

#include "exporter/model/ledger/ledger.h"

/* Adds it to the account's problem, once it is judged. box_dir: where the boxes lie. */
void ni_check_tell_ends(struct ni_ledger *c, const char *box_dir);

#endif
