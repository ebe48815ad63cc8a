/* What a reader says, as bytes: all of it comes back, and nothing else is taken. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/hang/model.h"
#include "exporter/model/live/batch.h"

static struct ni_live_counts counts[2];
static struct ni_live_nvidia nvidia;
static struct ni_live_account account;
static struct ni_live_process process;
static struct ni_live_open open_;
static struct ni_live_hang hang;
static struct ni_live_batch logs, look;

static void fill(void) {
  struct ni_live_who who = {
      .job = "77", .attempt = "0", .comm = "tp \xc3\xa4", .gpu_pci = "0000:1b:00.0", .rank = 3, .gpu = -1};
  counts[0] = (struct ni_live_counts){
      .who = who, .func = "AllReduce", .size_class = 5, .n = 3, .timed = 2, .bus_n = 1, .bus_sum = 2.5};
  counts[0].took[NI_LIVE_TOOK] = 2;
  counts[0].bus[NI_LIVE_BUS] = 1;
  counts[1] = (struct ni_live_counts){.who = who, .func = "Broadcast", .late_n = 1, .late_ns = 9};
  nvidia = (struct ni_live_nvidia){
      .who = who, .func = "Send", .algo_proto = "Ring_ll", .p2p = true, .size_log2 = 63, .n = 1};
  account = (struct ni_live_account){.who = who, .begins = true};
  process = (struct ni_live_process){.job = "77", .pid = 5, .rank = -1, .world = -1, .life = 2};
  open_ = (struct ni_live_open){
      .who = who, .func = "AllReduce", .kind = 1, .state = 5, .in_flight = 1, .stuck = 1};
  hang = (struct ni_live_hang){.job = "77", .certain = true};
  logs = (struct ni_live_batch){.kind = NI_LIVE_LOGS,
                                .file = {.from = 1, .to = 2, .rank = -1, .job = "77"},
                                .n_counts = 2,
                                .n_nvidia = 1,
                                .n_accounts = 1,
                                .counts = counts,
                                .nvidia = &nvidia,
                                .accounts = &account};
  look = (struct ni_live_batch){.kind = NI_LIVE_LOOK,
                                .n_processes = 1,
                                .n_open = 1,
                                .n_hangs = 1,
                                .processes = &process,
                                .open = &open_,
                                .hangs = &hang};
}

static int back(const struct ni_live_batch *b, struct ni_live_batch *out) {
  static void *p;
  size_t n, took = 0;
  free(p);
  p = ni_live_encode(b, &n);
  assert_non_null(p);
  for (size_t cut = 0; cut < n; cut += cut < 8 ? 1 : 97)
    assert_int_equal(ni_live_decode(out, p, cut, &took), 0);
  int e = ni_live_decode(out, p, n, &took);
  assert_int_equal(took, e == 1 ? n : 0);
  return e;
}

static void comes_back(void **ctx) {
  (void)ctx;
  struct ni_live_batch b;
  fill();
  assert_int_equal(back(&logs, &b), 1);
  assert_memory_equal(b.counts, counts, sizeof counts);
  assert_memory_equal(b.nvidia, &nvidia, sizeof nvidia);
  assert_memory_equal(b.accounts, &account, sizeof account);
  assert_memory_equal(&b.file, &logs.file, sizeof b.file);
  assert_int_equal(back(&look, &b), 1);
  assert_memory_equal(b.processes, &process, sizeof process);
  assert_memory_equal(b.open, &open_, sizeof open_);
  assert_memory_equal(b.hangs, &hang, sizeof hang);
  assert_null(b.counts);
}

#define REFUSED(batch, ...) \
  do { \
    struct ni_live_batch b_; \
    fill(); \
    __VA_ARGS__; \
    assert_int_equal(back(&(batch), &b_), -EBADMSG); \
  } while (0)

static void takes_nothing_else(void **ctx) {
  (void)ctx;
  REFUSED(logs, logs.kind = 3);
  REFUSED(logs, logs.file.from = 3);
  REFUSED(logs, logs.file.to = UINT64_MAX);
  REFUSED(logs, logs.file.rank = -2);
  REFUSED(logs, memset(logs.file.job, 'x', sizeof logs.file.job));
  REFUSED(logs, memset(&logs.file.ended, 2, 1));
  REFUSED(logs, logs.totals.lines = UINT64_MAX);
  REFUSED(logs, memset(counts[1].who.comm, 'x', sizeof counts[1].who.comm));
  REFUSED(logs, memcpy(counts[1].func, "\xc3(", 3));
  REFUSED(logs, counts[0].size_class = NI_LIVE_SIZES);
  REFUSED(logs, counts[0].took[0] = 1);
  REFUSED(logs, counts[0].n = 1);
  REFUSED(logs, counts[0].bytes = UINT64_MAX);
  REFUSED(logs, counts[1].late_ns = UINT64_MAX);
  REFUSED(logs, counts[0].bus_sum = (double)NAN);
  REFUSED(logs, counts[1].who.rank = -2);
  REFUSED(logs, nvidia.size_log2 = 64);
  REFUSED(logs, nvidia.us = (double)INFINITY);
  REFUSED(logs, memset(&nvidia.p2p, 7, 1));
  REFUSED(logs, memset(&account.begins, 7, 1));
  REFUSED(logs, account.dropped[NI_DROP_COUNT - 1] = UINT64_MAX);
  REFUSED(look, process.life = 4);
  REFUSED(look, process.pid = -1);
  REFUSED(look, open_.state = NI_HANG_STATE_COUNT);
  REFUSED(look, open_.kind = 2);
  REFUSED(look, open_.stuck = 2);
  REFUSED(look, open_.since_ns = UINT64_MAX);
  REFUSED(look, memset(hang.path, 'x', sizeof hang.path));
  REFUSED(look, look.counts = counts, look.n_counts = 1); /* of the other kind */
}

/* Lengths and counts that do not agree. */
static void lengths(void **ctx) {
  (void)ctx;
  struct ni_live_batch b;
  size_t n, took;
  fill();
  char *p = ni_live_encode(&logs, &n), *more = calloc(1, n + 64);
  for (uint32_t len = 0; len < n + 64; len += 4) {
    memcpy(more, p, n);
    memcpy(more, &len, sizeof len);
    assert_int_equal(ni_live_decode(&b, more, n + 64, &took), len == n ? 1 : -EBADMSG);
  }
  memset(more, 0xff, 4);
  assert_int_equal(ni_live_decode(&b, more, n, &took), -EBADMSG);
  for (size_t at = offsetof(struct ni_live_batch, n_counts); at <= offsetof(struct ni_live_batch, n_hangs);
       at += 4) {
    memcpy(more, p, n);
    memset(more + 8 + at, 0xff, 4);
    assert_int_equal(ni_live_decode(&b, more, n, &took), -EBADMSG);
  }
  free(p);
  free(more);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(comes_back), cmocka_unit_test(takes_nothing_else),
                                     cmocka_unit_test(lengths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
