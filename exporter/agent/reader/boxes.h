/*
 * The black boxes of one user on this node -> what his processes do now, and where their logs lie.
 *
 * All are read at each look; one whose process is gone once, since nobody writes it. What a killed one was in
 * is shown as long as its box is there. One thread. Failure: -ENOMEM; what cannot be read is counted.
 */
#ifndef NI_AGENT_BOXES_H
#define NI_AGENT_BOXES_H

#include <sys/stat.h>

#include "rows.h"

struct ni_boxes;

int ni_boxes_open(struct ni_boxes **out, const char *box_dir, uint32_t uid, uint64_t stuck_ns);
/*
 * Fills boxes, processes and open of a LOOK, and adds to unread; arrays are ours until the next. rows learns
 * of GPUs.
 */
int ni_boxes_look(struct ni_boxes *x, struct ni_live_batch *b, struct ni_rows *rows);
/* The log's folder of each process of the newest look. */
const char *const *ni_boxes_log_dirs(const struct ni_boxes *x);
/* Is it a log of one of them? dir NULL: of whatever folder, also of dead ones. */
bool ni_boxes_log(const struct ni_boxes *x, const char *dir, const char *name);
void ni_boxes_each_log_dir(const struct ni_boxes *x, void (*fn)(void *arg, const char *dir), void *arg);
/* Has something when a process began or ended, perhaps, so that the next look need not wait. */
int ni_boxes_fd(const struct ni_boxes *x);
/* Was it that? Folders of boxes have other files, too. Empties it, and waits for more to come. */
bool ni_boxes_stirred(struct ni_boxes *x);
/*
 * Until the next look is due: a second after began_ns (CLOCK_MONOTONIC), sooner when something stirs. 50 ms
 * where a box is new and has no log yet, or soon says so: a job may live for less than a second, and its box
 * alone says where its logs are.
 */
void ni_boxes_wait(struct ni_boxes *x, uint64_t began_ns, bool soon);
void ni_boxes_close(struct ni_boxes *x);

/*
 * Files of jobs in a folder, by their names. Nothing is opened but folders, no link is followed. Any thread.
 */
typedef bool ni_find_wanted(const void *arg, const char *name);
typedef void ni_find_found(void *arg, const char *dir, const char *name, const struct stat *st);
/*
 * Regular files of path and of the folders in it, so many levels deep, whose names are wanted. 0 or -errno of
 * path itself.
 */
int ni_find(const char *path, int depth, ni_find_wanted *wanted, ni_find_found *found, void *arg);
/* A black box of the plugin's (arg: nothing); a log of a node (arg: the node's name). */
bool ni_find_box(const void *arg, const char *name);
bool ni_find_log(const void *node, const char *name);

#endif
