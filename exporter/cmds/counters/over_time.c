#include "over_time.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/model/counters/beside.h"
#include "exporter/model/counters/series.h"
#include "exporter/output/counters/page.h"

enum { LEAST_POINTS = 60, POINTS = 300, LINES = 512 }; /* of the picture: 1 MB at most */

static int add_set(void *arg, const char *host, const struct ni_set *s) {
  return ni_beside_set(arg, host, s);
}

static int add_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  ni_beside_sample(arg, before, after->reading);
  return 0;
}

/* Finds the time from the first reading of one sweep to the last one of the other. */
static void find_span(const struct ni_pair *p, int64_t *from, int64_t *to) {
  *from = *to = 0;
  for (size_t i = 0; i < p->n_rows; i++) {
    int64_t first = p->row[i].before.real_ns, last = p->row[i].after.real_ns;
    if (first > 0 && (!*from || first < *from))
      *from = first;
    if (last > *to)
      *to = last;
  }
}

/* Fills in the rates of a row. false: it did nothing at any time. */
static bool fill_rates(const struct ni_beside_row *r, unsigned n, double *rate) {
  bool any = false;
  for (unsigned i = 0; r->bin && i < n; i++) {
    rate[i] = r->bin[i].seconds > 0 ? r->bin[i].sum / r->bin[i].seconds : NAN;
    any |= r->bin[i].sum != 0;
  }
  return any;
}

static int write_page(const struct ni_counters_view *v, const struct ni_beside *b, const char *path,
                      const char *who) {
  struct ni_counters_line *line = calloc(LINES + 1, sizeof *line);
  double *rate = calloc((size_t)(LINES + 1) * b->n_bins + 1, sizeof *rate), seconds[POINTS];
  struct ni_counters_series s = {.seconds = seconds, .line = line, .n = b->n_bins};
  size_t all = 0;
  for (unsigned i = 0; i < b->n_bins; i++)
    seconds[i] = (i + 0.5) * (double)(b->to_ns - b->from_ns) / 1e9 / b->n_bins;
  for (size_t i = 0; line && rate && i < b->n_rows; i++) {
    const struct ni_beside_row *r = &b->row[i];
    double *at = rate + s.n_lines * b->n_bins;
    if (!fill_rates(r, b->n_bins, at) || all++ >= LINES)
      continue;
    line[s.n_lines++] = (struct ni_counters_line){b->entity[r->entity].name, r->name, r->what.unit, at};
  }
  if (all > LINES)
    ni_say(stderr, "%s: --html %s: it shows the first %d of %zu counters over time\n", who, path, LINES, all);
  int e = line && rate ? ni_counters_page(v, &s, path) : -ENOMEM;
  free(line);
  free(rate);
  return e;
}

bool ni_counters_page_over_time(const struct ni_counters_view *v, const char *series, const char *path,
                                const char *who) {
  struct ni_beside b;
  struct ni_series_end end = {0};
  int64_t from, to;
  find_span(&v->pair, &from, &to);
  ni_beside_begin(&b, NULL, 0, from, to,
                  (unsigned)fmin(fmax((double)(to - from) / 1e9, LEAST_POINTS), POINTS));
  b.all_lines = true;
  int e = series ? ni_series_pairs(series, &(struct ni_series_pairs){&b, add_set, add_pair}, &end) : 0;
  if (e == 0)
    e = end.scan.error;
  if (series && (e < 0 || !end.samples))
    ni_say(stderr, "%s: %s: %s\n", who, series, e < 0 ? strerror(-e) : "no sample of a series is in it");
  if (e == 0)
    e = ni_beside_end(&b);
  if (e == 0)
    e = write_page(v, &b, path, who);
  ni_beside_free(&b);
  const char *why = e == -ENOTSUP ? "this build has no page, for want of npm and node"
      : e == -EPERM ? "another user could put something else in its place. Give a folder of your own"
                    : strerror(-e);
  if (e < 0)
    ni_say(stderr, "%s: --html %s: %s\n", who, path, why);
  return e == 0;
}
