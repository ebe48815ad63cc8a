/* Tables of the page, and its heat map. */
#ifndef NI_PAGE_TABLES_H
#define NI_PAGE_TABLES_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/* Communicators, hosts, processes, outliers, slices, ranks over time. 0 or -ENOMEM. */
int ni_page_tables_write(struct ni_json *j, const struct ni_summary *s);

#endif
