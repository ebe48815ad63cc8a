/*
 * Which GPU is nearest to a NIC, as NCCL sees it: by the bridges of PCI between the two.
 *
 *   PIX  one bridge            PXB  several bridges of one tree
 *   PHB  the CPU's host bridge SYS  different host bridges: between CPUs or parts of one
 *
 * GPUs are the set's entities of source GPU; where NVML has none, NVIDIA's devices of PCI. Any thread.
 */
#ifndef NI_NEAREST_H
#define NI_NEAREST_H

#include "set.h"

enum ni_near { NI_NEAR_UNKNOWN = 0, NI_NEAR_SYS, NI_NEAR_PHB, NI_NEAR_PXB, NI_NEAR_PIX };

struct ni_nearest {
  enum ni_near how; /* UNKNOWN: no GPU, or no address */
  char gpu[32];     /* "gpu3", or its address where NVML does not name it */
  char all[256];    /* addresses of all that are as near, ',' between; "": none below the same host bridge */
};

/* "PIX", ...; NULL: not known. */
const char *ni_near_name(enum ni_near how);
/* The nearest GPU of each entity, into out, which has room for n_entities; of several as near one of its NUMA node, then the
 * first. 0 or -ENOMEM. */
int ni_nearest_find(const struct ni_set *s, struct ni_nearest *out);

#endif
