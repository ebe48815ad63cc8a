/*
 * summary.csv and the same by communicator, rank and host; summary.json.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "../json_out.h"
#include "../safe_text.h"
#include "csv_out.h"
#include "output.h"

#define STATS_HEAD(q) q "_n," q "_mean," q "_stddev," q "_min," q "_p10," q "_p25," q "_p50," q "_p75," q "_p90," q "_p99," q "_max," q "_approx"

static void stats_row(FILE *f, const struct ni_stats *s) {
  const double v[] = {s->mean, s->stddev, s->min, s->p10, s->p25, s->p50, s->p75, s->p90, s->p99, s->max};
  fprintf(f, ",%llu", (unsigned long long)s->n);
  for (unsigned i = 0; i < sizeof v / sizeof *v; i++) {
    putc(',', f);
    ni_csv_double(f, v[i]);
  }
  fputs(s->approx ? ",true" : ",false", f);
}

static void group_key(FILE *f, const struct ni_group *g, const char *human) {
  fprintf(f, "%s,%s,", ni_comm_type_names[g->type], g->kind == NI_KIND_P2P ? "p2p" : "coll");
  ni_csv_text(f, g->func);
  fprintf(f, ",%llu,%s,%s", (unsigned long long)g->msg_bytes, human, ni_timing_names[g->timing]);
}
#define GROUP_HEAD "comm_type,kind,func,msg_size_bytes,msg_size_human,timing_source"

/* No comma and no quotation mark inside, no formula: one cell holds them all. */
static void mix_word(FILE *f, const char *text) {
  char word[81];
  ni_safe_text(*text ? text : "unstated", word, sizeof word);
  for (const char *p = word; *p; p++) putc(strchr(p == word ? ",\"=+-@" : ",\"", *p) ? '_' : *p, f);
}

static void mix_text(FILE *f, const struct ni_summary *s, const struct ni_group *g) {
  for (uint32_t i = 0; i < g->n_mix; i++) {
    const struct ni_mix *m = &s->mix[g->mix + i];
    if (i) putc(' ', f);
    mix_word(f, m->algo);
    putc('/', f);
    mix_word(f, m->proto);
    fprintf(f, ":%llu", (unsigned long long)m->records);
  }
}

static int finish(FILE *f) {
  int bad = ferror(f);
  return fclose(f) != 0 || bad ? -(errno ? errno : EIO) : 0;
}

static void write_groups(FILE *f, const struct ni_summary *s) {
  fputs(GROUP_HEAD ",records,operations,no_bandwidth,time_share,of_best," STATS_HEAD("exec_time_us") "," STATS_HEAD(
            "busbw_gbs") "," STATS_HEAD("transfer_time_us") "," STATS_HEAD("job_time_us") ",algo_proto\n",
        f);
  for (size_t i = 0; i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    group_key(f, g, s->cell[g->cell].human);
    fprintf(f, ",%llu,%llu,%llu,", (unsigned long long)g->records, (unsigned long long)g->operations,
            (unsigned long long)g->no_bandwidth);
    ni_csv_double(f, g->time_share);
    putc(',', f);
    ni_csv_double(f, g->of_best);
    stats_row(f, &g->us);
    stats_row(f, &g->busbw_gbs);
    stats_row(f, &g->transfer_us);
    stats_row(f, &g->job_us);
    putc(',', f);
    mix_text(f, s, g);
    putc('\n', f);
  }
}

static void name_comm(FILE *f, const struct ni_summary *s, uint32_t i) {
  const struct ni_comm *c = &s->comm[i];
  fprintf(f, "%s,", c->id);
  ni_csv_text(f, c->name);
  fprintf(f, ",%d,%d,", c->n_ranks, c->nnodes);
}
static void name_process(FILE *f, const struct ni_summary *s, uint32_t i) {
  const struct ni_process *p = &s->process[i];
  ni_csv_text(f, s->host[p->host].name);
  fprintf(f, ",%lld,%d,", (long long)p->pid, p->rank);
}
static void name_host(FILE *f, const struct ni_summary *s, uint32_t i) {
  ni_csv_text(f, s->host[i].name);
  putc(',', f);
}

static void write_rolled(FILE *f, const struct ni_summary *s) {
  fputs("kind,func,msg_size_bytes,msg_size_to_bytes,timing_source,operations,records,sum_bytes,sum_us,mean_us,min_us,p50_us_at_most,"
        "p99_us_at_most,max_us\n", f);
  for (size_t i = 0; i < s->n_rolled; i++) {
    const struct ni_rolled *o = &s->rolled[i];
    fprintf(f, "%s,", o->kind == NI_KIND_P2P ? "p2p" : "coll");
    ni_csv_text(f, o->func);
    fprintf(f, ",%llu,", (unsigned long long)o->msg_bytes);
    if (o->msg_to_bytes) fprintf(f, "%llu", (unsigned long long)o->msg_to_bytes);
    fprintf(f, ",%s,%llu,", ni_timing_names[o->timing], (unsigned long long)o->count);
    if (!o->msg_to_bytes) fprintf(f, "%llu", (unsigned long long)o->records);
    fprintf(f, ",%llu", (unsigned long long)o->sum_bytes);
    const double us[] = {(double)o->sum_ns / 1e3, (double)o->sum_ns / 1e3 / (double)o->count, (double)o->min_ns / 1e3,
                         o->p50_ns ? (double)o->p50_ns / 1e3 : NAN, o->p99_ns ? (double)o->p99_ns / 1e3 : NAN,
                         (double)o->max_ns / 1e3};
    for (unsigned k = 0; k < sizeof us / sizeof *us; k++) {
      putc(',', f);
      ni_csv_double(f, us[k]);
    }
    putc('\n', f);
  }
}

static void write_slices(FILE *f, const struct ni_summary *s, const char *head, const struct ni_slice *x, size_t n,
                         void (*name)(FILE *, const struct ni_summary *, uint32_t)) {
  fprintf(f, "%s," GROUP_HEAD ",records," STATS_HEAD("exec_time_us") "," STATS_HEAD("busbw_gbs") "\n", head);
  for (size_t i = 0; i < n; i++) {
    const struct ni_group *g = &s->group[x[i].group];
    name(f, s, x[i].of);
    group_key(f, g, s->cell[g->cell].human);
    fprintf(f, ",%llu", (unsigned long long)x[i].records);
    stats_row(f, &x[i].us);
    stats_row(f, &x[i].busbw_gbs);
    putc('\n', f);
  }
}

static void name_side(FILE *f, const struct ni_summary *s, int32_t rank, uint32_t process) {
  fprintf(f, ",%d,", rank);
  if (process == UINT32_MAX) {
    fputs(",", f);
    return;
  }
  ni_csv_text(f, s->host[s->process[process].host].name);
  fprintf(f, ",%lld", (long long)s->process[process].pid);
}

static void write_pairs(FILE *f, const struct ni_summary *s) {
  fputs(
      "id,comm_name,n_ranks,nnodes,comm_type,msg_size_bytes,msg_size_human,sender_rank,sender_hostname,sender_pid,"
      "receiver_rank,receiver_hostname,receiver_pid,sends,recvs,matched,bandwidth_gbs,sender_waited_us,"
      "receiver_waited_us," STATS_HEAD("send_time_us") "," STATS_HEAD("recv_time_us") "," STATS_HEAD(
          "transfer_time_us") "\n",
      f);
  for (size_t i = 0; i < s->n_pairs; i++) {
    const struct ni_pair *p = &s->pair[i];
    name_comm(f, s, p->comm);
    fprintf(f, "%s,%llu,%s", ni_comm_type_names[s->comm[p->comm].type], (unsigned long long)p->msg_bytes, p->human);
    name_side(f, s, p->from, p->from_process);
    name_side(f, s, p->to, p->to_process);
    fprintf(f, ",%llu,%llu,%llu,", (unsigned long long)p->sends, (unsigned long long)p->recvs,
            (unsigned long long)p->matched);
    ni_csv_double(f, p->bandwidth_gbs);
    putc(',', f);
    ni_csv_double(f, p->sender_waited_us);
    putc(',', f);
    ni_csv_double(f, p->receiver_waited_us);
    stats_row(f, &p->send_us);
    stats_row(f, &p->recv_us);
    stats_row(f, &p->transfer_us);
    putc('\n', f);
  }
}

int ni_write_tables(const struct ni_summary *s, const char *dir) {
  static const char *const name[] = {"summary", "summary_by_comm", "summary_by_rank", "summary_by_host",
                                     "summary_p2p_by_pair", "summary_rollups"};
  char path[PATH_MAX];
  int e = 0;
  for (int i = 0; e == 0 && i < 6; i++) {
    if ((i == 4 && !s->n_pairs) || (i == 5 && !s->n_rolled)) continue;
    snprintf(path, sizeof path, "%s/%s.csv", dir, name[i]);
    FILE *f = fopen(path, "we");
    if (!f) return -errno;
    switch (i) {
      case 0: write_groups(f, s); break;
      case 1: write_slices(f, s, "id,comm_name,n_ranks,nnodes", s->by_comm, s->n_by_comm, name_comm); break;
      case 2: write_slices(f, s, "hostname,pid,rank", s->by_process, s->n_by_process, name_process); break;
      case 3: write_slices(f, s, "hostname", s->by_host, s->n_by_host, name_host); break;
      case 4: write_pairs(f, s); break;
      default: write_rolled(f, s);
    }
    e = finish(f);
  }
  return e;
}

static void json_stats(struct ni_json *j, const char *key, const struct ni_stats *s) {
  ni_json_object(j, key);
  ni_json_u64(j, "n", s->n);
  ni_json_f64(j, "mean", s->mean);
  ni_json_f64(j, "stddev", s->stddev);
  ni_json_f64(j, "min", s->min);
  ni_json_f64(j, "p10", s->p10);
  ni_json_f64(j, "p25", s->p25);
  ni_json_f64(j, "p50", s->p50);
  ni_json_f64(j, "p75", s->p75);
  ni_json_f64(j, "p90", s->p90);
  ni_json_f64(j, "p99", s->p99);
  ni_json_f64(j, "max", s->max);
  if (s->approx) ni_json_bool(j, "approx", true);
  ni_json_end_object(j);
}

static void json_counts(struct ni_json *j, const char *key, const struct ni_count *c, size_t n) {
  ni_json_object(j, key);
  for (size_t i = 0; i < n; i++) ni_json_u64(j, c[i].name, c[i].count);
  ni_json_end_object(j);
}

static void json_input(struct ni_json *j, const struct ni_input *in) {
  ni_json_object(j, "input");
  ni_json_u64(j, "files", in->files);
  ni_json_u64(j, "files_failed", in->files_failed);
  ni_json_u64(j, "files_empty", in->files_empty);
  ni_json_u64(j, "files_cut", in->cut_files);
  ni_json_u64(j, "files_damaged", in->damaged_files);
  ni_json_u64(j, "bytes", in->bytes);
  ni_json_u64(j, "text_bytes", in->text_bytes);
  ni_json_u64(j, "lines", in->lines);
  ni_json_u64(j, "records", in->records);
  ni_json_u64(j, "filtered_out", in->filtered_out);
  ni_json_u64(j, "control_lines", in->control_lines);
  ni_json_u64(j, "proxy_lines", in->proxy_lines);
  ni_json_u64(j, "unknown_lines", in->unknown_lines);
  ni_json_u64(j, "bad_lines", in->bad_lines);
  json_counts(j, "bad_by_reason", in->bad_by_reason, in->n_bad_by_reason);
  ni_json_u64(j, "orphans", in->orphans);
  ni_json_u64(j, "duplicates", in->duplicates);
  if (in->rolled) {
    ni_json_u64(j, "operations_in_rollups", in->rolled);
    ni_json_u64(j, "operations_not_in_rollups", in->unrolled);
    ni_json_u64(j, "operations_without_record", in->without_record);
  }
  ni_json_u64(j, "gaps", in->gaps);
  ni_json_u64(j, "untold", in->untold);
  ni_json_u64(j, "out_of_range", in->out_of_range);
  json_counts(j, "out_of_range_by", in->out_of_range_by, in->n_out_of_range_by);
  ni_json_u64(j, "no_bandwidth", in->no_bandwidth);
  ni_json_u64(j, "stated_losses", in->stated_losses);
  json_counts(j, "losses_by_cause", in->losses_by_cause, in->n_losses_by_cause);
  ni_json_u64(j, "missing_ranks", in->missing_ranks);
  ni_json_u64(j, "missing_hosts", in->missing_hosts);
  ni_json_array(j, "trouble");
  for (size_t i = 0; i < in->n_trouble; i++) ni_json_text(j, NULL, in->trouble[i]);
  ni_json_end_array(j);
  ni_json_array(j, "bad_lines_at");
  for (size_t i = 0; i < in->n_where; i++) ni_json_text(j, NULL, in->where[i]);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

static void json_groups(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "groups");
  for (size_t i = 0; i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "comm_type", ni_comm_type_names[g->type]);
    ni_json_text(j, "kind", g->kind == NI_KIND_P2P ? "p2p" : "coll");
    ni_json_text(j, "func", g->func);
    ni_json_u64(j, "msg_size_bytes", g->msg_bytes);
    ni_json_text(j, "timing_source", ni_timing_names[g->timing]);
    ni_json_u64(j, "records", g->records);
    ni_json_u64(j, "operations", g->operations);
    ni_json_u64(j, "no_bandwidth", g->no_bandwidth);
    ni_json_f64(j, "time_share", g->time_share);
    ni_json_f64(j, "of_best", g->of_best);
    json_stats(j, "exec_time_us", &g->us);
    json_stats(j, "busbw_gbs", &g->busbw_gbs);
    json_stats(j, "transfer_time_us", &g->transfer_us);
    json_stats(j, "job_time_us", &g->job_us);
    json_stats(j, "operation_busbw_gbs", &s->cell[g->cell].busbw_gbs);
    ni_json_array(j, "algo_proto");
    for (uint32_t m = 0; m < g->n_mix; m++) {
      const struct ni_mix *x = &s->mix[g->mix + m];
      ni_json_object(j, NULL);
      ni_json_text(j, "algo", *x->algo ? x->algo : NULL);
      ni_json_text(j, "proto", *x->proto ? x->proto : NULL);
      ni_json_u64(j, "records", x->records);
      ni_json_end_object(j);
    }
    ni_json_end_array(j);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void json_comms(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "communicators");
  for (size_t i = 0; i < s->n_comms; i++) {
    const struct ni_comm *c = &s->comm[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "id", c->id);
    ni_json_text(j, "comm_name", c->name);
    ni_json_text(j, "comm_type", ni_comm_type_names[c->type]);
    ni_json_i64(j, "n_ranks", c->n_ranks);
    ni_json_i64(j, "nnodes", c->nnodes);
    ni_json_u64(j, "ranks_seen", c->ranks_seen);
    ni_json_u64(j, "hosts_seen", c->hosts_seen);
    ni_json_u64(j, "records", c->records);
    ni_json_u64(j, "operations", c->operations);
    ni_json_u64(j, "partial_operations", c->partial_operations);
    ni_json_f64(j, "transfer_us", c->transfer_ns / 1e3);
    ni_json_f64(j, "waiting_us", c->waiting_ns / 1e3);
    ni_json_f64(j, "outside_us", c->outside_ns / 1e3);
    ni_json_f64(j, "span_us", c->span_ns / 1e3);
    ni_json_i64(j, "first_us", c->first_us);
    ni_json_i64(j, "last_us", c->last_us);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

/* Of a process with several ranks it is not known which one is meant. */
static void json_global_rank(struct ni_json *j, const struct ni_process *p) {
  if (p->ranks > 1) ni_json_text(j, "global_rank", NULL);
  else ni_json_i64(j, "global_rank", p->rank);
}

static void json_ranks(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "ranks");
  for (size_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "hostname", s->host[p->host].name);
    ni_json_i64(j, "pid", p->pid);
    ni_json_i64(j, "rank", p->rank);
    ni_json_bool(j, "rank_stated", p->rank_stated);
    if (p->ranks > 1) {
      char text[48];
      ni_json_u64(j, "ranks_in_process", p->ranks);
      ni_json_text(j, "ranks", ni_ranks_text(p, text));
    }
    ni_json_u64(j, "records", p->records);
    ni_json_f64(j, "exec_time_us", p->exec_ns / 1e3);
    ni_json_u64(j, "compared", p->compared);
    ni_json_u64(j, "shortest", p->shortest);
    ni_json_u64(j, "late", p->late);
    ni_json_f64(j, "late_us", p->late_ns / 1e3);
    ni_json_f64(j, "relative", p->relative);
    ni_json_f64(j, "busbw_relative", p->busbw_relative);
    ni_json_text(j, "file", p->file);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_array(j, "hosts");
  for (size_t i = 0; i < s->n_hosts; i++) {
    const struct ni_host *h = &s->host[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "hostname", h->name);
    ni_json_u64(j, "ranks", h->n_processes);
    ni_json_u64(j, "records", h->records);
    ni_json_f64(j, "exec_time_us", h->exec_ns / 1e3);
    ni_json_u64(j, "compared", h->compared);
    ni_json_u64(j, "shortest", h->shortest);
    ni_json_u64(j, "late", h->late);
    ni_json_f64(j, "late_us", h->late_ns / 1e3);
    ni_json_f64(j, "relative", h->relative);
    ni_json_f64(j, "busbw_relative", h->busbw_relative);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void json_outliers(struct ni_json *j, const struct ni_summary *s) {
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
    ni_json_text(j, "hostname", s->host[s->process[o->process].host].name);
    ni_json_i64(j, "pid", s->process[o->process].pid);
    ni_json_i64(j, "rank", o->rank);
    json_global_rank(j, &s->process[o->process]);
    ni_json_bool(j, "global_rank_stated", s->process[o->process].rank_stated);
    ni_json_u64(j, "sn", o->sn);
    ni_json_f64(j, "exec_time_us", o->us);
    ni_json_f64(j, "peers_us", o->peers_us);
    ni_json_f64(j, "lost_us", o->lost_us);
    ni_json_i64(j, "time_us", o->time_us);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void json_side(struct ni_json *j, const struct ni_summary *s, const char *key, int32_t rank, uint32_t process) {
  ni_json_object(j, key);
  ni_json_i64(j, "rank", rank);
  if (process != UINT32_MAX) {
    ni_json_text(j, "hostname", s->host[s->process[process].host].name);
    ni_json_i64(j, "pid", s->process[process].pid);
    json_global_rank(j, &s->process[process]);
  }
  ni_json_end_object(j);
}

static void json_pairs(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "p2p_pairs");
  for (size_t i = 0; i < s->n_pairs; i++) {
    const struct ni_pair *p = &s->pair[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "id", s->comm[p->comm].id);
    ni_json_text(j, "comm_type", ni_comm_type_names[s->comm[p->comm].type]);
    ni_json_u64(j, "msg_size_bytes", p->msg_bytes);
    json_side(j, s, "sender", p->from, p->from_process);
    json_side(j, s, "receiver", p->to, p->to_process);
    ni_json_u64(j, "sends", p->sends);
    ni_json_u64(j, "recvs", p->recvs);
    ni_json_u64(j, "matched", p->matched);
    ni_json_f64(j, "bandwidth_gbs", p->bandwidth_gbs);
    ni_json_f64(j, "sender_waited_us", p->sender_waited_us);
    ni_json_f64(j, "receiver_waited_us", p->receiver_waited_us);
    json_stats(j, "send_time_us", &p->send_us);
    json_stats(j, "recv_time_us", &p->recv_us);
    json_stats(j, "transfer_time_us", &p->transfer_us);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_u64(j, "p2p_pair_records_left_out", s->pair_records_left_out);
}

static void json_findings(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "findings");
  for (size_t i = 0; i < s->n_findings; i++) {
    const struct ni_finding *x = &s->finding[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "kind", ni_finding_names[x->kind]);
    ni_json_text(j, "text", x->text);
    if (x->kind == NI_FIND_LATE_RANK) {
      const struct ni_process *p = &s->process[x->of];
      ni_json_text(j, "hostname", s->host[p->host].name);
      ni_json_i64(j, "pid", p->pid);
      if (p->ranks > 1) {
        char ranks[48];
        ni_json_text(j, "rank", NULL);
        ni_json_text(j, "ranks", ni_ranks_text(p, ranks));
      } else ni_json_i64(j, "rank", p->rank);
      ni_json_bool(j, "rank_stated", p->rank_stated);
      if (p->gpu >= 0) ni_json_i64(j, "gpu", p->gpu);
      ni_json_f64(j, "late_share", x->value);
      ni_json_u64(j, "operations", x->compared);
    } else {
      if (x->kind == NI_FIND_SLOW_HOST) ni_json_text(j, "hostname", s->host[x->of].name);
      else ni_json_text(j, "id", s->comm[x->of].id);
      ni_json_f64(j, x->compared ? "transfer_ratio" : "busbw_ratio", x->value);
      if (x->compared) ni_json_u64(j, "communicators_alike", x->compared);
    }
    ni_json_f64(j, "lost_us", x->lost_us);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_u64(j, "findings_left_out", s->findings_left_out);
}

void ni_json_summary(const struct ni_summary *s, FILE *f) {
  struct ni_json j;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  ni_json_text(&j, "schema_version", "nccl-inspector-summary-1");
  ni_json_bool(&j, "complete", s->complete);
  ni_json_object(&j, "job");
  ni_json_text(&j, "id", s->job.id);
  ni_json_text(&j, "exe", s->job.exe);
  if (s->job.world_size >= 0) ni_json_i64(&j, "world_size", s->job.world_size);
  if (s->job.nccl_version >= 0) ni_json_i64(&j, "nccl_version", s->job.nccl_version);
  ni_json_text(&j, "formats", s->job.formats);
  ni_json_text(&j, "producers", s->job.producers);
  ni_json_end_object(&j);
  ni_json_i64(&j, "first_us", s->first_us);
  ni_json_i64(&j, "last_us", s->last_us);
  ni_json_text(&j, "time_from", s->time_from == NI_TIME_START ? "start" : "dump");
  ni_json_u64(&j, "records", s->records);
  ni_json_u64(&j, "operations", s->operations);
  ni_json_u64(&j, "clocks_disagree", s->clocks_disagree);
  ni_json_f64(&j, "late_share_median", s->late_share_median);
  ni_json_u64(&j, "groups_without_slices", s->groups_without_slices);
  json_input(&j, &s->input);
  json_groups(&j, s);
  json_comms(&j, s);
  json_ranks(&j, s);
  json_pairs(&j, s);
  json_findings(&j, s);
  json_outliers(&j, s);
  ni_json_end_object(&j);
  ni_json_finish(&j);
}

int ni_write_json(const struct ni_summary *s, const char *path) {
  FILE *f = fopen(path, "we");
  if (!f) return -errno;
  ni_json_summary(s, f);
  return finish(f);
}
