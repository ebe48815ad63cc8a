#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "check.h"
#include "exporter/input/expiry.h"
#include "exporter/input/line_reader.h"
#include "exporter/base/text/plural.h"
#include "exporter/input/sampling.h"

/* What holds while one file is read. */
struct reading {
  struct ni_check *c;
  const struct ni_file *file;
  char *origin;
  struct ni_check_process *process;
  struct ni_check_comm *comm;   /* of the last line with a header */
  struct ni_check_comm *marker; /* NVIDIA v4.3: whose records follow */
  uint64_t announced, followed;
  uint64_t marker_line;
};

void ni_check_problem(struct ni_check *c, enum ni_problem_code code, uint64_t count, const char *where, ...) {
  struct ni_problem *p = &c->problem[code];
  p->count += count;
  if (p->places < NI_CHECK_WHERES) {
    va_list ap;
    va_start(ap, where);
    if (vasprintf(&p->where[p->places], where, ap) < 0) p->where[p->places] = NULL;
    va_end(ap);
  }
  p->places++;
}

int ni_tally_add(struct ni_tally *t, const char *name, uint64_t count) {
  size_t i = t->last;
  if (i >= t->n || strcmp(t->item[i].name, name) != 0)
    for (i = 0; i < t->n && strcmp(t->item[i].name, name) != 0; i++) {}
  if (i == t->n) {
    if (t->n == NI_CHECK_NAMES) {
      t->other += count;
      return 0;
    }
    t->item[i].name = strdup(name);
    if (!t->item[i].name) return -ENOMEM;
    t->item[i].count = 0;
    t->n++;
  }
  t->item[i].count += count;
  t->last = i;
  return 0;
}

static int new_process(struct reading *r, const struct ni_line *l) {
  struct ni_check *c = r->c;
  struct ni_check_process *p = calloc(1, sizeof *p);
  if (!p) return -ENOMEM;
  c->process[c->n_processes++] = p;
  p->hostname = strdup(l->meta.hostname);
  p->pid = l->meta.pid;
  p->ours = l->meta.producer != NULL;
  p->file = r->file;
  return p->hostname ? 0 : -ENOMEM;
}

/*
 * The process a line belongs to. A process line names it by its start; else (NVIDIA's logs, a file whose first line was
 * lost) it is the one with that host and pid in the files of this name.
 */
static int find_process(struct reading *r, const struct ni_line *l) {
  struct ni_check *c = r->c;
  const struct ni_check_process *p = r->process;
  uint64_t start_ns = l->kind == NI_LINE_PROCESS ? l->process.start_ns : 0;
  bool same = p && p->pid == l->meta.pid && strcmp(p->hostname, l->meta.hostname) == 0;
  if (same && (start_ns == 0 || start_ns == p->start_ns)) return 0;
  r->comm = NULL;
  if (!ni_array_room(c->process, c->n_processes, c->cap_processes)) return -ENOMEM;
  uint64_t name = ni_hash_text((uint64_t)l->meta.pid, l->meta.hostname), started = ni_hash(name, start_ns);
  int64_t k = start_ns ? ni_map_get(&c->process_names, started) : -1;
  if (k < 0) k = ni_map_find(&c->process_names, ni_hash_text(~name, r->origin), start_ns, (uint32_t)c->n_processes);
  if (k >= 0 && start_ns && ni_map_find(&c->process_names, started, 0, (uint32_t)k) < 0) k = -ENOMEM;
  if (k < 0) return (int)k;
  if ((size_t)k == c->n_processes && new_process(r, l) < 0) return -ENOMEM;
  r->process = c->process[k];
  if (start_ns) r->process->start_ns = start_ns;
  return 0;
}

/* init_ns 0: the newest instance. A hash can come back in one process after destroy and init; a comm line tells. */
static int find_comm(struct reading *r, const struct ni_ident *id, uint64_t init_ns, struct ni_check_comm **out) {
  struct ni_check *c = r->c;
  struct ni_check_comm *x;
  if (!ni_array_room(c->comms, c->n_comms, c->cap_comms)) return -ENOMEM;
  uint64_t name = ni_hash(ni_hash((uintptr_t)r->process, id->comm_hash), (uint32_t)id->rank);
  int64_t k = ni_map_find(&c->comm_names, name, init_ns, (uint32_t)c->n_comms);
  if (k < 0) return (int)k;
  if ((size_t)k == c->n_comms) {
    if (!(x = c->comms[k] = calloc(1, sizeof *x))) return -ENOMEM;
    c->n_comms++;
    x->process = r->process;
    x->hash = id->comm_hash;
    x->rank = id->rank;
    x->n_ranks = id->n_ranks;
    x->nnodes = id->nnodes;
    x->ours = r->process->ours;
  }
  x = c->comms[k];
  if (init_ns) x->init_ns = init_ns;
  if (!x->name && id->comm_name && !(x->name = strdup(id->comm_name))) return -ENOMEM;
  *out = x;
  return 0;
}

static int count_nvidia(struct ni_check_comm *x, const struct ni_record *op) {
  struct ni_check_func *f = x->funcs;
  while (f && strcmp(f->name, op->func) != 0) f = f->next;
  if (!f) {
    f = calloc(1, sizeof *f);
    if (!f || !(f->name = strdup(op->func))) {
      free(f);
      return -ENOMEM;
    }
    f->next = x->funcs;
    x->funcs = f;
  }
  return ni_seq_set_add(&f->sn, op->sn);
}

static int take_operation(struct reading *r, const struct ni_line *l, struct ni_check_comm *x) {
  struct ni_check_kind *k = &x->kind[l->is_p2p];
  k->records++;
  r->c->operations++;
  int e = ni_tally_add(&r->c->funcs, l->op.func, 1);
  if (e == 0 && (l->op.has & NI_HAS_REC_SN)) e = ni_seq_set_add(&k->rec_sn, l->op.rec_sn);
  else if (e == 0 && !x->ours && !l->is_p2p) e = count_nvidia(x, &l->op);
  return e;
}

static int take_by(struct ni_tally *t, const struct ni_by *by) {
  uint64_t listed = 0;
  for (uint32_t i = 0; i < by->n; i++) {
    listed += by->item[i].count;
    if (ni_tally_add(t, by->item[i].name, by->item[i].count) < 0) return -ENOMEM;
  }
  t->other += by->total - listed;
  return 0;
}

static void close_marker(struct reading *r) {
  if (r->marker && r->followed != r->announced)
    ni_check_problem(r->c, NI_PROBLEM_MARKER,
                     r->announced > r->followed ? r->announced - r->followed : r->followed - r->announced,
                     "%s:%" PRIu64 " announces %" PRIu64 " %s, %" PRIu64 " %s", r->file->path, r->marker_line, r->announced,
                     ni_plural(r->announced, "record", "records"), r->followed, ni_plural(r->followed, "follows", "follow"));
  r->marker = NULL;
}

/* The kind of event that a line is, or -1. */
static int event_of(const struct ni_line *l) {
  switch (l->kind) {
    case NI_LINE_API:
      return l->event.api[0] == 'g' ? NI_EVENT_GROUP_API : l->event.api[0] == 'p' ? NI_EVENT_P2P_API : NI_EVENT_COLL_API;
    case NI_LINE_LAUNCH: return NI_EVENT_LAUNCH;
    case NI_LINE_GROUP: return NI_EVENT_GROUP;
    case NI_LINE_CE: return NI_EVENT_CE;
    case NI_LINE_SYNC: return NI_EVENT_SYNC;
    case NI_LINE_BATCH: return NI_EVENT_BATCH;
    case NI_LINE_PROXY_CTRL: return NI_EVENT_PROXY_CTRL;
    case NI_LINE_NET: return NI_EVENT_NET;
    case NI_LINE_PROXY: /* segments are a part of their operation, whose own line comes later */
      return strcmp(l->proxy.record_type, "proxy_step") == 0 ? NI_EVENT_STEPS
             : strcmp(l->proxy.record_type, "proxy_op") == 0 ? NI_EVENT_PROXY_OP
                                                             : -1;
    default: return -1;
  }
}

static void take_events(struct ni_check *c, struct ni_check_comm *x, int kind, uint64_t n) {
  c->events[kind] += n;
  x->events_there[kind] += n;
}

static int take_stats(struct reading *r, const struct ni_line *l, struct ni_check_comm *x, uint64_t line_no) {
  const struct ni_stats_line *s = &l->stats;
  if (!s->has_accounting) {
    close_marker(r);
    /* Up to v4.2 the marker only counts what self-contained lines hold; from v4.3 on bare records follow it. */
    const char *v = l->meta.version;
    if (strcmp(v, "v4.0") != 0 && strcmp(v, "v4.1") != 0 && strcmp(v, "v4.2") != 0) {
      r->marker = x;
      r->announced = s->records[0] + s->records[1] + s->proxy_records;
      r->followed = 0;
      r->marker_line = line_no;
    }
    for (int k = 0; k < NI_KIND_COUNT; k++)
      if (s->dropped_total[k] > x->kind[k].nvidia_dropped) x->kind[k].nvidia_dropped = s->dropped_total[k];
    return 0;
  }
  bool newest = l->meta.dump_timestamp_us >= x->stats_at;
  x->proxy_flushed += s->proxy_records;
  for (int i = 0; i < NI_KIND_COUNT; i++) {
    struct ni_check_kind *k = &x->kind[i];
    const struct ni_kind_stats *n = &s->kind[i];
    k->flushed += s->records[i];
    if (!newest) continue;
    k->stated = true;
    k->started = n->started;
    k->written = n->written;
    k->filtered = n->filtered_by.total;
    k->sampled = ni_by_count(&n->filtered_by, "sampled");
    k->dropped = n->dropped_by.total;
    k->expired = ni_by_count(&n->dropped_by, "expired");
    k->incomplete = n->incomplete;
    k->late = n->late;
    k->in_flight = n->in_flight;
    k->fallback = n->timing_fallback_by.total;
    /* Totals since the start: only the last line of a communicator may be added up by cause. */
    if (!s->final) continue;
    if (take_by(&r->c->dropped_by, &n->dropped_by) < 0 || take_by(&r->c->filtered_by, &n->filtered_by) < 0 ||
        take_by(&r->c->fallback_by, &n->timing_fallback_by) < 0)
      return -ENOMEM;
  }
  if (newest) x->stats_at = l->meta.dump_timestamp_us;
  for (int i = 0; newest && i < NI_EVENT_COUNT; i++) /* they only grow; a line by recover has none */
    if (s->events.kind[i].started >= x->events.kind[i].started) x->events.kind[i] = s->events.kind[i];
  if (s->final) x->final = true;
  if (s->refused_communicators)
    ni_check_problem(r->c, NI_PROBLEM_REFUSED, s->refused_communicators,
                     "%s: raise NCCL_INSPECTOR_POOL_MAX_BYTES, or give the job more memory", r->file->path);
  return s->final ? take_by(&r->c->strays, &s->strays) : 0;
}

/* A clock that cannot be right makes every time in the file wrong. */
static void take_clock(struct reading *r, const struct ni_clock_line *k, uint64_t line_no) {
  struct ni_check_process *p = r->process;
  const char *wrong = NULL;
  if (k->realtime_ns < 1000000000000000000ULL || k->realtime_ns > 4102444800000000000ULL)
    wrong = "realtime_ns is not between 2001 and 2100";
  else if (!(k->ns_per_tick >= 0.01 && k->ns_per_tick <= 1000))
    wrong = "ns_per_tick is not between 0.01 and 1000";
  else if (p->has_clock && (k->ticks < p->clock.ticks || k->monotonic_ns < p->clock.monotonic_ns))
    wrong = "runs backwards";
  else if (p->has_clock) {
    double told = (double)(k->ticks - p->clock.ticks) * k->ns_per_tick;
    double real = (double)(k->monotonic_ns - p->clock.monotonic_ns), off = fabs(told - real);
    if (off > 1e6 && off > 1e-3 * real) wrong = "ticks and monotonic_ns disagree by more than 0.1 %";
  }
  if (wrong) ni_check_problem(r->c, NI_PROBLEM_CLOCK, 1, "%s:%" PRIu64 " %s", r->file->path, line_no, wrong);
  p->has_clock = true;
  p->clock.ticks = k->ticks;
  p->clock.monotonic_ns = k->monotonic_ns;
}

static struct ni_check_kind *kind_of(struct ni_check_comm *x, const char *name) {
  return &x->kind[strcmp(name, "p2p") == 0 ? NI_KIND_P2P : NI_KIND_COLL];
}

static int take_line(struct reading *r, const struct ni_line *l, uint64_t line_no) {
  struct ni_check *c = r->c;
  c->unknown_keys += l->unknown_keys;
  if (!l->has_header) {
    if (l->kind == NI_LINE_PROXY) c->proxy_lines++;
    if (!r->marker) {
      ni_check_problem(c, NI_PROBLEM_ORPHANS, 1, "%s:%" PRIu64, r->file->path, line_no);
      return 0;
    }
    r->followed++;
    return l->kind == NI_LINE_OP ? take_operation(r, l, r->marker) : 0;
  }
  int e = find_process(r, l);
  if (e < 0) return e;
  struct ni_check_comm *x = r->comm;
  /* Lines about the whole process carry the hash 0; an operation belongs to a communicator whatever its hash. The process line
   * opens the account that its last line closes. */
  int event = event_of(l);
  bool about_comm = l->ident.comm_hash != 0 || l->kind == NI_LINE_OP || l->kind == NI_LINE_DUMP_STATS ||
                    l->kind == NI_LINE_PROCESS || l->kind == NI_LINE_PROXY || event >= 0;
  if (about_comm && (l->kind == NI_LINE_COMM || !x || x->hash != l->ident.comm_hash || x->rank != l->ident.rank)) {
    e = find_comm(r, &l->ident, l->kind == NI_LINE_COMM ? l->comm.init_ns : 0, &x);
    if (e < 0) return e;
    r->comm = x;
  }
  if (l->kind == NI_LINE_OP) return take_operation(r, l, x);
  c->control_lines++;
  r->process->control_lines = true;
  uint64_t sample = ni_sampling_of(l);
  if (sample > 1 && sample > r->process->sample) r->process->sample = sample;
  switch (l->kind) {
    case NI_LINE_PROCESS:
      r->process->has_line = true;
      r->process->limits |= ni_expiry_limits(&l->process);
      r->process->killed |= l->process.recovered_ns && !l->process.recovered_live;
      break;
    case NI_LINE_PROXY: c->proxy_lines++; break;
    case NI_LINE_CLOCK: take_clock(r, &l->clock, line_no); break;
    case NI_LINE_NOTE: c->notes++; break;
    case NI_LINE_UNKNOWN:
      ni_check_problem(c, NI_PROBLEM_UNKNOWN_KIND, 1, "%s:%" PRIu64 " %s", r->file->path, line_no, l->kind_name);
      return ni_tally_add(&c->unknown_kinds, l->kind_name, 1);
    default: break;
  }
  if (!about_comm) return 0;
  if (event >= 0) take_events(c, x, event, 1);
  if (l->kind == NI_LINE_PROXY) {
    take_events(c, x, NI_EVENT_STEPS, l->proxy.steps.n + l->proxy.steps.more);
    x->proxy_lines++;
  }
  if (l->kind == NI_LINE_DUMP_STATS) return take_stats(r, l, x, line_no);
  if (l->kind == NI_LINE_ROLLUP) {
    kind_of(x, l->rollup.kind)->rolled += l->rollup.count;
    r->process->rollups = true;
  }
  if (l->kind == NI_LINE_COMM_END) x->killed = strcmp(l->comm_end.why, "killed") == 0;
  if (l->kind == NI_LINE_GAP) kind_of(x, l->gap.kind)->gap_lines += l->gap.count;
  if (l->kind == NI_LINE_INCOMPLETE) kind_of(x, l->unfinished.kind)->incomplete_lines++;
  if (l->kind == NI_LINE_LATE) kind_of(x, l->late.kind)->late_lines++;
  return 0;
}

static void reject(struct reading *r, enum ni_reject why, const struct ni_line *l, uint64_t line_no) {
  struct ni_check *c = r->c;
  c->reasons[why]++;
  if (why == NI_REJ_BLANK) return;
  c->bad_lines++;
  const char *key = why == NI_REJ_TOO_LONG ? NULL : l->bad_key;
  ni_check_problem(c, NI_PROBLEM_BAD_LINES, 1, "%s:%" PRIu64, r->file->path, line_no);
  if (c->n_samples == NI_CHECK_SAMPLES) return;
  if (asprintf(&c->sample[c->n_samples], "%s:%" PRIu64 ": %s%s%s%s", r->file->path, line_no, ni_reject_name(why),
               key ? " (" : "", key ? key : "", key ? ")" : "") >= 0)
    c->n_samples++;
}

static void judge_file(struct reading *r, const struct ni_reader_stats *s) {
  struct ni_check *c = r->c;
  c->file_bytes += s->file_bytes;
  c->text_bytes += s->text_bytes;
  c->lines += s->lines;
  if (s->lines == 0 && s->damages == 0) ni_check_problem(c, NI_PROBLEM_EMPTY, 1, "%s", r->file->path);
  if (s->cut)
    ni_check_problem(c, NI_PROBLEM_CUT, 1, "%s ends inside a gzip member, %" PRIu64 " %s before it", r->file->path,
                     s->lines, ni_plural(s->lines, "line", "lines"));
  if (s->damages > s->cut)
    ni_check_problem(c, NI_PROBLEM_DAMAGED, s->damages - s->cut, "%s at byte %" PRIu64 ": %s%s", r->file->path,
                     s->first_damage_at,
                     s->first_damage == NI_INF_END ? "bytes that are no gzip" : ni_inflate_result_name(s->first_damage),
                     s->gave_up ? ", gave up" : "");
}

static int read_file(struct reading *r, struct ni_parser *parser, struct ni_line *line) {
  struct ni_check *c = r->c;
  struct ni_reader *reader;
  struct ni_text t;
  int e = ni_reader_open(&reader, r->file->path, NULL), got;
  if (e == -ENOMEM) return e;
  if (e < 0) {
    ni_check_problem(c, NI_PROBLEM_UNREADABLE, 1, "%s: %s", r->file->path, strerror(-e));
    return 0;
  }
  while ((got = ni_reader_next(reader, &t)) == 1) {
    enum ni_reject why = t.too_long ? NI_REJ_TOO_LONG : ni_parse_line(parser, t.text, t.len, t.room, line);
    if (why == NI_REJ_NO_MEMORY) e = -ENOMEM;
    else if (why == NI_OK) e = take_line(r, line, t.line_no);
    else if (t.unterminated && !ni_reader_stats(reader)->cut && why != NI_REJ_BLANK)
      ni_check_problem(c, NI_PROBLEM_CUT, 1, "%s ends inside line %" PRIu64, r->file->path, t.line_no);
    else if (!t.unterminated || why == NI_REJ_BLANK)
      reject(r, why, line, t.line_no);
    if (e < 0) break;
  }
  if (got < 0 && got != -ENOMEM)
    ni_check_problem(c, NI_PROBLEM_UNREADABLE, 1, "%s: %s", r->file->path, strerror(-got));
  close_marker(r);
  judge_file(r, ni_reader_stats(reader));
  ni_reader_close(reader);
  return got == -ENOMEM ? got : e;
}

int ni_check_read(struct ni_check *c) {
  struct ni_parser *parser = NULL;
  struct ni_line *line = malloc(sizeof *line);
  int e = line ? ni_parser_new(&parser) : -ENOMEM;
  for (size_t i = 0; e == 0 && i < c->files.n_bad; i++)
    ni_check_problem(c, NI_PROBLEM_UNREADABLE, 1, "%s: %s", c->files.bad[i].path, ni_unreadable_why(&c->files.bad[i]));
  for (size_t i = 0; e == 0 && i < c->files.n; i++) {
    const char *path = c->files.file[i].path;
    struct reading r = {.c = c, .file = &c->files.file[i], .origin = strndup(path, ni_log_stem(path, NULL))};
    e = r.origin ? read_file(&r, parser, line) : -ENOMEM;
    free(r.origin);
  }
  ni_parser_free(parser);
  free(line);
  return e;
}
