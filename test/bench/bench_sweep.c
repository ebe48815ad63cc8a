/*
 * What a sweep of Cassini's counters costs beside the kernel's reads: the collector and bare pread() of the
 * same descriptors in turn, on a tree below NI_ROOT (test/bench/bench_counters.sh). Prints medians, "name
 * value" a line; times in us and ms.
 *   bench_sweep [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/collect/collector.h"

enum { MOST = 1000 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *v, int n) {
  qsort(v, (size_t)n, sizeof *v, by_value);
  return v[n / 2];
}

static double since(uint64_t ns) { return (double)(ni_now_ns(CLOCK_MONOTONIC) - ns) / 1e3; }

int main(int argc, char **argv) {
  static double bare[MOST], ours[MOST], less[MOST], threads[MOST], cpu[MOST];
  int rounds = argc > 1 ? atoi(argv[1]) : 31;
  if (rounds < 1 || rounds > MOST)
    rounds = MOST;
  const struct ni_wanted all = {.all = true, .sources = 1u << NI_METRIC_CXI};
  struct ni_collector *c;
  ni_collector_raise_limit();
  uint64_t at = ni_now_ns(CLOCK_MONOTONIC);
  if (ni_collector_open(&c, &all) != 0)
    return 1;
  double opened = since(at);
  const struct ni_set *set = ni_collector_set(c);
  size_t n = set->n_counters, n_fds = 0;
  struct ni_reading *r = calloc(n + 1, sizeof *r);
  int *fd = calloc(n + 1, sizeof *fd);
  struct stat st;
  for (int i = 3; r && fd && n_fds < n && i < (int)n + 1000; i++)
    if (fstat(i, &st) == 0 && S_ISREG(st.st_mode))
      fd[n_fds++] = i;
  if (!n || n_fds != n) {
    free(r);
    free(fd);
    fprintf(stderr, "%zu counters, %zu descriptors: more open files must be allowed (ulimit -n)\n", n, n_fds);
    return 1;
  }
  for (int i = 0; i < rounds; i++) {
    char text[64];
    ssize_t sum = 0;
    at = ni_now_ns(CLOCK_MONOTONIC);
    for (size_t k = 0; k < n; k++)
      sum += pread(fd[k], text, sizeof text - 1, 0);
    bare[i] = since(at) / (double)n;
    at = ni_now_ns(CLOCK_MONOTONIC);
    size_t bad = ni_collector_read(c, r, 1);
    ours[i] = since(at) / (double)n;
    less[i] = ours[i] - bare[i];
    at = ni_now_ns(CLOCK_MONOTONIC);
    uint64_t used = ni_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    bad += ni_collector_read(c, r, (unsigned)set->n_entities);
    threads[i] = since(at) / 1e3;
    cpu[i] = (double)(ni_now_ns(CLOCK_PROCESS_CPUTIME_ID) - used) / 1e6;
    if (bad || sum <= 0)
      return 1;
  }
  double serial = median(ours, rounds);
  printf(
      "counters %zu\nentities %zu\nopen_ms %.1f\nbare_us %.3f\nours_us %.3f\nown_us %.3f\nserial_ms "
      "%.1f\nthreads_ms %.1f\nthreads_cpu_ms %.1f\n",
      n, set->n_entities, opened / 1e3, median(bare, rounds), serial, median(less, rounds),
      serial * (double)n / 1e3, median(threads, rounds), median(cpu, rounds));
  ni_collector_close(c);
  free(r);
  free(fd);
  return 0;
}
