/*
 * bench_callbacks SO [--channels N] [--rate OPS_PER_S | --rate 0] [--seconds S] [--threads 1|2] [--interface
 * V]
 *
 * Nanoseconds of single callbacks, by kind: p50, p99, p99.9 and the largest, with the median of an empty
 * timer pair subtracted. rate 0 is hot (back to back); otherwise operations are paced by spinning. With two
 * threads the launching and the polling side run on different ones, as NCCL's do. The first second is warm-up
 * and not counted.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

static inline uint64_t tick(void);
static void add(int kind, uint64_t ticks);
#define PLUG_CALL(kind, call) \
  do { \
    uint64_t t0_ = tick(); \
    call; \
    add((kind), tick() - t0_); \
  } while (0)

#include "plug.h"

#if defined(__x86_64__)
static inline uint64_t tick(void) {
  uint32_t lo, hi, aux;
  __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux)::"memory"); /* waits for what came before */
  return (uint64_t)hi << 32 | lo;
}
#else
static inline uint64_t tick(void) { return plug_now_ns(); }
#endif

enum { EXEC_NS = 50000 };
static const char *const names[PLUG_CALLS] = {
    "api group start", "api group state", "api call start",  "api call stop", "api group stop",
    "group start",     "coll start",      "coll stop",       "group stop",    "channel start",
    "channel state",   "channel stop",    "completing stop",
};

struct samples {
  uint32_t *v;
  size_t n, cap;
};
static struct samples all[PLUG_CALLS];
static struct plug plug;
static int channels = 8, threads = 1, counted;
static double ns_per_tick;
static uint64_t empty_ticks;
static void *ctx;

static void add(int kind, uint64_t ticks) {
  if (!counted || all[kind].n == all[kind].cap)
    return;
  all[kind].v[all[kind].n++] = (uint32_t)ticks;
}
static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* One place handed from the launching to the polling thread. */
static _Atomic(void *) mailbox;
static _Atomic int over;
static void *poller(void *arg) {
  struct plug_op *o = arg;
  for (;;) {
    void *op = atomic_exchange(&mailbox, NULL);
    if (op)
      plug_channels(&plug, ctx, o, op, channels, EXEC_NS);
    else if (over)
      return NULL;
  }
}

static double at(const struct samples *s, double q) {
  if (!s->n)
    return 0;
  double v = (double)s->v[(size_t)(q * (double)(s->n - 1))] - (double)empty_ticks;
  return v < 0 ? 0 : v * ns_per_tick;
}

int main(int argc, char **argv) {
  double rate = 5000, seconds = 4;
  int version = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: bench_callbacks SO [--channels N] [--rate R] [--seconds S] [--threads N]\n");
    return 64;
  }
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--channels"))
      channels = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--rate"))
      rate = atof(argv[i + 1]);
    if (!strcmp(argv[i], "--seconds"))
      seconds = atof(argv[i + 1]);
    if (!strcmp(argv[i], "--threads"))
      threads = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--interface"))
      version = atoi(argv[i + 1]);
  }
  plug = plug_open(argv[1], version);
  ctx = plug_init(&plug, 0xbe9c4, "bench", 1, 8, 0, plug_quiet);
  for (int k = 0; k < PLUG_CALLS; k++) {
    all[k].cap = 4000000;
    all[k].v = calloc(all[k].cap, sizeof(uint32_t));
    memset(all[k].v, 1, all[k].cap * sizeof(uint32_t)); /* no page fault of ours inside a sample */
  }
  uint64_t t0 = tick(), n0 = plug_now_ns();
  usleep(100000);
  ns_per_tick = (double)(plug_now_ns() - n0) / (double)(tick() - t0);
  uint32_t pair[10001];
  for (int i = 0; i < 10001; i++) {
    uint64_t a = tick();
    pair[i] = (uint32_t)(tick() - a);
  }
  qsort(pair, 10001, sizeof *pair, by_size);
  empty_ticks = pair[5000];

  struct plug_op launch, poll;
  plug_op_init(&launch, 262144, channels);
  plug_op_init(&poll, 262144, channels);
  pthread_t t;
  if (threads > 1)
    pthread_create(&t, NULL, poller, &poll);
  uint64_t begin = plug_now_ns(), next = begin, ops = 0;
  for (;;) {
    uint64_t now = plug_now_ns();
    counted = now - begin > 1200000000u; /* an interval of a second, and a little */
    if ((double)(now - begin) > (seconds + 1.2) * 1e9)
      break;
    if (rate > 0) {
      while (plug_now_ns() < next) {}
      next += (uint64_t)(1e9 / rate);
    }
    void *op = plug_launch(&plug, ctx, &launch);
    if (threads > 1) {
      void *none = NULL;
      while (!atomic_compare_exchange_weak(&mailbox, &none, op))
        none = NULL;
    } else {
      plug_channels(&plug, ctx, &launch, op, channels, EXEC_NS);
    }
    ops++;
    if (rate == 0 && ops % 20000 == 0)
      usleep(100000); /* hot, but not beyond what a dump thread can drain */
  }
  over = 1;
  if (threads > 1)
    pthread_join(t, NULL);
  plug.finalize(ctx);
  for (int k = 0; k < PLUG_CALLS; k++) {
    if (!all[k].n)
      continue; /* this interface has none */
    qsort(all[k].v, all[k].n, sizeof(uint32_t), by_size);
    printf("%-16s p50 %7.1f  p99 %7.1f  p99.9 %8.1f  max %10.1f  n %zu\n", names[k], at(&all[k], 0.5),
           at(&all[k], 0.99), at(&all[k], 0.999), at(&all[k], 1.0), all[k].n);
  }
  return 0;
}
