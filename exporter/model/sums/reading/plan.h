/*
 * What is to be read, in which parts and of which time. The main thread, before reading. 0 or -errno, with
 * r->error_text.
 */
#ifndef NI_SUMMARY_PLAN_H
#define NI_SUMMARY_PLAN_H

#include "exporter/model/sums/state.h"

int ni_plan_reading(struct ni_run *r);
/*
 * Sets since_us and until_us; where --since or --until are relative to the records, it reads their times
 * first. With an index (r->atlas, opened before ni_plan_reading()) it is this that plans what is read of
 * each file.
 */
int ni_resolve_times(struct ni_run *r);

/*
 * The earliest and the latest time of all records of a plan, in Unix us; both 0 where there is none. Reads
 * all files; stop as of struct ni_scan_team. Main thread. 0, -ENOMEM.
 */
int ni_record_times(const struct ni_scan_plan *plan, unsigned jobs, bool (*stop)(void *), void *arg,
                    int64_t *first_us, int64_t *last_us);

#endif
