/*
 * bench_burst SO [--channels N] [--ops N] [--bursts N] [--threads 1|2] [--interface V]
 *
 * Cost of whole collectives in bursts: 4 + 3 x channels callbacks each, back to back on one thread (or two, each with a
 * communicator of its own). Between bursts it waits, so that the dump thread has drained and pages are warm; the first
 * burst is not counted. Prints the nanoseconds per collective, mean over the counted bursts; a do-nothing plugin run the
 * same way is subtracted by the caller.
 */
#include <pthread.h>
#include <unistd.h>

#include "plug.h"

static struct plug plug;
static int channels = 8, bursts = 11;
static long ops = 100000;

static void *one_thread(void *arg) {
  void *ctx = plug_init(&plug, 0x1000 + (uint64_t)(uintptr_t)arg, "bench", 1, 8, 0, plug_quiet);
  struct plug_op o;
  plug_op_init(&o, 262144, channels);
  double total = 0;
  for (int b = 0; b < bursts; b++) {
    uint64_t t = plug_now_ns();
    for (long i = 0; i < ops; i++) {
      void *op = plug_launch(&plug, ctx, &o);
      plug_channels(&plug, ctx, &o, op, channels, 50000);
    }
    t = plug_now_ns() - t;
    if (b) total += (double)t;
    usleep(700000); /* the dump thread writes at 1 s and drains every 10 ms */
  }
  double *result = malloc(sizeof *result);
  *result = total / (double)(bursts - 1) / (double)ops;
  plug.finalize(ctx);
  return result;
}

int main(int argc, char **argv) {
  int threads = 1, version = 0;
  if (argc < 2) return fprintf(stderr, "usage: bench_burst SO [--channels N] [--ops N] [--bursts N] [--threads N]\n"), 64;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--channels")) channels = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--ops")) ops = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--bursts")) bursts = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--threads")) threads = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--interface")) version = atoi(argv[i + 1]);
  }
  plug = plug_open(argv[1], version);
  pthread_t t[8];
  double sum = 0;
  for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, one_thread, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < threads; i++) {
    void *r;
    pthread_join(t[i], &r);
    sum += *(double *)r;
    free(r);
  }
  printf("ns_per_collective %.2f\n", sum / threads);
  return 0;
}
