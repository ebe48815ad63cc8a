/*
 * What the counters mean: sentences from thresholds (rules.def), each with entity, counter, difference, rate
 * and what to do.
 *
 * Healthy machines are silent but for INFO, of which a rule says one for all entities. Worst first; a link
 * that went down outranks all. A finding borrows the pair. Pure; any thread.
 */
#ifndef NI_COUNTER_VERDICT_H
#define NI_COUNTER_VERDICT_H

#include "pair.h"

enum ni_level { NI_LEVEL_INFO = 0, NI_LEVEL_WARNING, NI_LEVEL_CRITICAL };

struct ni_counter_finding {
  uint8_t level;                 /* enum ni_level */
  uint16_t rule;                 /* its row in rules.def: its rank */
  uint32_t of;                   /* the entity in the pair */
  const char *id;                /* one word for programs: "held-by-fabric" */
  const char *entity;            /* "cxi3" */
  const struct ni_pair_row *row; /* the proof; NULL where an entity as a whole is meant (gone, reloaded) */
  int64_t delta;                 /* counts */
  double rate, share;            /* a second, in units; of time or link, NAN: none */
  double badness;                /* how many times the rule's limit */
  /* a sentence: entity, what it means, counter, difference, rate. Safe to print. */
  char *text;
  const char *advice; /* what to do, as a sentence */
};

struct ni_counter_findings {
  struct ni_counter_finding *finding;
  size_t n, cap;
  size_t n_faults; /* of them: worse than INFO; they come first */
};

/* 0 or -ENOMEM: then there are none. ni_counter_findings_free() frees them. */
int ni_counter_findings_make(struct ni_counter_findings *out, const struct ni_pair *p);
void ni_counter_findings_free(struct ni_counter_findings *f);

/* "info", "warning", "critical" */
const char *ni_level_name(unsigned level);

#endif
