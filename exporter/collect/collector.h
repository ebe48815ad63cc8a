/*
 * Reads what NICs, GPUs and the host count: finds it once, keeps descriptors open, reads it as often as it is
 * asked to.
 *
 *   open ─▶ set (entities, counters) ─▶ read ─▶ readings ─▶ read ... ─▶ close
 *
 * Threads: one caller. read() may use a thread for each reader, which it waits for. Memory and descriptors
 * belong to the collector. A descriptor a counter of files: raise RLIMIT_NOFILE before a full sweep
 * (ni_collector_raise_limit).
 */
#ifndef NI_COLLECTOR_H
#define NI_COLLECTOR_H

#include "source.h"

struct ni_collector;

/*
 * 0 or -ENOMEM. Nothing found is no error: the set is empty, and set->unread says why, where there is a
 * reason.
 */
int ni_collector_open(struct ni_collector **out, const struct ni_wanted *wanted);
void ni_collector_close(struct ni_collector *c);

/* Valid until close. */
const struct ni_set *ni_collector_set(const struct ni_collector *c);
/*
 * One reading of each counter into out, which has room for set->n_counters. threads: at most so many, 1 for
 * the caller alone. Returns how many could not be read (their state says so).
 */
size_t ni_collector_read(struct ni_collector *c, struct ni_reading *out, unsigned threads);
/* The counters of some entity are others by now (a driver was loaded anew): open a new collector. */
bool ni_collector_changed(const struct ni_collector *c);
/* As many descriptors as the system allows this process. */
void ni_collector_raise_limit(void);

/*
 * Which GPU is nearest to a NIC, as NCCL sees it: by the bridges of PCI between the two.
 *
 *   PIX  one bridge            PXB  several bridges of one tree
 *   PHB  the CPU's host bridge SYS  different host bridges: between CPUs or parts of one
 *
 * GPUs are the set's entities of source GPU; where NVML has none, NVIDIA's devices of PCI. Any thread.
 */
enum ni_near { NI_NEAR_UNKNOWN = 0, NI_NEAR_SYS, NI_NEAR_PHB, NI_NEAR_PXB, NI_NEAR_PIX };

struct ni_nearest {
  enum ni_near how; /* UNKNOWN: no GPU, or no address */
  char gpu[32];     /* "gpu3", or its address where NVML does not name it */
  char all[256];    /* addresses of all that are as near, ',' between; "": none below the same host bridge */
};

/* "PIX", ...; NULL: not known. */
const char *ni_near_name(enum ni_near how);
/* The nearest GPU of each entity, into out, which has room for n_entities; of several as near one of its NUMA
 * node, then the first. 0 or -ENOMEM. */
int ni_nearest_find(const struct ni_set *s, struct ni_nearest *out);

#endif
