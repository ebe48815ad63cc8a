/* Network operations of a black box: which transfer of an operation waits, and for what. Threads and failure: box.h. */
#ifndef NI_BOX_NET_H
#define NI_BOX_NET_H

#include "box.h"

/* The network transfer of an operation that has waited longest. */
struct ni_box_net {
  int32_t peer, channel;
  const char *waits_for; /* gpu_produce, peer_credit, wire, flush, gpu_consume: as in proxy lines */
  bool on_network;       /* for a peer, the wire or the flush: not for the own GPU */
  uint64_t since_ns;     /* Unix ns */
};

/* False: no transfer of it is under way, or network events are off. */
bool ni_box_net_of(const struct ni_box *b, const struct ni_box_op *op, struct ni_box_net *out);

/* Of a box whose image is filled: finds them, for box.c. 0 or -ENOMEM. */
int ni_box_find_proxies(struct ni_box *b);

#endif
