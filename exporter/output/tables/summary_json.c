#include "summary_json.h"

#include "beside_table.h"
#include "findings_json.h"
#include "series_table.h"

#include <errno.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/json_fields.h"

/* clang-format off */
static NI_JSON_FORM(put_type, enum ni_comm_type, ni_json_text(j, key, ni_comm_type_names[*v]))
static NI_JSON_FORM(put_role, enum ni_role, ni_json_text(j, key, *v ? ni_role_names[*v] : NULL))
static NI_JSON_FORM(put_kind, enum ni_kind, ni_json_text(j, key, *v == NI_KIND_P2P ? "p2p" : "coll"))
static NI_JSON_FORM(put_timing, enum ni_timing, ni_json_text(j, key, ni_timing_names[*v]))
static NI_JSON_FORM(put_ns_as_us, double, ni_json_f64(j, key, *v / 1e3))
/* A number of operations, or what comparing ranks has counted; null where nobody has looked at operations. */
static NI_JSON_FORM(put_joined, uint64_t,
                    ((const struct ni_summary *)context)->approximate ? ni_json_text(j, key, NULL)
                                                                      : ni_json_u64(j, key, *v))
/* clang-format on */
#define JOINED(tag, member) NI_JSON_FROM(put_joined, tag, member, #member)

        static void put_stats(struct ni_json *j, const char *key, const void *stats, const void *context) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_stats, n),   NI_JSON(ni_stats, mean), NI_JSON(ni_stats, stddev), NI_JSON(ni_stats, min),
      NI_JSON(ni_stats, p10), NI_JSON(ni_stats, p25),  NI_JSON(ni_stats, p50),    NI_JSON(ni_stats, p75),
      NI_JSON(ni_stats, p90), NI_JSON(ni_stats, p99),  NI_JSON(ni_stats, max)};
  ni_json_object(j, key);
  NI_JSON_ALL(j, fields, stats, context);
  if (((const struct ni_stats *)stats)->approx)
    ni_json_bool(j, "approx", true);
  ni_json_end_object(j);
}

static void put_counts(struct ni_json *j, const char *key, const void *counts, const void *context) {
  const struct ni_counts *c = counts;
  NI_JSON_OBJECT (j, key)
    for (size_t i = 0; i < c->n; i++)
      ni_json_u64(j, c->item[i].name, c->item[i].count);
}

static void put_input(struct ni_json *j, const struct ni_summary *s) {
  const struct ni_input *in = &s->input;
  static const struct ni_json_field read[] = {
      NI_JSON(ni_input, files),
      NI_JSON(ni_input, files_failed),
      NI_JSON(ni_input, files_empty),
      NI_JSON_AS(ni_input, cut_files, "files_cut"),
      NI_JSON_AS(ni_input, damaged_files, "files_damaged"),
      NI_JSON(ni_input, bytes),
      NI_JSON(ni_input, text_bytes),
      NI_JSON(ni_input, lines),
      NI_JSON(ni_input, records),
      NI_JSON(ni_input, filtered_out),
      NI_JSON(ni_input, control_lines),
      NI_JSON(ni_input, proxy_lines),
      NI_JSON(ni_input, unknown_lines),
      NI_JSON(ni_input, bad_lines),
      NI_JSON_FROM(put_counts, ni_input, bad_by_reason, "bad_by_reason"),
      NI_JSON(ni_input, orphans),
      JOINED(ni_input, duplicates)};
  static const struct ni_json_field rolled[] = {
      NI_JSON_AS(ni_input, rolled, "operations_in_rollups"),
      NI_JSON_AS(ni_input, unrolled, "operations_not_in_rollups"),
      NI_JSON_AS(ni_input, without_record, "operations_without_record")};
  static const struct ni_json_field missing[] = {
      NI_JSON(ni_input, gaps),
      NI_JSON(ni_input, untold),
      NI_JSON(ni_input, out_of_range),
      NI_JSON_FROM(put_counts, ni_input, out_of_range_by, "out_of_range_by"),
      NI_JSON(ni_input, no_bandwidth),
      NI_JSON(ni_input, stated_losses),
      NI_JSON_FROM(put_counts, ni_input, losses_by_cause, "losses_by_cause"),
      NI_JSON(ni_input, missing_ranks),
      NI_JSON(ni_input, missing_hosts),
      NI_JSON(ni_input, left_out_by_settings),
      NI_JSON_FROM(put_counts, ni_input, problems_by, "problems_by")};
  ni_json_object(j, "input");
  NI_JSON_ALL(j, read, in, s);
  if (in->rolled)
    NI_JSON_ALL(j, rolled, in, NULL);
  NI_JSON_ALL(j, missing, in, NULL);
  ni_json_texts(j, "trouble", in->trouble, in->n_trouble);
  ni_json_texts(j, "notes", in->note, in->n_notes);
  ni_json_texts(j, "bad_lines_at", in->where, in->n_where);
  ni_json_end_object(j);
}

static void put_cells_busbw(struct ni_json *j, const char *key, const void *group, const void *summary) {
  const struct ni_summary *s = summary;
  put_stats(j, key, &s->cell[((const struct ni_group *)group)->cell].busbw_gbs, s);
}

/* clang-format off */
static NI_JSON_FORM(put_some, char *, ni_json_text(j, key, **v ? *v : NULL))
    /* clang-format on */
    static const struct ni_json_field mix_fields[] = {NI_JSON_FROM(put_some, ni_mix, algo, "algo"),
                                                      NI_JSON_FROM(put_some, ni_mix, proto, "proto"),
                                                      NI_JSON(ni_mix, records)};

static void put_mix(struct ni_json *j, const char *key, const void *group, const void *summary) {
  const struct ni_summary *s = summary;
  const struct ni_group *g = group;
  NI_JSON_OBJECTS(j, key, mix_fields, s->mix + g->mix, g->n_mix, s);
}

static const struct ni_json_field group_fields[] = {
    NI_JSON_FROM(put_type, ni_group, type, "comm_type"),
    NI_JSON_FROM(put_kind, ni_group, kind, "kind"),
    NI_JSON(ni_group, func),
    NI_JSON_AS(ni_group, msg_bytes, "msg_size_bytes"),
    NI_JSON_FROM(put_timing, ni_group, timing, "timing_source"),
    NI_JSON(ni_group, records),
    JOINED(ni_group, operations),
    NI_JSON(ni_group, no_bandwidth),
    NI_JSON(ni_group, time_share),
    NI_JSON(ni_group, of_best),
    NI_JSON_FROM(put_stats, ni_group, us, "exec_time_us"),
    NI_JSON_FROM(put_stats, ni_group, busbw_gbs, "busbw_gbs"),
    NI_JSON_FROM(put_stats, ni_group, transfer_us, "transfer_time_us"),
    NI_JSON_FROM(put_stats, ni_group, job_us, "job_time_us"),
    NI_JSON_BY(put_cells_busbw, "operation_busbw_gbs"),
    NI_JSON_BY(put_mix, "algo_proto")};

static const struct ni_json_field comm_fields[] = {
    NI_JSON(ni_comm_row, id),
    NI_JSON_AS(ni_comm_row, name, "comm_name"),
    NI_JSON_FROM(put_type, ni_comm_row, type, "comm_type"),
    NI_JSON(ni_comm_row, n_ranks),
    NI_JSON(ni_comm_row, nnodes),
    NI_JSON(ni_comm_row, ranks_seen),
    NI_JSON(ni_comm_row, hosts_seen),
    NI_JSON(ni_comm_row, records),
    JOINED(ni_comm_row, operations),
    JOINED(ni_comm_row, partial_operations),
    NI_JSON_FROM(put_ns_as_us, ni_comm_row, transfer_ns, "transfer_us"),
    NI_JSON_FROM(put_ns_as_us, ni_comm_row, waiting_ns, "waiting_us"),
    NI_JSON_FROM(put_ns_as_us, ni_comm_row, outside_ns, "outside_us"),
    NI_JSON_FROM(put_ns_as_us, ni_comm_row, span_ns, "span_us"),
    NI_JSON(ni_comm_row, first_us),
    NI_JSON(ni_comm_row, last_us),
    NI_JSON_FROM(put_role, ni_comm_row, role, "role")};

static const struct ni_json_field tag_fields[] = {
    NI_JSON(ni_tag_row, tag),
    NI_JSON_AS(ni_tag_row, name, "name"),
    NI_JSON_FROM(put_timing, ni_tag_row, timing, "timing_source"),
    NI_JSON(ni_tag_row, operations),
    NI_JSON(ni_tag_row, records),
    NI_JSON(ni_tag_row, no_bandwidth),
    NI_JSON_AS(ni_tag_row, bytes, "sum_bytes"),
    NI_JSON_FROM(put_ns_as_us, ni_tag_row, exec_ns, "exec_time_us"),
    NI_JSON(ni_tag_row, time_share),
    NI_JSON_AS(ni_tag_row, busbw_gbs, "busbw_gbs_mean")};

/* Host and pid of a process. */
static void put_place(struct ni_json *j, const struct ni_summary *s, const struct ni_process *p) {
  ni_json_text(j, "hostname", s->host[p->host].name);
  ni_json_i64(j, "pid", p->pid);
}

/* Puts null for a process with several ranks: nobody knows which one is meant. */
static void put_global_rank(struct ni_json *j, const struct ni_process *p) {
  if (p->ranks > 1)
    ni_json_text(j, "global_rank", NULL);
  else
    ni_json_i64(j, "global_rank", p->rank);
}

/* What the processes of each named part of the logs come to. */
static void put_log_groups(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "log_groups");
  for (uint32_t k = 0; k < s->n_log_groups; k++) {
    uint64_t ranks = 0, records = 0, late = 0;
    double exec_ns = 0, late_ns = 0;
    for (size_t i = 0; i < s->n_processes; i++) {
      const struct ni_process *p = &s->process[i];
      if (p->log_group != k)
        continue;
      ranks++;
      records += p->records;
      exec_ns += p->exec_ns;
      late += p->late;
      late_ns += p->late_ns;
    }
    ni_json_object(j, NULL);
    ni_json_text(j, "log_group", s->log_group[k]);
    ni_json_u64(j, "ranks", ranks);
    ni_json_u64(j, "records", records);
    ni_json_f64(j, "exec_time_us", exec_ns / 1e3);
    put_joined(j, "late", &late, s);
    ni_json_f64(j, "late_us", late_ns / 1e3);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void put_ranks(struct ni_json *j, const struct ni_summary *s) {
  static const struct ni_json_field of_process[] = {
      NI_JSON(ni_process, records),  NI_JSON_FROM(put_ns_as_us, ni_process, exec_ns, "exec_time_us"),
      JOINED(ni_process, compared),  JOINED(ni_process, shortest),
      JOINED(ni_process, late),      NI_JSON_FROM(put_ns_as_us, ni_process, late_ns, "late_us"),
      NI_JSON(ni_process, relative), NI_JSON(ni_process, busbw_relative),
      NI_JSON(ni_process, file)};
  static const struct ni_json_field of_host[] = {NI_JSON_AS(ni_host, name, "hostname"),
                                                 NI_JSON_AS(ni_host, n_processes, "ranks"),
                                                 NI_JSON(ni_host, records),
                                                 NI_JSON_FROM(put_ns_as_us, ni_host, exec_ns, "exec_time_us"),
                                                 JOINED(ni_host, compared),
                                                 JOINED(ni_host, shortest),
                                                 JOINED(ni_host, late),
                                                 NI_JSON_FROM(put_ns_as_us, ni_host, late_ns, "late_us"),
                                                 NI_JSON(ni_host, relative),
                                                 NI_JSON(ni_host, busbw_relative)};
  ni_json_array(j, "ranks");
  for (size_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    ni_json_object(j, NULL);
    put_place(j, s, p);
    ni_json_i64(j, "rank", p->rank);
    ni_json_bool(j, "rank_stated", p->rank_stated);
    if (p->ranks > 1) {
      char text[48];
      ni_json_u64(j, "ranks_in_process", p->ranks);
      ni_json_text(j, "ranks", ni_ranks_text(p, text));
    }
    NI_JSON_ALL(j, of_process, p, s);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  NI_JSON_OBJECTS(j, "hosts", of_host, s->host, s->n_hosts, s);
  if (s->n_log_groups)
    put_log_groups(j, s);
}

/* What an entry stands for, and who began it. */
static void put_incident(struct ni_json *j, const struct ni_summary *s, size_t i) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_outlier, operations), NI_JSON_AS(ni_outlier, ranks, "ranks_waiting"),
      NI_JSON(ni_outlier, most_us), NI_JSON(ni_outlier, total_us), NI_JSON(ni_outlier, more)};
  const struct ni_outlier *o = &s->outlier[i];
  ni_json_u64(j, "incident", i + 1);
  NI_JSON_ALL(j, fields, o, s);
  if (o->began_host == UINT32_MAX)
    ni_json_text(j, "began", NULL);
  else {
    ni_json_object(j, "began");
    if (o->began == UINT32_MAX)
      ni_json_text(j, "rank", NULL);
    else
      ni_json_i64(j, "rank", s->process[o->began].rank);
    ni_json_text(j, "hostname", s->host[o->began_host].name);
    ni_json_i64(j, "step", o->began_step);
    ni_json_f64(j, "us", o->began_us);
    if (o->began_time_us)
      ni_json_i64(j, "time_us", o->began_time_us);
    ni_json_end_object(j);
  }
  if (o->finding < 0)
    ni_json_text(j, "finding", NULL);
  else
    ni_json_i64(j, "finding", o->finding);
}

static void put_outliers(struct ni_json *j, const struct ni_summary *s) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_outlier, sn), NI_JSON_AS(ni_outlier, us, "exec_time_us"), NI_JSON(ni_outlier, peers_us),
      NI_JSON(ni_outlier, lost_us), NI_JSON(ni_outlier, time_us)};
  ni_json_array(j, "outliers");
  for (size_t i = 0; i < s->n_outliers; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    const struct ni_group *g = &s->group[o->group];
    ni_json_object(j, NULL);
    ni_json_text(j, "kind", o->kind == NI_OUTLIER_LATE ? "late" : "slow");
    ni_json_text(j, "comm_type", ni_comm_type_names[g->type]);
    ni_json_text(j, "func", g->func);
    ni_json_u64(j, "msg_size_bytes", g->msg_bytes);
    ni_json_text(j, "id", s->comm[o->comm].id);
    put_place(j, s, &s->process[o->process]);
    ni_json_i64(j, "rank", o->rank);
    put_global_rank(j, &s->process[o->process]);
    ni_json_bool(j, "global_rank_stated", s->process[o->process].rank_stated);
    NI_JSON_ALL(j, fields, o, s);
    if (o->operations)
      put_incident(j, s, i);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void put_side(struct ni_json *j, const struct ni_summary *s, const char *key, int32_t rank,
                     uint32_t process) {
  ni_json_object(j, key);
  ni_json_i64(j, "rank", rank);
  if (process != UINT32_MAX) {
    put_place(j, s, &s->process[process]);
    put_global_rank(j, &s->process[process]);
  }
  ni_json_end_object(j);
}

static void put_pairs(struct ni_json *j, const struct ni_summary *s) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_p2p_pair, sends),
      NI_JSON(ni_p2p_pair, recvs),
      NI_JSON(ni_p2p_pair, matched),
      NI_JSON(ni_p2p_pair, bandwidth_gbs),
      NI_JSON(ni_p2p_pair, sender_waited_us),
      NI_JSON(ni_p2p_pair, receiver_waited_us),
      NI_JSON_FROM(put_stats, ni_p2p_pair, send_us, "send_time_us"),
      NI_JSON_FROM(put_stats, ni_p2p_pair, recv_us, "recv_time_us"),
      NI_JSON_FROM(put_stats, ni_p2p_pair, transfer_us, "transfer_time_us")};
  ni_json_array(j, "p2p_pairs");
  for (size_t i = 0; i < s->n_pairs; i++) {
    const struct ni_p2p_pair *p = &s->pair[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "id", s->comm[p->comm].id);
    ni_json_text(j, "comm_type", ni_comm_type_names[s->comm[p->comm].type]);
    ni_json_u64(j, "msg_size_bytes", p->msg_bytes);
    put_side(j, s, "sender", p->from, p->from_process);
    put_side(j, s, "receiver", p->to, p->to_process);
    NI_JSON_ALL(j, fields, p, s);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_u64(j, "p2p_pair_records_left_out", s->pair_records_left_out);
}

static uint64_t count_fused_calls(const struct ni_summary *s) {
  uint64_t n = 0;
  for (size_t i = 0; i < s->n_groups; i++)
    n += s->group[i].tails;
  return n;
}

void ni_json_summary(const struct ni_summary *s, FILE *f) {
  static const struct ni_json_field counts[] = {
      NI_JSON(ni_summary, records), JOINED(ni_summary, operations), JOINED(ni_summary, clocks_disagree),
      NI_JSON(ni_summary, late_share_median), NI_JSON(ni_summary, groups_without_slices)};
  struct ni_json j;
  ni_json_open(&j, f, "nccl-inspector-summary-1");
  ni_json_bool(&j, "complete", s->complete);
  if (s->approximate)
    ni_json_bool(&j, "approximate", true);
  if (s->hang) {
    ni_json_object(&j, "hang");
    ni_json_text(&j, "verdict", s->hang_verdict);
    ni_json_text(&j, "sentence", s->hang);
    ni_json_end_object(&j);
  }
  ni_json_object(&j, "job");
  ni_json_text(&j, "id", s->job.id);
  ni_json_text(&j, "exe", s->job.exe);
  if (s->job.world_size >= 0)
    ni_json_i64(&j, "world_size", s->job.world_size);
  if (s->job.nccl_version >= 0)
    ni_json_i64(&j, "nccl_version", s->job.nccl_version);
  ni_json_text(&j, "formats", s->job.formats);
  ni_json_text(&j, "producers", s->job.producers);
  ni_json_end_object(&j);
  ni_json_i64(&j, "first_us", s->first_us);
  ni_json_i64(&j, "last_us", s->last_us);
  ni_json_text(&j, "time_from", s->time_from == NI_TIME_START ? "start" : "dump");
  NI_JSON_ALL(&j, counts, s, s);
  put_input(&j, s);
  if (s->clocks)
    ni_clocks_json(&j, s->clocks);
  if (count_fused_calls(s))
    ni_json_u64(&j, "fused_calls_counted_once", count_fused_calls(s));
  NI_JSON_OBJECTS(&j, "groups", group_fields, s->group, s->n_groups, s);
  if (s->n_tags)
    NI_JSON_OBJECTS(&j, "tags", tag_fields, s->tag, s->n_tags, s);
  NI_JSON_OBJECTS(&j, "communicators", comm_fields, s->comm, s->n_comms, s);
  put_ranks(&j, s);
  put_pairs(&j, s);
  ni_findings_json(&j, s);
  put_outliers(&j, s);
  ni_beside_json(&j, s);
  ni_series_json(&j, s);
  ni_json_close(&j);
}

int ni_write_json(const struct ni_summary *s, const char *path) {
  FILE *f = fopen(path, "we");
  if (!f)
    return -errno;
  ni_json_summary(s, f);
  return ni_out_end(f);
}
