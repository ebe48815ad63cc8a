/*
 * How fast a job goes, from counters that grow by leaps: a log is written once a second, by each process at
 * its own moment, and samples are taken oftener or rarer than that.
 *
 *   counters of a sample ─▶ another value: a leap ─▶ rate from the newest leap back to the last one that is
 *                        │                           RATE_NS or more before it
 *                        └▶ the same value: the rate goes on, and is 0 when nothing came for twice as long as
 *                           leaps are apart, 2 s at least
 *
 * So a rate is over whole writes of the log, and what a sample of no news says is what the last one said. The
 * first leap after a silence is counted as over one usual distance of leaps, since zeros were told before. A
 * job's first leap has no rate (NaN), if it was not seen long ago: what it is a write after is not known, and
 * of counters of 0 not whether its log had only not been read yet. Nor has one whose counters went back: it
 * counts anew. The mean bus bandwidth is over the same leaps; in silence there is none.
 *
 * Samples of one client, in the order of their times. One thread a struct; for ni_rates_free().
 */
#ifndef NI_RATES_H
#define NI_RATES_H

#include "exporter/session/sample.h"

struct ni_rates { /* all 0: no job is known */
  struct ni_rates_job *of;
  size_t n;
};
/* Fills in the rates of the sample's jobs; without memory they are NaN. */
void ni_rates_take(struct ni_rates *r, struct ni_sample *s);
void ni_rates_free(struct ni_rates *r);

#endif
