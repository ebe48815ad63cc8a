/*
 * What a symmetric kernel's record has beyond its span: the parts of it, and how long a replay took at most.
 *
 * Of a captured one NCCL times nothing, so a replay is drawn as the bracket of its enqueue. The next replay
 * of the same call says when that one can have been over at the latest: a replay waits here until it comes.
 *
 * The thread that draws. Failure: -ENOMEM, and what ni_tr_put() says.
 */
#ifndef NI_TRACE_EMIT_PARTS_H
#define NI_TRACE_EMIT_PARTS_H

#include "event.h"

/* Slices inside the operation's, which is put before or after them. None where they do not add up to it. */
int ni_tr_put_phases(struct ni_tr *r, const struct ni_tr_event *op, const struct ni_record *o);
/* Puts the replay of that call before this one, and keeps this one. */
int ni_tr_put_replay(struct ni_tr *r, uint32_t member, const struct ni_record *o,
                     const struct ni_tr_event *e);
/* Puts those that are kept: nothing is known of their time. */
int ni_tr_replays_end(struct ni_tr *r);
void ni_tr_replays_free(struct ni_tr *r); /* also where there are none */

#endif
