/*
 * One session of the store: its state on disk, the files that it grows in, and the thread that puts late samples into its file.
 *
 *   ni_entry_open() ─▶ frames.jsonl, hidden NAME.json ─▶ the writer appends ─▶ stop ─▶ ni_entry_name() ─▶ ni_entry_finish() where samples were late
 *
 * Threads: the owner's; and the finisher's, which has `told` and `finished` alone. Ownership: the store's.
 */
#ifndef NI_ENTRY_H
#define NI_ENTRY_H

#include <pthread.h>
#include <stdatomic.h>

#include "exporter/base/out_file.h"
#include "folder.h"
#include "writer.h"

struct ni_place {
  int dir, out;                     /* folders: the store's, and that of output */
  _Atomic bool quit;                /* the store closes: finishers end soon. Written by the owner, read by them */
};

struct ni_entry {
  struct ni_place *place;
  struct ni_state state;
  struct ni_written to;
  struct ni_out_file part;          /* NAME.json while it runs */
  struct ni_sums sums;
  int64_t tick_ns;                  /* of its newest frame */
  uint64_t lost_told;               /* frames_lost as state.json has it */
  bool mixed, finisher;             /* mixed: its frames have several orders of columns; finisher: the thread is there */
  pthread_t thread;
  _Atomic int finished;             /* 1: done, or -errno. Written by the thread, read by the owner */
  struct ni_state told;             /* what the thread was given; and what it called the file */
};

/* state.json, durable. 0 or -errno. */
int ni_entry_save(struct ni_entry *e);
/*
 * With what is there already: torn lines are cut, and NAME.json is begun anew from the frames, which *p tells of; it is for ni_past_free()
 * in any case. 0 or -errno.
 */
int ni_entry_open(struct ni_entry *e, struct ni_past *p);
void ni_entry_close(struct ni_entry *e);
/* Sums of *p become the session's. text: what new frames are made by; alone: nothing else runs, and columns are those of *p. */
void ni_entry_adopt(struct ni_entry *e, struct ni_past *p, struct ni_frame_text *text, bool alone);
/* Gives the file its name, which may have become another one's meanwhile. 0 or -errno: the file is gone. */
int ni_entry_name(const struct ni_place *s, struct ni_state *state, struct ni_out_file *o);
/* The file with late samples in their frames, in a thread; e->finished says when it is done, and then ..._finished() is to be called. */
void ni_entry_finish(struct ni_entry *e);
void ni_entry_finished(struct ni_entry *e);

#endif
