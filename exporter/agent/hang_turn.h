/*
 * What a reader does when its user's job hangs, over all nodes of the job, without a server between them: the log folder that they
 * share is enough.
 *
 *   an operation beyond --stuck-after ─▶ COPY: boxes of the job into LOGS/nccl-inspector-hang, by `snapshot`
 *     ─▶ 10 s later COPY again ─▶ LEASE: LOGS/nccl-inspector-hang/lease, made by one, taken over when 60 s old
 *     ─▶ JUDGE: `hang --json` over copies and logs ─▶ verdict.json, verdict.txt (whole or not there) ─▶ a ni_live_hang to the agent
 *     ─▶ STACKS, where asked for, of the ranks of this node that the verdict names
 *     ─▶ DONE until the job has moved again
 *
 * Every agent that sees the job stuck copies; the one that holds the lease judges; all tell of the verdict that lies there. It runs
 * with the rights of the user whose job it is, and our own commands as children of 60 s at most. Copies: 1 GiB at most, of one
 * incident; older ones of this node go before. Nothing else is written. Ages of files are compared with a file written now, since
 * clocks of nodes differ.
 */
#ifndef NI_HANG_TURN_H
#define NI_HANG_TURN_H

#include "exporter/model/live/batch.h"

struct ni_hang_watch;
struct ni_hang_settings {
  const char *box_dir, *node, *stacks;
  uint64_t stuck_ns;
};

int ni_hang_watch_open(struct ni_hang_watch **out, const struct ni_hang_settings *s);
/*
 * After each look: b is the look. log_dir: where the log of a process lies, by its place in b->processes. Never waits: children are
 * looked after at the next turn. When there is a verdict that was not told yet: true, and it is in *said.
 */
bool ni_hang_watch_turn(struct ni_hang_watch *h, const struct ni_live_batch *b, const char *const *log_dir, uint64_t mono_ns,
                        struct ni_live_hang *said);
void ni_hang_watch_close(struct ni_hang_watch *h);

#endif
