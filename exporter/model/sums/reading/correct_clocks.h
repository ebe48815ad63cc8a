/*
 * Times of several GPUs and hosts on one clock (stamps.h, exporter/model/clocks/hosts.h), where summary's
 * records come out of their segments.
 *
 * Segments, marks and partial results hold times as logs have them, so shards can be read without knowing of
 * each other. Once all accounts are together (ni_build_begin()) each process gets its host's clock, or none
 * where its times are right; whoever reads a segment puts the entries right as they come, and all behind sees
 * one clock. A GPU's stamp becomes a time of its host first. Where nobody's clock is off nothing is done.
 *
 * Threads: ni_correct_clocks() by the main thread; what it sets is read-only then.
 */
#ifndef NI_SUMMARY_CORRECT_CLOCKS_H
#define NI_SUMMARY_CORRECT_CLOCKS_H

#include "exporter/model/sums/state.h"

/*
 * The clocks of one rank's records of one function. clock NULL: the host's times are right; turns NULL:
 * nobody set it.
 */
struct ni_stream_clock {
  const struct ni_stamps_log *stamps; /* NULL: its GPU times are right */
  const struct ni_host_clock *clock;
  const struct ni_clock_turns *turns;
};

/* Of what that member did in that cell. After ni_correct_clocks(); what it points to lives as long as r. */
struct ni_stream_clock ni_stream_clock(const struct ni_run *r, uint32_t member,
                                       const struct ni_sum_cell *cell);

/*
 * After all is read, before anything is compared: r->clocks, each process's clock, times of marks and the
 * run's first and last. All ranks of a team; those other than 0 hear of rank 0 what it found. 0 or -errno.
 */
int ni_correct_clocks(struct ni_run *r);

/* Puts the times of one entry of that piece right. */
static inline void ni_correct_entry(const struct ni_stream_clock *c, const struct ni_piece *p,
                                    struct ni_entry *e) {
  if (c->stamps)
    ni_correct_stamp(c->stamps, p, e);
  if (!c->clock)
    return;
  const int64_t was = ni_time_ns(e->start_ns, e->dump_us);
  const int64_t is = ni_clock_right(c->clock, c->turns, e->sn, was);
  if (e->start_ns != NI_NO_START)
    e->start_ns = is;
  if ((int64_t)e->dump_us > (was - is) / 1000)
    e->dump_us = (uint64_t)((int64_t)e->dump_us - (was - is) / 1000);
}

#endif
