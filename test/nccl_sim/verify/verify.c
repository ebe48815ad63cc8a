/*
 * nccl-sim --verify: is every operation of the truth in the logs once, with the right values, and nothing
 * else?
 *
 * Truth and records are joined by (pid, communicator, rank, kind, rec_sn); where two threads may have raced
 * for that number, by function, number and execution time. Values that the device dictates must be equal;
 * what the CPU clock measures has a tolerance, stated in verify_checks.c. Losses must be the losses that the
 * logs state. One thread; exit status 0 agrees, 1 does not.
 */
#include <string.h>

#include "exporter/base/text/plural.h"
#include "test/nccl_sim/modes.h"
#include "verify.h"

enum { SHOWN = 20 };

void ni_wrong(struct ni_verify *v, const char *fmt, ...) {
  va_list ap;
  if (v->errors++ >= SHOWN)
    return;
  fprintf(stderr, "verify: ");
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

const char *ni_verify_name(const struct ni_true_op *o) {
  static char text[128];
  snprintf(text, sizeof text, "pid %d comm 0x%llx rank %d %s sn %llu rec %llu", o->pid,
           (unsigned long long)o->hash, o->rank, o->func, (unsigned long long)o->sn,
           (unsigned long long)o->rec);
  return text;
}

#define CMP(a, b) \
  if ((a) != (b)) \
  return (a) < (b) ? -1 : 1
#define CMP_RANK(a, b) \
  CMP(a->pid, b->pid); \
  CMP(a->hash, b->hash); \
  CMP(a->rank, b->rank)

static int rec_order(const void *x, const void *y) {
  const struct ni_said_op *a = x, *b = y;
  CMP_RANK(a, b);
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.rec_sn, b->r.rec_sn);
  return 0;
}

static int op_order(const void *x, const void *y) {
  const struct ni_true_op *a = x, *b = y;
  CMP_RANK(a, b);
  CMP(a->p2p, b->p2p);
  CMP(a->called ? a->rec : UINT64_MAX, b->called ? b->rec : UINT64_MAX);
  return 0;
}

static int call_order(const void *x, const void *y) {
  const struct ni_said_op *a = x, *b = y;
  CMP_RANK(a, b);
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.call_sn, b->r.call_sn);
  return 0;
}

static bool same_place(const struct ni_true_op *o, int pid, uint64_t hash, int rank, int kind) {
  return o->pid == pid && o->hash == hash && o->rank == rank && o->p2p == kind;
}

/* Replays share the call of their capture: the nth of the truth is the nth of the records. */
static void number_replay(struct ni_verify *v, struct ni_true_op *o) {
  size_t before = 0;
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    const struct ni_true_op *x = &v->truth.ops[i];
    before += x->replay && same_place(x, o->pid, o->hash, o->rank, o->p2p) && x->true_rec < o->true_rec;
  }
  struct ni_said_op *nth = NULL;
  for (size_t i = 0; i < v->said.n_ops; i++) {
    struct ni_said_op *r = &v->said.ops[i];
    if (!r->r.graph || !same_place(o, r->pid, r->hash, r->rank, (int)r->r.kind))
      continue;
    size_t smaller = 0;
    for (const struct ni_said_op *x = v->said.ops; x < v->said.ops + v->said.n_ops; x++)
      smaller +=
          x->r.graph && same_place(o, x->pid, x->hash, x->rank, (int)x->r.kind) && x->r.rec_sn < r->r.rec_sn;
    if (smaller == before)
      nth = r;
  }
  if (nth)
    o->rec = nth->r.rec_sn;
}

/* Records without a Coll event take numbers, too, at moments that the truth cannot know. Where there are any,
 * an operation is found by its call, and has the number that its record has. */
static void number_by_call(struct ni_verify *v) {
  if (!v->said.n_calls || !v->said.n_ops)
    return;
  qsort(v->said.ops, v->said.n_ops, sizeof *v->said.ops, call_order);
  for (size_t i = 0; i < v->truth.n_ops; i++) {
    struct ni_true_op *o = &v->truth.ops[i];
    struct ni_said_op key = {
        .pid = o->pid, .hash = o->hash, .rank = o->rank, .r = {.kind = (enum ni_kind)o->p2p}};
    key.r.call_sn = (uint64_t)o->call;
    struct ni_said_op *r =
        o->call >= 0 ? bsearch(&key, v->said.ops, v->said.n_ops, sizeof *v->said.ops, call_order) : NULL;
    o->true_rec = o->rec;
    o->replay = o->called && (!r || r->r.graph);
    if (r && !r->r.graph)
      o->rec = r->r.rec_sn;
  }
  for (size_t i = 0; i < v->truth.n_ops; i++)
    if (v->truth.ops[i].replay)
      number_replay(v, &v->truth.ops[i]);
}

static int key_order(const struct ni_true_op *o, const struct ni_said_op *r) {
  CMP_RANK(o, r);
  CMP((int)o->p2p, (int)r->r.kind);
  CMP(o->called ? o->rec : UINT64_MAX, r->r.rec_sn);
  return 0;
}

/* A record the truth allows to be missing because the process ended before it could be written. */
static bool excused_by_end(const struct ni_verify *v, const struct ni_true_op *o) {
  const struct ni_true_proc *p = &v->truth.procs[o->proc];
  if (!p->ended || p->how == NI_END_FINALIZE)
    return false;
  if (strcmp(o->out, "open") == 0)
    return true;
  if (p->how == NI_END_EXIT || p->how == NI_END_QUICK_EXIT)
    return false;
  if (p->interval_us < 0)
    return true;
  return o->end_ns + (uint64_t)p->interval_us * 1000 + 300000000u > p->end_ns;
}

/* Left out by NCCL_INSPECTOR_SAMPLE: the log says how many, test/host/verify.py looks at which. */
static bool sampled_away(struct ni_verify *v, const struct ni_true_op *o) {
  struct ni_said_stats *s = o->called ? ni_said_stats_of(&v->said, o->pid, o->hash, o->rank) : NULL;
  if (!s || !s->sampled[o->p2p])
    return false;
  s->sampled[o->p2p]--;
  s->filtered_true[o->p2p]++;
  return true;
}

static void not_written(struct ni_verify *v, struct ni_true_op *o) {
  const char *why = ni_true_unwritten(&v->truth, o);
  if (!why && sampled_away(v, o)) {
    v->excused++;
    return;
  }
  bool gap = o->called && ni_said_parts_of(&v->said, o, NI_SAID_GAP) > 0;
  if (why || excused_by_end(v, o) || gap) {
    v->excused++;
    if (gap) { /* the log says it was lost: it then counts as dropped, whatever became of it */
      o->in_gap = true;
      return;
    }
    bool thrown = why && strcmp(why, "thrown") == 0 && !ni_true_want_unknown(&v->truth, o);
    bool missing = o->missing && why && strcmp(why, "incomplete") == 0;
    if (o->called && (missing || thrown) && !ni_said_parts_of(&v->said, o, NI_SAID_INCOMPLETE))
      ni_wrong(v, "%s: children missing, and no `incomplete` line says so", ni_verify_name(o));
    return;
  }
  ni_wrong(v, "%s: finished and not in the logs", ni_verify_name(o));
}

static void matched(struct ni_verify *v, struct ni_true_op *o, struct ni_said_op *r) {
  r->used = true;
  if (o->matches++) {
    ni_wrong(v, "%s: written twice", ni_verify_name(o));
    return;
  }
  const char *why = ni_true_unwritten(&v->truth, o);
  if (why && !(strcmp(o->out, "open") == 0 && excused_by_end(v, o))) {
    /* finished in the plugin's eyes before the abort: its values were not kept */
    if (strcmp(why, "abort") == 0) {
      v->excused++;
      return;
    }
    /* What destroy threw away is given up by the observed rule, too, after a second: by its bracket's time.
     */
    if (strcmp(why, "thrown") == 0 && ni_true_want_unknown(&v->truth, o) &&
        r->r.timing == NI_TIMING_COLLECTIVE_CPU) {
      v->excused++;
      return;
    }
    ni_wrong(v, "%s: written, but it is %s", ni_verify_name(o), why);
    return;
  }
  /* finished after the truth was closed: only that it was there is known */
  if (strcmp(o->out, "open") == 0) {
    v->open++;
    return;
  }
  ni_verify_values(v, o, r);
}

/*
 * Communicators where A and H raced: the numbers may be exchanged between operations of one function and
 * number.
 */
static void join_unordered(struct ni_verify *v, struct ni_true_op *o) {
  struct ni_said_op *best = NULL;
  for (size_t i = 0; i < v->said.n_ops; i++) {
    struct ni_said_op *r = &v->said.ops[i];
    if (r->used || r->pid != o->pid || r->hash != o->hash || r->rank != o->rank || (int)r->r.kind != o->p2p ||
        strcmp(r->func, o->func) != 0 || (!o->p2p && r->r.sn != o->sn))
      continue;
    if (!best || r->r.exec_ns == o->exec_ns)
      best = r;
    if (r->r.exec_ns == o->exec_ns)
      break;
  }
  if (best)
    matched(v, o, best);
  else
    not_written(v, o);
}

int ni_verify_main(const char *truth, const char *logs, bool quiet) {
  struct ni_verify v = {0};
  struct ni_log_totals totals;
  ni_truth_load(&v.truth, truth);
  ni_said_load(&v.said, logs, &totals); /* no logs at all can be right after SIGKILL; the truth decides */
  number_by_call(&v);
  if (v.said.n_ops)
    qsort(v.said.ops, v.said.n_ops, sizeof *v.said.ops, rec_order);
  if (v.truth.n_ops)
    qsort(v.truth.ops, v.truth.n_ops, sizeof *v.truth.ops, op_order);
  if (totals.bad)
    ni_wrong(&v, "%llu lines or files of the logs cannot be read", (unsigned long long)totals.bad);
  size_t i = 0, j = 0;
  while (i < v.truth.n_ops) {
    struct ni_true_op *o = &v.truth.ops[i];
    if (o->unordered || (j < v.said.n_ops && v.said.ops[j].used)) {
      if (o->unordered)
        i++;
      else
        j++;
      if (o->unordered)
        join_unordered(&v, o);
      continue;
    }
    int order = j < v.said.n_ops ? key_order(o, &v.said.ops[j]) : -1;
    if (order > 0) {
      j++; /* looked at again below */
    } else {
      if (order == 0)
        matched(&v, o, &v.said.ops[j++]);
      else if (!o->matches)
        not_written(&v, o);
      /* the same number once more */
      if (order == 0 && j < v.said.n_ops && key_order(o, &v.said.ops[j]) == 0)
        continue;
      i++;
    }
  }
  for (struct ni_said_op *r = v.said.ops; r && r < v.said.ops + v.said.n_ops; r++)
    if (!r->used)
      ni_wrong(&v, "pid %d comm 0x%llx rank %d %s sn %llu rec %llu: in the logs, not in the truth", r->pid,
               (unsigned long long)r->hash, r->rank, r->func, (unsigned long long)r->r.sn,
               (unsigned long long)r->r.rec_sn);
  ni_verify_calls(&v);
  ni_verify_events(&v);
  ni_verify_stats(&v);
  if (!quiet || v.errors) {
    printf("verify: %zu %s, %llu agree", v.truth.n_ops, ni_plural(v.truth.n_ops, "operation", "operations"),
           (unsigned long long)v.agreed);
    if (v.excused)
      printf(", %llu rightly not written", (unsigned long long)v.excused);
    if (v.open)
      printf(", %llu finished during the end", (unsigned long long)v.open);
    printf(", %zu %s, %llu %s: %llu %s\n", v.said.n_ops, ni_plural(v.said.n_ops, "record", "records"),
           (unsigned long long)totals.files, ni_plural(totals.files, "file", "files"),
           (unsigned long long)v.errors, ni_plural(v.errors, "disagreement", "disagreements"));
  }
  int rc = v.errors ? NI_SIM_FAILED : 0;
  size_t called = 0;
  for (size_t k = 0; k < v.truth.n_ops; k++)
    called += v.truth.ops[k].called;
  if (!called) { /* an agreement about nothing is none */
    ni_sim_say("%s: no operation was ever shown to a plugin: nothing was verified", truth);
    rc = NI_SIM_FAILED;
  }
  ni_truth_free(&v.truth);
  ni_said_free(&v.said);
  return rc;
}
