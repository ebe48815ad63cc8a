/*
 * What the timeline rests on: the external sort, the sample of collectives, the two fits of clocks, two
 * passes over one who.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/model/clocks/line_fit.h"
#include "exporter/model/clocks/gpu_clock.h"
#include "exporter/model/clocks/match.h"
#include "exporter/base/spill/spill_sort.h"
#include "exporter/model/who/who.h"

static uint64_t seed = 1;
static uint64_t rnd(uint64_t below) {
  seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return (seed >> 20) % below;
}

/* ---- sort ---- */

struct item {
  int64_t ts, dur;
  uint64_t order;
  uint8_t fill[200];
};

static int by_time(const void *a, const void *b, void *unused) {
  const struct item *x = a, *y = b;
  (void)unused;
  if (x->ts != y->ts)
    return x->ts < y->ts ? -1 : 1;
  return x->dur > y->dur ? -1 : x->dur < y->dur;
}

static int by_rule(const void *a, const void *b) {
  const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
  if (x->ts != y->ts)
    return x->ts < y->ts ? -1 : 1;
  if (x->dur != y->dur)
    return x->dur > y->dur ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

static void sort_agrees(size_t n, uint64_t limit, int64_t times, size_t runs_from) {
  struct ni_spill store;
  struct ni_sort *s;
  struct item **all = calloc(n ? n : 1, sizeof *all);
  ni_spill_init(&store, "/tmp", 0);
  assert_int_equal(ni_sort_new(&s, &store, limit, by_time, NULL), 0);
  for (size_t i = 0; i < n; i++) {
    size_t len = offsetof(struct item, fill) + rnd(200);
    all[i] = calloc(1, sizeof **all);
    *all[i] =
        (struct item){.ts = (int64_t)rnd((uint64_t)times) - times / 2, .dur = (int64_t)rnd(3), .order = i};
    memset(all[i]->fill, (int)(i & 255), len - offsetof(struct item, fill));
    assert_int_equal(ni_sort_add(s, all[i], len), 0);
  }
  qsort(all, n, sizeof *all, by_rule);
  const void *item;
  size_t len;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(ni_sort_next(s, &item, &len), 1);
    assert_memory_equal(item, all[i], len);
    assert_true(len == sizeof **all || all[i]->fill[len - offsetof(struct item, fill)] == 0 ||
                (all[i]->order & 255) == 0);
  }
  assert_int_equal(ni_sort_next(s, &item, &len), 0);
  assert_int_equal(ni_sort_next(s, &item, &len), 0);
  assert_true(ni_sort_runs(s) >= runs_from);
  ni_sort_free(s);
  ni_spill_close(&store);
  for (size_t i = 0; i < n; i++)
    free(all[i]);
  free(all);
}

static void test_sort(void **state) {
  (void)state;
  sort_agrees(0, 1 << 20, 10, 0);
  sort_agrees(1, 1 << 20, 10, 0);
  sort_agrees(5000, 16 << 20, 1000000, 0);
  sort_agrees(5000, 16 << 20, 20, 0); /* many ties */
  sort_agrees(50000, 64 << 10, 1000000, 50);
  sort_agrees(50000, 0, 50, 100); /* the least memory: thousands of short runs, ties across them */
}

static void test_sort_no_folder(void **state) {
  (void)state;
  struct ni_spill store;
  struct ni_sort *s;
  char bytes[512] = {0};
  int e = 0;
  ni_spill_init(&store, "/nowhere/at/all", 0);
  assert_int_equal(ni_sort_new(&s, &store, 0, by_time, NULL), 0);
  for (int i = 0; e == 0 && i < 100; i++)
    e = ni_sort_add(s, bytes, sizeof bytes);
  assert_int_equal(e, -ENOENT);
  ni_sort_free(s);
}

/* ---- match ---- */

static void test_match(void **state) {
  (void)state;
  enum { OPS = 40000, RANKS = 8 };
  struct ni_match m, back;
  assert_int_equal(ni_match_init(&m, NI_MATCH_ENTRIES), 0);
  assert_int_equal(ni_match_init(&back, NI_MATCH_ENTRIES), 0);
  for (int rank = 0; rank < RANKS; rank++)
    for (uint64_t sn = 0; sn < OPS; sn++) {
      struct ni_match_entry e = {
          .start_ns = (int64_t)sn, .end_ns = (int64_t)sn + 1, .member = (uint32_t)rank};
      assert_int_equal(ni_match_add(&m, ni_match_key(7, 0, "AllReduce", sn, 64), &e), 0);
    }
  for (uint64_t sn = OPS; sn-- > 0;)
    for (int rank = RANKS; rank-- > 0;) {
      struct ni_match_entry e = {
          .start_ns = (int64_t)sn, .end_ns = (int64_t)sn + 1, .member = (uint32_t)rank};
      assert_int_equal(ni_match_add(&back, ni_match_key(7, 0, "AllReduce", sn, 64), &e), 0);
      /* twice counts once */
      assert_int_equal(ni_match_add(&back, ni_match_key(7, 0, "AllReduce", sn, 64), &e), 0);
    }
  /* The same sample whatever the order; whole operations; about as much as there is room for. */
  assert_true(m.bound < UINT64_MAX && m.bound == back.bound);
  assert_true(m.n_entries > NI_MATCH_ENTRIES / 3 && m.n_entries == back.n_entries);
  uint32_t ops = 0;
  for (uint32_t i = 0; i <= m.mask; i++) {
    if (!m.op[i].n)
      continue;
    uint32_t members = 0, n = 0;
    int64_t start = m.entry[m.op[i].first - 1].start_ns;
    for (uint32_t e = m.op[i].first; e; e = m.entry[e - 1].next, n++) {
      assert_int_equal(m.entry[e - 1].start_ns, start);
      members |= 1u << m.entry[e - 1].member;
    }
    assert_true(n == RANKS && members == (1u << RANKS) - 1 && n == m.op[i].n);
    ops++;
  }
  assert_int_equal(ops * RANKS, m.n_entries);
  ni_match_free(&m);
  ni_match_free(&back);
  /* What tells operations apart. */
  uint64_t k = ni_match_key(7, 0, "AllReduce", 1, 64);
  assert_true(k != ni_match_key(8, 0, "AllReduce", 1, 64) && k != ni_match_key(7, 1, "AllReduce", 1, 64) &&
              k != ni_match_key(7, 0, "AllGather", 1, 64) && k != ni_match_key(7, 0, "AllReduce", 2, 64) &&
              k != ni_match_key(7, 0, "AllReduce", 1, 65));
}

/* ---- fits ---- */

/*
 * Bounds around a true line, as collectives give them: never wrong, at least half_ns wide on the nearer side.
 */
static void bounds(struct ni_line_bound *b, size_t n, double offset, double drift, int64_t span_ns,
                   int64_t half_ns) {
  for (size_t i = 0; i < n; i++) {
    int64_t t = (int64_t)rnd((uint64_t)span_ns) - span_ns / 2;
    int64_t truth = (int64_t)llround(offset + drift * (double)t);
    b[i] = (struct ni_line_bound){.t = t,
                                  .low = truth - half_ns - (int64_t)rnd(1000000),
                                  .high = truth + half_ns + (int64_t)rnd(1000000)};
  }
}

/*
 * One host is always late: the other waits, so its operations are long, and the middle of the bounds is off
 * by half of that.
 */
static void test_line_fit_of_who_waits(void **state) {
  (void)state;
  enum { N = 200 };
  struct ni_line_bound b[N];
  struct ni_line_fit f;
  for (int i = 0; i < N; i++) {
    const int64_t t = i * INT64_C(50000000), truth = 3000000 + t / 50000,
                  end = truth + (int64_t)rnd(4000) - 2000;
    b[i] = (struct ni_line_bound){.t = t,
                                  .low = end - 900000 - (int64_t)rnd(50000),
                                  .high = end + 20000,
                                  .likely = end,
                                  .within = 20000};
  }
  ni_line_fit(b, N, 0, N * INT64_C(50000000), 0, &f);
  assert_true(fabs(f.drift * 1e6 - 20) < 0.5 && fabs(f.offset_ns - 3000000) < 4000 && f.error_ns > 400000);
}

static void test_line_fit(void **state) {
  (void)state;
  struct ni_line_bound b[4000];
  struct ni_line_fit f;
  ni_line_fit(b, 0, 0, 0, 0, &f);
  assert_true(f.used == 0 && f.offset_ns == 0 && f.drift == 0 && f.room_ns == 0);
  for (int round = 0; round < 20; round++) {
    double offset = ((double)rnd(2000000) - 1e6) * 1000, drift = ((double)rnd(4000) - 2000) * 1e-7;
    int64_t span = INT64_C(600000000000);
    bounds(b, 4000, offset, drift, span, 15000);
    ni_line_fit(b, 4000, 0, 0, 0, &f);
    assert_true(f.used == 4000 && f.rejected == 0 && f.room_ns >= 15000 && f.room_ns < 40000);
    for (int64_t t = -span / 2; t <= span / 2; t += span / 10) {
      double off = f.offset_ns + f.drift * (double)t - (offset + drift * (double)t);
      assert_true(fabs(off) <= f.room_ns && f.error_ns >= f.room_ns && f.error_ns < 3 * f.room_ns);
    }
    /* A few matches of different operations are told from the rest and change nothing much. */
    for (int i = 0; i < 40; i++) {
      int64_t wrong = (i & 1 ? 1 : -1) * INT64_C(5000000000);
      b[i * 100].low += wrong;
      b[i * 100].high += wrong;
    }
    ni_line_fit(b, 4000, 0, 0, 0, &f);
    assert_true(f.rejected == 40 && f.room_ns >= 15000 && fabs(f.offset_ns - offset) <= f.room_ns);
  }
  /* Few operations that waited: the line is further off at the ends than in the middle, and that is said. */
  for (int round = 0, beyond = 0; round < 200 || !beyond; round++) {
    double drift = ((double)rnd(4000) - 2000) * 1e-8;
    int64_t span = INT64_C(20000000000);
    bounds(b, 40, 5e8, drift, span, 15000);
    ni_line_fit(b, 40, 0, 0, 0, &f);
    double off = fmax(fabs(f.offset_ns + f.drift * 1e10 - 5e8 - drift * 1e10),
                      fabs(f.offset_ns - f.drift * 1e10 - 5e8 + drift * 1e10));
    assert_true(f.used == 40 && off <= f.error_ns + 1 && round < 1000);
    beyond += off > f.room_ns;
  }
  /* A clock that steps: the bounds contradict, and the error covers both sides of the step. */
  bounds(b, 4000, 0, 0, INT64_C(100000000000), 15000);
  for (int i = 0; i < 4000; i++)
    if (b[i].t > 0) {
      b[i].low += 2000000;
      b[i].high += 2000000;
    }
  ni_line_fit(b, 4000, 0, 0, 0, &f);
  assert_true(f.room_ns < 0 && f.error_ns > 900000);
  /* Too short for a drift. */
  bounds(b, 100, 5000, 0, 900000000, 15000);
  ni_line_fit(b, 100, 0, 0, 0, &f);
  assert_true(f.drift == 0 && fabs(f.offset_ns - 5000) <= f.room_ns);
}

/*
 * What messages leave: one side each, as tight as they were quick; from one host (low) or the other (high).
 */
static struct ni_line_bound message(double offset, double drift, int64_t t, int64_t took, bool low) {
  int64_t truth = (int64_t)llround(offset + drift * (double)t);
  return (struct ni_line_bound){
      .t = t, .low = low ? truth - took : INT64_MIN, .high = low ? INT64_MAX : truth + took};
}

static void test_line_fit_messages(void **state) {
  (void)state;
  enum { N = 600 };
  struct ni_line_bound b[N];
  struct ni_line_fit f;
  for (int round = 0; round < 300; round++) {
    double offset = ((double)rnd(2000000) - 1e6) * 1000, drift = ((double)rnd(4000) - 2000) * 1e-7;
    int64_t span = 1 + (int64_t)rnd(INT64_C(300000000000)),
            quick[2] = {1000 + (int64_t)rnd(200000), 1000 + (int64_t)rnd(200000)};
    size_t n = 2 + rnd(N - 1);
    bool any[2] = {false, false};
    /* Most waited for somebody; in the first part of the job only, often more one way than the other. */
    for (size_t i = 0; i < n; i++) {
      bool low = rnd(10) < (uint64_t)(round % 9) + 1;
      any[low] = true;
      int64_t t = (int64_t)rnd((uint64_t)span) - span / 2;
      b[i] = message(offset, drift, t, quick[low] + (rnd(3) ? (int64_t)rnd(50000000) : 0), low);
    }
    ni_line_fit(b, n, -span, span, 0, &f);
    if (!any[0] || !any[1]) {
      assert_true(f.used == 0 && f.offset_ns < 1e300);
      continue;
    }
    assert_true(f.used == n && f.one_sided == n && f.rejected == 0 && f.room_ns > 0 &&
                f.error_ns >= f.room_ns);
    for (int64_t t = -span; t <= span; t += span)
      assert_true(fabs(f.offset_ns + f.drift * (double)t - (offset + drift * (double)t)) <= f.error_ns + 1);
  }
  /* Wrong matches, on either side and where few bounds are on that side. */
  for (int i = 0; i < N; i++)
    b[i] = message(5e8, 2e-5, rnd(60000000000) - INT64_C(30000000000),
                   9000 + (int64_t)rnd(i % 3 ? 90000000 : 500), i % 10);
  for (int i = 0; i < 10; i++) {
    int64_t wrong = (i & 1 ? 1 : -1) * INT64_C(2000000000);
    b[i * 10 + 1].low += wrong > 0 ? wrong : 0;
    b[i * 10].high += wrong < 0 ? wrong : 0;
  }
  ni_line_fit(b, N, 0, 0, 0, &f);
  /* As large a share of the other side may go with them. */
  assert_true(f.rejected >= 10 && f.rejected < 70 && f.room_ns >= 9000 &&
              fabs(f.offset_ns - 5e8) <= f.error_ns && f.error_ns < 30000);
  /* Beside a collective that is tight on one side only, the middle stays that of the messages. */
  for (int i = 0; i < N; i++)
    b[i] = message(0, 0, (i - N / 2) * INT64_C(100000000), 100000 + (int64_t)rnd(1000), i & 1);
  for (int i = 0; i < N; i += 60)
    b[i] = (struct ni_line_bound){.t = b[i].t, .low = -4000000, .high = 20000};
  ni_line_fit(b, N, 0, 0, 0, &f);
  assert_true(f.used == N && f.one_sided == N - 10 && fabs(f.offset_ns) < 1000 && f.room_ns < 61000 &&
              f.error_ns >= 100000);
  /*
   * The GPUs' clocks are off by more than the bounds leave: as long as that explains it, it is the error;
   * else it is told.
   */
  for (int i = 0; i < N; i++)
    b[i] = message(0, 0, (i - N / 2) * INT64_C(100000000), -3000, i & 1);
  ni_line_fit(b, N, 0, 0, 5000, &f);
  assert_true(f.room_ns < 0 && f.error_ns >= 2000 && f.error_ns < 20000);
  ni_line_fit(b, N, 0, 0, 0, &f);
  assert_true(f.room_ns < 0 && f.error_ns >= 3000);
}

static void test_gpu_clock(void **state) {
  (void)state;
  int64_t got;
  struct ni_gpu_clock none = {0};
  assert_int_equal(ni_gpu_clock_finish(&none), 0);
  assert_false(ni_gpu_clock_at(&none, 5, &got));
  for (int round = 0; round < 10; round++) {
    struct ni_gpu_clock c = {0};
    double drift = ((double)rnd(800) - 400) * 1e-7;
    int64_t t0 = INT64_C(1790000000000000000), span = INT64_C(3600000000000);
    /* Minima of windows: some met a delivery that took no time, most did not. */
    for (int i = 0; i < 240; i++) {
      int64_t t = t0 + (int64_t)rnd((uint64_t)span);
      int64_t late = rnd(3) == 0 ? 0 : (int64_t)rnd(30000);
      assert_int_equal(ni_gpu_points_add(&c.points, t, 777 + (int64_t)(drift * (double)(t - t0)) + late), 0);
    }
    assert_int_equal(ni_gpu_clock_finish(&c), 0);
    for (int64_t t = t0; t <= t0 + span; t += span / 50) {
      assert_true(ni_gpu_clock_at(&c, t, &got));
      int64_t off = got - 777 - (int64_t)(drift * (double)(t - t0));
      /* Never below what every point allows, but for the slope of its neighbourhood. */
      assert_true(off > -20000 && off < 20000);
    }
    assert_true(c.spread_ns > 1000 && c.spread_ns < 31000);
    ni_gpu_clock_free(&c);
  }
  /* Seconds only: the lowest point, no drift made of noise. */
  struct ni_gpu_clock few = {0};
  assert_int_equal(ni_gpu_points_add(&few.points, 1000, 500), 0);
  assert_int_equal(ni_gpu_points_add(&few.points, 2000000000, 90), 0);
  assert_int_equal(ni_gpu_points_add(&few.points, 3000000000, 120), 0);
  assert_int_equal(ni_gpu_clock_finish(&few), 0);
  assert_true(ni_gpu_clock_at(&few, 1000, &got) && got == 90);
  assert_true(ni_gpu_clock_at(&few, INT64_C(9000000000), &got) && got == 90);
  ni_gpu_clock_free(&few);
  /* A loaded machine's first second, after which the minimum stood: its slope of 150 ppm is noise, and 17 s
   * later it was off by milliseconds. */
  static const int64_t noisy[][2] = {{559670405, -2590843},  {564395236, -2610908}, {569288492, -2621623},
                                     {574887991, -2567624},  {879737139, -2662985}, {879761934, -2664607},
                                     {1179630041, -2645037}, {1784772735, -2661563}};
  struct ni_gpu_clock loaded = {0};
  for (size_t i = 0; i < sizeof noisy / sizeof *noisy; i++)
    assert_int_equal(ni_gpu_points_add(&loaded.points, noisy[i][0], noisy[i][1]), 0);
  assert_int_equal(ni_gpu_clock_finish(&loaded), 0);
  for (int64_t t = 0; t < INT64_C(20000000000); t += 500000000) {
    assert_true(ni_gpu_clock_at(&loaded, t, &got));
    assert_in_range(-got, 2500000, 2900000);
  }
  ni_gpu_clock_free(&loaded);
}

/*
 * A starved host's first second: deliveries 60 ms late, then less, then in time, and none is better from
 * there on.
 */
static void test_gpu_clock_starved(void **state) {
  (void)state;
  const int64_t t0 = INT64_C(1790000000000000000), s = INT64_C(1000000000);
  struct ni_gpu_clock c = {0};
  int64_t got;
  for (int i = 0; i <= 10; i++)
    assert_int_equal(ni_gpu_points_add(&c.points, t0 + i * s / 20, (10 - i) * INT64_C(6000000)), 0);
  ni_gpu_points_judge(&c.points);
  assert_int_equal(ni_gpu_clock_finish(&c), 0);
  for (int64_t t = t0 - s; t < t0 + 60 * s; t += s / 4) {
    assert_true(ni_gpu_clock_at(&c, t, &got));
    assert_in_range(got + 1000000, 0, 2000000);
  }
  assert_true(ni_gpu_clock_matters(&c) && c.worst_ns > 59000000);
  got = ni_gpu_clock_correction(&c, 60000000, t0);
  assert_in_range(-got, 59000000, 61000000);
  assert_int_equal(ni_gpu_clock_correction(&c, NI_NO_OFFSET, t0), 0);
  ni_gpu_clock_free(&c);
}

static bool finds_set(const int64_t (*point)[2], size_t n) {
  struct ni_gpu_points p = {0};
  for (size_t i = 0; i < n; i++)
    assert_int_equal(
        ni_gpu_points_add(&p, INT64_C(1790000000000000000) + point[i][0] * 1000000, point[i][1] * 1000000),
        0);
  ni_gpu_points_judge(&p);
  const bool was_set = p.was_set;
  ni_gpu_points_free(&p);
  return was_set;
}

/*
 * ms. Deliveries make an offset fall at the beginning and wander by some ms; more than that is a clock that
 * was set.
 */
static void test_gpu_points_set(void **state) {
  (void)state;
  static const int64_t quiet[][2] = {{0, 900}, {100, 60}, {9000, 0}, {60000, 5}, {120000, 40}};
  static const int64_t forward[][2] = {{0, 0}, {60000, 100}};
  static const int64_t back[][2] = {{0, 0}, {60000, 0}, {60010, -100}};
  static const int64_t garbage[][2] = {{0, 0}, {100, -5000}};
  assert_false(finds_set(quiet, 5));
  assert_true(finds_set(forward, 2));
  assert_true(finds_set(back, 3));
  assert_true(finds_set(garbage, 2));
}

/* Of more than are kept the same stay in whatever order they come, in parts, twice, and over the wire. */
static void test_gpu_points_bounded(void **state) {
  (void)state;
  enum { N = 20000, PARTS = 7 };
  struct ni_gpu_points all = {0}, merged = {0}, loaded = {0}, part[PARTS] = {0};
  static struct ni_gpu_point p[N];
  for (size_t i = 0; i < N; i++)
    p[i] = (struct ni_gpu_point){INT64_C(1790000000000000000) + (int64_t)rnd(UINT64_C(3600000000000)),
                                 (int64_t)rnd(1000000)};
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(ni_gpu_points_add(&all, p[i].at_ns, p[i].offset_ns), 0);
    assert_int_equal(ni_gpu_points_add(&part[rnd(PARTS)], p[N - 1 - i].at_ns, p[N - 1 - i].offset_ns), 0);
    assert_true(all.n <= 2 * NI_GPU_POINTS_MOST);
  }
  for (int k = PARTS; k-- > 0;)
    assert_int_equal(ni_gpu_points_merge(&merged, &part[k]), 0);
  assert_int_equal(ni_gpu_points_merge(&merged, &part[3]), 0);
  ni_gpu_points_sort(&all);
  ni_gpu_points_sort(&merged);
  struct ni_wire w = {0};
  ni_gpu_points_wire(&w, &merged);
  struct ni_wire back = ni_wire_load(w.bytes, w.n);
  ni_gpu_points_wire(&back, &loaded);
  assert_true(ni_wire_over(&back));
  ni_gpu_points_sort(&loaded);
  assert_in_range(all.n, NI_GPU_POINTS_MOST / 4, NI_GPU_POINTS_MOST);
  assert_true(all.n == merged.n && all.n == loaded.n && all.coarse == merged.coarse &&
              all.coarse == loaded.coarse);
  assert_memory_equal(all.item, merged.item, all.n * sizeof *all.item);
  assert_memory_equal(all.item, loaded.item, all.n * sizeof *all.item);
  for (int k = 0; k < PARTS; k++)
    ni_gpu_points_free(&part[k]);
  ni_wire_free(&w);
  ni_gpu_points_free(&all);
  ni_gpu_points_free(&merged);
  ni_gpu_points_free(&loaded);
}

/* ---- who ---- */

static int64_t told(struct ni_who *w, uint64_t start_ns, uint64_t hash, uint64_t init_ns) {
  int64_t p = ni_who_process(w, "node-0", 7, start_ns, "node-0-pid7");
  return ni_who_member(w, (uint32_t)p, 0, &(struct ni_ident){.comm_hash = hash, .rank = 1, .n_ranks = 4},
                       init_ns);
}

/* Lines in the order of a log: a hash comes back twice, and a process its pid. When it is read once more,
 * another communicator has come in between, as in a log that grows. */
static void test_who_twice(void **state) {
  (void)state;
  static const struct {
    uint64_t start_ns, hash, init_ns;
    int64_t want;
  } line[] = {{0, 1, 0, 0}, {50, 1, 100, 0}, {0, 2, 90, 1},  {0, 1, 0, 0}, {0, 1, 300, 2},
              {0, 1, 0, 2}, {0, 1, 100, 0},  {0, 1, 200, 3}, {0, 1, 0, 2}, {0, 1, 400, 4},
              {0, 1, 0, 4}, {60, 1, 0, 5},   {0, 1, 500, 5}, {0, 2, 0, 6}, {50, 1, 0, 4}};
  struct ni_who w = {0};
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
      assert_int_equal(told(&w, line[i].start_ns, line[i].hash, line[i].init_ns), line[i].want);
      if (pass && i == 3)
        assert_int_equal(told(&w, 0, 9, 110), 7);
    }
    assert_int_equal(w.n_processes, 2);
    assert_int_equal(w.n_members, 7 + pass);
    ni_who_rewind(&w);
  }
  ni_who_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sort),
                                     cmocka_unit_test(test_sort_no_folder),
                                     cmocka_unit_test(test_match),
                                     cmocka_unit_test(test_line_fit),
                                     cmocka_unit_test(test_line_fit_of_who_waits),
                                     cmocka_unit_test(test_line_fit_messages),
                                     cmocka_unit_test(test_gpu_clock),
                                     cmocka_unit_test(test_gpu_clock_starved),
                                     cmocka_unit_test(test_gpu_points_set),
                                     cmocka_unit_test(test_gpu_points_bounded),
                                     cmocka_unit_test(test_who_twice)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
