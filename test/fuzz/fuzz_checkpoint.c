/*
 * libFuzzer: bytes as changes of a sound checkpoint, with a checksum that fits. What is loaded must be told
 * as metrics, live through ticks that take it away, and be saved and loaded again as it was; what is not
 * loaded must leave an empty state.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/model/live/checkpoint.h"
#include "exporter/model/live/live_tick.h"
#include "exporter/output/metrics/text.h"
#include "test/unit/live/live_made.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static int dir;
static char good[1 << 16];
static size_t n_good;

static void fill(void) {
  struct ni_live l = {0};
  struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 3);
  struct ni_live_account a = {.who = c.who, .hash = 5, .started = 10, .written = 9};
  struct ni_live_nvidia v = {
      .who = c.who, .func = "AllReduce", .algo_proto = "Ring_ll", .size_log2 = 20, .n = 2, .us = 5};
  struct ni_live_batch b = logs(1, 0, 500, "77");
  b.counts = &c, b.n_counts = 1, b.accounts = &a, b.n_accounts = 1, b.nvidia = &v, b.n_nvidia = 1;
  need((dir = open(fuzz_dir("checkpoint"), O_RDONLY | O_DIRECTORY)) >= 0);
  need(ni_live_apply(&l, &b, T(0), S) == 0 && ni_live_save(&l, dir, "s", S) == 0);
  ni_live_free(&l);
  int fd = openat(dir, "s", O_RDONLY);
  n_good = (size_t)read(fd, good, sizeof good);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const struct ni_live none;
  struct ni_live l = {0}, again = {0};
  char bytes[sizeof good + 4096], why[128];
  if (!n_good)
    fill();
  size_t n = n_good;
  memcpy(bytes, good, n);
  for (; size >= 4; data += 4, size -= 4) { /* where, and what */
    size_t at = (size_t)(data[0] | data[1] << 8);
    if (data[3] & 1 && at < n)
      bytes[at] = (char)data[2];
    else if (data[3] & 2 && at < n)
      memset(bytes + at, data[2], n - at < 64 ? n - at : 64);
    else if (data[3] == 4)
      n = at < sizeof bytes ? at : n;
  }
  if (n > 16) {
    memset(bytes + 12, 0, 4);
    uint32_t crc = (uint32_t)crc32_z(0, (const Bytef *)bytes, n);
    memcpy(bytes + 12, &crc, 4);
  }
  int fd = openat(dir, "s", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  need(write(fd, bytes, n) == (ssize_t)n);
  close(fd);
  if (ni_live_load(&l, dir, "s", S, why, sizeof why) < 0) {
    need(memcmp(&l, &none, sizeof l) == 0 && *why);
    return 0;
  }
  struct ni_agent_self self = {.node = "n1", .version = "1"};
  struct ni_metrics_in in = {.live = &l, .self = &self, .unix_ns = T(9), .mono_ns = S, .nvidia = true};
  for (int turn = 0; turn < 3; turn++) {
    FILE *f = fopen("/dev/null", "w");
    need(f && ni_metrics_text(f, &in, turn & 1) == 0);
    fclose(f);
    need(ni_live_save(&l, dir, "s", S) == 0 && ni_live_load(&again, dir, "s", S, why, sizeof why) == 0);
    need(again.n_jobs == l.n_jobs && again.n_funcs == l.n_funcs && again.n_files == l.n_files);
    ni_live_free(&again);
    ni_live_tick(&l, (uint64_t)(turn + 1) * 3000 * S, 600 * S);
  }
  ni_live_free(&l);
  return 0;
}
