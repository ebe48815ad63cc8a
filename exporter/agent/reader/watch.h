/*
 * Watches what one user's jobs write on this node: finds their black boxes and logs, reads boxes at each
 * turn, and of logs the gzip members that have become whole since.
 *
 *   turn ─▶ boxes of box_dir ─▶ where their logs lie ─▶ those logs, and those of log_dir that are this node's
 *        ─▶ per log that grew: whole members ─▶ a batch LOGS     ─▶ emit()
 *        ─▶ all boxes:                           a batch LOOK     ─▶ emit()
 *
 * It opens for reading only, without links in the last part of a name, takes no lock, sends no signal: jobs
 * notice nothing. A log is read in slices, so that a turn ends; what is left is `behind`, and due at once
 * again.
 *
 * Threads: one. Ownership: ni_watch_close(). It keeps what it needs of `known`.
 */
#ifndef NI_WATCH_H
#define NI_WATCH_H

#include "exporter/cmds/live.h"
#include "exporter/model/live/live.h"

struct ni_boxes; /* boxes.h */
struct ni_watch;
struct ni_watch_settings {
  uint32_t uid;               /* whose files; others are passed over */
  const char *box_dir, *node; /* node: logs of log_dir count whose name begins with it and "-pid" */
  char *const *log_dir;
  size_t n_log_dirs;
  uint64_t stuck_ns;
  bool nvidia;
};
/* What to do with a batch: 0, or what ends the turn. */
typedef int ni_watch_emit(void *arg, const struct ni_live_batch *b);

/*
 * known: where to go on in which file; NULL: everywhere at the beginning. 0 or -errno. Texts of s are
 * borrowed.
 */
int ni_watch_open(struct ni_watch **out, const struct ni_watch_settings *s, const struct ni_live *known);
/* One turn. *more: something is left that can be read at once. 0, what emit() said, -ENOMEM. */
int ni_watch_turn(struct ni_watch *w, ni_watch_emit *emit, void *arg, bool *more);
/* Its boxes: where the log of each process of the newest LOOK lies, when the next turn is due. Ours. */
struct ni_boxes *ni_watch_boxes(const struct ni_watch *w);
void ni_watch_close(struct ni_watch *w);

#endif
