/*
 * All lines of all files, in order: the files of a process as they were written (discover.h), so that what a
 * line means can depend on the lines before it. Of a log with a map, granules that are not wanted are what
 * their kept lines say (choose.h).
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pass.h"
#include "exporter/base/array.h"
#include "exporter/model/ledger/take.h"
#include "exporter/model/ledger/judge.h"

struct pass_reading {
  struct ni_tr *r;
  bool first;
  int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *);
  const struct ni_file *file;
  uint32_t process; /* of the line before; NI_TR_NONE: there is none */
};

static int find_or_add_host(struct ni_tr *r, const char *name, const char *boot, uint32_t *out) {
  struct ni_tr_host h = {.clock.via = NI_TR_NONE, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
  int e = ni_name(&r->names, &r->cache, name, &h.name);
  if (e == 0)
    e = ni_name(&r->names, &r->cache, boot, &h.boot);
  if (e < 0)
    return e;
  for (*out = 0; *out < r->n_hosts; (*out)++)
    if (r->host[*out].name == h.name && r->host[*out].boot == h.boot)
      return 0;
  if (!ni_array_room(r->host, r->n_hosts, r->cap_hosts))
    return -ENOMEM;
  r->host[r->n_hosts++] = h;
  return 0;
}

/*
 * Lines of a process follow each other, so most lines know it from the line before. Only process lines say
 * when it began.
 */
static int64_t find_or_add_process(struct pass_reading *x, const struct ni_line *l) {
  struct ni_tr *r = x->r;
  bool says = l->kind == NI_LINE_PROCESS;
  if (!says && x->process != NI_TR_NONE) {
    const struct ni_who_process *before = &r->who.process[x->process];
    if (before->pid == l->meta.pid && strcmp(before->host, l->meta.hostname) == 0)
      return x->process;
  }
  int64_t k = ni_who_process_in(&r->who, l->meta.hostname, l->meta.pid, says ? l->process.start_ns : 0,
                                x->file->path);
  if (k < 0 || !x->first || k < r->n_processes)
    return k;
  struct ni_tr_process p = {.rank = -1, .first_unit = NI_TR_NONE, .ours = l->meta.producer != NULL};
  int e = find_or_add_host(r, l->meta.hostname, says ? l->process.boot_id : NULL, &p.host);
  if (e < 0)
    return e;
  if (!ni_array_room(r->process, r->n_processes, r->cap_processes))
    return -ENOMEM;
  r->process[r->n_processes++] = p;
  return k;
}

/* A comm line says which instance of its communicator begins. Other lines belong to the newest instance. */
static int64_t find_or_add_member(struct pass_reading *x, const struct ni_line *l) {
  struct ni_tr *r = x->r;
  uint64_t init_ns = l->kind == NI_LINE_COMM ? l->comm.init_ns : 0;
  /* members alone count here: no communicator's run */
  int64_t k = ni_who_member(&r->who, x->process, 0, &l->ident, init_ns);
  if (k < 0 || !x->first || k < r->n_members)
    return k;
  if (!ni_array_room(r->member, r->n_members, r->cap_members))
    return -ENOMEM;
  uint64_t name = ni_hash(ni_hash(x->process, l->ident.comm_hash), (uint32_t)l->ident.rank);
  int64_t first = ni_map_find_or_add(&r->instances, name, 0, r->n_members);
  if (first < 0)
    return first;
  r->member[r->n_members++] = (struct ni_tr_member){
      .unit = NI_TR_NONE, .gpu = -1, .first = (uint32_t)first, .gpu_offset_ns = NI_NO_OFFSET};
  r->member[k].instance = r->member[first].n_instances++;
  return k;
}

static int read_timeline_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct pass_reading *x = arg;
  struct ni_tr *r = x->r;
  int e = r->pass == NI_TR_ALL ? ni_ledger_take(&r->ledger, l, line_no) : 0;
  int64_t process = e < 0 ? e : find_or_add_process(x, l), member = NI_TR_NONE;
  if (process < 0)
    return (int)process;
  x->process = (uint32_t)process;
  /*
   * Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash.
   */
  bool about_member = l->ident.comm_hash != 0 || l->kind == NI_LINE_OP;
  if (about_member && (member = find_or_add_member(x, l)) < 0)
    return (int)member;
  /* Who came while a log grew between the passes has no unit to be shown in. */
  if (process >= r->n_processes || (about_member && member >= r->n_members))
    return 0;
  struct ni_tr_where w = {x->process, (uint32_t)member, (int64_t)l->meta.dump_timestamp_us};
  return x->take(r, &w, l);
}

static int count_fault(void *arg, const struct ni_fault *f) {
  return ni_ledger_fault(&((struct pass_reading *)arg)->r->ledger, f);
}

/* Sets what a map says of the process: what all its lines would have said. */
static void set_process_from_map(struct ni_tr *r, const struct ni_tr_log *log, uint32_t process) {
  struct ni_tr_process *p = &r->process[process];
  const struct ni_granules *g = log->map;
  if ((int64_t)g->last_dump_us > p->last_us)
    p->last_us = (int64_t)g->last_dump_us;
  p->has_api |= g->api;
  p->has_launches |= g->launches;
  p->has_net |= g->net;
}

/*
 * Introduces who the lines of a granule are about, in the order of their numbers, and asks each filter what
 * their lines would have asked.
 */
static int introduce_granule(struct pass_reading *x, struct ni_tr_log *log, size_t granule) {
  const struct ni_granules *g = log->map;
  const struct ni_granule *at = &g->item[granule];
  const struct ni_words *coll = &x->r->opt.filter.coll;
  for (uint32_t i = 0; i < at->n_sorts; i++) {
    const struct ni_granule_sort *s = &g->sort[g->list[at->first_sort + i]];
    const struct ni_line l = {
        .kind = NI_LINE_OP, .ident = g->context[s->context].ident, .meta = g->context[s->context].meta};
    int64_t process = find_or_add_process(x, &l), member = 0;
    if (process < 0)
      return (int)process;
    x->process = (uint32_t)process;
    set_process_from_map(x->r, log, x->process);
    if ((l.ident.comm_hash || s->kind == NI_SORT_OP) && (member = find_or_add_member(x, &l)) < 0)
      return (int)member;
    if (l.ident.comm_hash || s->kind == NI_SORT_OP)
      log->member[s->context] = (uint32_t)member;
    if (s->kind == NI_SORT_OP && coll->n)
      (void)ni_words_have_func(coll, s->func);
  }
  return 0;
}

static int read_granules(struct pass_reading *x, struct ni_scan *scan, struct ni_scan_to *to,
                         const char *path, size_t from, size_t n) {
  const struct ni_granules *g = x->r->log[x->r->file].map;
  const struct ni_range range = ni_granules_range(g, from, n);
  struct ni_scan_end end;
  bool sound = true;
  int fd = -1;
  for (size_t i = from; sound && i < g->n && g->item[i].at < range.to; i++)
    sound = ni_atlas_is_intact(path, &fd, &g->item[i]);
  if (fd >= 0)
    close(fd);
  if (!sound)
    return ni_tr_fail(
        x->r, -ESTALE,
        "%s: changed while it was read, or after it was indexed without a new ctime; try --reindex", path);
  return ni_scan_file(scan, path, &range, to, &end);
}

static int read_map(struct pass_reading *x, struct ni_scan *scan, struct ni_scan_to *to,
                    const struct ni_file *f) {
  struct ni_tr_log *log = &x->r->log[x->r->file];
  const struct ni_granules *g = log->map;
  int e = 0;
  for (size_t i = 0, n; e == 0 && i < g->n; i = n) {
    n = i + 1;
    while (!x->first && n < g->n && log->wanted[n] == log->wanted[i])
      n++;
    x->r->granule = (uint32_t)i;
    if (!x->first && log->wanted[i])
      e = read_granules(x, scan, to, f->path, i, n);
    else
      e = ni_scan_kept(scan, g, i, n, to);
    if (e == 0 && x->first)
      e = introduce_granule(x, log, i);
  }
  if (!x->first || x->process == NI_TR_NONE || e < 0)
    return e;
  log->process = x->process;
  set_process_from_map(x->r, log, x->process);
  if (g->first_ns < x->r->first_ns)
    x->r->first_ns = g->first_ns;
  if (g->last_ns > x->r->last_ns)
    x->r->last_ns = g->last_ns;
  x->r->count.operations += g->records;
  return 0;
}

static int read_timeline_file(void *arg, struct ni_scan *scan, struct ni_scan_to *to,
                              const struct ni_scan_part *p, void **result) {
  struct pass_reading *x = arg;
  const bool account = x->r->pass == NI_TR_ALL;
  struct ni_scan_end end;
  x->file = p->file;
  x->process = NI_TR_NONE;
  x->r->file = (uint32_t)p->file_no;
  x->r->granule = NI_TR_NONE;
  to->arg = x;
  to->take = read_timeline_line;
  if (x->r->log && x->r->log[p->file_no].map)
    return read_map(x, scan, to, p->file);
  if (account)
    to->fault = count_fault;
  if (account)
    ni_ledger_begin(&x->r->ledger, p->file, true);
  int e = ni_scan_file(scan, p->file->path, NULL, to, &end);
  if (account)
    ni_ledger_end(&x->r->ledger, &end);
  return e;
}

int ni_tr_pass(struct ni_tr *r, enum ni_tr_pass pass,
               int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *)) {
  struct pass_reading x = {.r = r, .first = pass <= NI_TR_WHO, .take = take};
  struct ni_scan_plan plan = {0};
  r->pass = pass;
  if (pass == NI_TR_ALL)
    ni_ledger_files(&r->ledger, &r->files);
  if (x.first)
    ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  else
    ni_who_rewind(&r->who);
  int e = ni_scan_plan(&plan, &r->files, false, 1);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan,
                                             .jobs = 1,
                                             .progress = &r->progress,
                                             .arg = &x,
                                             .part = read_timeline_file,
                                             .phase = pass == NI_TR_DRAW ? "draw" : "read"});
  ni_scan_plan_free(&plan);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
