/*
 * Paces: how long one rank computes between two operations, by how large they are.
 *
 * Where no step does what another does, as of engines that serve requests, own time cannot be compared step
 * by step. But what lies between two neighbours of one function and size on a communicator, such as the
 * AllReduces of two layers, is the same work whenever sizes are the same: so many tokens pass a layer. A GPU
 * that is slow takes the same factor longer at all sizes. So the gaps of a rank are kept by *pace*: a
 * function on a communicator, and sizes within a fifth of each other.
 *
 * A gap counts where nothing else of the rank lies in it and no number is missing, so it holds no other
 * operation and no wait for one. Of a pace an even sample over the run is kept: all gaps, then each second
 * one, and so on. Its mean cuts off pauses (NI_PACE_PAUSE). Gaps behind another operation are kept apart: a
 * batch begins there, for which the GPU waits for its CPU, and at times for requests. So of these the median
 * tells.
 *
 * Bounds: NI_PACES paces with twice NI_PACE_SAMPLES gaps each; further ones are left out. Threads: one a
 * rank. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_PACES_H
#define NI_BLAME_PACES_H

#include "stream.h"

#define NI_PACE_CLASSES 4.0f /* of a factor of two */
#define NI_PACE_FIRST 0.5    /* quantile of first gaps */
#define NI_PACE_PAUSE 3.0f   /* times the median gap: what is longer counts as that */
enum {
  NI_PACES = 64,
  NI_PACE_SAMPLES = 64,
  NI_PACE_LEAST = 8 /* gaps: of fewer, chance has the most part */
};

/* An even sample of gaps. */
struct ni_gap_sample {
  uint64_t seen;
  uint32_t kept, every;
  float us[NI_PACE_SAMPLES];
};

struct ni_pace_gaps {
  uint16_t function; /* stream.h */
  uint16_t slot;
  int32_t size;
  uint64_t ops; /* all of this function and size, also those whose gaps do not count */
  struct ni_gap_sample inner, first;
};

struct ni_paces {
  const struct ni_blame_rank *out;
  const struct ni_blame_function *functions;
  const uint16_t *function; /* by token, which one it is */
  uint16_t *of_token;       /* its pace, from 1 on; 0: not known yet; UINT16_MAX: none. Owned */
  struct ni_pace_gaps pace[NI_PACES];
  uint32_t n;
  uint32_t last_token; /* the operation before: NI_BLAME_NONE: none yet, or a message */
  uint64_t last_sn;
  int64_t last_end_ns;
};

/*
 * functions; function: by token, which of them it is (stream.h). All of them are known, and live as long as
 * x, which is all 0. 0 or -ENOMEM.
 */
int ni_paces_begin(struct ni_paces *x, const struct ni_blame_rank *out,
                   const struct ni_blame_function *functions, const uint16_t *function);
void ni_paces_free(struct ni_paces *x);
/* Operations of the rank in order of their starts. */
void ni_paces_count(struct ni_paces *x, const struct ni_blame_op *op, size_t n);
/* Fills `pace` of the rank by those that have enough gaps; b: has its communicators. 0 or -ENOMEM. */
int ni_paces_end(struct ni_paces *x, const struct ni_blame *b, struct ni_blame_rank *out);

#endif
