/*
 * nccl-sim --verify: is every operation of the truth in the logs once, with the right values, and nothing else?
 *
 * Truth and records are joined by (pid, communicator, rank, kind, rec_sn); where two threads may have raced for that
 * number, by function, number and execution time. Values that the device dictates must be equal; what the CPU clock
 * measures has a tolerance, stated below. Losses must be the losses that the logs state. One thread; exit status 0
 * agrees, 1 does not.
 */
#include <math.h>
#include <string.h>

#include "log_source.h"
#include "modes.h"
#include "truth_read.h"

enum { SHOWN = 20 };
static const int64_t enqueue_tolerance_ns = 2000000; /* clock fit, and a preempted thread between our look and theirs */
static const int64_t cpu_tolerance_ns = 30000000;     /* the same, twice, under load */

struct rec {
  int pid, rank, n_ranks, nnodes;
  uint64_t hash;
  struct ni_record r;
  char func[24], dtype[24], algo[24], proto[16], name[256];
  bool named, used;
};

struct stats { /* final dump_stats of one communicator */
  int pid, rank;
  uint64_t hash;
  struct { uint64_t started, written, filtered, dropped, incomplete, in_flight, late; } k[2];
  uint64_t sampled[2]; /* of filtered: not yet met in the truth */
  uint64_t found[2], called[2], filtered_true[2], dropped_true[2], unfinished_true[2];
  bool vague; /* an abort or an end: what moved meanwhile cannot be counted from outside */
};

struct part { /* `gap` ranges, `late` and `incomplete` lines */
  int kind; /* 0 gap, 1 late, 2 incomplete */
  int pid, rank, p2p;
  uint64_t hash, from, to;
};

struct verify {
  struct ni_true truth;
  struct rec *recs;
  struct stats *stats;
  struct part *parts;
  struct rec *calls; /* records without a Coll event */
  struct told { /* by process: what its final lines say of events, and what its proxy lines hold */
    int pid;
    uint64_t started[NI_EVENT_COUNT], dropped[NI_EVENT_COUNT], bytes, steps, step_lines;
  } *told;
  size_t n_told;
  size_t n_calls, n_recs, n_stats, n_parts;
  uint64_t errors, agreed, excused, open;
};

static void wrong(struct verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct verify *v, const char *fmt, ...) {
  va_list ap;
  if (v->errors++ >= SHOWN) return;
  fprintf(stderr, "verify: ");
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

static void *grow(void *p, size_t n, size_t size) {
  if (n & (n - 1)) return p;
  p = realloc(p, (n ? 2 * n : 1) * size);
  if (!p) ni_die(NI_SIM_FAILED, "out of memory");
  return p;
}

static void keep(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static void add_part(struct verify *v, const struct ni_line *l, int kind, const char *which, uint64_t from,
                     uint64_t to) {
  v->parts = grow(v->parts, v->n_parts, sizeof *v->parts);
  v->parts[v->n_parts++] = (struct part){kind, (int)l->meta.pid, l->ident.rank, which && which[0] == 'p',
                                         l->ident.comm_hash, from, to};
}

static void take_call(struct verify *v, const struct ni_line *l) {
  v->calls = grow(v->calls, v->n_calls, sizeof *v->calls);
  struct rec *r = &v->calls[v->n_calls++];
  *r = (struct rec){.pid = (int)l->meta.pid, .rank = l->ident.rank, .hash = l->ident.comm_hash, .r = l->op};
  keep(r->func, sizeof r->func, l->op.func);
  keep(r->dtype, sizeof r->dtype, l->op.datatype);
}

static struct told *told_of(struct verify *v, int pid) {
  for (size_t i = 0; i < v->n_told; i++)
    if (v->told[i].pid == pid) return &v->told[i];
  v->told = grow(v->told, v->n_told, sizeof *v->told);
  v->told[v->n_told] = (struct told){.pid = pid};
  return &v->told[v->n_told++];
}

static void take_events(struct verify *v, const struct ni_line *l) {
  if (l->kind == NI_LINE_DUMP_STATS && l->stats.final && l->stats.has_events) {
    struct told *t = told_of(v, (int)l->meta.pid);
    for (int k = 0; k < NI_EVENT_COUNT; k++) {
      t->started[k] += l->stats.events.kind[k].started;
      t->dropped[k] += l->stats.events.kind[k].dropped;
    }
  } else if (l->kind == NI_LINE_PROXY) {
    struct told *t = told_of(v, (int)l->meta.pid);
    bool op = strcmp(l->proxy.record_type, "proxy_op") == 0;
    t->step_lines += strcmp(l->proxy.record_type, "proxy_step") == 0 ? 1 : l->proxy.steps.n;
    if (op) t->bytes += l->proxy.trans_size_bytes;
    if (op) t->steps += l->proxy.n_steps_completed;
  }
}

static void take_line(const struct ni_line *l, void *arg) {
  struct verify *v = arg;
  take_events(v, l);
  if (l->kind == NI_LINE_OP && l->op.src != NI_SRC_EVENT) {
    take_call(v, l);
  } else if (l->kind == NI_LINE_OP) {
    v->recs = grow(v->recs, v->n_recs, sizeof *v->recs);
    struct rec *r = &v->recs[v->n_recs++];
    *r = (struct rec){.pid = (int)l->meta.pid, .rank = l->ident.rank, .n_ranks = l->ident.n_ranks,
                      .nnodes = l->ident.nnodes, .hash = l->ident.comm_hash, .r = l->op,
                      .named = l->ident.comm_name != NULL};
    keep(r->func, sizeof r->func, l->op.func);
    keep(r->dtype, sizeof r->dtype, l->op.datatype);
    keep(r->algo, sizeof r->algo, l->op.algo);
    keep(r->proto, sizeof r->proto, l->op.proto);
    keep(r->name, sizeof r->name, l->ident.comm_name);
  } else if (l->kind == NI_LINE_GAP) {
    add_part(v, l, 0, l->gap.kind, l->gap.rec_sn_from, l->gap.rec_sn_to);
  } else if (l->kind == NI_LINE_LATE) {
    add_part(v, l, 1, l->late.kind, l->late.rec_sn, l->late.rec_sn);
  } else if (l->kind == NI_LINE_INCOMPLETE) {
    add_part(v, l, 2, l->unfinished.kind, l->unfinished.rec_sn, l->unfinished.rec_sn);
  } else if (l->kind == NI_LINE_DUMP_STATS && l->stats.has_accounting && l->stats.final && l->ident.comm_hash) {
    v->stats = grow(v->stats, v->n_stats, sizeof *v->stats);
    struct stats *s = &v->stats[v->n_stats++];
    memset(s, 0, sizeof *s);
    s->pid = (int)l->meta.pid;
    s->rank = l->ident.rank;
    s->hash = l->ident.comm_hash;
    for (int k = 0; k < 2; k++) {
      const struct ni_kind_stats *a = &l->stats.kind[k];
      s->k[k].started = a->started;
      s->k[k].written = a->written;
      s->k[k].filtered = a->filtered_by.total;
      for (uint32_t i = 0; i < a->filtered_by.n; i++)
        if (strcmp(a->filtered_by.item[i].name, "sampled") == 0) s->sampled[k] = a->filtered_by.item[i].count;
      s->k[k].dropped = a->dropped_by.total;
      s->k[k].incomplete = a->incomplete;
      s->k[k].in_flight = a->in_flight;
      s->k[k].late = a->late;
    }
  }
}

#define CMP(a, b) if ((a) != (b)) return (a) < (b) ? -1 : 1

static int rec_order(const void *x, const void *y) {
  const struct rec *a = x, *b = y;
  CMP(a->pid, b->pid);
  CMP(a->hash, b->hash);
  CMP(a->rank, b->rank);
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.rec_sn, b->r.rec_sn);
  return 0;
}

static int op_order(const void *x, const void *y) {
  const struct ni_true_op *a = x, *b = y;
  CMP(a->pid, b->pid);
  CMP(a->hash, b->hash);
  CMP(a->rank, b->rank);
  CMP(a->p2p, b->p2p);
  CMP(a->called ? a->rec : UINT64_MAX, b->called ? b->rec : UINT64_MAX);
  return 0;
}

static int call_order(const void *x, const void *y) {
  const struct rec *a = x, *b = y;
  CMP(a->pid, b->pid);
  CMP(a->hash, b->hash);
  CMP(a->rank, b->rank);
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.call_sn, b->r.call_sn);
  return 0;
}

static bool same_place(const struct ni_true_op *o, int pid, uint64_t hash, int rank, int kind) {
  return o->pid == pid && o->hash == hash && o->rank == rank && o->p2p == kind;
}

/* Replays share the call of their capture: the nth of the truth is the nth of the records. */
static void number_replay(struct verify *v, struct ni_true_op *o) {
  size_t before = 0;
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    const struct ni_true_op *x = &v->truth.ops[i];
    before += x->replay && same_place(x, o->pid, o->hash, o->rank, o->p2p) && x->true_rec < o->true_rec;
  }
  struct rec *nth = NULL;
  for (size_t i = 0; i < v->n_recs; i++) {
    struct rec *r = &v->recs[i];
    if (!r->r.graph || !same_place(o, r->pid, r->hash, r->rank, (int)r->r.kind)) continue;
    size_t smaller = 0;
    for (size_t k = 0; k < v->n_recs; k++)
      smaller += v->recs[k].r.graph && same_place(o, v->recs[k].pid, v->recs[k].hash, v->recs[k].rank, (int)v->recs[k].r.kind) &&
                 v->recs[k].r.rec_sn < r->r.rec_sn;
    if (smaller == before) nth = r;
  }
  if (nth) o->rec = nth->r.rec_sn;
}

/* Records without a Coll event take numbers, too, at moments that the truth cannot know. Where there are any, an operation
 * is found by its call, and has the number that its record has. */
static void number_by_call(struct verify *v) {
  if (!v->n_calls || !v->n_recs) return;
  qsort(v->recs, v->n_recs, sizeof *v->recs, call_order);
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    struct ni_true_op *o = &v->truth.ops[i];
    struct rec key = {.pid = o->pid, .hash = o->hash, .rank = o->rank, .r = {.kind = (enum ni_kind)o->p2p}};
    key.r.call_sn = (uint64_t)o->call;
    struct rec *r = o->call >= 0 ? bsearch(&key, v->recs, v->n_recs, sizeof *v->recs, call_order) : NULL;
    o->true_rec = o->rec;
    o->replay = o->called && (!r || r->r.graph);
    if (r && !r->r.graph) o->rec = r->r.rec_sn;
  }
  for (size_t i = 0; i < v->truth.n_ops; i++)
    if (v->truth.ops[i].replay) number_replay(v, &v->truth.ops[i]);
}

static int key_order(const struct ni_true_op *o, const struct rec *r) {
  CMP(o->pid, r->pid);
  CMP(o->hash, r->hash);
  CMP(o->rank, r->rank);
  CMP((int)o->p2p, (int)r->r.kind);
  CMP(o->called ? o->rec : UINT64_MAX, r->r.rec_sn);
  return 0;
}

static int parts_of(const struct verify *v, const struct ni_true_op *o, int kind) {
  int n = 0;
  for (size_t i = 0; i < v->n_parts; i++) {
    const struct part *p = &v->parts[i];
    n += p->kind == kind && p->pid == o->pid && p->hash == o->hash && p->rank == o->rank && p->p2p == o->p2p &&
         o->rec >= p->from && o->rec <= p->to;
  }
  return n;
}

static const char *id(const struct ni_true_op *o) {
  static char text[128];
  snprintf(text, sizeof text, "pid %d comm 0x%llx rank %d %s sn %llu rec %llu", o->pid, (unsigned long long)o->hash,
           o->rank, o->func, (unsigned long long)o->sn, (unsigned long long)o->rec);
  return text;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 + 1e-5 * fabs(b); }

static void check_values(struct verify *v, struct ni_true_op *o, const struct rec *r) {
  const struct ni_true_comm *c = ni_true_comm(&v->truth, o->pid, o->hash, o->rank);
  uint64_t before = v->errors;
#define EQ_U(what, got, want)              \
  if ((uint64_t)(got) != (uint64_t)(want)) \
  wrong(v, "%s: %s is %llu, truth %llu", id(o), what, (unsigned long long)(got), (unsigned long long)(want))
#define EQ_S(what, got, want) \
  if (strcmp(got, want) != 0) wrong(v, "%s: %s is \"%s\", truth \"%s\"", id(o), what, got, want)
  EQ_S("function", r->func, o->func);
  if (!o->p2p) EQ_U("coll_sn", r->r.sn, o->sn);
  EQ_U("has a call number", (r->r.has & NI_HAS_CALL_SN) != 0, o->call >= 0);
  if (o->call >= 0) EQ_U("call_sn", r->r.call_sn, o->call);
  EQ_U("message size", r->r.msg_bytes, o->bytes);
  EQ_S("datatype", r->dtype, o->dtype);
  if (!o->p2p) {
    EQ_S("algorithm", r->algo, o->algo);
    EQ_S("protocol", r->proto, o->proto);
  }
  EQ_U(o->p2p ? "peer" : "root", r->r.root, o->p2p ? o->peer : o->root);
  if (c) {
    /* v1 to v3 never say how large a communicator is. */
    bool sized = c->interface > 3;
    EQ_U("n_ranks", r->n_ranks, sized ? c->n_ranks : 0);
    EQ_U("nnodes", r->nnodes, sized ? c->nnodes : 0);
    EQ_U("has a communicator name", r->named, c->named);
    EQ_S("communicator name", r->name, c->name);
    enum ni_func f = ni_func_from_name(o->func);
    uint64_t tests = sized || !ni_func_table[f].times_ranks ? ni_nccl_tests_bytes(f, o->bytes, c->n_ranks) : 0;
    EQ_U("nccl-tests size", r->r.tests_bytes, tests);
    double factor = sized || ni_func_table[f].factor == 1 ? ni_bus_factor(f, c->n_ranks) : 0;
    bool cpu = strcmp(o->timing, "collective_cpu") == 0;
    if (!cpu && r->r.exec_ns > 0 && factor > 0) {
      double alg = (double)r->r.tests_bytes / (double)r->r.exec_ns;
      if (!(r->r.has & NI_HAS_BUSBW) || !near(r->r.algobw_gbs, alg) || !near(r->r.busbw_gbs, alg * factor))
        wrong(v, "%s: bandwidths %f %f, truth %f %f", id(o), r->r.algobw_gbs, r->r.busbw_gbs, alg, alg * factor);
    }
    if (cpu && (r->r.has & NI_HAS_BUSBW)) wrong(v, "%s: a bandwidth from the enqueue bracket", id(o));
  }
  bool unknown = ni_true_want_unknown(&v->truth, o);
  /* Without a count an operation is judged finished when quiet for 1 s: a channel later than that has a late line. */
  int late = unknown && o->late_ms >= 900 ? parts_of(v, o, 1) : 0;
  /* Stamps of later works and true ones alternate then: only that what is called GPU time is what was handed over. */
  bool overrun = strcmp(o->stamps, "overrun") == 0 && r->r.timing == NI_TIMING_KERNEL_CPU;
  if (!overrun) EQ_S("timing source", ni_timing_names[r->r.timing], o->timing);
  if (strcmp(o->timing, "kernel_gpu") == 0 && !late && !overrun) EQ_U("coll_exec_time_ns", r->r.exec_ns, o->exec_ns);
  if (strcmp(o->timing, "kernel_cpu") == 0) {
    int64_t diff = (int64_t)r->r.exec_ns - (int64_t)(o->last_ns - o->first_ns);
    if (llabs(diff) > cpu_tolerance_ns)
      wrong(v, "%s: CPU-timed %llu ns, truth %llu", id(o), (unsigned long long)r->r.exec_ns,
            (unsigned long long)(o->last_ns - o->first_ns));
  }
  EQ_U("execution time in us", r->r.exec_us, ni_exec_us(r->r.exec_ns));
  bool none = strcmp(o->timing, "collective_cpu") == 0;
  bool self = o->p2p && o->peer == o->rank;
  int channels = self ? 0 : unknown ? o->done_ch - late : o->desc_nch;
  if (!none || self) EQ_U("channels", r->r.nchannels, channels);
  if (!none && !v->truth.procs[o->proc].mask_steps) EQ_U("nchannels observed", r->r.nchannels_observed, unknown);
  if (!(r->r.has & NI_HAS_ENQUEUE) || (int64_t)(r->r.enqueue_ns - o->enq_from) < -enqueue_tolerance_ns ||
      (int64_t)(o->enq_to - r->r.enqueue_ns) < -enqueue_tolerance_ns)
    wrong(v, "%s: enqueued at %llu, truth %llu to %llu", id(o), (unsigned long long)r->r.enqueue_ns,
          (unsigned long long)o->enq_from, (unsigned long long)o->enq_to);
  if (late && o->done_ch - late < 1) wrong(v, "%s: %d late lines for %d channels", id(o), late, o->done_ch);
  if (v->errors == before) v->agreed++;
}

/* A record the truth allows to be missing because the process ended before it could be written. */
static bool excused_by_end(const struct verify *v, const struct ni_true_op *o) {
  const struct ni_true_proc *p = &v->truth.procs[o->proc];
  if (!p->ended || p->how == NI_END_FINALIZE) return false;
  if (strcmp(o->out, "open") == 0) return true;
  if (p->how == NI_END_EXIT || p->how == NI_END_QUICK_EXIT) return false;
  if (p->interval_us < 0) return true;
  return o->end_ns + (uint64_t)p->interval_us * 1000 + 300000000u > p->end_ns;
}

static struct stats *stats_of(struct verify *v, int pid, uint64_t hash, int rank) {
  for (size_t i = 0; i < v->n_stats; i++)
    if (v->stats[i].hash == hash && v->stats[i].rank == rank && v->stats[i].pid == pid) return &v->stats[i];
  return NULL;
}

/* Left out by NCCL_INSPECTOR_SAMPLE: the log says how many, test/host/verify.py looks at which. */
static bool sampled_away(struct verify *v, const struct ni_true_op *o) {
  struct stats *s = o->called ? stats_of(v, o->pid, o->hash, o->rank) : NULL;
  if (!s || !s->sampled[o->p2p]) return false;
  s->sampled[o->p2p]--;
  s->filtered_true[o->p2p]++;
  return true;
}

static void not_written(struct verify *v, struct ni_true_op *o) {
  const char *why = ni_true_unwritten(&v->truth, o);
  if (!why && sampled_away(v, o)) {
    v->excused++;
    return;
  }
  bool gap = o->called && parts_of(v, o, 0) > 0;
  if (why || excused_by_end(v, o) || gap) {
    v->excused++;
    if (gap) { /* the log says it was lost: it then counts as dropped, whatever became of it */
      o->in_gap = true;
      return;
    }
    if (o->missing && o->called && why && strcmp(why, "incomplete") == 0 && !parts_of(v, o, 2))
      wrong(v, "%s: children missing, and no `incomplete` line says so", id(o));
    return;
  }
  wrong(v, "%s: finished and not in the logs", id(o));
}

static void matched(struct verify *v, struct ni_true_op *o, struct rec *r) {
  r->used = true;
  if (o->matches++) {
    wrong(v, "%s: written twice", id(o));
    return;
  }
  const char *why = ni_true_unwritten(&v->truth, o);
  if (why && !(strcmp(o->out, "open") == 0 && excused_by_end(v, o))) {
    if (strcmp(why, "abort") == 0) { /* finished in the plugin's eyes before the abort: its values were not kept */
      v->excused++;
      return;
    }
    wrong(v, "%s: written, but it is %s", id(o), why);
    return;
  }
  if (strcmp(o->out, "open") == 0) { /* finished after the truth was closed: only that it was there is known */
    v->open++;
    return;
  }
  check_values(v, o, r);
}

/* Communicators where A and H raced: the numbers may be exchanged between operations of one function and number. */
static void join_unordered(struct verify *v, struct ni_true_op *o) {
  struct rec *best = NULL;
  for (size_t i = 0; i < v->n_recs; i++) {
    struct rec *r = &v->recs[i];
    if (r->used || r->pid != o->pid || r->hash != o->hash || r->rank != o->rank || (int)r->r.kind != o->p2p ||
        strcmp(r->func, o->func) != 0 || (!o->p2p && r->r.sn != o->sn))
      continue;
    if (!best || r->r.exec_ns == o->exec_ns) best = r;
    if (r->r.exec_ns == o->exec_ns) break;
  }
  if (best) matched(v, o, best);
  else not_written(v, o);
}

/* Collectives that are known by their call or from the copy engine only: each once, with the call's values. */
static void check_calls(struct verify *v) {
  for (size_t i = 0; i < v->n_calls; i++) {
    struct rec *r = &v->calls[i];
    struct ni_true_call *t = NULL;
    for (size_t k = 0; k < v->truth.n_calls && !t; k++) {
      struct ni_true_call *x = &v->truth.calls[k];
      if (x->pid == r->pid && x->hash == r->hash && x->rank == r->rank && x->call == (int64_t)r->r.call_sn) t = x;
    }
    if (!t || t->found) {
      wrong(v, "pid %d comm 0x%llx rank %d call %llu (%s): %s", r->pid, (unsigned long long)r->hash, r->rank,
            (unsigned long long)r->r.call_sn, r->func, t ? "written twice" : "not in the truth");
      continue;
    }
    t->found = true;
    if (strcmp(t->func, r->func) || strcmp(t->src, ni_src_names[r->r.src]) || strcmp(t->dtype, r->dtype) ||
        t->bytes != r->r.msg_bytes || t->root != r->r.root || r->r.timing != NI_TIMING_COLLECTIVE_CPU ||
        (r->r.has & (NI_HAS_BUSBW | NI_HAS_NCHANNELS)) || (int64_t)(r->r.enqueue_ns - t->enq_from) < -enqueue_tolerance_ns ||
        (int64_t)(t->enq_to - r->r.enqueue_ns) < -enqueue_tolerance_ns)
      wrong(v, "pid %d comm 0x%llx rank %d call %llu: %s %s %s %llu bytes, truth %s %s %s %llu", r->pid,
            (unsigned long long)r->hash, r->rank, (unsigned long long)r->r.call_sn, r->func, ni_src_names[r->r.src],
            r->dtype, (unsigned long long)r->r.msg_bytes, t->func, t->src, t->dtype, (unsigned long long)t->bytes);
    else v->agreed++;
  }
  for (size_t k = 0; k < v->truth.n_calls; k++) {
    const struct ni_true_call *t = &v->truth.calls[k];
    const struct ni_true_proc *p = &v->truth.procs[t->proc];
    struct stats *s = stats_of(v, t->pid, t->hash, t->rank);
    bool filtered = t->bytes < (uint64_t)p->min_bytes || p->need_gpu, ended = !p->ended || p->how != NI_END_FINALIZE;
    if (!t->found && !filtered && !ended)
      wrong(v, "pid %d comm 0x%llx rank %d call %lld: %s has no record", t->pid, (unsigned long long)t->hash, t->rank,
            (long long)t->call, t->func);
    if (s) s->called[0]++, s->filtered_true[0] += filtered, s->found[0] += t->found;
  }
}

/* Was each event shown recorded, and each transfer folded, once? Where everything was asked for from the beginning. */
static void check_events(struct verify *v) {
  static const char *const names[] = {"group",   "",         "",        "proxyop", "",       "proxyctrl", "",  "net",
                                      "groupapi", "collapi", "p2papi", "launch",  "ce",     "sync",      "batch"};
  for (size_t i = 0; i < v->truth.n_procs; i++) {
    const struct ni_true_proc *p = &v->truth.procs[i];
    if (!p->every_event || !p->has_events || p->mask_steps) continue;
    const struct told *t = told_of(v, p->pid);
    for (int k = 0; k < 15; k++)
      if (*names[k] && t->started[k] != p->event[k])
        wrong(v, "pid %d: final lines state %llu %s events, the truth has %llu", p->pid, (unsigned long long)t->started[k],
              names[k], (unsigned long long)p->event[k]);
    bool sized = p->interface > 3 || p->nccl < 22700; /* the translations to v1, v2 and v3 hand no sizes on */
    if (t->dropped[NI_EVENT_PROXY_OP]) continue;
    if (t->steps != p->steps || (sized && t->bytes != p->step_bytes))
      wrong(v, "pid %d: proxy operations hold %llu transfers of %llu bytes, the truth has %llu of %llu", p->pid,
            (unsigned long long)t->steps, (unsigned long long)t->bytes, (unsigned long long)p->steps,
            (unsigned long long)p->step_bytes);
    if (p->every_step && t->step_lines + t->dropped[NI_EVENT_STEPS] != p->steps)
      wrong(v, "pid %d: the logs have %llu steps, the truth %llu", p->pid, (unsigned long long)t->step_lines,
            (unsigned long long)p->steps);
    v->agreed++;
  }
}

static void check_stats(struct verify *v) {
  for (size_t i = 0; i < v->n_recs; i++) {
    struct stats *s = stats_of(v, v->recs[i].pid, v->recs[i].hash, v->recs[i].rank);
    if (s) s->found[v->recs[i].r.kind]++;
  }
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    const struct ni_true_op *o = &v->truth.ops[i];
    struct stats *s = o->called ? stats_of(v, o->pid, o->hash, o->rank) : NULL;
    if (!s) continue;
    s->called[o->p2p]++;
    const char *why = ni_true_unwritten(&v->truth, o);
    if (o->in_gap) s->dropped_true[o->p2p]++;
    else if (why && strncmp(why, "filtered", 8) == 0) s->filtered_true[o->p2p]++;
    else if (why && strcmp(why, "dropped") == 0) s->dropped_true[o->p2p]++;
    else if (why) s->unfinished_true[o->p2p]++;
    s->vague |= strcmp(o->out, "done") != 0 || v->truth.procs[o->proc].how != NI_END_FINALIZE;
  }
  for (size_t i = 0; i < v->n_stats; i++) {
    const struct stats *s = &v->stats[i];
    for (int k = 0; k < 2; k++) {
      const char *kind = k ? "p2p" : "coll";
      uint64_t sum = s->k[k].written + s->k[k].filtered + s->k[k].dropped + s->k[k].incomplete + s->k[k].in_flight;
      if (sum != s->k[k].started)
        wrong(v, "pid %d comm 0x%llx rank %d: final line states started %llu of %s, but its parts are %llu", s->pid,
              (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].started, kind, (unsigned long long)sum);
      if (s->k[k].written != s->found[k])
        wrong(v, "pid %d comm 0x%llx rank %d: final line states written %llu of %s, the files hold %llu", s->pid,
              (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].written, kind,
              (unsigned long long)s->found[k]);
      const uint64_t stated[3] = {s->k[k].filtered, s->k[k].dropped, s->k[k].incomplete + s->k[k].in_flight};
      const uint64_t truth[3] = {s->filtered_true[k], s->dropped_true[k], s->unfinished_true[k]};
      static const char *const what[3] = {"filtered", "dropped", "incomplete and in flight"};
      for (int i3 = 0; i3 < 3 && !s->vague; i3++)
        if (stated[i3] != truth[i3])
          wrong(v, "pid %d comm 0x%llx rank %d: final line states %s %llu of %s, the truth has %llu", s->pid,
                (unsigned long long)s->hash, s->rank, what[i3], (unsigned long long)stated[i3], kind,
                (unsigned long long)truth[i3]);
      if (s->k[k].started != s->called[k])
        wrong(v, "pid %d comm 0x%llx rank %d: final line states started %llu of %s, the truth has %llu", s->pid,
              (unsigned long long)s->hash, s->rank, (unsigned long long)s->k[k].started, kind,
              (unsigned long long)s->called[k]);
    }
  }
  for (size_t i = 0; i < v->truth.n_comms; i++) {
    const struct ni_true_comm *c = &v->truth.comms[i];
    const struct ni_true_proc *p = NULL;
    for (size_t k = 0; k < v->truth.n_procs; k++)
      if (v->truth.procs[k].pid == c->pid) p = &v->truth.procs[k];
    bool silent = !p || p->how == NI_END_SIGKILL || p->how == NI_END_UNDERSCORE_EXIT || !p->ended;
    if (c->interface && !silent && !stats_of(v, c->pid, c->hash, c->rank))
      wrong(v, "pid %d comm 0x%llx rank %d: no final dump_stats line", c->pid, (unsigned long long)c->hash, c->rank);
  }
}

int ni_verify_main(const char *truth, const char *logs, bool quiet) {
  struct verify v = {0};
  struct ni_log_totals totals;
  ni_truth_load(&v.truth, truth);
  (void)ni_logs_read(logs, take_line, &v, &totals); /* no logs at all can be right after SIGKILL; the truth decides */
  number_by_call(&v);
  qsort(v.recs, v.n_recs, sizeof *v.recs, rec_order);
  qsort(v.truth.ops, v.truth.n_ops, sizeof *v.truth.ops, op_order);
  if (totals.bad) wrong(&v, "%llu lines or files of the logs cannot be read", (unsigned long long)totals.bad);
  size_t i = 0, j = 0;
  while (i < v.truth.n_ops) {
    struct ni_true_op *o = &v.truth.ops[i];
    if (o->unordered || (j < v.n_recs && v.recs[j].used)) {
      if (o->unordered) i++;
      else j++;
      if (o->unordered) join_unordered(&v, o);
      continue;
    }
    int order = j < v.n_recs ? key_order(o, &v.recs[j]) : -1;
    if (order > 0) {
      j++; /* looked at again below */
    } else {
      if (order == 0) matched(&v, o, &v.recs[j++]);
      else if (!o->matches) not_written(&v, o);
      if (order == 0 && j < v.n_recs && key_order(o, &v.recs[j]) == 0) continue; /* the same number once more */
      i++;
    }
  }
  for (struct rec *r = v.recs; r && r < v.recs + v.n_recs; r++)
    if (!r->used)
      wrong(&v, "pid %d comm 0x%llx rank %d %s sn %llu rec %llu: in the logs, not in the truth", r->pid,
            (unsigned long long)r->hash, r->rank, r->func, (unsigned long long)r->r.sn,
            (unsigned long long)r->r.rec_sn);
  check_calls(&v);
  check_events(&v);
  check_stats(&v);
  if (!quiet || v.errors)
    printf("verify: %zu operations, %llu agree, %llu rightly not written, %llu finished during the end, %zu records, "
           "%llu files: %llu disagreements\n",
           v.truth.n_ops, (unsigned long long)v.agreed, (unsigned long long)v.excused, (unsigned long long)v.open,
           v.n_recs, (unsigned long long)totals.files, (unsigned long long)v.errors);
  int rc = v.errors ? NI_SIM_FAILED : 0;
  size_t called = 0;
  for (size_t k = 0; k < v.truth.n_ops; k++) called += v.truth.ops[k].called;
  if (!called) { /* an agreement about nothing is none */
    ni_say("%s: no operation was ever shown to a plugin: nothing was verified", truth);
    rc = NI_SIM_FAILED;
  }
  ni_truth_free(&v.truth);
  free(v.recs);
  free(v.stats);
  free(v.parts);
  free(v.calls);
  free(v.told);
  return rc;
}
