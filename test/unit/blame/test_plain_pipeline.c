/*
 * Pipelines in which nothing comes once a step: neither gradients nor a norm. The order of what the layers
 * exchange and of the messages tells steps, and CPUs are told by their calls where a stage has no like.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/lateness.h"
#include "exporter/model/sums/cpus/calls.h"
#include "exporter/model/sums/steps/fold.h"
#include "exporter/model/sums/steps/steps.h"
#include "exporter/model/sums/spells/spells.h"

static uint32_t period_of(const char *step, uint32_t steps, const char *more, uint32_t each) {
  uint16_t what[8192];
  uint32_t n = 0;
  for (uint32_t i = 0; i < steps; i++)
    for (int part = 0; part < 2; part++)
      for (const char *c = part ? step : i % each == 0 ? more : ""; *c; c++)
        what[n++] = (uint16_t)*c;
  return ni_fold_order(what, n);
}

static void test_order(void **state) {
  (void)state;
  assert_int_equal(period_of("abcd", 100, "", 1), 4);
  assert_int_equal(period_of("abab", 100, "", 1), 2);
  assert_int_equal(period_of("a", 100, "", 1), 1);
  assert_int_equal(period_of("aabaab", 10, "", 1), 3);
  assert_int_equal(period_of("abcd", 12, "", 1), 0); /* too few to tell */
  /* sixteen micro-batches, and what differs in the first of them alone */
  assert_int_equal(period_of("aabaacaacaacaacaacaacaacaacaacaacaacaacaacaacaac", 60, "", 1), 48);
  /* an evaluation each twentieth step */
  assert_int_equal(period_of("aabaacaacaac", 60, "dddddddd", 20), 12);
  assert_int_equal(period_of("abaaaababa", 127, "dedededededede", 23), 10);
}

/*
 * `steps` times `step` on a stage: `a` is what a layer exchanges, `s` and `r` are messages to the stage
 * behind, `t` and `q` to the one before. comms: communicators with collectives; 0: one, across hosts. Returns
 * how many steps are found; *m: their mark.
 */
static uint32_t steps_of(const char *step, uint32_t steps, uint32_t wanted, uint32_t comms,
                         struct ni_step_mark *m) {
  static struct ni_blame_op op[8192];
  struct ni_comm_row comm[3] = {{.n_ranks = 4, .one_host = comms ? 0 : -1}, {.n_ranks = 2}, {.n_ranks = 8}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[6] = {{.kind = NI_BLAME_COLL},
                                  {.comm = 1, .kind = NI_BLAME_SEND, .peer = 2},
                                  {.comm = 1, .kind = NI_BLAME_RECV, .peer = 2},
                                  {.comm = 1, .kind = NI_BLAME_SEND, .peer = 0},
                                  {.comm = 1, .kind = NI_BLAME_RECV, .peer = 0},
                                  {.comm = 2, .kind = NI_BLAME_COLL}};
  const char *func[6] = {"AllReduce", "Send", "Recv", "Send", "Recv", "AllReduce"};
  uint64_t bytes[6] = {1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20};
  struct ni_blame_rank rank = {
      .slot = slot, .n_slots = comms > 1 ? 6 : 5, .token_func = func, .token_bytes = bytes, .n_tokens = 6};
  uint32_t n = 0, ends = 0;
  for (uint32_t i = 0; i < steps; i++)
    for (const char *c = step; *c; c++, n++) {
      const uint16_t at = (uint16_t)(strchr("asrtqw", *c) - "asrtqw");
      op[n] = (struct ni_blame_op){.start_ns = 1000000 * ((int64_t)n + 1),
                                   .end_ns = 1000000 * ((int64_t)n + 1) + 400000,
                                   .sn = slot[at].ops++,
                                   .slot = at,
                                   .token = at,
                                   .what = at};
    }
  for (uint32_t i = 0; i + 1 < n && steps % 2; i++) { /* a Send and a Recv of one group: in any order */
    const bool is_group = op[i].slot == 1 && op[i + 1].slot == 2;
    if (is_group && i / 24 % 2) {
      const struct ni_blame_op first = op[i];
      op[i] = op[i + 1];
      op[i + 1] = first;
    }
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, wanted, m), 0);
  for (uint32_t i = 0; m->found && i < n; i++)
    ends += ni_steps_advance(m, &op[i]);
  free(r);
  return ends;
}

static void test_steps(void **state) {
  (void)state;
  struct ni_step_mark m;
  /* the first of three stages, of two layers: two micro-batches ahead of four */
  assert_int_equal(steps_of("aasaasaasraaaasraaraaraa", 40, 0, 1, &m), 40);
  assert_true(m.by_order && m.n == 1 && m.size == 16);
  assert_int_equal(steps_of("aasaasaasraaaasraaraaraa", 41, 0, 1, &m), 41);
  /* the one in the middle, whose messages tell forward and backward passes */
  assert_int_equal(steps_of("qaasqaasraatqaasraatraat", 40, 0, 1, &m), 40);
  /* the last one: micro-batches are alike, until it is known how many steps there are */
  assert_int_equal(steps_of("qaaaatqaaaatqaaaatqaaaat", 40, 0, 1, &m), 160);
  assert_true(m.by_order);
  assert_int_equal(steps_of("qaaaatqaaaatqaaaatqaaaat", 40, 40, 1, &m), 40);
  /* where gradients are reduced these say it */
  assert_int_equal(steps_of("aasaasaasraaaasraaraaraaw", 40, 0, 2, &m), 40);
  assert_false(m.by_order);
  /* a ring of context parallelism, whose gradients are reduced across hosts */
  (void)steps_of("aasaasaasraaaasraaraaraa", 40, 0, 0, &m);
  assert_false(m.by_order);
}

enum { RANKS = 8, BINS = 40 };

/*
 * Ranks 4 to 7 are a stage and a host; half of their idle time lies before what is launched late. times: they
 * call so many times as slowly as the others. Returns how many of them launch late.
 */
static uint32_t count_late_launches(float times, bool by_order) {
  static struct ni_blame_cell cell[RANKS][BINS];
  struct ni_process process[RANKS] = {0};
  struct ni_blame_rank rank[RANKS] = {0};
  struct ni_host host[2] = {0};
  struct ni_summary s = {.process = process, .host = host, .n_hosts = 2};
  struct ni_blame b = {
      .s = &s, .rank = rank, .n_ranks = RANKS, .bins = BINS, .steps = BINS, .bin_steps = 1, .stages = true};
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool is_here = r >= RANKS / 2;
    process[r].host = is_here;
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .mark = {.by_order = by_order && r == 0},
                                     .cls = is_here,
                                     .team = NI_BLAME_NONE,
                                     .n_steps = BINS,
                                     .n_bins = BINS,
                                     .bin_steps = 1,
                                     .last_ns = BINS * 1000000,
                                     .cell = cell[r]};
    for (uint32_t k = 0; k < BINS; k++)
      cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k,
                                          .call_us = 20 * (is_here ? times : 1),
                                          .idle = is_here ? 30e3f : 20e3f,
                                          .late_idle = is_here ? 15e3f : 0};
  }
  struct ni_lateness w;
  uint32_t n = 0;
  assert_int_equal(ni_lateness_begin(&w, &b, NULL), 0);
  assert_int_equal(ni_lateness_judge(&w), 0);
  for (uint32_t r = 0; r < RANKS; r++)
    n += w.late[r].launch;
  ni_lateness_end(&w);
  return n;
}

static void test_stage_of_host(void **state) {
  (void)state;
  assert_int_equal(count_late_launches(1, true), 0); /* it has more to launch */
  assert_int_equal(count_late_launches(1.2f, true), 0);
  assert_int_equal(count_late_launches(2, true), RANKS / 2);
  assert_int_equal(count_late_launches(1, false), RANKS / 2); /* its loader may be slow */
}

/*
 * A host whose calls are slow in ten bins, and `ranks` ranks of it that are late in `same` of these, by
 * pauses or by bursts. Returns how many causes are left.
 */
static uint32_t count_left(uint32_t ranks, uint32_t same, uint32_t host) {
  struct ni_process process[4] = {{.host = 1}, {.host = 1}, {.host = 0}, {.host = 0}};
  struct ni_blame_rank rank[4] = {{.process = 0}, {.process = 1}, {.process = 2}, {.process = 3}};
  struct ni_summary s = {.process = process, .n_hosts = 2};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 4, .bins = BINS};
  struct ni_causes causes = {0};
  struct ni_cause *busy = ni_cause_add(&causes, NI_FIND_SLOW_HOST, NI_LEVEL_HOST, host);
  busy->calls = 2;
  assert_non_null(busy->at = calloc(BINS + 1, sizeof *busy->at));
  busy->to = BINS;
  for (uint32_t k = 0; k < 10; k++)
    busy->at[10 + k] = true;
  for (uint32_t r = 0; r < ranks; r++) {
    struct ni_cause *c = ni_cause_add(&causes, r ? NI_FIND_PAUSES : NI_FIND_THROTTLING, NI_LEVEL_RANK, r);
    assert_non_null(c->at = calloc(BINS + 1, sizeof *c->at));
    c->to = BINS;
    for (uint32_t k = 0; k < 10; k++)
      c->at[20 - same + k] = true;
  }
  ni_drop_waiting_hosts(&b, &causes);
  const uint32_t n = causes.n;
  ni_causes_free(&causes);
  return n;
}

static void test_host_waits_for_its_rank(void **state) {
  (void)state;
  assert_int_equal(count_left(1, 10, 1), 1);
  assert_int_equal(count_left(1, 8, 1), 1);
  assert_int_equal(count_left(1, 5, 1), 2);  /* mostly at other times */
  assert_int_equal(count_left(1, 10, 0), 2); /* another host's */
  assert_int_equal(count_left(2, 10, 1), 3); /* several of them are: its CPU is busy */
  assert_int_equal(count_left(0, 10, 1), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_steps),
      cmocka_unit_test(test_stage_of_host),
      cmocka_unit_test(test_host_waits_for_its_rank),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
