/*
 * What a black box says, as values: header, session, communicators, operations, clocks. box.h says who owns
 * what.
 */
#ifndef NI_BOX_DECODE_H
#define NI_BOX_DECODE_H

#include "box.h"

/* A checked copy of the header, valid while the box is open; texts in it end. */
const struct ni_box_header *ni_box_header(const struct ni_box *b);
bool ni_box_is_copy(const struct ni_box *b);
/* Of the process: of a copy as it was when it was taken, else as it is now. */
enum ni_life ni_box_life(const struct ni_box *b);
/* The same with the reason and the time. */
const struct ni_life_fact *ni_box_life_fact(const struct ni_box *b);
uint64_t ni_box_taken_ns(const struct ni_box *b); /* Unix ns of this look at it */
uint64_t ni_box_held(const struct ni_box *b);     /* bytes of its pages that are not 0 */
uint32_t ni_box_owner(const struct ni_box *b);    /* uid of the file */
uint32_t ni_box_outside(const struct ni_box *b);  /* pages lost with the process */

/* The session that is whole; false: none yet. Texts end. */
struct ni_box_log {
  uint64_t start_ns;
  const char *dir, *file, *line;
};
bool ni_box_session(const struct ni_box *b, struct ni_box_log *out);

/*
 * The communicators' pages in order, those whose life is over included (phase 0). i from 0; false: no more.
 */
bool ni_box_comm_at(const struct ni_box *b, size_t i, struct ni_box_comm *out);
/* Index of the communicator that lives or is being closed and whose life this slot belongs to, or -1. */
int64_t ni_box_comm_of(const struct ni_box *b, const struct ni_box_op *op);
/*
 * Calls fn for every slot of every page of operations, free ones included, until it returns a number below 0:
 * that.
 */
int ni_box_each_op(const struct ni_box *b, int (*fn)(const struct ni_box_op *op, void *arg), void *arg);
/* Only those in flight: for looks each second. */
int ni_box_each_in_flight(const struct ni_box *b, int (*fn)(const struct ni_box_op *op, void *arg),
                          void *arg);
/* One of those again, by its slot. */
void ni_box_op_at(const struct ni_box *b, uint32_t slot, struct ni_box_op *out);
/* Channels on which the operation is between start and stop, a bit each. comm: its index. */
uint64_t ni_box_open_channels(const struct ni_box *b, size_t comm, const struct ni_box_op *op);

/*
 * How many more are, of those from 64 on, for which there is no bit: only RCCL has them. open: what the
 * former returned.
 */
int32_t ni_box_open_above(const struct ni_box *b, const struct ni_box_op *op, uint64_t open);

/* The number of its API call; false: not known. */
bool ni_box_call_of(const struct ni_box_comm *c, const struct ni_box_op *op, uint64_t *call_sn);

/* Clocks of the box. */
uint64_t ni_box_monotonic_ns(const struct ni_box *b, uint64_t ticks);
uint64_t ni_box_unix_ns(const struct ni_box *b, uint64_t ticks);
uint64_t ni_box_span_ns(const struct ni_box *b, uint64_t ticks);
/* The newest moment the box speaks of, Unix ns: when it was looked at if its process was alive, else its
 * last heartbeat, or when it said that it leaves. */
uint64_t ni_box_seen_ns(const struct ni_box *b);

/* The network transfer of an operation that has waited longest. */
struct ni_box_net {
  int32_t peer, channel;
  const char *waits_for; /* gpu_produce, peer_credit, wire, flush, gpu_consume: as in proxy lines */
  bool on_network;       /* for a peer, the wire or the flush: not for the own GPU */
  uint64_t since_ns;     /* Unix ns */
};

/* False: no transfer of it is under way, or network events are off. */
bool ni_box_net_of(const struct ni_box *b, const struct ni_box_op *op, struct ni_box_net *out);

#endif
