/*
 * What `counters summarize` and `counters diff` show of two sweeps: what became of each counter, what that
 * means, and in which order to look at it. Read once, then only shown: terminal, JSON, CSV.
 *
 * One thread fills a view; then any may read.
 */
#ifndef NI_COUNTERS_VIEW_H
#define NI_COUNTERS_VIEW_H

#include <stdio.h>

#include "exporter/input/netprof/sweep.h"
#include "exporter/model/counters/rank.h"
#include "figures.h"

enum { NI_COUNTERS_TOP = 20 }; /* net_prof's */

struct ni_counters_view {
  struct ni_sweep sweep[2]; /* before, after */
  struct ni_pair pair;
  struct ni_counter_findings findings;
  struct ni_ranked *ranked; /* by place in the pair */
  /* of each NIC and GPU, in the order of use: what is unusual, then the busiest */
  struct ni_figures *figures;
  size_t n_figures;
  /* all entities of the pair, in the order of their figures; then those that have none */
  uint32_t *in_use;
  uint64_t changed; /* counters: net_prof's total_non_zero */
  /* something is in one sweep alone, could not be read, or is no newer afterwards */
  bool incomplete;
};

/*
 * Two sweeps, or, after NULL, the JSON of `counters summarize`. false: why says which file, what is wrong
 * with it and where; nothing is to be freed then.
 */
bool ni_counters_view_read(struct ni_counters_view *v, const char *before, const char *after, char *why,
                           size_t cap);
/*
 * The same of sweeps that are in v->sweep already, all else being 0. false without memory: free it then as
 * well.
 */
bool ni_counters_view_make(struct ni_counters_view *v);
void ni_counters_view_free(struct ni_counters_view *v);

/*
 * What a counter counts, into room of NI_METRIC_MEANING: words that say so too where only its driver knows.
 * Returns out.
 */
const char *ni_counter_meaning(unsigned source, const char *name, char *out);
/* "none", "changed", "level", "reset", "stuck", ...: of enum ni_change_state. */
const char *ni_change_name(unsigned state);
/* "healthy: ...", or how many findings and the first one. Returns out. */
const char *ni_counters_verdict(const struct ni_counters_view *v, char *out, size_t size);

/* top: rows a table; groups: also net_prof's groups, NIC by NIC. */
void ni_counters_print(const struct ni_counters_view *v, unsigned top, bool groups);
void ni_counters_json(const struct ni_counters_view *v, FILE *f);
/* A finding, an object in an array that is open. */
struct ni_json;
void ni_counters_json_finding(struct ni_json *j, const struct ni_counter_finding *f);
/* One row a counter, those that did not change as well. */
void ni_counters_csv(const struct ni_counters_view *v, FILE *f);

#endif
