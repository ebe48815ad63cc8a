/*
 * What is read of the logs when a part of the job is asked for: by --since, --until, --rank, --node or
 * --comm.
 *
 * Each log has a map (granules.h), from the index or made just now; both are the same, so what is read is the
 * same, with an index and without. Of a granule that is not wanted its kept lines are taken, in its place. A
 * log without a map is read whole.
 *
 *   accounts and maps (atlas.h) -> NI_TR_WHO: kept lines of all granules, who is there, what is shown
 *   -> NI_TR_MATCH: granules whose operations tell the clocks apart -> align
 *   -> NI_TR_DRAW: granules that can be seen
 *
 * Times are asked for in the clock of the reference, and a host's own may be off. MATCH does not know by how
 * much yet: it takes what runs within NI_TR_CLOCK_NS of the window. If that does not align all hosts, or one
 * is off by more, it is done again with everything. Hosts under NTP or PTP are within milliseconds, so a
 * second is far enough; and it is little to read. DRAW knows the clocks, and takes NI_TR_CLOCK_NS more than
 * is seen: GPU times are put right by up to that.
 *
 * A loss is drawn from the record before to the record after, so that what lies within is not taken for
 * idleness. Its line is written within a tick of the loss, among records that came before and after. So the
 * granules around the line with operations of that member and kind are wanted, up to and with the first that
 * lies NI_TR_CLOCK_NS away from it, to either side, if what they span can be seen. Others are `away`: they
 * are not drawn, for the records next to them are not read.
 */
#ifndef NI_TRACE_CHOOSE_H
#define NI_TRACE_CHOOSE_H

#include "trace.h"

#define NI_TR_CLOCK_NS INT64_C(1000000000)

/* Is a part asked for? With --with, everything is read: kernels of the whole run tell that file's clock. */
bool ni_tr_is_choosing(const struct ni_tr_options *o);
/* Before the first pass: r->log of r->atlas. 0 or -ENOMEM. */
int ni_tr_choose_begin(struct ni_tr *r);
/* For NI_TR_MATCH (r->windowed: about the window alone) and, once clocks are aligned, NI_TR_DRAW. */
void ni_tr_choose(struct ni_tr *r, enum ni_tr_pass pass);
void ni_tr_choose_free(struct ni_tr *r);

/*
 * After that of NI_TR_DRAW: adds the granules around losses that can be seen to those that are wanted, and
 * says which are `away`. 0 or -ENOMEM.
 */
int ni_tr_choose_losses(struct ni_tr *r);
/* Can what runs from begin to end, by the host's clock, be seen? matching: nobody knows the clocks yet. */
bool ni_tr_touches(const struct ni_tr *r, uint32_t host, bool matching, int64_t begin, int64_t end);
/* The first member of the name that a context of the map has; NI_TR_NONE: of nobody. */
static inline uint32_t ni_tr_first_of(const struct ni_tr *r, const struct ni_tr_log *x, uint32_t context) {
  return x->member[context] == NI_TR_NONE ? NI_TR_NONE : r->member[x->member[context]].first;
}

#endif
