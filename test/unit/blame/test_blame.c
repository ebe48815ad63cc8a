/* The rules of the judgement of `summary` one by one, at their thresholds: what is usual in a place, what own time is, steps, what causes cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/pass.h"
#include "exporter/model/sums/blame/places.h"
#include "exporter/model/sums/blame/replay.h"

static bool near(double got, double want) { return got > want - 0.5 && got < want + 0.5; }

/* A gap is longer than usual by what its place rarely waits for: a quarter and 200 us. */
static void test_room(void **state) {
  (void)state;
  assert_true(isnan(ni_usual_room(1000, 1450)));
  assert_true(near(ni_usual_room(1000, 1451), 700));
  assert_true(isnan(ni_usual_room(NAN, 1e9f)));
}

/* Two slots; the first is the place's own. In the first `alone` of 20 samples nothing else ended. */
static struct ni_usual usual_of(uint32_t n, uint32_t alone) {
  float gap[20][2];
  struct ni_usual u;
  for (uint32_t i = 0; i < n; i++) gap[i][0] = 1000 + (float)(i % 3), gap[i][1] = i < alone ? INFINITY : (float)(100 + i * 37 % 400);
  ni_usual_find(&u, gap[0], n, 2, 0, false);
  return u;
}

static void test_alone(void **state) {
  (void)state;
  struct ni_usual u = usual_of(4, 4);
  assert_true(isnan(u.us) && !u.steady && !u.alone); /* too few */
  u = usual_of(5, 5);
  assert_true(near(u.us, 1001) && u.steady && u.alone);
  u = usual_of(20, 16);
  assert_true(near(u.us, 1001) && u.alone && u.waits_for == 1);
  assert_false(usual_of(20, 15).alone);
}

/* One slot of collectives, and one of messages to each of three peers: a group. Times in us. */
struct job {
  struct ni_places x;
  struct ni_blame_rank rank;
  struct ni_blame_slot slot[4];
};

static struct job *new_job(void) {
  struct job *j = calloc(1, sizeof *j);
  j->rank = (struct ni_blame_rank){.slot = j->slot, .n_slots = 4};
  for (uint32_t i = 0; i < 4; i++) j->slot[i] = (struct ni_blame_slot){.comm = i > 0, .kind = i ? NI_BLAME_SEND : NI_BLAME_COLL, .peer = (int32_t)i};
  for (uint32_t i = 0; i < 4; i++) j->x.group[i] = i ? 1 : 0;
  j->x.heads = 3;
  j->x.overlap_ns = NI_PLACE_OVERLAP_LEAST_NS;
  j->x.out = &j->rank;
  return j;
}

static struct ni_place_gap gap(struct job *j, uint16_t slot, uint64_t sn, int64_t from_us, int64_t to_us) {
  const struct ni_blame_op op = {.start_ns = from_us * 1000, .end_ns = to_us * 1000, .sn = sn, .slot = slot, .token = slot};
  for (uint32_t i = 0; i < 4; i++) j->x.function[i] = i;
  struct ni_place_gap g = ni_places_gap(&j->x, &op);
  ni_places_take(&j->x, &op, (uint32_t)sn + 1);
  return g;
}

static void test_own_time(void **state) {
  (void)state;
  struct job *j = new_job();
  assert_int_equal(gap(j, 0, 0, 1000, 1100).own, -1); /* the first */
  struct ni_place_gap g = gap(j, 0, 1, 1300, 1400);
  assert_int_equal(g.own, 200000);
  assert_int_equal(g.idle, 200000);
  assert_int_equal(g.main.at, 1);
  assert_int_equal(gap(j, 1, 0, 1500, 1550).own, -1); /* a message: on a slot of its own */
  g = gap(j, 0, 2, 1700, 1800);
  assert_int_equal(g.own, 300000); /* since its own slot's end; */
  assert_int_equal(g.idle, 150000); /* idle since any */
  assert_int_equal(gap(j, 0, 4, 1900, 2000).own, -1); /* number 3 is missing */
  assert_int_equal(gap(j, 0, 5, 2100, 2200).own, 100000);
  free(j);
}

/* Stamps of back-to-back kernels overlap: what came before on the communicator has ended, and on others if by little. */
static void test_overlap(void **state) {
  (void)state;
  struct job *j = new_job();
  gap(j, 0, 0, 1000, 1100);
  gap(j, 0, 1, 1090, 1200); /* by 10 us: it is the one before */
  struct ni_place_gap g = gap(j, 0, 2, 1190, 1300);
  assert_int_equal(g.own, 0);
  assert_int_equal(g.main.at, 2);
  gap(j, 1, 3, 1310, 1401); /* a message: ends 1 us behind the start of what follows, */
  g = gap(j, 0, 3, 1400, 1500);
  assert_int_equal(g.own, 100000); /* which waits for its own slot; */
  assert_int_equal(g.idle, 0); /* the message has ended, too */
  gap(j, 1, 4, 1510, 1603);
  g = gap(j, 0, 4, 1600, 1700);
  assert_int_equal(g.idle, 90000); /* 3 us: that one runs beside */
  free(j);
}

/* Messages to several peers that begin at once are one: the others have no own time, and waited for what the first one did. */
static void test_group(void **state) {
  (void)state;
  struct job *j = new_job();
  gap(j, 1, 0, 1000, 1100);
  struct ni_place_gap first = gap(j, 2, 1, 1500, 1600), second = gap(j, 3, 2, 1500, 1620);
  assert_int_equal(first.own, 400000);
  assert_int_equal(second.own, -1);
  assert_int_equal(second.main.at, first.main.at);
  assert_int_equal(second.key, first.key);
  assert_int_equal(gap(j, 1, 3, 1900, 1950).main.at, 3); /* the last of them to end */
  assert_true(ni_places_grouped(&j->rank, 1) && !ni_places_grouped(&j->rank, 0));
  free(j);
}

/* `each` operations of one size and one of another on slot 1, `steps` times. Returns how many steps end. */
static uint32_t steps_in(unsigned steps, unsigned each, bool *found) {
  static struct ni_blame_op op[4096];
  struct ni_comm_row comm[2] = {{.n_ranks = 2}, {.n_ranks = 4}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[2] = {{.comm = 0, .ops = steps * each}, {.comm = 1, .ops = steps}};
  const char *func[2] = {"AllReduce", "AllReduce"};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2, .token_func = func, .n_tokens = 2};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0;
  for (unsigned i = 0; i < steps; i++)
    for (unsigned k = 0; k <= each; k++, n++)
      op[n] = (struct ni_blame_op){.start_ns = 1000000 + n * 1000, .end_ns = 1000500 + n * 1000, .sn = i * each + k, .token = k == each, .slot = k == each};
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  *found = m.found;
  for (uint32_t i = 0; m.found && i < n; i++) ends += ni_steps_take(&m, &op[i]);
  free(r);
  return ends;
}

/* Steps of 14 operations with short and long gaps, and two gradients in each, evenly apart: nothing comes once a step. */
static void test_period(void **state) {
  (void)state;
  enum { STEPS_HERE = 40, EACH = 14 };
  static struct ni_blame_op op[STEPS_HERE * (EACH + 2)];
  struct ni_comm_row comm[2] = {{.n_ranks = 2}, {.n_ranks = 4}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[2] = {{.comm = 0, .ops = STEPS_HERE * EACH}, {.comm = 1, .ops = STEPS_HERE * 2}};
  const char *func[2] = {"AllReduce", "AllReduce"};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2, .token_func = func, .n_tokens = 2};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0;
  int64_t t = 0;
  for (uint32_t i = 0; i < STEPS_HERE * EACH; i++) {
    t += (i % EACH < EACH / 2 ? 800000 : 1700000) + (int64_t)(i * 7919 % 20000);
    op[n++] = (struct ni_blame_op){.start_ns = t, .end_ns = t + 200000, .sn = i};
    if (i % (EACH / 2) == 3) op[n++] = (struct ni_blame_op){.start_ns = t + 300000, .end_ns = t + 400000, .sn = i / (EACH / 2), .token = 1, .slot = 1};
    t += 200000;
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++) ends += ni_steps_take(&m, &op[i]);
  assert_int_equal(ends, STEPS_HERE);
  /* As many as are asked for: here two of them. */
  assert_int_equal(ni_steps_find(&b, &rank, op, n, STEPS_HERE / 2, &m), 0);
  assert_true(m.found && m.size == 4);
  free(r);
}

/*
 * `steps` steps of `each` equal operations and a mark, with gaps that vary by chance; before each `pause_each`-th mark a pause of 60 ms. offset: the
 * marks of odd steps come so many operations later than in the middle of theirs.
 */
static uint32_t noisy_steps(uint32_t steps, uint32_t each, uint32_t pause_each, uint32_t offset) {
  static struct ni_blame_op op[8192];
  struct ni_comm_row comm[2] = {{.n_ranks = 2}, {.n_ranks = 4}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[2] = {{.comm = 0, .ops = steps * each}, {.comm = 1, .ops = steps}};
  const char *func[2] = {"AllReduce", "AllReduce"};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2, .token_func = func, .n_tokens = 2};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0, sn[2] = {0};
  int64_t t = 0;
  uint64_t x = 1;
  for (uint32_t i = 0; i < steps * each; i++) {
    const uint32_t step = i / each, at = i % each, mark_at = each / 2 - 1 + (step % 2 ? offset : 0);
    x = ni_mix(x + i);
    t += 400000 + (int64_t)(x % 200000) + (at == 0 && step % pause_each == 0 ? 60000000 : 0);
    op[n++] = (struct ni_blame_op){.start_ns = t, .end_ns = t + 100000, .sn = sn[0]++};
    t += 100000;
    if (at == mark_at) op[n++] = (struct ni_blame_op){.start_ns = t + 1000, .end_ns = t + 50000, .sn = sn[1]++, .token = 1, .slot = 1};
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++) ends += ni_steps_take(&m, &op[i]);
  free(r);
  return ends;
}

/* Neither chance nor a pause each so many steps makes several steps one; two marks that are not in the middle of their halves do. */
static void test_steps_by_order(void **state) {
  (void)state;
  static const uint32_t counts[] = {20, 43, 76, 100, 101, 150, 200, 301};
  for (uint32_t i = 0; i < 8; i++)
    for (uint32_t pause = 3; pause <= 8; pause++) {
      assert_int_equal(noisy_steps(counts[i], 4, pause, 0), counts[i]);
      assert_int_equal(noisy_steps(counts[i], 12, pause, 0), counts[i]);
    }
  assert_in_range(noisy_steps(100, 12, 200, 4), 49, 51);
}

static void test_steps(void **state) {
  (void)state;
  bool found;
  assert_in_range(steps_in(30, 6, &found), 28, 30); /* three in a row may be the mark */
  assert_int_equal(steps_in(5, 6, &found), 5);
  (void)steps_in(4, 6, &found);
  assert_false(found); /* fewer than five are no steps */
}

static void test_coarsen(void **state) {
  (void)state;
  struct ni_blame_cell cell[3] = {{.start_ns = 5, .dev = 1, .burst = 2, .places = 3}, {.start_ns = 9, .dev = 4, .burst = 8, .places = 5}, {.start_ns = 11, .dev = 7}};
  struct ni_blame_link_cell link[3] = {{1, 2, 3}, {10, 20, 30}, {5, 5, 5}};
  struct ni_blame_rank o = {.cell = cell, .link_cell = link, .max_slots = 1, .n_bins = 2, .bin_steps = 2};
  ni_blame_coarsen(&o);
  assert_true(o.n_bins == 1 && o.bin_steps == 4 && cell[0].start_ns == 5 && cell[0].places == 8);
  assert_true(near(cell[0].dev, 5) && near(cell[0].burst, 10) && near(link[0].exec, 11) && near(link[0].least, 22) && link[0].n == 33);
  assert_true(cell[1].start_ns == 0 && link[1].n == 0);
}

enum { STEPS = NI_BLAME_BLOCK, OWN = 100, LATE = 130, TRANSFER = 10 };

/* Two ranks with one operation in each step of a block; rank 1 computes 130 us before it instead of 100, once with a pause of 50 more. */
struct two {
  struct ni_blame b;
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
  t->b = (struct ni_blame){.rank = t->rank, .n_ranks = 2, .link = &t->link, .n_links = 1, .bins = STEPS, .bin_steps = 1, .steps = STEPS - 1, .sample_every = 1};
  for (uint32_t r = 0; r < 2; r++) {
    struct ni_blame_rank *o = &t->rank[r];
    *o = (struct ni_blame_rank){.judged = true, .slot = &t->slot, .n_slots = 1, .token_hash = &t->hash, .n_sample = STEPS, .sample_ns = r * 30000};
    o->last_ns = 1000 * (40 + (STEPS - 1) * (LATE + TRANSFER) + 50);
    o->sample = calloc(STEPS, sizeof *o->sample);
    for (uint32_t i = 0; i < STEPS; i++) {
      bool pause = i == 5 && r == 1;
      o->sample[i] = (struct ni_blame_sampled){.after_us = i ? LATE + TRANSFER : 0, .exec_us = TRANSFER + (r == 0 ? 30 : 0), .gap_us = r ? LATE + pause * 50 : OWN,
                                               .pause_us = (float)pause * 50, .sn = i, .step = i, .main = i > 0, .launched_late = i % 4 == 0};
    }
  }
  t->item = item;
  t->cause = &t->causes.item[0];
  *t->cause = (struct ni_cause){.kind = kind, .item = &t->item, .n_items = 1, .to = STEPS, .share = 0.3f, .of_gaps = 0.3f, .lead = {1, 1}};
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
  t->cause->from = 3, t->cause->to = 7;
  assert_true(near(cost(t), 30 * 4));
  t = new_two(NI_FIND_LATE_RANK, 1);
  t->cause->launch = true;
  assert_true(near(cost(t), 30)); /* step 4: the first has nothing before it */
  t = new_two(NI_FIND_LATE_RANK, 1); /* the other one runs ahead: the longest gap is all that it is late */
  t->cause->excess_us = 30, t->cause->lead = (struct ni_lead){0.5f, 0};
  assert_true(near(cost(t), 15 * STEPS));
  t = new_two(NI_FIND_SLOW_PAIR, 0);
  t->cause->links = true, t->cause->share = 1;
  assert_true(near(cost(t), STEPS * TRANSFER / 2));
  t = new_two(NI_FIND_LATE_RANK, 1); /* more is taken away than it is late: then the other one is waited for */
  t->cause->of_gaps = 1;
  assert_true(near(cost(t), 30 * (STEPS - 2) + LATE / 2));
}

/* Operations in another order on each rank wait for each other: somebody goes on. */
static void test_crossed(void **state) {
  (void)state;
  struct two *t = new_two(NI_FIND_LATE_RANK, 1);
  struct ni_replay out;
  for (uint32_t i = 0; i < STEPS; i++) t->rank[1].sample[i].sn = STEPS - 1 - i;
  assert_int_equal(ni_replay(&t->b, &t->causes, &out), 0);
  assert_int_equal(out.blocks, 1);
  free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_room),    cmocka_unit_test(test_alone),   cmocka_unit_test(test_own_time), cmocka_unit_test(test_group),   cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_steps),   cmocka_unit_test(test_period),   cmocka_unit_test(test_steps_by_order),   cmocka_unit_test(test_coarsen), cmocka_unit_test(test_replay),   cmocka_unit_test(test_crossed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
