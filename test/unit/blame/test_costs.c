/*
 * What a cause costs: two ranks, block by block of the replay.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/ranks/pass.h"
#include "exporter/model/sums/ranks/places.h"
#include "exporter/model/sums/blame/judge.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/blame/replay.h"
#include "exporter/model/sums/spells/spells.h"

static bool near(double got, double want) { return got > want - 0.5 && got < want + 0.5; }

enum { STEPS = NI_BLAME_BLOCK, OWN = 100, LATE = 130, TRANSFER = 10 };

/*
 * Two ranks with one operation in each step of a block; rank 1 computes 130 us before it instead of 100, once
 * with a pause of 50 more.
 */
struct two {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_comm_row comm;
  struct ni_process process;
  struct ni_blame_rank rank[2];
  struct ni_blame_slot slot;
  struct ni_blame_link link;
  uint64_t hash;
  struct ni_causes causes;
  struct ni_cause *cause;
  uint32_t item;
};

static struct two *new_two(enum ni_finding_kind kind, uint32_t item) {
  struct two *t = calloc(1, sizeof *t);
  t->s = (struct ni_summary){.comm = &t->comm, .n_comms = 1, .process = &t->process, .n_hosts = 1};
  t->b = (struct ni_blame){.s = &t->s,
                           .rank = t->rank,
                           .n_ranks = 2,
                           .link = &t->link,
                           .n_links = 1,
                           .bins = STEPS,
                           .bin_steps = 1,
                           .steps = STEPS - 1,
                           .sample_every = 1};
  for (uint32_t r = 0; r < 2; r++) {
    struct ni_blame_rank *o = &t->rank[r];
    *o = (struct ni_blame_rank){.judged = true,
                                .slot = &t->slot,
                                .n_slots = 1,
                                .one_comm = true,
                                .token_hash = &t->hash,
                                .n_sample = STEPS,
                                .sample_ns = r * 30000};
    o->last_ns = 1000 * (40 + (STEPS - 1) * (LATE + TRANSFER) + 50);
    o->sample = calloc(STEPS, sizeof *o->sample);
    for (uint32_t i = 0; i < STEPS; i++) {
      bool pause = i == 5 && r == 1;
      o->sample[i] = (struct ni_blame_sampled){.after_us = i ? LATE + TRANSFER : 0,
                                               .exec_us = TRANSFER + (r == 0 ? 30 : 0),
                                               .gap_us = r ? LATE + pause * 50 : OWN,
                                               .pause_us = (float)pause * 50,
                                               .sn = i,
                                               .step = i,
                                               .main = i > 0,
                                               .launched_late = i % 4 == 0};
    }
  }
  t->item = item;
  t->cause = &t->causes.item[0];
  *t->cause = (struct ni_cause){.kind = kind,
                                .item = &t->item,
                                .n_items = 1,
                                .to = STEPS,
                                .share = 0.3f,
                                .of_gaps = 0.3f,
                                .lead = {.part = 1, .apart = 1}};
  t->causes.n = 1;
  return t;
}

static double cost(struct two *t) {
  struct ni_replay out;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  double us = t->cause->cost_us;
  assert_int_equal(out.blocks, 1);
  assert_true(near(out.own * out.run_us + out.pauses * out.run_us + out.transfer * out.run_us, out.run_us));
  assert_true(near(out.pauses * out.run_us, 50) && near(out.transfer * out.run_us, STEPS * TRANSFER));
  assert_null(t->rank[0].sample);
  free(t);
  return us;
}

static void test_replay(void **state) {
  (void)state;
  assert_true(near(cost(new_two(NI_FIND_LATE_RANK, 1)), 30 * (STEPS - 1)));
  assert_true(cost(new_two(NI_FIND_LATE_RANK, 0)) == 0); /* nobody waits for it */
  assert_true(near(cost(new_two(NI_FIND_PAUSES, 1)), 50));
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  t->cause->from = 3;
  t->cause->to = 7;
  assert_true(near(cost(t), 30 * 4));
  t = new_two(NI_FIND_LATE_RANK, 1);
  t->cause->launch = true;
  assert_true(near(cost(t), 30));    /* step 4: the first has nothing before it */
  t = new_two(NI_FIND_LATE_RANK, 1); /* the other one runs ahead: the longest gap is all that it is late */
  t->cause->excess_us = 30;
  t->cause->lead = (struct ni_lead){.part = 0.5f};
  assert_true(near(cost(t), 15 * STEPS));
  t = new_two(NI_FIND_SLOW_PAIR, 0);
  t->cause->links = true;
  t->cause->share = 1;
  assert_true(near(cost(t), STEPS * TRANSFER / 2));
  /* more is taken away than it is late: then the other one is waited for */
  t = new_two(NI_FIND_LATE_RANK, 1);
  t->cause->of_gaps = 1;
  assert_true(near(cost(t), 30 * (STEPS - 2) + LATE / 2));
}

/* The GPU idled before it as a late CPU makes it: a pause there is the CPU's as well. */
static void test_pause_of_late_launch(void **state) {
  (void)state;
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  struct ni_replay out;
  t->cause->launch = true;
  t->rank[1].sample[4].gap_us += 200;
  t->rank[1].sample[4].pause_us = 200;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_true(near(t->cause->cost_us, 30 + 200));
  free(t);
}

/* A rank computes longer in some steps. One of them is long, since hosts exchange there what they learned. */
static void test_bursts_in_long_steps(void **state) {
  (void)state;
  enum { ALL = 40, US = 1000, LONG = 50000 };
  struct two *t = new_two(NI_FIND_THROTTLING, 1);
  static struct ni_blame_cell cell[ALL];
  struct ni_replay out;
  bool *at = calloc(ALL + 1, sizeof *at);
  int64_t begin = 1;
  for (uint32_t k = 0; k < ALL; k++) {
    at[k] = k >= 1 && k <= 4;
    cell[k].start_ns = begin;
    begin += (k == 2 ? LONG : US) * 1000;
  }
  for (uint32_t r = 0; r < 2; r++) {
    t->rank[r].cell = cell;
    t->rank[r].n_bins = ALL;
    t->rank[r].bin_steps = 1;
    t->rank[r].last_ns = begin;
  }
  t->b.bins = t->b.steps = t->cause->to = ALL;
  t->cause->at = at;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_true(t->cause->cost_us > 0 && t->cause->cost_us <= 2 * 30 * 4);
  free(at);
  free(t);
}

/*
 * Steps of 1 and of 4 ms in which a rank computes for 400 us, give or take 10: another one stops in the long
 * ones. Where it computes as long as its steps are, these are requests.
 */
static void test_steps_repeat(void **state) {
  (void)state;
  enum { ALL = 60 };
  struct ni_blame_cell cell[ALL] = {0};
  struct ni_blame_rank rank = {.cell = cell, .n_bins = ALL, .n_slots = 2};
  bool repeat = false;
  int64_t begin = 1;
  for (uint32_t k = 0; k < ALL; k++) {
    cell[k] = (struct ni_blame_cell){.start_ns = begin, .baseline = 400, .dev = (float)(k % 3) * 10};
    begin += 1000000 * (k % 2 ? 1 : 4);
  }
  assert_int_equal(ni_judge_repeat(&rank, &repeat), 0);
  assert_true(repeat);
  rank.one_comm = true; /* whatever else it waits for is not in the logs */
  assert_int_equal(ni_judge_repeat(&rank, &repeat), 0);
  assert_false(repeat);
  rank.one_comm = false;
  rank.sizes_differ = true;
  assert_int_equal(ni_judge_repeat(&rank, &repeat), 0);
  assert_false(repeat);
  rank.sizes_differ = false;
  for (uint32_t k = 0; k < ALL; k++)
    cell[k].dev = k % 2 ? 0 : 1600;
  assert_int_equal(ni_judge_repeat(&rank, &repeat), 0);
  assert_false(repeat);
  for (uint32_t k = 0; k < ALL; k++)
    cell[k] = (struct ni_blame_cell){.start_ns = cell[k].start_ns, .baseline = 10}; /* little is seen of it */
  assert_int_equal(ni_judge_repeat(&rank, &repeat), 0);
  assert_false(repeat);
}

/* What a link takes usually: as long as operations of that size on like links, and not a mean ratio less. */
static void test_usual_transfer(void **state) {
  (void)state;
  enum { OPS = 4 * STEPS };
  struct two *t = new_two(NI_FIND_SLOW_PAIR, 0);
  for (uint32_t r = 0; r < 2; r++) { /* the second link's operations, far quicker */
    struct ni_blame_rank *o = &t->rank[r];
    free(o->sample);
    o->sample = calloc(OPS, sizeof *o->sample);
    o->n_sample = OPS;
    for (uint32_t i = 0; i < OPS; i++)
      o->sample[i] = (struct ni_blame_sampled){.after_us = i ? 50 : 0,
                                               .exec_us = i % 2 ? 10 : 40,
                                               .gap_us = 10,
                                               .sn = i / 2,
                                               .step = i / 4,
                                               .slot = i % 2,
                                               .main = i > 0};
  }
  struct ni_blame_slot slot[2] = {{.link = 0}, {.link = 1}};
  struct ni_blame_link link[2] = {{.n_ranks = 2}, {.n_ranks = 2}};
  for (uint32_t r = 0; r < 2; r++) {
    t->rank[r].slot = slot;
    t->rank[r].n_slots = 2;
    t->rank[r].one_comm = false;
  }
  uint32_t both[2][2] = {{0, 1}, {0, 1}};
  link[0].rank = both[0];
  link[1].rank = both[1];
  t->b.link = link;
  t->b.n_links = 2;
  t->cause->links = true;
  t->cause->share = 1; /* it would be 20 us */
  struct ni_replay out;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_true(near(t->cause->cost_us, OPS / 2 * 30));
  free(t);
}

/* Uneven work costs what its messages take longer, too: those of its own alone. */
static void test_uneven_cost(void **state) {
  (void)state;
  uint32_t both[2] = {0, 1};
  for (uint32_t of = 0; of < 2; of++) {
    struct two *t = new_two(NI_FIND_UNEVEN, 1);
    /* of 1: between others */
    t->link = (struct ni_blame_link){.from = 0, .to = 1, .rank = both, .n_ranks = 2 - of};
    t->cause->of = 1;
    t->cause->more_bytes = 1;
    t->cause->of_gaps = 0;
    struct ni_replay out;
    assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
    assert_true(near(t->cause->cost_us, of ? 0 : STEPS * TRANSFER / 2));
    free(t);
  }
}

/*
 * Before what is launched late the GPU idles as long as it does there on ranks whose CPU is not slow: another
 * factor in each place.
 */
static void test_launch_cost(void **state) {
  (void)state;
  enum { OPS = 4 * STEPS };
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  uint32_t own[2][1] = {{0}, {1}};
  struct ni_blame_slot slot[2][2] = {{{.link = 0, .shape = 5}, {.link = 2, .shape = 6}},
                                     {{.link = 1, .shape = 5}, {.link = 2, .shape = 6}}};
  struct ni_blame_link link[3] = {{.rank = own[0], .n_ranks = 1}, {.rank = own[1], .n_ranks = 1}, {0}};
  /*
   * four operations of its own a step: rank 1 idles 40 us before the first and 100 before the others, rank 0
   * 40
   */
  for (uint32_t r = 0; r < 2; r++) {
    struct ni_blame_rank *o = &t->rank[r];
    free(o->sample);
    o->sample = calloc(OPS, sizeof *o->sample);
    o->n_sample = OPS;
    o->slot = slot[r];
    o->n_slots = 2;
    o->one_comm = false;
    for (uint32_t i = 0; i < OPS; i++)
      o->sample[i] = (struct ni_blame_sampled){.after_us = i ? 50 : 0,
                                               .exec_us = 10,
                                               .gap_us = r && i % 4 ? 100 : 40,
                                               .sn = i,
                                               .step = i / 4,
                                               .main = i > 0,
                                               .launched_late = r};
  }
  t->b.link = link;
  t->b.n_links = 3;
  t->cause->launch = true;
  t->cause->of_gaps = 0;
  struct ni_replay out;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_true(near(t->cause->cost_us, STEPS * 3 * 60));
  free(t);
}

/*
 * One communicator, in which the others wait for a slow CPU and compute what comes next meanwhile: from
 * launch to launch that takes twice as long as the others, as before the first operation of a step, where
 * nothing hides it. off: stamps hide in one step of four that its first operation is launched late.
 */
static double hidden_launch_cost(bool off) {
  enum { STEPS_HERE = 3 * NI_BLAME_BLOCK, EACH = 4, OPS = EACH * STEPS_HERE };
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  t->b.bins = STEPS_HERE;
  t->b.steps = STEPS_HERE - 1;
  t->cause->to = STEPS_HERE;
  t->cause->launch = true;
  t->cause->of_gaps = 0;
  for (uint32_t r = 0; r < 2; r++) {
    struct ni_blame_rank *o = &t->rank[r];
    free(o->sample);
    o->sample = calloc(OPS, sizeof *o->sample);
    o->n_sample = OPS;
    o->sample_ns = r * 200000;
    o->last_ns = 1000 * (STEPS_HERE * (400 + 3 * 100 + EACH * 50) - 200);
    for (uint32_t i = 0; i < OPS; i++) {
      /* The slow one comes last, and a transfer takes 50 us. The other one has waited before and after it. */
      const bool is_first = i % EACH == 0, is_second = i % EACH == 1;
      const float wait = r ? 0 : is_first ? 200 : 100, waited = r ? 0 : is_second ? 200 : 100;
      const float slow_gap = is_first ? 400 : 100, quick_gap = is_first ? 200 : 0;
      o->sample[i] = (struct ni_blame_sampled){.after_us = i ? 50 + waited + (r ? slow_gap : quick_gap) : 0,
                                               .exec_us = 50 + wait,
                                               .gap_us = r ? slow_gap : quick_gap,
                                               .sn = i,
                                               .step = i / EACH,
                                               .main = i > 0,
                                               .launched_late = r && !(off && is_first && i / EACH % 4 == 3)};
    }
  }
  struct ni_replay out;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_true(out.blocks == 3 && near(out.model, 1));
  const double us = t->cause->cost_us;
  free(t);
  return us;
}

static void test_hidden_launch_cost(void **state) {
  (void)state;
  /* 200 us of the first of each step but for each block's first, and (50 + 100) / 2 of each other one */
  const double most = 21 * 200 + 24 * 3 * 75, us = hidden_launch_cost(false);
  assert_true(us > 0.97 * most && us < 1.03 * most);
  const double off = hidden_launch_cost(true);
  assert_true(off > 0.97 * us && off < 1.03 * us);
}

/*
 * Three ranks meet twice in a step, behind 100 us of computing each. Rank 1 takes `first_us` the first time
 * and `second_us` the second time, rank 2 takes 200 us the second time. Returns what rank 1 is said to cost.
 */
static double cost_in_places(float first_us, float second_us) {
  enum { RANKS = 3, STEPS_HERE = 3 * NI_BLAME_BLOCK, OPS = 2 * STEPS_HERE };
  const float gap[RANKS][2] = {{100, 100}, {first_us, second_us}, {100, 200}};
  uint32_t late[2] = {1, 2};
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  struct ni_blame_rank rank[RANKS] = {0};
  double done = 0, end[RANKS] = {0};
  for (uint32_t r = 0; r < 2; r++) {
    free(t->rank[r].sample);
    rank[r] = t->rank[r];
  }
  rank[2] = rank[1];
  t->b.rank = rank;
  t->b.n_ranks = RANKS;
  t->b.n_classes = 1;
  t->b.bins = STEPS_HERE;
  t->b.steps = STEPS_HERE - 1;
  t->causes.item[1] = *t->cause;
  t->causes.n = 2;
  for (uint32_t k = 0; k < 2; k++) {
    struct ni_cause *c = &t->causes.item[k];
    c->item = &late[k];
    c->to = STEPS_HERE;
    c->of_gaps = (gap[late[k]][0] + gap[late[k]][1]) / 200 - 1;
  }
  for (uint32_t r = 0; r < RANKS; r++) {
    rank[r].sample = calloc(OPS, sizeof *rank[r].sample);
    rank[r].n_sample = OPS;
    rank[r].sample_ns = 0;
  }
  for (uint32_t i = 0; i < OPS; i++) {
    const double last = done + fmaxf(first_us, 100) * (i % 2 == 0) + fmaxf(second_us, 200) * (i % 2);
    for (uint32_t r = 0; r < RANKS; r++) {
      const double begun = done + (double)gap[r][i % 2];
      rank[r].sample[i] = (struct ni_blame_sampled){
          .after_us = (float)(i ? begun - end[r] : 0),
          .exec_us = (float)(last + TRANSFER - begun),
          .gap_us = gap[r][i % 2],
          .sn = i,
          .step = i / 2,
          .main = i > 0,
      };
      end[r] = begun;
    }
    done = last + TRANSFER;
  }
  for (uint32_t r = 0; r < RANKS; r++)
    rank[r].last_ns = (int64_t)(done * 1e3);
  struct ni_replay out;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_int_equal(out.blocks, 3);
  const double us = t->cause->cost_us;
  free(t);
  return us;
}

/*
 * What is late in one place of the step does not hide what is late in another. All of it lies in the first
 * place, and each block's first operation has nothing before it. Where a rank takes shorter than its like in
 * a place it waits for something else there: then its own time is shorter by one factor.
 */
static void test_cost_in_places(void **state) {
  (void)state;
  const double said = cost_in_places(200, 100), most = 21 * 100;
  assert_true(said > 0.93 * most && said < 1.07 * most);
  const double untold = cost_in_places(300, 20), factor = 21 * (300 - 300 / 1.6);
  assert_true(untold > 0.99 * factor && untold < 1.01 * factor);
}

/* Two ranks are late as one, both by themselves or the first one since it waits for the second. */
static struct ni_cause judge_together(bool both) {
  struct two *t = new_two(NI_FIND_UNEVEN, 0);
  uint32_t items[2] = {0, 1};
  t->cause->level = NI_LEVEL_REPLICA;
  t->cause->item = items;
  t->cause->n_items = 2;
  t->cause->excess_us = 30;
  for (uint32_t i = 0; both && i < STEPS; i++) {
    t->rank[0].sample[i].gap_us = LATE;
    t->rank[0].sample[i].exec_us = TRANSFER;
  }
  assert_int_equal(ni_judge_together(&t->b, &t->causes), 0);
  const struct ni_cause found = *t->cause;
  free(t->rank[0].sample);
  free(t->rank[1].sample);
  free(t);
  return found;
}

static void test_one_of_together(void **state) {
  (void)state;
  const struct ni_cause one = judge_together(false), all = judge_together(true);
  assert_true(one.kind == NI_FIND_LATE_RANK && one.level == NI_LEVEL_RANK && one.of == 1 && one.n_items == 1);
  assert_true(all.kind == NI_FIND_UNEVEN && all.level == NI_LEVEL_REPLICA && all.n_items == 2);
}

/* Operations in another order on each rank wait for each other: somebody goes on. */
static void test_crossed(void **state) {
  (void)state;
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  struct ni_replay out;
  for (uint32_t i = 0; i < STEPS; i++)
    t->rank[1].sample[i].sn = STEPS - 1 - i;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_int_equal(out.blocks, 1);
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_replay),
      cmocka_unit_test(test_pause_of_late_launch),
      cmocka_unit_test(test_bursts_in_long_steps),
      cmocka_unit_test(test_steps_repeat),
      cmocka_unit_test(test_usual_transfer),
      cmocka_unit_test(test_uneven_cost),
      cmocka_unit_test(test_launch_cost),
      cmocka_unit_test(test_hidden_launch_cost),
      cmocka_unit_test(test_cost_in_places),
      cmocka_unit_test(test_one_of_together),
      cmocka_unit_test(test_crossed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
