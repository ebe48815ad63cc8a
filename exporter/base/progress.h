/*
 * How far a long command is: one line on the terminal that is written over, or lines of JSON for programs.
 *
 * On a terminal the line comes once a command has taken two seconds, at most five times a second, with the
 * time that is left by the speed so far; it is wiped when the phase ends. No terminal, no line. As JSON each
 * step of `parts` is a line:
 *   {"phase":"read","ranges_done":3,"ranges":40,"bytes_done":6291456,"bytes":83886080,"seconds_left":12.5}
 *
 * Threads: ni_progress_add() any; begin and end the main one. Units: bytes, or whatever the phase counts.
 */
#ifndef NI_PROGRESS_H
#define NI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum ni_progress_mode { NI_PROGRESS_AUTO = 0, NI_PROGRESS_NONE, NI_PROGRESS_JSON };

struct ni_progress {
  enum ni_progress_mode mode; /* set before the first phase */
  pthread_mutex_t lock;       /* what is below */
  const char *phase;          /* "read"; NULL: none */
  bool bytes;                 /* done and all are bytes */
  uint64_t done, all, parts_done, parts, began_ns, told_ns;
  uint64_t first_ns; /* of the command */
  bool shown;        /* a line stands on the terminal */
};

#define NI_PROGRESS_INIT {.lock = PTHREAD_MUTEX_INITIALIZER}

/* p NULL: nobody asks; the same for all. parts: 0 where the phase has none. */
void ni_progress_begin(struct ni_progress *p, const char *phase, uint64_t all, bool bytes, uint64_t parts);
void ni_progress_add(struct ni_progress *p, uint64_t done, uint64_t parts);
void ni_progress_end(struct ni_progress *p);

#endif
