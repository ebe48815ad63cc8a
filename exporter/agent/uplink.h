/*
 * From the agent to a head (docs/cluster.md): each sample has a number, is kept until the head has
 * acknowledged it, and is sent once.
 *
 *   sampler ─▶ agent's loop: a sample (up_sample.h) ─▶ ni_uplink_put() ─▶ spool on disk (spool.h) ─┐
 *   head ◀──── gRPC stream (rpc.h): hello, samples ◀── a thread of its own ◀───────────────────────┘
 *        ────▶ welcome, acknowledgements: what may go from the spool, the period, the head's clock
 *
 * States: away (begun anew after 1, 2, ... 60 s, with a tenth of chance) ─ connected: hello is sent ─
 * welcomed: samples go, the oldest first ─ old: the head is gsprof's, since it does not know our call; it
 * gets Connect and StreamMetrics, newest samples alone, after 5, 10, ... 60 s. A head that owes an answer for
 * 30 s is left.
 *
 * The clock: of all acknowledgements (sent, received, answered, come back) the one with the shortest way says
 * how far the head's clock is before CLOCK_MONOTONIC, the less the older it is. Samples from before any head
 * has told its clock have this node's, and are set right when they are sent. Times of samples only rise, also
 * where the head's clock is set back.
 *
 * Threads: the agent's, and its own. Ownership: ni_uplink_stop().
 */
#ifndef NI_UPLINK_H
#define NI_UPLINK_H

#include "exporter/session/sample.h"

struct ni_uplink;
struct ni_uplink_options {
  /* HOST:PORT; NULL: no token, no TLS; "system": the certificates of the system */
  const char *head, *token_file, *ca;
  const char *cert, *key; /* PEM files: the agent's own; NULL: none */
  const char *host;       /* this node's name */
  int state_dir;          /* the folder of spool and uuid, open; the caller's */
};
struct ni_uplink_totals {
  bool connected, old; /* old: gsprof's head */
  /* samples; sent: also again; kept: now in the spool; lost: the spool was full */
  uint64_t sent, acknowledged, kept, lost;
  int64_t skew_ns; /* Unix clock here against the head's */
  char error[256]; /* why it is away; "": it is not */
};

/* 0, or -errno with a sentence in why: a file cannot be read. An unreachable head is no error. */
int ni_uplink_start(struct ni_uplink **out, const struct ni_uplink_options *o, char *why, size_t cap);
/*
 * The sample is the uplink's; its seq is given here. at_mono_ns: CLOCK_MONOTONIC when it was taken. Never
 * waits for the network.
 */
void ni_uplink_put(struct ni_uplink *u, struct ni_sample *s, int64_t at_mono_ns);
/*
 * When the head wants samples, or did when it was there last: CLOCK_MONOTONIC of one tick, and the period in
 * ns (10 ms to 1 h); and whether they should have PCIe's rates where asking for them takes long. false: as
 * the agent likes, nobody has said. The agent asks each second.
 */
bool ni_uplink_wants(struct ni_uplink *u, int64_t *tick_mono_ns, uint64_t *period_ns, bool *bandwidth);
struct ni_uplink_totals ni_uplink_totals(struct ni_uplink *u);
void ni_uplink_stop(struct ni_uplink *u); /* sends what it can for a second */

#endif
