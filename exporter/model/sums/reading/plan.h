/* What is to be read, in which parts and of which time. The main thread, before reading. 0 or -errno, with r->error_text. */
#ifndef NI_SUMMARY_PLAN_H
#define NI_SUMMARY_PLAN_H

#include "exporter/model/sums/state.h"

int ni_plan(struct ni_run *r);
/* Sets since_us and until_us; reads all records where --since or --until are relative to them. */
int ni_resolve_times(struct ni_run *r);

#endif
