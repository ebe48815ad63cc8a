/*
 * counters.html: one page with what two sweeps say, to be opened from disk or sent around; made as
 * report.html is (exporter/output/report/page_file.h): one file, nothing loaded, all texts shown as text. The
 * data are the JSON of `counters summarize`, so the page is about as large as that and 0.7 MB.
 *
 * One call at a time. Everything stays with the caller. Same view, same bytes.
 */
#ifndef NI_COUNTERS_PAGE_H
#define NI_COUNTERS_PAGE_H

#include "view.h"

/*
 * Rates over time, for the page's last picture: n samples of each line, in units a second, NAN where there is
 * none.
 */
struct ni_counters_line {
  const char *entity, *counter, *unit;
  const double *rate;
};
struct ni_counters_series {
  const double *seconds; /* since the first sample */
  const struct ni_counters_line *line;
  size_t n, n_lines;
};

/*
 * Writes the page to path (replaced if it exists). series NULL: there is none. 0; -ENOTSUP: built without
 * npm, so there is no page; -ENOMEM; -errno of open or write, and then no file is left.
 */
int ni_counters_page(const struct ni_counters_view *v, const struct ni_counters_series *series,
                     const char *path);

#endif
