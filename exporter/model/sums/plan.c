/*
 * What is to be read and in which parts: names of the Parquet files, ranges, what each log says at its beginning, and
 * the times that --since and --until mean.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

enum { PEEK_LINES = 64 };

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The contract's name; equal ones from other folders get -2, -3, ... in order of their paths. */
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

const char *ni_job_id(const struct ni_process_line *p) {
  static const char *const keys[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
  for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++)
    for (uint32_t i = p->env.n; i-- > 0;)
      if (strcmp(p->env.item[i].key, keys[k]) == 0) return p->env.item[i].value;
  return NULL;
}

/* The process line, and for --compat the keys of the first record, stand in the first lines. */
static int peek(struct ni_run *r, struct ni_sum_file *f, struct ni_parser *parser, bool *gzip) {
  struct ni_reader *reader = NULL;
  struct ni_text text;
  struct ni_line l;
  int e = ni_reader_open(&reader, f->file->path, NULL);
  if (e < 0) return 0; /* told when it is read */
  for (int i = 0; i < PEEK_LINES && ni_reader_next(reader, &text) > 0; i++) {
    if (text.too_long || ni_parse_line(parser, text.text, text.len, text.room, &l) != NI_OK) continue;
    if (l.kind == NI_LINE_PROCESS && f->start_ns == 0) {
      f->start_ns = l.process.start_ns;
      if (!f->job) e = ni_name(&r->names, NULL, ni_job_id(&l.process), &f->job);
    }
    if (l.kind == NI_LINE_OP) {
      f->has_name = l.has_header && l.ident.comm_name;
      f->has_timing = l.op.timing != NI_TIMING_NONE;
      f->has_trace = l.trace != NULL;
      f->has_algo = l.op.algo && *l.op.algo;
      break;
    }
  }
  *gzip = ni_reader_stats(reader)->gzip;
  ni_reader_close(reader);
  return e;
}

/* A range has its full size from files of so many on, and a quarter of it at least. */
enum { RANGES_MIN = 64 };

static int plan_file(struct ni_run *r, struct ni_sum_file *f, struct ni_parser *parser) {
  bool gzip = false;
  int e = ni_name_of_log(&r->names, f->file->path, &f->origin), n = 1;
  if (e == 0) e = peek(r, f, parser, &gzip);
  if (e < 0) return e;
  /* Small ones in a small file: what is read ahead of its turn is at most a range for each thread. */
  uint64_t most = gzip ? NI_RANGE_GZIP_BYTES : NI_RANGE_PLAIN_BYTES, each = f->file->bytes / RANGES_MIN;
  if (each < most / 4) each = most / 4;
  if (each > most) each = most;
  uint64_t want = f->file->bytes / each + 1;
  if (want > 65536) want = 65536;
  struct ni_range *range = calloc(want, sizeof *range);
  if (!range) return -ENOMEM;
  n = ni_reader_split(f->file->path, (int)want, 0, range);
  if (n < 1) { /* told when it is read */
    range[0] = (struct ni_range){0, UINT64_MAX >> 1};
    n = 1;
  }
  f->range = calloc((size_t)n, sizeof *f->range);
  if (f->range)
    for (int i = 0; i < n; i++) f->range[i].at = range[i];
  free(range);
  if (!f->range) return -ENOMEM;
  f->n_ranges = n;
  atomic_init(&f->left, n);
  return 0;
}

/* What one thread does: one() for the next file, until none is left. */
static void *each_file(struct ni_run *r, int (*one)(struct ni_run *, struct ni_sum_file *, struct ni_parser *)) {
  struct ni_parser *parser = NULL;
  int e = ni_parser_new(&parser);
  while (e == 0 && !ni_run_stopped(r)) {
    size_t i = atomic_fetch_add_explicit(&r->next_task, 1, memory_order_relaxed);
    if (i >= r->files.n) break;
    e = one(r, &r->file[i], parser);
  }
  if (e < 0) ni_run_fail(r, e, "%s", strerror(-e));
  ni_parser_free(parser);
  return NULL;
}

static void *plan_work(void *run) { return each_file(run, plan_file); }

int ni_plan(struct ni_run *r) {
  r->file = calloc(r->files.n, sizeof *r->file);
  if (!r->file) return -ENOMEM;
  for (size_t i = 0; i < r->files.n; i++) r->file[i].file = &r->files.file[i];
  int e = name_parquet_files(r);
  return e < 0 ? e : ni_run_threads(r, plan_work);
}

/* The earliest and the latest time of all records of a file; one that cannot be read is told when it is read. */
static int times_of_file(struct ni_run *r, struct ni_sum_file *f, struct ni_parser *parser) {
  struct ni_reader *reader = NULL;
  struct ni_text text;
  struct ni_line l;
  int64_t first = INT64_MAX, last = INT64_MIN, marker = 0;
  if (ni_reader_open(&reader, f->file->path, NULL) < 0) return 0;
  while (ni_reader_next(reader, &text) > 0) {
    if (text.too_long || ni_parse_line(parser, text.text, text.len, text.room, &l) != NI_OK) continue;
    if (l.has_header) marker = (int64_t)l.meta.dump_timestamp_us;
    if (l.kind != NI_LINE_OP) continue;
    int64_t start = ni_start_ns(&l), t = start != NI_NO_START ? start / 1000 : marker;
    if (t < first) first = t;
    if (t > last) last = t;
  }
  ni_reader_close(reader);
  pthread_mutex_lock(&r->lock);
  if (first < r->tally.first_us) r->tally.first_us = first;
  if (last > r->tally.last_us) r->tally.last_us = last;
  pthread_mutex_unlock(&r->lock);
  return 0;
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
