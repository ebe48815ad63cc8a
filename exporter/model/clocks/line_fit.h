/*
 * A straight line between bounds: the clock of one host against another's.
 *
 * Both hosts ran the same collectives. None can end on either before the last has started, so for each, with
 * times in the two clocks, (end here - start there) is at least the difference of the clocks and (start here
 * - end there) at most. Between these bounds the middle is no good guess: who waits for a late host has long
 * operations, and the middle leans to it. But all hosts end within a transfer of each other, which is as long
 * as the shortest of them took. So the line goes through medians of (end here - end there), each weighing as
 * much as its operation was short, as far as the bounds allow it; where none is given, it is the one that
 * keeps the largest distance from all bounds. How wrong it can be while the clocks run straight says the
 * worst line between the bounds at either end of the job: few bounds leave the drift free.
 *
 * A message bounds it from one side: no Recv ends before its Send began, so (end of the Recv - start of the
 * Send) is at most the difference of receiver and sender. The other side is never taken: what fits NCCL's
 * buffers (NCCL_BUFFSIZE, 4 MiB a channel unless set, and less or more of it by protocol and release) is sent
 * before a Recv is there, and no log states how much that is. Messages both ways bound it from both sides, at
 * different times.
 *
 * Pure functions.
 */
#ifndef NI_TRACE_LINE_FIT_H
#define NI_TRACE_LINE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Two clocks are never further apart in rate: NTP slews by 500 ppm at most, crystals are within 100. */
#define NI_LINE_DRIFT_MAX 300e-6
/* Over less than this a drift is not told from noise; nor by fewer operations, where it is by medians. */
#define NI_LINE_DRIFT_SPAN_NS INT64_C(1000000000)
#define NI_LINE_DRIFT_BOUNDS 12

struct ni_line_bound {
  int64_t t; /* relative to any epoch */
  /* low <= offset at t <= high; INT64_MIN, INT64_MAX: not bounded on that side */
  int64_t low, high;
  int64_t likely, within; /* two-sided: end here - end there, and the transfer; within 0: not known */
};

struct ni_line_fit {
  double offset_ns, drift; /* offset(t) = offset_ns + drift * t */
  /* half the distance of the bounds along the line; < 0: they contradict by so much */
  double room_ns;
  double error_ns; /* how wrong the line can be; where bounds contradict, for 99 of 100 */
  /* 9 of 10 of what is likely lie no further from the line; where nothing is, error_ns */
  double spread_ns;
  size_t used, rejected; /* used 0: nothing bounds one side; no line */
  size_t one_sided;      /* of those used */
};

/*
 * b: is changed. Bounds that no clock explains (they exclude the middle of all, drift allowed for) are left
 * out and counted. The error holds for from <= t <= to, with each bound wrong by slack_ns at most. 0 or
 * -ENOMEM.
 */
int ni_line_fit(struct ni_line_bound *b, size_t n, int64_t from, int64_t to, int64_t slack_ns,
                struct ni_line_fit *out);

#endif
