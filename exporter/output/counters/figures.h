/*
 * The few figures that tell at a glance what a NIC or a GPU does, from two sweeps: for `counters summarize`,
 * `counters run` and `counters watch`.
 *
 * A NIC's figures are those of all sources that know it by one name: cxi0 of telemetry and of the retry
 * handler. What no counter says is NAN. Pure; any thread.
 */
#ifndef NI_COUNTER_FIGURES_H
#define NI_COUNTER_FIGURES_H

#include <stdio.h>

#include "exporter/base/text/json_write.h"
#include "exporter/model/counters/pair.h"

enum ni_figure {
  NI_FIG_RX = 0,
  NI_FIG_TX, /* bytes a second; of a GPU over NVLink */
  NI_FIG_RX_SHARE,
  NI_FIG_TX_SHARE,  /* of the link */
  NI_FIG_PAUSED,    /* of the time, the worst direction and class */
  NI_FIG_ERRORS,    /* retries and errors a second */
  NI_FIG_BUSY,      /* GPU utilisation, CPU: share */
  NI_FIG_CLOCK,     /* MHz */
  NI_FIG_POWER,     /* W */
  NI_FIG_THROTTLED, /* of the time, the worst reason */
  NI_FIGURES
};

struct ni_figures {
  const struct ni_entity *of;
  double at[NI_FIGURES];
};

/*
 * One row a NIC, GPU or host, what is unusual first, then the busiest; *n: how many. To be freed with free();
 * NULL: no memory.
 */
struct ni_figures *ni_figures_make(const struct ni_pair *p, size_t *n);
/* Prints a table of NICs and one of GPUs. At most so many rows of each; 0: all. */
void ni_figures_print(const struct ni_figures *f, size_t n, size_t most, FILE *to);
/* The same in one line: the time, then each NIC and GPU with what is not 0. */
void ni_figures_line(const struct ni_figures *f, size_t n, FILE *to);
/* An array of objects under that key. */
void ni_figures_json(struct ni_json *j, const struct ni_figures *f, size_t n);

#endif
