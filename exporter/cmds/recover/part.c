#include "part.h"

#include <string.h>

#include "exporter/base/text/json_write.h"

static void u64(struct ni_json *j, const char *key, uint64_t v) { ni_json_u64(j, key, v <= INT64_MAX ? v : INT64_MAX); }

static struct ni_json begin(const struct ni_part *p, const struct ni_ident *id, const char *kind) {
  struct ni_json json, *j = &json;
  ni_json_begin(j, p->f);
  ni_json_object(j, NULL);
  ni_json_object(j, "header");
  ni_json_hex_text(j, "id", id->comm_hash);
  if (id->comm_name) ni_json_text(j, "comm_name", id->comm_name);
  ni_json_i64(j, "rank", id->rank);
  ni_json_i64(j, "n_ranks", id->n_ranks);
  ni_json_i64(j, "nnodes", id->nnodes);
  ni_json_end_object(j);
  ni_json_object(j, "metadata");
  ni_json_text(j, "inspector_output_format_version", NI_FORMAT_VERSION);
  ni_json_text(j, "git_rev", p->origin.git_rev);
  ni_json_text(j, "rec_mechanism", NI_REC_MECHANISM);
  u64(j, "dump_timestamp_us", p->origin.ts_us);
  ni_json_text(j, "hostname", p->origin.hostname);
  ni_json_i64(j, "pid", p->origin.pid);
  ni_json_text(j, "producer", p->origin.producer);
  ni_json_end_object(j);
  ni_json_object(j, kind);
  return json;
}

static void end(struct ni_json *j) {
  ni_json_end_object(j);
  ni_json_end_object(j);
  ni_json_finish(j);
}

static void number_or_null(struct ni_json *j, const char *key, int64_t v, bool known) {
  if (known && v <= INT32_MAX) ni_json_i64(j, key, v);
  else ni_json_text(j, key, NULL);
}

void ni_part_process(const struct ni_part *p, const struct ni_ident *process, const struct ni_box_header *h,
                     uint64_t start_ns, uint64_t recovered_ns, bool live) {
  char interface[16];
  snprintf(interface, sizeof interface, "v%u", h->interface);
  struct ni_json j = begin(p, process, "process");
  u64(&j, "start_ns", start_ns);
  ni_json_text(&j, "boot_id", h->boot_id);
  ni_json_text(&j, "exe", h->exe);
  number_or_null(&j, "rank", h->rank, h->rank >= 0);
  number_or_null(&j, "local_rank", h->local_rank, h->local_rank >= 0);
  number_or_null(&j, "world_size", h->world_size, h->world_size >= 0);
  ni_json_object(&j, "env");
  ni_json_end_object(&j);
  number_or_null(&j, "nccl_version", h->nccl_version, h->nccl_version > 0);
  ni_json_text(&j, "interface", interface);
  ni_json_object(&j, "settings");
  ni_json_end_object(&j);
  u64(&j, "recovered_ns", recovered_ns);
  ni_json_bool(&j, "recovered_live", live);
  end(&j);
}

void ni_part_comm(const struct ni_part *p, const struct ni_box_comm *c) {
  struct ni_json j = begin(p, &c->id, "comm");
  ni_json_text(&j, "name", c->id.comm_name);
  ni_json_hex_text(&j, "hash", c->id.comm_hash);
  ni_json_i64(&j, "rank", c->id.rank);
  ni_json_i64(&j, "n_ranks", c->id.n_ranks);
  ni_json_i64(&j, "nnodes", c->id.nnodes);
  number_or_null(&j, "gpu_index", c->gpu_index, c->gpu_index >= 0);
  ni_json_text(&j, "gpu_uuid", c->gpu_uuid);
  ni_json_text(&j, "gpu_pci", c->gpu_pci);
  u64(&j, "init_ns", c->init_ns);
  end(&j);
}

static bool stated(const char *s) { return s && *s; }

static void bandwidth(struct ni_json *j, const char *key, bool known, double v) {
  if (known) ni_json_fixed_decimals(j, key, v, 6);
  else ni_json_text(j, key, NULL);
}

/* Keys in the order of the plugin's ni_format_op; the keys of a kind differ in their prefix only. */
void ni_part_record(const struct ni_part *p, const struct ni_ident *id, const struct ni_record *r) {
  bool coll = r->kind == NI_KIND_COLL;
#define K(key) (coll ? "coll_" key : "p2p_" key)
  struct ni_json j = begin(p, id, coll ? "coll_perf" : "p2p_perf");
  ni_json_text(&j, coll ? "coll" : "p2p", r->func);
  u64(&j, K("sn"), r->sn);
  if (!coll) ni_json_i64(&j, "p2p_peer", r->root);
  u64(&j, K("msg_size_bytes"), r->msg_bytes);
  u64(&j, K("exec_time_us"), r->exec_us);
  ni_json_text(&j, K("timing_source"), ni_timing_names[r->timing]);
  bandwidth(&j, K("algobw_gbs"), r->has & NI_HAS_ALGOBW, r->algobw_gbs);
  bandwidth(&j, K("busbw_gbs"), r->has & NI_HAS_BUSBW, r->busbw_gbs);
  if (coll && stated(r->algo)) ni_json_text(&j, "coll_algo", r->algo);
  if (coll && stated(r->proto)) ni_json_text(&j, "coll_proto", r->proto);
  if (stated(r->datatype)) ni_json_text(&j, K("datatype"), r->datatype);
  if (coll && (r->has & NI_HAS_ROOT)) ni_json_i64(&j, "coll_root", r->root);
  if (r->has & NI_HAS_NCHANNELS) u64(&j, K("nchannels"), r->nchannels);
  if (r->nchannels_observed) ni_json_text(&j, "nchannels_src", "observed");
  if (r->has & NI_HAS_EXEC_NS) u64(&j, K("exec_time_ns"), r->exec_ns);
  if (r->has & NI_HAS_ENQUEUE) u64(&j, K("enqueue_ns"), r->enqueue_ns);
  if (r->has & NI_HAS_GPU_DELTA) ni_json_i64(&j, K("gpu_start_delta_ns"), r->gpu_start_delta_ns);
  if (r->has & NI_HAS_REC_SN) u64(&j, "rec_sn", r->rec_sn);
  if (r->has & NI_HAS_TESTS_SIZE) u64(&j, "nccl_tests_size_bytes", r->tests_bytes);
  if (r->has & NI_HAS_CALL_SN) u64(&j, "call_sn", r->call_sn);
  if (r->has & NI_HAS_PLAN_SN) u64(&j, "plan_sn", r->plan_sn);
  if (r->graph) ni_json_bool(&j, "graph", true);
  if (coll && r->src != NI_SRC_EVENT) ni_json_text(&j, "coll_src", ni_src_names[r->src]);
  end(&j);
#undef K
}

void ni_part_unfinished(const struct ni_part *p, const struct ni_ident *id, const struct ni_part_unfinished *u) {
  const struct ni_box_op *op = u->op;
  struct ni_json j = begin(p, id, u->key);
  ni_json_text(&j, "kind", ni_kind_names[op->kind]);
  ni_json_text(&j, "func", op->func);
  u64(&j, "sn", op->sn);
  u64(&j, "rec_sn", op->rec_sn);
  u64(&j, "msg_size_bytes", op->bytes);
  if (op->want == NI_BOX_WANT_UNKNOWN) ni_json_text(&j, "channels_expected", NULL);
  else u64(&j, "channels_expected", op->want);
  u64(&j, "channels_started", op->started);
  u64(&j, "channels_stopped", op->stopped);
  u64(&j, "enqueue_ns", u->enqueue_ns);
  u64(&j, "age_ms", u->age_ms);
  ni_json_text(&j, "why", u->why);
  if (u->state) {
    ni_json_text(&j, "state", u->state);
    ni_json_text(&j, "datatype", op->datatype);
    ni_json_i64(&j, op->kind == NI_KIND_P2P ? "peer" : "root", op->root < 0 ? 0 : op->root);
    ni_json_hex_text(&j, "channels_open", u->channels_open);
    if (u->net && u->net->peer >= 0) ni_json_i64(&j, "net_peer", u->net->peer);
    if (u->net) ni_json_i64(&j, "net_channel", u->net->channel);
    if (u->net) ni_json_text(&j, "net_state", u->net->waits_for);
  }
  end(&j);
}

void ni_part_gap(const struct ni_part *p, const struct ni_ident *id, enum ni_kind kind, enum ni_drop cause, uint64_t count,
                 uint64_t from, uint64_t to) {
  struct ni_json j = begin(p, id, "gap");
  ni_json_text(&j, "kind", ni_kind_names[kind]);
  u64(&j, "count", count);
  ni_json_text(&j, "cause", ni_drop_names[cause]);
  u64(&j, "rec_sn_from", from);
  u64(&j, "rec_sn_to", to);
  end(&j);
}

static void counts(struct ni_json *j, const char *key, const char *const *names, const uint64_t *n, int how_many) {
  uint64_t room = INT64_MAX; /* readers add them up */
  ni_json_object(j, key);
  for (int i = 0; i < how_many; i++) {
    uint64_t v = n[i] < room ? n[i] : room;
    if (v) ni_json_u64(j, names[i], v);
    room -= v;
  }
  ni_json_end_object(j);
}

void ni_part_stats(const struct ni_part *p, const struct ni_ident *id, const struct ni_part_stats *s) {
  static const char *const nvidia[NI_KIND_COUNT + 1][3] = {
      {"coll_records", "coll_dropped_total", "coll_dropped_since_last_dump"},
      {"p2p_records", "p2p_dropped_total", "p2p_dropped_since_last_dump"},
      {"proxy_records", "proxy_dropped_total", "proxy_dropped_since_last_dump"}};
  struct ni_json j = begin(p, id, "dump_stats");
  for (int k = 0; k <= NI_KIND_COUNT; k++) {
    bool ours = k < NI_KIND_COUNT;
    uint64_t dropped = 0;
    for (int w = 0; ours && w < NI_DROP_COUNT; w++) dropped += s->kind[k].dropped[w];
    u64(&j, nvidia[k][0], ours ? s->kind[k].records : 0);
    u64(&j, nvidia[k][1], dropped);
    u64(&j, nvidia[k][2], ours ? s->kind[k].dropped_since : 0);
  }
  ni_json_bool(&j, "final", s->final);
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    ni_json_object(&j, ni_kind_names[k]);
    u64(&j, "started", s->kind[k].started);
    u64(&j, "written", s->kind[k].written);
    counts(&j, "filtered_by", ni_filter_names, s->kind[k].filtered, NI_FILTER_COUNT);
    counts(&j, "dropped_by", ni_drop_names, s->kind[k].dropped, NI_DROP_COUNT);
    u64(&j, "incomplete", s->kind[k].incomplete);
    u64(&j, "late", s->kind[k].late);
    u64(&j, "in_flight", s->kind[k].in_flight);
    counts(&j, "timing_fallback_by", ni_fallback_names, s->kind[k].fallback, NI_FALLBACK_COUNT);
    ni_json_end_object(&j);
  }
  counts(&j, "strays", ni_stray_names, s->stray, NI_STRAY_COUNT);
  if (s->refused) u64(&j, "refused_communicators", s->refused);
  end(&j);
}

void ni_part_comm_end(const struct ni_part *p, const struct ni_ident *id, const char *why, uint64_t ns) {
  struct ni_json j = begin(p, id, "comm_end");
  ni_json_text(&j, "why", why);
  u64(&j, "ns", ns);
  end(&j);
}

void ni_part_note(const struct ni_part *p, const struct ni_ident *process, const char *text) {
  struct ni_json j = begin(p, process, "note");
  ni_json_text(&j, "text", text);
  end(&j);
}
