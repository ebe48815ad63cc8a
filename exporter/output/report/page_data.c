#include "page_data.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exporter/model/sums/findings.h"
#include "exporter/output/tables/findings_json.h"
#include "page_counters.h"
#include "page_json.h"
#include "page_tables.h"

static const struct ni_json_field count_fields[] = {NI_PAGE(ni_count, name), NI_PAGE(ni_count, count)};

static void put_counts(struct ni_json *j, const char *key, const void *counts, const void *summary) {
  const struct ni_counts *c = counts;
  ni_page_table(j, key, count_fields, 2, c->item, sizeof *c->item, c->n, NI_PAGE_TEXTS, summary);
}

static void put_texts(struct ni_json *j, const char *key, char *const *text, size_t n) {
  NI_JSON_ARRAY (j, key)
    for (size_t i = 0; i < ni_page_at_most(n, NI_PAGE_TEXTS); i++)
      ni_page_name(j, NULL, text[i]);
}

static void write_input(struct ni_json *j, const struct ni_input *in) {
#define COUNTS(member) {#member, put_counts, offsetof(struct ni_input, member)}
  static const struct ni_json_field fields[] = {NI_PAGE(ni_input, files),
                                                NI_PAGE(ni_input, files_failed),
                                                NI_PAGE(ni_input, files_empty),
                                                NI_PAGE(ni_input, bytes),
                                                NI_PAGE(ni_input, text_bytes),
                                                NI_PAGE(ni_input, lines),
                                                NI_PAGE(ni_input, records),
                                                NI_PAGE(ni_input, filtered_out),
                                                NI_PAGE(ni_input, control_lines),
                                                NI_PAGE(ni_input, proxy_lines),
                                                NI_PAGE(ni_input, bad_lines),
                                                NI_PAGE(ni_input, duplicates),
                                                NI_PAGE(ni_input, gaps),
                                                NI_PAGE(ni_input, out_of_range),
                                                NI_PAGE(ni_input, no_bandwidth),
                                                NI_PAGE(ni_input, cut_files),
                                                NI_PAGE(ni_input, damaged_files),
                                                NI_PAGE(ni_input, orphans),
                                                NI_PAGE(ni_input, unknown_lines),
                                                NI_PAGE(ni_input, stated_losses),
                                                NI_PAGE(ni_input, missing_ranks),
                                                NI_PAGE(ni_input, missing_hosts),
                                                NI_PAGE(ni_input, left_out_by_settings),
                                                COUNTS(bad_by_reason),
                                                COUNTS(losses_by_cause),
                                                COUNTS(out_of_range_by)};
  ni_json_object(j, "input");
  NI_JSON_ALL(j, fields, in, NULL);
  put_texts(j, "trouble", in->trouble, in->n_trouble);
  put_texts(j, "where", in->where, in->n_where);
  ni_json_end_object(j);
}

/* From wherever the command of the page is run. A pattern has no real path. */
static void write_paths(struct ni_json *j, const struct ni_render_options *o) {
  char folder[PATH_MAX];
  ni_json_array(j, "input_paths");
  for (size_t i = 0; i < (o->inputs ? o->n_inputs : 1); i++) {
    const char *path = o->inputs ? o->inputs[i] : o->input;
    char *real = path ? realpath(path, NULL) : NULL;
    const bool is_relative = path && !real && *path != '/';
    if (is_relative && getcwd(folder, sizeof folder) && asprintf(&real, "%s/%s", folder, path) < 0)
      real = NULL;
    if (real || path)
      ni_json_text(j, NULL, real ? real : path);
    free(real);
  }
  ni_json_end_array(j);
}

static bool is_about_own_time(enum ni_finding_kind kind) {
  return kind == NI_FIND_LATE_RANK || kind == NI_FIND_SLOW_HOST || kind == NI_FIND_PAUSES ||
      kind == NI_FIND_SLOW_STAGE || kind == NI_FIND_UNEVEN;
}

/* Processes whose lines of the heat map it is about: none where it is no rank's own time. */
static void put_rows(struct ni_json *j, const char *key, const void *finding, const void *summary) {
  const struct ni_finding *f = finding;
  const bool is_own = is_about_own_time(f->kind) && f->level != NI_LEVEL_JOB;
  (void)summary;
  NI_JSON_ARRAY (j, key)
    for (size_t i = 0; is_own && i < ni_page_at_most(f->n_processes, NI_PAGE_TEXTS); i++)
      ni_json_u64(j, NULL, f->process[i]);
}

static void put_note(struct ni_json *j, const char *key, const void *finding, const void *summary) {
  (void)summary;
  ni_json_u64(j, key, ni_finding_is_note(finding));
}

/* What stands out; what that costs and the steps where they are known. */
static void write_findings(struct ni_json *j, const struct ni_summary *s) {
  static const struct ni_json_field fields[] = {
      NI_PAGE(ni_finding, text),    NI_PAGE(ni_finding, lost_us),   NI_PAGE(ni_finding, low_us),
      NI_PAGE(ni_finding, high_us), NI_PAGE(ni_finding, from_step), NI_PAGE(ni_finding, to_step),
      NI_PAGE(ni_finding, from_us), NI_PAGE(ni_finding, to_us),     NI_JSON_BY(put_rows, "rows"),
      NI_JSON_BY(put_note, "note"), NI_PAGE(ni_finding, evidence),  NI_PAGE(ni_finding, next)};
  static const struct ni_json_field cost[] = {NI_JSON(ni_cost, run_us), NI_JSON(ni_cost, without_us),
                                              NI_JSON(ni_cost, own), NI_JSON(ni_cost, pauses),
                                              NI_JSON(ni_cost, transfer)};
  char text[320];
  size_t shown = ni_page_at_most(s->n_findings, NI_PAGE_FINDINGS);
  ni_page_table(j, "findings", fields, sizeof fields / sizeof *fields, s->finding, sizeof *s->finding,
                s->n_findings, NI_PAGE_FINDINGS, s);
  ni_json_u64(j, "findings_left_out", s->findings_left_out + s->n_findings - shown);
  ni_json_text(j, "findings_of_all", ni_finding_of_all(s, text));
  ni_json_text(j, "findings_rules", ni_findings_rules(s, text));
  ni_json_bool(j, "by_own_time", s->by_own_time);
  if (ni_cost_text(s, text)) {
    ni_json_object(j, "run");
    ni_json_text(j, "text", text);
    NI_JSON_ALL(j, cost, &s->cost, NULL);
    ni_json_end_object(j);
  }
  if (ni_steps_text(s, text))
    ni_json_text(j, "steps_text", text);
  ni_steps_json(j, s, NI_PAGE_STEPS);
}

static void write_job(struct ni_json *j, const struct ni_summary *s, const struct ni_render_options *o) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_summary, first_us), NI_JSON(ni_summary, last_us),    NI_JSON(ni_summary, n_bins),
      NI_JSON(ni_summary, records),  NI_JSON(ni_summary, operations), NI_JSON(ni_summary, clocks_disagree)};
  char text[NI_HEAD_TEXT];
  ni_json_text(j, "schema", NI_PAGE_SCHEMA);
  ni_json_text(j, "head", ni_head_text(s, text));
  ni_json_text(j, "version", o->version);
  ni_page_name(j, "input_name", o->input);
  write_paths(j, o);
  ni_json_object(j, "job");
  ni_page_name(j, "id", s->job.id);
  ni_page_name(j, "exe", s->job.exe);
  ni_json_i64(j, "world_size", s->job.world_size);
  ni_json_i64(j, "nccl_version", s->job.nccl_version);
  ni_page_name(j, "formats", s->job.formats);
  ni_page_name(j, "producers", s->job.producers);
  ni_json_end_object(j);
  ni_json_bool(j, "complete", s->complete);
  if (s->hang)
    ni_json_text(j, "hang", s->hang);
  ni_json_bool(j, "start_times", s->time_from == NI_TIME_START);
  NI_JSON_ALL(j, fields, s, NULL);
  write_findings(j, s);
  NI_JSON_ARRAY (j, "types")
    for (int i = 0; i < NI_TYPE_COUNT; i++)
      ni_json_text(j, NULL, ni_comm_type_words[i]);
  NI_JSON_ARRAY (j, "timings")
    for (int i = 0; i < NI_TIMING_COUNT; i++)
      ni_json_text(j, NULL, ni_timing_names[i]);
}

/* "RING/SIMPLE 90 %" */
static void put_mix(struct ni_json *j, const char *key, const void *group, const void *summary) {
  const struct ni_summary *s = summary;
  const struct ni_group *g = group;
  char mix[200] = "";
  size_t n = 0;
  for (uint32_t m = 0; m < g->n_mix && m < 4 && n < sizeof mix - 1; m++) {
    const struct ni_mix *x = &s->mix[g->mix + m];
    if (!*x->algo && !*x->proto)
      continue;
    n += (size_t)snprintf(mix + n, sizeof mix - n, "%s%.24s/%.24s %.0f %%", n ? ", " : "", x->algo, x->proto,
                          100.0 * (double)x->records / (double)(g->records ? g->records : 1));
  }
  ni_json_text(j, key, mix);
}

static void put_index(struct ni_json *j, const char *key, const void *group, const void *summary) {
  ni_json_u64(j, key,
              (uint64_t)((const struct ni_group *)group - ((const struct ni_summary *)summary)->group));
}

static const struct ni_json_field group_fields[] = {NI_JSON_BY(put_index, "index"),
                                                    NI_PAGE(ni_group, cell),
                                                    NI_PAGE(ni_group, type),
                                                    NI_PAGE(ni_group, kind),
                                                    NI_PAGE(ni_group, func),
                                                    NI_PAGE_AS(ni_group, msg_bytes, "bytes"),
                                                    NI_PAGE(ni_group, timing),
                                                    NI_PAGE(ni_group, records),
                                                    NI_PAGE(ni_group, operations),
                                                    NI_PAGE(ni_group, no_bandwidth),
                                                    NI_PAGE_AS(ni_group, time_share, "share"),
                                                    NI_PAGE(ni_group, of_best),
                                                    NI_PAGE(ni_group, us),
                                                    NI_PAGE_AS(ni_group, busbw_gbs, "busbw"),
                                                    NI_PAGE(ni_group, transfer_us),
                                                    NI_PAGE(ni_group, job_us),
                                                    NI_JSON_BY(put_mix, "mix")};
enum { GROUP_FIELDS = sizeof group_fields / sizeof *group_fields };

static void write_series(struct ni_json *j, const struct ni_summary *s, const uint32_t *order, size_t n) {
  static const struct ni_json_field columns[] = {{.key = "group"},  {.key = "n"},      {.key = "us_p10"},
                                                 {.key = "us_p50"}, {.key = "us_p90"}, {.key = "us_p99"},
                                                 {.key = "bw_p10"}, {.key = "bw_p50"}, {.key = "bw_p90"}};
  ni_page_table_begin(j, "series", columns, sizeof columns / sizeof *columns);
  size_t shown = ni_page_at_most(n, NI_PAGE_SERIES);
  for (size_t i = 0; i < shown; i++) {
    const struct ni_group *g = &s->group[order[i]];
    ni_json_array(j, NULL);
    ni_json_u64(j, NULL, order[i]);
    NI_JSON_ARRAY (j, NULL)
      for (uint32_t b = 0; b < s->n_bins; b++)
        ni_json_u64(j, NULL, g->bin[b].n);
    for (int k = 0; k < 7; k++) {
      ni_json_array(j, NULL);
      for (uint32_t b = 0; b < s->n_bins; b++) {
        const struct ni_time_bin *t = &g->bin[b];
        const float v[] = {t->us_p10,    t->us_p50,    t->us_p90,   t->us_p99,
                           t->busbw_p10, t->busbw_p50, t->busbw_p90};
        ni_json_rounded(j, NULL, t->n ? (double)v[k] : NAN, 4);
      }
      ni_json_end_array(j);
    }
    ni_json_end_array(j);
  }
  ni_page_table_end(j, n, shown);
}

/* One of each `step` neighbouring points: their numbers, communicators, bandwidths. */
static void write_points(struct ni_json *j, const struct ni_cell *x, size_t step) {
  for (int k = 0; k < 3; k++) {
    ni_json_array(j, NULL);
    for (size_t i = 0; i < x->n_points; i += step) {
      size_t at = i + ni_pick(i / step, step);
      const struct ni_point *p = &x->point[at < x->n_points ? at : i];
      if (k == 0)
        ni_json_u64(j, NULL, p->sn);
      if (k == 1)
        ni_json_u64(j, NULL, p->comm);
      if (k == 2)
        ni_json_rounded(j, NULL, (double)p->busbw_gbs, 4);
    }
    ni_json_end_array(j);
  }
}

/* share: so many points at most. */
static void write_cell(struct ni_json *j, const struct ni_summary *s, size_t number, size_t share) {
  const struct ni_cell *x = &s->cell[number];
  ni_json_array(j, NULL);
  ni_json_u64(j, NULL, number);
  ni_json_u64(j, NULL, x->operations);
  ni_page_stats(j, &x->busbw_gbs);
  ni_json_u64(j, NULL, x->hist.log);
  ni_json_rounded(j, NULL, x->hist.lo, 7);
  ni_json_rounded(j, NULL, x->hist.hi, 7);
  NI_JSON_ARRAY (j, NULL)
    for (uint32_t b = 0; b < x->hist.n; b++)
      ni_json_u64(j, NULL, x->hist.count[b]);
  const struct ni_whisker *q = &x->box;
  const double box[] = {q->min, q->whisker_lo, q->q1, q->median, q->q3, q->whisker_hi, q->max};
  NI_JSON_ARRAY (j, NULL)
    for (size_t i = 0; i < sizeof box / sizeof *box; i++)
      ni_page_num(j, box[i]);
  size_t step = share ? (x->n_points + share - 1) / share : x->n_points + 1;
  if (step < 1)
    step = 1;
  ni_json_u64(j, NULL, x->point_stride * step);
  write_points(j, x, step);
  ni_json_end_array(j);
}

/* Cells of the groups shown, each once: distribution and thinned points. */
static void write_cells(struct ni_json *j, const struct ni_summary *s, const bool *wanted) {
  static const struct ni_json_field columns[] = {{.key = "cell"}, {.key = "operations"}, {.key = "busbw"},
                                                 {.key = "log"},  {.key = "lo"},         {.key = "hi"},
                                                 {.key = "hist"}, {.key = "box"},        {.key = "stride"},
                                                 {.key = "sn"},   {.key = "comm"},       {.key = "bw"}};
  size_t shown = 0;
  for (size_t c = 0; c < s->n_cells; c++)
    shown += wanted[c];
  size_t share = shown ? NI_PAGE_POINTS / shown : 0;
  ni_page_table_begin(j, "cells", columns, sizeof columns / sizeof *columns);
  for (size_t c = 0; c < s->n_cells; c++)
    if (wanted[c])
      write_cell(j, s, c, share);
  ni_page_table_end(j, s->n_cells, shown);
}

static int write_groups(struct ni_json *j, const struct ni_summary *s) {
  uint32_t *order = ni_groups_by_share(s);
  bool *wanted = calloc(s->n_cells + 1, sizeof *wanted);
  if (!order || !wanted) {
    free(order);
    free(wanted);
    return -ENOMEM;
  }
  size_t shown = ni_page_at_most(s->n_groups, NI_PAGE_GROUPS);
  ni_page_table_begin(j, "groups", group_fields, GROUP_FIELDS);
  for (size_t i = 0; i < shown; i++) {
    NI_JSON_ARRAY (j, NULL)
      ni_json_fields(j, group_fields, GROUP_FIELDS, false, &s->group[order[i]], s);
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
  ni_json_open(&j, f, NULL);
  write_job(&j, s, options);
  write_input(&j, &s->input);
  if ((rc = write_groups(&j, s)))
    return rc;
  if ((rc = ni_page_tables_write(&j, s)))
    return rc;
  ni_page_counters_write(&j, s);
  ni_json_end_object(&j);
  return 0;
}
