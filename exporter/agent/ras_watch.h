/*
 * NCCL's RAS of this node, asked every so often: off unless the settings name it, since each answer is
 * gathered from all processes of the job, over its network.
 *
 *   agent ─▶ a child, as nobody (uid 65534) where the agent is root ─▶ ni_ras_ask(), ni_ras_judge()
 *       ─▶ memory that both share
 *
 * An answer is whatever listens there: it is read with no rights, within RAS_MEMORY of memory and
 * RAS_SECONDS, and what the child says are numbers. A child that ends is begun anew after a minute. Once a
 * job has gone nobody answers, and the figures of its last answer are not told any more. Main thread.
 */
#ifndef NI_RAS_WATCH_H
#define NI_RAS_WATCH_H

#include "exporter/output/metrics/metrics.h"

struct ni_ras_watch;
/* where: as ni_ras_ask() has it, copied. every_ns: 15 s or more. 0 or -errno. */
int ni_ras_watch_start(struct ni_ras_watch **out, const char *where, uint64_t every_ns);
/* Each turn: looks after the child, and fills the figures of RAS. */
void ni_ras_watch_turn(struct ni_ras_watch *w, uint64_t mono_ns, struct ni_agent_ras *out);
void ni_ras_watch_stop(struct ni_ras_watch *w);

#endif
