/*
 * What roll-ups tell of sampled logs: who pauses, who spends less time in operations than ranks with the same
 * work, and what that costs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/base/bytes/wire.h"
#include "exporter/model/sums/evidence/rolled_totals.h"
#include "exporter/model/sums/evidence/rolled_waits.h"
#include "exporter/model/sums/evidence/sampled_costs.h"
#include "exporter/model/sums/reading/long_waits.h"
#include "format/hist.h"

/* Two hosts of four ranks: pairs 0 1, 2 3, 4 5, 6 7, and one communicator of all. */
enum { RANKS = 8, PAIRS = 4, ALL = PAIRS, SEATS = 2 * RANKS, RUN_US = 100000000 };
#define LONG_STEP 9u /* from 101 ms to 134 ms */

struct job {
  struct ni_summary s;
  struct ni_host host[2];
  struct ni_process process[RANKS];
  struct ni_comm_row comm[PAIRS + 1];
  struct ni_seat seat[SEATS];
  struct ni_seat_waits waits[SEATS];
};

static struct ni_long_waits *in_pair(struct job *j, uint32_t rank) { return &j->waits[rank].alike; }
static struct ni_long_waits *in_all(struct job *j, uint32_t rank) { return &j->waits[RANKS + rank].alike; }

static void fill_job(struct job *j) {
  memset(j, 0, sizeof *j);
  for (uint32_t i = 0; i < RANKS; i++) {
    j->process[i] = (struct ni_process){.host = i / 4, .rank = (int32_t)i, .ranks = 1};
    j->seat[i] = (struct ni_seat){.comm = i / 2, .process = i, .met = 100};
    j->seat[RANKS + i] = (struct ni_seat){.comm = ALL, .process = i, .met = 25};
    j->waits[i].alike = (struct ni_long_waits){.count = 1000, .ns = 1000000000};
    j->waits[RANKS + i].alike = (struct ni_long_waits){.count = 250, .ns = 1000000000};
  }
  for (uint32_t i = 0; i <= PAIRS; i++)
    j->comm[i] = (struct ni_comm_row){.n_ranks = i == ALL ? RANKS : 2,
                                      .one_host = i == ALL ? -1 : (int32_t)i / 2,
                                      .operations = 100,
                                      .last_us = RUN_US};
  j->s = (struct ni_summary){.host = j->host,
                             .n_hosts = 2,
                             .process = j->process,
                             .n_processes = RANKS,
                             .comm = j->comm,
                             .n_comms = PAIRS + 1,
                             .seat = j->seat,
                             .n_seats = SEATS,
                             .long_waits = j->waits,
                             .last_us = RUN_US,
                             .one_in = 4};
}

static void wait_long(struct ni_long_waits *x, uint64_t times) {
  x->n[LONG_STEP] += times;
  x->ns += times * 117000000;
}

/* Rank 0 pauses: rank 1 waits in their pair, all others in the communicator of all. */
static void let_rank_0_pause(struct job *j, uint64_t times) {
  fill_job(j);
  wait_long(in_pair(j, 1), times);
  for (uint32_t i = 2; i < RANKS; i++)
    wait_long(in_all(j, i), times);
}

static struct ni_rolled_pauses find_pauses(struct job *j) {
  struct ni_rolled_pauses x;
  assert_int_equal(ni_find_rolled_pauses(&j->s, &x), 0);
  return x;
}

static size_t count_pausing(struct job *j) {
  struct ni_rolled_pauses x = find_pauses(j);
  const size_t n = x.n;
  ni_rolled_pauses_free(&x);
  return n;
}

static void test_rolled_pause(void **state) {
  (void)state;
  static struct job j;
  let_rank_0_pause(&j, 20);
  struct ni_rolled_pauses x = find_pauses(&j);
  assert_true(x.known);
  assert_int_equal(x.n, 1);
  assert_false(x.item[0].host);
  assert_int_equal(x.item[0].of, 0); /* not rank 1, which is as late to the others */
  assert_int_equal(x.item[0].times, 20);
  assert_true(x.item[0].cost_us > 0.85 * 20 * 117000 && x.item[0].cost_us < 1.15 * 20 * 117000);
  ni_rolled_pauses_free(&x);
  let_rank_0_pause(&j, 10); /* 1.1 % of the run */
  assert_int_equal(count_pausing(&j), 1);
  let_rank_0_pause(&j, 5);
  assert_int_equal(count_pausing(&j), 0);
}

static void test_rolled_pause_doubts(void **state) {
  (void)state;
  static struct job j;
  let_rank_0_pause(&j, 20);
  wait_long(in_pair(&j, 0), 11); /* it waited itself */
  assert_int_equal(count_pausing(&j), 0);
  let_rank_0_pause(&j, 20);
  in_pair(&j, 0)->count -= 6; /* as many can have been long, and are not in its roll-ups */
  in_all(&j, 0)->count -= 6;
  assert_int_equal(count_pausing(&j), 0);
  let_rank_0_pause(&j, 20);
  in_all(&j, 5)->n[LONG_STEP] = 2; /* rank 5 has not waited, either: it can have been that one */
  assert_int_equal(count_pausing(&j), 0);
  let_rank_0_pause(&j, 400); /* in two of five operations: it is late */
  assert_int_equal(count_pausing(&j), 0);
  let_rank_0_pause(&j, 20);
  j.process[0].may_wait_unseen = true;
  assert_int_equal(count_pausing(&j), 0);
  let_rank_0_pause(&j, 20);
  j.s.long_waits = NULL;
  struct ni_rolled_pauses x = find_pauses(&j);
  assert_false(x.known);
  ni_rolled_pauses_free(&x);
}

/* All of host 0 pause, each time another one for longer. */
static void test_rolled_host_pauses(void **state) {
  (void)state;
  static struct job j;
  fill_job(&j);
  for (uint32_t i = 4; i < RANKS; i++)
    wait_long(in_all(&j, i), 20);
  for (uint32_t i = 0; i < 4; i++)
    wait_long(in_all(&j, i), 3);
  struct ni_rolled_pauses x = find_pauses(&j);
  assert_int_equal(x.n, 1);
  assert_true(x.item[0].host);
  assert_int_equal(x.item[0].of, 0);
  assert_int_equal(x.item[0].times, 17);
  ni_rolled_pauses_free(&x);
}

static struct ni_rolled_totals find_totals(struct job *j) {
  struct ni_rolled_totals x;
  assert_int_equal(ni_find_rolled_totals(&j->s, &x), 0);
  return x;
}

static size_t count_late(struct job *j) {
  struct ni_rolled_totals x = find_totals(j);
  const size_t n = x.n;
  ni_rolled_totals_free(&x);
  return n;
}

/* The others wait 8 s for rank 0: rank 1 in their pair, a little each time, the rest in that of all. */
static void let_rank_0_be_late(struct job *j) {
  fill_job(j);
  in_pair(j, 1)->ns += 8000000000;
  for (uint32_t i = 2; i < RANKS; i++)
    in_all(j, i)->ns += 8000000000 + i * 1000000;
}

static void test_rolled_late_rank(void **state) {
  (void)state;
  static struct job j;
  let_rank_0_be_late(&j);
  struct ni_rolled_totals x = find_totals(&j);
  assert_true(x.known);
  assert_int_equal(x.n, 1);
  assert_int_equal(x.item[0].of, 0);
  assert_int_equal(x.item[0].peers, 7);
  assert_true(x.less_us[0] > 7.9e6 && x.less_us[1] < 1e5);
  ni_rolled_totals_free(&x);
  in_pair(&j, 3)->ns -= 900000000; /* another one is late as well, by half as much as it is from the rest */
  in_all(&j, 3)->ns -= 4000000000;
  assert_int_equal(count_late(&j), 0);
  let_rank_0_be_late(&j);
  j.s.has_left_out = true;
  assert_int_equal(count_late(&j), 0);
  let_rank_0_be_late(&j);
  in_pair(&j, 0)->count = 900; /* it has not the same work */
  assert_int_equal(count_late(&j), 0);
  fill_job(&j);
  for (uint32_t i = 0; i < RANKS; i++)
    in_all(&j, i)->ns += i * 1000000000; /* one is the first of many */
  assert_int_equal(count_late(&j), 0);
}

/* Without roll-ups the records tell, which are the same ones on all ranks. */
static void test_sampled_late_rank(void **state) {
  (void)state;
  static struct job j;
  fill_job(&j);
  j.s.long_waits = NULL;
  for (uint32_t i = 0; i < RANKS; i++) {
    j.process[i].records = 200;
    j.process[i].exec_ns = (i == 5 ? 1e9 : 3e9) + i * 1e6;
  }
  struct ni_rolled_totals x = find_totals(&j);
  assert_int_equal(x.n, 1);
  assert_int_equal(x.item[0].of, 5);
  assert_true(fabs(x.less_us[5] - 4 * 2e6) < 1e5); /* one operation in four is recorded */
  ni_rolled_totals_free(&x);
  j.comm[ALL].operations = 2; /* nothing but a barrier joins the pairs: they wait for nobody else */
  assert_int_equal(count_late(&j), 0);
}

static void test_rolled_late_host(void **state) {
  (void)state;
  static struct job j;
  fill_job(&j);
  for (uint32_t i = 0; i < RANKS; i++)
    in_all(&j, i)->ns += (i < 4 ? 0 : 10000000000) + i * 10000000;
  struct ni_rolled_totals x = find_totals(&j);
  assert_int_equal(x.n, 1);
  assert_true(x.item[0].host);
  assert_int_equal(x.item[0].of, 0);
  assert_int_equal(x.item[0].late, 4);
  ni_rolled_totals_free(&x);
  in_all(&j, 0)->ns += 10000000000; /* two of four are not the host */
  in_all(&j, 1)->ns += 10000000000;
  assert_int_equal(count_late(&j), 0);
}

/* In a pipeline ranks of another stage, with as many operations, have other work. */
static void test_rolled_stages(void **state) {
  (void)state;
  static struct job j;
  struct ni_p2p_pair pair[RANKS];
  let_rank_0_be_late(&j);
  for (uint32_t i = 0; i < RANKS; i++)
    pair[i] = (struct ni_p2p_pair){.from_process = i, .to_process = (i + 4) % RANKS};
  j.s.pair = pair;
  j.s.n_pairs = RANKS;
  assert_int_equal(count_late(&j), 0);
  j.comm[ALL].role = NI_ROLE_DP; /* they are of one stage */
  assert_int_equal(count_late(&j), 1);
}

/* One communicator of all ranks, of which eight operations of each of two sizes are recorded. */
static void test_sampled_cost(void **state) {
  (void)state;
  static struct job j;
  struct ni_group group[] = {{.func = "AllReduce", .msg_bytes = 1 << 20},
                             {.func = "AllReduce", .msg_bytes = 2 << 20},
                             {.func = "AllReduce", .msg_bytes = 4}};
  struct ni_slice of_comm[] = {{.group = 0, .of = ALL, .met = 10},
                               {.group = 1, .of = ALL, .met = 12},
                               {.group = 2, .of = ALL, .met = 4}};
  struct ni_slice of_process[] = {{.group = 0, .of = 2, .met = 10, .alone_us = 10000},
                                  {.group = 1, .of = 2, .met = 12, .alone_us = 24000}};
  fill_job(&j);
  j.s.group = group;
  j.s.by_comm = of_comm;
  j.s.n_by_comm = 3;
  j.s.by_process = of_process;
  j.s.n_by_process = 2;
  assert_true(ni_estimate_sampled_steps(&j.s, ALL) == 44); /* what is tiny is no step */
  struct ni_sampled_cost x = ni_find_sampled_cost(&j.s, 2, ALL, 5e6);
  assert_true(x.us == 5e6 && !x.of_gradients && !x.halved); /* it has another one, in which it waits */
  j.s.seat = &j.seat[RANKS];
  j.s.n_seats = RANKS;
  x = ni_find_sampled_cost(&j.s, 2, ALL, 5e6);
  assert_true(x.of_gradients && x.us == 2000 * 44);
  x = ni_find_sampled_cost(&j.s, 2, ALL, 5e4);
  assert_true(x.halved && x.us == 2.5e4); /* half of all is less than that */
  group[0].func = "AllGather";
  x = ni_find_sampled_cost(&j.s, 2, ALL, 5e6);
  assert_true(x.halved && x.us == 2.5e6 && x.low_us == 0 && x.high_us == 5e6);
}

static void test_rolled_wait(void **state) {
  (void)state;
  static struct job j;
  let_rank_0_be_late(&j);
  assert_int_equal(ni_find_rolled_comm(&j.s, 0), 0);
  assert_true(fabs(ni_find_rolled_wait_us(&j.s, 0, 0) - 8e6) < 1);
  assert_true(ni_find_rolled_wait_us(&j.s, 1, 0) == 0);
}

/* Lines of a member are added up, and are the same by way of a partial result. */
static void test_long_waits(void **state) {
  (void)state;
  static struct ni_run r, other;
  struct ni_rollup_line l = {.kind = "coll", .timing = NI_TIMING_KERNEL_GPU, .count = 5, .sum_ns = 600000000};
  l.hist[ni_hist_bucket(110000000)] = 4;
  assert_int_equal(ni_long_waits_add(&r, 1, "AllReduce", &l), 0);
  assert_int_equal(ni_long_waits_add(&r, 1, "Broadcast", &l), 0);
  l.timing = NI_TIMING_COLLECTIVE_CPU;
  assert_int_equal(ni_long_waits_add(&r, 1, "AllReduce", &l), 0);
  uint32_t number[] = {0, 1}, back[] = {1, 0};
  const struct ni_partial_numbers x = {.member = {.number = number, .n = 2}};
  const struct ni_partial_numbers y = {.member = {.number = back, .n = 2}};
  struct ni_wire w = {0}, from;
  ni_long_waits_wire(&w, &r, &x);
  assert_false(w.bad);
  from = ni_wire_load(w.bytes, w.n);
  ni_long_waits_wire(&from, &other, &y);
  assert_true(ni_wire_over(&from));
  struct ni_who_member member = {0};
  uint32_t at = 0;
  struct ni_summary s = {.n_seats = 1};
  other.who.member = &member;
  other.who.n_members = 1;
  other.seat_at = &at;
  assert_int_equal(ni_long_waits_build(&other, &s), 0);
  const struct ni_seat_waits *v = s.long_waits;
  assert_int_equal(v->alike.count, 5);
  assert_int_equal(v->alike.ns, 600000000);
  assert_int_equal(v->alike.unknown, 1);
  assert_int_equal(v->alike.n[LONG_STEP], 4);
  assert_int_equal(v->rest.count, 5); /* a root does not do the same */
  assert_true(ni_long_waits_edge_us(LONG_STEP) < 110000);
  assert_true(ni_long_waits_edge_us(LONG_STEP + 1) > 110000);
  free(s.long_waits);
  ni_wire_free(&w);
  ni_long_waits_free(&r);
  ni_long_waits_free(&other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rolled_pause),       cmocka_unit_test(test_rolled_pause_doubts),
      cmocka_unit_test(test_rolled_host_pauses), cmocka_unit_test(test_rolled_late_rank),
      cmocka_unit_test(test_sampled_late_rank),  cmocka_unit_test(test_rolled_late_host),
      cmocka_unit_test(test_rolled_stages),      cmocka_unit_test(test_sampled_cost),
      cmocka_unit_test(test_rolled_wait),        cmocka_unit_test(test_long_waits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
