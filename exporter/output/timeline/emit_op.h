/* Records as events. One thread. 0 or -errno. */
#ifndef NI_TRACE_EMIT_OP_H
#define NI_TRACE_EMIT_OP_H

#include "emit.h"

int ni_tr_emit_op(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);

#endif
