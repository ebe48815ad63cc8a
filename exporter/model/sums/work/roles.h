/*
 * Roles of communicators: what they are for. In this order, and none where it can be something else:
 *
 * 1. A map: lines `PATTERN ROLE`, the first that matches counts. PATTERN is a name, a hash ("0x...") or a
 *    glob of either (a blank is `?` in it); ROLE is one of ni_role_names. A word that begins with # begins a
 *    remark.
 * 2. Names: words of Megatron's, DeepSpeed's and PyTorch's (TENSOR_MODEL_PARALLEL_GROUP, default_pg, mesh_dp,
 *    tp0). A group for two kinds of parallelism at once, for context parallelism or for embeddings has no
 *    role, and says so.
 * 3. What is done in it:
 *    - All ranks are in it: world.
 *    - AlltoAll, or messages between all ranks: ep.
 *    - Messages to neighbours, both ways: pp. Of two ranks only where no other communicator joins them, since
 *      context parallelism sends rings.
 *    - Collectives of neighbouring ranks of one host: tp, where another communicator of a larger stride has
 *      half as many at most (a quarter, where the first scatter while ranks compute); the other one is dp.
 *    - So is one across hosts alone whose collectives overlap with the computing.
 *
 * Main thread.
 */
#ifndef NI_SUMMARY_ROLES_H
#define NI_SUMMARY_ROLES_H

#include "exporter/model/sums/model.h"

/* text, the file's, which patterns point into, and item are freed with the run */
struct ni_role_map {
  char *text;
  struct ni_role_line {
    const char *pattern;
    enum ni_role role;
  } *item;
  size_t n, cap;
};
struct ni_run;
struct ni_blame;
/*
 * Reads opt.comm_map, if any. 0, or what ni_run_fail() was told: -errno, -ENOMEM; -EINVAL, -EFBIG of what
 * stands in it.
 */
int ni_role_map_read(struct ni_run *r);
/* After the passes (pass.h), or without ranks: fills the role of each communicator of b->s. 0 or -ENOMEM. */
int ni_roles_tell(const struct ni_blame *b);

#endif
