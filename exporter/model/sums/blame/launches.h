/*
 * Launches: GPUs that are idle before kernels that begin as soon as their CPU has launched them.
 *
 * scratch: room for as many numbers as there are ranks. Threads: the main one. No failure.
 */
#ifndef NI_BLAME_LAUNCHES_H
#define NI_BLAME_LAUNCHES_H

#include "exporter/model/sums/ranks/blame.h"

/* What a rank's idle time was compared with. */
struct ni_launches_of {
  float usual;                 /* us of a step */
  uint32_t others;             /* ranks; */
  bool has_like;               /* they do the same work */
};

/* More of a rank's idle time lies before what is launched late than elsewhere. usual: the share of that elsewhere. */
bool ni_launches_late(const struct ni_blame_rank *o, float usual);
/*
 * Launches are compared with those of other hosts, since ranks of one host share its CPUs; of one host alone
 * with all others. Where the CPUs pace the whole job some rank is always the last one: a slow one stands out
 * from how far the others lie apart.
 */
bool ni_launches_stand_out(const struct ni_blame *b, uint32_t rank, float *scratch);
/*
 * Most of what lies between its operations ends when the CPU has launched the next one: the CPU paces it, and
 * how long it takes says nothing of what the GPU computes.
 */
bool ni_launches_pace(const struct ni_blame *b, uint32_t rank, float *scratch);
/*
 * How much more own time (idle: more idle time) a rank has in a step, in us, than those of its like whose CPU is
 * not slow (or, where all of these are so: than the rank in the middle). 0: not enough to matter. launched: as
 * usual of ni_launches_late().
 */
float ni_launches_beyond(const struct ni_blame *b, const struct ni_blame_rank *o, float launched, bool idle,
                         float *scratch, struct ni_launches_of *of);

#endif
