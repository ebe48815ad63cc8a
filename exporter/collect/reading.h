/*
 * Readings, and what lies between two of them. Never a silent 0: what cannot be told has a state that says why.
 *
 *   before, after ─▶ CHANGED  the counter rose by `delta` in `seconds`, perhaps over its end (wrapped)
 *                    LEVEL    a gauge: no rate, `delta` is the difference of two levels
 *                    RESET    it fell, and no number of events that is possible explains that
 *                    STUCK    it stands at its maximum: delta 0 proves nothing
 *                    STALE    the second reading is no newer than the first
 *                    GONE, NEW, UNREADABLE
 *
 * A fall is taken for a wrap where the rise over its end is less than half of the counter's range and no more than the NIC
 * can do in that time; bits of 56 at 1 GHz last 834 days, those of 32 bits minutes.
 *
 * Pure; any thread.
 */
#ifndef NI_READING_H
#define NI_READING_H

#include "metric.h"

enum ni_reading_state { NI_READ_OK = 0, NI_READ_MISSING, NI_READ_UNREADABLE };

struct ni_reading {
  uint64_t value;  /* a gauge's as int64_t */
  int64_t real_ns; /* CLOCK_REALTIME when it was read */
  int64_t mono_ns; /* CLOCK_MONOTONIC; 0: not known, as in net_prof's files */
  uint8_t state;   /* enum ni_reading_state */
};

enum ni_change_state {
  NI_CHANGE_NONE = 0, /* as before */
  NI_CHANGE_CHANGED,
  NI_CHANGE_LEVEL,
  NI_CHANGE_RESET,
  NI_CHANGE_STUCK,
  NI_CHANGE_STALE,
  NI_CHANGE_GONE,
  NI_CHANGE_NEW,
  NI_CHANGE_UNREADABLE,
};

struct ni_change {
  uint8_t state;   /* enum ni_change_state */
  bool wrapped;
  int64_t delta;   /* CHANGED: at least 0, LEVEL: any; else 0 */
  double seconds;  /* between the two; 0: not known */
};

/* link_bytes_s: what the entity's link carries, for counters of bytes; 0: not known */
struct ni_change ni_change_of(const struct ni_metric *m, const struct ni_reading *before, const struct ni_reading *after,
                              double link_bytes_s);

/* Per second; 0 where there is no such number. */
static inline double ni_change_rate(const struct ni_change *c) {
  return c->state == NI_CHANGE_CHANGED && c->seconds > 0 ? (double)c->delta / c->seconds : 0;
}

#endif
