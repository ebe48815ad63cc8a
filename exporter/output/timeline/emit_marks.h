/* Lines about the run as events, and what the first pass kept of losses and of what never ended. One thread. 0 or -errno. */
#ifndef NI_TRACE_EMIT_MARKS_H
#define NI_TRACE_EMIT_MARKS_H

#include "emit.h"

int ni_tr_emit_mark(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_kept(struct ni_tr *r);
void ni_tr_sort_gaps(struct ni_tr_member *m); /* before the second pass */
/* A record tells the gaps of its member where they lie. */
void ni_tr_note_gap_border(struct ni_tr_member *m, unsigned kind, uint64_t rec_sn, int64_t ts);

#endif
