/*
 * All lines of all files, in order: the files of a process as they were written (discover.h), so that what a line means can
 * depend on the lines before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pass.h"
#include "who.h"
#include "exporter/model/ledger/take.h"
#include "exporter/model/ledger/judge.h"

int ni_tr_plan(struct ni_tr *r) {
  r->file = calloc(r->files.n + 1, sizeof *r->file);
  if (!r->file) return -ENOMEM;
  for (size_t i = 0; i < r->files.n; i++) {
    r->file[i] = (struct ni_tr_file){.file = &r->files.file[i], .process = NI_TR_NONE};
    int e = ni_name_of_log(&r->names, r->files.file[i].path, &r->file[i].origin);
    if (e < 0) return e;
  }
  return 0;
}

struct reading {
  struct ni_tr *r;
  bool first;
  int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *);
  struct ni_tr_file *f;
};

static int take_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct reading *x = arg;
  struct ni_tr *r = x->r;
  struct ni_tr_where w = {.file = x->f, .member = NI_TR_NONE, .line_no = line_no,
                          .dump_us = (int64_t)l->meta.dump_timestamp_us};
  int e = x->first ? ni_ledger_take(&r->ledger, l, line_no) : 0;
  if (e == 0) e = ni_tr_find_process(r, x->f, l, &w.process);
  /* Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash. */
  if (e == 0 && (l->ident.comm_hash != 0 || l->kind == NI_LINE_OP)) e = ni_tr_find_member(r, w.process, l, &w.member);
  return e < 0 ? e : x->take(r, &w, l);
}

static int take_fault(void *arg, const struct ni_fault *f) { return ni_ledger_fault(&((struct reading *)arg)->r->ledger, f); }

static int read_file(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p, void **result) {
  struct reading *x = arg;
  struct ni_scan_end end;
  (void)result;
  x->f = &x->r->file[p->file_no];
  x->f->process = NI_TR_NONE;
  to->arg = x;
  to->take = take_line;
  if (x->first) to->fault = take_fault;
  if (x->first) ni_ledger_begin(&x->r->ledger, p->file, true);
  int e = ni_scan_file(scan, p->file->path, NULL, to, &end);
  if (x->first) ni_ledger_end(&x->r->ledger, &end);
  return e;
}

int ni_tr_pass(struct ni_tr *r, bool first,
               int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *)) {
  struct reading x = {.r = r, .first = first, .take = take};
  struct ni_scan_plan plan = {0};
  if (first) ni_ledger_files(&r->ledger, &r->files);
  if (first) ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  int e = ni_scan_plan(&plan, &r->files, false, 1);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = 1, .progress = &r->progress, .arg = &x, .part = read_file,
                                             .phase = first ? "read" : "draw"});
  ni_scan_plan_free(&plan);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
