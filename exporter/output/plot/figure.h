/*
 * The figures as gnuplot text: one function per kind, each writing a script that stands alone.
 *
 * A script starts from gnuplot's defaults (ni_fig_begin), so an error in one leaves nothing behind for the
 * next. Data go into datablocks as numbers; texts only through ni_fig_quoted() and ni_fig_label(). Threads:
 * pure, any. Ownership: nothing is kept. Failure: write errors stay in the FILE.
 */
#ifndef NI_FIGURE_H
#define NI_FIGURE_H

#include <stdio.h>

#include "plot.h"

enum { NI_FIG_W = 1000, NI_FIG_H = 600, NI_FIG_PANEL = 500, NI_FIG_PANELS = 36, NI_FIG_POINTS = 24000 };

struct ni_figure {
  void (*write)(FILE *f, const struct ni_figure *fig);
  const struct ni_summary *s;
  enum ni_plot_format format;
  uint32_t first, n; /* cells */
  /* below the summary's folder, ending included; of words of ni_file_word(), so nothing to quote */
  char path[400];
};

/* Okabe and Ito's colours, the yellow darkened for white paper. */
#define NI_FIG_COLORS 7
extern const char *const ni_fig_color[NI_FIG_COLORS];

/* Terminal, size in pixels (PDF: hundredths of an inch), output file, and what all figures share. */
void ni_fig_begin(FILE *f, const struct ni_figure *fig, int width, int height);

/* 'text', safe whatever it holds: quotes doubled, what safe_text.h names replaced, 200 bytes. */
void ni_fig_quoted(FILE *f, const char *text);
/* The same for tic labels, which gnuplot takes as formats. */
void ni_fig_label(FILE *f, const char *text);

/* What data are: numbers of anything, GB/s, microseconds. */
enum ni_fig_of { NI_FIG_NUMBERS = 0, NI_FIG_GBS, NI_FIG_US };
/* A rate of GB/s in three digits and the unit that leaves one before the point: "50.0 kB/s". */
const char *ni_fig_rate(double gbs, char out[40]);

/*
 * Range and tics of axis 'x' or 'y' for data lo..hi; logarithmic when they span more than a decade, else from
 * 0. All tics of an axis have one unit: that of the largest, or a smaller one where the least would be below
 * a thousandth. The tics of times say it; of rates the caller does, in the axis' label. Pure; the unit's name
 * is constant.
 */
struct ni_fig_scale {
  bool log;
  const char *unit; /* "GB/s", "ms"; "" of numbers */
};
struct ni_fig_scale ni_fig_axis(FILE *f, char axis, enum ni_fig_of of, double lo, double hi);
/* Names axis 'x' or 'y', the unit behind it: "Bus bandwidth (GB/s)". */
void ni_fig_axis_name(FILE *f, char axis, const char *what, const char *unit);
/*
 * As ni_fig_axis() for data that lie close together: from..to as they are, and no logarithm. Returns the
 * unit.
 */
const char *ni_fig_axis_between(FILE *f, char axis, enum ni_fig_of of, double from, double to);
/* A few numbers in order. */
void ni_fig_sort(uint32_t *number, uint32_t n);

#endif
