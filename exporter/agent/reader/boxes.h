/*
 * The black boxes of one user on this node -> what his processes do now, and where their logs lie.
 *
 * All are read at each look; one whose process is dead once, since nobody writes it. One thread. Failure: -ENOMEM; what cannot be
 * read is counted.
 */
#ifndef NI_AGENT_BOXES_H
#define NI_AGENT_BOXES_H

#include "rows.h"

struct ni_boxes;

int ni_boxes_open(struct ni_boxes **out, const char *box_dir, uint32_t uid, uint64_t stuck_ns);
/* Fills boxes, processes and open of a LOOK, and adds to unread; arrays are ours until the next. rows learns of GPUs. */
int ni_boxes_look(struct ni_boxes *x, struct ni_live_batch *b, struct ni_rows *rows);
/* The log's folder of each process of the newest look. */
const char *const *ni_boxes_log_dirs(const struct ni_boxes *x);
/* Is it a log of one of them? dir NULL: of whatever folder, also of dead ones. */
bool ni_boxes_log(const struct ni_boxes *x, const char *dir, const char *name);
/* again: a process began to write there. */
void ni_boxes_each_log_dir(struct ni_boxes *x, void (*fn)(void *arg, const char *dir, bool again), void *arg);
/* As ni_watch_fd() and ni_watch_stirred(). */
int ni_boxes_fd(const struct ni_boxes *x);
bool ni_boxes_stirred(struct ni_boxes *x);
void ni_boxes_close(struct ni_boxes *x);

#endif
