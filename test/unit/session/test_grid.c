/*
 * The grid (exporter/session/grid.h): which sample stands in which frame, what is late, stale, gone,
 * superseded, and what a client's clock may do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/session/grid.h"

#define PERIOD INT64_C(500000000)
#define T(ticks) (INT64_C(1790000000000000000) + (int64_t)((ticks) * (double)PERIOD))

static struct ni_grid *g;
static struct ni_client *a, *b;
static unsigned n_late;
static int64_t late_tick;
static struct ni_frame f;

static void late(void *arg, const struct ni_client *c, const struct ni_sample *s, int64_t tick) {
  (void)arg;
  (void)c;
  (void)s;
  n_late++;
  late_tick = tick;
}

static void put(struct ni_client *c, uint64_t seq, int64_t at, int64_t now) {
  struct ni_sample *s = ni_sample_new(1, 0, 0, 0);
  assert_non_null(s);
  s->seq = seq;
  s->time_ns = at;
  assert_int_equal(ni_grid_put(g, c, s, now, late, NULL), 0);
}

static struct ni_client *come(const char *uuid, const char *host, const char *id) {
  return ni_grid_connect(g, uuid, host, id, NULL);
}

static int begin(void **state) {
  (void)state;
  n_late = 0;
  g = ni_grid_new(PERIOD, T(0));
  a = come("aaaaaaaa-1", "n0", "n0_aaaaaaaa");
  b = come("bbbbbbbb-1", "n1", "n1_bbbbbbbb");
  return !g || !a || !b;
}
static int end(void **state) {
  (void)state;
  ni_grid_free(g);
  return 0;
}

static uint64_t seq_of(int i) { return f.of[i].sample ? f.of[i].sample->seq : 0; }

static void frame_waits_for_who_is_there(void **state) {
  (void)state;
  put(a, 1, T(1), T(1));
  assert_false(ni_grid_next(g, T(1), &f));
  assert_int_equal(ni_grid_due(g), T(1) + NI_GRID_HOLD_NS);
  put(b, 1, T(1.4), T(1.4)); /* nearest to tick 1 */
  assert_true(ni_grid_next(g, T(1.4), &f));
  assert_true(f.tick_ns == T(1) && f.n == 2 && seq_of(0) == 1 && seq_of(1) == 1);
  assert_false(ni_grid_next(g, T(1.4), &f));
  put(a, 2, T(2), T(2));
  assert_false(ni_grid_next(g, T(2) + NI_GRID_HOLD_NS - 1, &f));
  assert_true(ni_grid_next(g, T(2) + NI_GRID_HOLD_NS, &f));
  assert_true(seq_of(0) == 2 && seq_of(1) == 1 && f.of[1].age_ns == T(2) - T(1.4));
  assert_int_equal(f.of[1].state, NI_CLIENT_OK);
}

static void stale_gone_and_back(void **state) {
  (void)state;
  put(a, 1, T(1), T(1));
  put(b, 1, T(1), T(1));
  for (int i = 1; i <= 4; i++) {
    if (i > 1)
      put(a, (uint64_t)i, T(i), T(i));
    assert_true(ni_grid_next(g, T(i) + NI_GRID_HOLD_NS, &f));
    assert_int_equal(f.of[1].state, NI_CLIENT_OK);
  }
  put(a, 5, T(5), T(5));
  assert_true(ni_grid_next(g, T(5) + NI_GRID_HOLD_NS, &f));
  assert_int_equal(f.of[1].state, NI_CLIENT_STALE);
  assert_true(!f.of[1].sample && f.of[1].age_ns == 4 * PERIOD && f.of[1].seq == 1);
  put(a, 6, T(6), T(6)); /* who is stale is not waited for */
  assert_true(ni_grid_next(g, T(6), &f));
  ni_grid_disconnect(g, b);
  put(a, 7, T(7), T(7));
  assert_true(ni_grid_next(g, T(7), &f));
  assert_int_equal(f.of[1].state, NI_CLIENT_GONE);
  assert_ptr_equal(come("bbbbbbbb-1", "n1", "n1_bbbbbbbb"), b);
  put(b, 2, T(3), T(7)); /* what it kept: late, and numbers go on without a loss */
  assert_true(n_late == 1 && late_tick == T(3) && b->late == 1 && b->lost == 0 && b->safe == 2);
  put(b, 9, T(8), T(8));
  put(a, 8, T(8), T(8));
  assert_true(b->lost == 6 && b->safe == 8);
  assert_true(ni_grid_next(g, T(8), &f));
  assert_true(seq_of(1) == 9 && b->safe == 9);
}

static void two_of_a_tick_twice_and_clocks(void **state) {
  (void)state;
  put(a, 1, T(1), T(1));
  put(a, 2, T(1.2), T(1.2));
  put(a, 2, T(1.2), T(1.2));
  assert_true(a->superseded == 2 && a->taken == 2);
  put(b, 1, T(100), T(1)); /* beyond now */
  assert_int_equal(b->newest_ns, T(1));
  /* an hour back: it goes on from where it was */
  for (unsigned i = 2; i < 8; i++)
    put(b, i, T(i - 7200.), T(i));
  assert_true(b->newest_ns == T(7) && b->late == 0 && b->superseded == 0);
  for (unsigned i = 3; i < 9; i++)
    put(a, i, T(i - 1), T(i));
  for (unsigned i = 1; i < 8; i++) {
    assert_true(ni_grid_next(g, T(8), &f));
    assert_true(f.tick_ns == T(i) && seq_of(0) == i + 1 && seq_of(1) == i);
  }
}

static void order_joiners_and_tidy(void **state) {
  struct ni_client *const *list;
  (void)state;
  struct ni_client *p = come("", "n2", "n2_ipv4:10.0.0.2:1"), *q = come("", "n2", "n2_ipv4:10.0.0.2:2");
  assert_true(p && q && p != q && p->number == 2 && q->number == 3);
  ni_grid_disconnect(g, q);
  assert_ptr_equal(come("", "n2", "n2_ipv4:10.0.0.2:3"), q); /* it connects again */
  assert_ptr_not_equal(come("cccccccc-1", "n2", "n2_cccccccc"), q);
  ni_grid_disconnect(g, p);
  assert_true(ni_grid_next(g, T(1) + NI_GRID_HOLD_NS, &f));
  assert_true(f.n == 5 && f.of[2].client == p && f.of[2].state == NI_CLIENT_GONE &&
              f.of[2].age_ns == INT64_MAX && f.of[3].state == NI_CLIENT_STALE);
  ni_grid_tidy(g);
  assert_int_equal(ni_grid_clients(g, &list), 4);
  assert_true(list[2] == q && q->number == 2);
}

static void too_many_wait(void **state) {
  (void)state;
  for (unsigned i = 1; i <= NI_GRID_AHEAD + 10; i++)
    put(a, i, T(i), T(i));
  assert_true(a->let_go == 10 && n_late == 10 && late_tick == T(10) && a->safe == 10);
}

static void goes_on_after_a_kill(void **state) {
  (void)state;
  ni_grid_from(g, T(-20));
  put(a, 1, T(-20), T(0));
  put(b, 1, T(-19), T(0));
  assert_false(ni_grid_next(g, T(0), &f));
  assert_int_equal(ni_grid_due(g), T(0) + NI_GRID_BACK_NS);
  assert_true(ni_grid_next(g, T(0) + NI_GRID_BACK_NS, &f));
  assert_true(f.tick_ns == T(-20) && seq_of(0) == 1 && !f.of[1].sample);
  assert_true(ni_grid_next(g, T(0) + NI_GRID_BACK_NS, &f));
  assert_true(f.tick_ns == T(-19) && seq_of(1) == 1);
}

/*
 * A sample of n ticks has what a job's logs said by then, in writes of 100 operations at each so many ticks.
 */
static double rate_at(struct ni_rates *r, double tick, double operations) {
  struct ni_sample *s = ni_sample_new(0, 0, 1, 0);
  assert_non_null(s);
  s->time_ns = T(tick);
  s->job[0].operations = (uint64_t)operations;
  s->job[0].bytes = s->job[0].operations * 10;
  s->job[0].bus_bytes = operations * 6;
  s->job[0].bus_seconds = operations * 2;
  ni_rates_take(r, s);
  double rate = s->job[0].operations_s;
  assert_true(!(rate > 0) ||
              (fabs(s->job[0].bytes_s / rate - 10) < 1e-9 &&
               fabs(s->job[0].bus_got / s->job[0].bus_took - 3) < 1e-9));
  free(s);
  return rate;
}

static void rates_of_jobs_are_over_whole_writes(void **state) {
  struct ni_rates r = {0};
  double all = 0;
  (void)state;
  /* A write a second, a sample each half: none says 0, none twice. */
  for (int i = 0; i < 40; i++) {
    double rate = rate_at(&r, i, 1000 + 100. * (i / 2));
    if (i < 4)
      assert_true(isnan(rate));
    else
      assert_true(rate == 100);
  }
  /* It rests for 20 s, and goes on: what comes is told once. */
  for (int i = 40; i < 80; i++) {
    double rate = rate_at(&r, i, 1000 + 1900);
    assert_true(rate == (i <= 42 ? 100 : 0)); /* the last write was at tick 38 */
  }
  for (int i = 80; i < 120; i++)
    all += rate_at(&r, i, 1000 + 2000 + 100. * ((i - 80) / 2)) * 0.5;
  assert_true(all == 2000);
  ni_rates_free(&r);
  /* Eight processes, of which five write at one tick and three at the next; seen with nothing at first. */
  for (int i = 0; i < 40; i++) {
    double rate = rate_at(&r, i, 500. * ((i + 1) / 2) + 300. * (i / 2));
    if (i > 4)
      assert_true(rate == 800);
  }
  assert_true(isnan(rate_at(&r, 40, 5))); /* it counts anew */
  ni_rates_free(&r);
  /* Seen with nothing, since it was looked at late: its first write is of more than lies between. */
  assert_true(isnan(rate_at(&r, 0, 0)));
  for (int i = 1; i < 10; i++) {
    double rate = rate_at(&r, i, 300 + 100. * (i / 2));
    if (i < 2)
      assert_true(isnan(rate));
    else
      assert_true(rate >= 100 && rate <= 200);
  }
  ni_rates_free(&r);
  /* Writes that fall to this tick or to the next: a third beside it, no more. */
  for (int i = 0; i < 60; i++) {
    double rate = rate_at(&r, i, 100. * ((i + (i / 2 * 7 % 3 == 0)) / 2));
    if (i > 6)
      assert_in_range((uint64_t)rate, 66, 134);
  }
  ni_rates_free(&r);
  /* A write each 5 s, and samples each 20 ms. */
  for (int i = 0; i < 2000; i++) {
    double rate = rate_at(&r, i * 0.04, 500. * (i / 250));
    if (i >= 250)
      assert_true(rate == 100);
  }
  ni_rates_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(frame_waits_for_who_is_there, begin, end),
      cmocka_unit_test_setup_teardown(stale_gone_and_back, begin, end),
      cmocka_unit_test_setup_teardown(two_of_a_tick_twice_and_clocks, begin, end),
      cmocka_unit_test_setup_teardown(order_joiners_and_tidy, begin, end),
      cmocka_unit_test(rates_of_jobs_are_over_whole_writes),
      cmocka_unit_test_setup_teardown(too_many_wait, begin, end),
      cmocka_unit_test_setup_teardown(goes_on_after_a_kill, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
