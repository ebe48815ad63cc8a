/*
 * The finished operation, as the plugin formats it and the exporter parses it.
 *
 * Plain data, owned by whoever declares it; the strings point into storage that the producer keeps valid for
 * the time stated at the function that hands the record out. One struct serves collectives and P2P: `kind`
 * tells which key names the line uses (coll_* or p2p_*), everything else is the same.
 */
#ifndef NI_RECORD_H
#define NI_RECORD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "names.h"

enum ni_kind { NI_KIND_COLL = 0, NI_KIND_P2P = 1, NI_KIND_COUNT };

/* Who wrote it: the "header" object of a line. */
/* No group of GPUs moves an exabyte a second: what is above was never measured, and no line has it. */
#define NI_BW_MAX_GBS 1e9

struct ni_ident {
  uint64_t comm_hash;    /* header.id, in full */
  const char *comm_name; /* NULL: none given. Hostile text */
  int32_t rank, n_ranks, nnodes;
};

/* Channel events of a verbose record: event_trace_sn, event_trace_ts. Times are Unix us, 0: not stated. */
#define NI_TRACE_MAX 64
struct ni_trace_event {
  int32_t channel;
  uint64_t start_sn, stop_sn, record_sn, start_us, stop_us, record_us;
};

struct ni_trace {
  bool has_sn, has_ts;
  uint64_t start_sn, stop_sn, start_us, stop_us; /* the operation's own bracket */
  uint32_t n, more;                              /* events kept; beyond NI_TRACE_MAX */
  struct ni_trace_event event[NI_TRACE_MAX];
};

/* Which optional fields a record carries; the plugin sets them all, NVIDIA's logs only some. */
enum {
  NI_HAS_EXEC_NS = 1 << 0,
  NI_HAS_ENQUEUE = 1 << 1,
  NI_HAS_GPU_DELTA = 1 << 2,
  NI_HAS_REC_SN = 1 << 3,
  NI_HAS_ROOT = 1 << 4,
  NI_HAS_NCHANNELS = 1 << 5,
  NI_HAS_TESTS_SIZE = 1 << 6,
  NI_HAS_ALGOBW = 1 << 7, /* unset: null, "nan", absent or not measurable */
  NI_HAS_BUSBW = 1 << 8,
  NI_HAS_CALL_SN = 1 << 9,
  NI_HAS_PLAN_SN = 1 << 10,
  NI_HAS_PHASES = 1 << 11,
  NI_HAS_PREV_REPLAY = 1 << 12,
  NI_HAS_PAIR_SN = 1 << 13,
};

/*
 * How a collective became known, where it is not its Coll event: the interface does not show every one as a
 * kernel.
 */
enum ni_src {
  NI_SRC_EVENT = 0,
  NI_SRC_API /* its API call alone */,
  NI_SRC_CE /* copy engine */,
  NI_SRC_COUNT
};
static const char *const ni_src_names[NI_SRC_COUNT] = {"", "api", "ce"};

/*
 * pair_sn from here on: which message is which could not be told, and no other rank has that number for it.
 */
#define NI_PAIR_APART (UINT64_C(1) << 30)

struct ni_record {
  enum ni_kind kind;
  enum ni_timing timing;
  uint32_t has;             /* NI_HAS_* */
  const char *func;         /* as NCCL spells it, never NULL */
  const char *datatype;     /* NULL or "": not stated */
  const char *algo, *proto; /* NULL or "": not stated; P2P has none */
  /* coll_sn: NCCL's counter per communicator and function; p2p_sn: ours per communicator */
  uint64_t sn;
  int32_t root;                 /* collective: root rank (NI_HAS_ROOT); P2P: the peer */
  uint32_t nchannels;           /* channels used; 0 for P2P with the own rank */
  bool nchannels_observed;      /* counted from channel events instead of given by NCCL */
  uint64_t msg_bytes;           /* count x element size, as NVIDIA's inspector has it */
  uint64_t tests_bytes;         /* the size nccl-tests would show (NI_HAS_TESTS_SIZE) */
  uint64_t exec_us;             /* rounded half up, never 0 for a positive time */
  uint64_t exec_ns;             /* NI_HAS_EXEC_NS */
  uint64_t enqueue_ns;          /* Unix ns of the operation's start callback (NI_HAS_ENQUEUE) */
  int64_t gpu_start_delta_ns;   /* GPU start - enqueue in the aligned clock (NI_HAS_GPU_DELTA) */
  uint64_t rec_sn;              /* per process, communicator and kind, given at start (NI_HAS_REC_SN) */
  double algobw_gbs, busbw_gbs; /* 1e9 bytes per second */
  const struct ni_trace *trace; /* writer: NULL: not verbose. The exporter's is in its struct ni_line */
  /* number of the API call on the communicator, over all functions (NI_HAS_CALL_SN) */
  uint64_t call_sn;
  uint64_t plan_sn; /* number of the kernel plan (NI_HAS_PLAN_SN) */
  /* P2P: of all from its sender to its receiver, the same on both sides (NI_HAS_PAIR_SN) */
  uint64_t pair_sn;
  enum ni_src src;
  bool graph; /* replayed from a CUDA graph */
  /* a symmetric kernel; with graph its kernel is not timed (docs/nccl-callbacks.md) */
  bool symmetric;
  bool shared_span;   /* one of several calls in one symmetric kernel: the time is the kernel's */
  const char *kernel; /* NCCL's name of the symmetric kernel; NULL or "": not stated */
  uint64_t user_tag;  /* the application's; 0: untagged */
  uint64_t nccl_tag;  /* a tag that NCCL keeps for itself, without the top bit that says so; 0: none */
  /* Parts of a symmetric kernel; they add up to exec_ns (NI_HAS_PHASES). */
  uint64_t initial_sync_ns, compute_ns, final_sync_ns;
  uint64_t prev_replay_ns; /* since the replay before of the same call began (NI_HAS_PREV_REPLAY) */
};

/* A tag as NCCL gives it. With the top bit it is one that NCCL keeps for itself. */
static inline void ni_split_tag(uint64_t tag, uint64_t *user_tag, uint64_t *nccl_tag) {
  *user_tag = tag >> 63 ? 0 : tag;
  *nccl_tag = tag >> 63 ? tag & INT64_MAX : 0;
}

/* ns -> us as the log has it: rounded half up, 1 for anything positive below. */
static inline uint64_t ni_exec_us(uint64_t exec_ns) {
  uint64_t us = exec_ns / 1000 + (exec_ns % 1000 >= 500);
  return us == 0 && exec_ns > 0 ? 1 : us;
}

#endif
