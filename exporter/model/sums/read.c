/*
 * The read phase: every thread takes the next range, reads its lines, parses them, and puts each operation into the
 * batch for Parquet and into the segment of its rank and cell. What is rare (a new communicator, a control line) takes
 * the run's lock; what happens for every record does not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/input/expiry.h"
#include "exporter/input/sampling.h"
#include "reading.h"

static bool wanted_context(const struct ni_run *r, const struct ni_line *l) {
  const struct ni_sum_options *o = &r->opt;
  char text[24];
  if (o->comm.n) {
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)l->ident.comm_hash);
    if (!ni_words_have(&o->comm, text) && !(l->ident.comm_name && ni_words_have(&o->comm, l->ident.comm_name)))
      return false;
  }
  if (o->host.n && !ni_words_have(&o->host, l->meta.hostname)) return false;
  return !o->rank.n || ni_ranks_have(&o->rank, l->ident.rank);
}

static bool same_text(const struct ni_run *r, uint32_t code, const char *text) {
  return strcmp(ni_name_text(&r->names, code), text ? text : "") == 0;
}

/* The numbers of a line's header and metadata. */
static int find_context(struct ni_reading *x, const struct ni_line *l, struct ni_seen_context **out) {
  struct ni_run *r = x->r;
  const struct ni_ident *id = &l->ident;
  const struct ni_meta *m = &l->meta;
  struct ni_seen_context *s = x->last;
  for (int again = 0; again < 2; again++) {
    if (s && s->used && s->hash == id->comm_hash && s->rank == id->rank && s->n_ranks == id->n_ranks &&
        s->nnodes == id->nnodes && s->pid == m->pid && s->start_ns == x->start_ns && s->job == x->job &&
        same_text(r, s->host, m->hostname) && same_text(r, s->c.name, id->comm_name) &&
        same_text(r, s->c.version, m->version) && same_text(r, s->c.git_rev, m->git_rev) &&
        same_text(r, s->c.mechanism, m->rec_mechanism) && same_text(r, s->c.producer, m->producer)) {
      x->last = *out = s;
      return 0;
    }
    s = &x->seen[(id->comm_hash * 0x9e3779b97f4a7c15ULL ^ (uint64_t)(uint32_t)id->rank * 0x85ebca6bULL) >> 32 &
                 (CONTEXT_SLOTS - 1)];
  }
  struct ni_seen_context n = {.used = true,
                              .job = x->job,
                              .hash = id->comm_hash,
                              .start_ns = x->start_ns,
                              .pid = m->pid,
                              .rank = id->rank,
                              .n_ranks = id->n_ranks,
                              .nnodes = id->nnodes};
  int e = 0;
  if (e == 0) e = ni_name(&r->names, &x->names, m->hostname, &n.host);
  if (e == 0) e = ni_name(&r->names, &x->names, id->comm_name, &n.c.name);
  if (e == 0) e = ni_name(&r->names, &x->names, m->version, &n.c.version);
  if (e == 0) e = ni_name(&r->names, &x->names, m->git_rev, &n.c.git_rev);
  if (e == 0) e = ni_name(&r->names, &x->names, m->rec_mechanism, &n.c.mechanism);
  if (e == 0) e = ni_name(&r->names, &x->names, m->producer, &n.c.producer);
  if (e == 0) e = ni_find_process(r, n.host, m->pid, x->start_ns, x->f->origin, (uint32_t)x->file_no, &n.process);
  if (e == 0) e = ni_find_member(r, n.process, x->job, id, n.c.name, &n.c.member);
  if (e == 0) e = ni_find_context(r, &n.c, &n.code);
  if (e < 0) return e;
  n.wanted = wanted_context(r, l);
  if (m->version[0] == 'v' && m->version[1] == '4' && m->version[2] == '.' && m->version[3] >= '0' &&
      m->version[3] <= '9')
    x->t.versions |= 1u << (m->version[3] - '0');
  if (m->producer && *m->producer) x->t.versions |= 1u << 31;
  *s = n;
  x->last = *out = s;
  return 0;
}

int64_t ni_start_ns(const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  if ((o->has & NI_HAS_ENQUEUE) && (o->has & NI_HAS_GPU_DELTA)) {
    int64_t t;
    if (!__builtin_add_overflow((int64_t)o->enqueue_ns, o->gpu_start_delta_ns, &t)) return t;
  }
  if (o->has & NI_HAS_ENQUEUE) return o->timing == NI_TIMING_KERNEL_GPU ? NI_NO_START : (int64_t)o->enqueue_ns;
  uint64_t first = 0;
  if (l->trace && l->trace->has_ts)
    for (uint32_t i = 0; i < l->trace->n; i++)
      if (l->trace->event[i].start_us && (!first || l->trace->event[i].start_us < first))
        first = l->trace->event[i].start_us;
  return first && first < INT64_MAX / 1000 ? (int64_t)first * 1000 : NI_NO_START;
}

/* What no GPU or link can have done is told, and stays out of every mean. */
static bool plausible(struct ni_reading *x, const struct ni_record *o, uint64_t exec_ns) {
  if (exec_ns == 0) x->t.zero_time++;
  else if (exec_ns > NI_SUM_MAX_EXEC_NS) x->t.long_time++;
  else if ((o->has & NI_HAS_BUSBW) && o->busbw_gbs > NI_SUM_MAX_GBS) x->t.no_link++;
  else if ((o->has & NI_HAS_BUSBW) && o->busbw_gbs < 0) x->t.negative++;
  else return true;
  return false;
}

static int flush_batch(struct ni_reading *x) {
  int e =
      x->sorter && x->batch->n ? ni_sorter_add(x->sorter, x->batch, (uint32_t)x->file_no, (uint32_t)x->range_no) : 0;
  if (e < 0) return e;
  return x->batch->n ? ni_parquet_append(x->r, x->f, x->range_no, &x->batch) : 0;
}

/* Of a record that is in no statistics only the number. */
static int follow_alone(struct ni_reading *x, const struct ni_line *l, const struct ni_seen_context *c, uint32_t func) {
  bool rec_sn = (l->op.has & NI_HAS_REC_SN) != 0;
  struct ni_seq *q;
  int e = ni_find_seq(x, c->c.member, func, l->is_p2p, rec_sn, &q);
  return e < 0 ? e : ni_follow(q, rec_sn ? l->op.rec_sn : l->op.sn);
}

static int take_operation(struct ni_reading *x, const struct ni_line *l, const struct ni_seen_context *c) {
  struct ni_run *r = x->r;
  const struct ni_record *o = &l->op;
  uint32_t func, algo = 0, proto = 0, datatype = 0;
  struct ni_stream *s;
  /* A collective without a Coll event has a number of its own kind, and the time of its call: a function by itself. */
  char marked[64];
  const char *name = o->func;
  if (o->src != NI_SRC_EVENT) {
    snprintf(marked, sizeof marked, "%.40s (%s)", o->func, ni_src_names[o->src]);
    name = marked;
  }
  int e = ni_name(&r->names, &x->names, name, &func);
  if (e == 0 && o->algo) e = ni_name(&r->names, &x->names, o->algo, &algo);
  if (e == 0 && o->proto) e = ni_name(&r->names, &x->names, o->proto, &proto);
  if (e == 0 && o->datatype) e = ni_name(&r->names, &x->names, o->datatype, &datatype);
  if (e < 0) return e;
  x->t.records++;
  int64_t start = ni_start_ns(l);
  uint64_t exec_ns = o->has & NI_HAS_EXEC_NS          ? o->exec_ns
                     : o->exec_us > UINT64_MAX / 1000 ? UINT64_MAX
                                                      : o->exec_us * 1000;
  int64_t time_us = start != NI_NO_START ? start / 1000 : (int64_t)l->meta.dump_timestamp_us;
  bool take = c->wanted && (!r->opt.coll.n || ni_words_have(&r->opt.coll, o->func)) && time_us >= r->since_us &&
              time_us <= r->until_us && !(r->opt.compat && (l->is_p2p || o->src != NI_SRC_EVENT));
  /* The numbers are followed before filters and limits: a record that is there is not lost. */
  if (!take) {
    x->t.filtered++;
    return follow_alone(x, l, c, func);
  }
  ni_batch_add(x->batch, &x->words, l, c->code, func, algo, proto, datatype);
  if (x->batch->n == NI_BATCH_ROWS && (e = flush_batch(x)) < 0) return e;
  if (!plausible(x, o, exec_ns)) return follow_alone(x, l, c, func);
  if ((e = ni_find_stream(x, c, l, func, &s)) < 0) return e;
  if ((e = ni_follow(s->seq, s->seq && s->seq->func == 0 ? o->rec_sn : o->sn)) < 0) return e;
  if (algo != x->mix_algo || proto != x->mix_proto) {
    if ((e = ni_find_mix(r, algo, proto, &x->mix)) < 0) return e;
    x->mix_algo = algo;
    x->mix_proto = proto;
  }
  struct ni_entry n = {.sn = o->sn, .exec_ns = exec_ns, .bytes_per_s = NI_NO_BW, .dump_us = l->meta.dump_timestamp_us,
                       .start_ns = start, .peer = l->is_p2p ? o->root : 0, .timing = (uint8_t)o->timing, .mix = x->mix};
  if (o->has & NI_HAS_BUSBW) n.bytes_per_s = (uint64_t)llround(o->busbw_gbs * 1e9);
  else x->t.no_bandwidth++;
  if (!x->t.any || time_us < x->t.first_us) x->t.first_us = time_us;
  int64_t end_us = start != NI_NO_START ? (start + (int64_t)exec_ns) / 1000 : time_us;
  if (!x->t.any || end_us > x->t.last_us) x->t.last_us = end_us;
  x->t.any = true;
  if (start == NI_NO_START) x->t.no_start = true;
  return ni_segment_add(&s->piece->s, &r->store, &n);
}

static void close_marker(struct ni_reading *x) {
  if (x->in_marker && x->announced != x->followed) {
    pthread_mutex_lock(&x->r->lock);
    x->r->marker_surplus += x->announced > x->followed ? x->announced - x->followed : x->followed - x->announced;
    pthread_mutex_unlock(&x->r->lock);
  }
  x->in_marker = false;
}

static void note_sampling(struct ni_sum_process *p, const struct ni_line *l) {
  uint64_t n = ni_sampling_of(l);
  if (n > 1 && n > p->sample) p->sample = n;
}

static int take_process(struct ni_reading *x, const struct ni_line *l) {
  struct ni_run *r = x->r;
  const struct ni_process_line *p = &l->process;
  uint32_t host, job_code, exe, producer, process;
  int e = ni_name(&r->names, &x->names, l->meta.hostname, &host);
  if (e == 0) e = ni_name(&r->names, &x->names, ni_job_id(p), &job_code);
  if (e == 0) e = ni_name(&r->names, &x->names, p->exe, &exe);
  if (e == 0) e = ni_name(&r->names, &x->names, l->meta.producer, &producer);
  if (e == 0) e = ni_find_process(r, host, l->meta.pid, p->start_ns, x->f->origin, (uint32_t)x->file_no, &process);
  if (e < 0) return e;
  x->start_ns = p->start_ns;
  x->job = job_code;
  pthread_mutex_lock(&r->lock);
  struct ni_sum_process *s = &r->process[process];
  s->rank = p->rank;
  s->world_size = p->world_size;
  s->nccl_version = p->nccl_version;
  s->job = job_code;
  s->exe = exe;
  s->producer = producer;
  s->limits |= ni_expiry_limits(p);
  note_sampling(s, l);
  s->has_line = true;
  pthread_mutex_unlock(&r->lock);
  return 0;
}

/* Beside its process line: what befell whole files and communicators, and changes of what is recorded. */
static int take_of_process(struct ni_reading *x, const struct ni_line *l) {
  struct ni_run *r = x->r;
  uint32_t host, process;
  int e = ni_name(&r->names, &x->names, l->meta.hostname, &host);
  if (e == 0) e = ni_find_process(r, host, l->meta.pid, x->start_ns, x->f->origin, (uint32_t)x->file_no, &process);
  if (e < 0 || l->kind == NI_LINE_DUMP_STATS) return e < 0 ? e : ni_take_process_told(r, process, l);
  pthread_mutex_lock(&r->lock);
  note_sampling(&r->process[process], l);
  pthread_mutex_unlock(&r->lock);
  return 0;
}

static int take_line(struct ni_reading *x, struct ni_line *l) {
  struct ni_seen_context *c;
  if (!l->has_header) {
    if (l->kind == NI_LINE_PROXY) x->t.proxy++;
    if (!x->in_marker) {
      x->t.orphans++;
      return 0;
    }
    x->followed++;
    if (l->kind != NI_LINE_OP) return 0;
    l->meta = x->marker_meta;
    return take_operation(x, l, &x->marker);
  }
  if (l->kind == NI_LINE_OP) {
    int e = find_context(x, l, &c);
    return e < 0 ? e : take_operation(x, l, c);
  }
  x->t.control++;
  if (l->kind == NI_LINE_PROCESS) return take_process(x, l);
  if (l->kind == NI_LINE_PROXY) x->t.proxy++;
  if (l->kind == NI_LINE_UNKNOWN) x->t.unknown++;
  if (l->kind == NI_LINE_CONTROL) return take_of_process(x, l);
  if (l->kind != NI_LINE_DUMP_STATS && l->kind != NI_LINE_COMM && l->kind != NI_LINE_ROLLUP) return 0;
  if (l->kind == NI_LINE_DUMP_STATS && l->ident.comm_hash == 0 && l->stats.has_accounting)
    return take_of_process(x, l);
  if (l->ident.rank < 0 || l->ident.comm_hash == 0) return 0;
  int e = find_context(x, l, &c);
  if (e < 0) return e;
  if (l->kind == NI_LINE_ROLLUP) {
    uint32_t func;
    if (!c->wanted || (x->r->opt.coll.n && !ni_words_have(&x->r->opt.coll, l->rollup.func))) return 0;
    e = ni_name(&x->r->names, &x->names, l->rollup.func, &func);
    return e < 0 ? e : ni_take_rollup(x->r, c->c.member, func, &l->rollup);
  }
  if (l->kind == NI_LINE_COMM) {
    if (l->comm.gpu_index < 0) return 0;
    pthread_mutex_lock(&x->r->lock);
    x->r->process[c->process].gpu = l->comm.gpu_index;
    pthread_mutex_unlock(&x->r->lock);
    return 0;
  }
  if (!l->stats.has_accounting) {
    close_marker(x);
    const char *v = l->meta.version;
    if (strcmp(v, "v4.0") != 0 && strcmp(v, "v4.1") != 0 && strcmp(v, "v4.2") != 0) {
      x->in_marker = true;
      x->marker = *c;
      /* Only the time is read of it later; texts of the line are gone by then. */
      x->marker_meta = (struct ni_meta){.version = "", .git_rev = "", .rec_mechanism = "", .hostname = "",
                                        .dump_timestamp_us = l->meta.dump_timestamp_us, .pid = l->meta.pid};
      x->announced = l->stats.records[0] + l->stats.records[1] + l->stats.proxy_records;
      x->followed = 0;
    }
  }
  return ni_take_told(x->r, c->c.member, l);
}

static void bad_line(struct ni_reading *x, enum ni_reject why, uint64_t line, const char *key) {
  x->t.bad++;
  x->t.reason[why]++;
  if (x->range->n_bad == NI_SUM_WHERES) return;
  struct ni_bad_line *b = &x->range->bad[x->range->n_bad++];
  b->line = line;
  b->reason = (uint8_t)why;
  b->key = key ? strdup(key) : NULL;
}

static int read_lines(struct ni_reading *x) {
  struct ni_reader_options opt = {.from = x->range->at.from, .to = x->range->at.to};
  struct ni_reader *reader = NULL;
  struct ni_text text;
  struct ni_line line;
  int e = ni_reader_open(&reader, x->f->file->path, &opt), got;
  if (e < 0) {
    x->range->error = e;
    return 0;
  }
  unsigned since = 0;
  while ((got = ni_reader_next(reader, &text)) > 0) {
    if (++since >= 4096) {
      since = 0;
      if (ni_run_stopped(x->r)) break;
    }
    enum ni_reject why =
        text.too_long ? NI_REJ_TOO_LONG : ni_parse_line(x->parser, text.text, text.len, text.room, &line);
    if (why == NI_OK) e = take_line(x, &line);
    else if (why == NI_REJ_NO_MEMORY) e = -ENOMEM;
    else if (text.unterminated && why != NI_REJ_BLANK) x->range->cut_line = !ni_reader_stats(reader)->cut;
    else bad_line(x, why, text.line_no, why == NI_REJ_TOO_LONG ? NULL : line.bad_key);
    if (e < 0) break;
  }
  if (got < 0) x->range->error = got;
  x->range->stats = *ni_reader_stats(reader);
  x->range->lines = x->range->stats.lines;
  x->t.lines += x->range->stats.lines;
  ni_reader_close(reader);
  close_marker(x);
  return e;
}

static int read_range(struct ni_reading *x) {
  x->range = &x->f->range[x->range_no];
  x->start_ns = x->f->start_ns;
  x->job = x->f->job;
  x->in_marker = false;
  x->ordinal = 0;
  x->last = NULL;
  memset(x->seen, 0, sizeof x->seen);
  int e = read_lines(x), e2;
  if (e == 0 && !ni_run_stopped(x->r)) e = flush_batch(x);
  e2 = ni_hand_over(x);
  if (e == 0) e = e2;
  if (e < 0) ni_run_fail(x->r, e, "%s: %s", x->f->file->path, strerror(-e));
  e2 = ni_parquet_range_done(x->r, x->f, x->range_no);
  return e < 0 ? e : e2;
}

static void add_up(struct ni_run *r, const struct ni_tally_sum *t) {
  struct ni_tally_sum *s = &r->tally;
  pthread_mutex_lock(&r->lock);
  for (unsigned i = 0; i < sizeof s->count / sizeof *s->count; i++) s->count[i] += t->count[i];
  if (t->any && (!s->any || t->first_us < s->first_us)) s->first_us = t->first_us;
  if (t->any && (!s->any || t->last_us > s->last_us)) s->last_us = t->last_us;
  s->any = s->any || t->any;
  s->no_start = s->no_start || t->no_start;
  s->versions |= t->versions;
  pthread_mutex_unlock(&r->lock);
}

/* One range more is read. Under the lock, so that what is shown only grows. */
static void progress(struct ni_run *r, size_t all) {
  pthread_mutex_lock(&r->lock);
  size_t done = ++r->ranges_done;
  if (r->opt.progress_json)
    ni_say(stderr, "{\"phase\":\"read\",\"ranges_done\":%zu,\"ranges\":%zu}\n", done, all);
  else if (!r->opt.quiet && isatty(2))
    ni_say(stderr, done == all ? "\rreading: %zu of %zu parts\n" : "\rreading: %zu of %zu parts", done, all);
  pthread_mutex_unlock(&r->lock);
}

/*
 * The next range for this thread: of its own file; else of a file that nobody reads; else of the one with most left.
 * Ranges that are read ahead of their turn fill memory until it comes, so threads keep to files of their own as long as
 * there are enough. The ranges of a file are begun in order. false: none left.
 */
static bool take_range(struct ni_reading *x) {
  struct ni_run *r = x->r;
  struct ni_sum_file *most = NULL;
  pthread_mutex_lock(&r->lock);
  if (x->f && x->f->begun < x->f->n_ranges) most = x->f;
  for (; !most && r->next_file < r->files.n; r->next_file++)
    if (r->file[r->next_file].begun < r->file[r->next_file].n_ranges) most = &r->file[r->next_file];
  for (size_t i = 0, none = !most; none && i < r->files.n; i++) {
    struct ni_sum_file *f = &r->file[i];
    if (f->begun < f->n_ranges && (!most || f->n_ranges - f->begun > most->n_ranges - most->begun)) most = f;
  }
  if (most) {
    x->f = most;
    x->file_no = (int)(most - r->file);
    x->range_no = most->begun++;
  }
  pthread_mutex_unlock(&r->lock);
  return most != NULL;
}

static void *work(void *arg) {
  struct ni_run *r = arg;
  struct ni_reading *x = calloc(1, sizeof *x);
  size_t n_ranges = 0;
  for (size_t i = 0; i < r->files.n; i++) n_ranges += (size_t)r->file[i].n_ranges;
  int e = x && (x->batch = malloc(sizeof *x->batch)) ? ni_parser_new(&x->parser) : -ENOMEM;
  if (e == 0) {
    x->r = r;
    x->batch->n = 0;
    x->batch->mixed_contexts = x->batch->has_ours = false;
    e = ni_batch_words(r, &x->words);
    if (e == 0 && r->opt.dataset) e = ni_sorter_new(&x->sorter, r, &x->words);
  }
  if (e < 0) ni_run_fail(r, e, "%s", strerror(-e));
  while (e == 0 && !ni_run_stopped(r) && take_range(x)) {
    e = read_range(x);
    progress(r, n_ranges);
  }
  if (x) {
    if ((e = ni_sorter_end(x->sorter)) < 0) ni_run_fail(r, e, "%s: %s", r->tmp_dir, strerror(-e));
    add_up(r, &x->t);
    ni_parser_free(x->parser);
    free(x->batch);
    free(x->stream);
    free(x);
  }
  return NULL;
}

int ni_read_all(struct ni_run *r) { return ni_run_threads(r, work); }
