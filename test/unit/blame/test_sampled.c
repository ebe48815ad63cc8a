/*
 * What sampled logs tell without own time: congestion by transfers across hosts, and who pauses by rare long
 * waits. What waits cost, where durations tell it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/evidence/rare_waits.h"
#include "exporter/model/sums/evidence/savings.h"
#include "exporter/model/sums/evidence/seats.h"
#include "exporter/model/sums/work/untold_sample.h"
#include "exporter/base/mix.h"

enum { COMMS = 2, RANKS = 4, EACH = 200, STEP_US = 10000 };

/* Two communicators across both hosts, of ranks 0, 2 and 1, 3; a third one of all. */
static struct ni_host host[2] = {{.name = "a"}, {.name = "b"}};
static struct ni_process process[RANKS] = {{.host = 0}, {.host = 0}, {.host = 1}, {.host = 1}};
static struct ni_comm_row comm[COMMS + 1] = {
    {.ranks_seen = 2, .one_host = -1}, {.ranks_seen = 2, .one_host = -1}, {.ranks_seen = RANKS}};
static struct ni_seat seat[] = {{.comm = 0, .process = 0, .met = 50},  {.comm = 0, .process = 2, .met = 50},
                                {.comm = 1, .process = 1, .met = 50},  {.comm = 1, .process = 3, .met = 50},
                                {.comm = 2, .process = 0, .met = 100}, {.comm = 2, .process = 1, .met = 100},
                                {.comm = 2, .process = 2, .met = 100}, {.comm = 2, .process = 3, .met = 100}};

static struct ni_summary job(void) {
  return (struct ni_summary){.host = host,
                             .n_hosts = 2,
                             .process = process,
                             .n_processes = RANKS,
                             .comm = comm,
                             .n_comms = COMMS + 1,
                             .seat = seat,
                             .n_seats = sizeof seat / sizeof *seat,
                             .one_in = 4};
}

/*
 * One of some numbers a step. From one of them on, up to `end`, it is crowded. Transfers take twice as long,
 * and steps as long as `slower` says.
 */
static struct ni_congestion crowded_from_to(uint32_t from, uint32_t end, uint32_t comms, uint32_t slow_comms,
                                            double slower) {
  struct ni_summary s = job();
  struct ni_crossings l = {0};
  struct ni_congestion out;
  int64_t at = 1000000;
  for (uint32_t i = 0; i < EACH; i++) {
    const bool slow = i >= from && i < end;
    for (uint32_t c = 0; c < comms; c++) {
      const struct ni_crossing x = {.at_us = at + c,
                                    .sn = i * 5u,
                                    .comm = c,
                                    .us = slow && c < slow_comms ? 2000 : 1000 + (float)(i % 7)};
      assert_int_equal(ni_crossings_add(&l, &x), 0);
    }
    at += slow ? (int64_t)(slower * STEP_US) : STEP_US;
  }
  s.crossing = l.item;
  s.n_crossings = l.n;
  assert_int_equal(ni_crossings_find_congestion(&s, &out), 0);
  ni_crossings_free(&l);
  return out;
}

static struct ni_congestion crowded_since(uint32_t from, uint32_t comms, uint32_t slow_comms, double slower) {
  return crowded_from_to(from, 120, comms, slow_comms, slower);
}

static struct ni_congestion crowded(uint32_t comms, uint32_t slow_comms, double slower) {
  return crowded_since(80, comms, slow_comms, slower);
}

static void test_congestion(void **state) {
  (void)state;
  struct ni_congestion c = crowded(2, 2, 1.3);
  assert_true(c.ratio > 1.9 && c.ratio < 2.1);
  assert_true(c.lost_us > 0.8 * 0.3 * 40 * STEP_US && c.lost_us < 1.2 * 0.3 * 40 * STEP_US);
  assert_int_equal(c.spells, 1);
  assert_int_equal(c.host, 0);
  assert_true(crowded(2, 2, 1).lost_us < 0.1 * 40 * STEP_US); /* hidden beside computing: it costs nothing */
  assert_true(crowded(2, 1, 1.3).ratio == 0);                 /* one of two: it is on the way of that one */
  assert_true(crowded(2, 0, 1.3).ratio == 0);
  assert_true(crowded(1, 1, 1.3).ratio == 0);        /* one alone, of some ranks */
  c = crowded_since(120 - 6 * EACH / 10, 2, 2, 1.3); /* most of the time */
  assert_true(c.ratio > 1.9 && c.ratio < 2.1 && c.spells == 1);
}

/* What is slow from some moment on to the end has broken. */
static void test_congestion_that_lasts(void **state) {
  (void)state;
  struct ni_congestion c = crowded_from_to(80, EACH, 2, 2, 1.3);
  assert_true(c.lasts);
  assert_true(c.lost_us > 0.7 * 0.3 * 120 * STEP_US && c.lost_us < 1.3 * 0.3 * 120 * STEP_US);
  assert_true(crowded_from_to(80, EACH, 1, 1, 1.3).ratio == 0);
  assert_false(crowded_from_to(80, 120, 2, 2, 1.3).lasts);
  assert_false(crowded_from_to(EACH - 30, EACH, 2, 2, 1.3).lasts); /* nobody knows whether it would end */
}

/* However they are put together, the same ones stay. */
static void test_crossings_kept(void **state) {
  (void)state;
  struct ni_crossings all = {0}, part[2] = {{0}, {0}};
  const uint32_t n = NI_CROSSINGS_MAX + NI_CROSSINGS_MAX / 2;
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_crossing x = {.at_us = i, .sn = i, .us = 1};
    assert_int_equal(ni_crossings_add(&all, &x), 0);
    assert_int_equal(ni_crossings_add(&part[i % 3 == 0], &x), 0);
  }
  assert_int_equal(ni_crossings_merge(&part[0], &part[1]), 0);
  assert_int_equal(all.stride, 2);
  assert_int_equal(part[0].stride, 2);
  assert_int_equal(part[0].n, all.n);
  assert_true(all.n > n / 3 && all.n <= NI_CROSSINGS_MAX);
  ni_crossings_free(&all);
  ni_crossings_free(&part[0]);
  ni_crossings_free(&part[1]);
}

static struct ni_outlier late(uint32_t of_comm, uint32_t of, int64_t at_us, double us) {
  return (struct ni_outlier){.kind = NI_OUTLIER_LATE,
                             .comm = of_comm,
                             .process = of,
                             .sn = (uint64_t)at_us,
                             .time_us = at_us,
                             .lost_us = us};
}

static uint32_t pausing(struct ni_outlier *o, size_t n, int64_t run_us) {
  struct ni_summary s = job();
  struct ni_pausing p;
  s.outlier = o;
  s.n_outliers = n;
  s.last_us = run_us;
  assert_int_equal(ni_find_rare_waits(&s, &p), 0);
  return p.process;
}

static void test_pauses(void **state) {
  (void)state;
  struct ni_outlier o[6];
  for (int i = 0; i < 3; i++) {
    o[2 * i] = late(2, 1, 1000000 * (i + 1), 30000);
    o[2 * i + 1] = late(1, 1, 1000000 * (i + 1) + 500, 30000); /* not where it has the most operations */
  }
  assert_int_equal(pausing(o, 6, 10000000), 1);
  assert_int_equal(pausing(o, 4, 10000000), UINT32_MAX);  /* two are chance */
  assert_int_equal(pausing(o, 6, 100000000), UINT32_MAX); /* of so long a run it is nothing */
  o[5] = late(2, 3, 5000000, 40000);
  assert_int_equal(pausing(o, 6, 10000000), UINT32_MAX); /* another one does so, too */
  o[5] = late(2, 3, 3000100, 28000);                     /* it had waited for that one */
  assert_int_equal(pausing(o, 6, 10000000), 1);
  o[5] = late(2, 3, 3000000, 28000);
  o[5].sn = o[4].sn; /* both came late to it: it can have been either */
  assert_int_equal(pausing(o, 6, 10000000), UINT32_MAX);
  /* it waited for rank 3 */
  for (int i = 0; i < 3; i++)
    o[2 * i + 1] = late(1, 3, 1000000 * (i + 1) - 500, 30000);
  assert_int_equal(pausing(o, 6, 10000000), UINT32_MAX);
}

static void test_always_late(void **state) {
  (void)state;
  struct ni_outlier o[30];
  for (int i = 0; i < 30; i++)
    o[i] = late(2, 1, 100000 * (i + 1), 6000);
  assert_int_equal(pausing(o, 20, 10000000), 1);
  assert_int_equal(pausing(o, 30, 10000000), UINT32_MAX); /* of its hundred: it does not pause, it is late */
}

/* Two engines of two ranks, and what joins all of them: so often. The first one ends at end_us. */
static double saving_of(int64_t end_us, int64_t other_begin_us, int64_t other_end_us, uint64_t joined,
                        double own_us) {
  struct ni_summary s = job();
  struct ni_comm_row c[COMMS + 1] = {{.operations = 50, .first_us = 0, .last_us = end_us},
                                     {.operations = 50, .first_us = other_begin_us, .last_us = other_end_us},
                                     {.operations = joined}};
  const struct ni_paced paced = {.own_us = own_us, .groups = 1};
  struct ni_host stage[2] = {{.paced = paced}, {.paced = paced}};
  double out;
  s.host = stage;
  s.comm = c;
  s.steps_differ = true;
  s.last_us = end_us > other_end_us ? end_us : other_end_us;
  assert_int_equal(ni_savings_find(&s, 0, 2e6, &out), 0);
  s.steps_differ = false;
  double not_judged;
  assert_int_equal(ni_savings_find(&s, 0, 2e6, &not_judged), 0);
  assert_true(isnan(not_judged));
  return out;
}

static double saving(int64_t end_us, int64_t other_begin_us, int64_t other_end_us, uint64_t joined) {
  return saving_of(end_us, other_begin_us, other_end_us, joined, 0);
}

static void test_savings(void **state) {
  (void)state;
  assert_true(saving(10000000, 0, 7000000, 1) == 2e6);        /* it ends last by more than was waited */
  assert_true(saving(10000000, 0, 9500000, 1) == 5e5);        /* then the other one is the last */
  assert_true(saving(9000000, 0, 10000000, 1) == 0);          /* the other one is, anyway */
  assert_true(isnan(saving(10000000, 0, 9950000, 1)));        /* somebody stopped them */
  assert_true(isnan(saving(10000000, 2000000, 9500000, 1)));  /* it began later: nobody knows its share */
  assert_true(isnan(saving(10000000, -2000000, 9500000, 1))); /* so did this one */
  assert_true(isnan(saving(10000000, 0, 7000000, 3)));        /* they wait for each other */
}

/* Stages that take turns lose what one of them loses; those that compute at once may not. */
static void test_savings_of_stages(void **state) {
  (void)state;
  assert_true(saving_of(10000000, 0, 10000000, 50, 4e6) == 2e6);
  assert_true(isnan(saving_of(10000000, 0, 10000000, 50, 6e6)));
}

/* Two engines on a host are slow together: the run ends with the other host's. */
static void test_savings_of_host(void **state) {
  (void)state;
  struct ni_summary s = job();
  struct ni_seat of[] = {{.comm = 0, .process = 0},
                         {.comm = 1, .process = 1},
                         {.comm = 2, .process = 2},
                         {.comm = 2, .process = 3}};
  struct ni_comm_row c[COMMS + 1] = {{.operations = 50, .last_us = 10000000},
                                     {.operations = 50, .last_us = 9000000},
                                     {.operations = 50, .last_us = 7000000}};
  double out;
  s.comm = c;
  s.seat = of;
  s.n_seats = sizeof of / sizeof *of;
  s.last_us = 10000000;
  s.steps_differ = true;
  assert_int_equal(ni_savings_find_of_host(&s, 0, 2e6, &out), 0);
  assert_true(out == 2e6);
  assert_int_equal(ni_savings_find(&s, 0, 2e6, &out), 0);
  assert_true(out == 1e6);
  s.job.runs = 2;
  assert_int_equal(ni_savings_find_of_host(&s, 0, 2e6, &out), 0);
  assert_true(isnan(out));
}

static void test_pauses_cost(void **state) {
  (void)state;
  struct ni_summary s = job();
  struct ni_comm_row c[COMMS + 1] = {{.one_host = -1}, {.one_host = -1}, {.one_host = 0}};
  struct ni_seat x[sizeof seat / sizeof *seat];
  memcpy(x, seat, sizeof seat);
  s.comm = c;
  s.seat = x;
  assert_true(ni_savings_is_waited_lost(&s, 1, 2));
  c[2].one_host = -1;
  assert_true(ni_savings_is_waited_lost(&s, 1, 2)); /* it has another one beside that */
  s.n_seats = 4;
  assert_false(ni_savings_is_waited_lost(&s, 1, 1)); /* its only one, across hosts: beside computing */
  s.n_seats = sizeof seat / sizeof *seat;
  x[2].met = 0; /* messages of rank 1 */
  assert_false(ni_savings_is_waited_lost(&s, 1, 2));
  assert_true(ni_savings_is_waited_lost(&s, 0, 2));
  s.steps_differ = true; /* then groups tell */
  assert_false(ni_savings_is_waited_lost(&s, 0, 2));
}

/* What is waited for rank 1 alone, beyond what is waited for any rank. */
static void test_cost_beyond_chance(void **state) {
  (void)state;
  struct ni_summary s = job();
  struct ni_seat x[sizeof seat / sizeof *seat];
  struct ni_comm_row c[COMMS + 1] = {{.n_ranks = 2}, {.n_ranks = 2}, {.n_ranks = RANKS}};
  double us;
  memcpy(x, seat, sizeof seat);
  for (size_t i = 4; i < 8; i++)
    x[i].alone_us = i == 5 ? 9000 : 10.0 * (double)x[i].met;
  s.seat = x;
  s.comm = c;
  assert_int_equal(ni_seats_find_cost(&s, 1, 2, &us), 0);
  assert_true(us == 9000 - 10 * 100);
  assert_int_equal(ni_seats_find_cost(&s, 0, 2, &us), 0);
  assert_true(us == 0);
}

/* Two ranks of one communicator that log such numbers; the second one lacks `lost` of them. */
static double untold(bool (*has)(uint64_t sn), uint64_t lost, bool stated) {
  struct ni_who_member who[2] = {{.comm = 0}, {.comm = 0, .rank = 1}};
  struct ni_who_comm of_comm = {.n_ranks = 2};
  static struct ni_ledger_member member[2];
  struct ni_ledger_member *at[2] = {&member[0], &member[1]};
  memset(member, 0, sizeof member);
  for (uint32_t i = 0; i < 2; i++) {
    struct ni_seq_set *x = &member[i].kind[NI_KIND_COLL].rec_sn;
    uint64_t left_out = i ? lost : 0;
    member[i].ours = true;
    member[i].kind[NI_KIND_COLL].stated = stated;
    for (uint64_t sn = 0; sn < 2000; sn++) {
      if (!has(sn))
        continue;
      if (left_out > 0 && sn > 500)
        left_out--;
      else
        assert_int_equal(ni_seq_set_add(x, sn), 0);
    }
  }
  const struct ni_ledger l = {
      .member = at, .n_members = 2, .who = {.member = who, .n_members = 2, .comm = &of_comm, .n_comms = 1}};
  const double one_in = ni_find_untold_sampling(&l);
  for (uint32_t i = 0; i < 2; i++)
    ni_seq_set_free(&member[i].kind[NI_KIND_COLL].rec_sn);
  return one_in;
}

static bool by_hash(uint64_t sn) { return ni_mix(sn) % 4 == 0; }
static bool by_place(uint64_t sn) { return sn % 4 == 0; }
static bool always(uint64_t sn) { return sn < 2000; }

static void test_untold_sample(void **state) {
  (void)state;
  const double one_in = untold(by_hash, 0, false);
  assert_true(one_in > 3.5 && one_in < 4.5);
  assert_true(untold(by_hash, 3, false) == 1);  /* one rank lacks records: they were lost */
  assert_true(untold(by_place, 0, false) == 1); /* each fourth one: a small operation has its place */
  assert_true(untold(always, 0, false) == 1);
  assert_true(untold(by_hash, 0, true) == 1); /* its accounts tell */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_congestion),
                                     cmocka_unit_test(test_congestion_that_lasts),
                                     cmocka_unit_test(test_untold_sample),
                                     cmocka_unit_test(test_crossings_kept),
                                     cmocka_unit_test(test_pauses),
                                     cmocka_unit_test(test_always_late),
                                     cmocka_unit_test(test_savings),
                                     cmocka_unit_test(test_savings_of_stages),
                                     cmocka_unit_test(test_savings_of_host),
                                     cmocka_unit_test(test_pauses_cost),
                                     cmocka_unit_test(test_cost_beyond_chance)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
