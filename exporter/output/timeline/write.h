/*
 * What the timeline says about itself: in otherData of the file, on its processes, and (print.c) on the terminal.
 */
#ifndef NI_TRACE_WRITE_H
#define NI_TRACE_WRITE_H

#include "out.h"
#include "exporter/model/timeline/trace.h"

/* How much text Perfetto opens in a browser, about. */
#ifndef NI_TR_VIEWER_BYTES
#define NI_TR_VIEWER_BYTES 2000000000u
#endif
#define NI_TR_SMALLER "--since, --until, --rank, --host, --comm, --coll and --no-flows make it smaller"

/* One host's clock in words: "clock +1234.567 us, +-3.210 us, drift 0.120 ppm, by 812 collectives with node-a". */
void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size);
/* The object behind "otherData": : start in Unix time, clocks with their errors, what is not in the file. */
void ni_tr_other_data(const struct ni_tr *r, struct ni_tr_out *o);

#endif
