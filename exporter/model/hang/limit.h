/*
 * When a wait is a hang: what `hang` and the agent have in common, the limit of a whole job. docs/hang.md
 * states it in words. `hang` knows more of each communicator, and waits less for some: limit_of_knot()
 * (judge/judge.c).
 *
 * A job is compared with itself. A hang lasts several times longer than every operation and every pause that
 * the job has had. Pure functions; any thread.
 */
#ifndef NI_HANG_LIMIT_H
#define NI_HANG_LIMIT_H

#include <stdint.h>

#define NI_HANG_GRACE_NS UINT64_C(10000000000)
/* what ran ahead of a dead process's peers has ended by then */
#define NI_HANG_DEAD_NS UINT64_C(3000000000)
/* A hang is what lasts so many times longer than all that the job has had, once it has run for so long. */
#define NI_HANG_TIMES 4
#define NI_HANG_WATCHED_NS UINT64_C(60000000000)

/* What was learnt, ns; 0: nothing. longest_ns: the longest operation or pause of the job so far, 0: not
 * known; ran_ns: from its first process's start until anything of it moved last. */
static inline uint64_t ni_hang_learnt(uint64_t longest_ns, uint64_t ran_ns) {
  if (!longest_ns || ran_ns <= NI_HANG_WATCHED_NS || longest_ns > UINT64_MAX / NI_HANG_TIMES)
    return 0;
  return longest_ns * NI_HANG_TIMES > NI_HANG_GRACE_NS ? longest_ns * NI_HANG_TIMES : NI_HANG_GRACE_NS;
}

/* From when on it is a hang, ns. after_ns: --stuck-after. */
static inline uint64_t ni_hang_limit(uint64_t after_ns, uint64_t longest_ns, uint64_t ran_ns) {
  uint64_t learnt = ni_hang_learnt(longest_ns, ran_ns);
  return learnt && learnt < after_ns ? learnt : after_ns;
}

#endif
