/*
 * What an operation costs the host: bursts of small AllReduces, the calls timed, then the stream waited for.
 *
 * A cost line per size and figure, the median over the bursts: `enqueue` the host's time in the NCCL call,
 * `elapsed` from the first call to the end of the last operation, `cpu` the process's CPU time (all threads,
 * so the proxy thread and the plugin's own are in it); ns per operation. The same burst without a plugin,
 * with an empty one and with ours gives what each adds; scripts/gpu_validate.sh runs the presets in turn and
 * compares.
 */
#include "rank.h"

#include <stdlib.h>

enum { BURST = 64, BURSTS = 15, WARM_UP = 4 };

static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int order(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void put(struct ni_rank *r, const char *what, uint64_t bytes, uint64_t *v, int n) {
  qsort(v, (size_t)n, sizeof *v, order);
  fprintf(r->truth, "cost what=%s_%llu n=%d ns=%llu\n", what, (unsigned long long)bytes, n * BURST,
          (unsigned long long)v[n / 2]);
}

void ni_plan_cost(struct ni_rank *r) {
  static const uint64_t sizes[] = {8, 65536};
  struct ni_gcomm *c = NULL;
  for (int i = 0; i < r->n_comms; i++)
    if (r->comm[i].nccl)
      c = &r->comm[i];
  if (!c)
    c = ni_rank_world(r, "ni-world", false);
  r->untimed = true;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    uint64_t enqueue[BURSTS], elapsed[BURSTS], cpu[BURSTS],
        bytes = sizes[s] < 8u * (unsigned)c->ranks ? 8u * (unsigned)c->ranks : sizes[s];
    int n = 0;
    for (int b = 0; b < BURSTS + WARM_UP; b++) {
      if (!ni_rank_time_for(r, "cost", "burst"))
        break;
      ni_rank_barrier(r);
      uint64_t t0 = ni_gpu_now(), c0 = cpu_ns();
      for (int i = 0; i < BURST; i++)
        ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, bytes, 0);
      uint64_t t1 = ni_gpu_now();
      ni_rank_cuda(r, r->api.cuStreamSynchronize(r->stream), "cuStreamSynchronize");
      uint64_t t2 = ni_gpu_now(), c1 = cpu_ns();
      ni_rank_settle(r);
      if (b < WARM_UP)
        continue;
      enqueue[n] = (t1 - t0) / BURST;
      elapsed[n] = (t2 - t0) / BURST;
      cpu[n++] = (c1 - c0) / BURST;
    }
    if (!n)
      continue;
    put(r, "enqueue", sizes[s], enqueue, n);
    put(r, "elapsed", sizes[s], elapsed, n);
    put(r, "cpu", sizes[s], cpu, n);
  }
  r->untimed = false;
}
