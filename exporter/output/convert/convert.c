#include "convert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/text/time_text.h"
#include "exporter/input/tags/tags.h"
#include "exporter/model/ledger/implausible.h"
#include "exporter/model/ledger/take.h"
#include "exporter/model/sums/reading/plan.h"
#include "row.h"

static int __attribute__((format(printf, 3, 4))) set_error(struct ni_convert *c, int e, const char *text,
                                                           ...) {
  va_list ap;
  va_start(ap, text);
  if (!*c->error_text)
    vsnprintf(c->error_text, sizeof c->error_text, text, ap);
  va_end(ap);
  return e;
}

/* ---- one log ---- */

struct convert_part {
  struct ni_convert *c;
  const struct ni_file *file;
  struct ni_ledger *ledger;
  struct ni_convert_out out;
  struct ni_convert_counts count;
  struct ni_map first_rank; /* of this process in each communicator */
  int64_t rank;             /* global; NI_NOT_STATED */
  int32_t largest;          /* ranks of the communicator that `rank` is of */
};

/* The process line ends the search; without it the rank in the largest communicator stands. */
static int find_rank(void *arg, struct ni_line *l, uint64_t line_no) {
  struct convert_part *x = arg;
  if (l->kind == NI_LINE_PROCESS && l->process.rank >= 0) {
    x->rank = l->process.rank;
    return -ECANCELED;
  }
  if (l->kind == NI_LINE_OP && l->ident.rank >= 0 && l->ident.n_ranks > x->largest) {
    x->largest = l->ident.n_ranks;
    x->rank = l->ident.rank;
  }
  return 0;
}

static bool is_wanted(const struct ni_convert *c, const struct ni_file *file, const struct ni_line *l,
                      int64_t start_ns) {
  const struct ni_filters *f = &c->filter;
  const int64_t of_job = ni_job_rank(&file->head, l->ident.rank, l->ident.n_ranks);
  const bool comm = !f->comm.n || ni_words_have_comm(&f->comm, l->ident.comm_hash, l->ident.comm_name);
  const bool host = !f->host.n || ni_words_have(&f->host, l->meta.hostname);
  const bool rank = ni_ranks_have_both(&f->rank, &f->job_rank, l->ident.rank, of_job, comm && host);
  const bool coll = !f->coll.n || ni_words_have_func(&f->coll, l->op.func);
  const bool others = comm && host && rank && coll; /* tags that are not met are told of what these leave */
  const bool tag = others && (!f->tag.n || ni_tags_have(&f->tag, l->op.user_tag));
  return tag && start_ns / 1000 >= c->since_us && start_ns / 1000 <= c->until_us;
}

#define STATED(o, flag, value) ((o)->has & (flag) ? (int64_t)(value) : NI_NOT_STATED)

static void fill_row(struct ni_convert_row *r, const struct convert_part *x, const struct ni_line *l,
                     int64_t start_ns) {
  const struct ni_record *o = &l->op;
  char second[32];
  *r = (struct ni_convert_row){.comm_name = l->ident.comm_name,
                               .hostname = l->meta.hostname,
                               .kind = ni_kind_names[l->is_p2p],
                               .coll = o->func,
                               .timing = ni_timing_names[o->timing],
                               .algo = o->algo,
                               .proto = o->proto,
                               .datatype = o->datatype,
                               .producer = l->meta.producer,
                               .comm_hash = l->ident.comm_hash,
                               .sn = o->sn,
                               .msg_bytes = o->msg_bytes,
                               .exec_us = o->exec_us,
                               .exec_ns = STATED(o, NI_HAS_EXEC_NS, o->exec_ns),
                               .rank = l->ident.rank,
                               .n_ranks = l->ident.n_ranks,
                               .nnodes = l->ident.nnodes > 0 ? l->ident.nnodes : NI_NOT_STATED,
                               .pid = l->meta.pid,
                               .global_rank = x->rank,
                               .root = l->is_p2p ? o->root : STATED(o, NI_HAS_ROOT, o->root),
                               .nchannels = STATED(o, NI_HAS_NCHANNELS, o->nchannels),
                               .start_ns = start_ns,
                               .enqueue_ns = STATED(o, NI_HAS_ENQUEUE, o->enqueue_ns),
                               .gpu_delta_ns = STATED(o, NI_HAS_GPU_DELTA, o->gpu_start_delta_ns),
                               .rec_sn = STATED(o, NI_HAS_REC_SN, o->rec_sn),
                               .tests_bytes = STATED(o, NI_HAS_TESTS_SIZE, o->tests_bytes),
                               .dump_us = (int64_t)l->meta.dump_timestamp_us,
                               .algobw = o->has & NI_HAS_ALGOBW ? o->algobw_gbs : NAN,
                               .busbw = o->has & NI_HAS_BUSBW ? o->busbw_gbs : NAN,
                               .user_tag = o->user_tag ? (int64_t)o->user_tag : NI_NOT_STATED,
                               .nccl_tag = o->nccl_tag ? (int64_t)o->nccl_tag : NI_NOT_STATED,
                               .symmetric = o->symmetric,
                               .kernel = o->kernel,
                               .shared_span = o->shared_span,
                               .initial_sync_ns = STATED(o, NI_HAS_PHASES, o->initial_sync_ns),
                               .compute_ns = STATED(o, NI_HAS_PHASES, o->compute_ns),
                               .final_sync_ns = STATED(o, NI_HAS_PHASES, o->final_sync_ns),
                               .prev_replay_ns = STATED(o, NI_HAS_PREV_REPLAY, o->prev_replay_ns)};
  snprintf(r->id, sizeof r->id, "0x%llx", (unsigned long long)r->comm_hash);
  snprintf(r->timestamp, sizeof r->timestamp, "%s.%09uZ",
           ni_second_text(start_ns / 1000000000, 'T', false, second), (unsigned)(start_ns % 1000000000));
}

/*
 * Which row of a timeline the record is on. A process that drives several GPUs has one for each of their
 * ranks.
 */
static int find_lane(struct convert_part *x, struct ni_convert_row *r) {
  const int64_t first = ni_map_find_or_add(&x->first_rank, r->comm_hash, 0, (uint32_t)r->rank),
                n = r->n_ranks > 0 ? r->n_ranks : 1;
  if (first < 0)
    return -ENOMEM;
  r->unit = x->rank != NI_NOT_STATED ? x->rank : r->pid;
  r->lane = r->unit + ((r->rank - first) % n + n) % n;
  return 0;
}

static int convert_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct convert_part *x = arg;
  struct ni_convert_row r;
  int e = ni_ledger_take(x->ledger, l, line_no);
  if (e < 0 || l->kind != NI_LINE_OP || l->ident.rank < 0)
    return e;
  x->count.records++;
  int64_t start = ni_start_ns(l);
  const bool no_start = start == NI_NO_START || start < 0;
  if (no_start)
    start = ni_time_ns(NI_NO_START, l->meta.dump_timestamp_us);
  if (!is_wanted(x->c, x->file, l, start)) {
    x->count.filtered++;
    return 0;
  }
  if (ni_implausible(&l->op) != NI_PLAUSIBLE) {
    x->count.no_duration++;
    return 0;
  }
  x->count.no_start += no_start;
  x->count.written++;
  fill_row(&r, x, l, start);
  if ((e = find_lane(x, &r)) < 0)
    return e;
  return x->c->bulk ? ni_bulk_row(&x->out, &r) : ni_pfw_row(&x->out, &r);
}

static int note_fault(void *arg, const struct ni_fault *f) {
  return ni_ledger_fault(((struct convert_part *)arg)->ledger, f);
}

static bool is_gz(const char *name) {
  size_t n = strlen(name);
  return n > 3 && strcmp(name + n - 3, ".gz") == 0;
}

static int read_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                     void **result) {
  struct ni_convert *c = arg;
  struct ni_convert_file *f = &c->of_file[p->file_no];
  struct ni_scan_end end;
  struct convert_part x = {
      .c = c, .file = p->file, .rank = NI_NOT_STATED, .ledger = calloc(1, sizeof *x.ledger)};
  *result = x.ledger;
  int e = x.ledger ? ni_out_begin(&f->out, c->dir, 0666) : -ENOMEM;
  if (e < 0)
    return e;
  to->arg = &x;
  to->take = find_rank;
  e = ni_scan_file(scan, p->file->path, NULL, to, NULL);
  to->take = convert_line;
  to->fault = note_fault;
  x.out = (struct ni_convert_out){.fd = f->out.fd, .gzip = !c->bulk || is_gz(c->name)};
  ni_ledger_begin(x.ledger, p->file, true);
  if (e == 0 || e == -ECANCELED)
    e = ni_scan_file(scan, p->file->path, NULL, to, &end);
  else
    end = (struct ni_scan_end){.error = e};
  ni_ledger_end(x.ledger, &end);
  e = ni_convert_end(&x.out, e);
  ni_map_free(&x.first_rank);
  close(f->out.fd); /* as many as there are logs may wait for their turn */
  f->out.fd = -1;
  f->written = x.count.written;
  /* Others add theirs at the same time; relaxed: read when all threads have ended. */
  for (size_t i = 0; i < sizeof x.count.all / sizeof *x.count.all; i++)
    __atomic_fetch_add(&c->count.all[i], x.count.all[i], __ATOMIC_RELAXED);
  return e;
}

/* ---- all of them, in order ---- */

static int append_file(struct ni_convert *c, struct ni_out_file *to, struct ni_out_file *from) {
  int e = ni_copy_file(c->dir, from->tmp, c->dir, to->tmp, O_APPEND);
  ni_out_drop(from);
  return e;
}

static int merge_ledger(void *arg, const struct ni_scan_part *p, void *ledger) {
  struct ni_convert *c = arg;
  return ni_ledgers_merge(&c->ledgers, p->file_no, ledger);
}

static int finish_file(void *arg, size_t i) {
  struct ni_convert *c = arg;
  int e = 0;
  if (i > 0 && (c->bulk || ni_same_stem(c->files.file[c->head].path, c->files.file[i].path))) {
    e = append_file(c, &c->of_file[c->head].out, &c->of_file[i].out);
    c->of_file[c->head].written += c->of_file[i].written;
  } else
    c->head = i;
  return e < 0 ? e : ni_ledgers_file_done(&c->ledgers, i);
}

static bool is_stopped(void *arg) {
  const struct ni_convert *c = arg;
  return c->stop && *c->stop;
}

/* "<log without its last suffixes>.pfw.gz"; logs of one name in several folders get -2, -3, ... */
static int choose_pfw_name(struct ni_convert *c, size_t i) {
  char name[300];
  const char *path = c->files.file[i].path, *base = ni_path_name(path);
  const size_t n = ni_log_stem(path, NULL) - (size_t)(base - path);
  int e = -EEXIST;
  for (unsigned k = 1; e == -EEXIST && k < 100000; k++) {
    snprintf(name, sizeof name, k == 1 ? "%.*s.pfw.gz" : "%.*s-%u.pfw.gz", (int)(n < 240 ? n : 240), base, k);
    e = ni_out_commit(&c->of_file[i].out, name, false);
  }
  return e;
}

static int place_files(struct ni_convert *c) {
  struct ni_out_file template = {0};
  char name[300];
  int e = 0;
  for (size_t i = 0; e == 0 && !c->bulk && i < c->files.n; i++) {
    if (!*c->of_file[i].out.tmp || c->of_file[i].written == 0)
      continue;
    e = choose_pfw_name(c, i);
    c->count.files++;
  }
  if (!c->bulk)
    return e;
  snprintf(name, sizeof name, "%.200s-template.json", c->name);
  e = ni_out_begin(&template, c->dir, 0666);
  if (e < 0)
    return e;
  FILE *f = fdopen(template.fd, "w");
  if (!f)
    e = -errno;
  else {
    template.fd = -1;
    ni_bulk_template(f);
    e = ni_out_end(f);
  }
  if (e == 0)
    e = ni_out_commit(&template, name, true);
  if (e == 0)
    e = ni_out_commit(&c->of_file[0].out, c->name, true);
  ni_out_drop(&template);
  return e;
}

/* Another program reads all that is in the folder, so nothing else may be there. */
static int open_folder(struct ni_convert *c) {
  char why[400] = "";
  c->dir = ni_out_dir(c->pfw, true, why, sizeof why);
  if (c->dir < 0)
    return set_error(c, c->dir, "%s: %s", c->pfw, why);
  const int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  bool full = false;
  for (const struct dirent *entry; d && !full && (entry = readdir(d));)
    full = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  if (d)
    closedir(d);
  else if (fd >= 0)
    close(fd);
  if (full)
    return set_error(c, -EEXIST, "%s: not empty; dfanalyzer would read what is there, too. Give a new folder",
                     c->pfw);
  return 0;
}

static int open_file(struct ni_convert *c) {
  char why[400] = "";
  struct ni_out_file probe = {0};
  int e = ni_out_begin_at(&probe, c->bulk, &c->name, why, sizeof why);
  c->dir = probe.dir;
  ni_out_drop(&probe);
  return e < 0 ? set_error(c, e, "%s: %s", c->bulk, why) : 0;
}

int ni_convert_all(struct ni_convert *c) {
  int64_t first = 0, last = 0;
  const char *to = c->bulk ? c->bulk : c->pfw;
  c->of_file = calloc(c->files.n + 1, sizeof *c->of_file);
  int e = c->of_file ? ni_scan_plan(&c->plan, &c->files, false, c->jobs) : -ENOMEM;
  const bool relative = ni_filters_relative(&c->filter);
  if (e == 0 && relative)
    e = ni_record_times(&c->plan, c->jobs, is_stopped, c, &first, &last);
  if (e == 0)
    e = ni_tags_resolve_by(&c->filter.tag, &c->plan, c->jobs, is_stopped, c);
  c->since_us = ni_when_resolve(&c->filter.since, INT64_MIN, first, last);
  c->until_us = ni_when_resolve(&c->filter.until, INT64_MAX, first, last);
  if (e == 0 && c->since_us > c->until_us)
    return set_error(c, -EINVAL, "%s", NI_WHEN_REVERSED);
  if (e == 0)
    e = c->bulk ? open_file(c) : open_folder(c);
  if (e == 0)
    e = ni_ledgers_init(&c->ledgers, &c->ledger, &c->files);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &c->plan,
                                             .jobs = c->jobs,
                                             .progress = &c->progress,
                                             .arg = c,
                                             .part = read_part,
                                             .merge = merge_ledger,
                                             .file_done = finish_file,
                                             .drop = ni_ledgers_drop,
                                             .stop = is_stopped});
  if (e == 0 && is_stopped(c))
    return set_error(c, -EINTR, "stopped by signal %d; nothing was written", (int)*c->stop);
  if (e == 0 && c->count.written == 0)
    return set_error(
        c, -ENODATA,
        "nothing to write: %llu records read, %llu left out by the options, %llu without a sound duration",
        (unsigned long long)c->count.records, (unsigned long long)c->count.filtered,
        (unsigned long long)c->count.no_duration);
  if (e == 0)
    e = place_files(c);
  return e < 0 ? set_error(c, e, "%s: %s", to, strerror(-e)) : 0;
}

void ni_convert_free(struct ni_convert *c) {
  for (size_t i = 0; c->of_file && i < c->files.n; i++)
    ni_out_drop(&c->of_file[i].out);
  free(c->of_file);
  if (c->dir > 0)
    close(c->dir);
  ni_scan_plan_free(&c->plan);
  ni_ledgers_free(&c->ledgers);
  ni_filters_free(&c->filter);
  ni_inputs_free(&c->inputs);
  ni_files_free(&c->files);
  ni_ledger_free(&c->ledger);
}
