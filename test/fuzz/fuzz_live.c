/*
 * libFuzzer: any bytes as what a reader tells the agent. Nothing may be read out of bounds; what is taken for
 * sound goes into the state, and comes back the same from bytes of our own.
 *
 * The first byte chooses: the bytes as they are, or two sound batches with the rest written over them, as
 * pairs of place and value, so that the fuzzer gets behind the lengths at once.
 *
 *   test/fuzz/run.sh 60 live
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/live/live.h"

static void must(int truth, int line) {
  if (truth)
    return;
  fprintf(stderr, "line %d does not hold\n", line);
  abort();
}
#define need(truth) must((truth), __LINE__)

static struct ni_live_who who(void) {
  return (struct ni_live_who){
      .job = "77", .attempt = "0", .comm = "tp", .gpu_pci = "0000:1b:00.0", .rank = 3, .gpu = -1};
}

static void *sound(size_t *bytes) {
  struct ni_live_counts counts[2] = {
      {.who = who(),
       .func = "AllReduce",
       .n = 3,
       .bytes = 9,
       .timed = 2,
       .ns = 5,
       .bus_n = 1,
       .bus_sum = 1e9},
      {.who = who(), .func = "Broadcast", .size_class = 5, .n = 1, .late_n = 1, .late_ns = 7}};
  struct ni_live_nvidia nvidia = {
      .who = who(), .func = "AllReduce", .algo_proto = "Ring_ll", .n = 2, .us = 4.5};
  struct ni_live_account accounts[2] = {{.who = who(), .hash = 1, .begins = true},
                                        {.who = who(), .hash = 1, .started = 9, .written = 8}};
  struct ni_live_process process = {.job = "77",
                                    .attempt = "0",
                                    .host = "n1",
                                    .exe = "python3",
                                    .pid = 4,
                                    .uid = 1001,
                                    .rank = 3,
                                    .world = 8,
                                    .life = 1};
  struct ni_live_open open = {.who = who(),
                              .pid = 4,
                              .hash = 1,
                              .comm_rank = 3,
                              .in_flight = 2,
                              .stuck = 1,
                              .func = "AllReduce",
                              .peer = -1};
  struct ni_live_hang hang = {.job = "77",
                              .attempt = "0",
                              .sentence = "rank 3 is waited for",
                              .path = "/logs/verdict.json",
                              .certain = true};
  counts[0].took[1] = 2;
  counts[0].bus[3] = 1;
  struct ni_live_batch logs = {.kind = NI_LIVE_LOGS,
                               .totals = {.lines = 4},
                               .file = {.dev = 1, .ino = 2, .to = 99, .uid = 1001, .rank = 3, .job = "77"},
                               .n_counts = 2,
                               .n_nvidia = 1,
                               .n_accounts = 2,
                               .counts = counts,
                               .nvidia = &nvidia,
                               .accounts = accounts};
  struct ni_live_batch look = {.kind = NI_LIVE_LOOK,
                               .uid = 1001,
                               .boxes = 1,
                               .n_processes = 1,
                               .n_open = 1,
                               .n_hangs = 1,
                               .processes = &process,
                               .open = &open,
                               .hangs = &hang};
  size_t a, b;
  char *x = ni_live_encode(&logs, &a), *y = ni_live_encode(&look, &b), *both = malloc(a + b);
  need(x && y && both);
  memcpy(both, x, a);
  memcpy(both + a, y, b);
  free(x);
  free(y);
  *bytes = a + b;
  return both;
}

static void take(const struct ni_live_batch *b, struct ni_live *l) {
  size_t bytes, took;
  struct ni_live_batch again;
  void *p = ni_live_encode(b, &bytes);
  need(p && ni_live_decode(&again, p, bytes, &took) == 1 && took == bytes && again.kind == b->kind &&
       again.n_counts == b->n_counts);
  free(p);
  int e = ni_live_apply(l, b, 1, 1);
  need(e == 0 || e == -ESTALE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_live l = {0};
  struct ni_live_batch b;
  size_t len = size, took;
  if (size == 0)
    return 0;
  char *bytes = *data & 1 ? sound(&len) : malloc(len);
  need(bytes != NULL);
  if (*data & 1)
    for (size_t i = 1; i + 3 <= size; i += 3)
      bytes[(size_t)(data[i] | data[i + 1] << 8) % len] = (char)data[i + 2];
  else
    memcpy(bytes, data + 1, --len);
  int e = 0;
  while (len && (e = ni_live_decode(&b, bytes, len, &took)) == 1) {
    need(took <= len && took >= 4);
    take(&b, &l);
    memmove(bytes, bytes + took, len -= took);
  }
  need(e >= -EBADMSG);
  if (size == 1 && *data & 1)
    need(len == 0 && l.n_jobs == 1 && l.n_looks == 1 && l.n_funcs == 2);
  free(bytes);
  ni_live_free(&l);
  return 0;
}
