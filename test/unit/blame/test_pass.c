/*
 * The pass over one rank's records, from packed segments on: which long gaps are pauses. And the links that
 * peer groups make of the tables of all ranks.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/cells.h"
#include "exporter/model/sums/ranks/pass.h"

enum { STEPS = 60, COMMS = 2, SIZES = 2, RANKS = 4 };
#define STEP_MS 100.0
#define SHORTER_MS 8.0

/*
 * One rank that takes part in collectives of two sizes on one or two communicators of four ranks: a size on a
 * communicator is a cell.
 */
struct job {
  struct ni_run r;
  struct ni_summary s;
  struct ni_blame b;
  struct ni_blame_rank rank;
  struct ni_comm_row comm[COMMS];
  struct ni_who_member member[COMMS];
  struct ni_sum_process process;
  struct ni_sum_cell cell[COMMS * SIZES];
  struct ni_piece piece[COMMS * SIZES];
  struct ni_blame_piece item[COMMS * SIZES];
  uint32_t order[COMMS * SIZES], same[COMMS];
  uint64_t sn[COMMS];
};

static struct job *new_job(void) {
  struct job *j = calloc(1, sizeof *j);
  uint32_t name;
  assert_int_equal(ni_names_init(&j->r.names), 0);
  assert_int_equal(ni_name(&j->r.names, NULL, "AllReduce", &name), 0);
  ni_spill_init(&j->r.store, "/tmp", UINT64_MAX);
  for (uint32_t i = 0; i < COMMS; i++) {
    j->same[i] = i;
    j->comm[i].n_ranks = RANKS;
    j->member[i] = (struct ni_who_member){.comm = i, .n_ranks = RANKS};
  }
  for (uint32_t i = 0; i < COMMS * SIZES; i++) {
    j->order[i] = i;
    j->cell[i] =
        (struct ni_sum_cell){.kind = NI_KIND_COLL, .func = name, .msg_bytes = UINT64_C(1) << (20 + i)};
    j->piece[i].member = i / SIZES;
  }
  j->r.who.member = j->member;
  j->r.process = &j->process;
  j->r.comm_at = j->same;
  j->r.cell = j->cell;
  j->r.cell_order = j->order;
  j->s = (struct ni_summary){.comm = j->comm, .n_comms = COMMS};
  j->b = (struct ni_blame){.r = &j->r, .s = &j->s, .rank = &j->rank, .n_ranks = 1, .sample_every = 1};
  return j;
}

/* In ms since the job began. */
static void add_called(struct job *j, uint32_t comm, uint32_t size, double start, double took,
                       double called) {
  struct ni_segment *s = &j->piece[comm * SIZES + size].s;
  const struct ni_entry e = {.sn = j->sn[comm]++,
                             .lead_us = isnan(called) ? NI_NO_LEAD : (int32_t)((start - called) * 1e3),
                             .start_ns = 1000000000 + (int64_t)(start * 1e6),
                             .exec_ns = (uint64_t)(took * 1e6),
                             .bytes_per_s = NI_NO_BW,
                             .timing = NI_TIMING_KERNEL_GPU};
  assert_int_equal(ni_segment_add(s, &j->r.store, &e), 0);
}

static void add(struct job *j, uint32_t comm, uint32_t size, double start, double took) {
  add_called(j, comm, size, start, took, NAN);
}

/* Goes through what was added. */
static void pass(struct job *j) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < COMMS * SIZES; i++) {
    if (!j->piece[i].s.n)
      continue;
    assert_int_equal(ni_segment_end(&j->piece[i].s, &j->r.store), 0);
    j->item[n++] =
        (struct ni_blame_piece){.cell = i, .comm = i / SIZES, .member = i / SIZES, .piece = &j->piece[i]};
  }
  assert_int_equal(ni_blame_pass(&j->b, 0, j->item, n), 0);
  assert_true(j->rank.judged && j->rank.n_steps >= STEPS - 1 && j->rank.n_steps <= STEPS + 1);
}

static void free_job(struct job *j) {
  for (uint32_t i = 0; i < COMMS * SIZES; i++)
    ni_segment_free(&j->piece[i].s, &j->r.store);
  ni_blame_free_rank(&j->rank);
  ni_spill_close(&j->r.store);
  ni_names_free(&j->r.names);
  free(j);
}

/*
 * Records are missing before every tenth step, before one alone, or one in the same place of each. Is it said
 * that the rank's gaps are not known?
 */
static bool are_gaps_unknown(uint32_t each, uint32_t times) {
  struct job *j = new_job();
  for (uint32_t i = 0; i < STEPS; i++)
    for (uint32_t k = 0; k < 4; k++) {
      j->sn[0] += i && i % each == 0 && i / each <= times && k == 2 ? 3 : 0;
      add(j, 0, k == 3, i * STEP_MS + k * STEP_MS / 4 + (i * 7 + k) % 5 * 0.01, 15);
    }
  pass(j);
  const bool unknown = j->rank.gaps_unknown;
  free_job(j);
  return unknown;
}

static void test_missing_records(void **state) {
  (void)state;
  assert_true(are_gaps_unknown(10, STEPS));
  assert_false(are_gaps_unknown(10, 2));
  assert_false(are_gaps_unknown(1, STEPS)); /* a size that is left out */
  assert_false(are_gaps_unknown(STEPS, 0));
}

/* Goes through what was added; returns how many pauses the rank has, and frees the job. */
static uint32_t count_pauses(struct job *j) {
  uint32_t pauses = 0;
  pass(j);
  for (uint32_t i = 0; i < j->rank.n_incidents; i++)
    pauses += j->rank.incident[i].is_pause;
  free_job(j);
  return pauses;
}

/*
 * Eight operations a step, launched ahead: two calls come 0.03 ms after the one before, three at the same
 * time, and the others when the GPU has gone on. What a bin keeps is how long the CPU takes, and no wait.
 */
static void test_calls(void **state) {
  (void)state;
  static const double since_ms[8] = {40, 0.03, 0, 0, 0, 0.03, 20, 20};
  struct job *j = new_job();
  double called = -50;
  for (uint32_t i = 0; i < STEPS; i++)
    for (uint32_t k = 0; k < 8; k++) {
      called += since_ms[k] * (i % 10 == 5 && since_ms[k] < 1 ? 4 : 1);
      add_called(j, 0, k == 7, i * STEP_MS + 10 * k + (i * 7 + k) % 5 * 0.01, 1, called);
    }
  pass(j);
  for (uint32_t i = 1; i + 1 < STEPS; i++) {
    const float us = j->rank.cell[i].call_us;
    assert_true(i % 10 == 5 ? us > 118 && us < 122 : us > 28 && us < 32);
  }
  ni_blame_coarsen(&j->rank);
  assert_true(j->rank.cell[2].call_us > 73 && j->rank.cell[2].call_us < 77);
  free_job(j);
}

/*
 * Four operations a step, 25 ms apart and 15 ms long, the last one of another size. In one step of ten the
 * second one ends SHORTER_MS earlier, since its peers came earlier: the rank is idle for longer before the
 * third one, and begins it as always. late: in one step of ten the third one and all that follows begin
 * SHORTER_MS later. gradients: the rank has another communicator, with one operation in each step that begins
 * within the second one.
 */
static uint32_t pauses_beside(bool late, bool gradients) {
  struct job *j = new_job();
  double delay = 0;
  for (uint32_t i = 0; i < STEPS; i++) {
    const bool now = i % 10 == 5;
    for (uint32_t k = 0; k < 4; k++) {
      delay += late && now && k == 2 ? SHORTER_MS : 0;
      const double at = i * STEP_MS + k * STEP_MS / 4 + delay + (i * 7 + k) % 5 * 0.01;
      add(j, 0, k == 3, at, !late && now && k == 1 ? 15 - SHORTER_MS : 15);
      if (gradients && k == 1)
        add(j, 1, 0, at + 2, 1);
    }
  }
  return count_pauses(j);
}

/*
 * A rank with one communicator computes beside its operations, as far as is known: a gap is no pause where it
 * begins its next operation as always. Where it begins it later it is. With gradients beside it is known that
 * what most operations are in is waited for: then the rank computes for longer in any case.
 */
static void test_gap_beside_operations(void **state) {
  (void)state;
  assert_int_equal(pauses_beside(false, false), 0);
  assert_int_equal(pauses_beside(true, false), STEPS / 10);
  assert_int_equal(pauses_beside(false, true), STEPS / 10);
}

/*
 * Eight operations of layers a step, and a gradient of 20 ms that one of these begins within: the rank
 * computes beside gradients. In one step of ten the layer before the gradient ends earlier, and the gradient
 * begins as always.
 */
static void test_gap_before_gradients(void **state) {
  (void)state;
  struct job *j = new_job();
  for (uint32_t i = 0; i < STEPS; i++) {
    const double at = i * STEP_MS;
    for (uint32_t k = 0; k < 8; k++) {
      const double jitter = (i * 7 + k) % 5 * 0.01;
      if (k == 6) /* the gradient is begun at 60, this one at 70 */
        add(j, 1, 0, at + 60 + jitter, 20);
      const double took = k == 5 ? (i % 10 == 5 ? 1 : 1 + SHORTER_MS) : 1;
      add(j, 0, k == 7, at + 10 * k + (k >= 6 ? 10 : 0) + jitter, took);
    }
  }
  assert_int_equal(count_pauses(j), 0);
}

/* One operation in the bin: how long it took on the rank, and its number. */
#define CELL(us, of) \
  { \
    .exec = 100, .least = 100, .n = 1, .longest = us, .longest_of = { of } \
  }

/*
 * Two ranks with one communicator; the log of the second begins a step later. What is longest in a bin: in
 * bin 1 one operation on both, in bin 2 another one on each, as where they wait for each other in turn. Of
 * bin 0 the second one has nothing. A second on both, that a link was down, and 9 ms in which only one was
 * held up.
 */
static void test_longest_of_link(void **state) {
  (void)state;
  enum { BINS = 5 };
  struct ni_process process[2] = {{.host = 0}, {.host = 1}};
  struct ni_comm_row comm = {.n_ranks = 2};
  struct ni_summary s = {.process = process, .n_processes = 2, .comm = &comm, .n_comms = 1};
  struct ni_blame_cell cell[2][BINS] = {0};
  struct ni_blame_link_cell first[BINS] = {CELL(9000, 10), CELL(1000200, 11), CELL(9000, 12), CELL(110, 13),
                                           CELL(112, 14)},
                            second[BINS - 1] = {CELL(1000000, 11), CELL(8000, 22), CELL(9110, 13),
                                                CELL(112, 14)};
  struct ni_blame_slot slot[2] = {{.ops = BINS, .rank = 0, .peer = -1}, {.ops = BINS, .rank = 1, .peer = -1}};
  struct ni_blame_rank rank[2];
  for (uint32_t r = 0; r < 2; r++)
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = &slot[r],
                                     .n_slots = 1,
                                     .max_slots = 1,
                                     .n_steps = BINS,
                                     .cell = cell[r],
                                     .link_cell = r ? second : first,
                                     .n_bins = BINS - r,
                                     .bin_steps = 1,
                                     .shift = (int32_t)r};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 2, .bins = BINS, .bin_steps = 1, .steps = BINS};
  assert_int_equal(ni_group_peers(&b), 0);
  assert_int_equal(b.n_links, 1);
  const float *longest = b.link[0].longest;
  assert_true(longest[0] == 0 && longest[1] == 1000000 && longest[2] == 0 && longest[3] == 110);
  assert_true(b.link[0].usual_longest == 110);
  ni_blame_free_links(&b);
}

/*
 * A NIC is slow for a part of the bin: two operations take long on both ranks. The first rank waits in one of
 * them besides, and the second one in another operation. What both state is known to be slow, for no longer
 * than the rank that waited least; and they cannot have been in operations for longer than that one was.
 */
static void test_several_long_ones(void **state) {
  (void)state;
  enum { BINS = 4 };
  struct ni_process process[2] = {{.host = 0}, {.host = 1}};
  struct ni_comm_row comm = {.n_ranks = 2};
  struct ni_summary s = {.process = process, .n_processes = 2, .comm = &comm, .n_comms = 1};
  struct ni_blame_cell cell[2][BINS] = {0};
  struct ni_blame_link_cell link[2][BINS] = {{CELL(0, 0), CELL(50000, 5), CELL(0, 0), CELL(0, 0)},
                                             {CELL(0, 0), CELL(36000, 3), CELL(0, 0), CELL(0, 0)}};
  struct ni_blame_slot slot[2] = {{.ops = BINS, .rank = 0, .peer = -1}, {.ops = BINS, .rank = 1, .peer = -1}};
  struct ni_blame_rank rank[2];
  link[0][1].longest_of[1] = 7;
  link[1][1].longest_of[1] = 5;
  link[0][1].exec = 90000;
  link[1][1].exec = 80000;
  for (uint32_t r = 0; r < 2; r++)
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = &slot[r],
                                     .n_slots = 1,
                                     .max_slots = 1,
                                     .n_steps = BINS,
                                     .cell = cell[r],
                                     .link_cell = link[r],
                                     .n_bins = BINS,
                                     .bin_steps = 1};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 2, .bins = BINS, .bin_steps = 1, .steps = BINS};
  assert_int_equal(ni_group_peers(&b), 0);
  assert_int_equal(b.n_links, 1);
  assert_true(b.link[0].longest[1] == 36000 && b.link[0].longest[0] == 0);
  assert_int_equal(b.link[0].longest_of[1][0], 5);
  assert_int_equal(b.link[0].longest_of[1][1], 0);
  assert_true(b.link[0].within[1] == 80000);
  ni_blame_free_links(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_several_long_ones),
      cmocka_unit_test(test_gap_beside_operations),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_missing_records),
      cmocka_unit_test(test_gap_before_gradients),
      cmocka_unit_test(test_longest_of_link),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
