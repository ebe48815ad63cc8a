/*
 * The thread that writes what sessions get, and the bounded queue before it.
 *
 *   ni_writer_put() ─▶ queue ─▶ batch: appended to frames.jsonl, NAME.json (its hidden part), late.jsonl ─▶ fdatasync of each ─▶ safe
 *
 * Files are written at places that the writer knows, so a batch that failed is written over when it is tried again, a second later; until
 * then it stays queued. What does not fit into the queue is refused, and its owner counts it.
 * Threads: the owner's, and the writer's. A ni_written is the writer's while anything of it is queued; ni_writer_drain() says when not.
 */
#ifndef NI_WRITER_H
#define NI_WRITER_H

#include <sys/types.h>

#include "exporter/session/frame_text.h"

enum ni_file { NI_FRAMES, NI_PART, NI_LATE, NI_FILES };
struct ni_written {
  int store;                        /* the store's folder, in which the session's is; the owner's to close, as the files are */
  char id[40], name[132];
  int fd[NI_FILES];                 /* -1: not open; NI_LATE is opened and closed by the writer */
  off_t at[NI_FILES], now[NI_FILES]; /* up to which all is on the disk; and in this batch */
  bool dirty[NI_FILES];             /* written to in this batch */
  off_t head;                       /* bytes of NAME.json before its first frame */
};

struct ni_writer;
/* 0 or -errno. */
int ni_writer_new(struct ni_writer **out);
/* Writes what is queued, if the disk takes it, and ends the thread. */
void ni_writer_free(struct ni_writer *w);
/*
 * A frame, or late: a sample after its frame, for n sessions; id: of the frame, one each. The text is the writer's in any case. n 0: only the
 * tick is safe when all before is. -ENOBUFS: more than NI_STORE_HELD_MAX is queued; or -ENOMEM: then it is gone.
 */
int ni_writer_put(struct ni_writer *w, struct ni_written *const *to, const uint64_t *id, size_t n, int64_t tick_ns, bool late,
                  struct ni_buffer *text);
/* Waits until all is written, 2 s at most. 0, or -errno of the disk. */
int ni_writer_drain(struct ni_writer *w);
/* The newest tick of which all is on the disk; degraded: why the disk does not take it, "". And an eventfd that moves with either. */
int64_t ni_writer_safe(struct ni_writer *w, char degraded[256]);
int ni_writer_fd(const struct ni_writer *w);
/* Bytes that wait for the disk. */
size_t ni_writer_held(struct ni_writer *w);

#endif
