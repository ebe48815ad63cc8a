/*
 * Which figures a summary gets, and under which names.
 *
 * Threads: one call at a time. Ownership: the caller frees ni_plots.figure. Failure: -ENOMEM, the list as far as it is.
 */
#ifndef NI_PLOT_LIST_H
#define NI_PLOT_LIST_H

#include "figure.h"

struct ni_plots {
  const struct ni_summary *s;
  const struct ni_render_options *o;
  const char *dir;
  enum ni_plot_format format;
  struct ni_figure *figure;
  size_t n, room;
};

int ni_plots_list(struct ni_plots *p);

#endif
