/*
 * What is to be read and in which parts: names of the Parquet files, ranges, and the times that --since and
 * --until mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/input/tags/tags.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/sums/approx/log_sums.h"
#include "exporter/model/sums/rollups.h"
#include "plan.h"

/*
 * The name that NVIDIA's exporter gives; equal ones from other folders get -2, -3, ... in order of their
 * paths.
 */
static int name_parquet_file(struct ni_names *used, struct ni_sum_file *file) {
  char *base = strdup(ni_path_name(file->file->path)), *dot;
  int e = base ? 0 : -ENOMEM;
  if (base && (dot = strrchr(base, '.')) && dot != base)
    *dot = 0;
  for (unsigned k = 1; e == 0; k++) {
    char *name = NULL;
    const uint32_t before = used->n;
    uint32_t code;
    if ((k == 1 ? asprintf(&name, "%s", base) : asprintf(&name, "%s-%u", base, k)) < 0) {
      e = -ENOMEM;
      break;
    }
    e = ni_name(used, NULL, *name ? name : "log", &code);
    if (e == 0 && used->n > before) { /* nobody has it yet */
      file->parquet = name;
      break;
    }
    free(name);
  }
  free(base);
  return e;
}

static int name_parquet_files(struct ni_run *r) {
  struct ni_names used;
  int e = ni_names_init(&used);
  for (size_t i = 0; e == 0 && i < r->files.n; i++)
    e = name_parquet_file(&used, &r->file[i]);
  ni_names_free(&used);
  return e;
}

/* What the options ask for, as the index takes it; false: everything. */
static bool describe_wanted(struct ni_run *r, struct ni_atlas_wants *w) {
  const struct ni_filters *o = &r->opt.filter;
  *w = (struct ni_atlas_wants){.since_us = r->since_us,
                               .until_us = r->until_us,
                               .comm = &o->comm,
                               .host = &o->host,
                               .coll = &o->coll,
                               .rank = &o->rank,
                               .job_rank = &o->job_rank,
                               .sn = &o->sn,
                               .size = &o->size,
                               .records = true,
                               .rollups = ni_rollups_are_wanted(r),
                               .proxies = r->has_counters,
                               .sums = r->opt.approximate ? ni_log_sums_sound : NULL};
  return r->opt.approximate || ni_filters_any(o);
}

/* Which ranges are read. known: the times asked for are known, by which the index tells what need not be. */
static int plan_ranges(struct ni_run *r, bool known) {
  struct ni_atlas_wants w;
  int e =
      ni_atlas_plan(r->atlas, &r->plan, &r->files, r->opt.jobs, known && describe_wanted(r, &w) ? &w : NULL);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    r->file[i].n_ranges = r->plan.of_file[i].n;
    atomic_init(&r->file[i].left, r->file[i].n_ranges);
  }
  return e;
}

int ni_plan_reading(struct ni_run *r) {
  r->file = calloc(r->files.n, sizeof *r->file);
  if (!r->file)
    return -ENOMEM;
  int e = r->atlas ? 0 : plan_ranges(r, false);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    r->file[i].file = &r->files.file[i];
    r->has_counters |= !r->opt.compat && !r->opt.approximate && ni_is_series(r->files.file[i].path);
  }
  return e < 0 ? e : name_parquet_files(r);
}

struct record_times {
  int64_t first, last;
};

struct gathered_times {
  struct record_times t;
  bool (*stop)(void *);
  void *arg;
};

static int widen_times(void *arg, struct ni_line *l, uint64_t line_no) {
  struct record_times *x = arg;
  if (l->kind != NI_LINE_OP)
    return 0;
  int64_t t = ni_op_time_us(l);
  if (t < x->first)
    x->first = t;
  if (t > x->last)
    x->last = t;
  return 0;
}

/* Of a part; one that cannot be read is told when it is read. */
static int read_times(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                      void **result) {
  struct record_times *x = *result = malloc(sizeof *x);
  if (!x)
    return -ENOMEM;
  *x = (struct record_times){INT64_MAX, INT64_MIN};
  to->arg = x;
  to->take = widen_times;
  return ni_scan_file(scan, p->file->path, &p->at, to, NULL);
}

static int merge_times(void *arg, const struct ni_scan_part *p, void *result) {
  struct gathered_times *a = arg;
  const struct record_times *x = result;
  if (x->first < a->t.first)
    a->t.first = x->first;
  if (x->last > a->t.last)
    a->t.last = x->last;
  free(result);
  return 0;
}

static void free_times(void *arg, void *result) { free(result); }

static bool is_stopped(void *arg) {
  const struct gathered_times *a = arg;
  return a->stop && a->stop(a->arg);
}

int ni_record_times(const struct ni_scan_plan *plan, unsigned jobs, bool (*stop)(void *), void *arg,
                    int64_t *first_us, int64_t *last_us) {
  struct gathered_times a = {{INT64_MAX, INT64_MIN}, stop, arg};
  int e = ni_scan_files(&(struct ni_scan_team){.plan = plan,
                                               .jobs = jobs,
                                               .arg = &a,
                                               .part = read_times,
                                               .merge = merge_times,
                                               .drop = free_times,
                                               .stop = is_stopped});
  const bool none = a.t.first == INT64_MAX;
  *first_us = none ? 0 : a.t.first;
  *last_us = none ? 0 : a.t.last;
  return e;
}

/* A pass over all logs, those that other shards read as well. */
static int pass_over_all_logs(struct ni_run *r,
                              int (*pass)(struct ni_run *r, const struct ni_scan_plan *all, void *arg),
                              void *arg) {
  struct ni_scan_plan all = {0};
  bool *elsewhere = calloc(r->files.n + 1, sizeof *elsewhere);
  int e = elsewhere ? 0 : -ENOMEM;
  for (size_t i = 0; elsewhere && i < r->files.n; i++) {
    elsewhere[i] = r->files.file[i].elsewhere;
    r->files.file[i].elsewhere = false;
  }
  if (e == 0)
    e = ni_scan_plan(&all, &r->files, true, r->opt.jobs);
  if (e == 0)
    e = pass(r, &all, arg);
  ni_scan_plan_free(&all);
  for (size_t i = 0; elsewhere && i < r->files.n; i++)
    r->files.file[i].elsewhere = elsewhere[i];
  free(elsewhere);
  return e;
}

static int pass_times(struct ni_run *r, const struct ni_scan_plan *plan, void *times) {
  struct record_times *t = times;
  return ni_record_times(plan, r->opt.jobs, ni_run_stopped, r, &t->first, &t->last);
}

/* Of all logs: a shard that does not hear of the others' times reads them, too. */
static int find_record_times(struct ni_run *r, int64_t *first, int64_t *last) {
  struct record_times t = {*first, *last};
  int e = r->partial && !r->agree ? pass_over_all_logs(r, pass_times, &t) : pass_times(r, &r->plan, &t);
  *first = t.first;
  *last = t.last;
  if (e == 0 && r->agree)
    r->agree(first, last);
  return e;
}

/* A name of a tag can stand in any log, whoever reads that. */
static int pass_tags(struct ni_run *r, const struct ni_scan_plan *plan, void *none) {
  return ni_tags_resolve_by(&r->opt.filter.tag, plan, r->opt.jobs, ni_run_stopped, r);
}

/* A log of which the index knows the times need not be read for them. */
static int merge_indexed_times(void *run, size_t file_no, struct ni_scan_parts *out) {
  struct ni_run *r = run;
  int64_t first = INT64_MAX, last = INT64_MIN;
  if (!ni_atlas_times(r->atlas, file_no, &first, &last))
    return 0;
  pthread_mutex_lock(&r->lock);
  if (first < r->tally.first_us)
    r->tally.first_us = first;
  if (last > r->tally.last_us)
    r->tally.last_us = last;
  pthread_mutex_unlock(&r->lock);
  return (out->at = calloc(1, sizeof *out->at)) ? 1 : -ENOMEM; /* no part, and something to free */
}

static int find_times_by_index(struct ni_run *r, int64_t *first, int64_t *last) {
  struct ni_scan_plan plan = {0};
  struct ni_tally_sum *t = &r->tally;
  t->first_us = INT64_MAX;
  t->last_us = INT64_MIN;
  int e = ni_scan_plan_known(&plan, &r->files, true, r->opt.jobs, merge_indexed_times, r);
  if (e == 0)
    e = ni_record_times(&plan, r->opt.jobs, ni_run_stopped, r, first, last);
  ni_scan_plan_free(&plan);
  const bool known = t->first_us != INT64_MAX, were_read = *first || *last;
  if (known && (!were_read || t->first_us < *first))
    *first = t->first_us;
  if (known && (!were_read || t->last_us > *last))
    *last = t->last_us;
  t->first_us = t->last_us = 0;
  return e;
}

int ni_resolve_times(struct ni_run *r) {
  int64_t first = 0, last = 0;
  bool relative = ni_filters_relative(&r->opt.filter);
  int tags = ni_tags_unresolved(&r->opt.filter.tag) ? pass_over_all_logs(r, pass_tags, NULL) : 0;
  int e = tags < 0 ? tags : 0;
  if (e == 0 && relative)
    e = r->atlas ? find_times_by_index(r, &first, &last) : find_record_times(r, &first, &last);
  r->since_us = ni_when_resolve(&r->opt.filter.since, INT64_MIN, first, last);
  r->until_us = ni_when_resolve(&r->opt.filter.until, INT64_MAX, first, last);
  return e == 0 && r->atlas ? plan_ranges(r, true) : e;
}
