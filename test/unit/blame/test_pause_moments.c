/* Moments in which ranks pause: of one alone, of all, and more than are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/spells/spells.h"

enum { LONG_RANKS = 8, LONG_STEPS = 60, LONG_PAUSES = 5 };

struct long_pauses {
  struct ni_process process[LONG_RANKS];
  struct ni_host host[2];
  struct ni_blame_incident incident[LONG_RANKS][LONG_STEPS];
  struct ni_blame_cell cell[LONG_RANKS][LONG_STEPS];
  struct ni_blame_rank rank[LONG_RANKS];
  struct ni_summary s;
  struct ni_blame b;
  struct ni_causes out;
};

static void begin_long_pauses(struct long_pauses *x) {
  memset(x, 0, sizeof *x);
  for (uint32_t r = 0; r < LONG_RANKS; r++) {
    x->process[r] = (struct ni_process){.host = r / 4, .rank = (int32_t)r};
    x->rank[r] = (struct ni_blame_rank){.process = r,
                                        .judged = true,
                                        .n_steps = LONG_STEPS,
                                        .ops = LONG_STEPS * 100,
                                        .incident = x->incident[r],
                                        .cell = x->cell[r],
                                        .n_bins = LONG_STEPS,
                                        .bin_steps = 1};
    for (uint32_t k = 0; k < LONG_STEPS; k++)
      x->cell[r][k].start_ns = 1 + k;
  }
  x->s = (struct ni_summary){.process = x->process, .host = x->host, .n_hosts = 2};
  x->b = (struct ni_blame){.s = &x->s,
                           .rank = x->rank,
                           .n_ranks = LONG_RANKS,
                           .bins = LONG_STEPS,
                           .bin_steps = 1,
                           .steps = LONG_STEPS};
}

static void add_pause(struct long_pauses *x, uint32_t rank, uint32_t step, float us) {
  struct ni_blame_rank *o = &x->rank[rank];
  o->incident[o->n_incidents++] = (struct ni_blame_incident){
      .us = us, .step = step, .in_step = 1 + step * 7 % 90, .is_pause = true, .is_own = true};
  o->incidents++;
  o->cell[step].burst += us;
}

/* A second each ten steps: of the first rank it is a checkpoint, of another one, alone, something else. */
static bool is_note_of_rank(uint32_t rank, bool first_is_there) {
  struct long_pauses x;
  begin_long_pauses(&x);
  x.rank[0].judged = first_is_there;
  for (uint32_t k = 0; k < LONG_PAUSES; k++)
    add_pause(&x, rank, 5 + 10 * k, 1e6f);
  assert_int_equal(ni_find_pauses(&x.b, &x.out), 0);
  assert_int_equal(x.out.n, 1);
  assert_true(x.out.item[0].kind == NI_FIND_PERIODIC && x.out.item[0].of == rank);
  const bool is_note = ni_spells_is_note(&x.out.item[0]);
  ni_causes_free(&x.out);
  return is_note;
}

static void test_period_of_rank(void **state) {
  (void)state;
  assert_true(is_note_of_rank(0, true));
  assert_false(is_note_of_rank(3, true));
  assert_true(is_note_of_rank(3, false)); /* the first rank has no log, and may do the same */
}

/* All ranks take longer in some steps, at no distance: these have more to do. */
static void test_uneven_steps(void **state) {
  (void)state;
  static const uint32_t steps[] = {0, 7, 9, 20, 27, 28, 45, 51, 52};
  enum { N = sizeof steps / sizeof *steps };
  struct long_pauses x;
  begin_long_pauses(&x);
  for (uint32_t i = 0; i < N; i++)
    for (uint32_t r = 0; r < LONG_RANKS; r++)
      add_pause(&x, r, steps[i], 40e3f);
  assert_int_equal(ni_find_pauses(&x.b, &x.out), 0);
  ni_settle_uneven_steps(&x.b, &x.out);
  assert_int_equal(x.out.n, 1);
  const struct ni_cause *c = &x.out.item[0];
  assert_true(c->kind == NI_FIND_UNEVEN && c->level == NI_LEVEL_JOB && c->n_items == LONG_RANKS);
  assert_int_equal(c->bins_hit, N - 1); /* the first step is longer in any job */
  for (uint32_t k = 0, i = 1; k < LONG_STEPS; k++) {
    const bool is_there = i < N && steps[i] == k;
    assert_int_equal(c->at[k], is_there);
    i += is_there;
  }
  /* what another cause explains is no such step */
  struct ni_cause *other = ni_cause_add(&x.out, NI_FIND_CONGESTION, NI_LEVEL_FABRIC, 0);
  assert_non_null(other->at = calloc(LONG_STEPS + 1, sizeof *other->at));
  other->links = true;
  other->to = LONG_STEPS;
  for (uint32_t i = 1; i + 2 < N; i++)
    other->at[steps[i]] = true;
  ni_settle_uneven_steps(&x.b, &x.out);
  assert_int_equal(x.out.n, 1);
  assert_int_equal(x.out.item[0].kind, NI_FIND_CONGESTION);
  ni_causes_free(&x.out);
}

/* More pauses than are kept: the bins say when the rest were. Where records are missing none of them counts. */
static void test_more_pauses_than_kept(void **state) {
  (void)state;
  enum { RANK = 6 };
  for (int unknown = 0; unknown < 2; unknown++) {
    struct long_pauses x;
    begin_long_pauses(&x);
    for (uint32_t k = 11; k < 17; k++)
      add_pause(&x, RANK, k, 30e3f);
    for (uint32_t k = 40; k < 48; k++)
      x.cell[RANK][k].burst = 25e3f;
    x.rank[RANK].incidents += 8;
    x.rank[RANK].gaps_unknown = unknown;
    assert_int_equal(ni_find_pauses(&x.b, &x.out), 0);
    assert_int_equal(x.out.n, !unknown);
    for (uint32_t k = 40; k < 48 && !unknown; k++)
      assert_true(ni_cause_is_active(&x.out.item[0], k));
    assert_true(unknown || x.out.item[0].most_us > 6 * 30e3 + 8 * 25e3 - 1);
    ni_causes_free(&x.out);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_period_of_rank),
      cmocka_unit_test(test_uneven_steps),
      cmocka_unit_test(test_more_pauses_than_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
