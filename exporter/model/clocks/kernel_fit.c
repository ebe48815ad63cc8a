#include "kernel_fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "line_fit.h"

enum { AROUND = 32, ANCHORS = 9, MISSED = 8, NEAR_MAX = 64 };
#define NONE INT64_MIN

struct fitting {
  struct ni_kernel *a, *k; /* ours, theirs */
  size_t n, m;
  int64_t *off;      /* of each of theirs: ours less it; NONE: not matched */
  int64_t tolerance; /* between the starts of one kernel */
};

static int64_t quantile(int64_t *v, size_t n, unsigned tenths) {
  qsort(v, n, sizeof *v, ni_by_i64);
  return v[(n - 1) * tenths / 10];
}

/*
 * How far the nearest of our kernels that k can be lies from there, if that is less than slack. NONE: there
 * is none.
 */
static int64_t find_nearest_kernel(const struct fitting *f, const struct ni_kernel *k, int64_t there,
                                   int64_t slack) {
  int64_t found = NONE;
  size_t i;
  ni_array_search(i, f->n, f->a[i].start_ns <= there - slack);
  for (size_t end = i + NEAR_MAX; i < f->n && i < end && f->a[i].start_ns - there < slack; i++)
    if (f->a[i].func == k->func && llabs(f->a[i].start_ns - there) < slack)
      slack = llabs(found = f->a[i].start_ns - there);
  return found;
}

/*
 * Matches kernels from number j on, in steps of `step`; offset and drift follow what is found. Returns how
 * well theirs lie upon ours, up to 1000 each. keep: all of them, into off; else some, and no more once too
 * many are missing.
 */
static int64_t match_kernels(struct fitting *f, size_t j, size_t step, int64_t offset, bool keep) {
  int64_t last = f->k[j].start_ns, score = 0;
  double drift = 0;
  /* Below 0 is beyond m. */
  for (int missed = 0, left = AROUND; j < f->m; j += step, left--) {
    if (!keep && (!left || missed >= MISSED))
      break;

    int64_t gap = f->k[j].start_ns - last, there = offset + (int64_t)(drift * (double)gap);
    int64_t slack = f->tolerance + llabs(gap) / 10000,
            off = find_nearest_kernel(f, &f->k[j], f->k[j].start_ns + there, slack);
    missed += off == NONE ? 1 : missed ? -1 : 0;
    if (off == NONE)
      continue;
    score += 1000 * (slack - llabs(off)) / slack;
    if (keep)
      f->off[j] = there + off;
    /* In a short time a clock goes nowhere: what is off is noise. */
    offset = there + (int64_t)((double)off * (double)llabs(gap) / (double)(llabs(gap) + 2500 * f->tolerance));
    drift += (gap < 0 ? -1 : 1) * (double)off / (double)(2 * NI_LINE_DRIFT_SPAN_NS + llabs(gap));
    drift = fmax(fmin(drift, NI_LINE_DRIFT_MAX), -NI_LINE_DRIFT_MAX);
    last = f->k[j].start_ns;
  }
  return score;
}

/* Fits the line through what was matched. t has room for three times as many numbers as theirs. */
static void fit_kernel_line(const struct fitting *f, int64_t *t, struct ni_kernel_fit *out) {
  int64_t *off = t + f->m, *v = off + f->m, when[2], what[2];
  size_t n = 0;
  *out = (struct ni_kernel_fit){.beside = f->m};
  for (size_t j = 0; j < f->m; j++)
    if (f->off[j] != NONE) {
      t[n] = f->k[j].start_ns;
      off[n++] = f->off[j];
    }
  if ((out->matched = n) < 3)
    return;
  out->epoch_ns = t[n / 2];
  for (size_t side = 0, third = n / 3 | 1; side < 2; side++) {
    when[side] = quantile(memcpy(v, side ? t + n - third : t, third * sizeof *v), third, 5);
    what[side] = quantile(memcpy(v, side ? off + n - third : off, third * sizeof *v), third, 5);
  }
  bool long_enough = n >= 12 && when[1] - when[0] > NI_LINE_DRIFT_SPAN_NS / 2;
  double drift = long_enough ? (double)(what[1] - what[0]) / (double)(when[1] - when[0]) : 0;
  if (fabs(drift) > NI_LINE_DRIFT_MAX)
    return;
  out->drift = drift;
  for (size_t i = 0; i < n; i++)
    v[i] = off[i] - (int64_t)(out->drift * (double)(t[i] - out->epoch_ns));
  out->offset_ns = quantile(v, n, 5);
  for (size_t i = 0; i < n; i++)
    v[i] = llabs(v[i] - out->offset_ns);
  out->error_ns = quantile(v, n, 9) + 1;
  out->beside = 0;
  for (size_t j = 0; j < f->m; j++) {
    int64_t at = f->k[j].start_ns + out->offset_ns +
        (int64_t)(out->drift * (double)(f->k[j].start_ns - out->epoch_ns));
    out->beside += at > f->a[0].start_ns - f->tolerance && at < f->a[f->n - 1].start_ns + f->tolerance;
  }
  /* By chance they would lie anywhere within the tolerance. */
  const bool has_enough = n >= AROUND || 3 * n >= out->beside;
  out->good = has_enough && quantile(v, n, 5) < f->tolerance / 8 && out->error_ns < f->tolerance;
}

int ni_kernel_fit(struct ni_kernel *ours, size_t n_ours, struct ni_kernel *theirs, size_t n_theirs,
                  struct ni_kernel_fit *out) {
  struct fitting f = {
      .a = ours, .k = theirs, .n = n_ours, .m = n_theirs, .off = malloc((4 * n_theirs + 1) * sizeof *f.off)};
  *out = (struct ni_kernel_fit){0};
  if (!f.off)
    return -ENOMEM;
  if (n_ours)
    qsort(ours, n_ours, sizeof *ours, ni_by_i64);
  if (n_theirs)
    qsort(theirs, n_theirs, sizeof *theirs, ni_by_i64);
  /* GPU stamps of both agree within some us; times of arrival at the CPU do not. */
  const bool has_both = n_ours && n_theirs;
  for (f.tolerance = 20000; has_both && f.tolerance <= 200000 && !out->good; f.tolerance *= 10) {
    int64_t best = 0, offset = 0;
    size_t at = 0;
    for (size_t i = 0; i < n_theirs; i++)
      f.off[i] = NONE;
    for (size_t anchor = 1; anchor <= ANCHORS && best < 1000 * AROUND; anchor++) {
      bool any = false;
      for (size_t j = n_theirs * anchor / (ANCHORS + 1), end = j + AROUND; j < n_theirs && j < end && !any;
           j++)
        for (size_t i = 0; i < n_ours; i++) {
          if (ours[i].func != theirs[j].func)
            continue;
          int64_t off = ours[i].start_ns - theirs[j].start_ns;
          int64_t score = match_kernels(&f, j, 1, off, false) + match_kernels(&f, j, (size_t)-1, off, false);
          any = true;
          if (score > best) {
            best = score;
            offset = off;
            at = j;
          }
        }
    }
    match_kernels(&f, at, 1, offset, true);
    match_kernels(&f, at, (size_t)-1, offset, true);
    fit_kernel_line(&f, f.off + n_theirs, out);
  }
  free(f.off);
  return 0;
}
