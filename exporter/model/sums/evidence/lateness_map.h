/*
 * The heat map of a job that is judged by own time: who was late when, by the numbers that findings come
 * from.
 *
 * Each bin of steps of the judge (blame.h, beyond_us) covers the time from its start to the start of the
 * next one. A time bin of the map has the mean of the step bins that it touches, as a part of the usual
 * step: 0.06 is a rank that took 6 % of a step longer between operations than ranks with the same work.
 * Pauses are in it, as far as they are longer than the middle rank's.
 *
 * Threads: the main one; after ni_figures_sum(), whose map by durations is replaced. Where the job is not
 * judged by own time, or there is no map, nothing happens. 0 or -ENOMEM.
 */
#ifndef NI_LATENESS_MAP_H
#define NI_LATENESS_MAP_H

#include "exporter/model/sums/ranks/blame.h"

int ni_fill_lateness_map(const struct ni_blame *b, struct ni_summary *s);

#endif
