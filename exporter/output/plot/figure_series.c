/*
 * Lines over the run, in the buckets of --time-granularity (model/sums/buckets/buckets.h).
 *
 * Rows of a table become dots: whose they are (a name and what tells names apart), the column of the picture, and of each panel a
 * numerator and a denominator. A value is the sum of the one over that of the other, so buckets that share a column add up
 * exactly. The LINES with the most weight have a line of their own, the same ones in each panel. Of all others there is what they
 * are together, and a band from the least to the most of them: a thousand communicators are as readable as seven.
 */
#include "figure_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/time_text.h"

enum { LINES = 6, COLUMNS = 400, PANEL_HEIGHT = 296, PANELS = 6 };

struct dot {
  const char *a, *b; /* never NULL */
  uint32_t column;
  double weight, num[2], den[2];
};

struct line {
  const struct dot *dot;
  size_t n;
  double weight;
};

struct lines {
  struct dot *dot;
  struct line *line; /* the heaviest first */
  size_t n_dots, cap_dots, n, cap;
  uint32_t each, columns; /* buckets in a column */
  bool failed;
};

/* How many buckets the picture has: those of the records. Counters before and behind are in the tables. */
static void begin(struct lines *l, const struct ni_buckets *b) {
  const uint64_t n = b->records.n ? (uint64_t)b->records.row[b->records.n - 1].bucket + 1 : 1;
  *l = (struct lines){.each = (uint32_t)((n + COLUMNS - 1) / COLUMNS)};
  l->columns = (uint32_t)((n + l->each - 1) / l->each);
}

static void end(struct lines *l) {
  free(l->dot);
  free(l->line);
}

static void add_dot(struct lines *l, int64_t bucket, struct dot d) {
  if (bucket < 0 || bucket / l->each >= l->columns) return;
  d.column = (uint32_t)(bucket / l->each);
  if (ni_array_room(l->dot, l->n_dots, l->cap_dots)) l->dot[l->n_dots++] = d;
  else l->failed = true;
}

static int compare_lines(const struct dot *x, const struct dot *y) {
  int k = x->a == y->a ? 0 : strcmp(x->a, y->a);
  return k || x->b == y->b ? k : strcmp(x->b, y->b);
}

static int by_line(const void *a, const void *b) {
  const struct dot *x = a, *y = b;
  int k = compare_lines(x, y);
  return k ? k : (x->column > y->column) - (x->column < y->column);
}

static int by_weight(const void *a, const void *b) {
  const struct line *x = a, *y = b;
  return x->weight != y->weight ? (x->weight > y->weight ? -1 : 1) : by_line(x->dot, y->dot);
}

struct column {
  double num, den, least, most; /* NAN: none */
};

/* What a line has in each column, by panel k; per: what each column is divided by, 0: its own sum. */
static void fill(const struct lines *l, const struct line *x, int k, double per, struct column at[COLUMNS]) {
  for (uint32_t c = 0; c < l->columns; c++) at[c] = (struct column){0, 0, NAN, NAN};
  for (size_t i = 0; i < x->n; i++) {
    at[x->dot[i].column].num += x->dot[i].num[k];
    at[x->dot[i].column].den += per > 0 ? 1 : x->dot[i].den[k];
  }
  for (uint32_t c = 0; c < l->columns; c++)
    if (at[c].den > 0) at[c].least = at[c].most = at[c].num / (per > 0 ? per : at[c].den);
}

/* Weight becomes how far a line is from all of them together, in panel 0. */
static void weigh_by_distance(struct lines *l) {
  struct column all[COLUMNS], one[COLUMNS];
  fill(l, &(struct line){.dot = l->dot, .n = l->n_dots}, 0, 0, all);
  for (size_t i = 0; i < l->n; i++) {
    struct line *x = &l->line[i];
    fill(l, x, 0, 0, one);
    x->weight = 0;
    for (uint32_t c = 0; c < l->columns; c++)
      if (one[c].den > 0) x->weight += fabs(one[c].least - all[c].least);
  }
}

/* Dots to lines. apart: those furthest from the others come first. Without memory there is a panel without lines. */
static void find_lines(struct lines *l, bool apart) {
  if (l->n_dots > 1) qsort(l->dot, l->n_dots, sizeof *l->dot, by_line);
  for (size_t i = 0, n; i < l->n_dots; i += n) {
    struct line x = {.dot = &l->dot[i]};
    for (n = 0; i + n < l->n_dots && compare_lines(&l->dot[i + n], x.dot) == 0; n++) x.weight += l->dot[i + n].weight;
    x.n = n;
    if (ni_array_room(l->line, l->n, l->cap)) l->line[l->n++] = x;
    else l->failed = true;
  }
  if (l->failed) l->n = 0;
  if (apart) weigh_by_distance(l);
  if (l->n > 1) qsort(l->line, l->n, sizeof *l->line, by_weight);
}

/* $name: the middle of the column, mean, least, most. A line breaks where far more columns are empty than usual. */
static void put_line(FILE *f, unsigned name, const struct lines *l, const struct column at[COLUMNS], double per, double *lo, double *hi) {
  uint32_t filled = 0, last = 0;
  for (uint32_t c = 0; c < l->columns; c++) filled += at[c].den > 0;
  const uint32_t usual = filled ? l->columns / filled : 1;
  fprintf(f, "$l%u << EOD\n", name);
  if (!filled) fprintf(f, "NaN NaN NaN NaN\n");
  for (uint32_t c = 0; c < l->columns; c++) {
    if (!(at[c].den > 0)) continue;
    if (last && c + 1 - last > 4 * usual + 2) fputc('\n', f);
    last = c + 1;
    if (at[c].least > 0 && at[c].least < *lo) *lo = at[c].least;
    if (at[c].most > *hi) *hi = at[c].most;
    fprintf(f, "%.1f %.5g %.5g %.5g\n", c + 0.5, at[c].num / (per > 0 ? per : at[c].den), at[c].least, at[c].most);
  }
  fprintf(f, "EOD\n");
}

/* All lines from the LINES-th on, as one: their mean. */
static void fill_others(const struct lines *l, int k, double per, struct column sum[COLUMNS]) {
  struct column one[COLUMNS];
  for (uint32_t c = 0; c < l->columns; c++) sum[c] = (struct column){0, 0, NAN, NAN};
  for (size_t i = LINES; i < l->n; i++) {
    fill(l, &l->line[i], k, per, one);
    for (uint32_t c = 0; c < l->columns; c++) {
      if (!(one[c].den > 0)) continue;
      sum[c].num += one[c].num;
      sum[c].den += per > 0 ? 1 : one[c].den;
      sum[c].least = fmin(sum[c].least, one[c].least); /* a NAN gives way */
      sum[c].most = fmax(sum[c].most, one[c].most);
    }
  }
  for (uint32_t c = 0; per > 0 && c < l->columns; c++)
    if (sum[c].den > 0) sum[c].num /= sum[c].den;
}

/* Panel k. per: fill(). title: with the unit behind it, but for durations, whose tics say it. extra: what is plotted on top,
 * with its comma; "". */
static void draw(FILE *f, const struct lines *l, int k, double per, enum ni_fig_of of, const char *title, const char *extra) {
  struct column at[COLUMNS];
  double lo = INFINITY, hi = 0;
  const unsigned shown = l->n < LINES ? (unsigned)l->n : LINES;
  for (unsigned i = 0; i < shown; i++) {
    fill(l, &l->line[i], k, per, at);
    put_line(f, i, l, at, per, &lo, &hi);
  }
  if (l->n > LINES) {
    fill_others(l, k, per, at);
    put_line(f, LINES, l, at, per, &lo, &hi);
  }
  const char *unit = ni_fig_axis(f, 'y', of, lo < INFINITY ? lo : 1, hi > 0 ? hi : 1).unit;
  fprintf(f, of == NI_FIG_GBS ? "set title '%s (%s)' font ',11'\n" : "set title '%s' font ',11'\n", title, unit);
  fprintf(f, "plot ");
  if (l->n > LINES)
    fprintf(f, "$l%d using 1:3:4 with filledcurves fs transparent solid 0.25 noborder lc rgb '#8a94a3' title '%s others, least to most', \\\n  "
               "$l%d using 1:2 with lines lw 1.5 dt 2 lc rgb '%s' title 'their mean', \\\n  ",
            LINES, NI_COUNT(l->n - LINES), LINES, ni_fig_color[NI_FIG_COLORS - 1]);
  for (unsigned i = shown; i-- > 0;) { /* the heaviest on top */
    char name[80];
    const struct dot *d = l->line[i].dot;
    snprintf(name, sizeof name, "%.20s%s%.20s", d->a, *d->a && *d->b ? " " : "", d->b);
    fprintf(f, "$l%u using 1:2 with %s lw 1.6 lc rgb '%s' title ", i, l->columns > 60 ? "lines" : "linespoints pt 7 ps 0.5",
            ni_fig_color[i]);
    ni_fig_quoted(f, name);
    fprintf(f, "%s", i ? ", \\\n  " : extra);
  }
  fprintf(f, shown ? "\n" : "1 notitle lc rgb '#ffffff'\n");
}

/* The layout of so many panels one below the other, their title, and the time of the run below each. */
static void panels(FILE *f, const struct ni_figure *fig, unsigned n, const char *title) {
  const struct ni_buckets *b = &fig->s->buckets;
  struct lines l;
  char when[40], label[120];
  const double height = n * PANEL_HEIGHT + 60;
  begin(&l, b);
  ni_fig_begin(f, fig, NI_FIG_W, (int)height);
  fprintf(f, "set multiplot layout %u,1 margins screen %.4f,%.4f,%.4f,%.4f spacing screen 0,%.4f title ", n, 84.0 / NI_FIG_W,
          1 - 250.0 / NI_FIG_W, 54 / height, 1 - 74 / height, 90 / height);
  ni_fig_quoted(f, title);
  fprintf(f, " font ',12'\nset key at graph 1.02,1 left top Left reverse vertical invert samplen 1.5 font ',9'\n");
  snprintf(label, sizeof label, "time since %s", ni_utc_text(b->first_ns / 1000, 'T', b->width_ns % 1000000000 ? 6 : 0, when));
  ni_fig_span_axis(f, (double)b->width_ns / 1e3 * l.each * l.columns, l.columns, label);
}

static bool is_of(const struct ni_bucket_row *x, const struct ni_group *g) {
  return (int)x->kind == (int)g->kind && x->timing == (uint32_t)g->timing && strcmp(x->func, g->func) == 0;
}

/* Roll-ups count all operations, in the bucket in which what they describe ends: marks, since they can be rarer than buckets. */
static const char *put_rolled(FILE *f, const struct ni_buckets *b, const struct lines *l, const struct ni_group *g) {
  bool any = false;
  for (size_t i = 0; i < b->rolled.n; i++) {
    const struct ni_bucket_row *x = &b->rolled.row[i];
    if (!is_of(x, g) || x->operations == 0 || x->bucket < 0 || x->bucket / l->each >= l->columns) continue;
    if (!any) fprintf(f, "$r << EOD\n");
    any = true;
    fprintf(f, "%.2f %.5g\n", ((double)x->bucket + 0.5) / l->each, (double)x->ns / 1e3 / (double)x->operations);
  }
  if (any) fprintf(f, "EOD\n");
  return any ? ", \\\n  $r using 1:2 with points pt 2 ps 0.8 lc rgb '#1b2330' title 'roll-ups: all operations'" : "";
}

void ni_fig_series(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_group *g = &s->group[fig->first];
  struct lines l;
  char title[200];
  begin(&l, &s->buckets);
  for (size_t i = 0; i < s->buckets.records.n; i++) {
    const struct ni_bucket_row *x = &s->buckets.records.row[i];
    if (!is_of(x, g)) continue;
    add_dot(&l, x->bucket, (struct dot){.a = s->comm[x->comm].name ? s->comm[x->comm].name : "", .b = s->comm[x->comm].id,
                                        .weight = (double)x->ns, .num = {(double)x->bytes_per_s / 1e9, (double)x->ns / 1e3},
                                        .den = {(double)(x->records - x->no_bandwidth), (double)x->records}});
  }
  find_lines(&l, false);
  int len = snprintf(title, sizeof title, "%.60s over the run, by communicator%s%s", g->func, g->timing ? ", timing " : "",
                     ni_timing_names[g->timing]);
  if (l.n > LINES)
    snprintf(title + len, sizeof title - (size_t)len, " (the %d of %s with the most time)", (int)LINES, NI_COUNT(l.n));
  panels(f, fig, 2, title);
  draw(f, &l, 0, 0, NI_FIG_GBS, "mean bus bandwidth of the records", "");
  draw(f, &l, 1, 0, NI_FIG_US, "mean time of the records", put_rolled(f, &s->buckets, &l, g));
  fprintf(f, "unset multiplot\n");
  end(&l);
}

void ni_fig_series_functions(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  struct lines l;
  begin(&l, &s->buckets);
  for (size_t i = 0; i < s->buckets.records.n; i++) {
    const struct ni_bucket_row *x = &s->buckets.records.row[i];
    add_dot(&l, x->bucket, (struct dot){.a = x->func, .b = x->timing ? ni_timing_names[x->timing] : "", .weight = (double)x->ns,
                                        .num = {(double)x->ns * 100, (double)x->operations}});
  }
  find_lines(&l, false);
  const double width = (double)s->buckets.width_ns * l.each;
  panels(f, fig, 2, "Functions over the run");
  draw(f, &l, 0, width * (double)(s->n_processes ? s->n_processes : 1), NI_FIG_NUMBERS, "time in it: percent of the time of all ranks", "");
  draw(f, &l, 1, width / 1e9, NI_FIG_NUMBERS, "operations a second", "");
  fprintf(f, "unset multiplot\n");
  end(&l);
}

/* ---- counters of hosts ---- */

/* What is shown, by the name that sources have in common (collect/metric.h), and what a unit of the picture is. */
static const struct {
  const char *name, *title;
  double unit;
  enum ni_fig_of of;
} shown_counters[PANELS] = {{"tx_bytes", "sent", 1e9, NI_FIG_GBS},
                            {"rx_bytes", "received", 1e9, NI_FIG_GBS},
                            {"tx_held", "held from sending by the network (share of the time)", 1e9, NI_FIG_NUMBERS},
                            {"nvlink_tx", "sent by NVLink", 1e9, NI_FIG_GBS},
                            {"clock_sm", "clock of the GPU (MHz)", 1, NI_FIG_NUMBERS},
                            {"power", "power of the GPU (W)", 1e3, NI_FIG_NUMBERS}};

static bool shows(const struct ni_host_bucket *x, const char *name) {
  for (unsigned i = 0; i < NI_METRIC_SOURCES; i++) {
    const char *word = strcmp(ni_source_name(i), x->source) == 0 ? ni_metric_unified((enum ni_metric_source)i, x->counter) : NULL;
    if (word && strcmp(word, name) == 0) return true;
  }
  return false;
}

static void take_counters(struct lines *l, const struct ni_buckets *b, unsigned which) {
  begin(l, b);
  for (size_t i = 0; i < b->hosts.n; i++) {
    const struct ni_host_bucket *x = &b->hosts.row[i];
    const bool level = x->min <= x->max;
    if (!shows(x, shown_counters[which].name)) continue;
    const double unit = strcmp(x->unit, "us") == 0 ? 1e6 : shown_counters[which].unit, sum = (double)x->sum * x->scale / unit;
    add_dot(l, x->bucket, (struct dot){.a = x->host, .b = x->device, .num = {sum},
                                       .den = {level ? (double)x->samples : x->seconds}});
  }
  find_lines(l, true);
}

bool ni_fig_series_any_hosts(const struct ni_summary *s) {
  bool any = false;
  for (unsigned i = 0; i < PANELS && !any; i++) {
    struct lines l;
    take_counters(&l, &s->buckets, i);
    any = l.n > 0;
    end(&l);
  }
  return any && s->buckets.records.n;
}

void ni_fig_series_hosts(FILE *f, const struct ni_figure *fig) {
  struct lines l[PANELS];
  unsigned n = 0;
  for (unsigned i = 0; i < PANELS; i++) {
    take_counters(&l[i], &fig->s->buckets, i);
    n += l[i].n > 0;
  }
  panels(f, fig, n, "Counters of hosts over the run (of many those furthest from their mean)");
  for (unsigned i = 0; i < PANELS; i++) {
    if (l[i].n) draw(f, &l[i], 0, 0, shown_counters[i].of, shown_counters[i].title, "");
    end(&l[i]);
  }
  fprintf(f, "unset multiplot\n");
}
