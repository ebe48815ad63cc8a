/*
 * Events that are not operations, in flight: API calls, launches, brackets, copy-engine parts, proxy
 * operations.
 *
 * They live in the arena as operations do (op.h): a state word first, `next` at the same place, so that pools
 * and lists serve both. Two sizes: 128 bytes for an event with a start and a stop, 512 for a proxy operation
 * with up to eight network transfers in flight (NCCL_STEPS, callbacks 3.3).
 *
 *   free ──start──▶ LIVE ──stop──▶ LIVE|CLOSED, on the done list ──line in the block──▶ free, generation + 1
 *                     └─ API call: a Coll or P2p names it ─▶ + SEEN_KERNEL, a CeColl ─▶ + SEEN_CE
 *
 * Threads. An event is started and stopped by one thread of NCCL (network plugin events perhaps by two, one
 * after the other). The stop's exchange that sets CLOSED is the one that pushes, so a second stop changes
 * nothing. SEEN_* is set by compare-exchange on the living generation, by the starter of the operation. All
 * fields of a proxy operation are its progress thread's, written by plain (relaxed) stores and handed over
 * with the push; the walk at the end of a communicator may read those of one that never stopped. Nothing here
 * is a pointer.
 */
#ifndef NI_EVENT_SLOT_H
#define NI_EVENT_SLOT_H

#include "arena.h"
#include "format/events.h"

enum {
  NI_EVS_LIVE = NI_OP_LIVE, /* the walks look at both kinds of slot */
  NI_EVS_CLOSED = 1 << 1,
  NI_EVS_SEEN_KERNEL = 1 << 2, /* of an API call: its operation came as Coll or P2p */
  NI_EVS_SEEN_CE = 1 << 3,
};

/* ni_event.flags; constant after start */
enum {
  NI_EVF_ASKED = 1 << 0,   /* is to be written */
  NI_EVF_GRAPH = 1 << 1,   /* under stream capture */
  NI_EVF_EXPECT = 1 << 2,  /* of a CollApi: a Coll event was asked for, so that none coming means something */
  NI_EVF_SEND = 1 << 3,    /* proxy operation, step */
  NI_EVF_FOREIGN = 1 << 4, /* served for another process */
  NI_EVF_PARENT = 1 << 5,  /* the fields of the parent are there */
  NI_EVF_BOOL = 1 << 6,    /* isComplete, useIntraSync */
};

/* What a network transfer waits for. */
enum {
  NI_PH_NONE = 0,
  NI_PH_GPU_PRODUCE,
  NI_PH_PEER_CREDIT,
  NI_PH_WIRE,
  NI_PH_FLUSH,
  NI_PH_GPU_CONSUME,
  NI_PH_COUNT
};
#define NI_STEPS_IN_FLIGHT 8u

/* What an event slot holds beside its times; by kind. */
struct ni_ev_api {
  uint64_t stream;
  union {
    uint64_t start_end; /* groupapi: ticks, 0: not seen */
    uint64_t user_tag;  /* collapi, p2papi, ce; 0: untagged */
  };
  uint64_t end_begin; /* groupapi: ticks, 0: not seen */
  uint64_t group;     /* handle of the GroupApi, as given to NCCL; 0: none */
  int32_t root;
  int32_t depth;
  uint32_t seen_ms; /* dump thread: when it first waited for the call's Coll */
  uint32_t op_slot; /* with seen_ms: the call in the black box (call_drain.h); 0: in none */
  uint32_t noted;   /* 1: it still waits in its cell, too (call_cell.h) */
};
struct ni_ev_step {
  uint64_t phase[NI_PH_COUNT - 1]; /* ticks in each, from NI_PH_GPU_PRODUCE on */
  int32_t step, peer;
  uint32_t step_sn;
};
struct ni_ev_net {
  int64_t v[4]; /* ib: device, opcode, qp, wr_id; socket: fd, op */
  uint32_t type, updates;
  int32_t step;
  uint32_t version;
};
struct ni_ev_part {
  _Atomic int64_t n; /* sync: ranks; batch: operations; proxyctrl: appended */
  uint32_t state;    /* proxyctrl: the first one */
};

struct ni_ev_chan {        /* a KernelCh, chan_more.h: never a line of its own */
  _Atomic uint64_t parent; /* as ni_chan_cell.open */
  _Atomic uint64_t start_ns, stop_ns;
  _Atomic uint8_t channel;
  _Atomic uint8_t anothers; /* as ni_chan_cell.anothers */
};

struct ni_event_slot {
  _Atomic uint64_t state;
  _Atomic uint32_t next;
  uint32_t comm_page; /* 0: no communicator of this process */
  uint8_t kind;       /* enum ni_event */
  /* NI_EVF_*; a ProxyCtrl's ASKED comes with its state: release, with sn and part before it */
  _Atomic uint8_t flags;
  uint8_t channel;
  uint8_t func, datatype, text; /* numbers of the intern table */
  uint8_t parent_kind;
  uint8_t pad;
  uint64_t sn; /* ev_sn; without NI_EVF_ASKED meaningless */
  uint64_t ticks_start;
  uint64_t ticks_stop;
  uint64_t number; /* call_sn, plan_sn, ce_sn, proxy_op_sn, group_sn */
  uint64_t group;  /* group_sn + 1, 0: none; steps: parent_sn */
  uint64_t count;  /* elements; bytes of steps, batches, net events */
  union {
    struct ni_ev_api api;
    struct ni_ev_step step;
    struct ni_ev_net net;
    struct ni_ev_part part;
    struct ni_ev_chan chan;
  };
};
_Static_assert(sizeof(struct ni_event_slot) == NI_SLOT_BYTES, "one slot");
_Static_assert(offsetof(struct ni_event_slot, next) == offsetof(struct ni_op, next),
               "pools and lists serve both");

/* Four slots, so that an object never straddles pages: the first word of a page, which the dump thread
 * touches ahead of the callbacks, is then a state word, an atomic. */
#define NI_PROXY_SLOTS 4u
struct ni_proxy_slot {
  _Atomic uint64_t state;
  _Atomic uint32_t next;
  uint32_t comm_page;
  uint8_t kind; /* NI_EVENT_PROXY_OP */
  _Atomic uint8_t flags;
  uint8_t channel;
  uint8_t func;        /* of the parent, with NI_EVF_PARENT */
  uint8_t parent_kind; /* enum ni_kind */
  uint8_t steps_asked; /* single steps get lines */
  uint8_t pad[2];
  int32_t peer, n_steps, chunk, pid, rank;
  _Atomic uint32_t n_started, n_completed, n_dropped;
  uint32_t pad2;
  uint64_t sn; /* 64: ev_sn */
  uint64_t parent_sn, parent_rec_sn;
  uint64_t ticks_start, ticks_stop;
  _Atomic uint64_t ticks_progress;
  _Atomic uint64_t bytes, max_step;
  _Atomic uint64_t sum[NI_PH_COUNT - 1]; /* 128: ticks by phase */
  /* NI_PH_*: what an open step waits for; NI_PH_NONE: no step is open here */
  _Atomic uint8_t phase[NI_STEPS_IN_FLIGHT];
  uint16_t step_low[NI_STEPS_IN_FLIGHT];
  _Atomic uint64_t step_start[NI_STEPS_IN_FLIGHT]; /* 192 */
  uint64_t step_last[NI_STEPS_IN_FLIGHT];          /* 256: when its phase began */
  uint32_t step_slot[NI_STEPS_IN_FLIGHT];          /* 320: event slot of its line; 0: none */
  int32_t step_no[NI_STEPS_IN_FLIGHT];
  uint64_t spare[16]; /* 384 */
};
_Static_assert(sizeof(struct ni_proxy_slot) == NI_PROXY_SLOTS * NI_SLOT_BYTES, "four slots");
_Static_assert(offsetof(struct ni_proxy_slot, next) == offsetof(struct ni_op, next),
               "pools and lists serve both");
_Static_assert(offsetof(struct ni_proxy_slot, kind) == offsetof(struct ni_event_slot, kind),
               "the drain asks both");
_Static_assert(offsetof(struct ni_proxy_slot, flags) == offsetof(struct ni_event_slot, flags),
               "the drain asks both");

static inline struct ni_event_slot *ni_arena_event(const struct ni_arena *a, uint32_t slot) {
  return (struct ni_event_slot *)(void *)ni_arena_op(a, slot);
}
static inline struct ni_proxy_slot *ni_arena_proxy(const struct ni_arena *a, uint32_t slot) {
  return (struct ni_proxy_slot *)(void *)ni_arena_op(a, slot);
}

#endif
