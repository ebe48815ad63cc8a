/* Batches for tests of the agent's state: one rank, one function, whatever a test changes in them. */
#ifndef LIVE_MADE_H
#define LIVE_MADE_H

#include <stdio.h>
#include <string.h>

#include "exporter/model/live/live.h"

#define S UINT64_C(1000000000)
enum { UNIX0 = 1790000000 };
#define T(s) (UNIX0 * S + (uint64_t)(s) * S)

static inline struct ni_live_who who(const char *job, const char *comm, int rank) {
  struct ni_live_who w = {.rank = rank, .gpu = rank % 8};
  snprintf(w.job, sizeof w.job, "%s", job);
  strcpy(w.attempt, "0");
  snprintf(w.comm, sizeof w.comm, "%s", comm);
  snprintf(w.gpu_pci, sizeof w.gpu_pci, "0000:%02x:00.0", (unsigned)(rank % 8 + 1) & 0xff);
  return w;
}

static inline struct ni_live_counts counts(struct ni_live_who w, const char *func, uint64_t n) {
  struct ni_live_counts c = {
      .who = w, .size_class = 3, .n = n, .bytes = n << 20, .timed = n, .ns = n * 1000000};
  snprintf(c.func, sizeof c.func, "%s", func);
  c.bus_n = n;
  c.bus_bytes = n << 21;
  c.bus_ns = n * 1000000;
  c.bus_sum = (double)n * 2.5e9;
  c.took[4] = (uint32_t)n;
  c.bus[2] = (uint32_t)n;
  return c;
}

static inline struct ni_live_batch logs(uint64_t ino, uint64_t from, uint64_t to, const char *job) {
  struct ni_live_batch b = {.kind = NI_LIVE_LOGS, .totals = {.lines = 10, .bytes = 1000}};
  b.file = (struct ni_live_file){
      .dev = 1, .ino = ino, .head_hash = 7 * ino, .head_bytes = 64, .uid = 1001, .from = from, .to = to};
  b.file.pid = (int64_t)(1000 + ino);
  b.file.start_ns = 5;
  snprintf(b.file.job, sizeof b.file.job, "%s", job);
  strcpy(b.file.attempt, "0");
  return b;
}

static inline struct ni_live_process process(const char *job, int rank, enum ni_life life) {
  struct ni_live_process p = {.attempt = "0",
                              .host = "n1",
                              .exe = "python",
                              .pid = 100 + rank,
                              .uid = 1001,
                              .rank = rank,
                              .world = 8};
  snprintf(p.job, sizeof p.job, "%s", job);
  p.life = (uint8_t)life;
  p.sign_ns = T(0);
  return p;
}
#endif
