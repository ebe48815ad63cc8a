/*
 * Does the process of a black box live, has it ended by itself, or did it die? The one place that answers:
 * hang, recover, check, boxes, snapshot, top, agent and head ask here.
 *
 *   kernel: is it there? ──no──▶ its own last word in the box (enum ni_box_end): by itself, or not at all
 *      └─yes─▶ lives             └─ cannot say ─▶ a young heartbeat, else unknown
 *
 * The kernel is asked by pid, start time, boot and uid; of a process in another pid namespace whether anybody
 * has the box mapped (a read lease, as the plugin's cleaning does). What it says stands above the age of any
 * file. No signal is sent.
 *
 * Any thread. Nothing fails: what cannot be asked is unknown.
 */
#ifndef NI_LIFE_H
#define NI_LIFE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ni_box.h"

/* Also in the page behind a copy, where programs of before know the first three. */
enum ni_life {
  NI_LIFE_UNKNOWN = 0,
  NI_LIFE_ALIVE,
  /* gone, and it had not ended by itself: killed or crashed. Of an old box: gone, no more is said */
  NI_LIFE_DEAD,
  NI_LIFE_ENDED, /* gone, by exit or return, or with every communicator closed in order */
  NI_LIFE_COUNT
};

/* Who says so. */
enum ni_life_why {
  NI_LIFE_NOBODY = 0,   /* another machine's box, or the kernel does not say */
  NI_LIFE_BY_PID,       /* the process table of its pid namespace */
  NI_LIFE_BY_LEASE,     /* whether anybody has the box mapped */
  NI_LIFE_BY_BOOT,      /* this machine was booted since */
  NI_LIFE_BY_HEARTBEAT, /* a heartbeat of less than ten seconds ago, where nobody else says anything */
  NI_LIFE_BY_COPY,      /* `snapshot`, when it took the copy */
  NI_LIFE_WHYS
};

struct ni_life_fact {
  enum ni_life life;
  enum ni_life_why why;
  enum ni_box_end end; /* what the box says; of a process that is gone its last word */
  uint64_t at_ns;      /* Unix ns: when that was so. It may be otherwise since, unless it is gone */
};

/* Of the box that fd reads, opened for reading alone. owner: uid of the file. h: its header, checked. */
struct ni_life_fact ni_life_ask(const struct ni_box_header *h, int fd, uint32_t owner);
/* The same of a file that may be a box; unknown where it is none. Reads the header. */
struct ni_life_fact ni_life_of_file(int fd, uint32_t owner);
/* Of a copy: what was found when it was taken. */
struct ni_life_fact ni_life_of_copy(const struct ni_box_header *h, uint32_t life, uint64_t taken_ns);
/* Of the box at a path that a log names. owner: uid of the log, whose box it has to be; pid: of its
 * process. Reads the header. */
struct ni_life_fact ni_life_of_path(const char *path, uint32_t owner, int64_t pid);

/* Is the process certainly gone? */
static inline bool ni_life_gone(enum ni_life life) { return life == NI_LIFE_DEAD || life == NI_LIFE_ENDED; }
/* "alive", "dead", "ended", "unknown": as in JSON. */
const char *ni_life_name(enum ni_life life);
/* "not_yet", "finalized", "exited", "unknown": as in JSON. */
const char *ni_life_end_name(enum ni_box_end end);
/* The reason in words, without a full stop: "no process has its pid and start time, and it had not ended
 * by itself". f may be hostile. Returns out. */
const char *ni_life_reason(const struct ni_life_fact *f, char *out, size_t size);

#endif
