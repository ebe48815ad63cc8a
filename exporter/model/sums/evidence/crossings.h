/*
 * Congestion in sampled logs: collectives across hosts one by one, by when they were and how long their
 * transfer took.
 *
 * Where own time is not known there are no steps, so no bins of steps either. But a collective's least
 * duration is its transfer, whoever came late, and is known of each that was kept. Those of one
 * communicator, function and size are beside their own lower quartile, since half of the run can be slow.
 * Time is cut so that each bin has a few. A bin in which nearly all of them take longer is crowded, if most
 * communicators across hosts, or the one that has all ranks, do so.
 *
 * What it costs is told by the clock: numbers of operations say how far the job came, also where records
 * are left out. In crowded bins it took so much longer for as many numbers as in the others. So it does
 * not matter what computing hides.
 *
 * Bounds: NI_CROSSINGS_MAX; of more, one of 2, 4, ... is kept, by what it is. Whatever order they come in,
 * the same ones stay. Not where a team reads the logs: nobody has all of them. Threads: a list belongs to
 * one. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_CROSSINGS_H
#define NI_SUMMARY_CROSSINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_CROSSINGS_MAX (1u << 17)

struct ni_crossing {
  int64_t at_us; /* Unix us, of its last rank's start */
  uint64_t sn;
  uint32_t comm, cell; /* indices in the result */
  float us;            /* least duration over its ranks */
};

struct ni_crossings {
  struct ni_crossing *item;
  size_t n, cap;
  uint64_t stride; /* 0, 1: all are there */
};

int ni_crossings_add(struct ni_crossings *l, const struct ni_crossing *x);
int ni_crossings_merge(struct ni_crossings *to, const struct ni_crossings *from);
void ni_crossings_free(struct ni_crossings *l);

struct ni_summary;
struct ni_congestion {
  double ratio;           /* times as long as otherwise; 0: there is no congestion */
  double lost_us;         /* by the clock */
  double crowded_us;      /* how long it was so, in all */
  int64_t from_us, to_us; /* Unix us: the first and the last of it */
  uint32_t spells;
  bool lasts;    /* it begins in the run and is there to the end: something broke */
  uint32_t comm; /* the one with the most records of those that are slow */
  /* all these communicators have ranks on so many hosts, whose NICs would look the same; the first of them */
  uint32_t hosts, host;
};
/* The main thread; s->crossing is there. Puts it in order. */
int ni_crossings_find_congestion(struct ni_summary *s, struct ni_congestion *out);

#endif
