/*
 * What is known of a metric by its name: kind, width, unit, groups (metrics.def).
 *
 * A name that no row knows is a counter of the source's usual width, in no group. Pure; any thread.
 */
#ifndef NI_METRIC_H
#define NI_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Cassini's telemetry, its retry handler, InfiniBand and RoCE ports, /sys/class/net, a NIC's driver by
 * ethtool, TCP of this network namespace, GPUs by NVML, the host; what Cassini's driver says beside
 * telemetry: link restarts, PCIe errors; what an RDMA device counts beside its ports. */
enum ni_metric_source {
  NI_METRIC_CXI = 0,
  NI_METRIC_RH,
  NI_METRIC_IB,
  NI_METRIC_ETH,
  NI_METRIC_ETHTOOL,
  NI_METRIC_TCP,
  NI_METRIC_GPU,
  NI_METRIC_HOST,
  NI_METRIC_CXIDEV,
  NI_METRIC_IBDEV,
  NI_METRIC_SOURCES
};
enum ni_metric_kind { NI_METRIC_COUNTER = 0, NI_METRIC_STICKY, NI_METRIC_GAUGE };

struct ni_metric {
  uint8_t kind;  /* enum ni_metric_kind */
  uint8_t width; /* bits of a counter */
  uint8_t scale; /* so many units are one count: 4 of what counts words of 4 bytes, else 1 */
  const char *unit;
};
struct ni_metric ni_metric_of(enum ni_metric_source source, const char *name);
/* Is it one of the few that are read each second? */
bool ni_metric_short(enum ni_metric_source source, const char *name);

/*
 * What several sources say alike, by one name: tx_bytes, rx_bytes, tx_held (time in which the network kept it
 * from sending), rx_held (it kept the network waiting), ...; NULL: it has none. Where an index is in the
 * pattern several counters have the name, and the largest counts: they are never added.
 */
const char *ni_metric_unified(enum ni_metric_source source, const char *name);

/*
 * What it counts, as words that people read, into out, which it returns: "packets sent in traffic class 3 (0
 * requests, ...)". NULL: nothing is known of it, as of most of what Ethernet's drivers count. Pure; any
 * thread.
 */
enum { NI_METRIC_MEANING = 256 }; /* room enough for any */
const char *ni_metric_meaning(enum ni_metric_source source, const char *name, char *out, size_t size);

struct ni_metric_member {
  const char *group, *unit;
};
/* Group number i, in net_prof's order; NULL behind the last. */
const char *ni_metric_group(size_t i);
/*
 * The next group that a metric of Cassini is in, in net_prof's order: from *at on, which begins at 0. false:
 * no more.
 */
bool ni_metric_next_group(const char *name, size_t *at, struct ni_metric_member *out);

/* net_prof's list of important metrics: number i of it, *id its metric id; NULL behind the last. */
const char *ni_metric_important(size_t i, uint32_t *id);

/*
 * Does a name fit a pattern? '#': one or more digits; '*': anything, also nothing; other letters: themselves.
 */
bool ni_metric_fits(const char *pattern, const char *name);
/* One of several, NULL behind the last? */
bool ni_metric_fits_any(const char *const *pattern, const char *name);

/*
 * Readings, and what lies between two of them. Never a silent 0: what cannot be told has a state that says
 * why.
 *
 *   before, after ─▶ CHANGED  the counter rose by `delta` in `seconds`, perhaps over its end (wrapped)
 *                    LEVEL    a gauge: no rate, `delta` is the difference of two levels
 *                    RESET    it fell, and no number of events that is possible explains that
 *                    STUCK    it stands at its maximum: delta 0 proves nothing
 *                    STALE    the second reading is no newer than the first
 *                    GONE, NEW, UNREADABLE
 *
 * A fall is taken for a wrap where the rise over its end is less than half of the counter's range and no more
 * than the NIC can do in that time; bits of 56 at 1 GHz last 834 days, those of 32 bits minutes.
 */
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
  uint8_t state; /* enum ni_change_state */
  bool wrapped;
  int64_t delta;  /* CHANGED: at least 0, LEVEL: any; else 0 */
  double seconds; /* between the two; 0: not known */
};

/* link_bytes_s: what the entity's link carries, for counters of bytes; 0: not known */
struct ni_change ni_change_of(const struct ni_metric *m, const struct ni_reading *before,
                              const struct ni_reading *after, double link_bytes_s);

/* Per second; 0 where there is no such number. */
static inline double ni_change_rate(const struct ni_change *c) {
  return c->state == NI_CHANGE_CHANGED && c->seconds > 0 ? (double)c->delta / c->seconds : 0;
}

#endif
