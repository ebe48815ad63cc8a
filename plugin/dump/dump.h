/*
 * The dump role: who turns finished operations into bytes on disk, and when.
 *
 *   thread.c: whose turn it is ─▶ tick.c: one pass ─▶ drain/: lines ─▶ write/: block, file
 *                                   ├─ session.c: a log file from the first communicator to the last
 *                                   └─ detail.c: how much is recorded now
 *
 * Threads: everything in dump/, drain/ and write/ is called by whoever holds the role (`role`): the dump
 * thread, or, without one, the thread that finalizes or exits. Only the words said here to be are met by
 * others.
 */
#ifndef NI_DUMP_H
#define NI_DUMP_H

#include <pthread.h>

#include "detail.h"
#include "plugin/drain/drain.h"

#define NI_TICK_MS 10  /* while anything moves */
#define NI_IDLE_MS 100 /* while nothing does: 10 wake-ups a second are 0.01 % of a core */
#define NI_CWD_BYTES 4096u

struct ni_dump {
  /* met by init, finalize, exit; and in `drain`: joining, closings, exiting */
  pthread_mutex_t role; /* held by whoever drains and writes, also during write() */
  /* requests to write everything now; futex words. answer catches up with ask */
  _Atomic uint32_t ask, answer;
  _Atomic uint32_t has_thread;
  _Atomic uint32_t waiting; /* threads inside a request */
  /* a session: a log file is named, records go to it. Release; acquire in ni_dump_idle */
  _Atomic uint8_t open;
  /* dump role */
  struct ni_writer w;
  struct ni_drain drain; /* works on w */
  struct ni_detail detail;
  /* at the first init, "" unknown: relative folders mean that one, whoever changes it later */
  char cwd[NI_CWD_BYTES];
  char dir[NI_CWD_BYTES + NI_DIR_MAX_BYTES + 1]; /* of the log, tokens put in, absolute where that is known */
  uint64_t last_sample_ms, last_clock_line_ms;
  uint64_t starts_seen;    /* starts of operations so far */
  uint64_t start_seen_ns;  /* when they last rose, CLOCK_MONOTONIC */
  uint64_t longest_gap_ns; /* the longest time that they did not */
  uint32_t seen_mark;      /* pages taken from the arena, at the last tick */
  uint8_t awaited;         /* somebody waits for what this tick does */
  uint8_t moved;           /* of this tick: something happened */
  /* of this session: "written early" was said; the process's last lines were */
  uint8_t early_told, ended;
  uint8_t sealed; /* the process leaves, and every communicator has said its last */
};

#endif
