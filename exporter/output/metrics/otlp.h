/*
 * Metrics as an ExportMetricsServiceRequest of OTLP in protobuf (opentelemetry-proto 1.x): cumulative sums,
 * gauges, histograms with explicit bounds. One thread.
 */
#ifndef NI_METRICS_OTLP_H
#define NI_METRICS_OTLP_H

#include "metrics.h"

/* The request, for free(); NULL without memory. */
void *ni_metrics_otlp(const struct ni_metrics_in *in, size_t *bytes);
/*
 * Of an ExportMetricsServiceResponse: data points that were refused, and why ("" where it says nothing).
 * false: no such message.
 */
bool ni_otlp_refused(const void *response, size_t bytes, uint64_t *points, char *why, size_t cap);

#endif
