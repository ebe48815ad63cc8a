/*
 * From what each cell came to, in whatever order threads finished, to the result in its order.
 *
 * Threads: main only, after the join phase. Ownership: what is moved into the summary is the summary's; the
 * rest of a result goes with ni_cell_result_free(), which may be called twice. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_FIGURES_GATHER_H
#define NI_SUMMARY_FIGURES_GATHER_H

#include "cell_figures.h"

struct ni_slices {
  struct ni_slice *item;
  size_t n, cap;
};

/* One cell's share of the result; `group` of slices and outliers counts within the cell. */
struct ni_cell_result {
  struct ni_group *group;
  uint32_t n_groups;
  size_t cap_groups;
  struct ni_mix *mix;
  size_t n_mix, cap_mix;
  struct ni_slices comm, process, host, log_group;
  struct ni_outlier *outlier;
  uint32_t n_outliers;
  size_t cap_outliers;
};

/* Groups, mixes, slices and outliers of all cells, in order of cells; outliers by loss, all of them:
 * incidents.h and findings.h look at more than are shown. Empties `result`. */
int ni_figures_gather(struct ni_summary *s, struct ni_cell_result *result, const struct ni_sums *t);
/* Sums by process and communicator, and the heat map. */
void ni_figures_spread(struct ni_summary *s, const struct ni_sums *t, const int64_t *heat_ppm);
void ni_cell_result_free(struct ni_cell_result *x, const struct ni_summary *s);

#endif
