/*
 * One session of the store: its state on disk, the files that it grows in, and the threads that make its file
 * where that takes long.
 *
 *   new ───────────────────▶ frames.jsonl, hidden NAME.json ─▶ the writer appends to both
 *       ─▶ stop: tail, name ─▶ finisher: on the disk
 *   goes on ─▶ its last frame is read, the writer appends to frames.jsonl
 *       ─▶ builder: NAME.json of what was before ─▶ the writer joins
 *
 * A session that goes on (after a kill, or resumed) is `resuming` while the builder reads its frames; nobody
 * waits for it. The finisher syncs a file that is whole; it makes it anew where samples were late, where
 * frames have several orders of columns, or where the builder was not done. The session is `finishing`
 * meanwhile. On the disk it is that until its file is synced: a head that is killed then makes it again. A
 * finisher that is not wanted any more (the session is to go on, the store closes) ends soon.
 *
 * Threads: the owner's; a builder, which has `past` and what `to` says is the maker's; a finisher, which has
 * `told`, and joins a builder that was left. Ownership: the store's.
 */
#ifndef NI_ENTRY_H
#define NI_ENTRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "exporter/base/out_file.h"
#include "folder.h"
#include "writer.h"

struct ni_place {
  int dir, out; /* folders: the store's, and that of output */
};

struct ni_entry {
  struct ni_place *place;
  struct ni_state state;
  struct ni_written to;
  struct ni_out_file part; /* NAME.json while it runs */
  struct ni_sums sums;     /* of frames since it runs; with those before when it is whole */
  int64_t tick_ns;         /* of its newest frame */
  uint64_t lost_told;      /* frames_lost as state.json has it */
  uint64_t gone_told;      /* of to.gone, what is in frames_lost */
  /* ended: when the last sample came that its file does not have, CLOCK_MONOTONIC; 0: none */
  uint64_t late_ns;
  /* mixed: its frames have several orders of columns; the others: the thread is there */
  bool mixed, builder, finisher;
  pthread_t builds, finishes;
  struct ni_past past; /* what the builder reads */
  int build_fd;        /* and where it writes to: its own, which it closes */
  /*
   * the file that the session's new one replaced, -1: none. To forget one of GB takes seconds: the finisher
   * does
   */
  int replaced;
  bool unsaved, stalled; /* goes on, and its state could not be saved; ran, and does not go on */
  /* the finisher makes the file anew; or it was not synced: a head that is killed makes it anew */
  bool anew, unsynced;
  /*
   * the builder ends soon; the finisher does, its file is not wanted now. Written by the owner, read by them
   */
  _Atomic bool leave, undo;
  _Atomic int built, finished; /* 1: done, or -errno. Written by the thread, read by the owner */
  /* what the finisher was given; what it called the file, and how many samples were late */
  struct ni_state told;
};

/* state.json, durable. 0 or -errno. */
int ni_entry_save(struct ni_entry *e);
/*
 * With what is there already: torn lines are cut, and new frames go behind the last one, which *p tells of;
 * it is for ni_past_free() in any case. A disk that is full takes none of its file: that is made when the
 * session ends. 0 or -errno.
 */
int ni_entry_open(struct ni_entry *e, struct ni_past *p);
void ni_entry_close(struct ni_entry *e);
/*
 * What a head that was killed has left of it, hidden files: in its folder, and of its file. For one that is
 * not open.
 */
void ni_entry_sweep(struct ni_entry *e);
/*
 * text: what new frames are made by; alone: nothing else runs, and columns are those of *p. Begins the
 * builder where there were frames.
 */
void ni_entry_adopt(struct ni_entry *e, struct ni_past *p, struct ni_frame_text *text, bool alone);
/* The builder is done, and e->built says so: what was before counts now. */
void ni_entry_built(struct ni_entry *e);
/*
 * Ends a session whose frames are written: the rest of its file, and its name; state.json says so. 0 or
 * -errno: it goes on.
 */
int ni_entry_end(struct ni_entry *e, int64_t now_ns, const struct ni_columns of[NI_GROUPS]);
/*
 * In a thread: the file on the disk; anew: made again, with late samples in their frames. e->finished, then
 * ..._finished().
 */
void ni_entry_finish(struct ni_entry *e, bool anew);
void ni_entry_finished(struct ni_entry *e);

#endif
