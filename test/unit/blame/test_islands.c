/* Hosts that go on by themselves and meet each so many steps: who is one island, and what a step takes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/causes.h"
#include "exporter/model/sums/blame/lateness.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/spells/spells.h"
#include "exporter/model/sums/work/islands.h"

enum { RANKS = 8, OF_ISLAND = 4, BINS = 60, EACH = 6, SLOTS = 2, INNER = 0, OUTER = 1, STEP_US = 1000 };
enum { COMMS = 2 + OF_ISLAND, TRANSFER_US = 400, OPS = 4, PLACES = 8 };

struct job {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_comm_row comm[COMMS];
  struct ni_process process[RANKS];
  struct ni_host host[2];
  struct ni_blame_rank rank[RANKS];
  struct ni_blame_slot slot[RANKS][SLOTS];
  struct ni_blame_cell cell[RANKS][BINS];
  struct ni_blame_link_cell link_cell[RANKS][BINS * SLOTS];
  struct ni_blame_place place[RANKS][PLACES];
};

static bool is_exchange(uint32_t bin) { return bin % EACH == EACH - 1; }

/*
 * Two hosts of four ranks; each sixth step each rank exchanges with one of the other host, in four
 * operations.
 */
static struct job *new_job(void) {
  struct job *x = calloc(1, sizeof *x);
  x->s = (struct ni_summary){.comm = x->comm,
                             .n_comms = COMMS,
                             .process = x->process,
                             .n_processes = RANKS,
                             .host = x->host,
                             .n_hosts = 2};
  x->b = (struct ni_blame){.s = &x->s,
                           .rank = x->rank,
                           .n_ranks = RANKS,
                           .bins = BINS,
                           .bin_steps = 1,
                           .steps = BINS,
                           .whole_steps = BINS};
  for (uint32_t c = 0; c < COMMS; c++)
    x->comm[c].n_ranks = c < 2 ? OF_ISLAND : 2;
  for (uint32_t r = 0; r < RANKS; r++) {
    x->process[r].host = r / OF_ISLAND;
    x->slot[r][INNER] = (struct ni_blame_slot){
        .comm = r / OF_ISLAND, .rank = (int32_t)(r % OF_ISLAND), .peer = -1, .ops = 100, .bytes = 1 << 20};
    x->slot[r][OUTER] = (struct ni_blame_slot){
        .comm = 2 + r % OF_ISLAND, .rank = (int32_t)(r / OF_ISLAND), .peer = -1, .ops = 40, .bytes = 1 << 24};
    x->rank[r] = (struct ni_blame_rank){.process = r,
                                        .judged = true,
                                        .one_comm = true,
                                        .slot = x->slot[r],
                                        .n_slots = SLOTS,
                                        .max_slots = SLOTS,
                                        .n_steps = BINS,
                                        .whole_steps = BINS,
                                        .n_bins = BINS,
                                        .bin_steps = 1,
                                        .cell = x->cell[r],
                                        .link_cell = x->link_cell[r],
                                        .team = NI_BLAME_NONE};
  }
  return x;
}

/*
 * * The second host takes late_us longer in each step, and so does the first one in bin `at`; the first one
 * waits for the other where they meet. extra_us: by bin, in what islands exchange; NULL: nothing.
 */
static void run_job(struct job *x, float late_us, const float *extra_us) {
  for (uint32_t r = 0; r < RANKS; r++) {
    double us = 1;
    float behind = 0;
    for (uint32_t k = 0; k < BINS; k++) {
      const float late = r < OF_ISLAND ? 0 : late_us,
                  exchange = OPS * TRANSFER_US + (extra_us ? extra_us[k] : 0);
      x->cell[r][k] = (struct ni_blame_cell){.start_ns = (int64_t)(us * 1e3), .places = 1};
      us += STEP_US + late;
      behind += late_us - late;
      x->link_cell[r][k * SLOTS + INNER] = (struct ni_blame_link_cell){.least = 10, .exec = 10, .n = 1};
      if (!is_exchange(k))
        continue;
      x->link_cell[r][k * SLOTS + OUTER] =
          (struct ni_blame_link_cell){.least = OPS * TRANSFER_US, .exec = exchange + behind, .n = OPS};
      us += exchange + behind;
      behind = 0;
    }
  }
  assert_int_equal(ni_group_peers(&x->b), 0);
}

static void free_job(struct job *x) {
  ni_blame_free_links(&x->b);
  free(x);
}

/* Hosts are islands, and meet where operations join them. Where these come in most steps there are none. */
static void test_islands(void **state) {
  (void)state;
  struct job *x = new_job();
  run_job(x, 0, NULL);
  assert_int_equal(x->b.n_islands, 2);
  for (uint32_t r = 0; r < RANKS; r++)
    assert_int_equal(x->b.island[r], r / OF_ISLAND);
  for (uint32_t k = 0; k < BINS; k++)
    assert_int_equal(ni_islands_meet(&x->b, k), is_exchange(k));
  ni_blame_free_links(&x->b);
  x->b.bins = BINS;
  x->b.bin_steps = 1;
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < BINS; k++)
      x->link_cell[r][k * SLOTS + OUTER] = (struct ni_blame_link_cell){.least = 10, .exec = 10, .n = 1};
  assert_int_equal(ni_group_peers(&x->b), 0);
  assert_true(!x->b.island && !x->b.exchange && !ni_islands_meet(&x->b, EACH - 1));
  free_job(x);
}

/*
 * * A step takes as long as on the slower host, and where they meet it has what they exchange, without what
 * the other one waits. An exchange that is slow for a moment is so as a whole, though its shortest operation
 * is as quick as ever.
 */
static void test_island_lengths(void **state) {
  (void)state;
  struct job *x = new_job();
  float us[BINS], extra[BINS] = {0};
  extra[5 * EACH - 1] = 3 * TRANSFER_US;
  run_job(x, 200, extra);
  assert_int_equal(ni_causes_bin_lengths(&x->b, us), 0);
  for (uint32_t k = 1; k + 2 < BINS; k++) {
    const float exchange = is_exchange(k) ? OPS * TRANSFER_US + extra[k] : 0;
    assert_true(fabsf(us[k] - (STEP_US + 200 + exchange)) < 1);
  }
  assert_true(fabsf(ni_islands_measure_wait(&x->b, 0, 2 * EACH - 1) - EACH * 200) < 1);
  assert_true(ni_islands_measure_wait(&x->b, OF_ISLAND, 2 * EACH - 1) < 1);
  assert_true(ni_islands_measure_wait(&x->b, 0, 2 * EACH) < 1);
  free_job(x);
}

/*
 * What is at work where islands meet is compared with other steps in which they do, not with those beside
 * it.
 */
static void test_cost_of_exchange(void **state) {
  (void)state;
  struct job *x = new_job();
  struct ni_causes causes = {0};
  float extra[BINS] = {0};
  extra[4 * EACH - 1] = extra[7 * EACH - 1] = 500;
  run_job(x, 0, extra);
  struct ni_cause *c = ni_cause_add(&causes, NI_FIND_CONGESTION, NI_LEVEL_FABRIC, 0);
  c->links = true;
  c->to = BINS;
  c->at = calloc(BINS + 1, sizeof *c->at);
  c->at[4 * EACH - 1] = c->at[7 * EACH - 1] = true;
  assert_int_equal(ni_count_clock_costs(&x->b, &causes), 0);
  assert_true(fabs(c->cost_us - 1000) < 20);
  for (uint32_t k = 0; k < BINS; k++)
    c->at[k] = is_exchange(k); /* each of them: nothing says how long they are without */
  assert_int_equal(ni_count_clock_costs(&x->b, &causes), 0);
  assert_true(c->not_clocked);
  ni_causes_free(&causes);
  free_job(x);
}

/* Where islands meet all ranks have far more operations, and it takes long: that is no evaluation. */
static void test_exchange_is_no_evaluation(void **state) {
  (void)state;
  struct job *x = new_job();
  struct ni_causes causes = {0};
  run_job(x, 0, NULL);
  assert_int_equal(ni_find_evaluations(&x->b, &causes), 0);
  assert_int_equal(causes.n, 0);
  for (uint32_t k = 0; k < BINS; k++)
    x->b.exchange[k] = 0;
  assert_int_equal(ni_find_evaluations(&x->b, &causes), 0);
  assert_int_equal(causes.n, 1);
  ni_causes_free(&causes);
  free_job(x);
}

/*
 * The network is slow in exchanges that follow each other, by a third: neighbours are exchanges. Slow in all
 * but the first two it has become so then, and stays.
 */
static void test_slow_exchanges(void **state) {
  (void)state;
  for (int lasts = 0; lasts < 2; lasts++) {
    struct job *x = new_job();
    struct ni_causes causes = {0};
    float extra[BINS] = {0};
    for (uint32_t k = 0; k < BINS; k++)
      if (is_exchange(k) && (lasts ? k > 2 * EACH : k > 3 * EACH && k < 7 * EACH))
        extra[k] = OPS * TRANSFER_US * 0.32f;
    run_job(x, 0, extra);
    assert_int_equal(ni_find_congestion(&x->b, &causes), 0);
    assert_int_equal(causes.n, 1);
    assert_int_equal(causes.item[0].kind, lasts ? NI_FIND_SLOW_COMM : NI_FIND_CONGESTION);
    assert_int_equal(causes.item[0].from, (lasts ? 3 : 4) * EACH - 1);
    assert_int_equal(causes.item[0].to, lasts ? BINS : 6 * EACH + EACH);
    assert_int_equal(causes.item[0].bins_hit, lasts ? 7 : 4);
    ni_causes_free(&causes);
    free_job(x);
  }
}

/* Own time of a rank in each of its places. */
static void put_places(struct job *x, uint32_t r, float us) {
  x->rank[r].place = x->place[r];
  x->rank[r].n_places = PLACES;
  x->rank[r].last_ns = INT64_C(1000) * BINS * STEP_US;
  for (uint32_t k = 0; k < PLACES; k++)
    x->place[r][k] =
        (struct ni_blame_place){.name = k + 1, .at = k + 1, .order = k, .usual_us = us, .mean_us = us};
}

static struct ni_rank_lateness *judge(struct job *x, struct ni_lateness *w) {
  static bool crowded[BINS];
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.n_classes = 1;
  for (uint32_t r = 0; r < RANKS; r++) {
    x->rank[r].cls = 0;
    x->rank[r].team = x->b.island[r];
  }
  assert_int_equal(ni_lateness_begin(w, &x->b, crowded), 0);
  assert_int_equal(ni_lateness_judge(w), 0);
  return w->late;
}

/*
 * The last rank is late, and those of its island compute beside what they wait for it: less of that is seen
 * than on the other island, whose ranks look late beside them. But they wait where islands meet.
 */
static void test_waiting_island_is_not_late(void **state) {
  (void)state;
  for (int waits = 0; waits < 2; waits++) {
    struct job *x = new_job();
    struct ni_lateness w;
    run_job(x, waits ? 200 : 0, NULL);
    for (uint32_t r = 0; r < RANKS; r++)
      put_places(x, r, r < OF_ISLAND ? 90 : r == RANKS - 1 ? 105 : 75);
    const struct ni_rank_lateness *late = judge(x, &w);
    for (uint32_t r = 0; r < OF_ISLAND; r++)
      assert_int_equal(late[r].late, !waits);
    assert_true(!waits || late[RANKS - 1].late);
    ni_lateness_end(&w);
    free_job(x);
  }
}

/*
 * The last rank is late by half a step, and the CPUs of its island call as much later: they have launched as
 * far ahead as they may. By more than that they are slow.
 */
static void test_calls_behind_late_rank(void **state) {
  (void)state;
  for (int slow = 0; slow < 2; slow++) {
    struct job *x = new_job();
    struct ni_lateness w;
    run_job(x, 400, NULL);
    for (uint32_t r = 0; r < RANKS; r++) {
      put_places(x, r, r == RANKS - 1 ? 125 : 75);
      for (uint32_t k = 0; k < BINS; k++)
        x->cell[r][k].call_us = (r < OF_ISLAND ? 20 : slow ? 60 : 32) + 0.01f * (float)(k % 7);
    }
    const struct ni_rank_lateness *late = judge(x, &w);
    assert_true(late[RANKS - 1].late && !late[RANKS - 1].launch);
    for (uint32_t r = 0; r + 1 < RANKS; r++)
      assert_int_equal(late[r].launch, slow && r >= OF_ISLAND);
    ni_lateness_end(&w);
    free_job(x);
  }
}

/*
 * Kernels of a rank that computes longer begin as soon as they are launched, where its program launches no
 * further ahead: FSDP does so. That is no slow CPU, unless it calls more slowly as well.
 */
static void test_late_beside_operations(void **state) {
  (void)state;
  enum { LATE = RANKS - 1, ALIKE, SLOW_CALLS, ONE_COMM, HOWS };
  for (int how = ALIKE; how < HOWS; how++) {
    struct job *x = new_job();
    struct ni_lateness w;
    run_job(x, 0, NULL);
    for (uint32_t r = 0; r < RANKS; r++) {
      put_places(x, r, r == LATE ? 125 : 75);
      x->rank[r].one_comm = how == ONE_COMM;
      for (uint32_t k = 0; k < BINS; k++) {
        struct ni_blame_cell *c = &x->cell[r][k];
        c->call_us = (how == SLOW_CALLS && r == LATE ? 25 : 20) + 0.01f * (float)(k % 7);
        c->idle = r == LATE ? 500 : 300;
        c->late_idle = r == LATE ? 250 : 0;
      }
    }
    const struct ni_rank_lateness *late = judge(x, &w);
    assert_true(late[LATE].launch == (how != ALIKE));
    assert_true(late[LATE].late == (how == ALIKE));
    ni_lateness_end(&w);
    free_job(x);
  }
}

/* Rank r computes 20 % longer in two rows of bins, five each and as many apart. */
static void throttle(struct job *x, uint32_t r, uint32_t from) {
  for (uint32_t k = from; k < from + 15; k++)
    x->cell[r][k].dev = k < from + 5 || k >= from + 10 ? 0.2f * STEP_US / 2 : 0;
}

/*
 * The last rank is throttled in two bursts. As many others on another host look so, too: of two of them that
 * may be, of three it is chance. In a run of nineteen bins nobody is asked.
 */
static void test_bursts_by_chance(void **state) {
  (void)state;
  static const struct {
    uint32_t others, bins, bursts;
  } how[] = {{2, BINS, 2}, {3, BINS, 0}, {0, 20, 2}, {0, 19, 0}};
  for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
    struct job *x = new_job();
    struct ni_lateness w;
    run_job(x, 0, NULL);
    x->b.bins = how[i].bins;
    for (uint32_t r = 0; r < RANKS; r++) {
      x->process[r].host = r == RANKS - 1;
      put_places(x, r, 90);
    }
    throttle(x, RANKS - 1, 3);
    for (uint32_t r = 0; r < how[i].others; r++)
      throttle(x, r, 20 + 3 * r);
    assert_int_equal(judge(x, &w)[RANKS - 1].bursts, how[i].bursts);
    ni_lateness_end(&w);
    x->b.bins = BINS;
    free_job(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_islands),
      cmocka_unit_test(test_island_lengths),
      cmocka_unit_test(test_cost_of_exchange),
      cmocka_unit_test(test_exchange_is_no_evaluation),
      cmocka_unit_test(test_slow_exchanges),
      cmocka_unit_test(test_waiting_island_is_not_late),
      cmocka_unit_test(test_calls_behind_late_rank),
      cmocka_unit_test(test_late_beside_operations),
      cmocka_unit_test(test_bursts_by_chance),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
