/*
 * The agent's state as metrics: families with their samples, in the order of docs/agent.md, for whoever
 * writes them out.
 *
 *   ni_live, ni_running, ni_agent_self ─▶ ni_metrics_each()
 *       ─▶ ni_metrics_to: text, OpenMetrics (text.c), OTLP (otlp.c)
 *
 * A series is there once: what has equal labels is added up here. At most NI_METRICS_SERIES_MAX series: what
 * comes last in the order is left out then, whole families first of NICs' lesser counters, and
 * nccl_inspector_agent_series_left_out says how many. Of users' jobs what is of the user who has told least
 * comes next, so that one with less than an equal share is told whole. Units are base units: seconds, bytes,
 * ratios from 0 to 1, hertz, watts, celsius.
 *
 * One thread. Nothing is kept. Failure: -ENOMEM.
 */
#ifndef NI_METRICS_H
#define NI_METRICS_H

#include "exporter/model/counters/running.h"
#include "exporter/model/live/live.h"

enum { NI_METRICS_SERIES_MAX = 5000 }; /* a histogram's buckets, sum and count count each */

/* What NCCL's RAS has said (exporter/agent/ras_watch.h). */
struct ni_agent_ras {
  bool asked, there;                 /* asked: the settings say so; there: the newest question was answered */
  uint64_t answered, failed, age_ns; /* age: of the newest answer */
  uint64_t communicators, odd;
  uint64_t ranks, absent, unresponsive, dead; /* of communicators that make sense */
  uint64_t behind, still_ns;                  /* behind: in communicators that stand still */
};

/* The agent about itself. */
struct ni_agent_self {
  const char *node, *version;
  uint64_t began_ns;                            /* Unix ns */
  uint64_t cpu_ns, resident_bytes, descriptors; /* with its readers */
  uint64_t samples, samples_missed, samples_lost, ring_bytes;
  uint64_t reader_restarts, users_left_out, state_lost, state_errors, state_saved_ns, clock_steps;
  /* requests; refused: data points, by partial success */
  uint64_t otlp_sent, otlp_retried, otlp_dropped, otlp_refused;
  uint64_t scrapes, requests_refused;
  uint64_t head_sent, head_acknowledged, head_lost, head_kept; /* samples; kept: now */
  int64_t head_skew_ns;                                        /* Unix clock here against the head's */
  bool head, head_connected;                                   /* head: there is to be one */
  struct ni_agent_ras ras;
  bool degraded; /* the disk does not take what it should */
};

struct ni_metrics_in {
  const struct ni_live *live;
  const struct ni_running *running; /* NULL: nothing is sampled */
  const struct ni_agent_self *self;
  uint64_t unix_ns, mono_ns; /* now */
  bool nvidia;               /* NVIDIA's names, too */
  /* as running some seconds ago, with the same texts, for rates; NULL: none */
  const struct ni_running *before;
};

enum ni_metrics_type { NI_METRICS_COUNTER = 0, NI_METRICS_GAUGE, NI_METRICS_HISTOGRAM, NI_METRICS_INFO };
struct ni_family {
  const char *name; /* without _total, _info; its unit at the end */
  const char *unit; /* "seconds", "bytes", ...; "" */
  const char *help;
  enum ni_metrics_type type;
};
struct ni_label {
  const char *name, *value;
};
struct ni_metrics_hist {
  const double *edge;     /* n upper edges, in units; one more bucket holds what is above */
  const uint64_t *bucket; /* n + 1, not cumulative */
  size_t n;
  double sum;
  uint64_t count;
};

struct ni_metrics_to {
  void *to;
  void (*family)(void *to, const struct ni_family *f); /* only of those with samples */
  void (*value)(void *to, const struct ni_label *label, size_t n, double v);
  /* of counters that are whole numbers */
  void (*whole)(void *to, const struct ni_label *label, size_t n, uint64_t v);
  void (*hist)(void *to, const struct ni_label *label, size_t n, const struct ni_metrics_hist *h);
};
/* 0 or -ENOMEM. */
int ni_metrics_each(const struct ni_metrics_in *in, const struct ni_metrics_to *to);

#endif
