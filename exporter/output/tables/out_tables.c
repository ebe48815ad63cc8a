#include "out_tables.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "beside_table.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/csv_write.h"
#include "exporter/base/text/safe_text.h"

#define STATS_HEAD(q) \
  q "_n," q "_mean," q "_stddev," q "_min," q "_p10," q "_p25," q "_p50," q "_p75," q "_p90," q "_p99," q \
    "_max," q "_approx"

static void write_stats(FILE *f, const struct ni_stats *s) {
  const double v[] = {s->mean, s->stddev, s->min, s->p10, s->p25, s->p50, s->p75, s->p90, s->p99, s->max};
  fprintf(f, ",%llu", (unsigned long long)s->n);
  ni_csv_doubles(f, v, sizeof v / sizeof *v);
  fputs(s->approx ? ",true" : ",false", f);
}

static void write_group_key(FILE *f, const struct ni_group *g, const char *human) {
  fprintf(f, "%s,%s,", ni_comm_type_names[g->type], g->kind == NI_KIND_P2P ? "p2p" : "coll");
  ni_csv_text(f, g->func);
  fprintf(f, ",%llu,%s,%s", (unsigned long long)g->msg_bytes, human, ni_timing_names[g->timing]);
}
#define GROUP_HEAD "comm_type,kind,func,msg_size_bytes,msg_size_human,timing_source"

/* No comma and no quotation mark inside, no formula: one cell holds them all. */
static void write_mix_word(FILE *f, const char *text) {
  char word[81];
  ni_safe_text(*text ? text : "unstated", word, sizeof word);
  for (const char *p = word; *p; p++)
    putc(strchr(p == word ? ",\"=+-@" : ",\"", *p) ? '_' : *p, f);
}

static void write_mix(FILE *f, const struct ni_summary *s, const struct ni_group *g) {
  for (uint32_t i = 0; i < g->n_mix; i++) {
    const struct ni_mix *m = &s->mix[g->mix + i];
    if (i)
      putc(' ', f);
    write_mix_word(f, m->algo);
    putc('/', f);
    write_mix_word(f, m->proto);
    fprintf(f, ":%llu", (unsigned long long)m->records);
  }
}

static void write_groups(FILE *f, const struct ni_summary *s) {
  fputs(GROUP_HEAD
        ",records,operations,no_bandwidth,time_share,of_best," STATS_HEAD("exec_time_us") "," STATS_HEAD(
            "busbw_gbs") "," STATS_HEAD("transfer_time_us") "," STATS_HEAD("job_time_us") ",algo_proto\n",
        f);
  for (size_t i = 0; i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    write_group_key(f, g, s->cell[g->cell].human);
    fprintf(f, ",%llu,", (unsigned long long)g->records);
    if (!s->approximate)
      fprintf(f, "%llu", (unsigned long long)g->operations);
    fprintf(f, ",%llu", (unsigned long long)g->no_bandwidth);
    ni_csv_doubles(f, (const double[]){g->time_share, g->of_best}, 2);
    write_stats(f, &g->us);
    write_stats(f, &g->busbw_gbs);
    write_stats(f, &g->transfer_us);
    write_stats(f, &g->job_us);
    putc(',', f);
    write_mix(f, s, g);
    putc('\n', f);
  }
}

static void write_communicator(FILE *f, const struct ni_summary *s, uint32_t i) {
  const struct ni_comm_row *c = &s->comm[i];
  fprintf(f, "%s,", c->id);
  ni_csv_text(f, c->name);
  fprintf(f, ",%d,%d,", c->n_ranks, c->nnodes);
}
static void write_process(FILE *f, const struct ni_summary *s, uint32_t i) {
  const struct ni_process *p = &s->process[i];
  ni_csv_text(f, s->host[p->host].name);
  fprintf(f, ",%lld,%d,", (long long)p->pid, p->rank);
}
static void write_host(FILE *f, const struct ni_summary *s, uint32_t i) {
  ni_csv_text(f, s->host[i].name);
  putc(',', f);
}

static void write_log_group(FILE *f, const struct ni_summary *s, uint32_t i) {
  ni_csv_text(f, s->log_group[i]);
  putc(',', f);
}

static void write_rolled(FILE *f, const struct ni_summary *s) {
  fputs(
      "kind,func,msg_size_bytes,msg_size_to_bytes,timing_source,operations,records,sum_bytes,sum_us,mean_us,"
      "min_us,p50_us_at_most,"
      "p99_us_at_most,max_us\n",
      f);
  for (size_t i = 0; i < s->n_rolled; i++) {
    const struct ni_rolled *o = &s->rolled[i];
    fprintf(f, "%s,", o->kind == NI_KIND_P2P ? "p2p" : "coll");
    ni_csv_text(f, o->func);
    fprintf(f, ",%llu,", (unsigned long long)o->msg_bytes);
    if (o->msg_to_bytes)
      fprintf(f, "%llu", (unsigned long long)o->msg_to_bytes);
    fprintf(f, ",%s,%llu,", ni_timing_names[o->timing], (unsigned long long)o->count);
    if (!o->msg_to_bytes)
      fprintf(f, "%llu", (unsigned long long)o->records);
    fprintf(f, ",%llu", (unsigned long long)o->sum_bytes);
    const double us[] = {(double)o->sum_ns / 1e3,
                         (double)o->sum_ns / 1e3 / (double)o->count,
                         (double)o->min_ns / 1e3,
                         o->p50_ns ? (double)o->p50_ns / 1e3 : NAN,
                         o->p99_ns ? (double)o->p99_ns / 1e3 : NAN,
                         (double)o->max_ns / 1e3};
    ni_csv_doubles(f, us, sizeof us / sizeof *us);
    putc('\n', f);
  }
}

static void write_slices(FILE *f, const struct ni_summary *s, const char *head, const struct ni_slice *x,
                         size_t n, void (*name)(FILE *, const struct ni_summary *, uint32_t)) {
  fprintf(f, "%s," GROUP_HEAD ",records," STATS_HEAD("exec_time_us") "," STATS_HEAD("busbw_gbs") "%s\n", head,
          name == write_communicator ? ",role" : "");
  for (size_t i = 0; i < n; i++) {
    const struct ni_group *g = &s->group[x[i].group];
    name(f, s, x[i].of);
    write_group_key(f, g, s->cell[g->cell].human);
    fprintf(f, ",%llu", (unsigned long long)x[i].records);
    write_stats(f, &x[i].us);
    write_stats(f, &x[i].busbw_gbs);
    if (name == write_communicator) {
      putc(',', f);
      ni_csv_text(f, ni_role_names[s->comm[x[i].of].role]);
    }
    putc('\n', f);
  }
}

static void write_tags(FILE *f, const struct ni_summary *s) {
  fputs(
      "tag,name,timing_source,operations,records,no_bandwidth,sum_bytes,exec_time_us,time_share,busbw_gbs_"
      "mean\n",
      f);
  for (size_t i = 0; i < s->n_tags; i++) {
    const struct ni_tag_row *x = &s->tag[i];
    fprintf(f, "%llu,", (unsigned long long)x->tag);
    ni_csv_text(f, x->name ? x->name : "");
    fprintf(f, ",%s,%llu,%llu,%llu,%llu", ni_timing_names[x->timing], (unsigned long long)x->operations,
            (unsigned long long)x->records, (unsigned long long)x->no_bandwidth,
            (unsigned long long)x->bytes);
    ni_csv_doubles(f, (const double[]){x->exec_ns / 1e3, x->time_share, x->busbw_gbs}, 3);
    putc('\n', f);
  }
}

static void write_side(FILE *f, const struct ni_summary *s, int32_t rank, uint32_t process) {
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
      "id,comm_name,n_ranks,nnodes,comm_type,msg_size_bytes,msg_size_human,sender_rank,sender_hostname,"
      "sender_pid,"
      "receiver_rank,receiver_hostname,receiver_pid,sends,recvs,matched,bandwidth_gbs,sender_waited_us,"
      "receiver_waited_us," STATS_HEAD("send_time_us") "," STATS_HEAD("recv_time_us") "," STATS_HEAD(
          "transfer_time_us") "\n",
      f);
  for (size_t i = 0; i < s->n_pairs; i++) {
    const struct ni_p2p_pair *p = &s->pair[i];
    write_communicator(f, s, p->comm);
    fprintf(f, "%s,%llu,%s", ni_comm_type_names[s->comm[p->comm].type], (unsigned long long)p->msg_bytes,
            p->human);
    write_side(f, s, p->from, p->from_process);
    write_side(f, s, p->to, p->to_process);
    fprintf(f, ",%llu,%llu,%llu", (unsigned long long)p->sends, (unsigned long long)p->recvs,
            (unsigned long long)p->matched);
    ni_csv_doubles(f, (const double[]){p->bandwidth_gbs, p->sender_waited_us, p->receiver_waited_us}, 3);
    write_stats(f, &p->send_us);
    write_stats(f, &p->recv_us);
    write_stats(f, &p->transfer_us);
    putc('\n', f);
  }
}

int ni_write_tables(const struct ni_summary *s, const char *dir, char *path) {
  static const char *const name[] = {"summary",         "summary_by_comm",      "summary_by_rank",
                                     "summary_by_host", "summary_p2p_by_pair",  "summary_rollups",
                                     "counters",        "summary_by_log_group", "summary_by_tag"};
  int e = 0;
  const bool has_rows[] = {
      true, true, true, true, s->n_pairs, s->n_rolled, s->beside.n_rows, s->n_log_groups, s->n_tags};
  for (int i = 0; e == 0 && i < 9; i++) {
    if (!has_rows[i])
      continue;
    snprintf(path, PATH_MAX, "%s/%s.csv", dir, name[i]);
    FILE *f = fopen(path, "we");
    if (!f)
      return -errno;
    switch (i) {
      case 0:
        write_groups(f, s);
        break;
      case 1:
        write_slices(f, s, "id,comm_name,n_ranks,nnodes", s->by_comm, s->n_by_comm, write_communicator);
        break;
      case 2:
        write_slices(f, s, "hostname,pid,rank", s->by_process, s->n_by_process, write_process);
        break;
      case 3:
        write_slices(f, s, "hostname", s->by_host, s->n_by_host, write_host);
        break;
      case 4:
        write_pairs(f, s);
        break;
      case 5:
        write_rolled(f, s);
        break;
      case 6:
        ni_beside_csv(f, s);
        break;
      case 7:
        write_slices(f, s, "log_group", s->by_log_group, s->n_by_log_group, write_log_group);
        break;
      default:
        write_tags(f, s);
    }
    e = ni_out_end(f);
  }
  return e;
}
