/*
 * The black box's header: says whose the box is, where everything lies, and what moves (include/ni_box.h).
 *
 *   make (init) ─▶ facts, field table ─▶ EMPTY ◀──▶ LIVE ─▶ file removed at a clean end
 *
 * Threads: make, live and drop by init with the registry lock held; the rest by whoever holds the dump role.
 * Stores are single words; what belongs together is written to the copy that is not in use and then named
 * (release). A reader in another process, or after a kill, therefore sees whole things. Without a box (h is
 * NULL) every call does nothing, so that callers need no case of their own.
 */
#ifndef NI_BOX_KEEPER_H
#define NI_BOX_KEEPER_H

#include "box_file.h"
#include "plugin/os/clock.h"
#include "ni_box.h"

struct ni_arena;
struct ni_comm;
struct ni_config;
struct ni_gpu_relation;
struct ni_job;

struct ni_keeper {
  struct ni_box_header *h; /* in the mapping; NULL: no box */
  struct ni_box_file file;
  uint8_t wanted;             /* by the settings */
  char why[NI_BOX_WHY_BYTES]; /* wanted, but there is none: why. "" otherwise */
};

/*
 * Opens the arena, in a box if the settings ask for one and it can be had, else in ordinary memory; b says
 * which, and why. 0, or what ni_arena_open says of ordinary memory.
 */
int ni_keep_open_arena(struct ni_keeper *b, struct ni_arena *a, const struct ni_config *c);

/* Whose the box is. Texts are copied. */
struct ni_keep_owner {
  int64_t pid;
  const char *hostname, *boot_id, *exe;
  const struct ni_job *job;
  int interface; /* N of ncclProfiler_vN */
};

/* Fills the header and gives the box its name; it is EMPTY until ni_keep_state says otherwise. */
void ni_keep_begin(struct ni_keeper *b, const struct ni_arena *a, const struct ni_keep_owner *o);

/* Set-up failed: the file goes, before anything was recorded. */
void ni_keep_drop(struct ni_keeper *b);

/* A log file was named: where, and its process line (LF at the end is left out). */
void ni_keep_session(struct ni_keeper *b, const struct ni_arena *a, uint64_t start_ns, const char *dir,
                     const char *file, const char *line, size_t line_bytes);

/* So many records of the session's have expired with their files. */
void ni_keep_expired(struct ni_keeper *b, uint64_t records);

void ni_keep_clock(struct ni_keeper *b, const struct ni_clock *c);

/* Every tick. promised_ms: how soon the next comes at the latest; 0: nothing is promised. */
void ni_keep_heartbeat(struct ni_keeper *b, uint64_t now_ns, uint32_t promised_ms);

/* What the dump role learned of a communicator's GPU clock. poisoned: see ni_comm.poisoned. */
void ni_keep_fit(struct ni_comm *c, const struct ni_gpu_relation *r, uint8_t poisoned);

/* live: something may be recorded that the log does not have, and the process has not ended. Else
 * everything is in the log: the end so far is "finalized". Sequentially consistent, see ni_dump_join and
 * ni_session_close. */
void ni_keep_state(struct ni_keeper *b, int live);

/* The process leaves by exit() or return. unwritten: operations that had finished and are not in the log,
 * NI_BOX_NOT_COUNTED until that is known; error: errno of the write that failed last, 0: none. By the exit
 * handler's thread. */
void ni_keep_exited(struct ni_keeper *b, uint64_t unwritten, int error);

/* The longest operation so far and the longest time without the start of one, ns; values never fall. Dump
 * role. */
void ni_keep_longest(struct ni_keeper *b, uint64_t operation_ns, uint64_t gap_ns);

/* The process leaves and all is in the log: the file goes. */
void ni_keep_end(struct ni_keeper *b);

#endif
