/*
 * The dump role: one thread of the process that drains, formats, compresses and writes; or, with
 * NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 or when no thread can be made, whoever finalizes or exits.
 *
 *   parked (no communicator) ──join──▶ ticking every 10 ms while anything moves ⇄ idle, every 100 ms
 *                                         │                                         (interval 0: until woken)
 *                                         └─ last finalize: everything written, file closed ─▶ parked
 *                                         └─ exit: final lines written ─▶ ended
 *
 * The thread blocks all signals (so RLIMIT_FSIZE gives EFBIG and a host's handlers never run here), is
 * SCHED_OTHER, named "nccl-insp-dump", and detached: nobody joins it without limit.
 */
#ifndef NI_DUMP_THREAD_H
#define NI_DUMP_THREAD_H

#include "dump.h"

/* Everything the dump role ever allocates beside communicators. NULL: no memory. init, registry lock held. */
struct ni_dump *ni_dump_new(const struct ni_config *c);

/* 0, or a negative errno: the role is then taken by finalizing and exiting threads. */
int ni_dump_start(struct ni_dump *d);

/* A writer for a new communicator, or NULL (no memory). Not yet joined. init. */
struct ni_comm_writer *ni_comm_writer_new(struct ni_dump *d, struct ni_comm *c, const struct ni_ident *ident);
/* Hands it over. */
void ni_dump_join(struct ni_dump *d, struct ni_comm_writer *s);

/* A communicator was set CLOSING. last: no other is alive; waits until everything is written and the file
 * closed. Also writes when the interval is -1. Bounded: gives up 2 s after the dump role made its last
 * progress, and after 30 s in any case; what is pending then stays with the dump thread. */
void ni_dump_finalize(struct ni_dump *d, int last);

/* Asks for communicators that are over to be written and their memory to be given back; 1: that is done.
 * Waits while the dump role makes progress: 200 ms without, 2 s in any case. Not with the registry lock held:
 * giving back takes it. Without a dump thread the caller does the work: so init begins the log. */
int ni_dump_make_room(struct ni_dump *d);

/* 1 when nothing waits to be formatted: no text of the interned strings is needed. Any thread. */
int ni_dump_idle(const struct ni_dump *d);

/* The process leaves: final lines for every communicator, at most 2 s in all. */
void ni_dump_exit(struct ni_dump *d);

#endif
