/*
 * Is every operation in the log once, in order, with the right values, and does the accounting close? See
 * check.h.
 */
#include "check.h"

#include <getopt.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "test/nccl_sim/verify/log_source.h"
#include "test/nccl_sim/core/sim.h"

enum { SHOWN = 8, LOOK_AHEAD = 16, MAX_GROUP = 256 };

void ni_gpu_row(struct ni_gpu_check *c, const char *verdict, const char *what, const char *fmt, ...) {
  va_list ap;
  printf("%s\t%s\t", verdict, what);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  if (strcmp(verdict, "FAIL") == 0)
    c->failures++;
}

static void keep(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static void take_line(const struct ni_line *l, void *arg) {
  struct ni_gpu_check *c = arg;
  if (l->kind == NI_LINE_PROCESS && l->process.interface) {
    c->tags = strcmp(l->process.interface, "v7") >= 0;
  } else if (l->kind == NI_LINE_OP) {
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
    /* one a life of the plugin: NCCL unloads it with the last communicator and may load it again */
    if (!l->ident.comm_hash) {
      for (size_t i = 0; i < c->truth.n_processes; i++)
        if (c->truth.processes[i].pid == (int)l->meta.pid && !c->truth.processes[i].final) {
          c->truth.processes[i].final = true;
          c->finals++;
        }
    } else
      for (int k = 0; k < 2; k++) {
        const struct ni_kind_stats *s = &l->stats.kind[k];
        c->started += s->started;
        c->written += s->written;
        c->filtered += s->filtered_by.total;
        c->dropped += s->dropped_by.total;
        c->incomplete += s->incomplete;
        c->in_flight += s->in_flight;
      }
  }
}

#define CMP(a, b) \
  if ((a) != (b)) \
  return (a) < (b) ? -1 : 1

static int rec_order(const void *x, const void *y) {
  const struct ni_gpu_rec *a = x, *b = y;
  CMP(a->pid, b->pid);
  int n = strcmp(a->comm, b->comm);
  if (n)
    return n;
  CMP(a->r.kind, b->r.kind);
  CMP(a->r.rec_sn, b->r.rec_sn);
  return 0;
}

static const struct ni_gpu_truth *sorting; /* qsort has no argument */
static int op_order(const void *x, const void *y) {
  const struct ni_gpu_true_op *a = x, *b = y;
  CMP(sorting->processes[a->process].pid, sorting->processes[b->process].pid);
  int n = strcmp(a->op.comm, b->op.comm);
  if (n)
    return n;
  CMP(a->op.peer >= 0, b->op.peer >= 0);
  CMP(a->order, b->order);
  return 0;
}

/* What is wrong with a record for this operation; NULL: nothing. */
static const char *differs(const struct ni_gpu_check *c, const struct ni_gpu_true_op *o,
                           const struct ni_gpu_rec *r) {
  const struct ni_gpu_process *p = &c->truth.processes[o->process];
  bool coll = o->op.peer < 0,
       rooted = strcmp(o->op.func, "Broadcast") == 0 || strcmp(o->op.func, "Reduce") == 0;
  if (strcmp(o->op.func, r->func))
    return "function";
  if (o->op.bytes != r->r.msg_bytes)
    return "size";
  if (strcmp(o->op.dtype, r->dtype))
    return "datatype";
  if (!coll && o->op.peer != r->r.root)
    return "peer";
  if (rooted && o->op.root != r->r.root)
    return "root";
  uint64_t top = UINT64_C(1) << 63, tag = o->op.tag; /* with the top bit it is NCCL's */
  if (c->tags && (tag & top ? tag - top != r->r.nccl_tag : tag != r->r.user_tag))
    return "tag";
  if (coll && !*r->algo)
    return "algorithm"; /* recorded from its call: NCCL never showed the kernel */
  if (coll && *p->algo && strcmp(o->op.func, "AllReduce") == 0 && strcasecmp(p->algo, r->algo))
    return "algorithm";
  if (coll && *p->proto && strcmp(o->op.func, "AllReduce") == 0 && strcasecmp(p->proto, r->proto))
    return "protocol";
  return NULL;
}

struct tally {
  uint64_t expected, matched, missing, extra, wrong, misplaced, lost, invisible, unfinished;
  int shown;
};

static void tell(struct tally *t, const struct ni_gpu_true_op *o, const struct ni_gpu_rec *r,
                 const char *what) {
  if (t->shown++ >= SHOWN)
    return;
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

/*
 * How many of the records from `at` on are what ops[i..k) were, each for one of them. take: remember the
 * pairs.
 */
static size_t match_set(const struct ni_gpu_check *c, struct ni_gpu_true_op *ops, size_t i, size_t k,
                        const struct ni_gpu_rec *recs, size_t m, size_t at, size_t width, bool take) {
  bool used[MAX_GROUP] = {false};
  size_t matched = 0;
  for (; i < k; i++) {
    if (ni_gpu_invisible(&c->truth, &ops[i]))
      continue;
    for (size_t q = 0; q < width && q < MAX_GROUP && at + q < m; q++) {
      if (used[q] || differs(c, &ops[i], &recs[at + q]))
        continue;
      used[q] = true;
      matched++;
      if (take)
        ops[i].rec = &recs[at + q];
      break;
    }
  }
  return matched;
}

/*
 * ops[*k]: the end of the group that begins with ops[i], an ungrouped operation alone. Returns its visible
 * operations.
 */
static size_t group_end(const struct ni_gpu_check *c, const struct ni_gpu_true_op *ops, size_t i, size_t n,
                        size_t *k) {
  size_t width = 0;
  for (*k = i; *k < n && (*k == i || (ops[i].op.group && ops[*k].op.group == ops[i].op.group)); ++*k)
    width += !ni_gpu_invisible(&c->truth, &ops[*k]);
  return width;
}

/* How well the operations from i on go with the records from `at` on, for a stretch. */
static size_t fits(const struct ni_gpu_check *c, struct ni_gpu_true_op *ops, size_t i, size_t n,
                   const struct ni_gpu_rec *recs, size_t m, size_t at) {
  size_t good = 0, seen = 0, k;
  for (; i < n && seen < LOOK_AHEAD; i = k) {
    size_t width = group_end(c, ops, i, n, &k);
    good += match_set(c, ops, i, k, recs, m, at, width, false);
    seen += width;
    at += width;
  }
  return good;
}

/*
 * One communicator, process and kind: ops[0..n) and recs[0..m), both in order. Where a group does not find
 * its records, one was told wrongly (both go on), is missing (the records wait) or is there too often (the
 * operations wait): whatever the following operations agree with best. What is left on both sides and would
 * match elsewhere was out of order.
 */
static void match(struct ni_gpu_check *c, struct ni_gpu_true_op *ops, size_t n, const struct ni_gpu_rec *recs,
                  size_t m, struct tally *t) {
  size_t at = 0, k;
  for (size_t i = 0; i < n; i = k) {
    size_t width = group_end(c, ops, i, n, &k), from = at;
    size_t matched = match_set(c, ops, i, k, recs, m, at, width, false), next = at + width;
    if (matched < width) {
      size_t best = matched + fits(c, ops, k, n, recs, m, next),
             score = matched + fits(c, ops, k, n, recs, m, at + matched);
      if (score > best) {
        best = score;
        next = at + matched;
      }
      for (size_t e = 1; e <= LOOK_AHEAD && at + e < m; e++) {
        score = match_set(c, ops, i, k, recs, m, at + e, width, false) +
            fits(c, ops, k, n, recs, m, at + e + width);
        if (score > best) {
          best = score;
          from = at + e;
          next = from + width;
        }
      }
    }
    match_set(c, ops, i, k, recs, m, from, width, true);
    at = next;
  }

  bool *used = calloc(m + 1, 1);
  if (!used)
    ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < n; i++) {
    struct ni_gpu_true_op *o = &ops[i];
    if (strcmp(o->op.how, "lost") == 0)
      t->lost++;
    else if (ni_gpu_invisible(&c->truth, o))
      t->invisible++;
    else {
      t->expected++;
      t->matched += o->rec != NULL;
    }
    if (o->rec)
      used[o->rec - recs] = true;
  }
  /* what is left: in another place, then with another value, else missing */
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < n; i++) {
      struct ni_gpu_true_op *o = &ops[i];
      if (o->rec || ni_gpu_invisible(&c->truth, o))
        continue;
      bool lost = strcmp(o->op.how, "lost") == 0;
      size_t q = 0;
      while (
          q < m &&
          (used[q] || (pass == 0 ? differs(c, o, &recs[q]) != NULL : strcmp(o->op.func, recs[q].func) != 0)))
        q++;
      if (q < m && (pass == 0 || !lost)) {
        tell(t, o, &recs[q], pass == 0 ? "not where it was issued" : differs(c, o, &recs[q]));
        used[q] = true;
        if (pass == 1)
          t->wrong++;
        else {
          o->rec = &recs[q];
          t->misplaced += !lost;
          t->matched += !lost;
        }
      } else if (pass == 1 && !lost && c->truth.processes[o->process].exited &&
                 t->unfinished < c->in_flight) {
        /* finished on the device, but NCCL had not said so when the process left; the log states it */
        t->unfinished++;
      } else if (pass == 1 && !lost) {
        tell(t, o, NULL, "not in the log");
        t->missing++;
      }
    }
  for (size_t q = 0; q < m; q++)
    if (!used[q]) {
      t->extra++;
      tell(t, NULL, &recs[q], "never issued");
    }
  free(used);
}

/*
 * Takes records out of the list that were made from an API call alone: they come late, so their place says
 * nothing.
 */
static void part_calls(struct ni_gpu_check *c) {
  size_t kept = 0;
  for (size_t i = 0; i < c->n_recs; i++) {
    const struct ni_gpu_process *p = c->truth.processes, *end = p + c->truth.n_processes;
    while (p < end && p->pid != c->recs[i].pid)
      p++;
    if (p < end && ni_gpu_no_broadcast(p) && strcmp(c->recs[i].func, "Broadcast") == 0) {
      c->calls = ni_gpu_grow(c->calls, c->n_calls, sizeof *c->calls);
      c->calls[c->n_calls++] = c->recs[i];
    } else {
      c->recs[kept++] = c->recs[i];
    }
  }
  c->n_recs = kept;
}

/*
 * Each Broadcast that NCCL shows by its call only: recorded with its size, or none of them (before v5 there
 * are no calls).
 */
static void check_calls(struct ni_gpu_check *c, uint64_t issued) {
  bool *used = calloc(c->n_calls + 1, 1);
  uint64_t found = 0;
  if (!used)
    ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < c->truth.n_ops; i++) {
    const struct ni_gpu_true_op *o = &c->truth.ops[i];
    if (!ni_gpu_invisible(&c->truth, o))
      continue;
    size_t q = 0;
    while (q < c->n_calls &&
           (used[q] || c->calls[q].pid != c->truth.processes[o->process].pid ||
            c->calls[q].r.msg_bytes != o->op.bytes))
      q++;
    if (q < c->n_calls) {
      used[q] = true;
      found++;
    }
  }
  free(used);
  if (!issued && !c->n_calls)
    return;
  bool none = c->n_calls == 0, all = found == issued && found == c->n_calls;
  ni_gpu_row(c,
             none      ? "info"
                 : all ? "ok"
                       : "FAIL",
             "Broadcast, shown by its call only",
             "%llu issued, %zu recorded, %llu of them with the right size; this release raises no kernel "
             "event for them",
             (unsigned long long)issued, c->n_calls, (unsigned long long)found);
}

/* Records without a name are those of the process's only communicator. */
static void name_records(struct ni_gpu_check *c) {
  for (size_t i = 0; i < c->n_recs; i++)
    for (size_t k = 0; !*c->recs[i].comm && k < c->truth.n_ops; k++)
      if (c->truth.processes[c->truth.ops[k].process].pid == c->recs[i].pid)
        keep(c->recs[i].comm, sizeof c->recs[i].comm, c->truth.ops[k].op.comm);
}

static void match_all(struct ni_gpu_check *c) {
  struct tally t = {0};
  if (c->unnamed)
    name_records(c);
  part_calls(c);
  sorting = &c->truth;
  qsort(c->truth.ops, c->truth.n_ops, sizeof *c->truth.ops, op_order);
  qsort(c->recs, c->n_recs, sizeof *c->recs, rec_order);
  size_t r = 0;
  for (size_t i = 0; i < c->truth.n_ops;) {
    struct ni_gpu_true_op *o = &c->truth.ops[i];
    int pid = c->truth.processes[o->process].pid;
    size_t k = i;
    while (k < c->truth.n_ops && c->truth.ops[k].process == o->process &&
           !strcmp(c->truth.ops[k].op.comm, o->op.comm) &&
           (c->truth.ops[k].op.peer >= 0) == (o->op.peer >= 0))
      k++;
    enum ni_kind kind = o->op.peer >= 0 ? NI_KIND_P2P : NI_KIND_COLL;
    struct ni_gpu_rec key = {.pid = pid, .r.kind = kind};
    keep(key.comm, sizeof key.comm, o->op.comm);
    while (r < c->n_recs && rec_order(&c->recs[r], &key) < 0) {
      t.extra++;
      tell(&t, NULL, &c->recs[r++], "never issued");
    }
    size_t e = r;
    while (e < c->n_recs && c->recs[e].pid == pid && !strcmp(c->recs[e].comm, o->op.comm) &&
           c->recs[e].r.kind == kind)
      e++;
    match(c, o, k - i, &c->recs[r], e - r, &t);
    r = e;
    i = k;
  }
  for (; r < c->n_recs; r++) {
    t.extra++;
    tell(&t, NULL, &c->recs[r], "never issued");
  }
  ni_gpu_row(c, t.missing || t.extra || !(t.matched + t.wrong) ? "FAIL" : "ok", "each operation once",
             "%llu issued, %llu in the log, %llu missing, %llu never issued", (unsigned long long)t.expected,
             (unsigned long long)(t.matched + t.wrong), (unsigned long long)t.missing,
             (unsigned long long)t.extra);
  ni_gpu_row(c, t.wrong ? "FAIL" : "ok", "size, datatype, root, peer, algorithm", "%llu of %llu wrong",
             (unsigned long long)t.wrong, (unsigned long long)t.expected);
  ni_gpu_row(c, t.misplaced ? "FAIL" : "ok", "order of issue", "%llu out of order",
             (unsigned long long)t.misplaced);
  if (t.unfinished)
    ni_gpu_row(c, "info", "in flight at exit",
               "%llu operations: the process left before NCCL's progress thread had told of them; the log "
               "states that",
               (unsigned long long)t.unfinished);
  check_calls(c, t.invisible);
  if (c->truth.skipped_time || c->truth.skipped_other)
    ni_gpu_row(c, "info", "left out of the plan", "%zu for want of time, %zu not supported here",
               c->truth.skipped_time, c->truth.skipped_other);

  uint64_t sum = c->written + c->filtered + c->dropped + c->incomplete + c->in_flight;
  bool closes = c->started == sum && c->written == c->n_recs + c->n_calls && !c->filtered && !c->dropped &&
      !c->bad_lines && c->finals == c->truth.n_processes &&
      c->incomplete + c->in_flight <= t.lost + t.unfinished && c->started == t.expected + t.lost + c->n_calls;
  ni_gpu_row(
      c, closes ? "ok" : "FAIL", "accounting",
      "started %llu = written %llu + filtered %llu + dropped %llu + incomplete %llu + in flight %llu; final "
      "lines of %llu of %zu processes, %llu bad lines",
      (unsigned long long)c->started, (unsigned long long)c->written, (unsigned long long)c->filtered,
      (unsigned long long)c->dropped, (unsigned long long)c->incomplete, (unsigned long long)c->in_flight,
      (unsigned long long)c->finals, c->truth.n_processes, (unsigned long long)c->bad_lines);
}

static void timing_sources(struct ni_gpu_check *c) {
  uint64_t n[NI_TIMING_COUNT] = {0}, all = 0;
  for (size_t i = 0; i < c->truth.n_ops; i++) {
    const struct ni_gpu_true_op *o = &c->truth.ops[i];
    /* no kernel event for a rank's own */
    if (!o->rec || o->op.peer == c->truth.processes[o->process].rank)
      continue;
    n[o->rec->r.timing]++;
    all++;
  }
  if (!all)
    return;
  double share = 100.0 * (double)n[NI_TIMING_KERNEL_GPU] / (double)all;
  ni_gpu_row(c,
             c->any_timing     ? "info"
                 : share >= 99 ? "ok"
                               : "FAIL",
             "timed by the GPU", "%.2f %% (%llu by kernel_cpu, %llu by collective_cpu)", share,
             (unsigned long long)n[NI_TIMING_KERNEL_CPU], (unsigned long long)n[NI_TIMING_COLLECTIVE_CPU]);
}

int main(int argc, char **argv) {
  static struct ni_gpu_check c = {.busbw_percent = 2};
  static const struct option options[] = {{"any-timing", no_argument, NULL, 'a'},
                                          {"shared-gpu", no_argument, NULL, 's'},
                                          {"unnamed", no_argument, NULL, 'u'},
                                          {"costs", no_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
  struct ni_log_totals totals;
  bool costs = false;
  for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
    if (o == 'a')
      c.any_timing = true;
    else if (o == 's')
      c.shared_gpu = true;
    else if (o == 'u')
      c.unnamed = true;
    else if (o == 'c')
      costs = true;
    else
      return 64;
  if (argc - optind != (costs ? 1 : 2)) {
    fprintf(stderr,
            "Usage: gpu_check [--any-timing] [--shared-gpu] [--unnamed] TRUTH-DIR LOG-DIR\n       gpu_check "
            "--costs "
            "TRUTH-DIR\n");
    return 64;
  }
  ni_gpu_truth_read(&c.truth, argv[optind]);
  if (costs) {
    for (size_t i = 0; i < c.truth.n_costs; i++)
      printf("%s\t%llu\n", c.truth.costs[i].what, (unsigned long long)c.truth.costs[i].ns);
    return 0;
  }
  if (ni_logs_read(argv[optind + 1], take_line, &c, &totals) < 0) {
    ni_gpu_row(&c, "FAIL", "each operation once", "there is no log in %s: the plugin was not loaded",
               argv[optind + 1]);
    return 1;
  }
  c.bad_lines = totals.bad + totals.damaged;
  size_t done = 0;
  for (size_t i = 0; i < c.truth.n_processes; i++)
    done += c.truth.processes[i].done;
  ni_gpu_row(&c, done == c.truth.n_processes ? "ok" : "FAIL", "the job itself",
             "%zu of %zu ranks came to their end", done, c.truth.n_processes);
  match_all(&c);
  timing_sources(&c);
  ni_gpu_check_times(&c);
  return c.failures ? 1 : 0;
}
