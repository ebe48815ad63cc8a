/*
 * Which call of NCCL a kernel is.
 *
 * A call launches its kernel within its own NVTX range, or, between ncclGroupStart and ncclGroupEnd, within
 * the latter's. There it is the call of its function where the group has one call and one kernel of that. Of
 * several the function is the kernel's, and the communicator is known if all calls of the group name the
 * same one; sizes are not. A group whose begin was not recorded tells nothing.
 *
 * Threads: one for each. Ownership: ni_nsys_groups_free(). Failure: -ENOMEM.
 */
#ifndef NI_NSYS_GROUPS_H
#define NI_NSYS_GROUPS_H

#include "tables.h"

struct ni_nsys_groups {
  struct ni_nsys_group *group;
  size_t n, cap;
};

/* Looks what lies around the launches; t: its kernels' ranges are set. */
int ni_nsys_groups(struct ni_nsys_groups *g, struct ni_nsys_tables *t);
void ni_nsys_groups_free(struct ni_nsys_groups *g);

/* The call that k is, as far as one is: NULL: none. *comm: its communicator, 0: not known. */
const struct ni_nsys_range_row *ni_nsys_call_of(const struct ni_nsys_groups *g,
                                                const struct ni_nsys_tables *t,
                                                const struct ni_nsys_kernel *k, uint64_t *comm);

#endif
