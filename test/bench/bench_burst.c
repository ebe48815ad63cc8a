/*
 * bench_burst SO [--interface V] [--channels N] [--ops N] [--bursts N] [--batch N] [--comms N]
 *
 * What whole collectives cost, in nanoseconds each, raised as this interface's NCCL raises them (plug.h).
 * They come in bursts with a pause between, in which the dump thread drains them; beside a burst it runs as
 * always. Two forms:
 *
 *   two threads   as in NCCL the starter launches and hands the operation over, the poller raises its
 *                 KernelChs. Each counts the time of its batches of calls, not of the waiting between; the
 *                 sum of both is printed
 *   one thread    does both, one operation after the other
 *
 * Prints first_burst (two threads, a communicator of a new process: its memory was never touched), then of
 * --bursts bursts in each form the medians: two_threads, its parts starter and poller, one_thread. With
 * --comms N it prints one_thread alone: N communicators, a thread for each, the first burst not counted, the
 * mean of the N. A do-nothing plugin run the same way is subtracted by the caller.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "plug.h"

enum { MAX_BURSTS = 64, MAX_COMMS = 8, RING = 256, EXEC_NS = 50000, PAUSE_US = 250000 };
static struct plug plug;
static int channels = 8, bursts = 8, comms = 1;
static long ops = 20000, batch = 64;

struct comm {
  void *ctx;
  struct plug_op launch, poll; /* the starter's and the poller's */
  pthread_barrier_t turn;      /* of both, before and after a burst */
  double started[1 + MAX_BURSTS], polled[1 + MAX_BURSTS], sum[1 + MAX_BURSTS], alone[1 + MAX_BURSTS];
  /* one producer, one consumer: below `pushed` the poller's, below `served` the starter's again */
  void *ring[RING];
  _Alignas(64) _Atomic long pushed;
  _Alignas(64) _Atomic long served;
};

/*
 * Until the other side has come to n. Yields: where processors are few the dump thread has its turn here, not
 * in a batch.
 */
static void wait_for(_Atomic long *side, long n) {
  /* pairs with the release stores below */
  while (atomic_load_explicit(side, memory_order_acquire) < n)
    sched_yield();
}

/* These two are not inlined: the gate counts what runs below them (test/gate/gate.py). */
__attribute__((noinline)) static double launch_burst(struct comm *c, long first) {
  uint64_t spent = 0;
  for (long at = first; at < first + ops; at += batch) {
    wait_for(&c->served, at + batch - RING);
    uint64_t t = plug_now_ns();
    for (long i = at; i < at + batch; i++)
      c->ring[i % RING] = plug_launch(&plug, c->ctx, &c->launch);
    spent += plug_now_ns() - t;
    /* pairs with wait_for in poll_burst */
    atomic_store_explicit(&c->pushed, at + batch, memory_order_release);
  }
  return (double)spent / (double)ops;
}

__attribute__((noinline)) static double poll_burst(struct comm *c, long first) {
  uint64_t spent = 0;
  for (long at = first; at < first + ops; at += batch) {
    wait_for(&c->pushed, at + batch);
    uint64_t t = plug_now_ns();
    for (long i = at; i < at + batch; i++)
      plug_channels(&plug, c->ctx, &c->poll, c->ring[i % RING], channels, EXEC_NS);
    spent += plug_now_ns() - t;
    /* pairs with wait_for in launch_burst */
    atomic_store_explicit(&c->served, at + batch, memory_order_release);
  }
  return (double)spent / (double)ops;
}

static void *poller(void *arg) {
  struct comm *c = arg;
  for (int b = 0; b <= bursts; b++) {
    pthread_barrier_wait(&c->turn);
    c->polled[b] = poll_burst(c, b * ops);
    pthread_barrier_wait(&c->turn);
  }
  return NULL;
}

static void by_two(struct comm *c) {
  pthread_t t;
  pthread_barrier_init(&c->turn, NULL, 2);
  if (pthread_create(&t, NULL, poller, c))
    exit(1);
  usleep(PAUSE_US);
  for (int b = 0; b <= bursts; b++) {
    pthread_barrier_wait(&c->turn);
    c->started[b] = launch_burst(c, b * ops);
    pthread_barrier_wait(&c->turn);
    c->sum[b] = c->started[b] + c->polled[b];
    usleep(PAUSE_US);
  }
  pthread_join(t, NULL);
}

static void *by_one(void *arg) {
  struct comm *c = arg;
  for (int b = 0; b <= bursts; b++) {
    uint64_t t = plug_now_ns();
    for (long i = 0; i < ops; i++) {
      void *op = plug_launch(&plug, c->ctx, &c->launch);
      plug_channels(&plug, c->ctx, &c->poll, op, channels, EXEC_NS);
    }
    c->alone[b] = (double)(plug_now_ns() - t) / (double)ops;
    usleep(PAUSE_US);
  }
  return NULL;
}

static int up(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
/* Of all but the first burst; there is at least one more. */
static double median(double *v) {
  qsort(v + 1, (size_t)bursts, sizeof *v, up);
  return v[1 + bursts / 2];
}

int main(int argc, char **argv) {
  static struct comm c[MAX_COMMS];
  int version = 0;
  if (argc < 2) {
    fprintf(stderr, "usage: bench_burst SO [--interface V] [--channels N] [--ops N] [--bursts N] ...\n");
    return 64;
  }
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--channels"))
      channels = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--ops"))
      ops = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--bursts"))
      bursts = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--batch"))
      batch = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--comms"))
      comms = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--interface"))
      version = atoi(argv[i + 1]);
  }
  if (bursts < 0 || bursts > MAX_BURSTS || comms < 1 || comms > MAX_COMMS || batch < 1 || batch > RING)
    return 64;
  ops = (ops + batch - 1) / batch * batch;
  plug = plug_open(argv[1], version);
  for (int i = 0; i < comms; i++) {
    c[i].ctx = plug_init(&plug, 0x1001 + (uint64_t)i, "bench", 1, 8, 0, plug_quiet);
    plug_op_init(&c[i].launch, 262144, channels);
    plug_op_init(&c[i].poll, 262144, channels);
  }
  if (comms == 1) {
    by_two(c);
    printf("first_burst %.2f\n", c->sum[0]);
    if (bursts)
      printf("two_threads %.2f\nstarter %.2f\npoller %.2f\n", median(c->sum), median(c->started),
             median(c->polled));
  }
  pthread_t t[MAX_COMMS];
  double sum = 0;
  for (int i = 0; bursts && i < comms; i++)
    if (pthread_create(&t[i], NULL, by_one, &c[i]))
      exit(1);
  for (int i = 0; bursts && i < comms; i++) {
    pthread_join(t[i], NULL);
    sum += median(c[i].alone);
  }
  if (bursts)
    printf("one_thread %.2f\n", sum / comms);
  for (int i = 0; i < comms; i++)
    plug.finalize(c[i].ctx);
  return 0;
}
