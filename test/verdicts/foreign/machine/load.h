// What an operation puts on which resource, as NCCL's rings and pairwise exchanges would.
#pragma once
#include "network.h"
#include "program.h"

// Bytes of one rank's contribution to the ring, over the whole operation.
inline double ring_bytes(Func f, double bytes, int n) {
  switch (f) {
    case ALLREDUCE:
      return 2.0 * (n - 1) / n * bytes;
    case ALLGATHER:
    case REDUCESCATTER:
      return (n - 1) * bytes;
    default:
      return bytes;
  }
}

Network::Load collective_load(const Cluster &c, const Comm &comm, Func f, double bytes);
Network::Load message_load(const Cluster &c, int from, int to, double bytes);
