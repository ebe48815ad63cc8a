/*
 * How much is recorded: texts of the settings, which operations a sample keeps, roll-ups against a table of
 * all values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/settings/detail_text.h"
#include "format/events.h"
#include "plugin/write/rollup.h"
#include "plugin/drain/sample.h"

static void texts(void **state) {
  (void)state;
  uint64_t n = 7;
  static const char *const bad_samples[] = {"",
                                            "1",
                                            "1/",
                                            "1/0",
                                            "2/3",
                                            "1/1000001",
                                            "1/10 ",
                                            " 1/10",
                                            "1/-1",
                                            "1/1e3",
                                            "1/99999999999999999999999",
                                            "1//2"};
  for (size_t i = 0; i < sizeof bad_samples / sizeof *bad_samples; i++)
    assert_false(ni_sample_parse(bad_samples[i], &n));
  assert_int_equal(n, 7);
  assert_true(ni_sample_parse("1/1", &n) && n == 1);
  assert_true(ni_sample_parse("1/1000000", &n) && n == 1000000);
}

static void samples(void **state) {
  (void)state;
  for (uint64_t sn = 0; sn < 100; sn++)
    assert_true(ni_sample_keeps(1, 0xabc, sn) && ni_sample_keeps(0, 0xabc, sn));
  /* About one in N, in every residue class: a job that repeats every N operations shows all of them. */
  uint64_t kept = 0, by_residue[10] = {0};
  for (uint64_t sn = 0; sn < 100000; sn++)
    if (ni_sample_keeps(10, 0x5d1c7e90aa41b2, sn)) {
      kept++;
      by_residue[sn % 10]++;
    }
  assert_in_range(kept, 9500, 10500);
  for (int i = 0; i < 10; i++)
    assert_in_range(by_residue[i], 800, 1200);
  /* The rule is part of the format: verify.py has it, too. */
  static const uint64_t first[] = {7, 9, 22, 23};
  for (uint64_t sn = 0, n = 0; sn < 24; sn++)
    assert_true(ni_sample_keeps(10, 0xc0de0000, sn) == (n < 4 && first[n] == sn && ++n));
}

/* What the entries of a roll-up must add up to. */
struct totals {
  uint64_t count, bytes, ns, no_hist, hist[NI_HIST_BUCKETS];
};

static struct ni_rollup_pool pool;

static void drain(struct ni_rollup *r, struct totals *t, uint32_t *lines) {
  uint32_t at = 0;
  for (struct ni_rollup_sums *e; (e = ni_rollup_next(r, &at)) != NULL;) {
    uint64_t in_hist = 0, last = ni_rollup_last_bytes(e);
    uint32_t *hist = ni_rollup_hist(e);
    for (uint32_t i = 0; hist && i < NI_HIST_BUCKETS; i++) {
      in_hist += hist[i];
      t->hist[i] += hist[i];
    }
    assert_int_equal(in_hist, hist ? e->count : 0);
    if (!hist)
      t->no_hist += e->count;
    assert_true(e->min_ns <= e->max_ns && e->sum_ns >= e->min_ns && e->sum_ns <= e->count * e->max_ns);
    if (last == 0)
      assert_int_equal(e->sum_bytes, e->bytes * e->count);
    else
      assert_true(e->sum_bytes >= e->bytes * e->count &&
                  (last == INT64_MAX || e->sum_bytes <= last * e->count));
    t->count += e->count;
    t->bytes += e->sum_bytes;
    t->ns += e->sum_ns;
    ++*lines;
    ni_rollup_said(e);
  }
  ni_rollup_tidy(r, &pool);
}

/* Few functions and sizes: each has an entry of its own, with exactly its operations. */
static void rollups_of_few_sizes(void **state) {
  (void)state;
  struct ni_rollup r = {0};
  for (uint64_t i = 0; i < 64 * 100; i++) {
    struct ni_record rec = {.kind = i % 2 ? NI_KIND_P2P : NI_KIND_COLL,
                            .timing = NI_TIMING_KERNEL_GPU,
                            .msg_bytes = (i % 64) << 10,
                            .exec_ns = 2000 + i};
    ni_rollup_add(&r, &pool, 3, &rec, 7);
  }
  uint32_t at = 0, n = 0;
  for (struct ni_rollup_sums *s; (s = ni_rollup_next(&r, &at)) != NULL; n++) {
    uint64_t i = s->bytes >> 10;
    assert_int_equal(ni_rollup_last_bytes(s), 0);
    assert_int_equal(s->kind, i % 2 ? NI_KIND_P2P : NI_KIND_COLL);
    assert_int_equal(s->count, 100);
    assert_int_equal(s->min_ns, 2000 + i);
    assert_int_equal(s->max_ns, 2000 + i + 6336);
    assert_int_equal(s->sum_ns, 100 * (2000 + i) + 64 * 4950);
    ni_rollup_said(s);
  }
  assert_int_equal(n, 64);
  ni_rollup_free(&r, &pool);
}

/* The pool of the process is used up: what is beyond is counted all the same. */
static void rollups_without_room(void **state) {
  (void)state;
  enum { COMMS = 200 };
  static struct ni_rollup r[COMMS];
  uint64_t count = 0, others = 0;
  for (int c = 0; c < COMMS; c++)
    for (uint64_t i = 0; i < 100; i++) {
      struct ni_record rec = {.timing = NI_TIMING_KERNEL_CPU, .msg_bytes = i << 20, .exec_ns = 5};
      ni_rollup_add(&r[c], &pool, 1, &rec, 7);
    }
  assert_true(pool.n_slabs * 32 * sizeof(struct ni_rollup_entry) <= NI_ROLLUP_POOL_BYTES);
  for (int c = 0; c < COMMS; c++) {
    uint32_t at = 0;
    for (struct ni_rollup_sums *s; (s = ni_rollup_next(&r[c], &at)) != NULL; ni_rollup_said(s)) {
      count += s->count;
      if (s->cls == NI_ROLLUP_OTHERS)
        others += s->count;
    }
    ni_rollup_free(&r[c], &pool);
  }
  assert_int_equal(count, COMMS * 100);
  assert_true(others > 0 && others < count);
}

static void rollups(void **state) {
  (void)state;
  struct ni_rollup r = {0};
  struct totals want = {0}, got = {0};
  uint32_t lines = 0, seed = 1, before_last;
  drain(&r, &got, &lines); /* nothing yet */
  assert_int_equal(lines, 0);
  for (int round = 0; round < 4; round++) {
    /* Few sizes, more than fit exactly, more than all classes hold, few again. */
    static const int n_sizes[] = {5, 1000, 50000, 5};
    uint32_t before = lines;
    for (int i = 0; i < 60000; i++) {
      seed = seed * 1664525 + 1013904223;
      uint64_t size = (uint64_t)(seed >> 8) % (uint64_t)n_sizes[round];
      size = size * size;
      struct ni_record rec = {.kind = seed % 3 ? NI_KIND_COLL : NI_KIND_P2P,
                              .timing = (enum ni_timing)(1 + seed % 3),
                              .msg_bytes = size,
                              .exec_ns = (uint64_t)seed << (seed % 12)};
      ni_rollup_add(&r, &pool, (uint8_t)(seed % 11), &rec, 5);
      want.count++;
      want.bytes += size;
      want.ns += rec.exec_ns;
      want.hist[ni_hist_bucket(rec.exec_ns)]++;
    }
    assert_int_equal(r.from_ns, 5);
    assert_true(r.n <= NI_ROLLUP_ENTRIES && r.n_exact <= NI_ROLLUP_EXACT);
    drain(&r, &got, &lines);
    assert_true(lines - before <= NI_ROLLUP_ENTRIES + NI_KIND_COUNT);
    assert_true(got.count == want.count && got.bytes == want.bytes && got.ns == want.ns);
    uint64_t in_hist = 0;
    for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++)
      in_hist += got.hist[i];
    assert_int_equal(in_hist + got.no_hist, want.count);
    assert_true(lines - before >= 30);
  }
  before_last = lines;
  drain(&r, &got, &lines); /* a period without operations: nothing is said, and the memory is given back */
  assert_int_equal(lines, before_last);
  assert_null(r.slot);
  assert_int_equal(r.n, 0);
  ni_rollup_free(&r, &pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(samples),
                                     cmocka_unit_test(rollups_of_few_sizes), cmocka_unit_test(rollups),
                                     cmocka_unit_test(rollups_without_room)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
