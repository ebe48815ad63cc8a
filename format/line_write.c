/*
 * Lines are put together from constant texts and the primitives of json_text.h, always forwards. Room is asked for once
 * at the start of a line, for the worst case, so that nothing inside needs to look at a bound.
 *
 * Worst cases: an operation line has four strings and 18 keys below 1 KiB of keys and numbers; dump_stats has 60
 * numbers and keys below 4 KiB. The process line is the longest: three strings, NI_ENV_MAX launcher variables and the
 * settings.
 */
#include "line_write.h"

#include <errno.h>
#include <stdlib.h>

#include "line_begin.h"

#define TRACE_MAX (NI_TRACE_MAX * 300 + 512) /* two lists; three 20-digit numbers and their keys in each entry */
#define OP_BODY_MAX (4 * NI_JSON_STRING_MAX_BYTES + 1024 + TRACE_MAX)
#define ENV_PAIR_MAX (6 * NI_ENV_VALUE_BYTES + 64)
#define PROCESS_BODY_MAX (4 * NI_JSON_STRING_MAX_BYTES + NI_ENV_MAX * ENV_PAIR_MAX + NI_SETTINGS_JSON_BYTES + 1024)
_Static_assert(PREFIX_MAX + PROCESS_BODY_MAX <= NI_LINE_MAX_BYTES, "the longest line fits");
_Static_assert(PREFIX_MAX + OP_BODY_MAX <= NI_LINE_MAX_BYTES, "the longest operation line fits");

/* Names of the process: what is over ORIGIN_TEXT_MAX is cut, so that three of them leave room for the rest. */
static char *put_origin_text(char *p, const char *s) {
  char cut[ORIGIN_TEXT_MAX];
  if (!s) s = "unknown";
  size_t n = strnlen(s, sizeof cut - 1);
  memcpy(cut, s, n);
  cut[n] = 0;
  return ni_json_string(p, cut);
}

int ni_line_prefix_init(struct ni_line_prefix *out, const struct ni_ident *id, const struct ni_origin *o) {
  memset(out, 0, sizeof *out);
  char *text = malloc(PREFIX_MAX);
  if (!text) return -ENOMEM;
  char *p = LIT(text, "{\"header\":{\"id\":\"");
  p = ni_json_hex(p, id->comm_hash);
  p = LIT(p, "\"");
  if (id->comm_name) STR(",\"comm_name\":", id->comm_name);
  I64(",\"rank\":", id->rank);
  I64(",\"n_ranks\":", id->n_ranks);
  I64(",\"nnodes\":", id->nnodes);
  p = LIT(p, "},\"metadata\":{\"inspector_output_format_version\":\"" NI_FORMAT_VERSION "\"");
  p = put_origin_text(LIT(p, ",\"git_rev\":"), o->git_rev);
  p = LIT(p, ",\"rec_mechanism\":\"" NI_REC_MECHANISM "\",\"dump_timestamp_us\":");
  out->head_len = (uint32_t)(p - text);
  p = put_origin_text(LIT(p, ",\"hostname\":"), o->hostname);
  I64(",\"pid\":", o->pid);
  char producer[ORIGIN_TEXT_MAX] = NI_PRODUCER " ";
  strncat(producer, o->version ? o->version : "unknown", sizeof producer - sizeof NI_PRODUCER - 1);
  p = put_origin_text(LIT(p, ",\"producer\":"), producer);
  p = LIT(p, "},");
  out->tail_len = (uint32_t)(p - text) - out->head_len;
  char *exact = realloc(text, (size_t)(p - text)); /* thousands of communicators: give the slack back */
  out->text = exact ? exact : text;
  return 0;
}

void ni_line_prefix_free(struct ni_line_prefix *p) {
  free(p->text);
  memset(p, 0, sizeof *p);
}

static inline bool stated(const char *s) { return s && *s; }

/* What both kinds have behind their datatype; `pre` is a literal, "coll_" or "p2p_". */
#define OP_TAIL(pre)                                                                               \
  do {                                                                                             \
    if (r->has & NI_HAS_NCHANNELS) U64(",\"" pre "nchannels\":", r->nchannels);                    \
    if (r->nchannels_observed) p = LIT(p, ",\"nchannels_src\":\"observed\"");                      \
    if (r->has & NI_HAS_EXEC_NS) U64(",\"" pre "exec_time_ns\":", r->exec_ns);                     \
    if (r->has & NI_HAS_ENQUEUE) U64(",\"" pre "enqueue_ns\":", r->enqueue_ns);                    \
    if (r->has & NI_HAS_GPU_DELTA) I64(",\"" pre "gpu_start_delta_ns\":", r->gpu_start_delta_ns);  \
  } while (0)
#define OP_TIMES(pre)                                                                              \
  do {                                                                                             \
    U64(",\"" pre "msg_size_bytes\":", r->msg_bytes);                                              \
    U64(",\"" pre "exec_time_us\":", r->exec_us);                                                  \
    STR(",\"" pre "timing_source\":", ni_timing_names[r->timing < NI_TIMING_COUNT ? r->timing : 0]); \
    GBS(",\"" pre "algobw_gbs\":", r->has & NI_HAS_ALGOBW, r->algobw_gbs);                         \
    GBS(",\"" pre "busbw_gbs\":", r->has & NI_HAS_BUSBW, r->busbw_gbs);                            \
  } while (0)

/* One of the two lists of a verbose record; `what` and `pre` are literals: "sn" or "ts", "coll_" or "p2p_". */
#define TRACE_LIST(what, pre, m)                                                           \
  do {                                                                                     \
    U64(",\"event_trace_" what "\":{\"" pre "start_" what "\":", t->start_##m);             \
    U64(",\"" pre "stop_" what "\":", t->stop_##m);                                        \
    p = LIT(p, ",\"kernel_events\":[");                                                    \
    for (uint32_t i = 0; i < t->n; i++) {                                                  \
      const struct ni_trace_event *e = &t->event[i];                                       \
      if (i) *p++ = ',';                                                                   \
      I64("{\"channel_id\":", e->channel);                                                 \
      U64(",\"kernel_start_" what "\":", e->start_##m);                                    \
      U64(",\"kernel_stop_" what "\":", e->stop_##m);                                      \
      U64(",\"kernel_record_" what "\":", e->record_##m);                                  \
      *p++ = '}';                                                                          \
    }                                                                                      \
    p = LIT(p, "]}");                                                                      \
  } while (0)

static char *put_trace(char *p, const struct ni_trace *t, bool p2p) {
  if (p2p) {
    TRACE_LIST("sn", "p2p_", sn);
    TRACE_LIST("ts", "p2p_", us);
  } else {
    TRACE_LIST("sn", "coll_", sn);
    TRACE_LIST("ts", "coll_", us);
  }
  return p;
}

size_t ni_format_op(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, const struct ni_record *r) {
  char *p = begin_line(buf, cap, px, ts_us, OP_BODY_MAX);
  if (!p) return 0;
  if (r->kind == NI_KIND_COLL) {
    STR("\"coll_perf\":{\"coll\":", r->func);
    U64(",\"coll_sn\":", r->sn);
    OP_TIMES("coll_");
    if (stated(r->algo)) STR(",\"coll_algo\":", r->algo);
    if (stated(r->proto)) STR(",\"coll_proto\":", r->proto);
    if (stated(r->datatype)) STR(",\"coll_datatype\":", r->datatype);
    if (r->has & NI_HAS_ROOT) RANK(",\"coll_root\":", r->root);
    OP_TAIL("coll_");
  } else {
    STR("\"p2p_perf\":{\"p2p\":", r->func);
    U64(",\"p2p_sn\":", r->sn);
    RANK(",\"p2p_peer\":", r->root);
    OP_TIMES("p2p_");
    if (stated(r->datatype)) STR(",\"p2p_datatype\":", r->datatype);
    OP_TAIL("p2p_");
  }
  if (r->has & NI_HAS_REC_SN) U64(",\"rec_sn\":", r->rec_sn);
  if (r->has & NI_HAS_TESTS_SIZE) U64(",\"nccl_tests_size_bytes\":", r->tests_bytes);
  if (r->has & NI_HAS_CALL_SN) U64(",\"call_sn\":", r->call_sn);
  if (r->has & NI_HAS_PLAN_SN) U64(",\"plan_sn\":", r->plan_sn);
  if (r->graph) p = LIT(p, ",\"graph\":true");
  if (r->kind == NI_KIND_COLL && r->src != NI_SRC_EVENT)
    STR(",\"coll_src\":", ni_src_names[r->src < NI_SRC_COUNT ? r->src : 0]);
  if (r->trace) p = put_trace(p, r->trace, r->kind != NI_KIND_COLL);
  return end_line(buf, p);
}

size_t ni_format_process(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                         const struct ni_process_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, PROCESS_BODY_MAX);
  if (!p) return 0;
  U64("\"process\":{\"start_ns\":", in->start_ns);
  STR(",\"boot_id\":", in->boot_id);
  STR(",\"exe\":", in->exe);
  p = put_i64_or_null(LIT(p, ",\"rank\":"), in->rank, in->rank >= 0);
  p = put_i64_or_null(LIT(p, ",\"local_rank\":"), in->local_rank, in->local_rank >= 0);
  p = put_i64_or_null(LIT(p, ",\"world_size\":"), in->world_size, in->world_size >= 0);
  p = LIT(p, ",\"env\":{");
  for (uint32_t i = 0; i < in->n_env && i < NI_ENV_MAX; i++) {
    if (i) *p++ = ',';
    p = ni_json_string(p, in->env[i].name);
    *p++ = ':';
    p = ni_json_string(p, in->env[i].value);
  }
  p = LIT(p, "},\"nccl_version\":");
  p = put_i64_or_null(p, in->nccl_version, in->nccl_version > 0);
  STR(",\"interface\":", in->interface);
  p = LIT(p, ",\"settings\":");
  size_t n = in->settings_json ? strnlen(in->settings_json, NI_SETTINGS_JSON_BYTES) : 0;
  if (n == 0 || n >= NI_SETTINGS_JSON_BYTES) {
    p = LIT(p, "{}");
  } else {
    memcpy(p, in->settings_json, n);
    p += n;
  }
  if (in->blackbox_wanted) {
    STR(",\"blackbox\":", in->blackbox);
    if (!in->blackbox) STR(",\"blackbox_why\":", in->blackbox_why);
  }
  return end_line(buf, p);
}

size_t ni_format_comm(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                      const struct ni_comm_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"comm\":{\"name\":", in->ident->comm_name);
  p = ni_json_hex(LIT(p, ",\"hash\":\""), in->ident->comm_hash);
  I64("\",\"rank\":", in->ident->rank);
  I64(",\"n_ranks\":", in->ident->n_ranks);
  I64(",\"nnodes\":", in->ident->nnodes);
  p = put_i64_or_null(LIT(p, ",\"gpu_index\":"), in->gpu_index, in->gpu_index >= 0);
  STR(",\"gpu_uuid\":", stated(in->gpu_uuid) ? in->gpu_uuid : NULL);
  STR(",\"gpu_pci\":", stated(in->gpu_pci) ? in->gpu_pci : NULL);
  U64(",\"init_ns\":", in->init_ns);
  return end_line(buf, p);
}

size_t ni_format_comm_end(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, const char *why,
                          uint64_t ns) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"comm_end\":{\"why\":", why);
  U64(",\"ns\":", ns);
  return end_line(buf, p);
}

size_t ni_format_clock(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                       const struct ni_clock_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"clock\":{\"source\":", in->source);
  U64(",\"ticks\":", in->ticks);
  U64(",\"monotonic_ns\":", in->monotonic_ns);
  U64(",\"realtime_ns\":", in->realtime_ns);
  p = ni_json_fixed(LIT(p, ",\"ns_per_tick\":"), in->ns_per_tick, 12);
  p = put_i64_or_null(LIT(p, ",\"gpu_offset_ns\":"), in->gpu_offset_ns, in->has_gpu);
  p = LIT(p, ",\"gpu_offset_at_ns\":");
  p = in->has_gpu ? ni_json_put_u64(p, in->gpu_offset_at_ns) : LIT(p, "null");
  U64(",\"gpu_samples\":", in->gpu_samples);
  return end_line(buf, p);
}

/* {"cause":n,...} with zero members left out. */
static char *put_counts(char *p, const char *const *names, const uint64_t *counts, int n) {
  *p++ = '{';
  bool first = true;
  for (int i = 0; i < n; i++) {
    if (!counts[i]) continue;
    if (!first) *p++ = ',';
    first = false;
    p = ni_json_string(p, names[i]);
    *p++ = ':';
    p = ni_json_put_u64(p, counts[i]);
  }
  *p++ = '}';
  return p;
}

static uint64_t dropped_total(const struct ni_kind_stats *s) {
  uint64_t sum = 0;
  for (int i = 0; i < NI_DROP_COUNT; i++) sum += s->dropped[i];
  return sum;
}

static char *put_kind_stats(char *p, const struct ni_kind_stats *s) {
  U64("{\"started\":", s->started);
  U64(",\"written\":", s->written);
  p = put_counts(LIT(p, ",\"filtered_by\":"), ni_filter_names, s->filtered, NI_FILTER_COUNT);
  p = put_counts(LIT(p, ",\"dropped_by\":"), ni_drop_names, s->dropped, NI_DROP_COUNT);
  U64(",\"incomplete\":", s->incomplete);
  U64(",\"late\":", s->late);
  U64(",\"in_flight\":", s->in_flight);
  p = put_counts(LIT(p, ",\"timing_fallback_by\":"), ni_fallback_names, s->fallback, NI_FALLBACK_COUNT);
  *p++ = '}';
  return p;
}

/* ,"events":{...} when there are any. */
static char *put_event_counts(char *p, const struct ni_event_count *e) {
  bool first = true;
  for (int i = 0; i < NI_EVENT_COUNT; i++) {
    if (!e[i].started) continue;
    p = first ? LIT(p, ",\"events\":{") : LIT(p, ",");
    first = false;
    p = ni_json_string(p, ni_event_names[i]);
    U64(":{\"started\":", e[i].started);
    U64(",\"written\":", e[i].written);
    U64(",\"dropped\":", e[i].dropped);
    U64(",\"in_flight\":", e[i].in_flight);
    *p++ = '}';
  }
  if (!first) *p++ = '}';
  return p;
}

size_t ni_format_dump_stats(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                            const struct ni_stats_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  const struct ni_kind_stats *coll = &in->kind[NI_KIND_COLL], *p2p = &in->kind[NI_KIND_P2P];
  U64("\"dump_stats\":{\"coll_records\":", coll->records);
  U64(",\"coll_dropped_total\":", dropped_total(coll));
  U64(",\"coll_dropped_since_last_dump\":", coll->dropped_since_last);
  U64(",\"p2p_records\":", p2p->records);
  U64(",\"p2p_dropped_total\":", dropped_total(p2p));
  U64(",\"p2p_dropped_since_last_dump\":", p2p->dropped_since_last);
  U64(",\"proxy_records\":", in->proxy_records);
  U64(",\"proxy_dropped_total\":", in->proxy_dropped_total);
  U64(",\"proxy_dropped_since_last_dump\":", in->proxy_dropped_since);
  FLAG(",\"final\":", in->final);
  p = put_kind_stats(LIT(p, ",\"coll\":"), coll);
  p = put_kind_stats(LIT(p, ",\"p2p\":"), p2p);
  p = put_counts(LIT(p, ",\"strays\":"), ni_stray_names, in->strays, NI_STRAY_COUNT);
  p = put_event_counts(p, in->events);
  if (in->refused_communicators) U64(",\"refused_communicators\":", in->refused_communicators);
  return end_line(buf, p);
}

size_t ni_format_gap(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                     const struct ni_gap_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"gap\":{\"kind\":", kind_name(in->kind));
  U64(",\"count\":", in->count);
  STR(",\"cause\":", in->cause < NI_DROP_COUNT ? ni_drop_names[in->cause] : NULL);
  U64(",\"rec_sn_from\":", in->rec_sn_from);
  U64(",\"rec_sn_to\":", in->rec_sn_to);
  return end_line(buf, p);
}

size_t ni_format_late(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                      const struct ni_late_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"late\":{\"kind\":", kind_name(in->kind));
  STR(",\"func\":", in->func);
  U64(",\"sn\":", in->sn);
  U64(",\"rec_sn\":", in->rec_sn);
  U64(",\"channel\":", in->channel);
  U64(",\"stop_gpu_ns\":", in->stop_gpu_ns);
  return end_line(buf, p);
}

size_t ni_format_incomplete(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                            const struct ni_incomplete_line *in) {
  static const char *const lines[] = {"incomplete", "stuck", "in_flight"};
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX + NI_JSON_STRING_MAX_BYTES);
  if (!p) return 0;
  p = ni_json_string(p, lines[in->line]);
  STR(":{\"kind\":", kind_name(in->kind));
  STR(",\"func\":", in->func);
  U64(",\"sn\":", in->sn);
  U64(",\"rec_sn\":", in->rec_sn);
  U64(",\"msg_size_bytes\":", in->msg_bytes);
  p = put_i64_or_null(LIT(p, ",\"channels_expected\":"), in->channels_expected, in->channels_expected >= 0);
  U64(",\"channels_started\":", in->channels_started);
  U64(",\"channels_stopped\":", in->channels_stopped);
  U64(",\"enqueue_ns\":", in->enqueue_ns);
  U64(",\"age_ms\":", in->age_ms);
  STR(",\"why\":", in->why);
  if (in->line == NI_UNFINISHED_INCOMPLETE) return end_line(buf, p);
  STR(",\"state\":", in->state);
  STR(",\"datatype\":", in->datatype);
  if (in->kind == NI_KIND_COLL) RANK(",\"root\":", in->root);
  else RANK(",\"peer\":", in->root);
  p = ni_json_hex(LIT(p, ",\"channels_open\":\""), in->channels_open);
  *p++ = '"';
  return end_line(buf, p);
}

size_t ni_format_pool_stats(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                            const struct ni_pool_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"pool_stats\":{\"kind\":", in->kind);
  U64(",\"capacity\":", in->capacity);
  U64(",\"high_water\":", in->high_water);
  U64(",\"growths\":", in->growths);
  U64(",\"bytes\":", in->bytes);
  U64(",\"slot_bytes\":", in->slot_bytes);
  U64(",\"dropped\":", in->dropped);
  return end_line(buf, p);
}

size_t ni_format_arena_stats(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us,
                             const struct ni_arena_line *in) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  U64("\"pool_stats\":{\"kind\":\"arena\",\"capacity_bytes\":", in->capacity_bytes);
  U64(",\"used_bytes\":", in->used_bytes);
  U64(",\"high_water_bytes\":", in->high_water_bytes);
  U64(",\"cap_bytes\":", in->cap_bytes);
  return end_line(buf, p);
}

size_t ni_format_note(char *buf, size_t cap, const struct ni_line_prefix *px, uint64_t ts_us, const char *text) {
  char *p = begin_line(buf, cap, px, ts_us, CONTROL_BODY_MAX);
  if (!p) return 0;
  STR("\"note\":{\"text\":", text);
  return end_line(buf, p);
}
