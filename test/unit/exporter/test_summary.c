/*
 * The rooms of the summary that promise something by themselves: distributions, packed segments, numbers as
 * text, names and sizes as text.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/model/sums/packed/dist.h"
#include "exporter/base/name_table.h"
#include "exporter/model/sums/packed/segment.h"
#include "exporter/model/sums/reading/correct_clocks.h"
#include "exporter/base/text/shortest.h"
#include "exporter/base/text/time_text.h"

static uint64_t seed = 12345;
static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static void near(double a, double b, double tolerance) {
  if (fabs(a - b) > tolerance * fmax(fabs(a), fabs(b)))
    fail_msg("%.17g is not %.17g", a, b);
}

static double exact_quantile(const uint64_t *v, size_t n, double q) {
  double at = q * (double)(n - 1);
  size_t low = (size_t)at;
  return low + 1 < n ? (double)v[low] + (at - (double)low) * (double)(v[low + 1] - v[low]) : (double)v[low];
}

static void compare(struct ni_dist *d, uint64_t *v, size_t n, double quantiles) {
  struct ni_stats s;
  long double sum = 0, square = 0;
  qsort(v, n, sizeof *v, by_value);
  for (size_t i = 0; i < n; i++)
    sum += v[i];
  for (size_t i = 0; i < n; i++)
    square += (v[i] - sum / n) * (v[i] - sum / n);
  assert_int_equal(ni_dist_stats(d, 1, &s), 0);
  assert_int_equal(s.n, n);
  near(s.mean, (double)(sum / n), 1e-15);
  if (n > 1)
    near(s.stddev, (double)sqrtl(square / (n - 1)), 1e-12);
  else
    assert_true(isnan(s.stddev));
  assert_true(s.min == (double)v[0] && s.max == (double)v[n - 1]);
  near(s.p10, exact_quantile(v, n, 0.10), quantiles);
  near(s.p50, exact_quantile(v, n, 0.50), quantiles);
  near(s.p90, exact_quantile(v, n, 0.90), quantiles);
  near(s.p99, exact_quantile(v, n, 0.99), quantiles);
}

static void test_dist_exact(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 2, 3, 10, 1000, 20000};
  for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    struct ni_dist d = {.limit = 1u << 15};
    size_t n = sizes[k];
    uint64_t *v = malloc(n * sizeof *v);
    /* Close together and far from 0: where sums of squares lose their digits. */
    for (size_t i = 0; i < n; i++)
      assert_int_equal(ni_dist_add(&d, v[i] = 3000000000000ULL + next_random() % 5000), 0);
    compare(&d, v, n, 1e-15);
    assert_false(d.coarse);
    ni_dist_free(&d);
    free(v);
  }
}

static void test_dist_coarse(void **state) {
  (void)state;
  enum { N = 50000 };
  uint64_t *v = malloc(N * sizeof *v);
  struct ni_dist d = {.limit = 1000};
  for (size_t i = 0; i < N; i++)
    assert_int_equal(ni_dist_add(&d, v[i] = next_random() % 1000000 + 50), 0);
  assert_true(d.coarse);
  compare(&d, v, N, 0.004);
  struct ni_stats s;
  assert_int_equal(ni_dist_stats(&d, 1, &s), 0);
  assert_true(s.approx);
  near(ni_dist_quantile_coarse(&d, 0.5, 1), s.p50, 0.01);
  ni_dist_free(&d);
  free(v);
}

/*
 * The bins of the lines over the run have a few values each: between the last two lies p99 of anything up to
 * 101.
 */
static void test_dist_bins(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 2, 3, 50, 100, 101, 102, 3000};
  static const double parts[] = {0, 0.10, 0.25, 0.50, 0.90, 0.99, 1};
  for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    struct ni_dist d = {0};
    size_t n = sizes[k];
    uint64_t *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++)
      v[i] = 50000 + next_random() % 5000;
    v[n - 1] *= 100;
    for (size_t i = 0; i < n; i++)
      assert_int_equal(ni_dist_add(&d, v[i]), 0);
    qsort(v, n, sizeof *v, by_value);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
      near(ni_dist_quantile_coarse(&d, parts[i], 1e3), exact_quantile(v, n, parts[i]) / 1e3, 0.004);
    ni_dist_free(&d);
    free(v);
  }
}

/* As one process sends it to another. */
static void over_a_wire(struct ni_dist *d) {
  struct ni_wire w = {0}, back;
  struct ni_dist got = {.limit = d->limit};
  assert_int_equal(ni_dist_wire(&w, d), 0);
  assert_false(w.bad);
  back = ni_wire_load(w.bytes, w.n);
  assert_int_equal(ni_dist_wire(&back, &got), 0);
  assert_true(ni_wire_over(&back));
  ni_wire_free(&w);
  ni_dist_free(d);
  *d = got;
}

/*
 * The order of adding and of merging does not change a bit: below the limit, at it, above it; sums of squares
 * far beyond 2^64.
 */
static void test_dist_merge(void **state) {
  (void)state;
  enum { N = 6000 };
  static const uint32_t limits[] = {0, 128, N - 1, N, N + 1, 1u << 14};
  for (unsigned k = 0; k < 2 * sizeof limits / sizeof *limits; k++) {
    const uint32_t limit = limits[k / 2];
    const uint64_t scale = k % 2 ? 500000000 : 1;
    struct ni_dist whole = {.limit = limit}, a = {.limit = limit}, b = {.limit = limit},
                   ab = {.limit = limit}, ba = {.limit = limit};
    for (uint64_t i = 0; i < N; i++) { /* no two alike */
      uint64_t v = scale * (i * 7919 % N) + (i < N / 2 ? 5 : 7000000 * scale);
      assert_int_equal(ni_dist_add(&whole, v), 0);
      assert_int_equal(ni_dist_add(i % 3 ? &a : &b, v), 0);
    }
    assert_int_equal(ni_dist_merge(&ab, &a), 0);
    assert_int_equal(ni_dist_merge(&ab, &b), 0);
    over_a_wire(&a);
    over_a_wire(&b);
    assert_int_equal(ni_dist_merge(&ba, &b), 0);
    assert_int_equal(ni_dist_merge(&ba, &a), 0);
    over_a_wire(&ba);
    struct ni_stats x, y, z;
    assert_int_equal(ni_dist_stats(&whole, 1e3, &x), 0);
    assert_int_equal(ni_dist_stats(&ab, 1e3, &y), 0);
    assert_int_equal(ni_dist_stats(&ba, 1e3, &z), 0);
    assert_true(x.n == N && x.approx == (limit < N) && x.approx == y.approx && x.approx == z.approx);
    const double one[] = {x.mean, x.stddev, x.min, x.p10, x.p50, x.p90, x.p99, x.max};
    const double two[] = {y.mean, y.stddev, y.min, y.p10, y.p50, y.p90, y.p99, y.max};
    const double three[] = {z.mean, z.stddev, z.min, z.p10, z.p50, z.p90, z.p99, z.max};
    assert_memory_equal(one, two, sizeof one);
    assert_memory_equal(one, three, sizeof one);
    struct ni_dist *all[] = {&whole, &a, &b, &ab, &ba};
    for (int i = 0; i < 5; i++)
      ni_dist_free(all[i]);
  }
}

static void test_dist_shapes(void **state) {
  (void)state;
  struct ni_dist d = {.limit = 1000};
  struct ni_hist h;
  struct ni_whisker box;
  struct ni_stats s;
  assert_int_equal(ni_dist_stats(&d, 1, &s), 0);
  assert_true(s.n == 0 && isnan(s.mean) && isnan(s.p50));
  assert_int_equal(ni_dist_hist(&d, 1, &h), 0);
  assert_int_equal(h.n, 0);
  for (uint64_t v = 1; v <= 100; v++)
    assert_int_equal(ni_dist_add(&d, v), 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(ni_dist_add(&d, 100000), 0);
  assert_int_equal(ni_dist_hist(&d, 1, &h), 0);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < h.n; i++)
    sum += h.count[i];
  assert_int_equal(sum, 102);
  assert_true(h.log && h.lo == 1 && h.hi == 100000 && h.n >= 10 && h.n <= NI_SUM_HIST_BINS &&
              h.count[h.n - 1] == 2);
  assert_int_equal(ni_dist_box(&d, 1, &box), 0);
  assert_true(box.n == 102 && box.n_outside == 2 && box.whisker_lo == 1 && box.whisker_hi == 100 &&
              box.max == 100000);
  ni_dist_free(&d);
}

static struct ni_entry random_entry(uint64_t sn, bool ours) {
  struct ni_entry e = {
      .sn = sn,
      .exec_ns = ours ? next_random() % 10000000 + 1 : (next_random() % 10000 + 1) * 1000,
      .bytes_per_s = next_random() % 10 == 0 ? NI_NO_BW : (next_random() % 400000000) * (ours ? 997 : 1000),
      .dump_us = 1790000000000000ULL + next_random() % 100000000,
      .start_ns = NI_NO_START,
      .peer_or_wait = next_random() % 4 == 0 ? (int64_t)(next_random() % (1 << 20)) * 4096 - 1 : 0,
      .timing = (uint8_t)(next_random() % 4),
      .mix = (uint8_t)(next_random() % 3)};
  if (ours && next_random() % 3)
    e.tag = next_random() % 2 ? next_random() % 5 : next_random() >> 1;
  e.tail = ours && next_random() % 7 == 0;
  e.lead_us = ours && next_random() % 5 ? (int32_t)next_random() : NI_NO_LEAD;
  if (ours && next_random() % 4 == 0) /* the next clock line */
    e.stated_ns = (int64_t)(next_random() % 4000000000000000000ULL) - 2000000000000000000;
  if (ours && next_random() % 5)
    e.start_ns = 1790000000000000000LL + (int64_t)(next_random() % 1000000000000ULL);
  return e;
}

static int by_sn(const void *a, const void *b) {
  const struct ni_entry *x = a, *y = b;
  if (x->sn != y->sn)
    return x->sn < y->sn ? -1 : 1;
  return x->dump_us < y->dump_us ? -1 : x->dump_us > y->dump_us; /* order of writing, see below */
}

static void same_entry(const struct ni_entry *a, const struct ni_entry *b) {
  assert_true(a->sn == b->sn && a->exec_ns == b->exec_ns && a->bytes_per_s == b->bytes_per_s &&
              a->dump_us == b->dump_us && a->start_ns == b->start_ns && a->stated_ns == b->stated_ns &&
              a->peer_or_wait == b->peer_or_wait && a->timing == b->timing && a->mix == b->mix &&
              a->tag == b->tag && a->tail == b->tail && a->lead_us == b->lead_us);
}

/* What goes in comes out, in order, from memory and from the file, sorted, nearly sorted and shuffled. */
static void test_segment(void **state) {
  (void)state;
  enum { N = 30000 };
  struct ni_entry *in = malloc(N * sizeof *in);
  for (int how = 0; how < 12; how++) {
    struct ni_spill st;
    struct ni_segment s = {0};
    struct ni_segment_reader r;
    struct ni_entry e;
    size_t n = how < 2 ? (size_t)how : N;
    ni_spill_init(&st, "/tmp", how % 2 ? 0 : UINT64_MAX);
    for (size_t i = 0; i < n; i++) {
      uint64_t sn = how < 4 ? i
          : how < 6         ? i ^ (next_random() & 15)
          : how < 8         ? i * 3 + (i & 1) * 1000
          : how < 10        ? next_random() >> 1
                            : 7;
      in[i] = random_entry(sn, how & 2);
      in[i].dump_us = 1790000000000000ULL + i;
      assert_int_equal(ni_segment_add(&s, &st, &in[i]), 0);
    }
    assert_int_equal(ni_segment_end(&s, &st), 0);
    if (how % 2 && n > 100)
      assert_true(atomic_load(&st.held_bytes) < 16384 && atomic_load(&st.file_end) > 100000);
    qsort(in, n, sizeof *in, by_sn);
    ni_segment_read(&r, &s, &st);
    for (size_t i = 0; i < n; i++) {
      assert_int_equal(ni_segment_next(&r, &e), 1);
      same_entry(&e, &in[i]);
    }
    assert_int_equal(ni_segment_next(&r, &e), 0);
    if (how >= 4 && how < 6)
      assert_true(r.cap_heap <= 64); /* nearly sorted: a small heap */
    ni_segment_read_end(&r);
    ni_segment_free(&s, &st);
    ni_spill_close(&st);
  }
  free(in);
}

/*
 * A record is put right by what was stated before it, in its part or in one before; only where its time is
 * the GPU's.
 */
static void test_stamp(void **state) {
  (void)state;
  const int64_t t = 1790000000000000000;
  struct ni_gpu_clock clock = {0};
  assert_int_equal(ni_gpu_points_add(&clock.points, t, 60000000), 0);
  assert_int_equal(ni_gpu_points_add(&clock.points, t + 1000000, 20000000), 0);
  assert_int_equal(ni_gpu_clock_finish(&clock), 0);
  struct ni_stamps_part part[] = {{0, 0, 60000000}, {0, 2, 20000000}, {1, 0, 50000000}};
  const struct ni_stamps_log log = {.part = part, .n = 3, .clock = &clock};
  static const struct {
    uint32_t file, range;
    int64_t stated_ns, by_ns;
    uint8_t timing;
  } cases[] = {{0, 0, 0, 0, NI_TIMING_KERNEL_GPU},         {0, 0, 60000000, -40000000, NI_TIMING_KERNEL_GPU},
               {0, 1, 0, -40000000, NI_TIMING_KERNEL_GPU}, {0, 2, 0, -40000000, NI_TIMING_KERNEL_GPU},
               {0, 3, 0, 0, NI_TIMING_KERNEL_GPU},         {2, 0, 0, -30000000, NI_TIMING_KERNEL_GPU},
               {0, 1, 60000000, 0, NI_TIMING_KERNEL_CPU},  {0, 1, 60000000, 0, NI_TIMING_COLLECTIVE_CPU},
               {0, 1, 20000000, 0, NI_TIMING_KERNEL_GPU}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct ni_piece p = {.file = cases[i].file, .range = cases[i].range};
    struct ni_entry e = {.start_ns = t, .stated_ns = cases[i].stated_ns, .timing = cases[i].timing};
    ni_correct_stamp(&log, &p, &e);
    assert_true(e.start_ns - t == cases[i].by_ns);
  }
  struct ni_entry none = {.start_ns = NI_NO_START, .stated_ns = 60000000, .timing = NI_TIMING_KERNEL_GPU};
  ni_correct_stamp(&log, &(struct ni_piece){0}, &none);
  assert_true(none.start_ns == NI_NO_START);
  ni_gpu_clock_free(&clock);
}

static void test_shortest(void **state) {
  (void)state;
  static const struct {
    double v;
    const char *text;
  } cases[] = {{2.5604232499999995, "2.5604232499999995"},
               {0, "0.0"},
               {-1, "-1.0"},
               {200, "200.0"},
               {0.1, "0.1"},
               {1e-5, "1e-05"},
               {0.0001, "0.0001"},
               {1e15, "1000000000000000.0"},
               {1e16, "1e+16"},
               {1.5e300, "1.5e+300"},
               {5e-324, "5e-324"},
               {3.9735910000000003, "3.9735910000000003"},
               {9007199254740993.0, "9007199254740992.0"}};
  char text[NI_SHORTEST_BYTES + 1];
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    text[ni_shortest(cases[i].v, text)] = 0;
    assert_string_equal(text, cases[i].text);
  }
  assert_int_equal(ni_shortest(NAN, text), 0);
  assert_int_equal(ni_shortest(INFINITY, text), 0);
  for (int i = 0; i < 200000; i++) {
    union {
      uint64_t u;
      double d;
    } x = {.u = next_random()};
    if (!isfinite(x.d))
      continue;
    unsigned n = ni_shortest(x.d, text);
    assert_true(n > 0 && n <= NI_SHORTEST_BYTES);
    text[n] = 0;
    assert_true(strtod(text, NULL) == x.d);
  }
}

static void test_texts(void **state) {
  (void)state;
  static const struct {
    uint64_t v;
    const char *text;
  } cases[] = {
      {8192, "8.19KB"},      {33554432, "33.55MB"}, {1073741824, "1.07GB"}, {1, "1.00B"},           {0, "0B"},
      {999999, "1000.00KB"}, {999, "999.00B"},      {1000, "1.00KB"},       {UINT64_MAX, "18.45EB"}};
  char text[200];
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    ni_human_bytes(cases[i].v, text);
    assert_string_equal(text, cases[i].text);
  }
  ni_size_dir(8192, text);
  assert_string_equal(text, "msg_size_8192_8.19KB");
  ni_file_word("../a b\n\303\244", text, sizeof text);
  assert_string_equal(text, "%2E%2E%2Fa%20b%0A%C3%A4");
  ni_file_word("AllReduce", text, 6);
  assert_true(strlen(text) < 6);
}

/* As the page has them: test/cases/summary/report_browser.sh. */
static void test_amounts(void **state) {
  (void)state;
  static const struct {
    uint64_t v;
    const char *amount, *size;
  } cases[] = {{0, "0 B", "0 B"},
               {4, "4 B", "4 B"},
               {999, "999 B", "999 B"},
               {1000, "1.0 kB", "1.00 kB"},
               {8192, "8.2 kB", "8.19 kB"},
               {999994, "1.0 MB", "999.99 kB"},
               {999999, "1.0 MB", "1.00 MB"},
               {1048576, "1.0 MB", "1.05 MB"},
               {104857600, "105 MB", "104.86 MB"},
               {UINT64_MAX, "18.4 EB", "18.45 EB"}};
  char text[32];
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(ni_bytes_text(cases[i].v, text), cases[i].amount);
    assert_string_equal(ni_size_text(cases[i].v, text), cases[i].size);
  }
}

static void test_times(void **state) {
  (void)state;
  char text[40];
  assert_string_equal(ni_utc_text(1795373550123456, 'T', 0, text), "2026-11-22T18:52:30Z");
  assert_string_equal(ni_utc_text(1795373550000042, ' ', 6, text), "2026-11-22 18:52:30.000042Z");
  assert_string_equal(ni_utc_text(-1, 'T', 6, text), "1969-12-31T23:59:59.999999Z");
  assert_string_equal(ni_second_text(INT64_MAX, 'T', true, text), "");
  assert_string_equal(ni_span_text(-1234, text), "-1.23 us");
  assert_string_equal(ni_span_text(2345678900, text), "2.34568 s");
  assert_string_equal(ni_age_text(599999999999, text), "599 s");
  assert_string_equal(ni_age_text(172800000000000, text), "2 days");
}

static void test_names(void **state) {
  (void)state;
  struct ni_names t;
  struct ni_name_cache cache = {0};
  uint32_t code[5000], again;
  char text[32];
  assert_int_equal(ni_names_init(&t), 0);
  for (int i = 0; i < 5000; i++) {
    snprintf(text, sizeof text, "name %d", i * i);
    assert_int_equal(ni_name(&t, i % 2 ? &cache : NULL, text, &code[i]), 0);
  }
  for (int i = 0; i < 5000; i++) {
    snprintf(text, sizeof text, "name %d", i * i);
    assert_int_equal(ni_name(&t, i % 3 ? &cache : NULL, text, &again), 0);
    assert_int_equal(again, code[i]);
    assert_string_equal(ni_name_text(&t, again), text);
  }
  assert_int_equal(ni_name(&t, &cache, NULL, &again), 0);
  assert_int_equal(again, 0);
  assert_int_equal(ni_name(&t, &cache, "", &again), 0);
  assert_int_equal(again, 0);
  ni_names_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dist_exact), cmocka_unit_test(test_dist_coarse), cmocka_unit_test(test_dist_bins),
      cmocka_unit_test(test_dist_merge), cmocka_unit_test(test_dist_shapes), cmocka_unit_test(test_segment),
      cmocka_unit_test(test_stamp),      cmocka_unit_test(test_shortest),    cmocka_unit_test(test_texts),
      cmocka_unit_test(test_amounts),    cmocka_unit_test(test_times),       cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
