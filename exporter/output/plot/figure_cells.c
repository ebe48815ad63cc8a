/* Histogram and box plot of one cell. Over sizes and over the run: bandwidth against size, time percentiles, rank x time. */
#include "figure_cells.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

static void title(FILE *f, const struct ni_cell *c, const char *what) {
  char text[300];
  snprintf(text, sizeof text, "%s of Mean Bus BW, Comm Type: %s, Coll Type: %.60s, Message Size: %s(%" PRIu64 ")", what,
           ni_comm_type_names[c->type], c->func, c->human, c->msg_bytes);
  /* A label in the middle of the picture: a title stands over the middle of the axes and would be cut. */
  fprintf(f, "set tmargin at screen 0.925\nset label 9 ");
  ni_fig_quoted(f, text);
  fprintf(f, " at screen 0.5,0.965 center font ',12'\n");
}

void ni_fig_histogram(FILE *f, const struct ni_figure *fig) {
  const struct ni_cell *c = &fig->s->cell[fig->first];
  const struct ni_hist *h = &c->hist;
  const struct ni_stats *b = &c->busbw_gbs;
  ni_fig_begin(f, fig, NI_FIG_W, NI_FIG_H);
  title(f, c, "Histogram");
  fprintf(f, "set key top left Left reverse horizontal samplen 1.5\nset ylabel 'Frequency (operations)'\n");
  uint64_t top = 1;
  for (uint32_t i = 0; i < h->n; i++)
    if (h->count[i] > top) top = h->count[i];
  ni_fig_axis(f, 'y', NI_FIG_NUMBERS, 0, 1.12 * (double)top); /* room for the key */
  if (top < 5) fprintf(f, "set yrange [0:%" PRIu64 "]\nset ytics 1\n", top + 1);
  /* All values equal: one bar of some width. */
  bool one = !(h->hi > h->lo);
  struct ni_fig_scale x = {0};
  if (h->log && !one) x = ni_fig_axis(f, 'x', NI_FIG_GBS, h->lo, h->hi);
  double pad = one ? (h->lo > 0 ? h->lo * 0.1 : 1) : (h->hi - h->lo) * 0.02;
  if (!x.log) x.unit = ni_fig_axis_between(f, 'x', NI_FIG_GBS, h->lo - pad, h->hi + pad);
  ni_fig_axis_name(f, 'x', "Mean Bus BW", x.unit);
  fprintf(f, "$h << EOD\n");
  for (uint32_t i = 0; i < h->n; i++) {
    double n = h->n, a, z;
    if (one) a = h->lo - pad / 4, z = h->lo + pad / 4;
    else if (h->log) a = h->lo * pow(h->hi / h->lo, i / n), z = h->lo * pow(h->hi / h->lo, (i + 1) / n);
    else a = h->lo + (h->hi - h->lo) * i / n, z = h->lo + (h->hi - h->lo) * (i + 1) / n;
    if (h->count[i] || (!one && i == 0)) fprintf(f, "%.9g %.9g %.9g %" PRIu64 "\n", (a + z) / 2, a, z, h->count[i]);
    if (one) break;
  }
  fprintf(f, "EOD\n$l << EOD\n%.9g 0\n%.9g %" PRIu64 "\nEOD\n$m << EOD\n%.9g 0\n%.9g %" PRIu64 "\nEOD\n", b->p50,
          b->p50, top, b->mean, b->mean, top);
  char p50[40], mean[40];
  fprintf(f,
          "set style fill solid 0.85 border lc rgb '#ffffff'\n"
          "plot $h using 1:(0):2:3:(0):4 with boxxyerror lc rgb '%s' title '%s %s', \\\n"
          "  $l using 1:2 with lines lw 2 lc rgb '%s' title 'Median %s', \\\n"
          "  $m using 1:2 with lines lw 2 dt 2 lc rgb '%s' title 'Mean %s'\n",
          ni_fig_color[0], NI_COUNT(c->operations), ni_plural(c->operations, "operation", "operations"), ni_fig_color[1],
          ni_fig_rate(b->p50, p50), ni_fig_color[6], ni_fig_rate(b->mean, mean));
}

enum { BOX_COMMS = 10 };

struct box {
  double lo, q1, median, q3, hi;
  const struct ni_comm_row *comm; /* NULL: all operations */
};

static NI_ORDER_BY(by_median, struct box, median, comm)

/* The communicators of the cell: n boxes in `out`, the slowest first, at most `room`; *all: how many there are. */
static uint32_t comm_boxes(const struct ni_summary *s, uint32_t cell, struct box *out, uint32_t room, uint32_t *all) {
  struct box *list = calloc(s->n_comms + 1, sizeof *list);
  uint32_t n = 0;
  if (list)
    for (size_t i = 0; i < s->n_by_comm && n < s->n_comms; i++) {
      const struct ni_slice *x = &s->by_comm[i];
      if (s->group[x->group].cell != cell || x->busbw_gbs.n == 0) continue;
      list[n++] = (struct box){x->busbw_gbs.p10, x->busbw_gbs.p25, x->busbw_gbs.p50, x->busbw_gbs.p75, x->busbw_gbs.p90,
                               &s->comm[x->of]};
    }
  *all = n;
  if (n > 1) qsort(list, n, sizeof *list, by_median);
  if (n > room) n = room;
  for (uint32_t i = 0; i < n; i++) out[i] = list[i];
  free(list);
  return n;
}

void ni_fig_boxplot(FILE *f, const struct ni_figure *fig) {
  const struct ni_cell *c = &fig->s->cell[fig->first];
  const struct ni_whisker *b = &c->box;
  struct box box[BOX_COMMS + 1] = {{b->whisker_lo, b->q1, b->median, b->q3, b->whisker_hi, NULL}};
  uint32_t all, n = 1 + comm_boxes(fig->s, fig->first, box + 1, BOX_COMMS, &all);
  if (all < 2) n = 1; /* a single communicator is all operations */
  double lo = b->min, hi = b->max;
  for (uint32_t i = 1; i < n; i++) {
    if (box[i].lo < lo) lo = box[i].lo;
    if (box[i].hi > hi) hi = box[i].hi;
  }
  ni_fig_begin(f, fig, NI_FIG_W, NI_FIG_H);
  title(f, c, "Box Plot");
  struct ni_fig_scale x = ni_fig_axis(f, 'x', NI_FIG_GBS, lo, hi);
  double pad = hi > lo ? (hi - lo) * 0.06 : hi > 0 ? hi * 0.1 : 1;
  if (!x.log) x.unit = ni_fig_axis_between(f, 'x', NI_FIG_GBS, lo - pad, hi + pad);
  ni_fig_axis_name(f, 'x', "Mean Coll Bus BW", x.unit);
  fprintf(f, "unset key\nset bmargin 5\nset lmargin %d\nset grid noytics\n", n > 1 ? 30 : 20);
  fprintf(f, "set yrange [%.2f:%.2f]\nset ytics scale 0 ('all %s %s' -1",
          n > 1 ? -(double)n - 0.7 : -1.8, n > 1 ? 0.08 * n : 0.1, NI_COUNT(b->n), ni_plural(b->n, "operation", "operations"));
  for (uint32_t i = 1; i < n; i++) {
    char text[80];
    const char *name = box[i].comm->name && *box[i].comm->name ? box[i].comm->name : "";
    snprintf(text, sizeof text, "%.16s %s", name, box[i].comm->id);
    fprintf(f, ", ");
    ni_fig_label(f, text);
    fprintf(f, " -%u", i + 1);
  }
  fprintf(f, ")\n$b << EOD\n");
  for (uint32_t i = 0; i < n; i++)
    fprintf(f, "%u %.9g %.9g %.9g %.9g %.9g\n", i + 1, box[i].lo, box[i].q1, box[i].median, box[i].q3, box[i].hi);
  fprintf(f, "EOD\n");
  /* The five figures in one line above: over the marks they would lie on each other whenever values are close. */
  const double v[] = {b->min, b->q1, b->median, b->q3, b->max};
  static const char *const name[] = {"Min", "Q1", "Median", "Q3", "Max"};
  for (int i = 0; i < 5; i++) {
    char text[40];
    ni_fig_rate(v[i], text);
    fprintf(f, "set label %d '%s: %s' at graph %.2f,0.965 center%s\n", i + 1, name[i], text, 0.1 + 0.2 * i,
            i == 2 ? " font ',11' textcolor rgb '#d55e00'" : "");
  }
  fprintf(f, "set label 6 'whiskers: last value within 1.5 IQR, %s %s beyond", NI_COUNT(b->n_outside),
          ni_plural(b->n_outside, "operation", "operations"));
  if (n > 1)
    fprintf(f, "; communicators%s: p10, p25, p50, p75, p90 of the records", all > n - 1 ? ", the slowest" : "");
  fprintf(f, "' at screen 0.99,0.02 right font ',8'\n");
  fprintf(f,
          "$x << EOD\n%.9g -1\n%.9g -1\nEOD\nset style fill solid 0.35 border lc rgb '%s'\n"
          "plot $b using 2:(-$1):($6-$2):(0) with vectors nohead lw 1.5 lc rgb '%s', \\\n"
          "  $b using 4:(-$1):3:5:(-$1-%.2f):(-$1+%.2f) with boxxyerror lw 1.5 lc rgb '%s', \\\n"
          "  $b using 4:(-$1-%.2f):(0):(%.2f) with vectors nohead lw 3 lc rgb '%s', \\\n"
          "  $x using 1:2 with points pt 7 ps 0.8 lc rgb '%s'\n",
          b->min, b->max, ni_fig_color[0], ni_fig_color[0], n > 1 ? 0.32 : 0.2, n > 1 ? 0.32 : 0.2, ni_fig_color[0],
          n > 1 ? 0.32 : 0.2, n > 1 ? 0.64 : 0.4, ni_fig_color[1], ni_fig_color[6]);
}

enum { SIZES_PANELS = 6, HEAT_ROWS = 512, HEAT_TEXTS = 40 };

static bool alike(const struct ni_group *a, const struct ni_group *b) {
  return a->kind == b->kind && a->timing == b->timing && strcmp(a->func, b->func) == 0;
}
static bool on_it(const struct ni_group *g, const struct ni_group *like) {
  return alike(g, like) && g->busbw_gbs.n > 0;
}

void ni_fig_by_size(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_group *like = &s->group[fig->first];
  double lo = INFINITY, hi = 0;
  uint64_t least = UINT64_MAX, most = 0;
  for (size_t i = 0; i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    if (!on_it(g, like)) continue;
    if (g->busbw_gbs.p10 > 0 && g->busbw_gbs.p10 < lo) lo = g->busbw_gbs.p10;
    if (g->busbw_gbs.p90 > hi) hi = g->busbw_gbs.p90;
    if (g->msg_bytes < least) least = g->msg_bytes;
    if (g->msg_bytes > most) most = g->msg_bytes;
  }
  char title[200];
  ni_fig_begin(f, fig, NI_FIG_W, NI_FIG_H);
  snprintf(title, sizeof title, "Bus bandwidth against message size, %.60s (p50, band p10 to p90)%s%s", like->func,
           like->timing ? ", timing " : "", ni_timing_names[like->timing]);
  fprintf(f, "set title ");
  ni_fig_quoted(f, title);
  fprintf(f, " font ',12'\nset xlabel 'Message size'\n"
             "set key top left Left reverse horizontal\n");
  if (!(lo < INFINITY)) lo = hi > 0 ? hi : 1;
  /* Room for the key above what is drawn. */
  double top = hi > 0 ? hi : 1;
  const struct ni_fig_scale y = ni_fig_axis(f, 'y', NI_FIG_GBS, lo, top * (top > 10 * lo ? pow(top / lo, 0.08) : 1.1));
  ni_fig_axis_name(f, 'y', "Bus bandwidth", y.unit);
  ni_fig_bytes_axis(f, 'x', least, most);
  fprintf(f, "set style fill transparent solid 0.2 noborder\n");
  for (int t = 0; t < NI_TYPE_COUNT; t++) {
    fprintf(f, "$t%d << EOD\n", t);
    for (size_t i = 0; i < s->n_groups; i++) {
      const struct ni_group *g = &s->group[i];
      const struct ni_stats *b = &g->busbw_gbs;
      if ((int)g->type != t || !on_it(g, like)) continue;
      /* A zero has no place on a log axis; the axis' lower end stands for it. */
      fprintf(f, "%" PRIu64 " %.6g %.6g %.6g\n", g->msg_bytes ? g->msg_bytes : 1, y.log ? fmax(b->p10, lo) : b->p10,
              y.log ? fmax(b->p50, lo) : b->p50, b->p90);
    }
    fprintf(f, "EOD\n");
  }
  const char *comma = "plot ";
  for (int t = 0; t < NI_TYPE_COUNT; t++) {
    unsigned sizes = 0;
    for (size_t i = 0; i < s->n_groups; i++) sizes += (int)s->group[i].type == t && on_it(&s->group[i], like);
    if (sizes == 0) continue;
    static const int symbol[NI_TYPE_COUNT] = {13, 7, 9, 5, 11};
    fprintf(f, "%s$t%d using 1:2:4 with filledcurves lc rgb '%s' notitle, \\\n  ", comma, t, ni_fig_color[t]);
    /* Of a single size there is no band to see: a bar takes its place. */
    if (sizes == 1)
      fprintf(f, "$t%d using 1:3:2:4 with yerrorbars pt -1 ps 0 lw 2 lc rgb '%s' notitle, \\\n  ", t, ni_fig_color[t]);
    fprintf(f, "$t%d using 1:3 with linespoints lw 2 pt %d ps 0.9 lc rgb '%s' title '%s'", t, symbol[t],
            ni_fig_color[t], ni_comm_type_names[t]);
    comma = ", \\\n  ";
  }
  fprintf(f, strcmp(comma, "plot ") == 0 ? "plot 1 notitle lc rgb '#ffffff'\n" : "\n");
}

void ni_fig_percentiles(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_group *like = &s->group[fig->first];
  uint32_t best[SIZES_PANELS], n = 0, all = 0;
  /* The sizes with the most time, largest first; then in order of size. */
  for (uint32_t i = 0; i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    if (g->type != like->type || !alike(g, like) || !g->bin) continue;
    all++;
    uint32_t at = n < SIZES_PANELS ? n++ : SIZES_PANELS;
    while (at > 0 && s->group[best[at - 1]].time_share < g->time_share) {
      if (at < SIZES_PANELS) best[at] = best[at - 1];
      at--;
    }
    if (at < SIZES_PANELS) best[at] = i;
  }
  ni_fig_sort(best, n);
  uint32_t columns = n > 1 ? 2 : 1, rows = (n + columns - 1) / columns;
  double width = NI_FIG_W, height = n > 1 ? rows * 300 + 50 : NI_FIG_H;
  char title[240];
  int len = snprintf(title, sizeof title, "Execution time over the run, %s, %.60s%s%s", ni_comm_type_names[like->type],
                     like->func, like->timing ? ", timing " : "", ni_timing_names[like->timing]);
  if (n < all) snprintf(title + len, sizeof title - (size_t)len, " (the %u of %u sizes with the most time)", n, all);
  ni_fig_begin(f, fig, (int)width, (int)height);
  fprintf(f, "set multiplot layout %u,%u margins screen %.4f,%.4f,%.4f,%.4f spacing screen %.4f,%.4f title ", rows,
          columns, 78 / width, 1 - 34 / width, 54 / height, 1 - 74 / height, 92 / width, 92 / height);
  ni_fig_quoted(f, title);
  fprintf(f, " font ',12'\nset key top left Left reverse horizontal samplen 2 font ',9'\n"
             "set style fill transparent solid 0.25 noborder\n");
  ni_fig_run_axis(f, s);
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_group *g = &s->group[best[i]];
    double lo = INFINITY, hi = 0;
    char human[32];
    uint32_t filled = 0, last = 0;
    for (uint32_t b = 0; b < s->n_bins; b++) filled += g->bin[b].n > 0;
    /* A rare operation leaves most bins empty: a line breaks only where far more are empty than usual. */
    uint32_t usual = filled ? s->n_bins / filled : 1;
    fprintf(f, "$p << EOD\n");
    for (uint32_t b = 0; b < s->n_bins; b++) {
      const struct ni_time_bin *t = &g->bin[b];
      if (t->n == 0) continue;
      if (hi > 0 && b - last > 4 * usual + 2) fputc('\n', f);
      last = b;
      if ((double)t->us_p10 < lo) lo = (double)t->us_p10;
      if ((double)t->us_p99 > hi) hi = (double)t->us_p99;
      fprintf(f, "%.1f %.5g %.5g %.5g %.5g\n", b + 0.5, (double)t->us_p10, (double)t->us_p50, (double)t->us_p90,
              (double)t->us_p99);
    }
    fprintf(f, "EOD\n");
    if (!(hi > 0)) fprintf(f, "$p << EOD\nNaN NaN NaN NaN NaN\nEOD\n");
    ni_size_text(g->msg_bytes, human);
    fprintf(f, "set title '%s, %.1f %% of the time' font ',11'\n", human, 100 * g->time_share);
    ni_fig_axis(f, 'y', NI_FIG_US, lo < INFINITY ? lo : 1, hi > 0 ? hi * 1.15 : 1); /* room for the key */
    fprintf(f, "plot $p using 1:2:4 with filledcurves lc rgb '%s' title 'p10 to p90', \\\n"
               "  $p using 1:5 with %s lw 1 lc rgb '%s' title 'p99', \\\n"
               "  $p using 1:3 with %s lw 2 lc rgb '%s' title 'p50'\n",
            ni_fig_color[0], filled > 40 ? "lines" : "linespoints pt 7 ps 0.4", ni_fig_color[1],
            filled > 40 ? "lines" : "linespoints pt 7 ps 0.4", ni_fig_color[0]);
    if (i == 0) fprintf(f, "unset key\n");
  }
  fprintf(f, "unset multiplot\n");
}

/*
 * From -1, clearly late, to 1, as in the palette: by own time a fifth of a step longer, by durations half of
 * the peers'.
 */
static double shade(const struct ni_heat *h, size_t at) {
  double v = h->count[at] ? (double)h->relative[at] : NAN;
  if (h->by_own) return -v / 0.2;
  return v > 0 ? log2(v) : NAN;
}

/* Of several ranks on one line the furthest one is shown: one late rank among thousands stays visible. */
static double furthest(const struct ni_heat *h, uint32_t from, uint32_t to, uint32_t bin) {
  double best = NAN;
  for (uint32_t r = from; r < to; r++) {
    double v = shade(h, (size_t)r * h->bins + bin);
    if (!isnan(v) && (isnan(best) || fabs(v) > fabs(best))) best = v;
  }
  return best;
}

void ni_fig_heat(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_heat *h = &s->heat;
  uint32_t rows = h->rows < HEAT_ROWS ? h->rows : HEAT_ROWS;
  int height = (int)(rows * 22 + 130);
  if (height < 300) height = 300;
  if (height > 900) height = 900;
  ni_fig_begin(f, fig, NI_FIG_W + 100, height);
  fprintf(f, "set title 'Ranks over time: %s",
          h->by_own ? "own time beyond that of ranks with the same work, as a part of a step"
                    : "duration against the median of the peers in the same operations");
  if (h->rows > rows) fprintf(f, " (up to %u ranks a line, the furthest shown)", (h->rows + rows - 1) / rows);
  fprintf(f, "' font ',11' offset -8,0\n"
             "set palette defined (-1 '#b23c00', -0.4 '#e9a27c', 0 '#f2f3f5', 0.4 '#86b3d6', 1 '#005c9e')\n"
             "set cbrange [-1:1]\n"
             "set cbtics (%s)\n"
             "set colorbox horizontal user origin screen 0.33,%.4f size screen 0.5,%.4f\n"
             "set tics front scale 0.4\nunset grid\n"
             "set lmargin screen 0.24\nset rmargin screen 0.965\nset bmargin screen %.4f\nset tmargin screen %.4f\n",
          h->by_own ? "'20 %% longer: the others waited' -1, '10 %%' -0.5, 'as the others' 0, '10 %%' 0.5, "
                      "'20 %% shorter' 1"
                    : "'0.5x: late, the others waited' -1, '0.7x' -0.515, '1x' 0, '1.4x' 0.485, "
                      "'2x: waited for others' 1",
          34.0 / height, 12.0 / height, 100.0 / height, 1 - 40.0 / height);
  ni_fig_run_axis(f, s);
  /* The heat map may have fewer bins than the run. */
  double wide = (double)s->n_bins / (h->bins ? h->bins : 1);
  fprintf(f, "set yrange [%u:0]\nset ytics scale 0 (", rows);
  uint32_t step = (rows + HEAT_TEXTS - 1) / HEAT_TEXTS;
  if (step < 1) step = 1;
  for (uint32_t r = 0; r < rows; r += step) {
    const struct ni_process *p = &s->process[(uint64_t)r * h->rows / rows];
    char text[140], gpu[24] = "", ranks[48];
    if (p->gpu >= 0) snprintf(gpu, sizeof gpu, " GPU %d", p->gpu);
    const char *host = s->host[p->host].name;
    snprintf(text, sizeof text, "%.20s%s%s %s", host, strlen(host) > 20 ? ".." : "", gpu,
             ni_ranks_text(p, ranks));
    fprintf(f, "%s", r ? ", " : "");
    ni_fig_label(f, text);
    fprintf(f, " %.1f", r + 0.5);
  }
  fprintf(f, ") font ',8'\n");
  uint32_t source[NI_SUM_TIME_BINS];
  assert(h->bins <= NI_SUM_TIME_BINS);
  ni_heat_sources(s, source);
  fprintf(f, "$m << EOD\n");
  for (uint32_t r = 0; r < rows; r++) {
    uint32_t from = (uint32_t)((uint64_t)r * h->rows / rows), to = (uint32_t)((uint64_t)(r + 1) * h->rows / rows);
    for (uint32_t b = 0; b < h->bins; b++) {
      double v = source[b] < h->bins ? furthest(h, from, to, source[b]) : NAN;
      if (isnan(v)) fputs(b ? " NaN" : "NaN", f);
      else fprintf(f, b ? " %.2g" : "%.2g", fmax(-1, fmin(1, v)));
    }
    fputc('\n', f);
  }
  fprintf(f, "EOD\nplot $m matrix using (($1+0.5)*%.6g):($2+0.5):3 with image%s notitle\n", wide,
          fig->format == NI_PLOT_PNG ? "" : " pixels");
}
