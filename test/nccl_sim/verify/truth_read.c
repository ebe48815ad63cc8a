/* See truth_read.h. */
#include "truth_read.h"

#include <errno.h>

#include "format/library.h"
#include "format/timing.h"
#include "test/nccl_sim/core/core.h"
#include "test/nccl_sim/core/json_scan.h"
#include "test/nccl_sim/core/settings.h"

static long long env_num(const char *line, const char *name, long long def) {
  char text[64];
  return ni_scan_text(line, name, text, sizeof text) && *text ? strtoll(text, NULL, 10) : def;
}

static void read_proc(struct ni_true *t, const char *line) {
  struct ni_true_proc *p = NI_ADD(t->procs, t->n_procs);
  p->pid = ni_scan_int(line, "pid", 0);
  p->nccl = ni_scan_int(line, "nccl", 0);
  p->most_channels = ni_most_channels(ni_scan_int(line, "rccl", 0) ? NI_LIBRARY_RCCL : NI_LIBRARY_NCCL);
  p->mask_steps = ni_scan_int(line, "mask_steps", 0);
  ni_scan_text(line, "host", p->host, sizeof p->host);
  p->interval_us = env_num(line, "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", 1000000);
  p->min_bytes = env_num(line, "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES", 0);
  p->p2p_on = env_num(line, "NCCL_INSPECTOR_ENABLE_P2P", 1) != 0;
  p->need_gpu = env_num(line, "NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING", 0) != 0;
  char kinds[64] = "";
  ni_scan_text(line, "NCCL_INSPECTOR_EVENTS", kinds, sizeof kinds);
  p->every_step = strcmp(kinds, "trace") == 0;
  p->every_event = p->every_step || strcmp(kinds, "deep") == 0;
  p->grow = env_num(line, "NCCL_INSPECTOR_POOL_GROW", 1) != 0;
}

static struct ni_true_proc *proc_of(const struct ni_true *t, int pid) {
  for (size_t i = t->n_procs; i-- > 0;)
    if (t->procs[i].pid == pid)
      return &t->procs[i];
  return NULL;
}

/*
 * What the plugin sees of the clocks at this operation: how late the callbacks were, and how far the clocks
 * are apart.
 */
static int64_t observed_offset(const struct ni_true_op *o, const char *line) {
  struct ni_gpu_stamps s = {
      .start_ns = UINT64_MAX, .first_arrival_ns = o->first_ns, .done_arrival_ns = o->last_ns};
  const char *at = strstr(line, "\"ch\":[");
  unsigned long long start, stop;
  int n;
  for (at = at ? at + 6 : ""; sscanf(at, "[%*d,%llu,%llu]%n", &start, &stop, &n) == 2;
       at += n + (at[n] == ',')) {
    if (start < s.start_ns)
      s.start_ns = start;
    if (stop > s.stop_ns)
      s.stop_ns = stop;
  }
  return ni_gpu_observed_offset(&s);
}

static void read_op(struct ni_true *t, const char *line) {
  struct ni_true_op *o = NI_ADD(t->ops, t->n_ops);
  char kind[8];
  o->pid = ni_scan_int(line, "pid", 0);
  o->hash = ni_scan_u64(line, "hash", 0);
  o->rank = ni_scan_int(line, "rank", 0);
  o->call = ni_scan_int(line, "call", -1);
  ni_scan_text(line, "kind", kind, sizeof kind);
  o->p2p = kind[0] == 'p';
  ni_scan_text(line, "func", o->func, sizeof o->func);
  ni_scan_text(line, "dtype", o->dtype, sizeof o->dtype);
  ni_scan_text(line, "algo", o->algo, sizeof o->algo);
  ni_scan_text(line, "proto", o->proto, sizeof o->proto);
  ni_scan_text(line, "timing", o->timing, sizeof o->timing);
  ni_scan_text(line, "stamps", o->stamps, sizeof o->stamps);
  ni_scan_text(line, "out", o->out, sizeof o->out);
  o->called = ni_scan_int(line, "called", 0);
  o->null_handle = ni_scan_int(line, "null", 0);
  o->unordered = ni_scan_int(line, "unordered", 0);
  o->missing = ni_scan_int(line, "missing", 0);
  o->sn = ni_scan_u64(line, "sn", 0);
  o->rec = ni_scan_u64(line, "rec", 0);
  o->bytes = ni_scan_u64(line, "bytes", 0);
  o->exec_ns = ni_scan_u64(line, "exec_ns", 0);
  o->enq_from = ni_scan_u64(line, "enq_from", 0);
  o->enq_to = ni_scan_u64(line, "enq_to", 0);
  o->first_ns = ni_scan_u64(line, "first_ns", 0);
  o->first_to = ni_scan_u64(line, "first_to", 0);
  o->last_ns = ni_scan_u64(line, "last_ns", 0);
  o->last_to = ni_scan_u64(line, "last_to", 0);
  o->end_ns = ni_scan_u64(line, "end_ns", 0);
  o->offset_ns = observed_offset(o, line);
  o->root = ni_scan_int(line, "root", 0);
  o->peer = ni_scan_int(line, "peer", 0);
  o->nch = ni_scan_int(line, "nch", 0);
  o->desc_nch = ni_scan_int(line, "desc_nch", 0);
  o->done_ch = ni_scan_int(line, "done_ch", 0);
  o->mask = ni_scan_int(line, "mask", 0);
  o->late_ms = (unsigned)ni_scan_int(line, "late_ms", 0);
  o->symmetric = ni_scan_int(line, "sym", 0);
  o->captured = ni_scan_int(line, "cap", 0);
  o->parent = ni_scan_int(line, "parent", 1);
  o->shared = ni_scan_int(line, "shared", 0);
  o->shifted = ni_scan_int(line, "shifted", 0);
  o->phases = ni_scan_int(line, "phases", 0);
  ni_scan_text(line, "kernel", o->kernel, sizeof o->kernel);
  o->tag = ni_scan_u64(line, "tag", 0);
  o->initial_ns = ni_scan_u64(line, "initial_ns", 0);
  o->compute_ns = ni_scan_u64(line, "compute_ns", 0);
  o->final_ns = ni_scan_u64(line, "final_ns", 0);
  o->replayed_from = ni_scan_u64(line, "replayed_from", 0);
  o->replayed_to = ni_scan_u64(line, "replayed_to", 0);
  const struct ni_true_proc *p = proc_of(t, o->pid);
  if (!p)
    ni_die(NI_SIM_FAILED, "truth: an operation of pid %d comes before its process line", o->pid);
  o->proc = (int)(p - t->procs);
}

void ni_truth_load(struct ni_true *t, const char *path) {
  memset(t, 0, sizeof *t);
  FILE *f = fopen(path, "re");
  if (!f)
    ni_die(NI_SIM_FAILED, "%s: %s", path, strerror(errno));
  char *line = NULL;
  size_t cap = 0;
  while (getline(&line, &cap, f) > 0) {
    char kind[8];
    ni_scan_text(line, "t", kind, sizeof kind);
    if (strcmp(kind, "proc") == 0) {
      read_proc(t, line);
    } else if (strcmp(kind, "comm") == 0) {
      struct ni_true_comm *c = NI_ADD(t->comms, t->n_comms);
      *c = (struct ni_true_comm){.pid = ni_scan_int(line, "pid", 0),
                                 .rank = ni_scan_int(line, "rank", 0),
                                 .n_ranks = ni_scan_int(line, "n_ranks", 0),
                                 .nnodes = ni_scan_int(line, "nnodes", 0),
                                 .interface = ni_scan_int(line, "interface", 0),
                                 .hash = ni_scan_u64(line, "hash", 0),
                                 .named = ni_scan_int(line, "named", 0)};
      ni_scan_text(line, "name", c->name, sizeof c->name);
    } else if (strcmp(kind, "op") == 0) {
      read_op(t, line);
    } else if (strcmp(kind, "events") == 0) {
      struct ni_true_proc *p = proc_of(t, ni_scan_int(line, "pid", 0));
      for (int i = 0; p && i < 16; i++) {
        char key[16];
        snprintf(key, sizeof key, "e%d", i);
        p->event[i] = ni_scan_u64(line, key, 0);
      }
      if (!p)
        continue;
      p->has_events = true;
      p->interface = ni_scan_int(line, "interface", 0);
      p->steps = ni_scan_u64(line, "steps", 0);
      p->step_bytes = ni_scan_u64(line, "step_bytes", 0);
    } else if (strcmp(kind, "call") == 0) {
      struct ni_true_call *c = NI_ADD(t->calls, t->n_calls);
      *c = (struct ni_true_call){.pid = ni_scan_int(line, "pid", 0),
                                 .rank = ni_scan_int(line, "rank", 0),
                                 .root = ni_scan_int(line, "root", 0),
                                 .hash = ni_scan_u64(line, "hash", 0),
                                 .tag = ni_scan_u64(line, "tag", 0),
                                 .bytes = ni_scan_u64(line, "bytes", 0),
                                 .enq_from = ni_scan_u64(line, "enq_from", 0),
                                 .enq_to = ni_scan_u64(line, "enq_to", 0),
                                 .call = ni_scan_int(line, "call", -1)};
      ni_scan_text(line, "func", c->func, sizeof c->func);
      ni_scan_text(line, "dtype", c->dtype, sizeof c->dtype);
      ni_scan_text(line, "src", c->src, sizeof c->src);
      const struct ni_true_proc *p = proc_of(t, c->pid);
      c->proc = p ? (int)(p - t->procs) : 0;
    } else if (strcmp(kind, "end") == 0) {
      struct ni_true_proc *p = proc_of(t, ni_scan_int(line, "pid", 0));
      char how[16];
      ni_scan_text(line, "how", how, sizeof how);
      if (!p)
        continue;
      p->how = (enum ni_end)ni_pick(how, ni_end_names, NI_END_COUNT);
      p->ended = true;
      p->end_ns = ni_scan_u64(line, "ns", 0);
    }
  }
  free(line);
  fclose(f);
  if (!t->n_procs)
    ni_die(NI_SIM_FAILED, "%s: no process line: not a truth file of nccl-sim", path);
}

void ni_truth_free(struct ni_true *t) {
  free(t->ops);
  free(t->comms);
  free(t->procs);
  free(t->calls);
}

const struct ni_true_comm *ni_true_comm(const struct ni_true *t, int pid, uint64_t hash, int rank) {
  for (size_t i = 0; i < t->n_comms; i++)
    if (t->comms[i].hash == hash && t->comms[i].rank == rank && t->comms[i].pid == pid)
      return &t->comms[i];
  return NULL;
}

/* The API call's handle, which says whether a call was captured, comes with v5 and later. */
static bool knows_capture(const struct ni_true *t, const struct ni_true_op *op) {
  const struct ni_true_comm *c = ni_true_comm(t, op->pid, op->hash, op->rank);
  return op->parent && c && c->interface >= 5;
}

bool ni_true_untimed(const struct ni_true *t, const struct ni_true_op *op) {
  return op->symmetric && op->captured && knows_capture(t, op);
}

bool ni_true_want_unknown(const struct ni_true *t, const struct ni_true_op *op) {
  const struct ni_true_proc *p = &t->procs[op->proc];
  if (op->symmetric)
    return !knows_capture(t, op); /* whatever became of the mask: its head says how many there are */
  if (p->mask_steps)
    return true;
  const struct ni_true_comm *c = ni_true_comm(t, op->pid, op->hash, op->rank);
  /* a bound is all that v3 has; v1 and v2 have no channels */
  if (c && c->interface <= 3)
    return c->interface == 3;
  int said = op->desc_nch & 255; /* 256 comes as 0 */
  if (!op->p2p || said > p->most_channels)
    return said == 0 || said > p->most_channels;
  return c && !ni_core_p2p_channels(p->nccl, c->interface);
}

const char *ni_true_unwritten(const struct ni_true *t, const struct ni_true_op *op) {
  const struct ni_true_proc *p = &t->procs[op->proc];
  if (!op->called)
    return "never shown to the plugin";
  if (op->bytes < (uint64_t)p->min_bytes)
    return "filtered by size";
  if (op->p2p && !p->p2p_on)
    return "filtered as P2P";
  if (p->need_gpu && strcmp(op->timing, "kernel_gpu") != 0)
    return "filtered for its timing";
  if (op->null_handle)
    return "dropped";
  if (ni_true_untimed(t, op))
    return NULL; /* done when its bracket closes: nothing tells whether its kernel has ended */
  if (strcmp(op->out, "done") != 0)
    return op->out;
  if (op->missing && !ni_true_want_unknown(t, op))
    return "incomplete";
  return NULL;
}
