/*
 * Counters of NICs, GPUs and the host as totals that only grow, from sample to sample: a wrap is added back,
 * a reset adds nothing.
 *
 *   set, readings of a sample ─▶ ni_running_add() ─▶ total of each counter, level of each gauge
 *
 * A counter begins at what it shows first. One that is not in the next sample's set keeps its total for when
 * it comes back. What lies between two readings is told as everywhere (ni_change_of()). One thread.
 * Ownership: ni_running_free().
 */
#ifndef NI_RUNNING_H
#define NI_RUNNING_H

#include "exporter/base/index.h"
#include "exporter/collect/set.h"

struct ni_running_value {
  char entity[64], name[96]; /* "cxi0", "hni_tx_paused_1"; longer ones are cut */
  char pci[32], about[128];  /* of the entity; "": not known */
  struct ni_metric what;
  double link_bytes_s; /* of the entity; 0: not known */
  uint64_t total;      /* of a counter, in units (scale taken in); of a gauge its level, as int64_t */
  uint64_t resets;
  struct ni_reading last;
  /*
   * Of several of an entity with one unified name (metric.h) the one that rose most counts, sample by sample.
   */
  /* the place of the first of them, which has their sum; its own: it is that one, or has no such name */
  uint32_t lead;
  uint64_t alike, rise; /* of the first: the sum; the most of this sample, while it is taken */
  uint8_t source;       /* enum ni_metric_source */
  bool known;           /* it has a number in the newest sample */
};

struct ni_running {               /* all 0: empty */
  struct ni_running_value *value; /* by source, entity, name as they came */
  size_t n, cap;
  struct ni_index index;
  int64_t at_ns; /* Unix: of the newest sample; 0: none yet */
};

/* 0 or -ENOMEM: r is as it was. */
int ni_running_add(struct ni_running *r, const struct ni_set *set, const struct ni_reading *reading,
                   int64_t at_ns);
void ni_running_free(struct ni_running *r);

#endif
