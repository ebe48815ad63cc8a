/*
 * The simulated core's side of the profiler interface: finding the plugin and calling it as a given release
 * would.
 *
 * The rest of nccl-sim speaks v7 descriptors only. This room translates them to the version the plugin was
 * found with, with the omissions and the garbage that NCCL's own translations have, and with native behaviour
 * where the release speaks that version itself (v4 on 2.27, v5 on 2.28, v6 on 2.29 and 2.30, v7 on 2.31
 * and 2.32).
 *
 * State: one `struct ni_core` per process, as NCCL's globals are: the library (loaded at the first
 * communicator, counted, closed with the last, a failure is final), and the activation mask, one int whose
 * address every init receives. Threads: load and unload under a lock; calls from any thread. Ownership:
 * handles and contexts belong to the plugin. Failure: load returns false with a reason on stderr; results of
 * callbacks are ignored, as NCCL ignores them.
 */
#ifndef NI_SIM_CORE_H
#define NI_SIM_CORE_H

#include <nccl/profiler_abi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "sim.h"

enum ni_poison { NI_POISON_AA, NI_POISON_PLAUSIBLE }; /* what unfilled p2p.nChannels holds: 0xAA, or 1 to 8 */

enum ni_call { /* what the call counters count */
               NI_CALL_INIT,
               NI_CALL_START,
               NI_CALL_STOP,
               NI_CALL_RECORD,
               NI_CALL_FINALIZE,
               NI_CALL_COUNT
};

struct ni_core {
  int release;         /* as ncclGetVersion gives it: 23007 is 2.30.7 */
  bool rccl;           /* RCCL of that number: docs/rccl.md */
  int want_interface;  /* 0: the newest both sides know */
  const char *library; /* --plugin; NULL: NCCL_PROFILER_PLUGIN and its rules */
  enum ni_poison poison;
  bool quiet; /* the plugin's log messages are not shown */
  /* below: set by this room */
  pthread_mutex_t lock;
  int interface; /* 1..7; 0: not loaded */
  int refs;
  bool failed; /* sticky, as in NCCL */
  /* up to 2.27: an init failed and the profiler pointer is null for the whole process */
  _Atomic bool gone;
  _Atomic bool filled; /* translated versions: function pointers exist only after an init that returned 0 */
  void *dl;
  const void *vtable;
  /* where the library has it; relaxed on both sides: a flag word, nothing is published through it */
  _Atomic int *mask;
  /* what RAS has been told to make of the mask, plus 1; 0: nothing. relaxed, as the mask */
  _Atomic int ras;
  _Atomic uint64_t calls[NI_CALL_COUNT]; /* relaxed: read after all threads were joined */
  _Atomic uint64_t starts[16];           /* by event bit */
  /* network transfers shown to the plugin, however often each was started */
  _Atomic uint64_t steps, step_bytes;
  /* network operations shown so late that the plugin need not know their parent */
  _Atomic uint64_t late_net;
  _Atomic uint64_t null_handles[16]; /* starts that left the handle NULL, by event bit */
};

extern struct ni_core ni_core;

/*
 * Has a P2P with the own rank no KernelCh? Seen on 2.31.2 and 2.32.3: from 2.31 on it has as many as its
 * nChannels says.
 */
static inline bool ni_core_self_silent(int release) { return release < 23100; }
/*
 * Is p2p.nChannels handed over? The translation to v4 of 2.28 and later leaves it out, and v4 is the first
 * that has it.
 */
static inline bool ni_core_p2p_channels(int release, int interface) {
  return interface >= 5 || (interface == 4 && release >= 22703 && release < 22800);
}
/*
 * What is new with 2.31: a thread of its own looks at every KernelCh at each pass and not only at the first
 * of each chain; the host counts only works with KernelCh in their mask; symmetric kernels have brackets;
 * CollNet announces its channels; the mask is read once a group.
 */
static inline bool ni_core_new(int release) { return release >= 23100; }
/*
 * What RCCL has that NCCL of the same number has not: 256 channels, of which the descriptor's byte says 0;
 * stamps in ticks of 10 ns; a mask that lies in librccl.so.1; "unknown" for a communicator without a name;
 * names of files that begin with librccl-profiler. 2.28 has v6, with ProxyDiag at bit 15: its updates are
 * state 31 of proxy operations, whose descriptors are longer.
 */
enum { NI_RCCL = 1000000, NI_SIM_CHANNELS = 256, NI_RCCL_TICK_NS = 10 };
#define NI_EV_PROXY_DIAG 0x8000    /* of RCCL's v6 */
#define NI_ST_PROXY_DIAG_UPDATE 31 /* likewise */

/* Parses "2.27", "2.30.7", "23007"; with "rccl-" before it, RCCL's: NI_RCCL more. Returns the number or 0. */
int ni_core_release(const char *text);
/* Becomes that release. RCCL's mask lies in test/rccl/librccl.so.1 beside the program; NI_SIM_MASK_IN names
 * another file with an int ncclProfilerEventMask, for any release. */
void ni_core_become(int release);
/* A stamp in ns. */
static inline uint64_t ni_core_stamp_ns(uint64_t stamp);
static inline bool ni_core_has_diag(int mask);
/* Channels that a work may use. */
static inline int ni_core_channels(void);
/* Newest interface of a release: 1..7. */
int ni_core_newest(int release);
/* True when the release speaks this interface itself, without a translation. */
bool ni_core_native(int release, int interface);

/* One more user. True when a plugin is there. */
bool ni_core_load(void);
/* One user less; closes the library with the last. */
void ni_core_unload(void);

struct ni_comm_ident {
  const char *name; /* NULL: none */
  uint64_t hash;
  int n_nodes, n_ranks, rank;
};

/* ni_core_init returns the plugin's result, 0 when there is no plugin. */
int ni_core_init(void **ctx, const struct ni_comm_ident *id);
void ni_core_finalize(void *ctx);
/* v1 to v3 carry this with every Coll and P2p that the calling thread raises from here on. */
void ni_core_who(const struct ni_comm_ident *id);
/* `d` is filled by the caller for its type; *handle is left as it was when the event is not forwarded, but
 * for those that the translations of 2.31 take away: KernelPhase through v6 and the copy engine through v5
 * get NULL. */
void ni_core_start(void *ctx, void **handle, struct ni_prof_descr_v7 *d);
void ni_core_stop(void *handle);
void ni_core_record(void *handle, enum ni_prof_state state, const union ni_prof_state_v4 *args);
/* An update of RCCL's ProxyDiag on a proxy operation's handle. */
void ni_core_diag(void *handle);
/* RAS's CONTROL PROFILER_MASK: writes the mask behind the plugin's back, and again after every later init. */
void ni_core_ras(int mask);
/* The calling thread's counts are added to ni_core's; called before a thread ends. */
void ni_core_flush_counts(void);

static inline uint64_t ni_core_stamp_ns(uint64_t stamp) {
  return ni_core.rccl ? stamp * NI_RCCL_TICK_NS : stamp;
}
static inline bool ni_core_has_diag(int mask) {
  return ni_core.rccl && ni_core.interface == 6 && (mask & NI_EV_PROXY_DIAG);
}
static inline int ni_core_channels(void) { return ni_core.rccl ? NI_SIM_CHANNELS : 64; }

static inline int ni_core_mask(void) { return atomic_load_explicit(ni_core.mask, memory_order_relaxed); }

/* What NCCL derives from a mask (callbacks 4.2): which events a task with this latched mask raises. */
static inline bool ni_wants_group(int m) {
  return m &
      (NI_EV_GROUP | NI_EV_COLL | NI_EV_P2P | NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_KERNEL_CH |
       NI_EV_NET_PLUGIN);
}
static inline bool ni_wants_coll(int m) {
  return m & (NI_EV_COLL | NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_KERNEL_CH | NI_EV_NET_PLUGIN);
}
/* 2.27 does not derive P2p from the NetPlugin bit. */
static inline bool ni_wants_p2p(int m, int release) {
  int bits = NI_EV_P2P | NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_KERNEL_CH;
  if (release >= 22800)
    bits |= NI_EV_NET_PLUGIN;
  return m & bits;
}
static inline bool ni_wants_proxy_op(int m) {
  return (m & (NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_NET_PLUGIN)) || ni_core_has_diag(m);
}
static inline bool ni_wants_proxy_step(int m) {
  return (m & (NI_EV_PROXY_STEP | NI_EV_NET_PLUGIN)) || ni_core_has_diag(m);
}
static inline bool ni_wants_group_api(int m) {
  return m & ~NI_EV_PROXY_CTRL & ~NI_EV_KERNEL_PHASE & NI_EV_ALL;
}
static inline bool ni_wants_coll_api(int m) {
  return m &
      (NI_EV_COLL_API | NI_EV_COLL | NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_KERNEL_CH | NI_EV_NET_PLUGIN |
       NI_EV_CE_COLL | NI_EV_CE_SYNC | NI_EV_CE_BATCH);
}
static inline bool ni_wants_p2p_api(int m) {
  return m &
      (NI_EV_P2P_API | NI_EV_P2P | NI_EV_PROXY_OP | NI_EV_PROXY_STEP | NI_EV_KERNEL_CH | NI_EV_NET_PLUGIN);
}

#endif
