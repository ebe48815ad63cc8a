#include "summarize.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/spill/spill_sort.h"
#include "exporter/base/text/plural.h"
#include "exporter/input/filters.h"
#include "exporter/model/pattern/datatypes.h"
#include "exporter/model/pattern/pattern.h"
#include "exporter/model/sums/accounts.h"
#include "exporter/model/sums/approx/log_sums.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/evidence/evidence.h"
#include "exporter/model/sums/evidence/incidents.h"
#include "exporter/model/sums/evidence/lateness_map.h"
#include "exporter/model/sums/blame/judge.h"
#include "exporter/model/sums/build.h"
#include "exporter/model/sums/counters.h"
#include "exporter/model/sums/figures.h"
#include "exporter/model/sums/reading/long_waits.h"
#include "exporter/model/sums/join/p2p_pairs.h"
#include "exporter/model/sums/partial/partial.h"
#include "exporter/model/sums/reading/plan.h"
#include "exporter/model/sums/reading/read.h"
#include "exporter/model/sums/reading/tables.h"
#include "exporter/model/sums/reading/turns.h"
#include "exporter/model/sums/rollups.h"
#include "exporter/model/sums/team/team.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/plot/plot.h"
#include "exporter/output/records/counters_parquet.h"
#include "exporter/output/records/records.h"
#include "exporter/output/report/report.h"
#include "exporter/output/tables/operations_csv.h"
#include "exporter/output/tables/out_tables.h"
#include "exporter/output/tables/output.h"
#include "exporter/output/tables/series_table.h"
#include "exporter/output/tables/summary_json.h"
#include "exporter/model/ledger/judge.h"
#include "summary_hang.h"

/*
 * Of --memory for packed records; an eighth may wait for its turn at Parquet, the rest is what is made of
 * them.
 */
#define NI_STORE_SHARE 16

void ni_summarize_store(struct ni_run *r, const char *folder) {
  const char *tmp = getenv("TMPDIR");
  ni_spill_init(&r->store,
                folder            ? folder
                    : tmp && *tmp ? tmp
                                  : "/tmp",
                r->opt.memory_bytes / NI_STORE_SHARE);
}

int ni_summarize_init(struct ni_run *r) {
  *r = (struct ni_run){.out_fd = -1,
                       .tmp_fd = -1,
                       .lock_fd = -1,
                       .progress = NI_PROGRESS_INIT,
                       .opt = {.jobs = ni_scan_jobs(), .codec = ni_pq_codec_default()}};
  return ni_run_tables_init(r);
}

int ni_parse_partition(const struct ni_opt *o, void *into, const char *arg) {
  static const char *const words[NI_PARTITIONS] = {"", "host", "comm"};
  uint8_t *p = (uint8_t *)into + o->at, n = 0;
  memset(p, 0, NI_PARTITIONS);
  for (const char *at = arg;; at++) {
    const size_t len = strcspn(at, ",");
    unsigned k = 1;
    while (k < NI_PARTITIONS && (strlen(words[k]) != len || strncmp(words[k], at, len) != 0))
      k++;
    if (k == NI_PARTITIONS || memchr(p, (int)k, n))
      return -EINVAL;
    p[n++] = (uint8_t)k;
    at += len;
    if (!*at)
      return 0;
  }
}

static void log_counts(struct ni_run *r, const char *what, const struct ni_counts *c) {
  for (size_t i = 0; i < c->n; i++)
    ni_out_log(r, "WARNING", "%s, %s: %llu", what, c->item[i].name, (unsigned long long)c->item[i].count);
}

static void write_log(struct ni_run *r, const struct ni_summary *s) {
  ni_out_log(r, "INFO", "%llu %s, %llu %s, %llu %s", (unsigned long long)s->input.files,
             ni_plural(s->input.files, "file", "files"), (unsigned long long)s->input.lines,
             ni_plural(s->input.lines, "line", "lines"), (unsigned long long)s->input.records,
             ni_plural(s->input.records, "record", "records"));
  if (s->groups_without_slices)
    ni_out_log(
        r, "WARNING", "%llu %s with the fewest records: not in the tables by communicator, rank and host",
        (unsigned long long)s->groups_without_slices, ni_plural(s->groups_without_slices, "group", "groups"));
  for (size_t i = 0; i < r->files.n; i++)
    if (r->files.file[i].head.has_trace)
      ni_out_log(r, "INFO", "%s: event traces (event_trace_sn, event_trace_ts) are not in its Parquet file",
                 r->file[i].file->path);
  for (size_t i = 0; i < s->input.n_trouble; i++)
    ni_out_log(r, "WARNING", "%s", s->input.trouble[i]);
  for (size_t i = 0; i < s->input.n_notes; i++)
    ni_out_log(r, "INFO", "%s", s->input.note[i]);
  log_counts(r, "bad lines", &s->input.bad_by_reason);
  for (size_t i = 0; i < s->input.n_where; i++)
    ni_out_log(r, "ERROR", "%s", s->input.where[i]);
  log_counts(r, "stated as lost or unfinished", &s->input.losses_by_cause);
  log_counts(r, "left out of the statistics", &s->input.out_of_range_by);
}

/* Tables, their JSON and Parquet files. 0, or -errno with r->error_text. */
static int write_tables(struct ni_run *r, const struct ni_summary *s, const char *dir) {
  char path[PATH_MAX];
  int e = ni_write_tables(s, dir, path);
  if (e == 0)
    e = ni_series_csv(s, dir, path);
  if (e == 0 && !r->opt.no_parquet)
    e = ni_series_parquet(s, r->tmp_dir, (enum ni_pq_codec)r->opt.codec, path);
  if (e == 0) {
    snprintf(path, sizeof path, "%.4000s/summary.json", dir);
    e = ni_write_json(s, path);
  }
  return e < 0 ? ni_run_fail(r, e, "%s: %s", path, strerror(-e)) : 0;
}

/* A picture or page is not there; the rest is, so the result stays. Returns NI_SUMMARY_NOT_ALL. */
static int report_unwritten(struct ni_run *r, const char *name, int e) {
  ni_out_log(r, "ERROR", "%s: %s", name, strerror(-e));
  ni_run_fail(r, e, "%s/%s: %s", r->out_dir, name, strerror(-e));
  return NI_SUMMARY_NOT_ALL;
}

static int render_plots(struct ni_run *r, const struct ni_summary *s, const struct ni_render_options *o,
                        const char *dir) {
  const int e = ni_plots_render(s, o, dir);
  if (e == 0)
    return 0;
  if (e != -ENOENT && e != -EIO && e != -ETIMEDOUT)
    return report_unwritten(r, "summary (pictures)", e);
  ni_out_log(r, "ERROR", "plots: %s", strerror(-e)); /* gnuplot's fault, which has been told */
  return 0;
}

static int render_page(struct ni_run *r, const struct ni_summary *s, const struct ni_render_options *o) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/report.html", r->tmp_dir);
  const int e = ni_report_render(s, o, path);
  if (e == 0)
    return 0;
  if (e != -ENOTSUP)
    return report_unwritten(r, "report.html", e);
  ni_out_log(r, "ERROR", "report.html: %s", strerror(-e)); /* this build has no page, which has been told */
  return 0;
}

/*
 * Renders tables, plots and page. 0; NI_SUMMARY_NOT_ALL: a picture or the page could not be written, and
 * r->error_text names it; -errno: a table could not.
 */
static int render_tables(struct ni_run *r, const struct ni_summary *s) {
  struct ni_render_options o = {.plot_format = r->opt.plot_format,
                                .keep_scripts = r->opt.keep_scripts,
                                .compat = r->opt.compat,
                                .quiet = r->opt.quiet,
                                .jobs = r->opt.jobs,
                                .input = r->opt.inputs.path[0],
                                .inputs = r->opt.inputs.path,
                                .n_inputs = r->opt.inputs.n,
                                .version = NI_VERSION,
                                .progress = &r->progress};
  char dir[PATH_MAX];
  int e = 0, unwritten = 0;
  snprintf(dir, sizeof dir, "%s/summary", r->tmp_dir);
  const bool has_folder = s->n_cells || !r->opt.compat;
  if (has_folder && mkdir(dir, 0777) < 0 && errno != EEXIST)
    return -errno;
  if (!r->opt.compat)
    e = write_tables(r, s, dir);
  if (e < 0)
    return e;
  if (!r->opt.no_plots && s->n_cells)
    unwritten |= render_plots(r, s, &o, dir);
  if (!r->opt.no_html && !r->opt.compat)
    unwritten |= render_page(r, s, &o);
  return unwritten;
}

/* Adds counters during the collectives, and their table. */
static int add_counters(struct ni_run *r, struct ni_summary *s) {
  struct ni_counters_table *t = NULL;
  bool table = r->has_counters && !r->opt.no_parquet;
  int e = table ? ni_counters_table_new(&t, r) : 0;
  struct ni_counters_also also = ni_counters_table_sink(t);
  if (e == 0)
    e = ni_counters_build(r, s, table ? &also : NULL);
  ni_counters_table_free(t);
  return e;
}

/* Does nobody else read shards of the logs? */
static bool is_alone(const struct ni_run *r) { return !r->partial && !r->agree; }

/* There is no line that an inspector has written: these files are something else, or empty. */
static bool has_no_line_of_ours(const struct ni_summary *s) {
  const struct ni_input *in = &s->input;
  const bool is_read = in->files > 0 && in->files_failed == 0 && in->damaged_files == 0 && in->cut_files == 0;
  return is_read && in->lines == in->bad_lines;
}

static int refuse_other_files(struct ni_run *r, const struct ni_summary *s) {
  const struct ni_ledger *l = &r->ledger;
  const char *first = l->n_samples ? l->sample[0].text : l->problem[NI_PROBLEM_EMPTY].where[0].text;
  if (s->input.lines == 0)
    return ni_run_fail(r, -ENODATA, "nothing to read: %" PRIu64 " %s (%s)", s->input.files,
                       ni_problem_text(NI_PROBLEM_NOTHING, s->input.files), first ? first : "");
  return ni_run_fail(
      r, -ENODATA, "no line of an inspector is in %s, but %" PRIu64 " other %s (%s): give the logs of a job",
      ni_plural(s->input.files, "this file", "these files"), s->input.lines,
      ni_plural(s->input.lines, "line", "lines"), first ? first : "");
}

static void close_index(struct ni_run *r, bool done) {
  ni_atlas_close(r->atlas, done, NULL);
  r->atlas = NULL;
}

int ni_summarize_read(struct ni_run *r) {
  r->progress.mode = ni_inputs_progress(&r->opt.inputs, r->opt.quiet);
  ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  int e =
      is_alone(r) ? ni_atlas_open(&r->atlas, "nccl-inspector summary", &r->files, &r->opt.index, false) : 0;
  if (e == 0)
    e = ni_plan_reading(r);
  if (e == 0)
    e = ni_role_map_read(r);
  if (e == 0)
    e = ni_log_groups_read(r);
  if (e == 0)
    e = ni_resolve_times(r);
  for (size_t i = 0; e == 0 && i < r->files.n; i++)
    e = ni_parquet_new(&r->file[i]);
  if (e == 0 && r->since_us > r->until_us)
    e = ni_run_fail(r, -EINVAL, "%s", NI_WHEN_REVERSED);
  struct ni_records records;
  if (e == 0 && (e = ni_records_init(&records, r)) == 0) {
    r->records = &records.sink;
    e = ni_read_all(r);
    int ended = ni_records_end(&records);
    if (e == 0)
      e = ended;
  }
  /* they lie in the index until they are added up */
  if (e == 0 && r->opt.approximate)
    e = ni_log_sums_all(r);
  else
    close_index(r, e == 0);
  return e;
}

int ni_summarize_dataset(struct ni_run *r, const char *command, uint64_t *records) {
  int e = ni_result_begin(r);
  if (e < 0)
    return e;
  ni_summarize_store(r, r->tmp_dir);
  e = ni_summarize_read(r);
  *records = r->tally.records - r->tally.filtered;
  if (e == 0)
    ni_filters_say_unmet(&r->opt.filter, command);
  if (e == 0)
    e = ni_dataset_write(r);
  if (e == 0 && *records == 0)
    ni_run_fail(r, e = -ENODATA, "nothing to write: no record passes");
  if (e == 0)
    e = ni_ledger_judge(&r->ledger);
  return e < 0 ? e : ni_result_commit(r);
}

/* From here on all ranks of a team do the same (team/team.h). A process alone does all of it. */
static int join_team(struct ni_run *r, struct ni_summary *s, struct ni_blame *blame) {
  struct ni_sink csv = ni_operations_csv(r);
  const bool to_root = r->team && !r->partial->apart;
  int e = to_root ? ni_team_spread(r, s, true) : 0;
  const bool is_served = r->partial && r->partial->served && !r->team;
  if (e == 0 && is_served)
    return 0; /* rank 0 has all */
  if (e == 0 && to_root)
    e = ni_turns_find(r); /* streams are whole only now */
  if (e == 0 && r->opt.approximate) {
    if ((e = ni_roles_tell(&(struct ni_blame){.r = r, .s = s})) == 0)
      e = ni_figures_sum(r, s, NULL);
    close_index(r, e == 0);
    return e;
  }
  if (e == 0)
    e = ni_judge_all(r, s, blame);
  if (e == 0 && r->team)
    e = ni_team_spread(r, s, false);
  if (e == 0)
    e = ni_pairs_match(r, s);
  if (e == 0)
    e = ni_figures_sum(r, s, r->opt.no_csv ? NULL : &csv);
  if (e == 0 && r->team && !r->opt.no_csv) {
    ni_team_meet(r->team);
    e = ni_operations_csv_join(r, s);
    if (e < 0)
      ni_run_fail(r, e, "%s/summary: %s", r->tmp_dir, strerror(-e));
    else
      ni_team_meet(r->team);
  }
  if (e == 0)
    r->team = NULL;
  return e;
}

int ni_summarize_serve(struct ni_run *r) {
  struct ni_summary s = {0};
  struct ni_blame none = {0};
  int e = ni_build_begin(r, &s);
  r->partial->served = true;
  if (e == 0)
    e = join_team(r, &s, &none);
  ni_summary_free(&s);
  return e;
}

int ni_summarize_finish(struct ni_run *r, struct ni_summary *s) {
  int e = 0;
  ni_filters_say_unmet(&r->opt.filter, "nccl-inspector summary");
  if (r->opt.dataset)
    e = ni_dataset_write(r);
  if (e == 0)
    e = ni_build_begin(r, s);
  if (e == 0)
    e = add_counters(r, s);
  struct ni_blame blame = {0};
  if (e == 0)
    e = join_team(r, s, &blame);
  if (e == 0)
    e = ni_group_incidents(&blame, s);
  if (e == 0)
    e = ni_add_evidence(&blame, s);
  if (e == 0)
    e = ni_fill_lateness_map(&blame, s);
  ni_blame_free(&blame);
  if (e == 0)
    e = ni_build_end(r, s);
  if (e == 0)
    e = ni_rollups_build(r, s);
  if (e == 0)
    e = ni_summary_judge_hang(r, s, is_alone(r));
  if (e < 0)
    return e;
  if (has_no_line_of_ours(s) && !r->opt.compat)
    return refuse_other_files(r, s);
  if (s->records == 0 && s->input.filtered_out && !r->opt.compat) {
    bool earlier = ni_result_earlier(r);
    return ni_run_fail(r, -ENODATA, "nothing is left: %s%" PRIu64 " %s left out by the options%s%s%s",
                       ni_plural(s->input.filtered_out, "the ", "all of "), s->input.filtered_out,
                       ni_plural(s->input.filtered_out, "record is", "records are"), earlier ? "; " : "",
                       earlier ? r->out_dir : "", earlier ? " is as it was" : "");
  }
  write_log(r, s);
  const int rendered = render_tables(r, s);
  if (rendered < 0)
    return ni_run_fail(r, rendered, "%s: %s", r->tmp_dir, strerror(-rendered));
  e = ni_result_commit(r);
  return e < 0 ? e : rendered;
}

int ni_summarize(struct ni_run *r, struct ni_summary *s) {
  int e = ni_result_begin(r);
  if (e < 0)
    return e;
  ni_summarize_store(r, r->tmp_dir);
  e = ni_summarize_read(r);
  return e < 0 ? e : ni_summarize_finish(r, s);
}

/* Reads all of the input into segments; each record also goes to the sink. Without an output folder. */
static int read_records(struct ni_run *r, struct ni_summary *s, const struct ni_sink *records) {
  ni_summarize_store(r, NULL);
  r->progress.mode = ni_inputs_progress(&r->opt.inputs, r->opt.quiet);
  r->records = records;
  ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  int e = ni_plan_reading(r);
  if (e == 0)
    e = ni_role_map_read(r);
  if (e == 0)
    e = ni_resolve_times(r);
  if (e == 0)
    e = ni_read_all(r);
  r->records = NULL;
  return e == 0 ? ni_build_begin(r, s) : e;
}

int ni_summarize_pattern(struct ni_run *r, struct ni_summary *s, struct ni_pattern *pattern) {
  struct ni_datatypes types;
  int e = ni_datatypes_init(&types);
  if (e < 0)
    return e;
  const struct ni_sink records = ni_datatypes_sink(&types);
  e = read_records(r, s, &records);
  if (e == 0)
    ni_datatypes_sort(&types, r);
  if (e == 0)
    e = ni_pattern_find(r, s, NULL, &types, pattern);
  if (e == 0)
    e = ni_judge_input(r, s);
  ni_datatypes_free(&types);
  return e;
}

static int digest_steps(struct ni_run *r, struct ni_summary *s, const struct ni_blame *b,
                        struct ni_datatypes *types, struct ni_digest *out) {
  struct ni_pattern pattern = {0};
  ni_datatypes_sort(types, r);
  int e = ni_pattern_find(r, s, b, types, &pattern);
  if (e == 0)
    e = ni_digest_make(out, &pattern, r, s);
  ni_pattern_free(&pattern);
  return e;
}

int ni_summarize_tables(struct ni_run *r, struct ni_summary *s, struct ni_blame *keep,
                        struct ni_digest *steps) {
  struct ni_datatypes types;
  int e = ni_datatypes_init(&types);
  if (e < 0)
    return e;
  const struct ni_sink records = ni_datatypes_sink(&types);
  e = read_records(r, s, &records);
  if (e == 0)
    e = ni_judge_all(r, s, keep);
  if (e == 0)
    e = digest_steps(r, s, keep, &types, steps);
  ni_datatypes_free(&types);
  if (e == 0)
    e = ni_figures_sum(r, s, NULL);
  if (e == 0)
    e = ni_build_end(r, s);
  return e == 0 ? ni_rollups_build(r, s) : e;
}

void ni_summarize_free(struct ni_run *r) {
  for (size_t i = 0; r->file && i < r->files.n; i++) {
    struct ni_sum_file *f = &r->file[i];
    ni_parquet_abort(f);
    free(f->parquet);
  }
  free(r->file);
  ni_partial_free(r);
  ni_log_sums_free(r);
  close_index(r, false);
  ni_scan_plan_free(&r->plan);
  ni_ledger_free(&r->ledger);
  ni_files_free(&r->files);
  ni_runs_free(&r->runs);
  ni_tables_free(r);
  ni_rollups_free(r);
  ni_long_waits_free(r);
  ni_spill_close(&r->store);
  if (r->tmp_fd >= 0)
    close(r->tmp_fd);
  if (r->out_fd >= 0)
    close(r->out_fd);
  free(r->comm_at);
  free(r->process_at);
  free(r->seat_at);
  free(r->cell_order);
  ni_sort_free(r->sorted);
  free(r->out_dir);
  ni_inputs_free(&r->opt.inputs);
  ni_inputs_free(&r->opt.parts);
  ni_filters_free(&r->opt.filter);
  free(r->roles.item);
  free(r->roles.text);
  free(r->log_groups.text);
  free(r->log_groups.name);
  free(r->marks.line);
  free(r->marks.at);
  ni_bucket_free(&r->rolled);
  ni_tag_names_free(&r->tag_names);
}
