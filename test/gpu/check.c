/* Is every operation in the log once, in order, with the right values, and does the accounting close? See check.h. */
#include "check.h"

#include <getopt.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "../nccl_sim/log_source.h"
#include "../nccl_sim/sim.h"

enum { SHOWN = 8, LOOK_AHEAD = 16 };

void ni_gpu_row(struct ni_gpu_check *c, const char *verdict, const char *what, const char *fmt, ...) {
  va_list ap;
  printf("%s\t%s\t", verdict, what);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  if (strcmp(verdict, "FAIL") == 0) c->failures++;
}

static void keep(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static void take_line(const struct ni_line *l, void *arg) {
  struct ni_gpu_check *c = arg;
  if (l->kind == NI_LINE_OP) {
    c->recs = ni_gpu_grow(c->recs, c->n_recs, sizeof *c->recs);
    struct ni_gpu_rec *r = &c->recs[c->n_recs++];
    memset(r, 0, sizeof *r);
    r->pid = (int)l->meta.pid;
    r->n_ranks = l->ident.n_ranks;
    r->r = l->op;
    keep(r->comm, sizeof r->comm, l->ident.comm_name);
    keep(r->func, sizeof r->func, l->op.func);
    keep(r->dtype, sizeof r->dtype, l->op.datatype);
    keep(r->algo, sizeof r->algo, l->op.algo);
    keep(r->proto, sizeof r->proto, l->op.proto);
  } else if (l->kind == NI_LINE_DUMP_STATS && l->stats.has_accounting && l->stats.final) {
    if (!l->ident.comm_hash) c->finals++;
    else
      for (int k = 0; k < 2; k++) {
        const struct ni_kind_stats *s = &l->stats.kind[k];
        c->started += s->started, c->written += s->written, c->filtered += s->filtered_by.total;
        c->dropped += s->dropped_by.total, c->incomplete += s->incomplete, c->in_flight += s->in_flight;
      }
  }
}

#define CMP(a, b) \
  if ((a) != (b)) return (a) < (b) ? -1 : 1

static int rec_order(const void *x, const void *y) {
  const struct ni_gpu_rec *a = x, *b = y;
  CMP(a->pid, b->pid);
  int n = strcmp(a->comm, b->comm);
  if (n) return n;
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.rec_sn, b->r.rec_sn);
  return 0;
}

static const struct ni_gpu_truth *sorting; /* qsort has no argument */
static int op_order(const void *x, const void *y) {
  const struct ni_gpu_true_op *a = x, *b = y;
  CMP(sorting->processes[a->process].pid, sorting->processes[b->process].pid);
  int n = strcmp(a->op.comm, b->op.comm);
  if (n) return n;
  CMP(a->op.peer >= 0, b->op.peer >= 0);
  CMP(a->order, b->order);
  return 0;
}

/* What is wrong with a record for this operation; NULL: nothing. */
static const char *differs(const struct ni_gpu_check *c, const struct ni_gpu_true_op *o, const struct ni_gpu_rec *r) {
  const struct ni_gpu_process *p = &c->truth.processes[o->process];
  bool coll = o->op.peer < 0, rooted = strcmp(o->op.func, "Broadcast") == 0 || strcmp(o->op.func, "Reduce") == 0;
  if (strcmp(o->op.func, r->func)) return "function";
  if (o->op.bytes != r->r.msg_bytes) return "size";
  if (strcmp(o->op.dtype, r->dtype)) return "datatype";
  if (!coll && o->op.peer != r->r.root) return "peer";
  if (rooted && o->op.root != r->r.root) return "root";
  if (coll && *p->algo && strcmp(o->op.func, "AllReduce") == 0 && strcasecmp(p->algo, r->algo)) return "algorithm";
  if (coll && *p->proto && strcmp(o->op.func, "AllReduce") == 0 && strcasecmp(p->proto, r->proto)) return "protocol";
  return NULL;
}

struct tally {
  uint64_t expected, matched, missing, extra, wrong, misplaced, lost, invisible;
  int shown;
};

static void tell(struct tally *t, const struct ni_gpu_true_op *o, const struct ni_gpu_rec *r, const char *what) {
  if (t->shown++ >= SHOWN) return;
  fprintf(stderr, "gpu_check: %s:", what);
  if (o)
    fprintf(stderr, " issued %s %s %llu B %s root %d peer %d (%s)", o->op.comm, o->op.func,
            (unsigned long long)o->op.bytes, o->op.dtype, o->op.root, o->op.peer, o->op.how);
  if (r)
    fprintf(stderr, "; logged %s %s %llu B %s %s/%s root or peer %d rec_sn %llu", r->comm, r->func,
            (unsigned long long)r->r.msg_bytes, r->dtype, r->algo, r->proto, r->r.root,
            (unsigned long long)r->r.rec_sn);
  fputc('\n', stderr);
}

/* Does the record belong to one of the next operations? Then what was looked for is missing, and not told wrongly. */
static bool soon(const struct ni_gpu_check *c, const struct ni_gpu_true_op *ops, size_t from, size_t n,
                 const struct ni_gpu_rec *r) {
  for (size_t i = from; i < n && i < from + LOOK_AHEAD; i++)
    if (!differs(c, &ops[i], r)) return true;
  return false;
}

/*
 * One communicator, process and kind: ops[0..n) and recs[0..m), both in order. Each operation, or each group as a set,
 * is looked for at its place; what is not there is looked for a little further on, so that one loss, or one record too
 * many, is one fault and what follows is in its place again.
 */
static void match(struct ni_gpu_check *c, struct ni_gpu_true_op *ops, size_t n, const struct ni_gpu_rec *recs, size_t m,
                  struct tally *t) {
  bool *used = calloc(m + 1, 1);
  size_t at = 0; /* records before are used or given up */
  if (!used) ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < n;) {
    size_t k = i + 1, width = 0; /* ops[i..k) may come in any order, in recs[at..at + width) */
    while (ops[i].op.group && k < n && ops[k].op.group == ops[i].op.group) k++;
    for (size_t q = i; q < k; q++) width += !ni_gpu_invisible(&c->truth, &ops[q]);
    size_t further = at + width;
    for (; i < k; i++) {
      struct ni_gpu_true_op *o = &ops[i];
      bool lost = strcmp(o->op.how, "lost") == 0;
      size_t found = m, here = at;
      if (ni_gpu_invisible(&c->truth, o)) {
        t->invisible++;
        continue;
      }
      if (lost) t->lost++;
      else t->expected++;
      for (size_t q = at; q < m && q < at + width + LOOK_AHEAD && found == m; q++)
        if (!used[q] && !differs(c, o, &recs[q])) found = q;
      while (here < m && used[here]) here++;
      if (found < at + width && found < m) {
        used[found] = true;
        o->rec = &recs[found];
        t->matched += !lost;
      } else if (lost) {
        continue;
      } else if (found < m) {
        tell(t, o, &recs[found], "not where it was issued");
        t->misplaced++;
        t->matched++;
        used[found] = true;
        o->rec = &recs[found];
        if (found + 1 > further) further = found + 1;
      } else if (here < at + width && here < m && !strcmp(o->op.func, recs[here].func) &&
                 !soon(c, ops, k, n, &recs[here])) {
        /* The same function with another value stands in its place: it is that operation, told wrongly. */
        tell(t, o, &recs[here], differs(c, o, &recs[here]));
        t->wrong++;
        used[here] = true;
      } else {
        tell(t, o, NULL, "not in the log");
        t->missing++;
      }
    }
    /* After something came late everything before it is given up; else the next is behind what is used without a hole. */
    if (further > at + width) at = further;
    while (at < m && used[at]) at++;
  }
  for (size_t q = 0; q < m; q++)
    if (!used[q]) t->extra++, tell(t, NULL, &recs[q], "never issued");
  free(used);
}

static void match_all(struct ni_gpu_check *c) {
  struct tally t = {0};
  sorting = &c->truth;
  qsort(c->truth.ops, c->truth.n_ops, sizeof *c->truth.ops, op_order);
  qsort(c->recs, c->n_recs, sizeof *c->recs, rec_order);
  size_t r = 0;
  for (size_t i = 0; i < c->truth.n_ops;) {
    struct ni_gpu_true_op *o = &c->truth.ops[i];
    int pid = c->truth.processes[o->process].pid;
    size_t k = i;
    while (k < c->truth.n_ops && c->truth.ops[k].process == o->process &&
           !strcmp(c->truth.ops[k].op.comm, o->op.comm) && (c->truth.ops[k].op.peer >= 0) == (o->op.peer >= 0))
      k++;
    enum ni_kind kind = o->op.peer >= 0 ? NI_KIND_P2P : NI_KIND_COLL;
    struct ni_gpu_rec key = {.pid = pid, .r.kind = kind};
    keep(key.comm, sizeof key.comm, o->op.comm);
    while (r < c->n_recs && rec_order(&c->recs[r], &key) < 0) t.extra++, tell(&t, NULL, &c->recs[r++], "never issued");
    size_t e = r;
    while (e < c->n_recs && c->recs[e].pid == pid && !strcmp(c->recs[e].comm, o->op.comm) && c->recs[e].r.kind == kind)
      e++;
    match(c, o, k - i, &c->recs[r], e - r, &t);
    r = e;
    i = k;
  }
  for (; r < c->n_recs; r++) t.extra++, tell(&t, NULL, &c->recs[r], "never issued");
  ni_gpu_row(c, t.missing || t.extra || !(t.matched + t.wrong) ? "FAIL" : "ok", "each operation once",
             "%llu issued, %llu in the log, %llu missing, %llu never issued", (unsigned long long)t.expected,
             (unsigned long long)(t.matched + t.wrong), (unsigned long long)t.missing, (unsigned long long)t.extra);
  ni_gpu_row(c, t.wrong ? "FAIL" : "ok", "size, datatype, root, peer, algorithm", "%llu of %llu wrong",
             (unsigned long long)t.wrong, (unsigned long long)t.expected);
  ni_gpu_row(c, t.misplaced ? "FAIL" : "ok", "order of issue", "%llu out of order", (unsigned long long)t.misplaced);
  if (t.invisible)
    ni_gpu_row(c, "info", "not shown by NCCL", "%llu Broadcasts: this release raises no event for them",
               (unsigned long long)t.invisible);
  if (c->truth.skipped_time || c->truth.skipped_other)
    ni_gpu_row(c, "info", "left out of the plan", "%zu for want of time, %zu not supported here", c->truth.skipped_time,
               c->truth.skipped_other);

  uint64_t sum = c->written + c->filtered + c->dropped + c->incomplete + c->in_flight;
  bool closes = c->started == sum && c->written == c->n_recs && !c->filtered && !c->dropped && !c->bad_lines &&
                c->finals == c->truth.n_processes && c->incomplete + c->in_flight <= t.lost &&
                c->started == t.expected + t.lost;
  ni_gpu_row(
      c, closes ? "ok" : "FAIL", "accounting",
      "started %llu = written %llu + filtered %llu + dropped %llu + incomplete %llu + in flight %llu; %llu final "
      "lines of %zu processes, %llu bad lines",
      (unsigned long long)c->started, (unsigned long long)c->written, (unsigned long long)c->filtered,
      (unsigned long long)c->dropped, (unsigned long long)c->incomplete, (unsigned long long)c->in_flight,
      (unsigned long long)c->finals, c->truth.n_processes, (unsigned long long)c->bad_lines);
}

static void timing_sources(struct ni_gpu_check *c) {
  uint64_t n[NI_TIMING_COUNT] = {0}, all = 0;
  for (size_t i = 0; i < c->truth.n_ops; i++) {
    const struct ni_gpu_true_op *o = &c->truth.ops[i];
    if (!o->rec || o->op.peer == c->truth.processes[o->process].rank) continue; /* no kernel event for a rank's own */
    n[o->rec->r.timing]++, all++;
  }
  if (!all) return;
  double share = 100.0 * (double)n[NI_TIMING_KERNEL_GPU] / (double)all;
  ni_gpu_row(c,
             c->any_timing ? "info"
             : share >= 99 ? "ok"
                           : "FAIL",
             "timed by the GPU", "%.2f %% (%llu by kernel_cpu, %llu by collective_cpu)", share,
             (unsigned long long)n[NI_TIMING_KERNEL_CPU], (unsigned long long)n[NI_TIMING_COLLECTIVE_CPU]);
}

int main(int argc, char **argv) {
  static struct ni_gpu_check c = {.busbw_percent = 2};
  static const struct option options[] = {{"any-timing", no_argument, NULL, 'a'},
                                          {"shared-gpu", no_argument, NULL, 's'},
                                          {"costs", no_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
  struct ni_log_totals totals;
  bool costs = false;
  for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
    if (o == 'a') c.any_timing = true;
    else if (o == 's') c.shared_gpu = true;
    else if (o == 'c') costs = true;
    else return 64;
  if (argc - optind != (costs ? 1 : 2)) {
    fprintf(stderr,
            "Usage: gpu_check [--any-timing] [--shared-gpu] TRUTH-DIR LOG-DIR\n       gpu_check --costs TRUTH-DIR\n");
    return 64;
  }
  ni_gpu_truth_read(&c.truth, argv[optind]);
  if (costs) {
    for (size_t i = 0; i < c.truth.n_costs; i++)
      printf("%s\t%llu\n", c.truth.costs[i].what, (unsigned long long)c.truth.costs[i].ns);
    return 0;
  }
  if (ni_logs_read(argv[optind + 1], take_line, &c, &totals) < 0) {
    ni_gpu_row(&c, "FAIL", "each operation once", "there is no log in %s: the plugin was not loaded", argv[optind + 1]);
    return 1;
  }
  c.bad_lines = totals.bad + totals.damaged;
  size_t done = 0;
  for (size_t i = 0; i < c.truth.n_processes; i++) done += c.truth.processes[i].done;
  ni_gpu_row(&c, done == c.truth.n_processes ? "ok" : "FAIL", "the job itself", "%zu of %zu ranks came to their end",
             done, c.truth.n_processes);
  match_all(&c);
  timing_sources(&c);
  ni_gpu_check_times(&c);
  return c.failures ? 1 : 0;
}
