/*
 * One event of the timeline between emit and write, and tracks to put it on.
 *
 * An event is built in a struct ni_tr_event, packed into the sort, and unpacked when its turn comes. Its
 * arguments are pairs of a key from one table and a number (or the number of a name). Arrows are named by
 * kind and a 64-bit hash that both ends work out by themselves from the log (struct ni_tr_arrow).
 *
 * A track is what one row of the timeline is called. Events of one track that overlap go to lanes of their
 * own (write.c); on tracks of calls what lies inside another stays on its lane, as calls do.
 *
 * One thread. Failure: -ENOMEM, -ENOSPC (4 million names).
 */
#ifndef NI_TRACE_EVENT_H
#define NI_TRACE_EVENT_H

#include "exporter/model/timeline/trace.h"

enum ni_tr_value { NI_TR_U64, NI_TR_I64, NI_TR_TEXT, NI_TR_HEX, NI_TR_HASH, NI_TR_BW, NI_TR_US, NI_TR_BOOL };

/* name, form; in the order of the enum below. */
/* clang-format off */
#define NI_TR_KEYS(X) \
  X(SN, "sn", U64) \
  X(REC_SN, "rec_sn", U64) \
  X(CALL_SN, "call_sn", U64) \
  X(PLAN_SN, "plan_sn", U64) \
  X(GROUP_SN, "group_sn", U64) \
  X(BYTES, "bytes", U64) \
  X(TESTS_BYTES, "nccl_tests_bytes", U64) \
  X(BUSBW, "busbw_gbs", BW) \
  X(ALGO, "algo", TEXT) \
  X(PROTO, "proto", TEXT) \
  X(DATATYPE, "datatype", TEXT) \
  X(ROOT, "root", I64) \
  X(PEER, "peer", I64) \
  X(CHANNELS, "channels", U64) \
  X(CHANNEL, "channel", U64) \
  X(TIMING, "timing", TEXT) \
  X(PLACED, "placed_by", TEXT) \
  X(COMM, "comm", HASH) \
  X(RANK, "comm_rank", I64) \
  X(RANKS, "comm_ranks", I64) \
  X(WAITED, "from_enqueue_us", US) \
  X(CAUSE, "cause", TEXT) \
  X(COUNT, "count", U64) \
  X(FROM, "rec_sn_from", U64) \
  X(TO, "rec_sn_to", U64) \
  X(WHY, "why", TEXT) \
  X(STATE, "state", TEXT) \
  X(STARTED, "channels_started", U64) \
  X(STOPPED, "channels_stopped", U64) \
  X(EXPECTED, "channels_expected", I64) \
  X(OPEN, "channels_open", HEX) \
  X(FUNC, "func", TEXT) \
  X(TEXT, "text", TEXT) \
  X(STREAM, "stream", HEX) \
  X(GRAPH, "graph", BOOL) \
  X(SEEN, "seen", TEXT) \
  X(DEPTH, "depth", U64) \
  X(STEPS, "steps", U64) \
  X(STEPS_DONE, "steps_completed", U64) \
  X(STEP, "step", U64) \
  X(GPU_PRODUCE, "gpu_produce_us", US) \
  X(PEER_CREDIT, "peer_credit_us", US) \
  X(WIRE, "wire_us", US) \
  X(FLUSH, "flush_us", US) \
  X(GPU_CONSUME, "gpu_consume_us", US) \
  X(MAX_STEP, "max_step_us", US) \
  X(QUEUED, "queued_us", US) \
  X(PID, "origin_pid", I64) \
  X(OPS, "ops", U64) \
  X(EVENTS, "events", TEXT) \
  X(NET_PEER, "net_peer", I64) \
  X(NET_CHANNEL, "net_channel", I64) \
  X(NET_STATE, "net_state", TEXT) \
  X(PROXY_SN, "proxy_op_sn", U64) \
  X(CE_SN, "ce_sn", U64) \
  X(VALUE, "value", BW) \
  X(UNIT, "unit", TEXT) \
  X(USER_TAG, "user_tag", U64) \
  X(TAG, "tag", TEXT) \
  X(SYMMETRIC, "symmetric", BOOL) \
  X(KERNEL, "kernel", TEXT) \
  X(SHARED, "shared_span", BOOL) \
  X(INITIAL_SYNC, "initial_sync_us", US) \
  X(COMPUTE, "compute_us", US) \
  X(FINAL_SYNC, "final_sync_us", US) \
  X(AT_MOST, "at_most_us", US)
/* clang-format on */

enum ni_tr_key_id {
#define X(id, name, form) NI_TR_K_##id,
  NI_TR_KEYS(X)
#undef X
      NI_TR_KEY_COUNT
};

/* COUNTER: its track is a number in ni_tr.device */
enum ni_tr_phase { NI_TR_SLICE, NI_TR_INSTANT, NI_TR_COUNTER };
enum ni_tr_category {
  NI_TR_C_COLL,
  NI_TR_C_P2P,
  NI_TR_C_CHANNEL,
  NI_TR_C_ENQUEUE,
  NI_TR_C_OPEN,
  NI_TR_C_LOSS,
  NI_TR_C_LIFE,
  NI_TR_C_MARK,
  NI_TR_C_API,
  NI_TR_C_LAUNCH,
  NI_TR_C_NET,
  NI_TR_C_PROXY,
  NI_TR_C_COUNTER,
  NI_TR_C_PYTORCH,
  NI_TR_C_PHASE,
  NI_TR_C_COUNT
};

/* What an arrow is from and to. */
enum ni_tr_arrow_kind {
  NI_TR_A_ENQUEUE,
  NI_TR_A_CALL,
  NI_TR_A_GROUP,
  NI_TR_A_LAUNCH,
  NI_TR_A_NET,
  NI_TR_A_POST,
  NI_TR_A_COUNT
};
struct ni_tr_arrow {
  uint64_t id;
  uint8_t kind, out; /* out: begins here */
};

enum { NI_TR_ARGS_MAX = 32, NI_TR_ARROWS_MAX = 4 };
struct ni_tr_event {
  int64_t ts, dur; /* aligned Unix ns */
  uint32_t track, name;
  uint8_t phase, category, n_args, n_arrows; /* up to here as it lies in the sort */
  uint8_t key[NI_TR_ARGS_MAX];
  uint64_t value[NI_TR_ARGS_MAX];
  /* of a PHASE: one whose id is the end of what it is a part of */
  struct ni_tr_arrow arrow[NI_TR_ARROWS_MAX];
};

static inline void ni_tr_u64(struct ni_tr_event *e, enum ni_tr_key_id k, uint64_t v) {
  if (e->n_args == NI_TR_ARGS_MAX)
    return;
  e->key[e->n_args] = (uint8_t)k;
  e->value[e->n_args++] = v;
}
static inline void ni_tr_i64(struct ni_tr_event *e, enum ni_tr_key_id k, int64_t v) {
  ni_tr_u64(e, k, (uint64_t)v);
}
/* BW; US, given in us: not when NaN */
void ni_tr_f64(struct ni_tr_event *e, enum ni_tr_key_id k, double v);
/* NULL, "": left out */
int ni_tr_text(struct ni_tr *r, struct ni_tr_event *e, enum ni_tr_key_id k, const char *text);
/* The tag of a call, and what it is called; 0: nothing. */
int ni_tr_tag(struct ni_tr *r, struct ni_tr_event *e, uint64_t user_tag);
static inline void ni_tr_arrow(struct ni_tr_event *e, enum ni_tr_arrow_kind kind, bool out, uint64_t id) {
  if (e->n_arrows < NI_TR_ARROWS_MAX)
    e->arrow[e->n_arrows++] = (struct ni_tr_arrow){id, (uint8_t)kind, out};
}

/* Into the sort, unless it lies outside of --since and --until. An instant's duration is 0. */
int ni_tr_put(struct ni_tr *r, const struct ni_tr_event *e);
void ni_tr_unpack(const void *item, struct ni_tr_event *e);
/*
 * The order of packed events: time, then the longer first, so that what encloses comes before what it holds.
 */
ni_sort_compare ni_tr_by_time;
/* Key and form of an argument. */
const char *ni_tr_key_name(unsigned key);
enum ni_tr_value ni_tr_key_form(unsigned key);
const char *ni_tr_category_name(unsigned category);

/* In the order in which they stand in a process. */
enum ni_tr_class {
  NI_TR_T_MARKS,
  NI_TR_T_CALLS,
  NI_TR_T_ENQUEUE,
  NI_TR_T_COLL,
  NI_TR_T_P2P,
  NI_TR_T_CHANNEL,
  NI_TR_T_NET_SEND,
  NI_TR_T_NET_RECV,
  NI_TR_T_STEPS,
  NI_TR_T_NET_PLUGIN,
  NI_TR_T_PROXY,
  NI_TR_T_OTHER,
  NI_TR_T_COUNT
};

struct ni_tr_lane {
  uint32_t tid, depth;
  int64_t *end; /* of the slices that are open, the outermost first */
  size_t cap_end;
};

struct ni_tr_track {
  uint32_t unit, member; /* member NI_TR_NONE: of the unit */
  uint8_t class;
  uint32_t sub;            /* channel, or 0; OTHER: what it is called, a name */
  struct ni_tr_lane *lane; /* write.c */
  uint32_t n_lanes;
  size_t cap_lanes;
  uint32_t tid; /* of its first lane */
};

int ni_tr_track(struct ni_tr *r, uint32_t unit, uint32_t member, enum ni_tr_class class, uint32_t sub,
                uint32_t *out);
/* What it is called; lane 0 is the first. */
void ni_tr_track_name(const struct ni_tr *r, const struct ni_tr_track *t, uint32_t lane, char *out,
                      size_t size);
/* What a unit's process is called. */
void ni_tr_unit_name(const struct ni_tr *r, uint32_t unit, char *out, size_t size);
const char *ni_tr_host_name(const struct ni_tr *r, uint32_t host);
/*
 * "clock: +1234.567 us to the reference, error below 3.210 us, drift 0.120 ppm (812 collectives with
 * node-a)", of a host.
 */
void ni_tr_clock_text(const struct ni_tr *r, uint32_t host, char *out, size_t size);
void ni_tr_tracks_free(struct ni_tr *r);

#endif
