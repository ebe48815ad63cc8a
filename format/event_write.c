/*
 * Worst case of a line: four strings and 30 keys with numbers below 2 KiB; nested steps of eleven keys with numbers each.
 */
#include "event_write.h"

#include "line_begin.h"
#include "nccl/profiler_abi.h"

#define EVENT_BODY_MAX (4 * NI_JSON_STRING_MAX_BYTES + 2048)
#define STEPS_MAX (NI_STEPS_A_LINE * 448) /* below 170 bytes of keys, below 250 of numbers */
_Static_assert(PREFIX_MAX + EVENT_BODY_MAX + STEPS_MAX <= NI_LINE_MAX_BYTES, "the longest line about steps fits");

static char *u64_or_null(char *p, uint64_t v) { return v > INT64_MAX ? LIT(p, "null") : ni_json_put_u64(p, v); }
static char *ns_or_null(char *p, int64_t v) { return v < 0 ? LIT(p, "null") : ni_json_put_i64(p, v); }

#define NUM(key, v) (p = u64_or_null(LIT(p, key), (v)))
#define HEX(key, v) (p = ni_json_hex(LIT(p, key "\""), (v)), p = LIT(p, "\""))

static char *put_api(char *p, const struct ni_event_line *in) {
  if (in->kind == NI_EVENT_GROUP_API) {
    U64("\"api\":{\"api\":\"group\",\"ev_sn\":", in->ev_sn);
    NUM(",\"group_sn\":", in->number);
    RANK(",\"depth\":", in->depth);
    FLAG(",\"graph\":", in->graph);
    p = ns_or_null(LIT(p, ",\"start_end_ns\":"), in->start_end_ns);
    return ns_or_null(LIT(p, ",\"end_begin_ns\":"), in->end_begin_ns);
  }
  p = in->kind == NI_EVENT_COLL_API ? LIT(p, "\"api\":{\"api\":\"coll\"") : LIT(p, "\"api\":{\"api\":\"p2p\"");
  U64(",\"ev_sn\":", in->ev_sn);
  STR(",\"func\":", in->func);
  NUM(",\"call_sn\":", in->number);
  NUM(",\"group_sn\":", in->group);
  U64(",\"count\":", in->count);
  STR(",\"datatype\":", in->datatype);
  if (in->kind == NI_EVENT_COLL_API) RANK(",\"root\":", in->root);
  HEX(",\"stream\":", in->stream);
  FLAG(",\"graph\":", in->graph);
  STR(",\"seen\":", in->seen);
  return p;
}

static char *put_ce(char *p, const struct ni_event_line *in) {
  U64("\"ce\":{\"ev_sn\":", in->ev_sn);
  NUM(",\"ce_sn\":", in->number);
  STR(",\"func\":", in->func);
  NUM(",\"call_sn\":", in->group);
  U64(",\"count\":", in->count);
  STR(",\"datatype\":", in->datatype);
  RANK(",\"root\":", in->root);
  STR(",\"sync_strategy\":", in->text);
  HEX(",\"stream\":", in->stream);
  return p;
}

static char *put_net(char *p, const struct ni_event_line *in) {
  static const char *const names[] = {NULL, "ib", "socket"};
  const struct ni_net_event *n = &in->net;
  U64("\"net\":{\"ev_sn\":", in->ev_sn);
  bool known = n->version == 1 && (n->type == 1 || n->type == 2);
  if (n->type == 1 || n->type == 2) STR(",\"type\":", names[n->type]);
  else HEX(",\"type\":", n->type);
  U64(",\"version\":", n->version);
  NUM(",\"proxy_op_sn\":", in->number);
  I64(",\"step\":", n->step);
  if (known && n->type == 1) {
    I64(",\"device\":", n->v[0]);
    U64(",\"wr_id\":", (uint64_t)n->v[3]);
    I64(",\"opcode\":", n->v[1]);
    I64(",\"qp\":", n->v[2]);
  } else if (known) {
    I64(",\"fd\":", n->v[0]);
    I64(",\"op\":", n->v[1]);
  }
  if (known) U64(",\"bytes\":", in->count);
  U64(",\"updates\":", n->updates);
  return p;
}

static const char *ctrl_name(uint32_t state) {
  switch (state) {
    case NI_ST_PROXY_CTRL_IDLE: return "idle";
    case NI_ST_PROXY_CTRL_ACTIVE: return "active";
    case NI_ST_PROXY_CTRL_APPEND:
    case NI_ST_PROXY_CTRL_APPEND_END: return "append";
    default: return "sleep";
  }
}

size_t ni_format_event(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, const struct ni_event_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, EVENT_BODY_MAX);
  if (!p) return 0;
  switch (in->kind) {
    case NI_EVENT_GROUP_API:
    case NI_EVENT_COLL_API:
    case NI_EVENT_P2P_API: p = put_api(p, in); break;
    case NI_EVENT_LAUNCH:
      U64("\"launch\":{\"ev_sn\":", in->ev_sn);
      NUM(",\"group_sn\":", in->group);
      NUM(",\"plan_sn\":", in->number);
      HEX(",\"stream\":", in->stream);
      break;
    case NI_EVENT_GROUP:
      U64("\"group\":{\"ev_sn\":", in->ev_sn);
      NUM(",\"plan_sn\":", in->number);
      break;
    case NI_EVENT_CE: p = put_ce(p, in); break;
    case NI_EVENT_SYNC:
      U64("\"sync\":{\"ev_sn\":", in->ev_sn);
      NUM(",\"ce_sn\":", in->number);
      FLAG(",\"is_complete\":", in->flag);
      RANK(",\"n_ranks\":", in->n);
      break;
    case NI_EVENT_BATCH:
      U64("\"batch\":{\"ev_sn\":", in->ev_sn);
      NUM(",\"ce_sn\":", in->number);
      RANK(",\"n_ops\":", in->n);
      U64(",\"total_bytes\":", in->count);
      FLAG(",\"intra_sync\":", in->flag);
      break;
    case NI_EVENT_PROXY_CTRL:
      U64("\"proxy_ctrl\":{\"ev_sn\":", in->ev_sn);
      STR(",\"what\":", ctrl_name(in->ctrl_state));
      U64(",\"appended\":", in->n > 0 ? (uint64_t)in->n : 0);
      break;
    case NI_EVENT_NET: p = put_net(p, in); break;
    default: return 0;
  }
  U64(",\"start_ns\":", in->start_ns);
  p = ns_or_null(LIT(p, ",\"dur_ns\":"), in->dur_ns);
  return end_line(buf, p);
}

/* ns as us with three decimals, or null. */
static char *put_us(char *p, int64_t ns) {
  if (ns < 0) return LIT(p, "null");
  p = ni_json_put_i64(p, ns / 1000);
  unsigned r = (unsigned)(ns % 1000);
  *p++ = '.';
  *p++ = (char)('0' + r / 100);
  *p++ = (char)('0' + r / 10 % 10);
  *p++ = (char)('0' + r % 10);
  return p;
}
#define US(key, ns) (p = put_us(LIT(p, key), (ns)))

static char *put_phases(char *p, const uint64_t ns[NI_PH_COUNT - 1]) {
  if (ns[NI_PH_GPU_PRODUCE - 1]) US(",\"gpu_produce_us\":", (int64_t)ns[NI_PH_GPU_PRODUCE - 1]);
  if (ns[NI_PH_PEER_CREDIT - 1]) US(",\"peer_credit_us\":", (int64_t)ns[NI_PH_PEER_CREDIT - 1]);
  if (ns[NI_PH_WIRE - 1]) US(",\"wire_us\":", (int64_t)ns[NI_PH_WIRE - 1]);
  if (ns[NI_PH_FLUSH - 1]) US(",\"flush_us\":", (int64_t)ns[NI_PH_FLUSH - 1]);
  if (ns[NI_PH_GPU_CONSUME - 1]) US(",\"gpu_consume_us\":", (int64_t)ns[NI_PH_GPU_CONSUME - 1]);
  return p;
}

/* What a step is, and how long it took; nested and in its own line. */
static char *put_step_number(char *p, const struct ni_step_text *t) {
  U64(",\"proxy_step_sn\":", t->step_sn);
  I64(",\"step\":", t->step);
  U64(",\"trans_size_bytes\":", t->bytes);
  return p;
}
static char *put_step_times(char *p, const struct ni_step_text *t) {
  US(",\"total_us\":", t->total_ns);
  p = put_phases(p, t->phase_ns);
  U64(",\"start_ns\":", t->start_ns);
  return p;
}

static char *put_steps(char *p, const struct ni_proxy_line *in) {
  p = LIT(p, ",\"steps\":[");
  for (uint32_t i = 0; i < in->n_listed && i < NI_STEPS_A_LINE; i++) {
    if (i) *p++ = ',';
    U64("{\"record_sn\":", in->steps[i].record_sn);
    p = put_step_times(put_step_number(p, &in->steps[i]), &in->steps[i]);
    *p++ = '}';
  }
  *p++ = ']';
  return p;
}

#define SOURCE ",\"timing_source\":\"proxy_cpu\""

static char *put_op(char *p, const struct ni_proxy_line *in) {
  p = LIT(p, ",\"is_final\":true");
  U64(",\"n_steps\":", in->n_steps > 0 ? (uint64_t)in->n_steps : 0);
  U64(",\"chunk_size_bytes\":", in->chunk > 0 ? (uint64_t)in->chunk : 0);
  U64(",\"n_steps_started\":", in->n_started);
  U64(",\"n_steps_completed\":", in->n_completed);
  U64(",\"n_steps_dropped\":", in->n_dropped);
  U64(",\"trans_size_bytes\":", in->bytes);
  p = LIT(p, SOURCE);
  US(",\"total_us\":", in->total_ns);
  p = put_phases(p, in->phase_ns);
  double gbs = (double)in->bytes / (double)in->total_ns;
  if (in->total_ns > 0) GBS(",\"op_bw_gbs\":", gbs <= NI_BW_MAX_GBS, gbs);
  if (in->max_step_ns >= 0) US(",\"max_step_us\":", in->max_step_ns);
  if (in->has_parent) {
    STR(",\"parent_func\":", in->parent_func);
    U64(",\"parent_rec_sn\":", in->parent_rec_sn);
  }
  if (in->foreign) I64(",\"origin_pid\":", in->pid);
  U64(",\"start_ns\":", in->start_ns);
  US(",\"progress_us\":", in->progress_ns);
  if (in->state) STR(",\"state\":", in->state);
  return in->steps ? put_steps(p, in) : p;
}

/* NVIDIA's keys in NVIDIA's order, then ours. */
size_t ni_format_proxy(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, const struct ni_proxy_line *in) {
  static const char *const types[] = {"proxy_op", "proxy_op_segment", "proxy_step"};
  char *p = begin_line(buf, cap, px, ts_us, EVENT_BODY_MAX + STEPS_MAX);
  if (!p) return 0;
  STR("\"proxy_trace\":{\"record_type\":", types[in->what]);
  U64(",\"record_sn\":", in->record_sn);
  STR(",\"parent_type\":", in->has_parent ? ni_kind_names[in->parent_kind == NI_KIND_P2P] : NULL);
  NUM(",\"parent_sn\":", in->has_parent ? in->parent_sn : NI_NOT_SAID);
  U64(",\"proxy_op_sn\":", in->op_sn);
  if (in->what == NI_PROXY_OP) RANK(",\"rank\":", in->rank);
  RANK(",\"channel_id\":", in->channel);
  RANK(",\"peer\":", in->peer);
  p = in->send ? LIT(p, ",\"direction\":\"send\"") : LIT(p, ",\"direction\":\"recv\"");
  if (in->what == NI_PROXY_OP) return end_line(buf, put_op(p, in));
  if (in->what == NI_PROXY_STEP) p = put_step_number(p, in->steps);
  else p = LIT(p, ",\"is_final\":false");
  p = LIT(p, SOURCE);
  if (in->what == NI_PROXY_STEP) p = put_step_times(p, in->steps);
  if (in->has_parent) STR(",\"parent_func\":", in->parent_func);
  if (in->what == NI_PROXY_SEGMENT) p = put_steps(p, in);
  return end_line(buf, p);
}
