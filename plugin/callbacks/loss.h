/*
 * What callbacks cannot record or cannot place: counted, so that the accounts close. Beneath all
 * callbacks*.c.
 *
 * Any thread; lock-free; out of line, because all of it is rare: the compiler is told so here, where callers
 * see it.
 */
#ifndef NI_LOSS_H
#define NI_LOSS_H

#include "plugin/slots/comm.h"

#define NI_RARE __attribute__((noinline, cold))

/* One that belongs to no communicator. */
NI_RARE void ni_stray(enum ni_stray why);

/*
 * The operation that took rec_sn leaves no record. Its range goes into the marks from which the dump role
 * makes gap lines.
 */
NI_RARE void ni_lose(struct ni_comm_kind *k, enum ni_drop why, uint64_t rec_sn);

#endif
