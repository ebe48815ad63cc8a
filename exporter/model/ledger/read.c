#include <errno.h>
#include <stdlib.h>

#include "exporter/input/scan_files.h"
#include "ledger.h"
#include "take.h"
#include "merge.h"
#include "read.h"
#include "judge.h"

int ni_ledgers_init(struct ni_ledgers *l, struct ni_ledger *all, const struct ni_files *files) {
  *l = (struct ni_ledgers){.all = all, .n = files->n, .of_file = calloc(files->n + 1, sizeof *l->of_file)};
  if (!l->of_file) return -ENOMEM;
  ni_ledger_files(all, files);
  return 0;
}

void ni_ledgers_drop(void *unused, void *part) {
  (void)unused;
  ni_ledger_free(part);
  free(part);
}

int ni_ledgers_merge(struct ni_ledgers *l, size_t file_no, struct ni_ledger *part) {
  struct ni_ledger *f = &l->of_file[file_no];
  int e = 0;
  if (f->file) {
    e = ni_ledger_merge(f, part);
  } else {
    *f = *part; /* its first part */
    *part = (struct ni_ledger){0};
  }
  ni_ledgers_drop(NULL, part);
  return e;
}

int ni_ledgers_file_done(struct ni_ledgers *l, size_t file_no) { return ni_ledger_merge(l->all, &l->of_file[file_no]); }

void ni_ledgers_free(struct ni_ledgers *l) {
  for (size_t i = 0; l->of_file && i < l->n; i++) ni_ledger_free(&l->of_file[i]);
  free(l->of_file);
}

static int read_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p, void **result) {
  (void)arg;
  struct ni_ledger *part = *result = calloc(1, sizeof *part);
  struct ni_scan_end end;
  if (!part) return -ENOMEM;
  ni_ledger_begin(part, p->file, p->part == 0);
  to->arg = part;
  to->take = ni_ledger_take;
  to->fault = ni_ledger_fault;
  to->counters = true;
  int e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
  ni_ledger_end(part, &end);
  return e;
}

static int merge(void *arg, const struct ni_scan_part *p, void *result) { return ni_ledgers_merge(arg, p->file_no, result); }

static int file_done(void *arg, size_t file_no) { return ni_ledgers_file_done(arg, file_no); }

int ni_ledger_read(struct ni_ledger *c, const struct ni_files *files, unsigned jobs, struct ni_progress *progress) {
  struct ni_scan_plan plan = {0};
  struct ni_ledgers l = {0};
  int e = ni_ledgers_init(&l, c, files);
  if (e == 0) e = ni_scan_plan(&plan, files, true, jobs);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = jobs, .progress = progress, .arg = &l, .part = read_part,
                                             .merge = merge, .file_done = file_done, .drop = ni_ledgers_drop});
  ni_scan_plan_free(&plan);
  ni_ledgers_free(&l);
  return e;
}
