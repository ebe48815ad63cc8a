/*
 * All mutable global state of the plugin, in one object.
 *
 * It lies in pages marked MADV_WIPEONFORK, so in a child of fork (or of a raw clone without CLONE_VM) every
 * byte reads zero: `armed` is 0, callbacks and exit handlers do nothing, locks are unlocked, no thread is
 * believed to run. The child's own first init then starts from nothing. The memory the parent's pointers
 * named is lost to the child, which is the price of never touching a lock that another thread held at the
 * fork.
 */
#ifndef NI_STATE_H
#define NI_STATE_H

#include <pthread.h>

#include "plugin/slots/box/box.h"
#include "extra.h"
#include "format/library.h"
#include "plugin/os/clock.h"
#include "comm.h"
#include "plugin/settings/config.h"
#include "intern.h"
#include "late.h"
#include "plugin/os/log.h"

#define NI_MAX_COMMS 65536u
/* copies of libnccl in one process; more share the last place's judgement "on" */
#define NI_MAX_MASKS 4u
#define NI_WIPE_ALIGN 65536u /* the largest page size of aarch64 */

struct ni_dump; /* plugin/dump/dump.h */

struct ni_global {
  /* ---- read by every callback ---- */
  _Atomic uint32_t
      armed; /* NI_ARMED from the first init of this process on, release there, acquire in the callbacks; and
                             what they do beside recording (extra.h) */
  uint8_t interface;          /* N of the ncclProfiler_vN that NCCL chose */
  uint8_t self_is_silent;     /* a P2P with the own rank has no KernelCh (completion rule) */
  uint8_t p2p_channels_valid; /* p2p.nChannels carries NCCL's value (completion rule) */
  /* a mask without KernelCh, and then with, spoils device times (completion rule) */
  uint8_t mask_shifts_counts;
  uint8_t shows_symmetric;    /* symmetric kernels have Coll events */
  uint8_t polls_in_any_order; /* KernelChs of a channel may come in another order than their works ran */
  uint8_t enable_p2p;
  uint8_t most_channels; /* an operation may announce so many (format/library.h) */
  uint8_t wake_on_push;  /* interval 0 */
  enum ni_clock_source tick_source;
  uint64_t min_size_bytes;
  uint64_t nonce;
  /* KernelCh has been asked of an NCCL in this process; else no operation has channels */
  _Atomic uint8_t kernel_ch_ever;
  /* each NCCL in the process has one activation mask; written before the communicator */
  int *mask[NI_MAX_MASKS];
  /* raised when KernelCh is seen to be off. Relaxed: who misses it judges as before */
  _Atomic uint32_t mask_off[NI_MAX_MASKS];
  _Atomic int mask_seen[NI_MAX_MASKS]; /* what we wrote there last, or found and told; under the lock */
  _Atomic uint32_t kinds;              /* what is recorded (events.h); written under the lock */
  _Atomic uint8_t verbose;             /* records get a trace of every channel */
  struct ni_arena arena;
  struct ni_traces traces;

  /* ---- met by callbacks and the dump thread ---- */
  /* interval 0: the dump thread sleeps and wants a wake */
  _Alignas(NI_CACHE_LINE) _Atomic uint32_t sleeping;
  /* futex: raised to wake the dump thread */
  _Atomic uint32_t wake_word;
  /* strays that belong to no communicator */
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t stray[NI_STRAY_COUNT];
  /* communicators whose done list became non-empty */
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t dirty[NI_MAX_COMMS / 64];
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t group_sn; /* GroupApi events of the process */
  struct ni_event_store detached;                    /* events of no communicator */
  struct ni_late_ring late;
  struct ni_intern intern;

  /* ---- init, finalize, exit ---- */
  pthread_mutex_t lock; /* registry; never held during I/O */
  uint8_t configured;   /* settings were read */
  /* ENABLE is 0, or the process could not be set up: nothing is ever recorded */
  uint8_t off;
  _Atomic uint8_t leaving;           /* the exit handlers run; pairs with armed, see at_exit */
  _Atomic uint32_t live;             /* communicators between init and finalize; written under the lock */
  _Atomic uint32_t refused_comms;    /* communicators that could not be taken in */
  uint64_t no_wait_before_ns;        /* CLOCK_MONOTONIC: init does not wait for memory until then */
  uint32_t mask_users[NI_MAX_MASKS]; /* communicators between init and finalize by their NCCL */
  uint32_t next_index;
  uint32_t *free_index; /* stack of registry indices given back */
  uint32_t n_free_index, cap_free_index;
  int nccl_version; /* e.g. 23007, 0 unknown */
  enum ni_library library;
  enum ni_gpu_trust gpu_clock;
  uint32_t gpu_khz; /* of the GPU's clock: callbacks keep its ticks, the dump thread makes ns of them */
  struct ni_config config;
  struct ni_log log;
  struct ni_clock clock; /* dump role; callbacks use tick_source only */
  struct ni_dump *dump;
  struct ni_keeper box;
};

union ni_global_pages {
  _Alignas(NI_WIPE_ALIGN) struct ni_global g;
  unsigned char pages[(sizeof(struct ni_global) + NI_WIPE_ALIGN - 1) / NI_WIPE_ALIGN * NI_WIPE_ALIGN];
};
/* Hidden, so that an address is a constant: no look-up, whatever the linker does. */
extern __attribute__((visibility("hidden"))) union ni_global_pages ni_global_pages;
#define ni_g (ni_global_pages.g)

#endif
