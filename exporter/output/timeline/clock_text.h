/* One host's clock in words, for the file and the terminal alike. Pure; any thread. */
#ifndef NI_TRACE_CLOCK_TEXT_H
#define NI_TRACE_CLOCK_TEXT_H

#include "exporter/model/timeline/trace.h"

/* "clock: +1234.567 us to the reference, error below 3.210 us, drift 0.120 ppm (812 collectives with node-a)". */
void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size);

#endif
