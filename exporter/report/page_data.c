#include "page_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "page_json.h"

static void counts(struct ni_json *j, const char *key, const struct ni_count *c, size_t n) {
  static const char *const columns[] = {"name", "count", NULL};
  size_t shown = ni_page_at_most(n, NI_PAGE_TEXTS);
  ni_page_table_begin(j, key, columns);
  for (size_t i = 0; i < shown; i++) {
    ni_json_array(j, NULL);
    ni_page_name(j, NULL, c[i].name);
    ni_json_u64(j, NULL, c[i].count);
    ni_json_end_array(j);
  }
  ni_page_table_end(j, n, shown);
}

static void texts(struct ni_json *j, const char *key, char *const *text, size_t n) {
  ni_json_array(j, key);
  for (size_t i = 0; i < ni_page_at_most(n, NI_PAGE_TEXTS); i++) ni_page_name(j, NULL, text[i]);
  ni_json_end_array(j);
}

static void write_input(struct ni_json *j, const struct ni_input *in) {
  const struct {
    const char *key;
    uint64_t value;
  } field[] = {
      {"files", in->files}, {"files_failed", in->files_failed}, {"files_empty", in->files_empty}, {"bytes", in->bytes},
      {"text_bytes", in->text_bytes}, {"lines", in->lines}, {"records", in->records},
      {"filtered_out", in->filtered_out}, {"control_lines", in->control_lines}, {"proxy_lines", in->proxy_lines},
      {"bad_lines", in->bad_lines}, {"duplicates", in->duplicates}, {"gaps", in->gaps},
      {"out_of_range", in->out_of_range}, {"no_bandwidth", in->no_bandwidth}, {"cut_files", in->cut_files},
      {"damaged_files", in->damaged_files}, {"orphans", in->orphans}, {"unknown_lines", in->unknown_lines},
      {"stated_losses", in->stated_losses}, {"missing_ranks", in->missing_ranks},
      {"missing_hosts", in->missing_hosts},
  };
  ni_json_object(j, "input");
  for (size_t i = 0; i < sizeof field / sizeof *field; i++) ni_json_u64(j, field[i].key, field[i].value);
  counts(j, "bad_by_reason", in->bad_by_reason, in->n_bad_by_reason);
  counts(j, "losses_by_cause", in->losses_by_cause, in->n_losses_by_cause);
  counts(j, "out_of_range_by", in->out_of_range_by, in->n_out_of_range_by);
  texts(j, "trouble", in->trouble, in->n_trouble);
  texts(j, "where", in->where, in->n_where);
  ni_json_end_object(j);
}

static void write_job(struct ni_json *j, const struct ni_summary *s, const struct ni_render_options *o) {
  ni_json_text(j, "schema", NI_PAGE_SCHEMA);
  ni_json_text(j, "version", o->version);
  ni_page_name(j, "input_name", o->input);
  ni_json_object(j, "job");
  ni_page_name(j, "id", s->job.id);
  ni_page_name(j, "exe", s->job.exe);
  ni_json_i64(j, "world_size", s->job.world_size);
  ni_json_i64(j, "nccl_version", s->job.nccl_version);
  ni_page_name(j, "formats", s->job.formats);
  ni_page_name(j, "producers", s->job.producers);
  ni_json_end_object(j);
  ni_json_bool(j, "complete", s->complete);
  ni_json_bool(j, "start_times", s->time_from == NI_TIME_START);
  ni_json_i64(j, "first_us", s->first_us);
  ni_json_i64(j, "last_us", s->last_us);
  ni_json_u64(j, "n_bins", s->n_bins);
  ni_json_u64(j, "records", s->records);
  ni_json_u64(j, "operations", s->operations);
  ni_json_u64(j, "clocks_disagree", s->clocks_disagree);
  ni_json_array(j, "findings");
  for (size_t i = 0; i < s->n_findings && i < NI_PAGE_FINDINGS; i++) ni_json_text(j, NULL, s->finding[i].text);
  ni_json_end_array(j);
  size_t shown = ni_page_at_most(s->n_findings, NI_PAGE_FINDINGS);
  ni_json_u64(j, "findings_left_out", s->findings_left_out + s->n_findings - shown);
  char all[128];
  ni_json_text(j, "findings_of_all", ni_finding_of_all(s, all));
  ni_json_text(j, "findings_rules", ni_findings_rules());
  ni_json_array(j, "types");
  for (int i = 0; i < NI_TYPE_COUNT; i++) ni_json_text(j, NULL, ni_comm_type_names[i]);
  ni_json_end_array(j);
  ni_json_array(j, "timings");
  for (int i = 0; i < NI_TIMING_COUNT; i++) ni_json_text(j, NULL, ni_timing_names[i]);
  ni_json_end_array(j);
}

/* A row per group; "mix" is a text: "RING/SIMPLE 90 %". */
static void write_group(struct ni_json *j, const struct ni_summary *s, uint32_t at) {
  const struct ni_group *g = &s->group[at];
  char mix[200] = "";
  size_t n = 0;
  for (uint32_t m = 0; m < g->n_mix && m < 4 && n < sizeof mix - 1; m++) {
    const struct ni_mix *x = &s->mix[g->mix + m];
    if (!*x->algo && !*x->proto) continue;
    n += (size_t)snprintf(mix + n, sizeof mix - n, "%s%.24s/%.24s %.0f %%", n ? ", " : "", x->algo, x->proto,
                          100.0 * (double)x->records / (double)(g->records ? g->records : 1));
  }
  ni_json_array(j, NULL);
  ni_json_u64(j, NULL, at);
  ni_json_u64(j, NULL, g->cell);
  ni_json_u64(j, NULL, g->type);
  ni_json_u64(j, NULL, g->kind);
  ni_page_name(j, NULL, g->func);
  ni_json_u64(j, NULL, g->msg_bytes);
  ni_json_u64(j, NULL, g->timing);
  ni_json_u64(j, NULL, g->records);
  ni_json_u64(j, NULL, g->operations);
  ni_json_u64(j, NULL, g->no_bandwidth);
  ni_page_num(j, g->time_share);
  ni_page_num(j, g->of_best);
  ni_page_stats(j, &g->us);
  ni_page_stats(j, &g->busbw_gbs);
  ni_page_stats(j, &g->transfer_us);
  ni_page_stats(j, &g->job_us);
  ni_json_text(j, NULL, mix);
  ni_json_end_array(j);
}

/* Ties keep the order of the model, so that the same summary gives the same page. */
static int by_share(const void *a, const void *b, void *context) {
  const struct ni_summary *s = context;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  double p = s->group[x].time_share, q = s->group[y].time_share;
  return p > q ? -1 : p < q ? 1 : x < y ? -1 : x > y;
}

static void write_series(struct ni_json *j, const struct ni_summary *s, const uint32_t *order, size_t n) {
  static const char *const columns[] = {
      "group", "n", "us_p10", "us_p50", "us_p90", "us_p99", "bw_p10", "bw_p50", "bw_p90", NULL};
  ni_page_table_begin(j, "series", columns);
  size_t shown = ni_page_at_most(n, NI_PAGE_SERIES);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_group *g = &s->group[order[i]];
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, order[i]);
    ni_json_array(j, NULL);
    for (uint32_t b = 0; b < s->n_bins; b++) ni_json_u64(j, NULL, g->bin[b].n);
    ni_json_end_array(j);
    for (int k = 0; k < 7; k++) {
      ni_json_array(j, NULL);
      for (uint32_t b = 0; b < s->n_bins; b++) {
        const struct ni_time_bin *t = &g->bin[b];
        const float v[] = {t->us_p10, t->us_p50, t->us_p90, t->us_p99, t->busbw_p10, t->busbw_p50, t->busbw_p90};
        ni_json_rounded(j, NULL, t->n ? (double)v[k] : NAN, 4);
      }
      ni_json_end_array(j);
    }
    ni_json_end_array(j);
  }
  ni_page_table_end(j, n, shown);
}

/* Cells of the groups shown, each once: distribution and thinned points. */
static void write_cells(struct ni_json *j, const struct ni_summary *s, const bool *wanted) {
  static const char *const columns[] = {
      "cell", "operations", "busbw", "log", "lo", "hi", "hist", "box", "stride", "sn", "comm", "bw", NULL};
  size_t shown = 0;
  for (size_t c = 0; c < s->n_cells; c++) shown += wanted[c];
  size_t share = shown ? NI_PAGE_POINTS / shown : 0;
  ni_page_table_begin(j, "cells", columns);
  for (size_t c = 0; c < s->n_cells; c++) {
    if (!wanted[c]) continue;
    const struct ni_cell *x = &s->cell[c];
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, c);
    ni_json_u64(j, NULL, x->operations);
    ni_page_stats(j, &x->busbw_gbs);
    ni_json_u64(j, NULL, x->hist.log);
    ni_json_rounded(j, NULL, x->hist.lo, 7);
    ni_json_rounded(j, NULL, x->hist.hi, 7);
    ni_json_array(j, NULL);
    for (uint32_t b = 0; b < x->hist.n; b++) ni_json_u64(j, NULL, x->hist.count[b]);
    ni_json_end_array(j);
    const struct ni_box *q = &x->box;
    const double box[] = {q->min, q->whisker_lo, q->q1, q->median, q->q3, q->whisker_hi, q->max};
    ni_json_array(j, NULL);
    for (size_t i = 0; i < sizeof box / sizeof *box; i++) ni_page_num(j, box[i]);
    ni_json_end_array(j);
    size_t step = share ? (x->n_points + share - 1) / share : x->n_points + 1;
    if (step < 1) step = 1;
    ni_json_u64(j, NULL, x->point_stride * step);
    for (int k = 0; k < 3; k++) {
      ni_json_array(j, NULL);
      for (size_t i = 0; i < x->n_points; i += step) {
        size_t at = i + ni_pick(i / step, step);
        const struct ni_point *p = &x->point[at < x->n_points ? at : i];
        if (k == 0) ni_json_u64(j, NULL, p->sn);
        if (k == 1) ni_json_u64(j, NULL, p->comm);
        if (k == 2) ni_json_rounded(j, NULL, (double)p->busbw_gbs, 4);
      }
      ni_json_end_array(j);
    }
    ni_json_end_array(j);
  }
  ni_page_table_end(j, s->n_cells, shown);
}

static int write_groups(struct ni_json *j, const struct ni_summary *s) {
  static const char *const columns[] = {
      "index", "cell", "type", "kind", "func", "bytes", "timing", "records", "operations", "no_bandwidth", "share",
      "of_best", "us", "busbw", "transfer_us", "job_us", "mix", NULL};
  uint32_t *order = malloc((s->n_groups + 1) * sizeof *order);
  bool *wanted = calloc(s->n_cells + 1, sizeof *wanted);
  if (!order || !wanted) {
    free(order);
    free(wanted);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < s->n_groups; i++) order[i] = i;
  qsort_r(order, s->n_groups, sizeof *order, by_share, (void *)s);
  size_t shown = ni_page_at_most(s->n_groups, NI_PAGE_GROUPS);
  ni_page_table_begin(j, "groups", columns);
  for (size_t i = 0; i < shown; i++) {
    write_group(j, s, order[i]);
    wanted[s->group[order[i]].cell] = true;
  }
  ni_page_table_end(j, s->n_groups, shown);
  write_series(j, s, order, s->n_groups);
  write_cells(j, s, wanted);
  free(order);
  free(wanted);
  return 0;
}

int ni_page_data_write(FILE *f, const struct ni_summary *s, const struct ni_render_options *options) {
  struct ni_json j;
  int rc;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  write_job(&j, s, options);
  write_input(&j, &s->input);
  if ((rc = write_groups(&j, s))) return rc;
  ni_page_tables_write(&j, s);
  if ((rc = ni_page_heat_write(&j, s))) return rc;
  ni_json_end_object(&j);
  return 0;
}
