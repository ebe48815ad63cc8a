#ifndef NI_PAGE_HEAT_H
#define NI_PAGE_HEAT_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/*
 * The heat map under key "heat": {"rows","bins","run","left_out","cells":base64}; row i is process i. One byte a cell:
 * 0 nothing, else 128 + 24 * log2(ratio): a step is 3 %, 1/32 .. 32 fit. Bins are merged in equal runs, weighted
 * by their counts, when rows x bins would be too many.
 */
int ni_page_heat_write(struct ni_json *j, const struct ni_summary *s);

#endif
