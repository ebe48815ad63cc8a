/*
 * Feeds sessions as a head does, from made-up clients, without a network.
 *
 *   session_feed kill FOLDER CLIENTS                   10 Hz, two sessions "a" and "b", late samples; prints
 *                                                      "ack CLIENT SEQ" of what is safe, until it is killed.
 *                                                      Begun again it goes on, and clients send again what
 *                                                      was not
 *   session_feed load FOLDER CLIENTS GPUS SECONDS SESSIONS [fast|step]
 *                                                      2 Hz in real time, or as fast as the disk takes it, "step" one
 *                                                      frame after the other, so that each run does the same; prints
 *                                                      the cost
 *   session_feed export FOLDER NAME                    its file, to standard output
 *
 * A client's samples are a function of its number and the tick alone, so that a check knows what they must
 * be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/session/recover.h"
#include "exporter/session/store.h"

enum { MOST = 4096, LATE_BY = 25 }; /* ticks: beyond NI_GRID_HOLD_NS */
static struct ni_client *client[MOST];
static uint64_t told[MOST], next_seq[MOST];
static struct ni_store *store;
static struct ni_grid *grid;

static void late(void *arg, const struct ni_client *c, const struct ni_sample *s, int64_t tick) {
  (void)arg;
  ni_store_late(store, c, s, tick);
}

static struct ni_sample *made(unsigned i, uint64_t seq, int64_t tick, uint32_t gpus) {
  struct ni_sample *s = ni_sample_new(gpus, 0, 1, 0);
  if (!s)
    exit(3);
  s->seq = seq;
  s->time_ns = tick;
  s->memory = 0.25;
  s->disk = 0.5;
  s->cpu = 0.1;
  for (uint32_t g = 0; g < gpus; g++) {
    s->gpu[g].index = (int32_t)g;
    snprintf(s->gpu[g].name, sizeof s->gpu[g].name, "NVIDIA H100 80GB HBM3");
    s->gpu[g].util = (double)((seq * 7 + i + g) % 100) / 100;
    s->gpu[g].memory = 0.5;
    s->gpu[g].pcie_rx = 1e9 * (g + 1);
    s->gpu[g].pcie_tx = 2e9;
    s->gpu[g].power_w = 412.5;
    s->gpu[g].temperature_c = 61;
    s->gpu[g].sm_hz = 1.98e9;
  }
  snprintf(s->job[0].job, sizeof s->job[0].job, "77");
  s->job[0].operations = seq * 100;
  return s;
}

static void connect_all(unsigned n, bool resume) {
  for (unsigned i = 0; i < n; i++) {
    char uuid[40], host[32], id[64];
    snprintf(uuid, sizeof uuid, "%08x-0000-4000-8000-000000000000", i + 1);
    snprintf(host, sizeof host, "n%u", i);
    snprintf(id, sizeof id, "n%u_%08x", i, i + 1);
    if (!(client[i] = ni_grid_connect(grid, uuid, host, id, NULL)))
      exit(3);
    if (resume)
      client[i]->seq = told[i] = ni_store_resumed_seq(store, uuid);
    next_seq[i] = client[i]->seq + 1;
  }
}

/*
 * Ticks count from a fixed day on: the sample of a tick has that number, whichever run of the program sends
 * it.
 */
static int kill_me(unsigned n, int64_t period) {
  const int64_t day = INT64_C(1790000000000000000) / period * period;
  struct ni_session out;
  struct ni_frame f;
  char why[256], degraded[256];
  int64_t from = ni_store_resumed(store) ? ni_store_resumed(store) : day;
  grid = ni_grid_new(period, from - NI_GRID_BACK_NS);
  ni_grid_from(grid, from + period);
  connect_all(n, true);
  if (!ni_store_running(store) &&
      ni_store_start(store, "a", from, &out, why, sizeof why) +
          ni_store_start(store, "b", from, &out, why, sizeof why)) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  struct {
    int64_t tick;
    uint64_t safe[64];
  } waits[256];
  unsigned first = 0, last = 0;
  for (int64_t tick = from + period;; tick += period) {
    for (unsigned i = 0; i < n; i++) { /* client 0 is late: its samples come when their frames are out */
      int64_t own = i ? tick : tick - LATE_BY * period;
      uint64_t seq = own > day ? (uint64_t)((own - day) / period) : 0;
      for (; next_seq[i] <= seq; next_seq[i]++)
        if (ni_grid_put(grid, client[i], made(i, next_seq[i], day + (int64_t)next_seq[i] * period, 2), tick,
                        late, NULL))
          return 3;
    }
    while (ni_grid_next(grid, tick, &f)) {
      ni_store_frame(store, &f);
      waits[last % 256].tick = f.tick_ns;
      for (unsigned i = 0; i < n; i++)
        waits[last % 256].safe[i] = client[i]->safe;
      last++;
    }
    usleep(1000);
    for (int64_t safe = ni_store_safe(store, degraded); first < last && waits[first % 256].tick <= safe;
         first++)
      for (unsigned i = 0; i < n; i++)
        if (waits[first % 256].safe[i] > told[i])
          printf("ack %u %llu\n", i, (unsigned long long)(told[i] = waits[first % 256].safe[i]));
    fflush(stdout);
  }
}

static double cpu_s(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
      (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int load(unsigned n, uint32_t gpus, unsigned seconds, unsigned sessions, const char *pace) {
  const bool fast = pace[0] != 0;
  const unsigned behind = strcmp(pace, "step") == 0 ? 0 : 4;
  const int64_t period = 500000000;
  int64_t begin = (int64_t)ni_now_ns(CLOCK_REALTIME) / period * period, tick = begin;
  struct ni_session out;
  struct ni_frame f;
  char why[256], degraded[256], name[16];
  grid = ni_grid_new(period, begin);
  connect_all(n, false);
  for (unsigned k = 0; k < sessions; k++) {
    snprintf(name, sizeof name, "s%u", k);
    if (ni_store_start(store, name, begin, &out, why, sizeof why)) {
      fprintf(stderr, "%s\n", why);
      return 1;
    }
  }
  double made_s = 0, was = cpu_s();
  for (unsigned turn = 0; turn < 2 * seconds; turn++) {
    tick += period;
    while (!fast && (int64_t)ni_now_ns(CLOCK_REALTIME) < tick)
      usleep(10000);
    for (unsigned i = 0; i < n; i++) {
      double at = cpu_s();
      struct ni_sample *s = made(i, turn + 1, tick, gpus);
      made_s += cpu_s() - at;
      ni_grid_put(grid, client[i], s, tick, late, NULL);
    }
    int64_t newest = begin;
    while (ni_grid_next(grid, tick, &f)) {
      newest = f.tick_ns;
      ni_store_frame(store, &f);
    }
    int64_t wanted = behind ? tick - behind * period : newest;
    while (fast && ni_store_safe(store, degraded) < wanted)
      usleep(1000);
  }
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  printf("cpu %.3f s in %u s (%.1f %%), of it clients %.3f s; rss %ld MB\n", cpu_s() - was, seconds,
         100 * (cpu_s() - was) / seconds, made_s, u.ru_maxrss / 1024);
  for (unsigned k = 0; k < sessions; k++) {
    snprintf(name, sizeof name, "s%u", k);
    uint64_t at = ni_now_ns(CLOCK_MONOTONIC);
    while (!ni_store_flushed(store, name))
      usleep(1000);
    int e = ni_store_stop(store, name, tick, &out, why, sizeof why);
    printf("stop %s: %s, %.3f s; frames %llu lost %llu\n", name, e ? why : "ok",
           (double)(ni_now_ns(CLOCK_MONOTONIC) - at) / 1e9, (unsigned long long)out.frames,
           (unsigned long long)out.frames_lost);
  }
  return 0;
}

int main(int argc, char **argv) {
  char why[256];
  bool kill = argc > 3 && !strcmp(argv[1], "kill");
  if (argc == 4 && !strcmp(argv[1], "export")) {
    if (chdir(argv[2]) || ni_store_export(".nccl-inspector-sessions", argv[3], stdout, why, sizeof why)) {
      fprintf(stderr, "%s\n", why);
      return 1;
    }
    return 0;
  }
  if (argc < (kill ? 4 : 7)) {
    fprintf(stderr, "session_feed kill FOLDER CLIENTS | load FOLDER CLIENTS GPUS SECONDS SESSIONS [fast]\n");
    return 2;
  }
  struct ni_store_options o = {.period_ns = kill ? 100000000 : 500000000, .bandwidth = true};
  if (chdir(argv[2]) || ni_store_open(&store, &o, why, sizeof why)) {
    fprintf(stderr, "%s\n", why);
    return 1;
  }
  unsigned n = (unsigned)atoi(argv[3]);
  int rc = kill ? kill_me(n < 64 ? n : 64, o.period_ns)
                : load(n, (uint32_t)atoi(argv[4]), (unsigned)atoi(argv[5]), (unsigned)atoi(argv[6]),
                       argc > 7 ? argv[7] : "");
  ni_store_close(store);
  ni_grid_free(grid);
  return rc;
}
