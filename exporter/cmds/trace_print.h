/*
 * What a timeline says about itself: on the terminal, as JSON, and in otherData of its file. Main thread.
 */
#ifndef NI_TRACE_PRINT_H
#define NI_TRACE_PRINT_H

#include "exporter/model/timeline/trace.h"
#include "exporter/output/timeline/out.h"

/* Behind that records have no start time: what makes whoever wrote the logs state it; "": nothing. */
const char *ni_tr_start_advice(const struct ni_tr *r);
void ni_tr_print(const struct ni_tr *r);
void ni_tr_print_json(const struct ni_tr *r);
/*
 * The object behind "otherData": : start in Unix time, clocks with their errors, what is not in the file. For
 * ni_tr_write().
 */
void ni_tr_other_data(const struct ni_tr *r, struct ni_tr_out *o);
bool ni_tr_incomplete(const struct ni_tr *r);

#endif
