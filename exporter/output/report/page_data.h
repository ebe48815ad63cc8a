/*
 * The data of report.html: struct ni_summary as one JSON document, cut to what a page can hold.
 *
 * Each part has a budget of its own (page_json.h), so the whole stays below NI_REPORT_DATA_MAX_BYTES whatever
 * the number of ranks, communicators and sizes. A part that is cut says so: "left_out" beside its rows counts
 * what is missing, and the page shows it. Tables are {"cols":[...],"rows":[[...]],"left_out":n}.
 *
 * Threads: pure, any. Ownership: nothing is kept. Failure: -ENOMEM; write errors stay in the FILE (ferror).
 */
#ifndef NI_PAGE_DATA_H
#define NI_PAGE_DATA_H

#include <stdio.h>

#include "exporter/model/sums/model.h"
#include "exporter/output/plot/render.h"

#define NI_PAGE_SCHEMA "nccl-inspector-report-1"

int ni_page_data_write(FILE *f, const struct ni_summary *s, const struct ni_render_options *options);

#endif
