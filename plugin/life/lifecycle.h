/*
 * The plugin's life in somebody else's process: init, finalize, exit, fork.
 *
 *   first init of a process   reads settings, opens the arena, starts the dump thread, registers the exit
 *                             handlers
 *   init                      a communicator joins; always success, so that NCCL's failure paths are never
 *                             met (4.5)
 *   finalize                  a communicator leaves; the last one waits, with a deadline, until everything is
 *                             on disk
 *   init after the last       a new log file, begun at once; the dump thread and the arena are kept, the
 *                             object is never unloaded
 *   exit, quick_exit          asks the dump thread for a last drain, waits at most 2 s in all, frees nothing
 *   fork                      the child's state reads zero (state.h): all of this is off until its own first
 *                             init
 *
 * init and finalize may be called by several threads at once (one per communicator, callbacks 4.6).
 */
#ifndef NI_LIFECYCLE_H
#define NI_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "nccl/profiler_abi.h"

struct ni_init_args {
  uint64_t comm_hash;
  const char *comm_name;      /* the user's, copied here; may be NULL */
  int n_nodes, n_ranks, rank; /* 0, 0, -1 where not known */
  bool ident_follows;         /* v1 to v3: hash, name and rank come with the first operation */
  ni_logger_fn logger;        /* may be NULL */
};

/* init of every interface version. Always returns success; with the plugin off, or for a communicator that
 * could not be taken in, *context is a tag that no event is recorded for. May block (first call: creates
 * files and a thread). */
enum ni_result ni_init(int interface, void **context, int *mask, const struct ni_init_args *args);

/*
 * finalize of every interface version. Accepts NULL and any stale context. Bounded, also when write() hangs.
 */
enum ni_result ni_finalize(void *context);

#endif
