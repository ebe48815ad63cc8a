/*
 * nccl-sim --pool-report: how large the plugin's pools must be for a workload, and whether its own figures
 * agree.
 *
 * From the truth: the most operations in flight at once (start call to last child), and the most slots held
 * when a slot is also kept until the next write, that is one dump interval longer. From the logs: what the
 * pools reached, what they dropped. Agreement means: dropped as stated is the number of finished operations
 * that have no record, and the high water of a pool that dropped nothing is no less than what was in flight.
 * Both are per communicator, as the pools are. One thread; exit status 0 agrees, 1 does not.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log_source.h"
#include "test/nccl_sim/modes.h"
#include "truth_read.h"

struct pool { /* by (pid, communicator, rank, kind) */
  int pid, rank, p2p;
  uint64_t hash;
  uint64_t started, finished, in_flight, held;                                  /* truth */
  uint64_t capacity, high_water, growths, bytes, slot, records, stated_dropped; /* logs */
  bool seen;
};

struct report {
  struct ni_true truth;
  struct pool *pools;
  size_t n;
  uint64_t arena_high, arena_cap;
};

struct edge {
  uint64_t at;
  int step;
};

static int by_time(const void *x, const void *y) {
  const struct edge *a = x, *b = y;
  if (a->at != b->at)
    return a->at < b->at ? -1 : 1;
  return a->step - b->step; /* an end before a start at the same time */
}

static uint64_t peak(struct edge *e, size_t n) {
  int64_t now = 0, most = 0;
  qsort(e, n, sizeof *e, by_time);
  for (size_t i = 0; i < n; i++) {
    now += e[i].step;
    if (now > most)
      most = now;
  }
  return (uint64_t)most;
}

static struct pool *pool_of(struct report *r, int pid, uint64_t hash, int rank, int p2p, bool make) {
  for (size_t i = 0; i < r->n; i++) {
    struct pool *p = &r->pools[i];
    if (p->hash == hash && p->rank == rank && p->p2p == p2p && p->pid == pid)
      return p;
  }
  if (!make)
    return NULL;
  struct pool *p = NI_ADD(r->pools, r->n);
  *p = (struct pool){.pid = pid, .rank = rank, .p2p = p2p, .hash = hash};
  return p;
}

static void take_line(const struct ni_line *l, void *arg) {
  struct report *r = arg;
  if (l->kind == NI_LINE_POOL_STATS && l->pool.kind) {
    if (l->pool.kind[0] == 'a') {
      if (l->pool.high_water_bytes > r->arena_high)
        r->arena_high = l->pool.high_water_bytes;
      r->arena_cap = l->pool.cap_bytes;
      return;
    }
    bool p2p = strcmp(l->pool.kind, "p2p") == 0;
    if (!p2p && strcmp(l->pool.kind, "coll") != 0)
      return; /* events' pools have no sizes to recommend */
    struct pool *p = pool_of(r, (int)l->meta.pid, l->ident.comm_hash, l->ident.rank, p2p, false);
    if (!p)
      return;
    p->seen = true;
    p->capacity = l->pool.capacity;
    if (l->pool.high_water > p->high_water)
      p->high_water = l->pool.high_water;
    p->growths = l->pool.growths;
    p->bytes = l->pool.bytes;
    p->slot = l->pool.slot_bytes;
  } else if (l->kind == NI_LINE_OP) {
    struct pool *p =
        pool_of(r, (int)l->meta.pid, l->ident.comm_hash, l->ident.rank, l->op.kind == NI_KIND_P2P, false);
    if (p)
      p->records++;
  } else if (l->kind == NI_LINE_DUMP_STATS && l->stats.has_accounting) {
    for (int k = 0; k < 2; k++) {
      struct pool *p = pool_of(r, (int)l->meta.pid, l->ident.comm_hash, l->ident.rank, k, false);
      if (p)
        p->stated_dropped = l->stats.kind[k].dropped_by.total;
    }
  }
}

static void measure(struct report *r, struct pool *p) {
  size_t n = 0;
  struct edge *e = ni_xalloc(2 * p->started * sizeof *e);
  for (int keep = 0; keep < 2; keep++) {
    n = 0;
    for (size_t i = 0; i < r->truth.n_ops; i++) {
      const struct ni_true_op *o = &r->truth.ops[i];
      if (!o->called || o->hash != p->hash || o->rank != p->rank || o->pid != p->pid || (int)o->p2p != p->p2p)
        continue;
      long long interval = r->truth.procs[o->proc].interval_us;
      /* Without periodic writes a slot is held to the end. */
      uint64_t hold = !keep ? 0 : interval < 0 ? UINT64_MAX / 4 : (uint64_t)interval * 1000;
      e[n++] = (struct edge){o->enq_from, 1};
      e[n++] = (struct edge){o->end_ns + hold, -1};
    }
    *(keep ? &p->held : &p->in_flight) = peak(e, n);
  }
  free(e);
}

int ni_pool_report(const char *truth, const char *logs) {
  struct report r = {0};
  struct ni_log_totals totals;
  ni_truth_load(&r.truth, truth);
  for (size_t i = 0; i < r.truth.n_ops; i++) {
    const struct ni_true_op *o = &r.truth.ops[i];
    if (!o->called)
      continue;
    struct pool *p = pool_of(&r, o->pid, o->hash, o->rank, o->p2p, true);
    p->started++;
    p->finished += ni_true_unwritten(&r.truth, o) == NULL;
  }
  if (ni_logs_read(logs, take_line, &r, &totals) < 0)
    return NI_SIM_FAILED;
  bool grows = r.truth.n_procs > 0 && r.truth.procs[0].grow;
  int rc = 0;
  uint64_t slots = 0, slot_bytes = 0;
  printf("%-18s %4s %-4s %9s %9s %9s | %9s %9s %7s %10s %9s  %s\n", "communicator", "rank", "kind", "started",
         "in flight", "needed", "capacity", "high", "growths", "bytes", "dropped", "agreement");
  for (size_t i = 0; i < r.n; i++) {
    struct pool *p = &r.pools[i];
    measure(&r, p);
    const char *says = "agrees";
    if (!p->seen)
      says = "NO pool_stats LINE";
    else if (p->finished - p->records != p->stated_dropped)
      says = "DROPS DIFFER FROM THE TRUTH";
    else if (p->high_water > p->started)
      says = "HIGH WATER ABOVE ALL STARTED";
    else if (!p->stated_dropped && p->high_water < p->in_flight)
      says = "HIGH WATER BELOW IN FLIGHT";
    if (strcmp(says, "agrees") != 0)
      rc = NI_SIM_FAILED;
    slots += p->held;
    if (p->slot > slot_bytes)
      slot_bytes = p->slot;
    if (i < 40)
      printf("0x%016llx %4d %-4s %9llu %9llu %9llu | %9llu %9llu %7llu %10llu %9llu  %s\n",
             (unsigned long long)p->hash, p->rank, p->p2p ? "p2p" : "coll", (unsigned long long)p->started,
             (unsigned long long)p->in_flight, (unsigned long long)p->held, (unsigned long long)p->capacity,
             (unsigned long long)p->high_water, (unsigned long long)p->growths, (unsigned long long)p->bytes,
             (unsigned long long)p->stated_dropped, says);
  }
  if (r.n > 40)
    printf("... and %zu more\n", r.n - 40);
  printf(
      "growth %s; all pools together need %llu slots = %llu bytes for no drop without growth; arena high "
      "water %llu of "
      "%llu bytes\n",
      grows ? "on" : "off", (unsigned long long)slots, (unsigned long long)(slots * slot_bytes),
      (unsigned long long)r.arena_high, (unsigned long long)r.arena_cap);
  free(r.pools);
  ni_truth_free(&r.truth);
  return rc;
}

/* Runs the job in a child, so that the logs are finished whatever its end, then reports. */
int ni_pool_report_run(struct ni_scn *s, struct ni_options *o) {
  const char *given = getenv("NCCL_INSPECTOR_DUMP_DIR"), *tmp = getenv("TMPDIR");
  char dir[3000], truth[3072], logs[3072];
  snprintf(dir, sizeof dir, "%.2900s/nccl-sim-pools-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(dir))
    ni_die(NI_SIM_FAILED, "TMPDIR: %s cannot be created: %s", dir, strerror(errno));
  snprintf(truth, sizeof truth, "%s/truth.jsonl", dir);
  snprintf(logs, sizeof logs, "%s/logs", dir);
  if (!o->truth)
    o->truth = truth;
  if (!given)
    setenv("NCCL_INSPECTOR_DUMP_DIR", logs, 1);
  setenv("NCCL_INSPECTOR_ENABLE", "1", 0);
  fflush(NULL);
  pid_t child = fork();
  if (child < 0)
    ni_die(NI_SIM_FAILED, "fork failed");
  if (child == 0)
    exit(ni_job_run(s, o));
  int status = 0;
  waitpid(child, &status, 0);
  int rc = ni_pool_report(o->truth, given ? given : logs);
  printf("truth %s, logs %s\n", o->truth, given ? given : logs);
  return rc;
}
