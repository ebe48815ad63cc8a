/*
 * sample_gpus --seconds S --every MS [--threads N]
 *
 * Reads the short list of GPU counters again and again, at idle priority as the commands do, and says how
 * often and for how long: what runs beside a job in make bench (run.sh) and in test/cases/counters/. The
 * library is the loader's.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/base/now.h"
#include "exporter/collect/collector.h"

int main(int argc, char **argv) {
  double seconds = 1, every_ms = 1000, busy = 0;
  unsigned threads = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--seconds"))
      seconds = atof(argv[i + 1]);
    if (!strcmp(argv[i], "--every"))
      every_ms = atof(argv[i + 1]);
    if (!strcmp(argv[i], "--threads"))
      threads = (unsigned)atoi(argv[i + 1]);
  }
  if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0})) {
    perror("SCHED_IDLE");
    return 1;
  }
  struct ni_wanted w = {.sources = 1u << NI_METRIC_GPU};
  struct ni_collector *c;
  if (ni_collector_open(&c, &w))
    return 1;
  const struct ni_set *s = ni_collector_set(c);
  for (size_t i = 0; i < s->n_unread; i++)
    fprintf(stderr, "%s: %s\n", s->unread[i].path, s->unread[i].why);
  struct ni_reading *r = calloc(s->n_counters + 1, sizeof *r);
  uint64_t began = ni_now_ns(CLOCK_MONOTONIC), next = began, sweeps = 0, stale = 0;
  printf("counters %zu\n", s->n_counters);
  fflush(stdout);
  for (; r && (double)(next - began) < seconds * 1e9; next += (uint64_t)(every_ms * 1e6)) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
                    &(struct timespec){(time_t)(next / 1000000000), (long)(next % 1000000000)}, NULL);
    uint64_t t0 = ni_now_ns(CLOCK_MONOTONIC);
    ni_collector_read(c, r, threads);
    busy += (double)(ni_now_ns(CLOCK_MONOTONIC) - t0);
    sweeps++;
    for (size_t i = 0; i < s->n_counters; i++)
      stale += r[i].mono_ns < (int64_t)t0;
  }
  double all = (double)(ni_now_ns(CLOCK_MONOTONIC) - began);
  printf("sweeps %" PRIu64 "\nbusy_percent %.3f\nstale_percent %.1f\n", sweeps, 100 * busy / all,
         100 * (double)stale / (double)(sweeps * s->n_counters + !s->n_counters));
  free(r);
  ni_collector_close(c);
  return 0;
}
