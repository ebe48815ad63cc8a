/* Histogram and box plot of one cell. */
#include "figure_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

static void write_title(FILE *f, const struct ni_cell *c, const char *what) {
  char text[300];
  snprintf(text, sizeof text,
           "%s of Mean Bus BW, Comm Type: %s, Coll Type: %.60s, Message Size: %s(%" PRIu64 ")", what,
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
  write_title(f, c, "Histogram");
  fprintf(f, "set key top left Left reverse horizontal samplen 1.5\nset ylabel 'Frequency (operations)'\n");
  uint64_t top = 1;
  for (uint32_t i = 0; i < h->n; i++)
    if (h->count[i] > top)
      top = h->count[i];
  ni_fig_axis(f, 'y', NI_FIG_NUMBERS, 0, 1.12 * (double)top); /* room for the key */
  if (top < 5)
    fprintf(f, "set yrange [0:%" PRIu64 "]\nset ytics 1\n", top + 1);
  /* All values equal: one bar of some width. */
  bool one = !(h->hi > h->lo);
  struct ni_fig_scale x = {0};
  if (h->log && !one)
    x = ni_fig_axis(f, 'x', NI_FIG_GBS, h->lo, h->hi);
  double pad = one ? (h->lo > 0 ? h->lo * 0.1 : 1) : (h->hi - h->lo) * 0.02;
  if (!x.log)
    x.unit = ni_fig_axis_between(f, 'x', NI_FIG_GBS, h->lo - pad, h->hi + pad);
  ni_fig_axis_name(f, 'x', "Mean Bus BW", x.unit);
  fprintf(f, "$h << EOD\n");
  for (uint32_t i = 0; i < h->n; i++) {
    double n = h->n, a, z;
    if (one) {
      a = h->lo - pad / 4;
      z = h->lo + pad / 4;
    } else if (h->log) {
      a = h->lo * pow(h->hi / h->lo, i / n);
      z = h->lo * pow(h->hi / h->lo, (i + 1) / n);
    } else {
      a = h->lo + (h->hi - h->lo) * i / n;
      z = h->lo + (h->hi - h->lo) * (i + 1) / n;
    }
    if (h->count[i] || (!one && i == 0))
      fprintf(f, "%.9g %.9g %.9g %" PRIu64 "\n", (a + z) / 2, a, z, h->count[i]);
    if (one)
      break;
  }
  fprintf(f, "EOD\n$l << EOD\n%.9g 0\n%.9g %" PRIu64 "\nEOD\n$m << EOD\n%.9g 0\n%.9g %" PRIu64 "\nEOD\n",
          b->p50, b->p50, top, b->mean, b->mean, top);
  char p50[40], mean[40];
  fprintf(f,
          "set style fill solid 0.85 border lc rgb '#ffffff'\n"
          "plot $h using 1:(0):2:3:(0):4 with boxxyerror lc rgb '%s' title '%s %s', \\\n"
          "  $l using 1:2 with lines lw 2 lc rgb '%s' title 'Median %s', \\\n"
          "  $m using 1:2 with lines lw 2 dt 2 lc rgb '%s' title 'Mean %s'\n",
          ni_fig_color[0], NI_COUNT(c->operations), ni_plural(c->operations, "operation", "operations"),
          ni_fig_color[1], ni_fig_rate(b->p50, p50), ni_fig_color[6], ni_fig_rate(b->mean, mean));
}

enum { BOX_COMMS = 10 };

struct box_of_comm {
  double lo, q1, median, q3, hi;
  const struct ni_comm_row *comm; /* NULL: all operations */
};

static int compare_by_median(const void *a, const void *b) {
  const struct box_of_comm *x = a, *y = b;
  return NI_BY(x, y, median, comm);
}

/*
 * The communicators of the cell: n boxes in `out`, the slowest first, at most `room`; *all: how many there
 * are.
 */
static uint32_t comm_boxes(const struct ni_summary *s, uint32_t cell, struct box_of_comm *out, uint32_t room,
                           uint32_t *all) {
  struct box_of_comm *list = calloc(s->n_comms + 1, sizeof *list);
  uint32_t n = 0;
  if (list)
    for (size_t i = 0; i < s->n_by_comm && n < s->n_comms; i++) {
      const struct ni_slice *x = &s->by_comm[i];
      if (s->group[x->group].cell != cell || x->busbw_gbs.n == 0)
        continue;
      list[n++] = (struct box_of_comm){x->busbw_gbs.p10, x->busbw_gbs.p25, x->busbw_gbs.p50,
                                       x->busbw_gbs.p75, x->busbw_gbs.p90, &s->comm[x->of]};
    }
  *all = n;
  if (n > 1)
    qsort(list, n, sizeof *list, compare_by_median);
  if (n > room)
    n = room;
  for (uint32_t i = 0; i < n; i++)
    out[i] = list[i];
  free(list);
  return n;
}

void ni_fig_boxplot(FILE *f, const struct ni_figure *fig) {
  const struct ni_cell *c = &fig->s->cell[fig->first];
  const struct ni_whisker *b = &c->box;
  struct box_of_comm box[BOX_COMMS + 1] = {{b->whisker_lo, b->q1, b->median, b->q3, b->whisker_hi, NULL}};
  uint32_t all, n = 1 + comm_boxes(fig->s, fig->first, box + 1, BOX_COMMS, &all);
  if (all < 2)
    n = 1; /* a single communicator is all operations */
  double lo = b->min, hi = b->max;
  for (uint32_t i = 1; i < n; i++) {
    if (box[i].lo < lo)
      lo = box[i].lo;
    if (box[i].hi > hi)
      hi = box[i].hi;
  }
  ni_fig_begin(f, fig, NI_FIG_W, NI_FIG_H);
  write_title(f, c, "Box Plot");
  struct ni_fig_scale x = ni_fig_axis(f, 'x', NI_FIG_GBS, lo, hi);
  double pad = hi > lo ? (hi - lo) * 0.06 : hi > 0 ? hi * 0.1 : 1;
  if (!x.log)
    x.unit = ni_fig_axis_between(f, 'x', NI_FIG_GBS, lo - pad, hi + pad);
  ni_fig_axis_name(f, 'x', "Mean Coll Bus BW", x.unit);
  fprintf(f, "unset key\nset bmargin 5\nset lmargin %d\nset grid noytics\n", n > 1 ? 30 : 20);
  fprintf(f, "set yrange [%.2f:%.2f]\nset ytics scale 0 ('all %s %s' -1", n > 1 ? -(double)n - 0.7 : -1.8,
          n > 1 ? 0.08 * n : 0.1, NI_COUNT(b->n), ni_plural(b->n, "operation", "operations"));
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
    fprintf(f, "%u %.9g %.9g %.9g %.9g %.9g\n", i + 1, box[i].lo, box[i].q1, box[i].median, box[i].q3,
            box[i].hi);
  fprintf(f, "EOD\n");
  /*
   * The five figures in one line above: over the marks they would lie on each other whenever values are
   * close.
   */
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
    fprintf(f, "; communicators%s: p10, p25, p50, p75, p90 of the records",
            all > n - 1 ? ", the slowest" : "");
  fprintf(f, "' at screen 0.99,0.02 right font ',8'\n");
  fprintf(f,
          "$x << EOD\n%.9g -1\n%.9g -1\nEOD\nset style fill solid 0.35 border lc rgb '%s'\n"
          "plot $b using 2:(-$1):($6-$2):(0) with vectors nohead lw 1.5 lc rgb '%s', \\\n"
          "  $b using 4:(-$1):3:5:(-$1-%.2f):(-$1+%.2f) with boxxyerror lw 1.5 lc rgb '%s', \\\n"
          "  $b using 4:(-$1-%.2f):(0):(%.2f) with vectors nohead lw 3 lc rgb '%s', \\\n"
          "  $x using 1:2 with points pt 7 ps 0.8 lc rgb '%s'\n",
          b->min, b->max, ni_fig_color[0], ni_fig_color[0], n > 1 ? 0.32 : 0.2, n > 1 ? 0.32 : 0.2,
          ni_fig_color[0], n > 1 ? 0.32 : 0.2, n > 1 ? 0.64 : 0.4, ni_fig_color[1], ni_fig_color[6]);
}
