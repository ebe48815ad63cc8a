/* Tables of the page. */
#ifndef NI_PAGE_TABLES_H
#define NI_PAGE_TABLES_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/* Communicators, hosts, processes, outliers, slices. */
void ni_page_tables_write(struct ni_json *j, const struct ni_summary *s);

#endif
