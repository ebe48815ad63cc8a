/*
 * Launches: GPUs that are idle before kernels that begin as soon as their CPU has launched them.
 *
 * In a pipeline stages idle for different reasons: which of them waits for messages, and for how long, is the
 * schedule's. There a rank is compared with those of other hosts that do the same work, where there are some.
 *
 * Usage: ni_launches_begin() once classes are known, ni_launches_end(). Threads: the main one. Failure:
 * -ENOMEM.
 */
#ifndef NI_BLAME_LAUNCHES_H
#define NI_BLAME_LAUNCHES_H

#include "exporter/model/sums/ranks/blame.h"

struct ni_launches {
  const struct ni_blame *b;
  /* by rank: more of its idle time lies before what is launched late than elsewhere */
  bool *late;
  /* of a step, idle before that; in a pipeline beyond that of its peers elsewhere */
  float *us;
  /*
   * Of a step, idle before what is launched late, and idle in all. No bin counts for more than nine in ten
   * do: the first steps are launched late everywhere, by as much as a rank takes to load and compile.
   */
  float *late_us, *idle_us;
  float *scratch;
};

/* What a rank's own or idle time was compared with. */
struct ni_launches_of {
  float baseline;  /* us of a step */
  uint32_t others; /* ranks; */
  bool has_peers;  /* these do the same work; else they are all ranks whose CPU is not slow */
};

int ni_launches_begin(struct ni_launches *x, const struct ni_blame *b);
void ni_launches_end(struct ni_launches *x);
/*
 * Launches are compared with those of other hosts, since ranks of one host share its CPUs. Where there is one
 * host they are compared with all other ranks. Where CPUs pace the whole job some rank is always the last
 * one: a slow one is far behind, by how far the others lie apart.
 */
bool ni_launches_stand_out(const struct ni_launches *x, uint32_t rank);
/*
 * Launches pace the rank: most of what lies between its operations ends when the CPU has launched the next
 * one. Then how long it takes says nothing about what the GPU computes.
 */
bool ni_launches_pace(const struct ni_launches *x, uint32_t rank);
/*
 * They pace those that do the same work on other hosts: the one in the middle is idle for that more than for
 * anything else. Then some rank always launches last, and how long CPUs take from call to call says whether
 * one of them is slow (calls.h). false: they do not, or there are too few such ranks.
 */
bool ni_launches_pace_peers(const struct ni_launches *x, uint32_t rank);
/*
 * How much more own time (idle: more idle time) a rank has in a step, in us, than those of its peers whose
 * CPU is not slow (or, where all of these are so: than the rank in the middle). 0: not enough to matter.
 */
float ni_launches_find_excess(const struct ni_launches *x, uint32_t rank, bool idle,
                              struct ni_launches_of *of);

/*
 * When a rank launches late: bins. The first steps are launched late everywhere (allocations, compilation),
 * so a bin counts for no more than that which is longer than nine in ten. Returns how many times as much is
 * idle before late launches in a bin of the interval as in one of the run; 0: it was for a moment only.
 */
float ni_launches_find_interval(struct ni_launches *x, uint32_t rank, uint32_t *from, uint32_t *to);

#endif
