/*
 * The rules of the judgement of `summary` one by one, at their thresholds: what is usual in a place, what own
 * time is, and steps. What causes cost: test_causes.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/ranks/cells.h"
#include "exporter/model/sums/ranks/pass.h"
#include "exporter/model/sums/ranks/overlaps.h"
#include "exporter/model/sums/ranks/places.h"
#include "exporter/model/sums/ranks/usual_step.h"
#include "exporter/model/sums/blame/replay.h"

static bool near(double got, double want) { return got > want - 0.5 && got < want + 0.5; }

/* Two slots; the first is the place's own. In the first `alone` of 20 samples nothing else ended. */
static struct ni_baseline usual_of(uint32_t n, uint32_t alone) {
  float gap[20][2];
  struct ni_baseline u;
  for (uint32_t i = 0; i < n; i++) {
    gap[i][0] = 1000 + (float)(i % 3);
    gap[i][1] = i < alone ? INFINITY : (float)(100 + i * 37 % 400);
  }
  ni_baseline_find(&u, gap[0], n, 2, 0, false, 2);
  return u;
}

static void test_alone(void **state) {
  (void)state;
  struct ni_baseline u = usual_of(4, 4);
  assert_true(isnan(u.us) && !u.steady && !u.alone); /* too few */
  u = usual_of(5, 5);
  assert_true(near(u.us, 1001) && u.steady && u.alone);
  u = usual_of(20, 16);
  assert_true(near(u.us, 1001) && u.alone && u.waits_for == 1);
  assert_false(usual_of(20, 15).alone);
}

/* The first operation of a step waits for the one that ended the step before, on another slot. */
static void test_first_of_step(void **state) {
  (void)state;
  float gap[20][2];
  struct ni_baseline u;
  for (uint32_t i = 0; i < 20; i++) {
    gap[i][1] = 1000 + (float)(i % 3);
    gap[i][0] = gap[i][1] + (float)(i * 37 % 400);
  }
  ni_baseline_find(&u, gap[0], 20, 2, 0, true, 2);
  assert_true(near(u.us, 1001) && u.steady && u.waits_for == 3 && u.alone);
  ni_baseline_find(&u, gap[0], 20, 2, 0, false, 2);
  assert_false(u.alone);              /* elsewhere both may have been waited for */
  for (uint32_t i = 0; i < 20; i++) { /* input comes late by chance */
    gap[i][1] = 9000 + (float)(i * 13 % 20) * 1000;
    gap[i][0] = gap[i][1] + 4000 + (float)(i * 37 % 400);
  }
  ni_baseline_find(&u, gap[0], 20, 2, 0, true, 2);
  assert_true(u.us > 15000 && u.us < 23000 && u.steady && u.alone);
  ni_baseline_find(&u, gap[0], 20, 2, 0, false, 2);
  assert_false(u.steady);
}

/*
 * Where nothing else can have been waited for before the first operation of a step, times that vary are the
 * rank's own: a loader that is late.
 */
static void test_own_times_vary(void **state) {
  (void)state;
  float gap[20][2];
  struct ni_baseline u;
  for (uint32_t i = 0; i < 20; i++) {
    gap[i][0] = 28000 + (float)(i * 13 % 20) * 4000;
    gap[i][1] = INFINITY;
  }
  ni_baseline_find(&u, gap[0], 20, 2, 0, true, 2);
  assert_true(u.us > 50000 && u.us < 80000 && u.steady && u.alone);
  ni_baseline_find(&u, gap[0], 20, 2, 0, false, 2);
  assert_false(u.steady);
  for (uint32_t i = 0; i < 20; i += 2)
    gap[i][1] = 20000; /* another one ends in it: it may have been waited for */
  ni_baseline_find(&u, gap[0], 20, 2, 0, true, 2);
  assert_false(u.alone);
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
  for (uint32_t i = 0; i < 4; i++)
    j->slot[i] =
        (struct ni_blame_slot){.comm = i > 0, .kind = i ? NI_BLAME_SEND : NI_BLAME_COLL, .peer = (int32_t)i};
  for (uint32_t i = 0; i < 4; i++)
    j->x.group[i] = i ? 1 : 0;
  j->x.heads = 3;
  j->x.overlap_ns = NI_PLACE_OVERLAP_LEAST_NS;
  j->x.out = &j->rank;
  return j;
}

static struct ni_place_gap gap(struct job *j, uint16_t slot, uint64_t sn, int64_t from_us, int64_t to_us) {
  const struct ni_blame_op op = {.start_ns = from_us * 1000,
                                 .end_ns = to_us * 1000,
                                 .sn = sn,
                                 .slot = slot,
                                 .token = slot,
                                 .what = slot};
  static const uint16_t function[4] = {0, 1, 2, 3};
  j->x.function = function;
  struct ni_place_gap g = ni_places_measure_gap(&j->x, &op);
  ni_places_count(&j->x, &op, (uint32_t)sn + 1);
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
  assert_int_equal(g.own, 300000);                    /* since its own slot's end; */
  assert_int_equal(g.idle, 150000);                   /* idle since any */
  assert_int_equal(gap(j, 0, 4, 1900, 2000).own, -1); /* number 3 is missing */
  assert_int_equal(gap(j, 0, 5, 2100, 2200).own, 100000);
  ni_places_next_step(&j->x);
  /* number 6 is missing: in this place for the first time; */
  assert_int_equal(gap(j, 0, 7, 2400, 2500).own, -1);
  ni_places_next_step(&j->x);
  assert_int_equal(gap(j, 0, 9, 2700, 2800).own, 200000); /* each time: it is left out */
  free(j);
}

/*
 * Stamps of back-to-back kernels overlap: what came before on the communicator has ended, and on others if by
 * little.
 */
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
  assert_int_equal(g.idle, 0);     /* the message has ended, too */
  gap(j, 1, 4, 1510, 1603);
  g = gap(j, 0, 4, 1600, 1700);
  assert_int_equal(g.idle, 90000); /* 3 us: that one runs beside */
  free(j);
}

/*
 * Where stamps are off by more than messages take, one that had just begun is not yet over: a Recv does not
 * wait for the Send in its kernel. So each side would wait for the other's.
 */
static void test_in_one_kernel(void **state) {
  (void)state;
  struct job *j = new_job();
  j->x.overlap_ns = 120000;
  gap(j, 0, 0, 1000, 1100);
  gap(j, 1, 0, 1500, 1600);
  assert_int_equal(gap(j, 0, 1, 1510, 1610).idle, 10000); /* began 10 us ago: it is beside */
  gap(j, 1, 1, 2000, 2600);
  assert_int_equal(gap(j, 0, 2, 2500, 2600).idle, 0); /* it is over, and its stamp is off by 100 us */
  free(j);
}

/*
 * Messages to several peers that begin at once are one: the others have no own time, and waited for what the
 * first one did.
 */
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
  assert_true(ni_places_is_group(&j->rank, 1) && !ni_places_is_group(&j->rank, 0));
  free(j);
}

/*
 * Two groups of messages a step, that begin one after the other as they may, and a collective. How long the
 * rank computes before the second group differs by much. The messages that follow the first one of a group
 * are no places: if they were, most of its own time would lie in places where nothing else is waited for.
 */
static void test_places_of_groups(void **state) {
  (void)state;
  enum { STEPS_HERE = 60, EACH = 7 };
  static struct ni_blame_op op[STEPS_HERE * EACH];
  static const uint16_t function[4] = {0, 1, 2, 3};
  struct job *j = new_job();
  const struct ni_step_mark mark = {.found = true, .slot = 0, .gap_ns = 1000000};
  int64_t t = 1000000;
  uint32_t n = 0, inner = 0;
  j->x.function = function;
  for (uint32_t i = 0; i < STEPS_HERE; i++) {
    for (uint32_t k = 0; k < EACH; k++) {
      const uint16_t slot = k < EACH - 1 ? 1 + (uint16_t)((k % 3 + i) % 3) : 0;
      if (k % 3 == 0) /* it computes */
        t += k == 3 ? 1000000 + (int64_t)(i * 7919 % 1000) * 1500 : 3000000 + (int64_t)(i * 31 % 7) * 1000;
      op[n++] = (struct ni_blame_op){.start_ns = t + (int64_t)(k % 3) * 100,
                                     .end_ns = t + 500000,
                                     .sn = i,
                                     .slot = slot,
                                     .token = slot,
                                     .what = slot};
      if (k % 3 == 2 || k == EACH - 1)
        t += 500000;
    }
  }
  assert_int_equal(ni_places_find(&j->x, op, n, &mark), 0);
  for (uint32_t i = 0; i < NI_PLACE_KEYS; i++) {
    const struct ni_place_key *k = &j->x.key[i];
    inner += k->name && ni_place_is_compared(&j->x, k);
  }
  assert_true(j->x.inner[0]); /* one collective, and two groups: not six messages */
  assert_int_equal(inner, 2); /* before the first group, and before the collective */
  ni_places_free(&j->x);
  free(j);
}

/*
 * A collective on slot 0 ends each step. On another one a step has ten or eleven of them in turn, or as many
 * as it happens to have, ten in the mean: then their number in the step does not follow from how many there
 * were before.
 */
static void test_places_of_varying_steps(void **state) {
  (void)state;
  enum { STEPS_HERE = 60, EACH = 10 };
  static struct ni_blame_op op[STEPS_HERE * 20];
  static const uint16_t function[2] = {0, 1};
  const struct ni_step_mark mark = {.found = true, .slot = 0, .gap_ns = 1};
  for (int varies = 0; varies < 2; varies++) {
    struct job *j = new_job();
    int64_t t = 1000000;
    uint32_t n = 0;
    uint64_t sn = 0;
    j->slot[1].kind = NI_BLAME_COLL;
    j->rank.n_slots = 2;
    j->x.function = function;
    for (uint32_t i = 0; i < STEPS_HERE; i++) {
      const uint32_t third = i / 20 % 3, by_chance = third == 0 ? 8 : third == 1 ? 12 : 10;
      const uint32_t ops = varies ? by_chance : EACH + i % 2 - (i % 4 == 3 ? 2 : 0);
      for (uint32_t k = 0; k <= ops; k++) {
        const uint16_t slot = k < ops;
        op[n++] = (struct ni_blame_op){.start_ns = t,
                                       .end_ns = t + 500000,
                                       .sn = slot ? sn++ : i,
                                       .slot = slot,
                                       .token = slot,
                                       .what = slot};
        t += 1500000;
      }
    }
    assert_int_equal(ni_places_find(&j->x, op, n, &mark), 0);
    assert_int_equal(j->x.per_step[1], varies ? 0 : EACH);
    ni_places_free(&j->x);
    free(j);
  }
}

/* A rank has one communicator, and exchanges with others each fifth step; or in each. */
static void test_one_communicator(void **state) {
  (void)state;
  enum { STEPS_HERE = 60 };
  static struct ni_blame_op op[STEPS_HERE * 2];
  static const uint16_t function[2] = {0, 1};
  const struct ni_step_mark mark = {.found = true, .slot = 0, .gap_ns = 1};
  for (uint32_t each = 1; each <= 5; each += 4) {
    struct job *j = new_job();
    int64_t t = 1000000;
    uint32_t n = 0;
    j->slot[1].kind = NI_BLAME_COLL;
    j->rank.n_slots = j->rank.n_tokens = 2;
    j->x.function = function;
    for (uint32_t i = 0; i < STEPS_HERE; i++)
      for (uint16_t slot = 0; slot < (i % each == 0 ? 2 : 1); slot++, t += 1500000)
        op[n++] = (struct ni_blame_op){.start_ns = t,
                                       .end_ns = t + 500000,
                                       .sn = i / (slot ? each : 1),
                                       .slot = slot,
                                       .token = slot,
                                       .what = slot};
    assert_int_equal(ni_places_find(&j->x, op, n, &mark), 0);
    assert_int_equal(j->rank.one_comm, each > 1);
    ni_places_free(&j->x);
    free(j);
  }
}

/* Of several operations that come once a step that one ends it which ends those of most ranks. */
static void test_usual_mark(void **state) {
  (void)state;
  enum { STEPS_HERE = 40 };
  static struct ni_blame_op op[STEPS_HERE * 5];
  struct ni_comm_row comm = {.n_ranks = 4};
  struct ni_summary s = {.comm = &comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot = {.ops = STEPS_HERE * 5};
  const char *func[3] = {"AllReduce", "AllReduce", "AllGather"};
  uint64_t hash[3] = {11, 12, 13};
  struct ni_blame_rank rank = {
      .slot = &slot, .n_slots = 1, .token_func = func, .n_tokens = 3, .token_hash = hash};
  struct ni_step_mark m, other;
  for (uint32_t n = 0; n < STEPS_HERE * 5; n++) {
    const uint32_t at = n % 5, what = at == 4 ? 1 : at == 2 ? 2 : 0;
    op[n] = (struct ni_blame_op){.start_ns = n * 1000 + (at == 0 ? 400 : 0),
                                 .end_ns = n * 1000 + 500,
                                 .sn = n,
                                 .token = what,
                                 .what = what};
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, STEPS_HERE * 5, 0, &m), 0);
  assert_true(m.found && m.token == 1); /* more own time lies behind it */
  assert_true(m.could_be[0] && m.could_be[1] && !m.could_be[2]);
  rank.usual_mark = m.could_be[m.could_be[0] == m.kind];
  assert_int_equal(ni_steps_find(&b, &rank, op, STEPS_HERE * 5, STEPS_HERE, &other), 0);
  assert_true(other.found && other.token == 2 && other.kind == rank.usual_mark);
  free(r);
}

/* What began as soon as it was launched waited for its CPU, and for nothing that ended before. */
static void test_launched_late(void **state) {
  (void)state;
  struct job *j = new_job();
  gap(j, 0, 0, 1000, 1100);
  gap(j, 1, 0, 1100, 3000);
  struct ni_blame_op op = {.start_ns = 6000000, .end_ns = 6100000, .sn = 1};
  ni_places_measure_gap(&j->x, &op); /* makes its place */
  j->x.key[j->x.key_of_group[0]].baseline.us = 2000;
  assert_int_equal(ni_places_measure_gap(&j->x, &op).main.ns, 3000000);
  op.launched_late = true;
  assert_int_equal(ni_places_measure_gap(&j->x, &op).main.ns,
                   3000000); /* a host that waited for the network */
  j->x.waits_for_cpu = true;
  assert_int_equal(ni_places_measure_gap(&j->x, &op).main.ns, 1100000);
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
      op[n] = (struct ni_blame_op){.start_ns = 1000000 + n * 1000,
                                   .end_ns = 1000500 + n * 1000,
                                   .sn = i * each + k,
                                   .token = k == each,
                                   .what = k == each,
                                   .slot = k == each};
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  *found = m.found;
  for (uint32_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  free(r);
  return ends;
}

/*
 * Steps of 14 operations with short and long gaps, and two gradients in each, evenly apart: nothing comes
 * once a step.
 */
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
    if (i % (EACH / 2) == 3)
      op[n++] = (struct ni_blame_op){.start_ns = t + 300000,
                                     .end_ns = t + 400000,
                                     .sn = i / (EACH / 2),
                                     .token = 1,
                                     .what = 1,
                                     .slot = 1};
    t += 200000;
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  assert_int_equal(ends, STEPS_HERE);
  /* As many as are asked for: here two of them. */
  assert_int_equal(ni_steps_find(&b, &rank, op, n, STEPS_HERE / 2, &m), 0);
  assert_true(m.found && m.size == 4);
  free(r);
}

/*
 * `steps` steps of `each` equal operations and a mark, with gaps that vary by chance; before each
 * `pause_each`-th mark a pause of 60 ms. offset: the marks of odd steps come so many operations later than in
 * the middle of theirs.
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
    if (at == mark_at)
      op[n++] = (struct ni_blame_op){
          .start_ns = t + 1000, .end_ns = t + 50000, .sn = sn[1]++, .token = 1, .what = 1, .slot = 1};
  }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  free(r);
  return ends;
}

/*
 * Neither chance nor a pause each so many steps makes several steps one; two marks that are not in the middle
 * of their halves do.
 */
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

/*
 * How many steps end in n operations of a rank with so many slots, each on a communicator larger than the one
 * before.
 */
static uint32_t steps_of_function(const struct ni_blame_op *op, size_t n, uint32_t slots, const char *name) {
  struct ni_comm_row comm[3] = {{.n_ranks = 2}, {.n_ranks = 4}, {.n_ranks = 8}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[3] = {{.comm = 0}, {.comm = 1}, {.comm = 2}};
  const char *func[4] = {name, name, "AllReduce", "AllReduce"};
  uint64_t bytes[4] = {1 << 18, 1 << 20, 1 << 20, 4};
  struct ni_blame_rank rank = {
      .slot = slot, .n_slots = slots, .token_func = func, .token_bytes = bytes, .n_tokens = 4};
  struct ni_step_mark m;
  uint32_t ends = 0;
  for (size_t i = 0; i < n; i++)
    slot[op[i].slot].ops++;
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (size_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  free(r);
  return ends;
}

static uint32_t steps_of(const struct ni_blame_op *op, size_t n, uint32_t slots) {
  return steps_of_function(op, n, slots, "AllReduce");
}

/*
 * How many steps end in `steps` times `step` on one communicator, with `more` before each `each`-th of them.
 * A letter is a kind of operation: a is 4 B, b 8 B, others 1 MB; from f on none is an AllReduce.
 */
static uint32_t steps_with_more(const char *step, uint32_t steps, const char *more, uint32_t each) {
  static struct ni_blame_op op[8192];
  const char *func[8] = {"AllReduce", "AllReduce", "AllReduce", "AllReduce",
                         "AllReduce", "AllGather", "AllGather", "AllGather"};
  uint64_t bytes[8] = {4, 8, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20};
  struct ni_comm_row comm = {.n_ranks = 8};
  struct ni_summary s = {.comm = &comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot = {.comm = 0};
  struct ni_blame_rank rank = {
      .slot = &slot, .n_slots = 1, .token_func = func, .token_bytes = bytes, .n_tokens = 8};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0;
  for (uint32_t i = 0; i < steps; i++)
    for (int part = 0; part < 2; part++)
      for (const char *c = part ? step : i % each == 0 ? more : ""; *c; c++, n++)
        op[n] = (struct ni_blame_op){.start_ns = 1000000 * ((int64_t)n + 1),
                                     .end_ns = 1000000 * ((int64_t)n + 1) + 400000,
                                     .sn = n,
                                     .token = (uint32_t)(*c - 'a'),
                                     .what = (uint32_t)(*c - 'a')};
  slot.ops = n;
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  free(r);
  return ends;
}

/*
 * A barrier before each checkpoint ends no step: neither one that looks like the loss of each step, nor one
 * of its own. Four micro-batches of a step are none either.
 */
static void test_checkpoints_end_no_step(void **state) {
  (void)state;
  assert_in_range(steps_with_more("ca", 240, "a", 30), 239, 240);
  assert_in_range(steps_with_more("ecccccccccccca", 40, "a", 8), 39, 40);
  assert_in_range(steps_with_more("dccccccccbe", 44, "a", 8), 43, 44);
  assert_in_range(steps_with_more("cdcdcdcde", 15, "", 1), 14, 15);
  /* an evaluation of four steps' operations: the norm says how many steps there are, and nothing else does */
  assert_in_range(steps_with_more("cccccccca", 156, "ccccccccccccccccccccccccccccccccccccb", 12), 155, 156);
}

/* A loss that is looked at each tenth step: the gradients say how many there are, and those of layers do not. */
static void test_steps_by_gradients(void **state) {
  (void)state;
  assert_in_range(steps_with_more("dcccccc", 120, "a", 10), 119, 120);
  assert_in_range(steps_with_more("dcccccc", 400, "a", 10), 399, 400);
  assert_in_range(steps_with_more("dccdcca", 40, "", 1), 39, 40); /* two micro-batches and a norm */
  assert_in_range(steps_with_more("cccccca", 40, "", 1), 39, 40);
  /* a norm in each step, and a loss of the same size behind it now and then */
  assert_in_range(steps_with_more("fgfgfga", 200, "a", 10), 199, 200);
  assert_in_range(steps_with_more("afafafafaa", 100, "", 1), 99, 100);
}

/* Layers and a norm of those that share a model, and a loss on all ranks each tenth step. */
static void test_steps_by_norms(void **state) {
  (void)state;
  enum { STEPS_HERE = 300, LAYERS = 6 };
  static struct ni_blame_op op[STEPS_HERE * (LAYERS + 2)];
  const char *func[3] = {"AllGather", "AllReduce", "AllReduce"};
  uint64_t bytes[3] = {1 << 20, 4, 4};
  struct ni_comm_row comm[2] = {{.n_ranks = 4}, {.n_ranks = 8}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[2] = {{.comm = 0}, {.comm = 1}};
  struct ni_blame_rank rank = {
      .slot = slot, .n_slots = 2, .token_func = func, .token_bytes = bytes, .n_tokens = 3};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0;
  for (uint32_t i = 0; i < STEPS_HERE; i++)
    for (uint32_t k = 0; k <= LAYERS + (i % 10 == 9); k++, n++) {
      const uint32_t token = k < LAYERS ? 0 : k == LAYERS ? 1 : 2;
      op[n] = (struct ni_blame_op){.start_ns = 1000000 * ((int64_t)n + 1),
                                   .end_ns = 1000000 * ((int64_t)n + 1) + 400000,
                                   .sn = n,
                                   .token = token,
                                   .what = token,
                                   .slot = token == 2};
      slot[token == 2].ops++;
    }
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  for (uint32_t i = 0; m.found && i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  assert_in_range(ends, STEPS_HERE - 1, STEPS_HERE);
  free(r);
}

/* Adds operations of slot 0, and one of slot 1 behind them. */
static uint32_t add_until_bucket(struct ni_blame_op *op, uint32_t n, uint32_t layers) {
  static uint32_t sn[2];
  for (uint32_t i = 0; i <= layers; i++, n++) {
    const uint32_t slot = i == layers;
    op[n] = (struct ni_blame_op){.start_ns = 1000000 * ((int64_t)n + 1),
                                 .end_ns = 1000000 * ((int64_t)n + 1) + 400000,
                                 .sn = sn[slot]++,
                                 .token = slot,
                                 .what = slot,
                                 .slot = (uint16_t)slot};
  }
  return n;
}

/*
 * Twelve layers and three equal buckets of gradients a step. Buckets overlap with the last layers, so between
 * which of these each of them begins differs from step to step. Where it differs by chance and nothing comes
 * again, each bucket is a step.
 */
static void test_steps_of_overlapped_buckets(void **state) {
  (void)state;
  enum { STEPS_HERE = 200 };
  static const uint32_t orders[4][3] = {{10, 1, 1}, {7, 4, 1}, {7, 3, 2}, {9, 2, 1}};
  static struct ni_blame_op op[STEPS_HERE * 64];
  uint32_t n = 0;
  uint64_t x = 1;
  for (uint32_t i = 0; i < STEPS_HERE; i++) {
    x = ni_mix(x + i);
    for (uint32_t k = 0; k < 3; k++)
      n = add_until_bucket(op, n, orders[x % 4][k]);
  }
  assert_in_range(steps_of(op, n, 2), STEPS_HERE - 1, STEPS_HERE);
  n = 0;
  for (uint32_t i = 0; i < STEPS_HERE; i++) {
    x = ni_mix(x + i);
    n = add_until_bucket(op, n, 4 + (uint32_t)(x % 8));
  }
  assert_int_equal(steps_of(op, n, 2), STEPS_HERE);
}

/*
 * Three equal operations a step, and nothing else: a long gap tells, and a pause within a step begins none.
 */
static void test_steps_by_gaps(void **state) {
  (void)state;
  enum { STEPS_HERE = 100, EACH = 3 };
  struct ni_blame_op op[STEPS_HERE * EACH];
  int64_t t = 0;
  for (uint32_t i = 0; i < STEPS_HERE * EACH; i++) {
    const bool pause = i % EACH == 1 && i / EACH % 5 == 0;
    t += i % EACH == 0 ? 15000000 : pause ? 22000000 : 2000000;
    op[i] = (struct ni_blame_op){.start_ns = t, .end_ns = t + 3000000, .sn = i};
    t += 3000000;
  }
  assert_int_equal(steps_of(op, STEPS_HERE * EACH, 1), STEPS_HERE);
}

/*
 * What comes in each batch of two evaluations, on a communicator that has nothing else, is no step of the
 * training.
 */
static void test_steps_beside_evaluation(void **state) {
  (void)state;
  enum { STEPS_HERE = 60, EACH = 12, BATCHES = 25, OF_BATCH = 4 };
  static struct ni_blame_op op[STEPS_HERE * (EACH + 1) + 2 * BATCHES * (OF_BATCH + 1)];
  uint32_t n = 0, sn[3] = {0};
  for (uint32_t i = 0; i < STEPS_HERE; i++) {
    for (uint32_t k = 0; k <= EACH; k++, n++) {
      const uint16_t slot = k == EACH;
      op[n] = (struct ni_blame_op){.start_ns = n * 1000,
                                   .end_ns = n * 1000 + 500,
                                   .sn = sn[slot]++,
                                   .token = slot,
                                   .what = slot,
                                   .slot = slot};
    }
    for (uint32_t k = 0; (i == 20 || i == 40) && k < BATCHES * (OF_BATCH + 1); k++, n++) {
      const uint16_t slot = k % (OF_BATCH + 1) == OF_BATCH ? 2 : 0;
      op[n] = (struct ni_blame_op){.start_ns = n * 1000,
                                   .end_ns = n * 1000 + 500,
                                   .sn = sn[slot]++,
                                   .token = slot,
                                   .what = slot,
                                   .slot = slot};
    }
  }
  assert_int_equal(steps_of(op, n, 3), STEPS_HERE);
}

/*
 * Hosts that train by themselves, `each` operations of two sizes a step, and exchange what they learned every
 * `of_round` steps, four operations, with a loss of all ranks. func: of a step's operations.
 */
static uint32_t steps_in_rounds(uint32_t rounds, uint32_t of_round, uint32_t each, const char *func) {
  enum { OF_ROUND = 20 };
  static struct ni_blame_op op[50 * (OF_ROUND * 8 + 5)];
  uint32_t n = 0, sn[3] = {0};
  for (uint32_t i = 0; i < rounds; i++)
    for (uint32_t k = 0; k < of_round * each + 5; k++, n++) {
      const uint32_t rest = of_round * each + 4;
      const uint16_t slot = k == rest ? 2 : k >= of_round * each;
      const uint32_t what = slot ? slot + 1u : k % each != 0;
      op[n] = (struct ni_blame_op){.start_ns = n * 1000,
                                   .end_ns = n * 1000 + 500,
                                   .sn = sn[slot]++,
                                   .token = what,
                                   .what = what,
                                   .slot = slot};
    }
  return steps_of_function(op, n, 3, func);
}

/*
 * Nobody can be judged by a few rounds, but by the steps in them. Of more rounds gradients say that they are
 * none: they are added up once a step. Other operations can be of micro-batches.
 */
static void test_steps_in_rounds(void **state) {
  (void)state;
  assert_int_equal(steps_in_rounds(9, 20, 5, "AllGather"), 180);
  assert_int_equal(steps_in_rounds(30, 20, 5, "AllGather"), 30);
  assert_int_equal(steps_in_rounds(30, 20, 5, "AllReduce"), 600);
  assert_int_equal(steps_in_rounds(30, 5, 5, "AllReduce"), 150);
  assert_int_equal(steps_in_rounds(30, 3, 5, "AllReduce"), 30);
  assert_int_equal(steps_in_rounds(45, 20, 5, "AllReduce"), 45); /* as good as steps */
  assert_int_equal(steps_in_rounds(9, 20, 2, "AllReduce"), 9);   /* two that take turns are of layers */
}

/*
 * Parameters of 15 layers sharded within hosts, 20 steps: forward each layer is gathered; backward its
 * gradients are scattered, too, and added up across hosts. So two operations come as often as layers do, and
 * the last two of a step, with the first of the next, are a row that comes 19 times.
 */
static void test_steps_of_few(void **state) {
  (void)state;
  enum { STEPS_HERE = 20, LAYERS = 15, FORWARD = LAYERS + 1, EACH = LAYERS * 4 };
  static struct ni_blame_op op[STEPS_HERE * EACH];
  uint32_t n = 0, sn[2] = {0};
  for (uint32_t i = 0; i < STEPS_HERE * EACH; i++) {
    const uint32_t in_step = i % EACH, back = in_step < FORWARD ? 0 : in_step - FORWARD;
    const bool is_gather = in_step < FORWARD || (back % 3 == 2 && in_step + 1 < EACH);
    const bool is_sum = !is_gather && back % 3 == (i / EACH + back / 6) % 2; /* both begin at once */
    op[n] = (struct ni_blame_op){.start_ns = n * 1000,
                                 .end_ns = n * 1000 + 500,
                                 .sn = sn[is_sum]++,
                                 .token = is_gather ? 0
                                     : is_sum       ? 2
                                                    : 1,
                                 .what = is_gather ? 0
                                     : is_sum      ? 2
                                                   : 1,
                                 .slot = is_sum};
    n++;
  }
  assert_in_range(steps_of(op, n, 3), STEPS_HERE - 1, STEPS_HERE);
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
  struct ni_blame_cell cell[3] = {{.start_ns = 5, .dev = 1, .burst = 2, .late_idle = 1, .places = 3},
                                  {.start_ns = 9, .dev = 4, .burst = 8, .late_idle = 6, .places = 5},
                                  {.start_ns = 11, .dev = 7}};
  struct ni_blame_link_cell link[3] = {{.exec = 1, .least = 2, .n = 3, .longest = 1, .longest_of = {77}},
                                       {.exec = 10, .least = 20, .n = 30, .longest = 9, .longest_of = {88}},
                                       {.exec = 5, .least = 5, .n = 5, .longest = 5, .longest_of = {99}}};
  struct ni_blame_rank o = {.cell = cell, .link_cell = link, .max_slots = 1, .n_bins = 2, .bin_steps = 2};
  ni_blame_coarsen(&o);
  assert_true(o.n_bins == 1 && o.bin_steps == 4 && cell[0].start_ns == 5 && cell[0].places == 8);
  assert_true(near(cell[0].dev, 5) && near(cell[0].burst, 10) && near(link[0].exec, 11) &&
              near(link[0].least, 22) && link[0].n == 33);
  assert_true(near(cell[0].late_idle, 7) && near(link[0].longest, 9) && link[0].longest_of[0] == 88);
  assert_int_equal(link[0].longest_of[1], 0);
  assert_true(cell[1].start_ns == 0 && link[1].n == 0);
}

/* Two bins become one: of what is about as long in both the least numbers stay, whichever bin they are of. */
static void test_coarsen_long_ones(void **state) {
  (void)state;
  for (int swapped = 0; swapped < 2; swapped++) {
    struct ni_blame_cell cell[2] = {{.start_ns = 5}, {.start_ns = 9}};
    const struct ni_blame_link_cell one = {.n = 3, .longest = 60, .longest_of = {20, 40}};
    const struct ni_blame_link_cell other = {.n = 3, .longest = 100, .longest_of = {10, 40}};
    struct ni_blame_link_cell link[2] = {swapped ? other : one, swapped ? one : other};
    struct ni_blame_rank o = {.cell = cell, .link_cell = link, .max_slots = 1, .n_bins = 2, .bin_steps = 2};
    ni_blame_coarsen(&o);
    assert_true(near(link[0].longest, 100));
    assert_int_equal(link[0].longest_of[0], 10);
    assert_int_equal(link[0].longest_of[1], 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_coarsen_long_ones),
      cmocka_unit_test(test_alone),
      cmocka_unit_test(test_own_times_vary),
      cmocka_unit_test(test_own_time),
      cmocka_unit_test(test_group),
      cmocka_unit_test(test_overlap),
      cmocka_unit_test(test_in_one_kernel),
      cmocka_unit_test(test_steps),
      cmocka_unit_test(test_period),
      cmocka_unit_test(test_steps_by_order),
      cmocka_unit_test(test_steps_of_overlapped_buckets),
      cmocka_unit_test(test_checkpoints_end_no_step),
      cmocka_unit_test(test_steps_by_gradients),
      cmocka_unit_test(test_steps_by_norms),
      cmocka_unit_test(test_steps_by_gaps),
      cmocka_unit_test(test_steps_beside_evaluation),
      cmocka_unit_test(test_steps_in_rounds),
      cmocka_unit_test(test_places_of_varying_steps),
      cmocka_unit_test(test_one_communicator),
      cmocka_unit_test(test_usual_mark),
      cmocka_unit_test(test_coarsen),
      cmocka_unit_test(test_first_of_step),
      cmocka_unit_test(test_places_of_groups),
      cmocka_unit_test(test_launched_late),
      cmocka_unit_test(test_steps_of_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
