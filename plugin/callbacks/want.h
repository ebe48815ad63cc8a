/*
 * How many KernelCh events an operation will have: decided once, at its start (docs/architecture.md,
 * completion).
 *
 * Pure; any thread.
 */
#ifndef NI_WANT_H
#define NI_WANT_H

#include <stdbool.h>
#include <string.h>

#include "format/record.h"
#include "plugin/slots/op.h"

struct ni_want {
  enum ni_kind kind;
  uint8_t nchannels;     /* of the descriptor; garbage for P2P through the v4 translation of 2.28 to 2.30 */
  uint8_t most_channels; /* of the library (format/library.h) */
  /* P2P with the communicator's own rank, in a release that raises no KernelCh for it */
  bool self;
  bool p2p_channels_valid; /* interface v5 or later, or a native v4 core (2.27) */
  bool kernel_ch;          /* KernelCh is in the mask now */
  bool never;              /* nor has it ever been, in this process */
  bool symmetric;          /* a symmetric kernel: NCCL 2.31 and later */
  bool captured;           /* replayed from a graph */
  bool call_known;         /* its API call is, so that `captured` says something */
};

/*
 * A symmetric kernel is timed unless it was captured: then it announces channels and raises none (callbacks
 * 3.9). Its first call has all its channels, the others have 0. Without a call nobody knows whether it was
 * captured.
 */
static inline uint32_t ni_want_of_symmetric(const struct ni_want *w) {
  if (w->captured || w->nchannels == 0)
    return 0;
  if (!w->kernel_ch && w->never)
    return 0; /* 2.32 announces channels all the same */
  if (!w->kernel_ch || !w->call_known || w->nchannels > w->most_channels)
    return NI_WANT_UNKNOWN;
  return w->nchannels;
}

/* 0: finished at its stop; 1..254: that many; NI_WANT_UNKNOWN: the dump thread judges. */
static inline uint32_t ni_want_channels(const struct ni_want *w) {
  if (w->self)
    return 0;
  if (ni_unlikely(w->symmetric))
    return ni_want_of_symmetric(w);
  if (!w->kernel_ch && w->never)
    return 0;
  /* it may have been on when the task was made or the graph captured */
  if (!w->kernel_ch)
    return NI_WANT_UNKNOWN;
  /* the byte is never read */
  if (w->kind == NI_KIND_P2P && !w->p2p_channels_valid)
    return NI_WANT_UNKNOWN;
  /* CollNet says 0, up to 2.30; 256 is 0 */
  if (w->nchannels == 0 || w->nchannels > w->most_channels)
    return NI_WANT_UNKNOWN;
  return w->nchannels;
}

/* Which releases hand p2p.nChannels over. version: ncclGetVersion's number, 0 when it was not found. */
static inline bool ni_p2p_channels_valid(int interface, int version) {
  return interface >= 5 || (interface == 4 && version >= 22703 && version < 22800);
}

/* Is it NCCL 2.31 or later? version: as above; where it was not found, interface v7 tells. */
static inline bool ni_is_2_31(int interface, int version) {
  return version >= 23100 || (version == 0 && interface >= 7);
}

/* Has a P2P with the own rank no KernelCh? 2.31 is the first release that raises them. */
static inline bool ni_self_is_silent(int interface, int version) { return !ni_is_2_31(interface, version); }

/* From 2.31 on NCCL counts only kernels of tasks that were made with KernelCh on, and the device counts all:
 * who takes it away and asks for it again shifts the counts of the communicator's kernels against each other
 * (callbacks 3.8). */
static inline bool ni_mask_shifts_counts(int interface, int version) {
  return ni_is_2_31(interface, version);
}

/* May the KernelChs of two works of a channel come in another order than the works ran? Up to 2.30 only the
 * first of a chain is polled; from 2.31 on all of them are, at every pass. */
static inline bool ni_polls_in_any_order(int interface, int version) {
  return ni_is_2_31(interface, version);
}

/* Has a release symmetric kernels with Coll events? One whose number is not known may have. */
static inline bool ni_shows_symmetric(int version) { return version == 0 || version >= 23100; }

/* Can KernelChs be over before the network operations of the same operation begin? From 2.31 on they come
 * from a thread of their own, which is given its work first; before, both came from the progress thread, and
 * network operations first. */
static inline bool ni_channels_overtake(int interface, int version) { return ni_is_2_31(interface, version); }

#endif
