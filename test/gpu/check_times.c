/*
 * Execution times against the CUDA events around the same call, and bandwidths against those from the events.
 *
 * An event pair spans the kernel and what lies between: the launch before it and the end of the stream's work
 * after it. So event time - execution time is never much below zero; its median is the bias, p95 - p5 the
 * spread. Judged: an execution time longer than the events allow (more than 5 us and 0.5 % above), and the
 * bus bandwidth of messages of 32 MiB and more, median per function and size, within 2 %. Ranks that take
 * turns on one GPU (--shared-gpu) wait for their turn between event and kernel; the bandwidth is shown and
 * not judged then.
 */
#include <math.h>
#include <string.h>

#include "test/nccl_sim/core/sim.h"
#include "check.h"

static const uint64_t large_bytes = 32u << 20;
static const double slack_ns = 5000, slack_share = 0.005;

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return a < b ? -1 : a > b;
}

static double at(const double *v, size_t n, double q) { return v[(size_t)(q * (double)(n - 1) + 0.5)]; }

/* The size that nccl-tests prints, by which classes are made. */
static uint64_t size_of(const struct ni_gpu_true_op *o) {
  return ni_nccl_tests_bytes(ni_func_from_name(o->op.func), o->op.bytes, o->rec->n_ranks);
}

static bool timed(const struct ni_gpu_true_op *o) {
  return o->rec && o->op.event_ns && strcmp(o->op.how, "eager") == 0 && o->op.peer < 0 &&
      o->rec->r.timing == NI_TIMING_KERNEL_GPU;
}

static void class_row(struct ni_gpu_check *c, const char *what, uint64_t from, uint64_t to) {
  double *v = calloc(c->truth.n_ops + 1, sizeof *v), worst = 0;
  size_t n = 0, over = 0;
  if (!v)
    ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < c->truth.n_ops; i++) {
    const struct ni_gpu_true_op *o = &c->truth.ops[i];
    if (!timed(o) || size_of(o) < from || size_of(o) >= to)
      continue;
    double event = (double)o->op.event_ns, d = event - (double)o->rec->r.exec_ns;
    v[n++] = d;
    if (-d > slack_ns + slack_share * event) {
      over++;
      worst = fmax(worst, -d);
    }
  }
  if (n) {
    qsort(v, n, sizeof *v, by_value);
    ni_gpu_row(c, over ? "FAIL" : "ok", what,
               "event - execution: median %.1f us, p5 %.1f, p95 %.1f (%zu operations); %zu longer than their "
               "events, "
               "worst %.1f us",
               at(v, n, 0.5) / 1e3, at(v, n, 0.05) / 1e3, at(v, n, 0.95) / 1e3, n, over, worst / 1e3);
  }
  free(v);
}

static int by_func_size(const void *x, const void *y) {
  const struct ni_gpu_true_op *a = *(const struct ni_gpu_true_op *const *)x,
                              *b = *(const struct ni_gpu_true_op *const *)y;
  int n = strcmp(a->op.func, b->op.func);
  if (n)
    return n;
  if (a->op.bytes != b->op.bytes)
    return a->op.bytes < b->op.bytes ? -1 : 1;
  return a->order < b->order ? -1 : 1;
}

static double median_bw(struct ni_gpu_true_op **o, size_t n, bool of_events) {
  double *v = calloc(n, sizeof *v), m;
  if (!v)
    ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < n; i++) {
    double factor = ni_bus_factor(ni_func_from_name(o[i]->op.func), o[i]->rec->n_ranks);
    v[i] = of_events ? (double)size_of(o[i]) / (double)o[i]->op.event_ns * factor : o[i]->rec->r.busbw_gbs;
  }
  qsort(v, n, sizeof *v, by_value);
  m = at(v, n, 0.5);
  free(v);
  return m;
}

static void bandwidths(struct ni_gpu_check *c) {
  struct ni_gpu_true_op **o = calloc(c->truth.n_ops + 1, sizeof *o), **where = NULL;
  size_t n = 0, cells = 0, outside = 0;
  double worst = 0, log_bw = 0, event_bw = 0;
  if (!o)
    ni_die(1, "gpu_check: out of memory");
  for (size_t i = 0; i < c->truth.n_ops; i++)
    if (timed(&c->truth.ops[i]) && size_of(&c->truth.ops[i]) >= large_bytes)
      o[n++] = &c->truth.ops[i];
  qsort(o, n, sizeof *o, by_func_size);
  for (size_t i = 0, k; i < n; i = k) {
    for (k = i + 1; k < n && !strcmp(o[k]->op.func, o[i]->op.func) && o[k]->op.bytes == o[i]->op.bytes;)
      k++;
    double log = median_bw(o + i, k - i, false), event = median_bw(o + i, k - i, true),
           off = 100 * (log / event - 1);
    cells++;
    if (fabs(off) > c->busbw_percent)
      outside++;
    if (!where || fabs(off) > fabs(worst)) {
      worst = off;
      where = o + i;
      log_bw = log;
      event_bw = event;
    }
  }
  if (cells)
    ni_gpu_row(
        c,
        c->shared_gpu ? "info"
            : outside ? "FAIL"
                      : "ok",
        "bus bandwidth, 32 MiB and more",
        "%zu of %zu (function, size) within %.0f %% of the events; furthest %+.2f %%: %s of %llu B, log %.2f "
        "GB/s, events %.2f%s",
        cells - outside, cells, c->busbw_percent, worst, (*where)->op.func,
        (unsigned long long)size_of(*where), log_bw, event_bw,
        c->shared_gpu ? "; not judged, ranks take turns on the GPU" : "");
  free(o);
}

void ni_gpu_check_times(struct ni_gpu_check *c) {
  class_row(c, "execution time, up to 64 KiB", 0, 65537);
  class_row(c, "execution time, up to 32 MiB", 65537, large_bytes);
  class_row(c, "execution time, 32 MiB and more", large_bytes, UINT64_MAX);
  bandwidths(c);
  if (c->truth.n_gaps) {
    double *v = calloc(c->truth.n_gaps, sizeof *v);
    if (!v)
      ni_die(1, "gpu_check: out of memory");
    for (size_t i = 0; i < c->truth.n_gaps; i++)
      v[i] = (double)c->truth.gaps[i];
    qsort(v, c->truth.n_gaps, sizeof *v, by_value);
    ni_gpu_row(c, "info", "two events and a memset of 8 bytes",
               "median %.1f us, p95 %.1f: so much of a small operation's time is no kernel",
               at(v, c->truth.n_gaps, 0.5) / 1e3, at(v, c->truth.n_gaps, 0.95) / 1e3);
    free(v);
  }
}
