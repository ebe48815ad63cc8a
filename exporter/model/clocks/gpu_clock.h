/*
 * A GPU's clock against its host's, from the clock lines of a log.
 *
 * Every clock line says: at this moment the smallest (arrival on the host - GPU time stamp) was so much.
 * Delivery takes time, so each is an upper bound of the offset between the clocks, and the lowest ones are
 * best. The two clocks drift against each other (20 ppm is 1.2 ms a minute, the plugin's window), so a
 * minimum that is some seconds old is off by that. Here the offset at any time is the line below all points
 * nearby that lies nearest to them: at knots NI_GPU_KNOT_NS apart that of the points within five times that
 * distance, between the knots linear.
 *
 * A record was written with the offset that the last clock line before it states; what is to be added to its
 * GPU times is (offset here) - (offset stated).
 *
 * Threads: one. Memory: 16 bytes a clock line. Failure: -ENOMEM.
 */
#ifndef NI_TRACE_GPU_CLOCK_H
#define NI_TRACE_GPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_GPU_KNOT_NS INT64_C(60000000000)
#define NI_GPU_NEAR_KNOTS 5 /* crystals keep their rate within 0.1 ppm for some minutes */
/*
 * Over less time, or of fewer points, no drift can be told from noise of the delivery. Rates further apart
 * are broken.
 */
#define NI_GPU_DRIFT_SPAN_NS INT64_C(200000000)
#define NI_GPU_DRIFT_POINTS 8
#define NI_GPU_DRIFT_MAX 300e-6
/*
 * Clocks drift apart by no more as a rule: a line that is less certain than that says nothing beyond its
 * points.
 */
#define NI_GPU_DRIFT_USUAL 30e-6

struct ni_gpu_point {
  int64_t at_ns, offset_ns; /* host time; host - GPU */
};

struct ni_gpu_clock {
  struct ni_gpu_point *point;
  size_t n, cap;
  struct ni_gpu_point *knot; /* in order of time */
  size_t n_knots;
  int64_t spread_ns; /* how far most (90 %) of the points lie above the line */
  bool extends;      /* the line goes on beyond the points; else its ends stay */
};

int ni_gpu_clock_add(struct ni_gpu_clock *c, int64_t at_ns, int64_t offset_ns);
/* After the last point. */
int ni_gpu_clock_finish(struct ni_gpu_clock *c);
/* False: no points. */
bool ni_gpu_clock_at(const struct ni_gpu_clock *c, int64_t at_ns, int64_t *offset_ns);
void ni_gpu_clock_free(struct ni_gpu_clock *c);

#endif
