#include "row.h"

#include <math.h>
#include <stdlib.h>

#include "exporter/base/out_file.h"

enum { CUT_BYTES = 1 << 20 };

FILE *ni_convert_stream(struct ni_convert_out *o) {
  if (!o->f)
    o->f = open_memstream(&o->text, &o->len);
  return o->f;
}

static int flush_rows(struct ni_convert_out *o) {
  if (!o->f)
    return 0;
  int e = ni_out_end(o->f);
  o->f = NULL;
  if (e == 0 && o->len)
    e = o->gzip ? ni_write_member(o->fd, o->text, o->len) : ni_write_all(o->fd, o->text, o->len, -1);
  free(o->text);
  o->text = NULL;
  return e;
}

int ni_convert_cut(struct ni_convert_out *o) { return ftello(o->f) < CUT_BYTES ? 0 : flush_rows(o); }

int ni_convert_end(struct ni_convert_out *o, int e) {
  int e2 = flush_rows(o);
  ni_map_free(&o->hosts);
  ni_map_free(&o->comms);
  return e < 0 ? e : e2;
}

/* What the log does not state is left out. */
/* clang-format off */
static NI_JSON_FORM(stated_i64, int64_t, if (*v != NI_NOT_STATED) ni_json_i64(j, key, *v))
static NI_JSON_FORM(stated_f64, double, if (!isnan(*v)) ni_json_f64(j, key, *v))
static NI_JSON_FORM(stated_bool, bool, if (*v) ni_json_bool(j, key, true))
static NI_JSON_FORM(stated_text, char *, if (*v && **v) ni_json_text(j, key, *v))
/* clang-format on */

/* Member, key, how it is written, type in an index, whether it is in a .pfw, whose own keys say the rest. */
/* clang-format off */
#define FIELDS(X) \
  X(timestamp, "@timestamp", ni_json_member_chars, "date_nanos", 0) \
  X(id, "id", ni_json_member_chars, "keyword", 1) \
  X(comm_name, "comm_name", stated_text, "keyword", 0) \
  X(rank, "rank", ni_json_member_i64, "integer", 1) \
  X(n_ranks, "n_ranks", ni_json_member_i64, "integer", 0) \
  X(nnodes, "nnodes", stated_i64, "integer", 0) \
  X(global_rank, "global_rank", stated_i64, "integer", 0) \
  X(hostname, "hostname", stated_text, "keyword", 0) \
  X(pid, "pid", ni_json_member_i64, "long", 0) \
  X(kind, "kind", ni_json_member_text, "keyword", 0) \
  X(coll, "coll", ni_json_member_text, "keyword", 0) \
  X(sn, "coll_sn", ni_json_member_u64, "long", 1) \
  X(msg_bytes, "coll_msg_size_bytes", ni_json_member_u64, "long", 0) \
  X(exec_us, "coll_exec_time_us", ni_json_member_u64, "long", 0) \
  X(exec_ns, "coll_exec_time_ns", stated_i64, "long", 1) \
  X(timing, "coll_timing_source", stated_text, "keyword", 1) \
  X(algobw, "coll_algobw_gbs", stated_f64, "double", 0) \
  X(busbw, "coll_busbw_gbs", stated_f64, "double", 1) \
  X(algo, "coll_algo", stated_text, "keyword", 1) \
  X(proto, "coll_proto", stated_text, "keyword", 1) \
  X(datatype, "coll_datatype", stated_text, "keyword", 0) \
  X(root, "coll_root", stated_i64, "integer", 1) \
  X(nchannels, "coll_nchannels", stated_i64, "integer", 0) \
  X(enqueue_ns, "coll_enqueue_ns", stated_i64, "long", 0) \
  X(gpu_delta_ns, "coll_gpu_start_delta_ns", stated_i64, "long", 0) \
  X(rec_sn, "rec_sn", stated_i64, "long", 0) \
  X(tests_bytes, "nccl_tests_size_bytes", stated_i64, "long", 0) \
  X(dump_us, "dump_timestamp_us", ni_json_member_i64, "long", 0) \
  X(producer, "producer", stated_text, "keyword", 0) \
  X(user_tag, "user_tag", stated_i64, "long", 1) \
  X(nccl_tag, "nccl_tag", stated_i64, "long", 0) \
  X(symmetric, "symmetric", stated_bool, "boolean", 1) \
  X(kernel, "coll_kernel", stated_text, "keyword", 1) \
  X(shared_span, "shared_span", stated_bool, "boolean", 1) \
  X(initial_sync_ns, "initial_sync_ns", stated_i64, "long", 1) \
  X(compute_ns, "compute_ns", stated_i64, "long", 1) \
  X(final_sync_ns, "final_sync_ns", stated_i64, "long", 1) \
  X(prev_replay_ns, "prev_replay_ns", stated_i64, "long", 1)
/* clang-format on */

#define TYPE(member, key, form, type, pfw) {key, type},
    const struct ni_convert_type ni_convert_types[] = {FIELDS(TYPE)};
const size_t ni_convert_n_types = sizeof ni_convert_types / sizeof *ni_convert_types;

void ni_convert_fields(struct ni_json *j, const struct ni_convert_row *row, bool pfw) {
#define FIELD(member, key, form, type, pfw) {{key, form, offsetof(struct ni_convert_row, member)}, pfw},
  static const struct {
    struct ni_json_field f;
    bool pfw;
  } fields[] = {FIELDS(FIELD)};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (!pfw || fields[i].pfw)
      ni_json_fields(j, &fields[i].f, 1, true, row, NULL);
}
