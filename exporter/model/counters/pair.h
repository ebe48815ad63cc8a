/*
 * Two sweeps side by side: what each counter did in between.
 *
 *   set, reading[] before + set, reading[] after ─▶ rows, entity by entity, each with its change (metric.h)
 *
 * A counter or an entity that only one sweep has is a row as well: GONE or NEW, never a number. The pair
 * borrows the texts of both sets, which must outlive it. Pure; any thread.
 */
#ifndef NI_PAIR_H
#define NI_PAIR_H

#include "exporter/base/index.h"
#include "exporter/collect/set.h"

struct ni_pair_row {
  uint32_t entity; /* in pair->entity */
  const char *name;
  struct ni_metric what;
  struct ni_reading before, after; /* MISSING of the sweep that has it not */
  struct ni_change change;
};

struct ni_pair_entity {
  const struct ni_entity *of; /* after's, where both have it */
  bool in_before, in_after;
  uint32_t first, n; /* rows */
  uint32_t changed;  /* of them: CHANGED or LEVEL, as net_prof counts what is not zero */
  uint32_t resets;
  bool reloaded;  /* half of its counters or more fell: its driver was loaded anew */
  double seconds; /* between its readings, the median; 0: not known */
};

struct ni_pair {
  struct ni_pair_entity *entity; /* by source, then by name as people count */
  struct ni_pair_row *row;       /* of an entity: as after has them, then those that only before has */
  size_t n_entities, n_rows;
  double seconds;          /* the longest of an entity */
  struct ni_index by_name; /* of row, by entity and name */
};

/* 0 or -ENOMEM. ni_pair_free() frees it. */
int ni_pair_make(struct ni_pair *out, const struct ni_set *before_set, const struct ni_reading *before,
                 const struct ni_set *after_set, const struct ni_reading *after);
void ni_pair_free(struct ni_pair *p);

/* The row of a counter by its name; NULL: the entity has none. */
const struct ni_pair_row *ni_pair_row(const struct ni_pair *p, uint32_t entity, const char *name);

/* The entity of that source and name; NULL: neither sweep has it. */
const struct ni_pair_entity *ni_pair_entity_of(const struct ni_pair *p, const struct ni_entity *e);

/* In units (bytes, not words of them) a second; 0 where there is no such number. */
double ni_pair_rate(const struct ni_pair_row *r);
/* The upper one of two in the middle; puts them in order. NAN of none. */
double ni_pair_median(double *of, size_t n);
/* Cycles: share of time, 0 to 1. Bytes of a link: share of what it carries. NAN: neither. */
double ni_pair_share(const struct ni_pair *p, const struct ni_pair_row *r);

#endif
