/*
 * Metrics as Prometheus reads them: text 0.0.4, or OpenMetrics 1.0.0 with its units and its end. One thread.
 */
#ifndef NI_METRICS_TEXT_H
#define NI_METRICS_TEXT_H

#include <stdio.h>

#include "metrics.h"

/* Values of Content-Type. */
#define NI_METRICS_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define NI_METRICS_OPEN_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Which of the two a header Accept prefers, NULL: none was sent. true: OpenMetrics. Any text; pure. */
bool ni_metrics_wants_open(const char *accept);
/* 0 or -ENOMEM; write errors stay in f. */
int ni_metrics_text(FILE *f, const struct ni_metrics_in *in, bool open);

#endif
