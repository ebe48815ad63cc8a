/*
 * Operations as hosts saw them, in the order of their numbers, and the steps of clocks that these show
 * (hosts.h says how).
 *
 * Threads: one. Ownership: the caller's. Failure: -ENOMEM.
 */
#ifndef NI_CLOCKS_STEPS_H
#define NI_CLOCKS_STEPS_H

#include <stddef.h>

#include "host_clock.h"

/* An operation on one host: over its ranks the latest start and the earliest end. */
struct ni_clocks_mark {
  uint32_t comm, func, host; /* comm: one life of a communicator */
  uint64_t sn, bytes;
  int64_t start_ns, end_ns;
};

/*
 * mark: by comm, func, sn, bytes and host, each once. Sets the steps of clock[], which has n_hosts: of
 * least_ns and more.
 */
int ni_clocks_find_steps(const struct ni_clocks_mark *mark, size_t n, struct ni_host_clock *clock,
                         uint32_t n_hosts, int64_t least_ns);
/* Takes the steps off the times of the marks, which are in that order. */
int ni_clocks_remove_steps(struct ni_clocks_mark *mark, size_t n, const struct ni_host_clock *clock,
                           uint32_t n_hosts);

#endif
