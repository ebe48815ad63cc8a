/*
 * Sends metrics that are known by OTLP with the agent's encoder and sender (exporter/output/metrics/otlp.h,
 * exporter/agent/otlp_send.h), for test/lib/otlp.py. ni_metrics_each() is this file's: the state of a node is
 * not needed.
 *
 *   otlp_send URL [HEADER]   on standard input: "put N" (a request whose sums are N), "sleep MS", "totals";
 *                            it stops at the end
 *   otlp_send --encode N     the request to standard output, with so many more data points
 *   otlp_send --refused      what the answer on standard input says
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/agent/otlp_send.h"
#include "exporter/base/now.h"
#include "exporter/output/metrics/otlp.h"

static uint64_t n, more;

int ni_metrics_each(const struct ni_metrics_in *in, const struct ni_metrics_to *to) {
  const struct ni_label rank[] = {
      {"node", in->self->node}, {"job_id", "77"}, {"rank", "3"}, {"comm", "dp\xff\n"}, {"gpu", ""}};
  const struct ni_label gpu[] = {{"gpu", "0"}, {"uuid", "GPU-5"}};
  char name[2000], number[24];
  to->family(to->to,
             &(struct ni_family){"nccl_inspector_operation_duration_seconds", "seconds", "time in flight",
                                 NI_METRICS_HISTOGRAM});
  to->hist(
      to->to, rank, 2,
      &(struct ni_metrics_hist){(const double[]){1e-5, 0.5}, (const uint64_t[]){1, n, 3}, 2, 12.25, n + 4});
  to->family(to->to,
             &(struct ni_family){"nccl_inspector_operations", "operations", "operations that finished",
                                 NI_METRICS_COUNTER});
  to->whole(to->to, rank, 5, n);
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  for (uint64_t i = 0; i < more; i++) {
    snprintf(number, sizeof number, "%" PRIu64, i);
    to->whole(to->to, (struct ni_label[]){{"rank", number}, {"name", name}}, 2, n);
  }
  to->family(to->to, &(struct ni_family){"nccl_inspector_late_seconds", "seconds", "", NI_METRICS_COUNTER});
  to->value(to->to, rank, 3, 0.25 * (double)n);
  to->family(to->to, &(struct ni_family){"nccl_inspector_gpu", "", "GPUs", NI_METRICS_INFO});
  to->whole(to->to, gpu, 2, 1);
  to->family(to->to,
             &(struct ni_family){"nccl_inspector_gpu_utilization_ratio", "ratio", "busy", NI_METRICS_GAUGE});
  to->value(to->to, gpu, 1, 0.5);
  to->value(to->to, &(struct ni_label){"gpu", "1"}, 1, NAN);
  to->family(
      to->to,
      &(struct ni_family){"nccl_inspector_nic_receive_bytes", "bytes", "received", NI_METRICS_COUNTER});
  to->whole(to->to, NULL, 0, UINT64_MAX);
  return 0;
}

static void *request(size_t *bytes) {
  struct ni_live live = {.began_ns = UINT64_C(1790000000000000001)};
  const struct ni_agent_self self = {
      .node = "n1", .version = "1.2", .began_ns = UINT64_C(1790000005000000001)};
  void *r = ni_metrics_otlp(
      &(struct ni_metrics_in){.live = &live, .self = &self, .unix_ns = UINT64_C(1790000009000000007)}, bytes);
  if (!r)
    exit(3);
  return r;
}

int main(int argc, char **argv) {
  char line[256], why[256];
  size_t bytes;
  struct ni_otlp *o;
  if (argc > 2 && strcmp(argv[1], "--encode") == 0) {
    n = 5;
    more = strtoull(argv[2], NULL, 10);
    void *r = request(&bytes);
    fwrite(r, 1, bytes, stdout);
    free(r);
    return 0;
  }
  if (argc > 1 && strcmp(argv[1], "--refused") == 0) {
    static char answer[1 << 16];
    uint64_t points;
    bool sound = ni_otlp_refused(answer, fread(answer, 1, sizeof answer, stdin), &points, why, sizeof why);
    printf("%d %" PRIu64 " %s\n", sound, points, why);
    return 0;
  }
  int e = ni_otlp_start(&o, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : NULL);
  if (e < 0) {
    printf("refused %s\n", strerror(-e));
    return 1;
  }
  while (fgets(line, sizeof line, stdin)) {
    uint64_t of = strtoull(line + strcspn(line, "0123456789\n"), NULL, 10);
    if (strncmp(line, "put", 3) == 0) {
      n = of;
      void *r = request(&bytes);
      ni_otlp_put(o, r, bytes);
    } else if (strncmp(line, "sleep", 5) == 0) {
      usleep((useconds_t)(of * 1000));
    } else {
      struct ni_otlp_totals t = ni_otlp_totals(o);
      printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", t.sent, t.retried, t.dropped, t.refused,
             t.error);
      fflush(stdout);
    }
  }
  uint64_t from = ni_now_ns(CLOCK_MONOTONIC);
  ni_otlp_stop(o);
  printf("stopped %" PRIu64 "\n", (ni_now_ns(CLOCK_MONOTONIC) - from) / 1000000);
  return 0;
}
