/*
 * What the clock lines of a log say of its GPU's clock: at this moment the smallest (arrival on the host -
 * GPU time stamp) was so much, an upper bound of the offset between the two clocks. clocks/gpu_clock.h draws
 * the line below them.
 *
 * Bounded: of more than NI_GPU_POINTS_MOST points the lowest of each stretch of 2^k ns stays, with the least
 * k that does. That depends on the set of points alone, so parts of a log, logs and shards are merged in any
 * order, and a point may come twice.
 *
 * A record was written with the offset that the last clock line before it states. Whoever keeps that beside a
 * record has 0 where there was none in its part of the log, and 1 ns for an offset of 0.
 *
 * Threads: one. Memory: 16 bytes a clock line, 32 KiB at most. Ownership: ni_gpu_points_free(). Failure:
 * -ENOMEM.
 */
#ifndef NI_LEDGER_GPU_POINTS_H
#define NI_LEDGER_GPU_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/bytes/wire.h"
#include "exporter/base/now.h"

#define NI_GPU_POINTS_MOST 1024 /* one a minute: 17 hours keep all */
/*
 * In its first seconds a log's offset may fall by as much as a starved thread is late. Behind that, and by
 * more, it does not fall by deliveries.
 */
#define NI_GPU_SETTLING_NS INT64_C(10000000000)
#define NI_GPU_LATEST_NS INT64_C(1000000000)
#define NI_GPU_OFFSET_MOST INT64_C(4102444800000000000) /* the year 2100: a GPU's clock from 0 */

struct ni_gpu_point {
  int64_t at_ns, offset_ns; /* host time; host - GPU */
};

struct ni_gpu_points { /* all 0: empty */
  struct ni_gpu_point *item;
  size_t n, cap;
  uint32_t coarse; /* one point stays of each 2^coarse ns */
  bool was_set;    /* somebody set a clock. By ni_gpu_points_judge() */
};

/* Can a log's values be such a point? Differences of those that can fit. */
static inline bool ni_gpu_offset_sound(int64_t offset_ns) {
  return offset_ns > -NI_GPU_OFFSET_MOST && offset_ns < NI_GPU_OFFSET_MOST;
}
static inline bool ni_gpu_point_sound(int64_t at_ns, int64_t offset_ns) {
  return ni_time_of_a_job(at_ns) && ni_gpu_offset_sound(offset_ns);
}
/* What is kept beside records. */
static inline int64_t ni_gpu_stated(int64_t offset_ns) { return offset_ns ? offset_ns : 1; }

int ni_gpu_points_add(struct ni_gpu_points *c, int64_t at_ns, int64_t offset_ns);
/* Adds the points of b, which stays as it is; and what was judged of them. */
int ni_gpu_points_merge(struct ni_gpu_points *c, const struct ni_gpu_points *b);
/* In order of time, no more than NI_GPU_POINTS_MOST. */
void ni_gpu_points_sort(struct ni_gpu_points *c);
/*
 * Of one log's points, before those of others come to them: sets was_set, where the offset moves by more than
 * the plugin takes for a delivery (NI_GPU_TOLERANCE_NS), up, or down when the first seconds are over. Times
 * on both sides of that are right by the clock as it was.
 */
void ni_gpu_points_judge(struct ni_gpu_points *c);
/* Stores the points, or adds them to those that are there; the wire is bad where they cannot be. */
void ni_gpu_points_wire(struct ni_wire *w, struct ni_gpu_points *c);
void ni_gpu_points_free(struct ni_gpu_points *c);

#endif
