/*
 * A session's folder as it was left: its state, and its frames with what came late. Hostile, as every file.
 *
 *   frames.jsonl ─▶ line by line; what is torn or no frame is passed over, and counted ─┐
 *   late.jsonl ───▶ where each sample lies, by tick; read when its frame comes ─────────┴─▶ NAME.json: all
 *   frames have one order of columns there
 *
 * Columns grow in the order in which they are seen; merged frames have all that were seen so far, also where
 * another run of the head had them in another order. A frame that is as it should be is copied. Bounds: lines
 * of 65 MiB, 4 Mi late samples; memory: two lines. Threads: any, a struct each.
 */
#ifndef NI_FOLDER_H
#define NI_FOLDER_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>

#include "exporter/session/frame_text.h"
#include "exporter/session/store.h"

struct ni_state { /* state.json */
  struct ni_session session;
  bool gsprof, named; /* named: NAME.json is there, by us */
  int64_t period_ns;
};
/*
 * A session's folder in the store's, and a file in it; how: O_RDONLY, or O_RDWR with O_CREAT: a new one is
 * 0600. Neither is ever a link, nothing is waited for (a pipe), the file is a regular one. Both are ours or
 * of who has the store's folder, and not everybody's to write. A descriptor, or -errno; -EPERM: another's,
 * -EINVAL: no regular file.
 */
int ni_session_folder(int dir, const char *id);
int ni_session_file(int dir, const char *id, const char *name, int how);
/* The same of a file that lies in the store's folder itself. */
int ni_store_file(int dir, const char *name);
/* dir: the store's. 0 or -errno: there is none, or it is damaged. */
int ni_state_read(int dir, const char *id, struct ni_state *s);
/* May a session have this name? */
bool ni_session_name(const char *name);

struct ni_past {    /* all 0 before, but for quit */
  const void *quit; /* an _Atomic bool; it becomes true: -EINTR soon; NULL: never */
  struct ni_columns of[NI_GROUPS];
  struct ni_sums sums;
  uint64_t *seq; /* the newest of each client, by column */
  size_t cap_seq;
  uint64_t frames, last, bad, late; /* last: number of the newest frame; bad: lines that are none */
  int64_t tick_ns;                  /* of the newest frame, 0: there is none */
  off_t good;                       /* bytes of frames.jsonl up to its last frame */
  off_t until, late_until;          /* given: what lies behind is not read; 0: all */
  bool mixed;                       /* frames have different orders */
};
/*
 * Frames as an array of JSON without its brackets, if to is given; merge: with what came late. 0 or -errno;
 * in any case for ni_past_free().
 */
int ni_past_read(struct ni_past *p, int dir, const char *id, bool merge, FILE *to);
/* The newest frame alone, from the file's end: its number, tick, columns and clients' numbers; `good`; and
 * how many were late, if that is wanted. 0 or -errno; for ni_past_free(). */
int ni_past_last(struct ni_past *p, int dir, const char *id, bool late);
/*
 * Frames of frames.jsonl from one byte to another, which lie between lines, behind *at of a NAME.json that
 * has some already, as ni_past_read() writes them. *at is their end. 0 or -errno.
 */
int ni_past_copy(int dir, const char *id, off_t from, off_t until, int part, off_t *at);
void ni_past_free(struct ni_past *p);

#endif
