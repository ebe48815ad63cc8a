/* Bandwidth by sequence number: all sizes in one picture, and one panel per size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/text/amount_text.h"
#include "figure_scatter.h"

enum { KEYED_SIZES = 24 }; /* more sizes than that are told by a colour scale instead of a list */

/* Least and largest bandwidth of the points of cells [first, first + n). */
static bool find_extent(const struct ni_summary *s, uint32_t first, uint32_t n, double *lo, double *hi) {
  *lo = INFINITY;
  *hi = 0;
  for (uint32_t c = first; c < first + n; c++)
    for (uint32_t i = 0; i < s->cell[c].n_points; i++) {
      double v = (double)s->cell[c].point[i].busbw_gbs;
      if (!(v > 0))
        continue;
      if (v < *lo)
        *lo = v;
      if (v > *hi)
        *hi = v;
    }
  return *hi > 0;
}

/*
 * Range and at most five or six tics of the sequence numbers: numbers of ten digits would run into each
 * other.
 */
static void write_sequence_axis(FILE *f, const struct ni_summary *s, uint32_t first, uint32_t n) {
  uint64_t lo = UINT64_MAX, hi = 0;
  for (uint32_t c = first; c < first + n; c++)
    for (uint32_t i = 0; i < s->cell[c].n_points; i++) {
      uint64_t sn = s->cell[c].point[i].sn;
      if (sn < lo)
        lo = sn;
      if (sn > hi)
        hi = sn;
    }
  if (lo > hi)
    lo = hi = 0;
  double span = (double)(hi - lo), from = (double)lo, to = (double)hi;
  /* From zero where that wastes little, so that pictures of one run can be compared. */
  if (from < span) {
    from = 0;
    span = to;
  }
  if (!(span > 0)) {
    from -= 1;
    to += 1;
    span = 2;
  }
  double e = pow(10, floor(log10(span / 5) + 1e-9)), m = span / 5 / e, step = 1;
  if (m > 5)
    step = 10;
  else if (m > 2)
    step = 5;
  else if (m > 1)
    step = 2;
  fprintf(f, "set xrange [%.0f:%.0f]\nset xtics %.0f\nset format x '%%.0f'\n", from, to, fmax(1, e * step));
}

/*
 * $name: sequence number, bandwidth, colour of the communicator; one of `step` points. Colours tell up to
 * seven communicators apart; of more, the index still separates neighbours. It is a column and not an
 * expression in `using`, and points are squares: gnuplot makes three system calls for each evaluation, and
 * cairo fills a square at a third of a circle's cost. Half of the time of these pictures went there.
 */
static void write_points(FILE *f, const char *name, const struct ni_cell *c, uint32_t step) {
  fprintf(f, "$%s << EOD\n", name);
  for (uint32_t i = 0; i < c->n_points; i += step) {
    uint64_t at = i + ni_pick(i / step, step);
    const struct ni_point *p = &c->point[at < c->n_points ? at : i];
    fprintf(f, "%" PRIu64 " %.5g %u\n", p->sn, (double)p->busbw_gbs, (unsigned)(p->comm % NI_FIG_COLORS));
  }
  if (c->n_points == 0)
    fprintf(f, "NaN NaN NaN\n");
  fprintf(f, "EOD\n");
}

static uint32_t choose_step(const struct ni_summary *s, uint32_t first, uint32_t n) {
  uint64_t all = 0;
  for (uint32_t c = first; c < first + n; c++)
    all += s->cell[c].n_points;
  return (uint32_t)(all / NI_FIG_POINTS + 1);
}

/* How much the cells are thinned, by the model or here. */
static uint64_t find_largest_stride(const struct ni_summary *s, uint32_t first, uint32_t n, uint32_t step) {
  uint64_t most = 1;
  for (uint32_t c = first; c < first + n; c++)
    if (s->cell[c].point_stride * step > most)
      most = s->cell[c].point_stride * step;
  return most;
}

static void write_thinned_note(FILE *f, uint64_t stride, int height) {
  if (stride > 1)
    fprintf(f, "set label 99 'up to one of %s operations shown' at screen 0.99,%.4f right font ',8'\n",
            NI_COUNT(stride), 11.0 / height);
}

void ni_fig_scatter(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_cell *c = &s->cell[fig->first];
  double lo, hi;
  uint32_t step = choose_step(s, fig->first, fig->n);
  char title[200];
  ni_fig_begin(f, fig, NI_FIG_W, NI_FIG_H);
  snprintf(title, sizeof title, "Comm Type: %s, Coll Type: %.60s", ni_comm_type_names[c->type], c->func);
  fprintf(f, "set title ");
  ni_fig_quoted(f, title);
  fprintf(f, " font ',12'\nset xlabel 'Operation Sequence Number'\n");
  write_sequence_axis(f, s, fig->first, fig->n);
  if (!find_extent(s, fig->first, fig->n, &lo, &hi))
    lo = hi = 1;
  ni_fig_axis_name(f, 'y', "Mean Collective Bus BW", ni_fig_axis(f, 'y', NI_FIG_GBS, lo, hi).unit);
  write_thinned_note(f, find_largest_stride(s, fig->first, fig->n, step), NI_FIG_H);
  bool keyed = fig->n <= KEYED_SIZES;
  for (uint32_t i = 0; i < fig->n; i++) {
    char name[16];
    snprintf(name, sizeof name, "p%u", i);
    write_points(f, name, &c[i], step);
  }
  /* Size order is colour order, so both scales run from dark to bright. */
  fprintf(
      f,
      "set palette defined (0 '#30123b', 1 '#3e5fcf', 2 '#1fb1c6', 3 '#4cc26c', 4 '#c9b400', 5 '#f07f1f', "
      "6 '#a11201')\n");
  fprintf(f, "set cbrange [0:%u]\n", fig->n > 1 ? fig->n - 1 : 1);
  if (keyed) {
    fprintf(f, "unset colorbox\nset key outside right top Left reverse samplen 0.5 spacing 1.1 font ',9'\n");
  } else {
    fprintf(f, "unset key\nset cblabel 'Message size'\nset rmargin screen 0.84\nset cbtics (");
    for (uint32_t k = 0; k <= 12; k++) {
      uint32_t i = k * (fig->n - 1) / 12;
      fprintf(f, "%s'%s' %u", k ? ", " : "", c[i].human, i);
    }
    fprintf(f, ")\n");
  }
  fprintf(f, "plot ");
  for (uint32_t i = 0; i < fig->n; i++) {
    char mean[40];
    fprintf(f, "%s$p%u using 1:2 with points pt 5 ps 0.4 lc palette cb %u", i ? ", \\\n  " : "", i, i);
    if (keyed)
      fprintf(f, " title 'MsgSize: %s (Mean: %s)'", c[i].human, ni_fig_rate(c[i].busbw_gbs.mean, mean));
    else
      fprintf(f, " notitle");
  }
  fprintf(f, "\n");
}

/* The cells to show when there are too many: those with the most time, in order of size. */
static uint32_t choose_cells(const struct ni_figure *fig, uint32_t *chosen) {
  const struct ni_summary *s = fig->s;
  double *share = calloc(fig->n + 1, sizeof *share), limit = -1;
  uint32_t n = 0;
  if (share && fig->n > NI_FIG_PANELS) {
    for (size_t g = 0; g < s->n_groups; g++)
      if (s->group[g].cell >= fig->first && s->group[g].cell < fig->first + fig->n)
        share[s->group[g].cell - fig->first] += s->group[g].time_share;
    /* The limit is the NI_FIG_PANELS-th largest share. */
    for (uint32_t i = 0; i < fig->n; i++) {
      uint32_t larger = 0;
      for (uint32_t k = 0; k < fig->n; k++)
        larger += share[k] > share[i] || (share[k] == share[i] && k < i);
      if (larger == NI_FIG_PANELS - 1)
        limit = share[i];
    }
  }
  for (uint32_t i = 0; i < fig->n && n < NI_FIG_PANELS; i++)
    if (!share || share[i] >= limit)
      chosen[n++] = fig->first + i;
  free(share);
  return n;
}

/*
 * Which communicator has which colour, in the line below the title; with more than have a colour or room,
 * only what colours mean. Labels are of the whole picture: written with the first panel, taken away before
 * the second.
 */
static void write_communicator_key(FILE *f, const struct ni_summary *s, const uint32_t *cell, uint32_t n,
                                   int width, double at) {
  uint32_t comm[NI_FIG_COLORS], found = 0, most = (uint32_t)width / 215;
  if (most > NI_FIG_COLORS)
    most = NI_FIG_COLORS;
  bool all = true;
  for (uint32_t c = 0; c < n && all; c++)
    for (uint32_t i = 0; i < s->cell[cell[c]].n_points && all; i++) {
      uint32_t k = 0, which = s->cell[cell[c]].point[i].comm;
      while (k < found && comm[k] != which && comm[k] % NI_FIG_COLORS != which % NI_FIG_COLORS)
        k++;
      if (k < found && comm[k] == which)
        continue;
      all = k == found && found < most; /* not: two of one colour, or no room */
      if (all)
        comm[found++] = which;
    }
  if (!all) {
    fprintf(f,
            "set label 90 'one colour for each communicator, repeated beyond %d' at screen 0.5,%.4f center "
            "font ',9'\n",
            NI_FIG_COLORS, at);
    return;
  }
  ni_fig_sort(comm, found);
  for (uint32_t i = 0; i < found; i++) {
    const struct ni_comm_row *x = &s->comm[comm[i]];
    char text[80];
    snprintf(text, sizeof text, "%.14s%s%.18s", x->name ? x->name : "", x->name && *x->name ? " " : "",
             x->id);
    fprintf(f, "set label %u ", 90 + i);
    ni_fig_quoted(f, text);
    fprintf(f, " at screen %.4f,%.4f left font ',8' point pt 5 ps 0.8 lc rgb '%s' offset 0.8,0\n",
            0.5 + (215.0 * i - 107.0 * found) / width, at, ni_fig_color[comm[i] % NI_FIG_COLORS]);
  }
}

void ni_fig_combined(FILE *f, const struct ni_figure *fig) {
  const struct ni_summary *s = fig->s;
  const struct ni_cell *c = &s->cell[fig->first];
  uint32_t chosen[NI_FIG_PANELS], n = choose_cells(fig, chosen);
  uint32_t columns = n < 3 ? n : 3, rows = (n + columns - 1) / columns,
           step = choose_step(s, fig->first, fig->n);
  int width = (int)columns * NI_FIG_PANEL, height = (int)rows * NI_FIG_PANEL + 40;
  char title[240];
  ni_fig_begin(f, fig, width, height);
  int len =
      snprintf(title, sizeof title, "Comm Type: %s, Coll Type: %.60s", ni_comm_type_names[c->type], c->func);
  if (n < fig->n)
    snprintf(title + len, sizeof title - (size_t)len, " (the %u of %u sizes with the most time)", n, fig->n);
  /* The title has 40 pixels of its own, whatever the number of rows. */
  fprintf(f, "set multiplot layout %u,%u margins screen %.4f,%.4f,%.4f,%.4f spacing screen %.4f,%.4f title ",
          rows, columns, 76.0 / width, 1 - 24.0 / width, 58.0 / height, 1 - 84.0 / height, 98.0 / width,
          96.0 / height);
  ni_fig_quoted(f, title);
  fprintf(f, " font ',13'\nset xlabel 'Op Seq No' offset 0,0.5\nunset key\nunset colorbox\n");
  write_communicator_key(f, s, chosen, n, width, 1 - 38.0 / height);
  write_thinned_note(f, find_largest_stride(s, fig->first, fig->n, step), height);
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_cell *x = &s->cell[chosen[i]];
    double lo, hi;
    if (!find_extent(s, chosen[i], 1, &lo, &hi))
      lo = hi = 1;
    fprintf(f, "set title 'Message Size: %s(%" PRIu64 ")' font ',11'\n", x->human, x->msg_bytes);
    ni_fig_axis_name(f, 'y', "Mean Collective Bus BW", ni_fig_axis(f, 'y', NI_FIG_GBS, lo, hi).unit);
    write_sequence_axis(f, s, chosen[i], 1);
    write_points(f, "p", x, step);
    fprintf(f, "set palette maxcolors %d defined (", NI_FIG_COLORS);
    for (int k = 0; k < NI_FIG_COLORS; k++)
      fprintf(f, "%s%d '%s'", k ? ", " : "", k, ni_fig_color[k]);
    fprintf(f, ")\nset cbrange [0:%d]\nplot $p using 1:2:3 with points pt 5 ps 0.35 lc palette\n",
            NI_FIG_COLORS - 1);
    if (i == 0)
      fprintf(f, "unset label\n");
  }
  fprintf(f, "unset multiplot\n");
}
