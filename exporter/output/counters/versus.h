/*
 * Two runs beside each other, by what their counters did a second: a run's length decides nothing. Counters
 * that moved in one run alone count, too. What has no number in one of them (reset, gone, unreadable) is
 * counted and left out.
 *
 * One thread fills it; then any may read.
 */
#ifndef NI_COUNTERS_VERSUS_H
#define NI_COUNTERS_VERSUS_H

#include "view.h"

struct ni_versus_row {
  const struct ni_entity *of; /* NULL: summed over all entities of the source that both runs have */
  uint8_t source;
  const char *name;
  struct ni_metric what;
  double rate[2]; /* good, bad; in units a second */
  double unusual; /* doublings between them (model/counters/rank.h) */
};

struct ni_versus {
  const struct ni_counters_view *run[2]; /* good, bad */
  struct ni_versus_row *row, *sum;       /* those that differ, the most unusual first */
  size_t n_rows, n_sums, without_number;
};

/*
 * min_diff: a second, in units; differences below it are left out. false: no memory. Views and texts are
 * borrowed.
 */
bool ni_versus_make(struct ni_versus *out, const struct ni_counters_view *good,
                    const struct ni_counters_view *bad, double min_diff);
void ni_versus_free(struct ni_versus *v);

/*
 * The finding of run `which` that the other run has not: the next one, from *at on, which begins at 0. NULL:
 * no more.
 */
const struct ni_counter_finding *ni_versus_new(const struct ni_versus *v, int which, size_t *at);

void ni_versus_print(const struct ni_versus *v, unsigned top);
void ni_versus_json(const struct ni_versus *v, FILE *f);

#endif
