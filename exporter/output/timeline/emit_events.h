/* Calls, launches, network operations and proxy records as events. One thread. 0 or -errno. */
#ifndef NI_TRACE_EMIT_EVENTS_H
#define NI_TRACE_EMIT_EVENTS_H

#include "emit.h"

int ni_tr_emit_event(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_proxy(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);

#endif
