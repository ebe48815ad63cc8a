/*
 * A GPU's clock against its host's, from the clock lines of a log (ledger/gpu_points.h). One mechanism for
 * all commands: trace (timeline/align.h), what is summed up (sums/reading/stamps.h) and what tells hosts'
 * clocks apart (hosts.h) put GPU times right by it.
 *
 * Delivery takes time, so each point is an upper bound of the offset between the clocks, and the lowest ones
 * are best. The two clocks drift against each other (20 ppm is 1.2 ms a minute, the plugin's window), so a
 * minimum that is some seconds old is off by that. Here the offset at any time is the line below all points
 * nearby that lies nearest to them: at knots NI_GPU_KNOT_NS apart that of the points within five times that
 * distance, between the knots linear. Where that line is steeper than clocks drift (deliveries of a starved
 * host's first second: 60 ms late, then 10, then none), the lowest point has to do.
 *
 * A record was written with the offset that the last clock line before it states; what is to be added to its
 * GPU times is (offset here) - (offset stated). Who cannot look at each picture (all but trace) leaves times
 * as they are, to the byte, where
 *
 *   no point lies NI_GPU_LEAST_NS above the line   so much a delivery may always be late: nothing is known
 *   somebody set a clock                           by ni_gpu_points_judge()
 *
 * Threads: one. Memory: that of the points. Failure: -ENOMEM.
 */
#ifndef NI_TRACE_GPU_CLOCK_H
#define NI_TRACE_GPU_CLOCK_H

#include "exporter/model/ledger/gpu_points.h"

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
/* As of hosts' clocks (NI_CLOCKS_LEAST_NS): a delivery of a job that runs well is late by less. */
#define NI_GPU_LEAST_NS INT64_C(1000000)

struct ni_gpu_clock { /* all 0: empty */
  struct ni_gpu_points points;
  struct ni_gpu_point *knot; /* in order of time */
  size_t n_knots;
  int64_t spread_ns; /* how far most (90 %) of the points lie above the line */
  int64_t worst_ns;  /* how far the highest does: so much a record may be off */
  bool extends;      /* the line goes on beyond the points; else its ends stay */
};

/* After the last point. */
int ni_gpu_clock_finish(struct ni_gpu_clock *c);
/* False: no points. */
bool ni_gpu_clock_at(const struct ni_gpu_clock *c, int64_t at_ns, int64_t *offset_ns);
/* What is to be added to a GPU time t that was written with that offset; NI_NO_OFFSET: 0. */
int64_t ni_gpu_clock_correction(const struct ni_gpu_clock *c, int64_t stated_ns, int64_t t);
/* Is it known well enough, and off by enough, to change times unseen? After ni_gpu_clock_finish(). */
static inline bool ni_gpu_clock_matters(const struct ni_gpu_clock *c) {
  return c->n_knots && !c->points.was_set && c->worst_ns >= NI_GPU_LEAST_NS;
}
void ni_gpu_clock_free(struct ni_gpu_clock *c);

/*
 * The clocks that matter, of many logs. The GPU of a rank of a communicator is that of all others of its
 * process; in processes with several ranks of one communicator each has clocks by its own lines.
 */
struct ni_gpu_seat {      /* a rank of a communicator */
  uint64_t process, comm; /* by whatever tells them apart */
  int32_t rank;
  struct ni_gpu_points *points;      /* the caller's */
  const struct ni_gpu_clock **clock; /* out: of the units; NULL: its times are right */
};
struct ni_gpu_units {
  struct ni_gpu_clock *item;
  size_t n;
};
/* Changes the order of the seats. 0 or -ENOMEM; then, too, ni_gpu_units_free(). */
int ni_gpu_units_find(struct ni_gpu_units *u, struct ni_gpu_seat *seat, size_t n);
void ni_gpu_units_free(struct ni_gpu_units *u);

#endif
