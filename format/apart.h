/*
 * Channels where NCCL's counter and the kernel's have drifted apart: KernelCh then carries another
 * operation's times.
 *
 * A kernel counts every work of a channel and stamps it at that count in a ring of 64; NCCL's host side
 * counts with it and looks where its own count says. Ways in which the host's falls behind, for the life of
 * the communicator:
 *
 *  - A P2P with the own rank is a work on the device, and up to 2.30 the host counts none for it
 *    (addP2pToPlan makes no proxy operation; 2.31 does, and raises KernelCh for it). It is the first of its
 *    group's P2Ps and lies on the channels of round 0: 0 to nChannels - 1 from 2.28 on; before, the bits of
 *    that number are reversed in a width that is not told.
 *  - From 2.31 on NCCL counts only kernels that it raises KernelCh for. So each Broadcast without a Coll
 *    event, which is every plain one unless NCCL_ALLGATHERV_ENABLE=0, and each time that KernelCh was out of
 *    the mask. Seen in the callbacks, a Broadcast one second late, when it is certain that its Coll does not
 *    come.
 *  - Others that cannot be seen in the callbacks (AllGatherV up to 2.30, a graph captured without KernelCh;
 *    callbacks 3.8). They show when a kernel's stamp is older than the launch of the plan before it:
 *    ni_apart_evidence; or, from 2.31 on, older than its own operation's announcement: ni_apart_before_call.
 *    Such a one is not believed; after some of them nothing is for a minute.
 *
 * From then on the stamps that come are those of a work so and so many before, at once and without waiting
 * for the right one: neither GPU time nor the arrival of KernelCh says anything there. So an operation that
 * starts on a communicator with such channels is marked (NI_BAD_COUNTERS_APART), and only its stamps of other
 * channels count; without any, its time is that of the bracket, under the reason counters_apart. Operations
 * are complete as before.
 *
 * Threads: `apart` of the communicator gains bits by whoever starts operations, `apart_shown` is the dump
 * thread's; both are read by starter and poller. Relaxed: the starter's bits come to the poller with the
 * operation's LIVE store, and who sees the dump thread's word late has one operation more or less marked.
 * Pure otherwise.
 */
#ifndef NI_APART_H
#define NI_APART_H

#include <stdbool.h>
#include <stdint.h>

/* "counters_apart" in ni_fallback_names, and the bit of an operation's bad */
#define NI_APART_REASON 6
#define NI_APART_ALL UINT64_MAX
/* what an older stamp must miss the launch by; a wrong one misses by a kernel or more */
#define NI_APART_SLACK_NS 1000000
/* so many operations with such stamps: all that follow are taken for wrong */
#define NI_APART_PROOFS 3
/* for so long: counts stay apart and show it again, a GPU clock that was set back does not */
#define NI_APART_HOLD_NS INT64_C(60000000000)

/*
 * The channels on which a P2P with the own rank may lie. release: ncclGetVersion's number, 0 unknown.
 * channels: the descriptor's nChannels, 0 where it cannot be trusted. Source: NCCL's src/include/channel.h,
 * ncclP2pChannelBaseForRound and src/include/device.h, ncclP2pChannelForPart, 2.27.7 and 2.28.9.
 */
static inline uint64_t ni_apart_of_self(int release, uint32_t channels) {
  uint64_t mask = 0;
  if (channels == 0 || channels > 64)
    return NI_APART_ALL;
  if (release >= 22800)
    return channels == 64 ? NI_APART_ALL : (UINT64_C(1) << channels) - 1;
  for (uint32_t part = 0; part < channels; part++)
    for (uint32_t width = 0; width <= 6; width++) { /* a communicator has 2^width channels for P2P */
      uint32_t reversed = 0;
      if (part >> width)
        continue;
      for (uint32_t bit = 0; bit < width; bit++)
        reversed |= (part >> bit & 1) << (width - 1 - bit);
      mask |= UINT64_C(1) << reversed;
    }
  return mask;
}

/* Is a channel among them? Those from 64 on, which RCCL has, only where all are. */
static inline bool ni_apart_has(uint64_t apart, uint32_t channel) {
  return channel < 64 ? apart >> channel & 1 : apart == NI_APART_ALL;
}

/*
 * bad: of an operation; gpu_start_ns: its earliest start stamp of a channel that is not apart, all ones: none
 * came.
 */
static inline bool ni_apart_only(uint32_t bad, uint64_t gpu_start_ns) {
  return (bad >> NI_APART_REASON & 1) && gpu_start_ns == UINT64_MAX;
}

/*
 * Does a kernel's start lie before the launch of the plan before it? start_ns: GPU clock; offset_ns: host -
 * GPU, an upper bound (format/timing.h), so that start + offset is never too early; drift_ns: how far the
 * clocks may have run since that was confirmed; plan_before_ns: host clock, when an operation of an earlier
 * plan was started, 0 none known.
 */
static inline bool ni_apart_evidence(uint64_t start_ns, int64_t offset_ns, int64_t drift_ns,
                                     uint64_t plan_before_ns) {
  if (plan_before_ns == 0)
    return false;
  int64_t early = (int64_t)(plan_before_ns - (start_ns + (uint64_t)offset_ns));
  return early > NI_APART_SLACK_NS + drift_ns;
}

/*
 * Did a kernel end before its own operation was announced, which is after its launch? A kernel may well be
 * over by then, where the thread that launches was held up in between, so it must miss by more than that
 * takes. stop_ns: GPU clock; started_ns: host clock, when the operation was started, 0: not asked; the rest
 * as above.
 */
#define NI_APART_HELD_UP_NS 20000000
static inline bool ni_apart_before_call(uint64_t stop_ns, int64_t offset_ns, int64_t drift_ns,
                                        uint64_t started_ns) {
  if (started_ns == 0)
    return false;
  int64_t early = (int64_t)(started_ns - (stop_ns + (uint64_t)offset_ns));
  return early > NI_APART_HELD_UP_NS + drift_ns;
}

#endif
