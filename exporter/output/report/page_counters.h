/*
 * NICs and GPUs beside the collectives, as the page has them: "devices" and their lines over the run. Any
 * thread.
 */
#ifndef NI_PAGE_COUNTERS_H
#define NI_PAGE_COUNTERS_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/* Keys of the open object; empty tables where the input has no counters. */
void ni_page_counters_write(struct ni_json *j, const struct ni_summary *s);

#endif
