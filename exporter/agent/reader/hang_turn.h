/*
 * What a reader does when its user's job hangs, over all nodes of the job, without a server between them: the
 * log folder that they share is enough.
 *
 *   an operation beyond the limit here (exporter/model/hang/limit.h), or that waits beside a killed process
 *     ─▶ LEASE: one leads; nothing stuck here, but somebody leads: the same without a lease
 *     ─▶ COPY: boxes of the job into LOGS/nccl-inspector-hang, by `snapshot` ─▶ 10 s later COPY again
 *     ─▶ 10 s later, who leads: JUDGE: `hang` over copies and logs
 *     ─▶ the verdict as JSON and as text (whole or not there)
 *     ─▶ everybody: a ni_live_hang to the agent
 *     ─▶ STACKS, where asked for, of the ranks of this node that the verdict names
 *     (where this node has the whole job: COPY, JUDGE at once, and both again 10 s later)
 *     ─▶ again every 30 s until it is certain, or 6 times; where it is no hang 20 times, then every 10 min
 *   nothing is stuck here, and nobody leads ─▶ over
 *
 * Lease: files lease.1, lease.2, ...; the highest rules, renewed every 10 s; when it is 60 s old, whoever
 * makes the next number. The file server makes a name once (O_EXCL, also on NFS), so of two that take over at
 * once one wins; whoever acts on what was so a while ago finds the number taken. A rename could take away a
 * newer lease, and its reply may get lost. Only its holder removes one. Ages are compared with a file written
 * now, since clocks of nodes differ. A verdict counts if it is younger than what is stuck.
 *
 * With the rights of the user whose job it is; programs as children of 60 s at most (stacks: 30 s, 1 MiB).
 * Copies: boxes of 1 GiB at most, and half of what is free; of this node those of two looks. Where the folder
 * cannot be written, or is a link: nothing.
 */
#ifndef NI_HANG_TURN_H
#define NI_HANG_TURN_H

#include "exporter/model/live/batch.h"

struct ni_hang_watch;
struct ni_hang_settings {
  const char *box_dir, *node, *stacks; /* stacks: "py-spy", "gdb", NULL: none. Borrowed */
  uint64_t stuck_ns;
};

/* 0 or -errno. One reader, one thread, which neither ignores SIGCHLD nor waits for children of others. */
int ni_hang_watch_open(struct ni_hang_watch **out, const struct ni_hang_settings *s);
/*
 * After each look: b is the look. log_dir: where the log of a process lies, by its place in b->processes.
 * Never waits: children are looked after at the next turn. When there is a verdict that was not told yet:
 * true, and it is in *said.
 */
bool ni_hang_watch_turn(struct ni_hang_watch *h, const struct ni_live_batch *b, const char *const *log_dir,
                        uint64_t mono_ns, struct ni_live_hang *said);
void ni_hang_watch_close(struct ni_hang_watch *h);

#endif
