/*
 * Times of several hosts on one clock (exporter/model/clocks/hosts.h), where summary's records come out of
 * their segments.
 *
 * Segments, marks and partial results hold times as logs have them, so shards can be read without knowing of
 * each other. Once all accounts are together (ni_build_begin()) each process gets its host's clock, or none
 * where its times are right; whoever reads a segment puts the entries right as they come, and all behind sees
 * one clock. Where nobody's clock is off nothing is done.
 *
 * Threads: ni_right_clocks() by the main thread; what it sets is read-only then.
 */
#ifndef NI_SUMMARY_RIGHT_CLOCKS_H
#define NI_SUMMARY_RIGHT_CLOCKS_H

#include "exporter/model/sums/state.h"

/*
 * After all is read, before anything is compared: r->clocks, each process's clock, times of marks and the
 * run's first and last. All ranks of a team; those other than 0 hear of rank 0 what it found. 0 or -errno.
 */
int ni_right_clocks(struct ni_run *r);

/*
 * Puts the times of one entry right. c may be NULL; w: of the entries before it, of one member and cell by
 * their numbers.
 */
static inline void ni_right_entry(const struct ni_host_clock *c, struct ni_clock_walk *w,
                                  struct ni_entry *e) {
  if (!c) return;
  const int64_t was = ni_time_ns(e->start_ns, e->dump_us), is = ni_clock_right(c, w, was);
  if (e->start_ns != NI_NO_START) e->start_ns = is;
  if ((int64_t)e->dump_us > (was - is) / 1000)
    e->dump_us = (uint64_t)((int64_t)e->dump_us - (was - is) / 1000);
}

#endif
