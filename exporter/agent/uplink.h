/*
 * From the agent to a head (docs/cluster.md): each sample has a number, is kept until the head has acknowledged it, and is sent once.
 *
 *   sampler ─▶ agent's loop: sample of GPUs, NICs, host, jobs (up_sample.h) ─▶ ni_uplink_put() ─▶ spool on disk (spool.h) ─┐
 *   head ◀──────────── gRPC stream (rpc.h): hello, samples ◀── a thread of its own ◀──────────────────────────────────────┘
 *        ────────────▶ welcome, acknowledgements: what may go from the spool, the period, the head's clock
 *
 * States: away (begun anew after 1, 2, ... 60 s, with a tenth of chance) ─ connected: hello is sent ─ welcomed: samples go, the oldest first
 * ─ old: the head is gsprof's, since it does not know our call; it gets Connect and StreamMetrics, newest samples alone.
 * A head that says nothing for 30 s is left. The clock: of each acknowledgement (sent, received, answered, come back), the one with the
 * shortest way of the last minute says how far the head's clock is from this process's own, which is never set.
 *
 * Threads: the agent's, and its own. Ownership: ni_uplink_stop().
 */
#ifndef NI_UPLINK_H
#define NI_UPLINK_H

#include "exporter/session/sample.h"

struct ni_uplink;
struct ni_uplink_options {
  const char *head, *token_file, *ca; /* HOST:PORT; NULL: none */
  const char *host, *state_dir;       /* this node's name; the folder of spool and uuid */
};
struct ni_uplink_totals {
  bool connected, old;                /* old: gsprof's head */
  uint64_t sent, acknowledged, kept, lost; /* samples; kept: now in the spool; lost: the spool was full */
  int64_t skew_ns;                    /* Unix clock here against the head's */
  char error[256];                    /* why it is away; "": it is not */
};

/* 0, or -errno with a sentence in why: a file cannot be read. An unreachable head is no error. */
int ni_uplink_start(struct ni_uplink **out, const struct ni_uplink_options *o, char *why, size_t cap);
/* The sample is the uplink's; its seq is given here. at_mono_ns: CLOCK_MONOTONIC when it was taken. Never waits for the network. */
void ni_uplink_put(struct ni_uplink *u, struct ni_sample *s, int64_t at_mono_ns);
/*
 * When the head wants samples: CLOCK_MONOTONIC of one tick, and the period in ns. false: as the agent likes, nobody has said. The agent
 * asks after each sample.
 */
bool ni_uplink_wants(struct ni_uplink *u, int64_t *tick_mono_ns, uint64_t *period_ns);
struct ni_uplink_totals ni_uplink_totals(struct ni_uplink *u);
void ni_uplink_stop(struct ni_uplink *u); /* sends what it can for a second */

#endif
