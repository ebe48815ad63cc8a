/*
 * The readers: a child process for each user who has jobs here, with his rights and no others (as root), or
 * one for ourselves. Each watches (watch.h) and writes batches into a pipe.
 *
 *   agent ─fork─▶ reader of uid 1001: turn a second, or at once when something began or ended ─▶ pipe
 *       ─▶ agent: ni_live_apply()
 *         ─fork─▶ reader of uid 1002 ...
 *
 * A reader that a file makes crash, or that hangs in a file system, costs its user's figures their age and
 * nobody anything else. It is begun again after a second, then two, ... 60, from what the agent has applied,
 * so no line is counted twice or lost. It ends with the agent. Its memory is bounded (RLIMIT_AS).
 *
 * After each look the reader asks ni_hang_watch_turn() (hang_turn.h) and puts a verdict into the look that it
 * sends.
 *
 * Who has jobs here: owners of boxes in box_dir, and of logs in the log folders that are not empty. As root
 * two further children list them, one for each, every second and every 5 s, with our own rights: they read
 * names and owners, and the header of a box. A log folder that does not answer costs the users who have logs
 * there alone.
 *
 * 256 users have a place. Boxes and logs are files that a user may make under any number of uids (those of a
 * container), so whose box names a running process of the same user takes the place of a user of whom none
 * was seen for 10 s.
 */
#ifndef NI_READERS_H
#define NI_READERS_H

#include "exporter/cmds/live.h"
#include "exporter/output/metrics/metrics.h"

struct ni_readers;

/* epoll: where the readers' pipes are added, with data.ptr of ours: what ni_readers_ready() is to get. */
int ni_readers_open(struct ni_readers **out, const struct ni_agent_options *o, const char *node,
                    struct ni_live *live, int epoll);
/* Something is to be read from that pipe. true: the state has changed. */
bool ni_readers_ready(struct ni_readers *r, void *pipe, uint64_t unix_ns, uint64_t mono_ns);
/* Once a second: begins readers, ends those without work. */
void ni_readers_tick(struct ni_readers *r, uint64_t mono_ns);
/*
 * Has each read all that was there? Until then sums may lag behind what a killed agent had shown. One that
 * says nothing for 30 s is not waited for, as when it hangs in a file system, nor is anyone for more than 10
 * min: a user may write as fast as he is read.
 */
bool ni_readers_settled(const struct ni_readers *r);
/* What they and we take, from /proc; restarts; users who found no place. NULL: what we take. */
void ni_readers_figures(const struct ni_readers *r, struct ni_agent_self *s);
void ni_readers_close(struct ni_readers *r);

#endif
