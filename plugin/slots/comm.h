/*
 * One communicator: a few pages of the arena, written by callbacks, read by the dump thread.
 *
 *   FREE ──init──▶ LIVE ──finalize──▶ CLOSING
 *        ──dump thread: drained, final lines written──▶ FREE, generation + 1
 *
 * Groups of fields by writer, each on cache lines of its own: identity (init, then constant), starter
 * (application thread and graph host function, so read-modify-write), poller (one thread: plain load and
 * store), done list, and counters of rare things (any callback). What only the dump thread needs lies in
 * ni_comm_writer, outside the arena.
 *
 * A context given to NCCL is a tag of page and generation; a tag whose generation has passed is refused
 * without touching anything (NCCL sends ProxyCtrl with a finalized parent's context, callbacks 4.4).
 */
#ifndef NI_COMM_H
#define NI_COMM_H

#include "call_cell.h"
#include "done_list.h"
#include "slot_pool.h"
#include "event_store.h"
#include "plugin/os/gpu_id.h"
#include "format/record.h"
#include "format/names.h"

#define NI_COMM_NAME_BYTES 256u

/* Is it known who the communicator is? With v1 to v3 its first operation says so. */
enum { NI_IDENT_GIVEN = 0, NI_IDENT_UNKNOWN, NI_IDENT_WRITING, NI_IDENT_KNOWN };

/* of the number in a GroupApi's handle, and whether it is open */
#define NI_USER_GROUP_MASK ((UINT64_C(1) << 33) - 1)

enum ni_comm_phase { NI_COMM_FREE = 0, NI_COMM_LIVE = 1, NI_COMM_CLOSING = 2 };

/* One of the chains of a channel, and the KernelCh that is open on it: the first, where there are several
 * (chan_more.h). On the device works of a chain start and stop in their order. Up to NCCL 2.30 so do their
 * KernelChs. One cache line. */
struct ni_chan_cell {
  /* operation of that KernelCh: slot << 28 | generation; 0: none */
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t open;
  _Atomic uint32_t number; /* of that KernelCh on this cell; its handle carries it */
  _Atomic uint32_t prev_group;
  _Atomic uint32_t forgot;   /* ni_comm.forget as this cell last saw it */
  _Atomic uint32_t anothers; /* 1: the open KernelCh brings another work's stamps (format/apart.h) */
  _Atomic uint64_t start_ns, stop_ns;
  _Atomic uint64_t prev_start_ns, prev_stop_ns;
};

struct ni_gap_mark {
  _Atomic uint64_t first; /* rec_sn + 1 of the first loss since the dump thread's last look; 0: none */
  _Atomic uint64_t last;  /* rec_sn + 1 of the last */
};

/* Account of what the dump role decided. Plain words: one writer, and aligned, so that a reader of the black
 * box sees them old or new. Each is raised after the state of the slots it counts has changed
 * (docs/internals/blackbox.md). */
struct ni_account {
  uint64_t written;    /* on disk */
  uint64_t judged_out; /* filtered after the end, by timing source */
  uint64_t incomplete;
  uint64_t lost_write;
  uint64_t fallback[NI_FALLBACK_COUNT];
};

struct ni_comm_kind {
  struct ni_pool pool;
  _Atomic uint64_t started; /* every operation announced; the next rec_sn */
  _Atomic uint64_t filtered[NI_FILTER_COUNT];
  _Atomic uint64_t dropped[NI_DROP_OF_PLUGIN];
  _Atomic uint64_t late;
  struct ni_gap_mark gap[NI_DROP_OF_CALLBACKS];
  _Alignas(NI_CACHE_LINE) struct ni_account account; /* dump role */
};

struct ni_comm {
  /* identity */
  _Atomic uint64_t state; /* generation 32 | enum ni_comm_phase 8 */
  uint64_t hash;
  uint32_t page;
  /* ni_g.mask_off[mask_id] at its init: another number now means that KernelCh was off in its life */
  uint32_t mask_off;
  uint32_t index; /* in the process's registry; bit of the dirty map */
  int32_t rank, n_ranks, n_nodes;
  uint8_t has_name;
  uint8_t mask_id; /* ni_g.mask[]: which NCCL's activation mask it follows */
  char name[NI_COMM_NAME_BYTES];
  uint64_t init_ns; /* Unix ns */
  uint64_t init_ticks;
  struct ni_gpu_id gpu; /* index -1, "": not known */
  /* dump role, for the black box: what it knows of the GPU clock (struct ni_gpu_relation) */
  _Alignas(NI_CACHE_LINE) int64_t fit_offset_ns;
  uint64_t fit_at_ns, fit_samples;
  uint8_t poisoned;
  /* 1: stamps of this communicator have contradicted the host (format/apart.h) */
  _Atomic uint8_t apart_shown;
  _Atomic uint32_t ident; /* NI_IDENT_* */
  int32_t late_rank;
  uint64_t late_hash;
  /* starter */
  _Alignas(NI_CACHE_LINE) _Atomic uint32_t group_ord; /* Groups announced */
  /* operations with an unknown channel count, newest first */
  _Atomic uint32_t watch;
  /* user_group.h; starter, plain stores. Release at its end, acquire there */
  _Atomic uint64_t user_group;
  /* Group of the newest symmetric kernel, and the first of its calls: slot << 28 | generation */
  _Atomic uint32_t head_group;
  /* both by plain stores of whoever starts operations of that Group: one thread */
  _Atomic uint64_t head;
  struct ni_pool annexes; /* annex.h */
  /* channels whose device stamps may be another work's (format/apart.h); only ever gains bits */
  _Atomic uint64_t apart;
  _Alignas(NI_CACHE_LINE) struct ni_comm_kind kind[NI_KIND_COUNT];
  /* poller */
  _Alignas(NI_CACHE_LINE) _Atomic uint32_t newest_group; /* newest Group ordinal seen on the device */
  /* raised by the dump thread: stamps that the cells measure by were found impossible */
  _Atomic uint32_t forget;
  /* KernelChs that are open beside another of their chain (chan_more.h) */
  struct ni_pool more;
  /* met by poller, starter and dump thread */
  _Alignas(NI_CACHE_LINE) struct ni_done_list done;
  _Atomic uint64_t stray[NI_STRAY_COUNT];
  struct ni_event_store events;
  struct ni_call_cell call[NI_CALL_CELLS]; /* starter; by number */
  /* 2 x channel + (1: Recv, 0: Send or collective) */
  _Alignas(NI_CACHE_LINE) struct ni_chan_cell cell[2 * NI_CHANNELS];
};
_Static_assert(sizeof(struct ni_comm) <= NI_COMM_PAGES * NI_PAGE_BYTES, "its pages hold a communicator");

static inline uint64_t ni_comm_state(uint32_t gen, enum ni_comm_phase phase) {
  return gen | (uint64_t)phase << 32;
}
static inline enum ni_comm_phase ni_comm_phase_of(uint64_t state) {
  return (enum ni_comm_phase)(uint8_t)(state >> 32);
}

static inline struct ni_comm *ni_arena_comm(const struct ni_arena *a, uint32_t page) {
  return (struct ni_comm *)ni_arena_page(a, page);
}

#endif
