/*
 * All lines of all files, in order: the files of a process as they were written (discover.h), so that what a line means can
 * depend on the lines before it.
 */
#include <errno.h>
#include <string.h>

#include "pass.h"
#include "exporter/base/array.h"
#include "exporter/model/ledger/take.h"
#include "exporter/model/ledger/judge.h"

struct reading {
  struct ni_tr *r;
  bool first;
  int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *);
  const struct ni_file *file;
  uint32_t process;            /* of the line before; NI_TR_NONE: there is none */
};

static int find_host(struct ni_tr *r, const char *name, const char *boot, uint32_t *out) {
  struct ni_tr_host h = {.via = NI_TR_NONE, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
  int e = ni_name(&r->names, &r->cache, name, &h.name);
  if (e == 0) e = ni_name(&r->names, &r->cache, boot, &h.boot);
  if (e < 0) return e;
  for (*out = 0; *out < r->n_hosts; (*out)++)
    if (r->host[*out].name == h.name && r->host[*out].boot == h.boot) return 0;
  if (!ni_array_room(r->host, r->n_hosts, r->cap_hosts)) return -ENOMEM;
  r->host[r->n_hosts++] = h;
  return 0;
}

/* Its lines follow each other, so most know it from the line before; only process lines say when it began. */
static int64_t find_process(struct reading *x, const struct ni_line *l) {
  struct ni_tr *r = x->r;
  bool says = l->kind == NI_LINE_PROCESS;
  if (!says && x->process != NI_TR_NONE) {
    const struct ni_who_process *before = &r->who.process[x->process];
    if (before->pid == l->meta.pid && strcmp(before->host, l->meta.hostname) == 0) return x->process;
  }
  int64_t k = ni_who_process_in(&r->who, l->meta.hostname, l->meta.pid, says ? l->process.start_ns : 0, x->file->path);
  if (k < 0 || !x->first || k < r->n_processes) return k;
  struct ni_tr_process p = {.rank = -1, .first_unit = NI_TR_NONE, .ours = l->meta.producer != NULL};
  int e = find_host(r, l->meta.hostname, says ? l->process.boot_id : NULL, &p.host);
  if (e < 0) return e;
  if (!ni_array_room(r->process, r->n_processes, r->cap_processes)) return -ENOMEM;
  r->process[r->n_processes++] = p;
  return k;
}

/* A comm line says which instance of its communicator begins; other lines belong to the newest. */
static int64_t find_member(struct reading *x, const struct ni_line *l) {
  struct ni_tr *r = x->r;
  uint64_t init_ns = l->kind == NI_LINE_COMM ? l->comm.init_ns : 0;
  int64_t k = ni_who_member(&r->who, x->process, 0, &l->ident, init_ns); /* members alone count here: no communicator's run */
  if (k < 0 || !x->first || k < r->n_members) return k;
  if (!ni_array_room(r->member, r->n_members, r->cap_members)) return -ENOMEM;
  uint64_t name = ni_hash(ni_hash(x->process, l->ident.comm_hash), (uint32_t)l->ident.rank);
  int64_t first = ni_map_find(&r->instances, name, 0, r->n_members);
  if (first < 0) return first;
  r->member[r->n_members++] = (struct ni_tr_member){.unit = NI_TR_NONE, .gpu = -1, .first = (uint32_t)first,
                                                    .gpu_offset_ns = NI_NO_OFFSET};
  r->member[k].instance = r->member[first].n_instances++;
  return k;
}

static int take_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct reading *x = arg;
  struct ni_tr *r = x->r;
  int e = x->first ? ni_ledger_take(&r->ledger, l, line_no) : 0;
  int64_t process = e < 0 ? e : find_process(x, l), member = NI_TR_NONE;
  if (process < 0) return (int)process;
  x->process = (uint32_t)process;
  /* Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash. */
  bool about_member = l->ident.comm_hash != 0 || l->kind == NI_LINE_OP;
  if (about_member && (member = find_member(x, l)) < 0) return (int)member;
  /* Who came while a log grew between the passes has no unit to be shown in. */
  if (process >= r->n_processes || (about_member && member >= r->n_members)) return 0;
  struct ni_tr_where w = {x->process, (uint32_t)member, (int64_t)l->meta.dump_timestamp_us};
  return x->take(r, &w, l);
}

static int take_fault(void *arg, const struct ni_fault *f) { return ni_ledger_fault(&((struct reading *)arg)->r->ledger, f); }

static int read_file(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p, void **result) {
  struct reading *x = arg;
  struct ni_scan_end end;
  (void)result;
  x->file = p->file;
  x->process = NI_TR_NONE;
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
  else ni_who_rewind(&r->who);
  int e = ni_scan_plan(&plan, &r->files, false, 1);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = 1, .progress = &r->progress, .arg = &x, .part = read_file,
                                             .phase = first ? "read" : "draw"});
  ni_scan_plan_free(&plan);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
