/*
 * A finished operation as a record: which of its stamps are believed (format/timing.h, format/apart.h), and
 * what follows.
 *
 * Dump role; the operation is finished, so nobody else writes its slot. The GPU clock's fit, the account's
 * fallbacks and the marks of channels that are apart change with each record: who does not write it takes
 * them back (drain.c).
 */
#ifndef NI_OP_RECORD_H
#define NI_OP_RECORD_H

#include "drain.h"

void ni_op_record(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, struct ni_record *r);

#endif
