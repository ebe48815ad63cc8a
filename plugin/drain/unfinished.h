/*
 * Lines about operations that have not finished. Dump role.
 */
#ifndef NI_UNFINISHED_H
#define NI_UNFINISHED_H

#include "drain.h"

/* What all lines about an operation that has not finished say of it. */
void ni_unfinished_fill(struct ni_drain *d, struct ni_op *op, uint64_t state, uint32_t prog,
                        struct ni_unfinished_line *in);
/* Writes the operation's stuck line if it is time; 1 if so. */
int ni_unfinished_stuck(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, uint32_t slot);
/* The process leaves: names what is in flight. */
void ni_unfinished_at_exit(struct ni_drain *d, struct ni_comm_writer *s);

#endif
