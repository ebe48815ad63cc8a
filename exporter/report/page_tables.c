#include <stdlib.h>

#include "page_json.h"

static int larger_first(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x > y ? -1 : x < y;
}

static void write_comms(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {
      "id", "name", "type", "n_ranks", "nnodes", "ranks_seen", "hosts_seen", "records", "operations", "partial",
      "transfer_ns", "waiting_ns", "outside_ns", "span_ns", "first_us", "last_us", NULL};
  size_t shown = ni_page_at_most(s->n_comms, NI_PAGE_COMMS);
  ni_page_table_begin(j, "comms", columns);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_comm *c = &s->comm[i];
    ni_json_array(j, NULL);
    ni_json_text(j, NULL, c->id);
    ni_page_name(j, NULL, c->name);
    ni_json_u64(j, NULL, c->type);
    ni_json_i64(j, NULL, c->n_ranks);
    ni_json_i64(j, NULL, c->nnodes);
    ni_json_u64(j, NULL, c->ranks_seen);
    ni_json_u64(j, NULL, c->hosts_seen);
    ni_json_u64(j, NULL, c->records);
    ni_json_u64(j, NULL, c->operations);
    ni_json_u64(j, NULL, c->partial_operations);
    ni_page_num(j, c->transfer_ns);
    ni_page_num(j, c->waiting_ns);
    ni_page_num(j, c->outside_ns);
    ni_page_num(j, c->span_ns);
    ni_json_i64(j, NULL, c->first_us);
    ni_json_i64(j, NULL, c->last_us);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_comms, shown);
}

static void write_hosts(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {
      "name", "processes", "records", "exec_ns", "compared", "shortest", "late", "late_ns", "relative",
      "busbw_relative", NULL};
  size_t shown = ni_page_at_most(s->n_hosts, NI_PAGE_HOSTS);
  ni_page_table_begin(j, "hosts", columns);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_host *h = &s->host[i];
    ni_json_array(j, NULL);
    ni_page_name(j, NULL, h->name);
    ni_json_u64(j, NULL, h->n_processes);
    ni_json_u64(j, NULL, h->records);
    ni_page_num(j, h->exec_ns);
    ni_json_u64(j, NULL, h->compared);
    ni_json_u64(j, NULL, h->shortest);
    ni_json_u64(j, NULL, h->late);
    ni_page_num(j, h->late_ns);
    ni_page_num(j, h->relative);
    ni_page_num(j, h->busbw_relative);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_hosts, shown);
}

static void write_processes(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {
      "host", "pid", "rank", "ranks", "stated", "gpu", "records", "exec_ns", "compared", "shortest", "late", "late_ns",
      "relative", "busbw_relative", NULL};
  size_t shown = ni_page_at_most(s->n_processes, NI_PAGE_PROCESSES);
  ni_page_table_begin(j, "processes", columns);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_process *p = &s->process[i];
    char ranks[48];
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, p->host);
    ni_json_i64(j, NULL, p->pid);
    ni_json_i64(j, NULL, p->ranks > 1 ? p->first : p->rank);
    ni_json_text(j, NULL, p->ranks > 1 ? ni_ranks_text(p, ranks) : NULL);
    ni_json_u64(j, NULL, p->rank_stated);
    ni_json_i64(j, NULL, p->gpu);
    ni_json_u64(j, NULL, p->records);
    ni_page_num(j, p->exec_ns);
    ni_json_u64(j, NULL, p->compared);
    ni_json_u64(j, NULL, p->shortest);
    ni_json_u64(j, NULL, p->late);
    ni_page_num(j, p->late_ns);
    ni_page_num(j, p->relative);
    ni_page_num(j, p->busbw_relative);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_processes, shown);
}

static void write_outliers(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {
      "kind", "group", "comm", "process", "rank", "sn", "us", "peers_us", "lost_us", "time_us", "host", "pid",
      "comm_id", "func", "bytes", "global_rank", NULL};
  size_t shown = ni_page_at_most(s->n_outliers, NI_SUM_OUTLIERS);
  ni_page_table_begin(j, "outliers", columns);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    const struct ni_process *p = &s->process[o->process];
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, o->kind);
    ni_json_u64(j, NULL, o->group);
    ni_json_u64(j, NULL, o->comm);
    ni_json_u64(j, NULL, o->process);
    ni_json_i64(j, NULL, o->rank);
    ni_json_u64(j, NULL, o->sn);
    ni_page_num(j, o->us);
    ni_page_num(j, o->peers_us);
    ni_page_num(j, o->lost_us);
    ni_json_i64(j, NULL, o->time_us);
    /* Spelled out: what they point to may be beyond the rows kept of other tables. */
    ni_page_name(j, NULL, s->host[p->host].name);
    ni_json_i64(j, NULL, p->pid);
    ni_json_text(j, NULL, s->comm[o->comm].id);
    ni_page_name(j, NULL, s->group[o->group].func);
    ni_json_u64(j, NULL, s->group[o->group].msg_bytes);
    if (p->ranks > 1) ni_json_text(j, NULL, NULL);
    else ni_json_i64(j, NULL, p->rank);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_outliers, shown);
}

/* Those with the most time; spelled out for the same reason. */
static void write_pairs(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {"comm_id",
                                        "comm_name",
                                        "type",
                                        "bytes",
                                        "from",
                                        "from_host",
                                        "to",
                                        "to_host",
                                        "sends",
                                        "recvs",
                                        "matched",
                                        "exec_ns",
                                        "send_p50",
                                        "recv_p50",
                                        "transfer_p50",
                                        "bandwidth",
                                        "sender_waited_us",
                                        "receiver_waited_us",
                                        NULL};
  size_t shown = ni_page_at_most(s->n_pairs, NI_PAGE_PAIRS);
  double *time = malloc((s->n_pairs + 1) * sizeof *time), least = 0;
  if (time && shown < s->n_pairs) {
    for (size_t i = 0; i < s->n_pairs; i++) time[i] = s->pair[i].exec_ns;
    qsort(time, s->n_pairs, sizeof *time, larger_first);
    least = time[shown - 1];
  }
  free(time);
  size_t n = 0;
  ni_page_table_begin(j, "pairs", columns);
  for (size_t i = 0; i < s->n_pairs && n < shown; i++) {
    const struct ni_pair *p = &s->pair[i];
    if (p->exec_ns < least) continue;
    n++;
    ni_json_array(j, NULL);
    ni_json_text(j, NULL, s->comm[p->comm].id);
    ni_page_name(j, NULL, s->comm[p->comm].name);
    ni_json_u64(j, NULL, s->comm[p->comm].type);
    ni_json_u64(j, NULL, p->msg_bytes);
    ni_json_i64(j, NULL, p->from);
    ni_page_name(j, NULL, p->from_process == UINT32_MAX ? NULL : s->host[s->process[p->from_process].host].name);
    ni_json_i64(j, NULL, p->to);
    ni_page_name(j, NULL, p->to_process == UINT32_MAX ? NULL : s->host[s->process[p->to_process].host].name);
    ni_json_u64(j, NULL, p->sends);
    ni_json_u64(j, NULL, p->recvs);
    ni_json_u64(j, NULL, p->matched);
    const double v[] = {p->exec_ns, p->send_us.p50, p->recv_us.p50, p->transfer_us.p50, p->bandwidth_gbs,
                        p->sender_waited_us, p->receiver_waited_us};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) ni_page_num(j, v[k]);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_pairs, n);
}

static void write_slices(struct ni_json *j, const char *key, const struct ni_slice *slice, size_t n) {
  static const char *const columns[] = {
      "group", "of", "records", "us_p50", "us_p99", "us_mean", "bw_mean", "bw_p50", "bw_min", NULL};
  size_t shown = ni_page_at_most(n, NI_PAGE_SLICES);
  ni_page_table_begin(j, key, columns);
  for (size_t i = 0; i < shown; i++) {
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, slice[i].group);
    ni_json_u64(j, NULL, slice[i].of);
    ni_json_u64(j, NULL, slice[i].records);
    const struct ni_slice *x = &slice[i];
    const double v[] = {x->us.p50, x->us.p99, x->us.mean, x->busbw_gbs.mean, x->busbw_gbs.p50, x->busbw_gbs.min};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) ni_page_num(j, v[k]);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, n, shown);
}

void ni_page_tables_write(struct ni_json *j, const struct ni_summary *s) {
  write_comms(j, s);
  write_hosts(j, s);
  write_processes(j, s);
  write_outliers(j, s);
  write_pairs(j, s);
  write_slices(j, "by_comm", s->by_comm, s->n_by_comm);
  write_slices(j, "by_process", s->by_process, s->n_by_process);
  write_slices(j, "by_host", s->by_host, s->n_by_host);
}
