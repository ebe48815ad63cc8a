/*
 * RAS beside the plugin: does what RAS counts agree with black boxes and logs?
 *
 * Both count with NCCL's own number per function (comm->seqNumber), and name communicators by the same hash,
 * so of a rank of which both speak either they agree or one of the two is wrong, or older. What is older is
 * no difference:
 *
 *   RAS more than the plugin   a difference if the rank's black box was read after RAS was asked, and tells
 *                              of all of that function: it is in flight there, or its log was read too
 *   the plugin more than RAS   a difference if that was called before RAS was asked
 *   of a saved answer          any: when it was made the reader's clock does not know
 *   RAS calls it dead          a difference if its process is alive; that it shows a rank whose process is
 *                              dead one as well
 *
 * Threads: one. It points into both. Failure: -ENOMEM.
 */
#ifndef NI_RAS_AGREE_H
#define NI_RAS_AGREE_H

#include "verdict.h"

#define NI_RAS_DIFFERENCES 64 /* kept; all are counted */

enum ni_ras_unlike {
  NI_RAS_OTHER_COUNT = 0, /* func, by_ras, by_plugin */
  NI_RAS_LIVES,           /* RAS calls it dead, and its process lives */
  NI_RAS_DIED,            /* RAS shows it, and its process is dead */
};

struct ni_ras_difference {
  enum ni_ras_unlike what;
  const struct ni_hang_member *member;
  const struct ni_ras_rank *rank;
  const char *func; /* of OTHER_COUNT */
  uint64_t by_ras, by_plugin;
};

struct ni_ras_agreement {
  struct ni_ras_difference difference[NI_RAS_DIFFERENCES];
  size_t n_differences;
  size_t comms, ranks; /* that both know */
  size_t compared,
      /* of these ranks such as have counts by both; and those of them that agree in all */
      agree;
  /* ranks, of communicators that both know, of which only RAS tells */
  size_t ranks_only_ras;
  size_t comms_only_ras, comms_only_plugin; /* communicators; those that were destroyed do not count */
};

/*
 * asked_ns, answered_ns: Unix ns of this machine's clock, when RAS was asked and had answered; 0: a saved
 * answer.
 */
int ni_ras_agree(struct ni_ras_agreement *a, const struct ni_ras *ras, const struct ni_hang_verdict *v,
                 uint64_t asked_ns, uint64_t answered_ns);

#endif
