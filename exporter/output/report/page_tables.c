#include "page_tables.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "page_json.h"

static int compare_descending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x > y ? -1 : x < y;
}

#define TABLE(j, key, fields, items, n, limit, s) \
  ni_page_table(j, key, fields, sizeof(fields) / sizeof *(fields), items, sizeof *(items), n, limit, s)

static NI_JSON_FORM(put_role, enum ni_role, ni_json_text(j, key, ni_role_names[*v])) static const
    struct ni_json_field comm_fields[] = {NI_PAGE(ni_comm_row, id),
                                          NI_PAGE(ni_comm_row, name),
                                          NI_PAGE(ni_comm_row, type),
                                          NI_PAGE(ni_comm_row, n_ranks),
                                          NI_PAGE(ni_comm_row, nnodes),
                                          NI_PAGE(ni_comm_row, ranks_seen),
                                          NI_PAGE(ni_comm_row, hosts_seen),
                                          NI_PAGE(ni_comm_row, records),
                                          NI_PAGE(ni_comm_row, operations),
                                          NI_PAGE_AS(ni_comm_row, partial_operations, "partial"),
                                          NI_PAGE(ni_comm_row, transfer_ns),
                                          NI_PAGE(ni_comm_row, waiting_ns),
                                          NI_PAGE(ni_comm_row, outside_ns),
                                          NI_PAGE(ni_comm_row, path_us),
                                          NI_PAGE(ni_comm_row, cost_us),
                                          NI_PAGE(ni_comm_row, span_ns),
                                          NI_PAGE(ni_comm_row, first_us),
                                          NI_PAGE(ni_comm_row, last_us),
                                          {"role", put_role, offsetof(struct ni_comm_row, role)}};

static const struct ni_json_field host_fields[] = {
    NI_PAGE(ni_host, name),     NI_PAGE_AS(ni_host, n_processes, "processes"),
    NI_PAGE(ni_host, records),  NI_PAGE(ni_host, exec_ns),
    NI_PAGE(ni_host, compared), NI_PAGE(ni_host, shortest),
    NI_PAGE(ni_host, late),     NI_PAGE(ni_host, late_ns),
    NI_PAGE(ni_host, relative), NI_PAGE(ni_host, busbw_relative)};

static NI_JSON_FORM(
    put_rank, struct ni_process,
    ni_json_i64(j, key,
                v->ranks > 1
                    ? v->first
                    : v->rank)) static NI_JSON_FORM(put_ranks, struct ni_process,
                                                    ni_json_text(j, key,
                                                                 v->ranks > 1
                                                                     ? ni_ranks_text(v, (char[48]){0})
                                                                     : NULL))

    static const struct ni_json_field process_fields[] = {NI_PAGE(ni_process, host),
                                                          NI_PAGE(ni_process, pid),
                                                          NI_JSON_BY(put_rank, "rank"),
                                                          NI_JSON_BY(put_ranks, "ranks"),
                                                          NI_PAGE_AS(ni_process, rank_stated, "stated"),
                                                          NI_PAGE(ni_process, gpu),
                                                          NI_PAGE(ni_process, records),
                                                          NI_PAGE(ni_process, exec_ns),
                                                          NI_PAGE(ni_process, compared),
                                                          NI_PAGE(ni_process, shortest),
                                                          NI_PAGE(ni_process, late),
                                                          NI_PAGE(ni_process, late_ns),
                                                          NI_PAGE(ni_process, relative),
                                                          NI_PAGE(ni_process, busbw_relative)};

/* Spelled out: what outliers and pairs point to may be beyond the rows kept of other tables. */
#define OF_NUMBER(name, ...) \
  static void name(struct ni_json *j, const char *key, const void *number, const void *summary) { \
    const struct ni_summary *s = summary; \
    const uint32_t i = *(const uint32_t *)number; \
    __VA_ARGS__; \
  }
OF_NUMBER(put_host, ni_page_name(j, key, i == UINT32_MAX ? NULL : s->host[s->process[i].host].name))
OF_NUMBER(put_pid, ni_json_i64(j, key, s->process[i].pid))
OF_NUMBER(put_host_name, ni_page_name(j, key, i == UINT32_MAX ? NULL : s->host[i].name))
OF_NUMBER(put_global_rank,
          i == UINT32_MAX || s->process[i].ranks > 1 ? ni_json_text(j, key, NULL)
                                                     : ni_json_i64(j, key, s->process[i].rank))
OF_NUMBER(put_comm_id, ni_json_text(j, key, s->comm[i].id))
OF_NUMBER(put_comm_name, ni_page_name(j, key, s->comm[i].name))
OF_NUMBER(put_comm_type, ni_json_u64(j, key, s->comm[i].type))
OF_NUMBER(put_func, ni_page_name(j, key, s->group[i].func))
OF_NUMBER(put_bytes, ni_json_u64(j, key, s->group[i].msg_bytes))
#define BY(function, tag, member, key) {key, function, offsetof(struct tag, member)}

static const struct ni_json_field outlier_fields[] = {
    NI_PAGE(ni_outlier, kind),
    NI_PAGE(ni_outlier, group),
    NI_PAGE(ni_outlier, comm),
    NI_PAGE(ni_outlier, process),
    NI_PAGE(ni_outlier, rank),
    NI_PAGE(ni_outlier, sn),
    NI_PAGE(ni_outlier, us),
    NI_PAGE(ni_outlier, peers_us),
    NI_PAGE(ni_outlier, lost_us),
    NI_PAGE(ni_outlier, time_us),
    NI_PAGE(ni_outlier, operations),
    NI_PAGE(ni_outlier, ranks),
    NI_PAGE(ni_outlier, most_us),
    NI_PAGE(ni_outlier, began_step),
    NI_PAGE(ni_outlier, began_us),
    NI_PAGE(ni_outlier, finding),
    NI_PAGE(ni_outlier, more),
    BY(put_global_rank, ni_outlier, began, "began"),
    BY(put_host_name, ni_outlier, began_host, "began_host"),
    BY(put_host, ni_outlier, process, "host"),
    BY(put_pid, ni_outlier, process, "pid"),
    BY(put_comm_id, ni_outlier, comm, "comm_id"),
    BY(put_func, ni_outlier, group, "func"),
    BY(put_bytes, ni_outlier, group, "bytes"),
    BY(put_global_rank, ni_outlier, process, "global_rank")};

static const struct ni_json_field pair_fields[] = {BY(put_comm_id, ni_p2p_pair, comm, "comm_id"),
                                                   BY(put_comm_name, ni_p2p_pair, comm, "comm_name"),
                                                   BY(put_comm_type, ni_p2p_pair, comm, "type"),
                                                   NI_PAGE_AS(ni_p2p_pair, msg_bytes, "bytes"),
                                                   NI_PAGE(ni_p2p_pair, from),
                                                   BY(put_host, ni_p2p_pair, from_process, "from_host"),
                                                   NI_PAGE(ni_p2p_pair, to),
                                                   BY(put_host, ni_p2p_pair, to_process, "to_host"),
                                                   NI_PAGE(ni_p2p_pair, sends),
                                                   NI_PAGE(ni_p2p_pair, recvs),
                                                   NI_PAGE(ni_p2p_pair, matched),
                                                   NI_PAGE(ni_p2p_pair, exec_ns),
                                                   NI_PAGE_AS(ni_p2p_pair, send_us.p50, "send_p50"),
                                                   NI_PAGE_AS(ni_p2p_pair, recv_us.p50, "recv_p50"),
                                                   NI_PAGE_AS(ni_p2p_pair, transfer_us.p50, "transfer_p50"),
                                                   NI_PAGE_AS(ni_p2p_pair, bandwidth_gbs, "bandwidth"),
                                                   NI_PAGE(ni_p2p_pair, sender_waited_us),
                                                   NI_PAGE(ni_p2p_pair, receiver_waited_us)};

/* Writes the pairs that took the most time. */
static void write_pairs(struct ni_json *j, const struct ni_summary *s) {
  const size_t n_fields = sizeof pair_fields / sizeof *pair_fields;
  size_t shown = ni_page_at_most(s->n_pairs, NI_PAGE_PAIRS);
  double *time = malloc((s->n_pairs + 1) * sizeof *time), least = 0;
  if (time && shown < s->n_pairs) {
    for (size_t i = 0; i < s->n_pairs; i++)
      time[i] = s->pair[i].exec_ns;
    qsort(time, s->n_pairs, sizeof *time, compare_descending);
    least = time[shown - 1];
  }
  free(time);
  size_t n = 0;
  ni_page_table_begin(j, "pairs", pair_fields, n_fields);
  for (size_t i = 0; i < s->n_pairs && n < shown; i++) {
    if (s->pair[i].exec_ns < least)
      continue;
    n++;
    NI_JSON_ARRAY (j, NULL)
      ni_json_fields(j, pair_fields, n_fields, false, &s->pair[i], s);
  }
  ni_page_table_end(j, s->n_pairs, n);
}

static const struct ni_json_field slice_fields[] = {NI_PAGE(ni_slice, group),
                                                    NI_PAGE(ni_slice, of),
                                                    NI_PAGE(ni_slice, records),
                                                    NI_PAGE_AS(ni_slice, us.p50, "us_p50"),
                                                    NI_PAGE_AS(ni_slice, us.p99, "us_p99"),
                                                    NI_PAGE_AS(ni_slice, us.mean, "us_mean"),
                                                    NI_PAGE_AS(ni_slice, busbw_gbs.mean, "bw_mean"),
                                                    NI_PAGE_AS(ni_slice, busbw_gbs.p50, "bw_p50"),
                                                    NI_PAGE_AS(ni_slice, busbw_gbs.min, "bw_min")};

/* Puts a tag as text: a number of JavaScript has 53 bits. */
static void put_tag(struct ni_json *j, const char *key, const void *tag, const void *summary) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)*(const uint64_t *)tag);
  ni_json_text(j, key, text);
}

static const struct ni_json_field tag_fields[] = {BY(put_tag, ni_tag_row, tag, "tag"),
                                                  NI_PAGE(ni_tag_row, name),
                                                  NI_PAGE(ni_tag_row, timing),
                                                  NI_PAGE(ni_tag_row, operations),
                                                  NI_PAGE(ni_tag_row, records),
                                                  NI_PAGE(ni_tag_row, bytes),
                                                  NI_PAGE(ni_tag_row, exec_ns),
                                                  NI_PAGE_AS(ni_tag_row, time_share, "share"),
                                                  NI_PAGE_AS(ni_tag_row, busbw_gbs, "busbw")};

static unsigned char encode_heat(const struct ni_heat *h, double v) {
  if (!h->by_own && !(v > 0))
    return 0;
  double b = 128 + (h->by_own ? 400 * v : 24 * log2(v));
  if (b < 1)
    return 1;
  return b > 255 ? 255 : (unsigned char)lrint(b);
}

/* n bytes -> base64 text in place of a JSON string's inside; out holds 4 * ((n + 2) / 3) + 1. */
static void encode_base64(const unsigned char *in, size_t n, char *out) {
  static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    unsigned v =
        (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) | (i + 2 < n ? in[i + 2] : 0);
    *out++ = digit[v >> 18];
    *out++ = digit[v >> 12 & 63];
    *out++ = i + 1 < n ? digit[v >> 6 & 63] : '=';
    *out++ = i + 2 < n ? digit[v & 63] : '=';
  }
  *out = 0;
}

void ni_heat_sources(const struct ni_summary *s, uint32_t *source) {
  const struct ni_heat *h = &s->heat;
  uint32_t next = h->bins;
  for (uint32_t b = h->bins; b-- > 0;) {
    bool any = s->time_from == NI_TIME_START;
    for (uint32_t r = 0; r < h->rows && !any; r++)
      any = h->count[(size_t)r * h->bins + b] > 0;
    if (any)
      next = b;
    source[b] = next;
  }
}

/* The mean of a row over the bins from..to, weighted by their counts; NAN: they have nothing. */
static double average_heat(const struct ni_heat *h, const uint32_t *source, uint32_t row, uint32_t from,
                           uint32_t to) {
  double sum = 0, weight = 0;
  for (uint32_t i = from; i < to && i < h->bins; i++) {
    size_t at = (size_t)row * h->bins + source[i];
    if (source[i] == h->bins || h->count[at] == 0 || !isfinite(h->relative[at]))
      continue;
    sum += (double)h->relative[at] * h->count[at];
    weight += h->count[at];
  }
  return weight > 0 ? sum / weight : NAN;
}

/*
 * The heat map: {"rows","bins","run","left_out","by_own","cells":base64}; row i is process i. One byte a
 * cell: 0 nothing, else by own time 128 + 400 * part of a step (0.25 % each, +-0.3 fit), by durations 128 +
 * 24 * log2(ratio): 3 % each, 1/32 .. 32 fit. Bins are merged in equal runs, weighted by their counts, when
 * rows x bins would be too many.
 */
static int write_heat(struct ni_json *j, const struct ni_summary *s) {
  const struct ni_heat *h = &s->heat;
  uint32_t rows = (uint32_t)ni_page_at_most(h->rows, NI_PAGE_PROCESSES);
  uint32_t run =
      rows ? (uint32_t)(((uint64_t)rows * h->bins + NI_PAGE_HEAT_CELLS - 1) / NI_PAGE_HEAT_CELLS) : 1;
  if (run < 1)
    run = 1;
  uint32_t bins = (h->bins + run - 1) / run;
  size_t n = (size_t)rows * bins;
  unsigned char *cell = malloc(n + 1);
  char *text = malloc(4 * (n + 2) / 3 + 8);
  uint32_t *source = malloc((h->bins + 1) * sizeof *source);
  if (!cell || !text || !source) {
    free(cell);
    free(text);
    free(source);
    return -ENOMEM;
  }
  ni_heat_sources(s, source);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t b = 0; b < bins; b++) {
      const double mean = average_heat(h, source, r, b * run, (b + 1) * run);
      cell[(size_t)r * bins + b] = isnan(mean) ? 0 : encode_heat(h, mean);
    }
  encode_base64(cell, n, text);
  ni_json_object(j, "heat");
  ni_json_u64(j, "rows", rows);
  ni_json_u64(j, "bins", bins);
  ni_json_u64(j, "run", run); /* bins of the run's time axis per cell */
  ni_json_u64(j, "left_out", h->rows - rows);
  ni_json_bool(j, "by_own", h->by_own);
  ni_json_text(j, "cells", text);
  ni_json_end_object(j);
  free(cell);
  free(text);
  free(source);
  return 0;
}

int ni_page_tables_write(struct ni_json *j, const struct ni_summary *s) {
  TABLE(j, "comms", comm_fields, s->comm, s->n_comms, NI_PAGE_COMMS, s);
  TABLE(j, "hosts", host_fields, s->host, s->n_hosts, NI_PAGE_HOSTS, s);
  TABLE(j, "processes", process_fields, s->process, s->n_processes, NI_PAGE_PROCESSES, s);
  TABLE(j, "outliers", outlier_fields, s->outlier, s->n_outliers, NI_SUM_OUTLIERS, s);
  write_pairs(j, s);
  TABLE(j, "by_comm", slice_fields, s->by_comm, s->n_by_comm, NI_PAGE_SLICES, s);
  TABLE(j, "by_process", slice_fields, s->by_process, s->n_by_process, NI_PAGE_SLICES, s);
  TABLE(j, "by_host", slice_fields, s->by_host, s->n_by_host, NI_PAGE_SLICES, s);
  TABLE(j, "tags", tag_fields, s->tag, s->n_tags, NI_PAGE_SLICES, s);
  return write_heat(j, s);
}
