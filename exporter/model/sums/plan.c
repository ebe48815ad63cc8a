/*
 * What is to be read and in which parts: names of the Parquet files, ranges, what each log says at its beginning, and
 * the times that --since and --until mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { PEEK_LINES = 64, STOP = -ECANCELED };

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The name that NVIDIA's exporter gives; equal ones from other folders get -2, -3, ... in order of their paths. */
static int name_parquet_files(struct ni_run *r) {
  struct ni_names used;
  int e = ni_names_init(&used);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    char *base = strdup(base_of(r->file[i].file->path)), *dot;
    if (!base) {
      e = -ENOMEM;
      break;
    }
    if ((dot = strrchr(base, '.')) && dot != base) *dot = 0;
    for (unsigned k = 1; e == 0; k++) {
      char *name = NULL;
      uint32_t before = used.n, code;
      if ((k == 1 ? asprintf(&name, "%s", base) : asprintf(&name, "%s-%u", base, k)) < 0) e = -ENOMEM;
      else e = ni_name(&used, NULL, *name ? name : "log", &code);
      if (e == 0 && used.n > before) {
        r->file[i].parquet = name;
        break;
      }
      if (e == 0 || name) free(name);
    }
    free(base);
  }
  ni_names_free(&used);
  return e;
}

/* The process line, and for --compat the keys of the first record, stand in the first lines. */
static int peek_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct ni_sum_file *f = arg;
  if (l->kind == NI_LINE_PROCESS && f->start_ns == 0) f->start_ns = l->process.start_ns;
  if (l->kind == NI_LINE_OP) {
    f->has_name = l->has_header && l->ident.comm_name;
    f->has_timing = l->op.timing != NI_TIMING_NONE;
    f->has_trace = l->trace != NULL;
    f->has_algo = l->op.algo && *l->op.algo;
    return STOP;
  }
  return line_no < PEEK_LINES ? 0 : STOP;
}

static int peek_file(struct ni_run *r, struct ni_sum_file *f, struct ni_scan *scan) {
  int e = ni_name_of_log(&r->names, f->file->path, &f->origin);
  const struct ni_scan_to to = {.arg = f, .take = peek_line};
  if (e == 0) e = ni_scan_file(scan, f->file->path, NULL, &to, NULL); /* what is wrong with it is told when it is read */
  return e == STOP ? 0 : e;
}

/* What one thread does: one() for the next file, until none is left. */
static void *each_file(struct ni_run *r, int (*one)(struct ni_run *, struct ni_sum_file *, struct ni_scan *)) {
  struct ni_scan *scan = NULL;
  int e = ni_scan_new(&scan);
  while (e == 0 && !ni_run_stopped(r)) {
    size_t i = atomic_fetch_add_explicit(&r->next_task, 1, memory_order_relaxed);
    if (i >= r->files.n) break;
    e = one(r, &r->file[i], scan);
  }
  if (e < 0) ni_run_fail(r, e, "%s", strerror(-e));
  ni_scan_free(scan);
  return NULL;
}

static void *peek_work(void *run) { return each_file(run, peek_file); }

int ni_plan(struct ni_run *r) {
  r->file = calloc(r->files.n, sizeof *r->file);
  if (!r->file) return -ENOMEM;
  int e = ni_scan_plan(&r->plan, &r->files, true, r->opt.jobs);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    r->file[i].file = &r->files.file[i];
    r->file[i].n_ranges = r->plan.of_file[i].n;
    atomic_init(&r->file[i].left, r->file[i].n_ranges);
  }
  if (e == 0) e = name_parquet_files(r);
  return e < 0 ? e : ni_run_threads(r, peek_work);
}

struct times {
  int64_t first, last;
};

static int take_time(void *arg, struct ni_line *l, uint64_t line_no) {
  struct times *x = arg;
  (void)line_no;
  if (l->kind != NI_LINE_OP) return 0;
  int64_t start = ni_start_ns(l), t = start != NI_NO_START ? start / 1000 : (int64_t)l->meta.dump_timestamp_us;
  if (t < x->first) x->first = t;
  if (t > x->last) x->last = t;
  return 0;
}

/* The earliest and the latest time of all records of a file; one that cannot be read is told when it is read. */
static int times_of_file(struct ni_run *r, struct ni_sum_file *f, struct ni_scan *scan) {
  struct times x = {INT64_MAX, INT64_MIN};
  int e = ni_scan_file(scan, f->file->path, NULL, &(struct ni_scan_to){.arg = &x, .take = take_time}, NULL);
  pthread_mutex_lock(&r->lock);
  if (x.first < r->tally.first_us) r->tally.first_us = x.first;
  if (x.last > r->tally.last_us) r->tally.last_us = x.last;
  pthread_mutex_unlock(&r->lock);
  return e;
}

static void *times_work(void *run) { return each_file(run, times_of_file); }

int ni_resolve_times(struct ni_run *r) {
  int e = 0;
  bool relative = r->opt.since.base > NI_WHEN_ABSOLUTE || r->opt.until.base > NI_WHEN_ABSOLUTE;
  if (relative) {
    r->tally.first_us = INT64_MAX;
    r->tally.last_us = INT64_MIN;
    e = ni_run_threads(r, times_work);
    if (r->tally.first_us == INT64_MAX) r->tally.first_us = r->tally.last_us = 0;
  }
  r->since_us = ni_when_resolve(&r->opt.since, INT64_MIN, r->tally.first_us, r->tally.last_us);
  r->until_us = ni_when_resolve(&r->opt.until, INT64_MAX, r->tally.first_us, r->tally.last_us);
  r->tally.first_us = r->tally.last_us = 0;
  return e;
}
