/*
 * The terminal's tables of counters beside collectives. Main thread; nothing where the input has no counters.
 */
#ifndef NI_SUMMARY_COUNTERS_H
#define NI_SUMMARY_COUNTERS_H

#include "exporter/model/sums/model.h"

void ni_print_beside(const struct ni_summary *s, FILE *f);

#endif
