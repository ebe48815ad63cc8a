/*
 * What pictures and page have in common: what the user asked for, and how more points are shown as fewer.
 *
 * Pure, but for ni_render_say(), which may be called by several threads if say may.
 */
#ifndef NI_OUTPUT_RENDER_H
#define NI_OUTPUT_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/mix.h"

struct ni_progress;

/* What the user asked for that concerns pictures and page. */
struct ni_render_options {
  unsigned plot_format; /* enum ni_plot_format (plot.h) */
  bool keep_scripts, compat, quiet;
  unsigned jobs;       /* gnuplots at once, 0 is 1; no picture depends on it */
  const char *input;   /* what was read, as the user wrote it; of several inputs the first */
  char *const *inputs; /* all of them; NULL: `input` */
  size_t n_inputs;
  const char *version;
  const char *gnuplot; /* program to run; NULL: "gnuplot", found by PATH */
  /* messages of the renderers, without line feed; NULL: to stderr */
  void (*say)(void *context, const char *line);
  void *say_context;
  struct ni_progress *progress; /* NULL: nobody looks */
};

/* One message of a renderer, to whom the options say. */
void ni_render_say(const struct ni_render_options *o, const char *line);

/*
 * Thinning: of each `n` neighbours (n >= 1) one is shown, which of them is chosen by the number of their
 * block as if by dice. A fixed step would take the same communicator every time where operations take turns.
 */
static inline uint64_t ni_pick(uint64_t block, uint64_t n) {
  block = ni_spread(block + 1);
  block = (block ^ block >> 29) * 0xbf58476d1ce4e5b9u;
  return (block ^ block >> 32) % n;
}

#endif
