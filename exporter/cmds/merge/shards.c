#include "shards.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/sums/partial/sections.h"
#include "exporter/model/sums/reading/plan.h"
#include "exporter/model/ledger/judge.h"
#include "exporter/output/tables/output.h"

#define PARQUET ".parquet"

/* ---- Parquet files beside a partial -------------------------------------------------------------------- */

/* Begins the folder beside a partial, like any result. Without Parquet files there is none. */
static int begin_parquet_folder(struct ni_run *r) {
  static char folder[PATH_MAX];
  if (r->opt.no_parquet) {
    ni_summarize_store(r, NULL);
    return 0;
  }
  if (snprintf(folder, sizeof folder, "%s" PARQUET, r->opt.partial) >= (int)sizeof folder)
    return -ENAMETOOLONG;
  r->opt.output_dir = folder;
  int e = ni_result_begin(r);
  ni_summarize_store(r, r->tmp_dir);
  return e;
}

/* Copies one Parquet file into our folder: as another name for it, or as a copy. */
static int copy_parquet(int from, int to, const char *name) {
  if (linkat(from, name, to, name, 0) == 0)
    return 0;
  if (errno == ENOENT || errno == EEXIST)
    return -errno;
  return ni_copy_file(from, name, to, name, O_CREAT | O_EXCL);
}

static int copy_parquets(struct ni_run *r, const char *path, const uint32_t *shard, size_t n) {
  char folder[PATH_MAX], name[NAME_MAX + 1];
  if (r->opt.no_parquet)
    return 0;
  snprintf(folder, sizeof folder, "%s" PARQUET "/parquet_files", path);
  int from = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), e = from < 0 ? -errno : 0;
  int to = e < 0 ? -1 : openat(r->tmp_fd, "parquet_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (e == 0 && to < 0)
    e = -errno;
  if (e < 0)
    ni_run_fail(r, e, "%s: %s; it has the Parquet files of %s", folder, strerror(-e), path);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    bool mine = false;
    for (size_t k = 0; k < n && !mine; k++)
      mine = r->partial->shard_of[i] == shard[k];
    if (!mine || !r->partial->parquet[i])
      continue;
    snprintf(name, sizeof name, "%s.parquet", r->file[i].parquet);
    e = copy_parquet(from, to, name);
    if (e < 0)
      ni_run_fail(r, e, "%s/%s: not copied to %s: %s", folder, name, r->out_dir, strerror(-e));
  }
  if (from >= 0)
    close(from);
  if (to >= 0)
    close(to);
  return e;
}

void ni_shard_parquets(struct ni_run *r) {
  char name[NAME_MAX + 32];
  for (size_t i = 0; i < r->files.n && !r->opt.no_parquet; i++) {
    snprintf(name, sizeof name, "parquet_files/%s.parquet", r->file[i].parquet);
    r->partial->parquet[i] = faccessat(r->tmp_fd, name, F_OK, 0) == 0;
  }
}

/* ---- writing a partial --------------------------------------------------------------------------------- */

/* Writes the partial. It is named last, so whoever sees it finds the Parquet files as well. */
static int write_partial(struct ni_run *r) {
  struct ni_sections out;
  int e = ni_sections_create(&out, r, r->opt.partial);
  if (e == 0)
    e = ni_partial_store(r, &(struct ni_section_to){&out, ni_sections_put});
  if (e == 0 && !r->opt.no_parquet)
    e = ni_result_commit(r);
  if (e == 0)
    e = ni_sections_commit(&out, r);
  ni_sections_close(&out);
  return e;
}

int ni_shard_run(struct ni_run *r) {
  int e = begin_parquet_folder(r);
  if (e == 0)
    e = ni_shards_plan(r, r->opt.shard, r->opt.shards);
  if (e == 0)
    e = ni_summarize_read(r);
  if (e < 0)
    return e;
  ni_shard_parquets(r);
  return write_partial(r);
}

/* ---- merge --------------------------------------------------------------------------------------------- */

struct partial_file {
  const char *path;
  uint32_t *shard;
  size_t n;
};

/* Checks who has which shard. One that is in two files is refused. */
static int check_no_doubles(struct ni_run *r, const struct partial_file *part, size_t n) {
  const char **of = calloc(r->partial->of, sizeof *of);
  int e = of ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++)
    for (size_t k = 0; e == 0 && k < part[i].n; k++) {
      const char **x = &of[part[i].shard[k]];
      if (*x)
        ni_run_fail(r, e = -EEXIST, "shard %u of %u is in %s and in %s", part[i].shard[k] + 1, r->partial->of,
                    *x, part[i].path);
      *x = part[i].path;
    }
  free(of);
  return e;
}

/* Checks that all shards are there. Missing ones are reported only if that matters. */
static int check_all_there(struct ni_run *r, const struct partial_file *part, size_t n) {
  char missing[200];
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < part[i].n; k++)
      r->partial->have[part[i].shard[k]] = true;
  uint32_t lack = ni_partial_missing(r->partial, missing);
  if (!lack || r->opt.partial || r->opt.allow_missing)
    return 0;
  return ni_run_fail(r, -ENOLINK,
                     "shard%s %s of %u %s missing: merge %s too, or say --allow-missing for a result that is "
                     "marked as partial",
                     lack > 1 ? "s" : "", missing, r->partial->of, lack > 1 ? "are" : "is",
                     lack > 1 ? "them" : "it");
}

/* Opened twice, so that there may be more of them than open files. rest: not the plan alone. */
static int read_partial(struct ni_run *r, struct partial_file *p, const char *with, bool rest) {
  struct ni_sections file;
  const struct ni_section_from from = {&file, p->path, ni_sections_get};
  uint32_t *shard = NULL;
  size_t n = 0;
  int e = ni_sections_open(&file, r, p->path);
  if (e == 0)
    e = ni_partial_load_plan(r, &from, with, &shard, &n);
  const bool is_changed = e == 0 && rest && (n != p->n || memcmp(shard, p->shard, n * sizeof *shard) != 0);
  if (is_changed)
    ni_run_fail(r, e = -ESTALE, "%s: was changed while it was read", p->path);
  if (e == 0 && rest)
    e = ni_partial_load(r, &from, shard, n);
  if (e == 0 && rest)
    e = copy_parquets(r, p->path, shard, n);
  if (rest) {
    free(shard);
  } else {
    p->shard = shard;
    p->n = n;
  }
  ni_sections_close(&file);
  return e;
}

static int load_parts(struct ni_run *r, struct partial_file *part, size_t n, char *const *path) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++) {
    part[i].path = path[i];
    e = read_partial(r, &part[i], path[0], false);
  }
  if (e == 0)
    e = check_no_doubles(r, part, n);
  if (e == 0)
    e = check_all_there(r, part, n);
  if (e == 0)
    e = r->opt.partial ? begin_parquet_folder(r) : ni_result_begin(r);
  if (e == 0 && !r->opt.partial)
    ni_summarize_store(r, r->tmp_dir);
  r->progress.mode = ni_inputs_progress(&r->opt.inputs, r->opt.quiet);
  if (e == 0)
    e = ni_plan_reading(r);
  for (size_t i = 0; e == 0 && i < n; i++)
    e = read_partial(r, &part[i], path[0], true);
  return e;
}

/* Logs that are read a second time must be those that were read the first time. */
static int check_logs_unchanged(struct ni_run *r, bool all) {
  for (size_t i = 0; i < r->files.n; i++) {
    struct stat st;
    const struct ni_file *f = &r->files.file[i];
    if (f->elsewhere || (!all && !ni_is_series(f->path)))
      continue;
    int e = stat(f->path, &st) < 0 ? -errno : 0;
    if (e == 0 && (uint64_t)st.st_size == f->bytes &&
        st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec == f->mtime_ns)
      continue;
    return ni_run_fail(r, -ESTALE, "%s: %s; it is read once more, for %s", f->path,
                       e < 0 ? strerror(-e) : "was changed since it was summed up",
                       all ? "operations that had not finished" : "counters");
  }
  return 0;
}

int ni_merge_finish(struct ni_run *r, struct ni_summary *s) {
  const struct ni_partial *p = r->partial;
  r->plan.bytes = 0;
  for (size_t i = 0; i < r->files.n; i++) {
    r->files.file[i].elsewhere = !p->have[p->shard_of[i]];
    if (!r->files.file[i].elsewhere)
      r->plan.bytes += r->files.file[i].bytes;
  }
  ni_ledger_free(&r->ledger); /* of who read a shard itself: it is in the accounts */
  ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  int e = r->roles.text ? 0 : ni_role_map_read(r);
  if (e == 0 && !r->log_groups.n)
    e = ni_log_groups_read(r);
  if (e == 0)
    e = ni_partial_settle(r, &r->ledger);
  const bool needs_logs = r->has_counters || r->ledger.unfinished;
  if (e == 0 && needs_logs && !r->opt.compat)
    e = check_logs_unchanged(r, r->ledger.unfinished);
  return e < 0 ? e : ni_summarize_finish(r, s);
}

int ni_merge_parts(struct ni_run *r, struct ni_summary *s) {
  const size_t n = r->opt.parts.n;
  struct partial_file *part = calloc(n, sizeof *part);
  int e = part ? load_parts(r, part, n, r->opt.parts.path) : -ENOMEM;
  for (size_t i = 0; part && i < n; i++)
    free(part[i].shard);
  free(part);
  if (e < 0)
    return e;
  if (r->opt.partial)
    ni_shard_parquets(r);
  return r->opt.partial ? write_partial(r) : ni_merge_finish(r, s);
}
