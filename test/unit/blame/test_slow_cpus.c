/* CPUs that call NCCL more slowly than others: hosts, single ranks, now and then, and where steps differ. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/lateness.h"
#include "exporter/model/sums/cpus/calls.h"

enum { HOSTS = 4, EACH = 4, RANKS = HOSTS * EACH, STEPS = 40, SLOW_HOST = 2, SLOW_RANK = 5 };

/* Ranks of four hosts; each bin has what its CPU takes from call to call, a tenth of it noise. */
struct job {
  struct ni_process process[RANKS];
  struct ni_host host[HOSTS];
  struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s;
  struct ni_blame b;
  float usual_us[RANKS], times[RANKS];
};

static void begin(struct job *x) {
  memset(x, 0, sizeof *x);
  for (uint32_t r = 0; r < RANKS; r++) {
    x->process[r].host = r / EACH;
    x->rank[r] = (struct ni_blame_rank){.process = r,
                                        .judged = true,
                                        .n_steps = STEPS,
                                        .n_bins = STEPS,
                                        .bin_steps = 1,
                                        .ops = 1 + STEPS,
                                        .last_ns = STEPS * 1000000,
                                        .cell = x->cell[r]};
    for (uint32_t k = 0; k < STEPS; k++)
      x->cell[r][k] =
          (struct ni_blame_cell){.start_ns = 1 + k, .call_us = 20 + 0.1f * (float)((k * 7 + r * 3) % 20)};
  }
  x->s = (struct ni_summary){.process = x->process, .host = x->host, .n_hosts = HOSTS};
  x->b = (struct ni_blame){
      .s = &x->s, .rank = x->rank, .n_ranks = RANKS, .bins = STEPS, .steps = STEPS, .bin_steps = 1};
}

static void slow_down(struct job *x, uint32_t rank, float times, uint32_t from, uint32_t to) {
  for (uint32_t k = from; k < to; k++)
    x->cell[rank][k].call_us *= times;
}

static void slow_down_host(struct job *x, float times, uint32_t from, uint32_t to) {
  for (uint32_t r = SLOW_HOST * EACH; r < (SLOW_HOST + 1) * EACH; r++)
    slow_down(x, r, times, from, to);
}

static uint32_t count_slow(struct job *x) {
  uint32_t n = 0;
  assert_int_equal(ni_calls_compare(&x->b, x->usual_us, x->times), 0);
  for (uint32_t r = 0; r < RANKS; r++)
    n += x->times[r] > 0;
  return n;
}

static void test_host(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  assert_int_equal(count_slow(&x), 0);
  slow_down_host(&x, 1.6f, 0, STEPS);
  assert_int_equal(count_slow(&x), EACH);
  for (uint32_t r = 0; r < RANKS; r++)
    assert_true(r / EACH == SLOW_HOST ? fabsf(x.times[r] - 1.6f) < 0.1f : x.times[r] == 0);
  begin(&x);
  slow_down_host(&x, 1.25f, 0, STEPS);
  assert_int_equal(count_slow(&x), 0); /* hosts differ by so much */
  begin(&x);
  slow_down_host(&x, 2.3f, 0, STEPS);
  for (uint32_t r = 0; r < RANKS; r++)
    if (r / EACH != SLOW_HOST)
      slow_down(&x, r, 1 + 0.1f * (float)(r < SLOW_HOST * EACH ? r : r - EACH), 0, STEPS);
  assert_int_equal(count_slow(&x), 0); /* the others lie as far apart */
}

static void test_rank(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  slow_down(&x, SLOW_RANK, 2, 0, STEPS);
  assert_int_equal(count_slow(&x), 1);
  assert_true(fabsf(x.times[SLOW_RANK] - 2) < 0.1f);
  slow_down(&x, SLOW_RANK + 1, 2, 0, STEPS); /* two of four are neither the host nor one rank */
  assert_int_equal(count_slow(&x), 0);
  begin(&x);
  slow_down(&x, SLOW_RANK, 2, 0, STEPS / 4); /* in the middle of its steps it is as quick as others */
  assert_int_equal(count_slow(&x), 0);
}

/* Whoever does other work, or nothing that states its calls, is not compared. */
static void test_no_peers(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  slow_down_host(&x, 3, 0, STEPS);
  for (uint32_t r = SLOW_HOST * EACH; r < (SLOW_HOST + 1) * EACH; r++)
    x.rank[r].cls = 1;
  x.b.n_classes = 2;
  assert_int_equal(count_slow(&x), 0);
  slow_down(&x, SLOW_HOST * EACH, 1 / 3.0f, 0, STEPS); /* nor is it where one of its ranks is quick */
  assert_int_equal(count_slow(&x), 0);
  begin(&x);
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < STEPS; k++)
      x.cell[r][k].call_us = 0;
  assert_int_equal(count_slow(&x), 0);
}

/* It takes as long as those of other hosts: not slower, not quicker, and not where nobody can be compared. */
static void test_alike(void **state) {
  (void)state;
  struct job x;
  float scratch[RANKS];
  begin(&x);
  assert_int_equal(count_slow(&x), 0);
  assert_true(ni_calls_are_alike(&x.b, x.usual_us, SLOW_RANK, scratch));
  for (int how = 0; how < 2; how++) {
    begin(&x);
    slow_down(&x, SLOW_RANK, how ? 0.9f : 1.1f, 0, STEPS);
    assert_int_equal(count_slow(&x), 0);
    assert_false(ni_calls_are_alike(&x.b, x.usual_us, SLOW_RANK, scratch));
  }
  begin(&x);
  x.rank[SLOW_RANK].cls = 1;
  x.b.n_classes = 2;
  assert_int_equal(count_slow(&x), 0);
  assert_false(ni_calls_are_alike(&x.b, x.usual_us, SLOW_RANK, scratch));
}

/*
 * GPUs of a host with slow CPUs idle 10 ms a step longer: before what is launched late, or between kernels
 * that nobody sees. Either way it costs that; where neither is longer, nothing.
 */
static void test_idle_of_slow_cpu(void **state) {
  (void)state;
  enum { LAUNCHED, UNSEEN, NONE, HOWS };
  for (int how = 0; how < HOWS; how++) {
    struct job x;
    struct ni_lateness w;
    begin(&x);
    slow_down_host(&x, 3, 0, STEPS);
    for (uint32_t r = 0; r < RANKS; r++)
      for (uint32_t k = 0; k < STEPS; k++) {
        const float more_us = how != NONE && r / EACH == SLOW_HOST ? 10e3f : 0;
        x.cell[r][k].idle = 20e3f + more_us;
        x.cell[r][k].late_idle = how == LAUNCHED ? 1.5f * more_us : 0;
      }
    assert_int_equal(ni_lateness_begin(&w, &x.b, NULL), 0);
    assert_int_equal(ni_lateness_judge(&w), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
      const struct ni_rank_lateness *l = &w.late[r];
      if (r / EACH != SLOW_HOST) {
        assert_false(l->late || l->launch);
        continue;
      }
      assert_true(fabsf(l->calls - 3) < 0.2f);
      assert_true(l->late == (how == UNSEEN) && l->launch == (how != UNSEEN));
      assert_true(how == NONE ? l->excess_us < 1 : l->excess_us > 9e3f && l->excess_us < 11e3f);
    }
    ni_lateness_end(&w);
  }
}

static void test_busy(void **state) {
  (void)state;
  struct job x;
  struct ni_causes causes = {0};
  begin(&x);
  slow_down_host(&x, 4, 10, 15);
  slow_down_host(&x, 4, 30, 33);
  assert_int_equal(ni_find_busy_cpus(&x.b, &causes), 0);
  assert_int_equal(causes.n, 1);
  const struct ni_cause *c = &causes.item[0];
  assert_true(c->kind == NI_FIND_SLOW_HOST && c->level == NI_LEVEL_HOST && c->of == SLOW_HOST);
  assert_int_equal(c->n_items, EACH);
  assert_int_equal(c->bins_hit, 2);
  assert_true(fabsf(c->calls - 4) < 0.3f && fabsf(c->of_run - 8.0f / STEPS) < 1e-6f);
  for (uint32_t k = 0; k < STEPS; k++)
    assert_int_equal(c->at[k], (k >= 10 && k < 15) || (k >= 30 && k < 33));
  ni_causes_free(&causes);
  causes = (struct ni_causes){0};
  for (uint32_t r = 0; r < RANKS; r++)
    if (r / EACH != SLOW_HOST)
      slow_down(&x, r, 4, 10, 15); /* an evaluation: all do */
  assert_int_equal(ni_find_busy_cpus(&x.b, &causes), 0);
  assert_int_equal(causes.n, 1);
  assert_int_equal(causes.item[0].bins_hit, 1);
  ni_causes_free(&causes);
}

/* Pauses of the whole host in the same steps: one cause. */
static void test_busy_and_pauses(void **state) {
  (void)state;
  struct job x;
  struct ni_causes causes = {0};
  begin(&x);
  slow_down_host(&x, 4, 10, 15);
  struct ni_cause *pauses = ni_cause_add(&causes, NI_FIND_PAUSES, NI_LEVEL_HOST, SLOW_HOST);
  assert_non_null(pauses->at = calloc(STEPS, sizeof *pauses->at));
  pauses->at[12] = true;
  pauses->from = 12;
  pauses->to = 13;
  assert_int_equal(ni_find_busy_cpus(&x.b, &causes), 0);
  assert_int_equal(causes.n, 1);
  assert_true(pauses->calls > 3.5f && ni_cause_is_active(pauses, 10) && ni_cause_is_active(pauses, 14));
  ni_causes_free(&causes);
}

/* Whoever waits for a rank that pauses elsewhere calls late as well, and so do stages beside a slow CPU. */
static void test_busy_or_waiting(void **state) {
  (void)state;
  struct job x;
  struct ni_causes causes = {0};
  begin(&x);
  slow_down_host(&x, 4, 10, 15);
  struct ni_cause *pauses = ni_cause_add(&causes, NI_FIND_PAUSES, NI_LEVEL_RANK, 0);
  assert_non_null(pauses->at = calloc(STEPS, sizeof *pauses->at));
  for (uint32_t k = 9; k < 15; k += 2)
    pauses->at[k] = true;
  pauses->to = STEPS;
  assert_int_equal(ni_find_busy_cpus(&x.b, &causes), 0);
  assert_int_equal(causes.n, 1);
  ni_causes_free(&causes);
  for (int stages = 0; stages < 2; stages++) {
    causes = (struct ni_causes){0};
    x.b.stages = stages;
    ni_cause_add(&causes, NI_FIND_SLOW_HOST, NI_LEVEL_HOST, 0)->launch = true;
    assert_int_equal(ni_find_busy_cpus(&x.b, &causes), 0);
    assert_int_equal(causes.n, stages ? 1 : 2);
    ni_causes_free(&causes);
  }
}

/* The first steps of the host are longer: that, and no more, can be put down to its CPU. */
static void test_pauses_of_host(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  for (uint32_t r = 0; r < RANKS; r++) {
    x.cell[r][0].burst = r / EACH == SLOW_HOST ? 500e3f : 100e3f;
    x.cell[r][7].burst = 50e3f; /* all pause */
    x.cell[r][1].late_idle = r / EACH == SLOW_HOST ? 1000 : 0;
  }
  struct ni_cause c = {.kind = NI_FIND_SLOW_HOST, .level = NI_LEVEL_HOST, .of = SLOW_HOST};
  assert_int_equal(ni_calls_find_pauses(&x.b, &c), 0);
  for (uint32_t k = 0; k < STEPS; k++)
    assert_int_equal(c.pauses_at[k], k == 0);
  assert_true(fabs(c.most_us - (400e3 + 2 * 1000)) < 1);
  free(c.pauses_at);
}

static void test_requests(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  slow_down_host(&x, 10, 0, STEPS);
  assert_int_equal(ni_calls_tell(&x.b, &x.s), 0);
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool is_slow = r / EACH == SLOW_HOST;
    assert_true(is_slow ? fabs(x.process[r].calls - 10) < 0.5 : x.process[r].calls == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host),
      cmocka_unit_test(test_rank),
      cmocka_unit_test(test_no_peers),
      cmocka_unit_test(test_alike),
      cmocka_unit_test(test_idle_of_slow_cpu),
      cmocka_unit_test(test_busy),
      cmocka_unit_test(test_busy_and_pauses),
      cmocka_unit_test(test_pauses_of_host),
      cmocka_unit_test(test_requests),
      cmocka_unit_test(test_busy_or_waiting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
