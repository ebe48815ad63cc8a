/*
 * Records, lines about the run, and what the first pass kept of losses and of what never ended, as events.
 * One thread. 0 or -errno.
 */
#ifndef NI_TRACE_EMIT_OP_H
#define NI_TRACE_EMIT_OP_H

#include "emit.h"

int ni_tr_emit_op(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_mark(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_kept(struct ni_tr *r);
void ni_tr_sort_gaps(struct ni_tr_member *m); /* before the second pass */

#endif
