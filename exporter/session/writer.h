/*
 * The thread that writes what sessions get, and the bounded queue before it.
 *
 *   ni_writer_put() ─▶ queue ─▶ batch: appended to frames.jsonl, NAME.json (its hidden part), late.jsonl
 *       ─▶ fdatasync of each ─▶ safe
 *
 * Files are written at places that the writer knows, so what failed is written over when it is tried again, a
 * second later; until then it stays queued. Each session's frames fail alone, and so do its late samples:
 * others are written meanwhile. A tick is safe when all that was put up to it is on the disk. What does not
 * fit into the queue is refused, and its owner counts it. Where others are written, what one session's files
 * have refused for NI_WRITER_WAITS_S, or with half of the queue full, is let go and counted, and so is what
 * comes after it, until its files take something.
 *
 * NAME.json may be behind (of a session that goes on, entry.h): it is not written to until its maker says in
 * `joins` that it has all frames before that byte of frames.jsonl. The writer puts in the few that are
 * missing, and goes on.
 *
 * Threads: the owner's, and the writer's. A ni_written is the writer's while anything of it is queued;
 * ni_writer_flushed() says when not.
 */
#ifndef NI_WRITER_H
#define NI_WRITER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "exporter/session/frame_text.h"

enum { NI_WRITER_WAITS_S = 60 };
enum ni_file { NI_FRAMES, NI_PART, NI_LATE, NI_FILES };
struct ni_written {
  /* the store's folder, in which the session's is; the owner's to close, as the files are */
  int store;
  char id[40], name[132];
  /* -1: not open, NI_PART: it is behind; NI_LATE is opened and closed by the writer */
  int fd[NI_FILES];
  off_t at[NI_FILES], now[NI_FILES]; /* up to which all is on the disk; and in this batch */
  bool dirty[NI_FILES];              /* written to in this batch */
  off_t head;                        /* bytes of NAME.json before its first frame */
  int error[2];                      /* -errno of frames, of late samples: they wait for the next try */
  bool lets_go[2];                   /* what fails is not kept */
  uint64_t again_ns;                 /* when that is */
  size_t waits;                      /* below the writer's lock: how much of it is queued */
  int part;                          /* NAME.json that is behind, and its size, which `joins` publishes */
  off_t part_at;
  _Atomic int64_t joins; /* its maker to the writer; 0: not yet */
  _Atomic int64_t whole; /* the writer to the maker: frames.jsonl stays as it is up to here */
  /* frames and samples that were let go; the writer adds, the owner reads */
  _Atomic uint64_t gone;
  /* -errno of the last try; 0: it was written. The writer's, read by the owner */
  _Atomic int refused;
};

struct ni_writer;
/* 0 or -errno. */
int ni_writer_new(struct ni_writer **out);
/* Writes what is queued, if the disk takes it, and ends the thread. */
void ni_writer_free(struct ni_writer *w);
/*
 * A frame, or late: a sample after its frame, for n sessions; id: of the frame, one each. The text is the
 * writer's in any case. n 0: only the tick is safe when all before is. -ENOBUFS: more than NI_STORE_HELD_MAX
 * is queued; or -ENOMEM: then it is gone.
 */
int ni_writer_put(struct ni_writer *w, struct ni_written *const *to, const uint64_t *id, size_t n,
                  int64_t tick_ns, bool late, struct ni_buffer *text);
/*
 * A file of the folder, made anew with this text when the thread comes to it; what it is given later takes
 * its place. No error is told.
 */
void ni_writer_file(struct ni_writer *w, int dir, const char *name, struct ni_buffer *text);
/* Is nothing of it queued? 0; -EAGAIN: something is; -errno: something is, since its files refuse it. */
int ni_writer_flushed(struct ni_writer *w, const struct ni_written *to);
/*
 * NAME.json takes over what is missing, where its maker is done and nothing of it is queued. 0: or it is not;
 * -errno.
 */
int ni_written_join(struct ni_written *to);
/*
 * The newest tick of which all is on the disk; degraded: why the disk does not take it, "". And an eventfd
 * that moves with either.
 */
int64_t ni_writer_safe(struct ni_writer *w, char degraded[256]);
int ni_writer_fd(const struct ni_writer *w);
/* Bytes that wait for the disk. */
size_t ni_writer_held(struct ni_writer *w);

#endif
