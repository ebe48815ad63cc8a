/*
 * The agent's sampler (exporter/agent/sampler.h) by itself, for test/cases/agent/agent_sampler.sh and for
 * measuring what it costs.
 *
 *   sampler RING BYTES EVERY_MS SECONDS
 *
 * After each sample: "SAMPLES VALUES KNOWN LOST ERRORS DEGRADED BYTES WHY"; a line on standard input asks for
 * "ENTITY NAME TOTAL KNOWN" of all values instead. At the end: "cpu_ms N", from the first sample on.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/agent/sampler.h"
#include "exporter/base/now.h"

int main(int argc, char **argv) {
  struct ni_sampler *s;
  struct ni_running r = {0};
  struct ni_sampler_totals t = {0};
  char line[64];
  if (argc < 5)
    return 64;
  int e = ni_sampler_start(&s, strtoull(argv[3], NULL, 10) * 1000000, argv[1], strtoull(argv[2], NULL, 10));
  if (e < 0) {
    fprintf(stderr, "%s\n", strerror(-e));
    return 1;
  }
  uint64_t cpu = 0, end = ni_now_ns(CLOCK_MONOTONIC) + strtoull(argv[4], NULL, 10) * 1000000000;
  struct pollfd p[] = {{.fd = ni_sampler_fd(s), .events = POLLIN}, {.fd = 0, .events = POLLIN}};
  while (ni_now_ns(CLOCK_MONOTONIC) < end && poll(p, 2, 1000) >= 0) {
    if (p[0].revents) {
      if (ni_sampler_copy(s, &r, &t) < 0)
        return 1;
      size_t known = 0;
      for (size_t i = 0; i < r.n; i++)
        known += r.value[i].known;
      printf("%" PRIu64 " %zu %zu %" PRIu64 " %" PRIu64 " %d %" PRIu64 " %s\n", t.samples, r.n, known,
             t.ring.lost, t.ring.errors, t.ring.degraded, t.ring.bytes, t.ring.why);
      fflush(stdout);
      if (!cpu)
        cpu = ni_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    }
    if (p[1].revents) {
      if (read(0, line, sizeof line) <= 0)
        break;
      for (size_t i = 0; i < r.n; i++)
        printf("= %s %s %" PRIu64 " %d\n", r.value[i].entity, r.value[i].name, r.value[i].total,
               r.value[i].known);
      printf("=\n");
      fflush(stdout);
    }
  }
  printf("cpu_ms %.1f\n", (double)(ni_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / 1e6);
  ni_sampler_stop(s);
  ni_running_free(&r);
  return 0;
}
