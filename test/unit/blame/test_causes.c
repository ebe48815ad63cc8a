/*
 * Who is named and what it costs, rule by rule at the thresholds: links, the network, and when.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/ranks/cells.h"
#include "exporter/model/sums/ranks/places.h"
#include "exporter/model/sums/blame/judge.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/blame/replay.h"
#include "exporter/model/sums/spells/spells.h"

static bool near(double got, double want) { return got > want - 0.5 && got < want + 0.5; }

/*
 * Four communicators of two ranks on hosts of their own, one operation of 100 us in each step of 10 ms.
 * link[0] is the one that a test makes slow: 1000 us, from a bin to a bin.
 */
enum { BINS = 60, LINKS = 4 };
struct fabric {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_blame_rank rank[2 * LINKS];
  struct ni_process process[2 * LINKS];
  struct ni_host host[2 * LINKS];
  struct ni_comm_row comm[LINKS];
  struct ni_blame_link link[LINKS];
  struct ni_blame_cell cell[2 * LINKS][BINS];
  uint32_t of[LINKS][2];
  float us[LINKS][BINS];
  struct ni_causes causes;
};

static struct fabric *new_fabric(void) {
  struct fabric *f = calloc(1, sizeof *f);
  f->s = (struct ni_summary){.process = f->process,
                             .n_processes = 2 * LINKS,
                             .host = f->host,
                             .n_hosts = 2 * LINKS,
                             .comm = f->comm};
  f->b = (struct ni_blame){.s = &f->s,
                           .rank = f->rank,
                           .n_ranks = 2 * LINKS,
                           .link = f->link,
                           .n_links = LINKS,
                           .bins = BINS,
                           .steps = BINS,
                           .bin_steps = 1};
  for (uint32_t r = 0; r < 2 * LINKS; r++) {
    f->process[r].host = r;
    f->rank[r] = (struct ni_blame_rank){.process = r,
                                        .judged = true,
                                        .n_steps = BINS,
                                        .n_bins = BINS,
                                        .last_ns = BINS * INT64_C(10000000),
                                        .cell = f->cell[r]};
    /* A host's clock is of no account, and one that steps by 2 s is outvoted. */
    for (uint32_t k = 0; k < BINS; k++)
      f->cell[r][k].start_ns =
          1 + k * INT64_C(10000000) + r * INT64_C(7000000000) + (r == 7 && k > 11) * INT64_C(2000000000);
  }
  for (uint32_t i = 0; i < LINKS; i++) {
    f->comm[i].n_ranks = 2;
    f->of[i][0] = 2 * i;
    f->of[i][1] = 2 * i + 1;
    for (uint32_t k = 0; k < BINS; k++)
      f->us[i][k] = 100;
    f->link[i] = (struct ni_blame_link){.comm = i,
                                        .from = -1,
                                        .to = -1,
                                        .rank = f->of[i],
                                        .n_ranks = 2,
                                        .host = -1,
                                        .us = f->us[i],
                                        .per_step = 1,
                                        .mean_us = 100,
                                        .quiet_us = 100,
                                        .baseline_us = 100,
                                        .alike = LINKS};
  }
  return f;
}

/* Link 0 is slow from..to, and these steps are as much longer on all ranks. */
static void drop(struct fabric *f, uint32_t from, uint32_t to, float us) {
  for (uint32_t k = from; k < to; k++) {
    f->us[0][k] = us;
    for (uint32_t r = 0; r < 2 * LINKS; r++)
      for (uint32_t later = k + 1; later < BINS; later++)
        f->cell[r][later].start_ns += (int64_t)(us - 100) * 1000;
  }
}

/* The cause that links are; NULL: none. Its cost by the clock is filled where it has one. */
static const struct ni_cause *caused(struct fabric *f) {
  assert_int_equal(ni_find_slow_links(&f->b, &f->causes), 0);
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  return f->causes.n ? &f->causes.item[0] : NULL;
}

static void free_fabric(struct fabric *f) {
  ni_causes_free(&f->causes);
  free(f);
}

static void test_flapping(void **state) {
  (void)state;
  struct fabric *f = new_fabric();
  drop(f, 10, 14, 1000);
  drop(f, 30, 33, 1000);
  f->us[0][31] = 100; /* one step within: still the same drop */
  const struct ni_cause *c = caused(f);
  assert_true(c && f->causes.n == 1 && c->kind == NI_FIND_FLAPPING && c->link == NI_FIND_SLOW_PAIR &&
              c->level == NI_LEVEL_RANK);
  assert_true(c->bins_hit == 2 && c->from == 10 && c->to == 33 && near(c->share, 54.0 / 7));
  for (uint32_t k = 0; k < BINS; k++)
    assert_int_equal(ni_cause_is_active(c, k), (k >= 10 && k < 14) || (k >= 30 && k < 33));
  assert_true(ni_cause_comes_and_goes(&f->b, c) && fabs(c->cost_us - 7 * 900) < 10);
  free_fabric(f);

  f = new_fabric(); /* once: it is slow, from there to there */
  drop(f, 10, 16, 1000);
  c = caused(f);
  assert_true(c && c->kind == NI_FIND_SLOW_PAIR && !c->at && c->from == 10 && c->to == 16 &&
              near(c->share, 9) && fabs(c->cost_us - 6 * 900) < 10);
  free_fabric(f);

  f = new_fabric(); /* most of the time: the rest says nothing of what is usual */
  drop(f, 2, 25, 1000);
  drop(f, 30, 55, 1000);
  c = caused(f);
  assert_true(c && c->kind == NI_FIND_SLOW_PAIR && !ni_cause_comes_and_goes(&f->b, c) && c->cost_us == 0);
  free_fabric(f);

  f = new_fabric(); /* the first and the last bin are not whole */
  drop(f, 0, 1, 5000);
  drop(f, 59, 60, 5000);
  drop(f, 20, 25, 1000);
  c = caused(f);
  assert_true(c && c->kind == NI_FIND_SLOW_PAIR);
  free_fabric(f);
}

/*
 * A link that is down for a second stops one operation; the others of that step, which say how long it
 * takes, are as quick as ever. Twice; once; on all links, which is no link's; twice where nothing is like
 * it, and once. Two that nothing is like, between the same hosts: it is the way.
 */
static void test_stops(void **state) {
  (void)state;
  enum { TWICE, ONCE, ALL, ALONE, ALONE_ONCE, TWO_ALONE, HOWS };
  for (int how = 0; how < HOWS; how++) {
    struct fabric *f = new_fabric();
    float longest[LINKS][BINS];
    for (uint32_t r = 0; r < 2 * LINKS && how == TWO_ALONE; r++)
      f->process[r].host = r % 2;
    for (uint32_t i = 0; i < LINKS; i++) {
      for (uint32_t k = 0; k < BINS; k++) {
        const bool both = how == TWO_ALONE && i == 1;
        const bool once = how == ONCE || how == ALONE_ONCE;
        const bool stops = (k == 10 || (k == 30 && !once)) && (i == 0 || both || how == ALL);
        longest[i][k] = stops ? 1e6f : 110;
      }
      if (how >= ALONE) {
        f->link[i].alike = 1;
        f->link[i].cls = i;
      }
      f->link[i].longest = longest[i];
      f->link[i].usual_longest = 110;
    }
    const struct ni_cause *c = caused(f);
    const bool is_expected = how == TWICE || how == ALONE || how == TWO_ALONE;
    assert_true(!c == !is_expected);
    if (c) {
      assert_int_equal(f->causes.n, 1);
      assert_int_equal(c->kind, NI_FIND_FLAPPING);
      assert_int_equal(c->link, NI_FIND_SLOW_PAIR);
      assert_int_equal(c->level, how == TWO_ALONE ? NI_LEVEL_HOST : NI_LEVEL_RANK);
      assert_int_equal(c->n_items, how == TWO_ALONE ? 2 : 1);
      assert_true(c->stops && c->bins_hit == 2 && c->from == 10 && c->to == 31);
      assert_true(ni_cause_is_active(c, 10) && ni_cause_is_active(c, 30) && !ni_cause_is_active(c, 20));
    }
    free_fabric(f);
  }
}

/*
 * Two ranks wait for each other in turn, so in most bins they state different long operations, and what is
 * usual is no longer than these. In two bins both state the same one, in one of these the step ends
 * elsewhere on rank 1.
 */
static void test_longest(void **state) {
  (void)state;
  enum { MOST = 8 };
  struct ni_blame_link_cell cell[2][MOST];
  struct ni_blame_slot slot[2] = {{.ops = MOST, .bytes = MOST}, {.ops = MOST, .bytes = MOST}};
  struct ni_blame_rank rank[2];
  struct ni_process process[2] = {{.host = 0}, {.host = 1}};
  struct ni_comm_row comm = {.n_ranks = 2};
  struct ni_summary s = {.process = process, .n_processes = 2, .comm = &comm, .n_comms = 1};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 2, .bins = MOST, .bin_steps = 1};
  for (uint32_t r = 0; r < 2; r++) {
    for (uint32_t k = 0; k < MOST; k++)
      cell[r][k] = (struct ni_blame_link_cell){
          .least = 100, .n = 1, .longest = 900 + r, .longest_of = {10 * k + r + 1}};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = &slot[r],
                                     .n_slots = 1,
                                     .max_slots = 1,
                                     .n_steps = MOST,
                                     .n_bins = MOST,
                                     .link_cell = cell[r]};
    cell[r][2].longest = 70000 + r;
    cell[r][2].longest_of[0] = 77;
    cell[r][r ? 5 : 4].longest = 80000 + r;
    cell[r][r ? 5 : 4].longest_of[0] = 88;
  }
  assert_int_equal(ni_group_peers(&b), 0);
  assert_int_equal(b.n_links, 1);
  for (uint32_t k = 0; k < MOST; k++)
    assert_true(near(b.link[0].longest[k], k == 2 ? 70000 : k == 4 ? 80000 : 0));
  assert_true(near(b.link[0].usual_longest, 900));
  ni_blame_free_links(&b);
}

/*
 * Two of four communicators between the same hosts are slow: what they share there is named once, since each
 * of them alone would cost nothing. Where they share no host they are two causes.
 */
static void test_slow_beside(void **state) {
  (void)state;
  for (int how = 0; how < 2; how++) {
    struct fabric *f = new_fabric();
    for (uint32_t r = 0; r < 2 * LINKS && how == 0; r++)
      f->process[r].host = r % 2;
    for (uint32_t k = 0; k < BINS; k++)
      f->us[0][k] = f->us[1][k] = 150;
    const struct ni_cause *c = caused(f);
    assert_int_equal(f->causes.n, how ? 2 : 1);
    assert_int_equal(c->kind, how ? NI_FIND_SLOW_PAIR : NI_FIND_SLOW_COMM);
    assert_int_equal(c->n_items, how ? 1 : 2);
    free_fabric(f);
  }
}

/*
 * 7 % longer all the time: of four nobody knows whether that is chance; of many how far they lie apart
 * tells.
 */
static void test_slow_of_many(void **state) {
  (void)state;
  for (int how = 0; how < 3; how++) {
    struct fabric *f = new_fabric();
    for (uint32_t k = 0; k < BINS; k++)
      f->us[0][k] = 107;
    for (uint32_t i = 0; i < LINKS && how; i++) {
      f->link[i].alike = NI_CAUSE_LIKE_MIN;
      f->link[i].apart = how == 1 ? 0.005f : 0.02f;
    }
    assert_true(!caused(f) == (how != 1));
    free_fabric(f);
  }
}

/*
 * A steady link takes 20 % longer all the time. Of twelve that are alike all others are as steady, or differ
 * by so much from bin to bin that one of them does so by chance, and looks steady by chance.
 */
static void test_none_is_steadier_than_most(void **state) {
  (void)state;
  enum { ALIKE = 12 };
  for (int how = 0; how < 2; how++) {
    struct fabric *f = new_fabric();
    struct ni_blame_link link[ALIKE];
    for (uint32_t i = 0; i < ALIKE; i++)
      link[i] = f->link[i ? 1 : 0];
    for (uint32_t k = 0; k < BINS; k++) {
      f->us[0][k] = 120;
      f->us[1][k] = how ? 50 + (float)(k * 37 % 100) : 100;
    }
    f->b.link = link;
    f->b.n_links = ALIKE;
    assert_int_equal(caused(f) == NULL, how);
    free_fabric(f);
  }
}

/* Five bins are slow together, and without one of them they are hardly so; or all are. */
static void test_one_bin_is_no_slow_link(void **state) {
  (void)state;
  for (int how = 0; how < 2; how++) {
    struct fabric *f = new_fabric();
    drop(f, 10, 15, how ? 200 : 107);
    f->us[0][12] = how ? 200 : 1000;
    assert_int_equal(caused(f) == NULL, !how);
    free_fabric(f);
  }
}

/*
 * The network is slow for a part of two steps: what goes one way then, and nothing else. Of forty messages
 * that is no chance; of twenty nobody is asked.
 */
static void test_congestion_of_a_part(void **state) {
  (void)state;
  enum { MOST = 80 };
  for (uint32_t each = MOST / 4; each <= MOST / 2; each *= 2) {
    struct fabric *f = new_fabric();
    struct ni_blame_link link[MOST];
    for (uint32_t i = 0; i < 2 * each; i++) {
      link[i] = f->link[i % 2];
      link[i].cls = i % 2;
    }
    f->us[0][10] = f->us[0][30] = 180;
    f->b.link = link;
    f->b.n_links = 2 * each;
    const struct ni_cause *c = caused(f);
    const bool is_named = c && c->kind == NI_FIND_CONGESTION && c->bins_hit == 2;
    assert_int_equal(is_named, each == MOST / 2);
    free_fabric(f);
  }
}

/* One block of steps says how much a cause costs: little is chance, but not of a link that is far slower. */
static void test_sure_by_one_block(void **state) {
  (void)state;
  struct ni_cause c = {.links = true, .share = 0.9f};
  assert_false(ni_cause_is_sure_once(&c, 0.009));
  assert_true(ni_cause_is_sure_once(&c, 0.011));
  c.share = 1.1f;
  assert_true(ni_cause_is_sure_once(&c, 0.009));
  c.links = false;
  assert_false(ni_cause_is_sure_once(&c, 0.009));
}

/*
 * What comes each third step leaves no bin that is not beside it: those beside it are quiet. The first steps
 * of a job are long, and no measure of any.
 */
static void test_dense_clock_cost(void **state) {
  (void)state;
  struct fabric *f = new_fabric();
  uint32_t n = 0;
  drop(f, 1, 2, 9000);
  for (uint32_t k = 5; k + 2 < BINS; k += 3)
    drop(f, k, k + 1, 600);
  struct ni_cause *c = ni_cause_add(&f->causes, NI_FIND_PAUSES, NI_LEVEL_RANK, 0);
  c->to = BINS;
  c->at = calloc(BINS + 1, sizeof *c->at);
  for (uint32_t k = 5; k + 2 < BINS; k += 3, n++)
    c->at[k] = true;
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(fabs(c->cost_us - n * 500.0) < 0.05 * n * 500 && c->low_us > 0.8 * c->cost_us);
  free_fabric(f);
}

/*
 * The first bins of a job are long, until all is loaded and allocated. FIRST of them: fewer than a quarter.
 */
enum { FIRST = 13 };
static struct fabric *new_starting_job(void) {
  struct fabric *f = new_fabric();
  drop(f, 0, FIRST, 6100);
  return f;
}

/* Adds pauses of 3 ms each `each` bins, from a bin on. Returns how many. */
static uint32_t add_pauses(struct fabric *f, uint32_t from, uint32_t each) {
  struct ni_cause *c = ni_cause_add(&f->causes, NI_FIND_PAUSES, NI_LEVEL_RANK, 0);
  uint32_t n = 0;
  c->to = BINS;
  c->at = calloc(BINS + 1, sizeof *c->at);
  for (uint32_t k = from; k + 2 < BINS; k += each, n++) {
    c->at[k] = true;
    drop(f, k, k + 1, 3100);
  }
  return n;
}

/* Its first steps are no measure of others: neither of steps with a pause near to them, */
static void test_pauses_behind_first_steps(void **state) {
  (void)state;
  struct fabric *f = new_starting_job();
  const uint32_t n = add_pauses(f, FIRST + 3, 8);
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(fabs(f->causes.item[0].cost_us - n * 3000.0) < 0.05 * n * 3000);
  free_fabric(f);
  /* nor are they the quiet steps of a run whose other steps all lie beside a pause, */
  f = new_starting_job();
  const uint32_t dense = add_pauses(f, FIRST + 1, 3);
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_false(f->causes.item[0].not_clocked);
  assert_true(fabs(f->causes.item[0].cost_us - dense * 3000.0) < 0.05 * dense * 3000);
  free_fabric(f);
  /* nor where they and the steps with a pause are more than a quarter of the run, each alone less */
  f = new_fabric();
  drop(f, 0, FIRST, 2100);
  const uint32_t some = add_pauses(f, FIRST + 3, 5);
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(fabs(f->causes.item[0].cost_us - some * 3000.0) < 0.05 * some * 3000);
  free_fabric(f);
}

/* nor of what steps became longer by since a rank is late. */
static void test_late_behind_first_steps(void **state) {
  (void)state;
  struct fabric *f = new_starting_job();
  const uint32_t from = 2 * FIRST - 1;
  drop(f, from, BINS, 2100);
  struct ni_cause *c = ni_cause_add(&f->causes, NI_FIND_LATE_RANK, NI_LEVEL_RANK, 0);
  *c = (struct ni_cause){.kind = NI_FIND_LATE_RANK, .from = from, .to = BINS, .excess_us = 9000};
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(fabs(c->most_us - (BINS - from) * 2000.0) < 0.05 * (BINS - from) * 2000);
  free_fabric(f);
}

/* Another cause in all other bins leaves no quiet one. A pause is counted as if it were alone then. */
static void test_clock_cost_beside_others(void **state) {
  (void)state;
  struct fabric *f = new_fabric();
  uint32_t n = 0;
  struct ni_cause *c = ni_cause_add(&f->causes, NI_FIND_PAUSES, NI_LEVEL_RANK, 0);
  struct ni_cause *other = ni_cause_add(&f->causes, NI_FIND_FLAPPING, NI_LEVEL_COMM, 0);
  c->to = other->to = BINS;
  c->most_us = 1e9;
  c->at = calloc(BINS + 1, sizeof *c->at);
  other->at = calloc(BINS + 1, sizeof *other->at);
  other->links = true;
  for (uint32_t k = 2; k + 2 < BINS; k++) {
    c->at[k] = k % 3 == 0;
    other->at[k] = !c->at[k];
    if (!c->at[k])
      continue;
    drop(f, k, k + 1, 600);
    n++;
  }
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(!c->not_clocked && fabs(c->cost_us - n * 500.0) < 0.05 * n * 500);
  free_fabric(f);
}

/* Late from bin 20 on: no more than steps are longer from there on, unless another cause begins as well. */
static void test_bound_by_clock(void **state) {
  (void)state;
  struct fabric *f = new_fabric();
  drop(f, 20, BINS, 400);
  struct ni_cause *c = ni_cause_add(&f->causes, NI_FIND_LATE_RANK, NI_LEVEL_RANK, 0);
  *c = (struct ni_cause){.kind = NI_FIND_LATE_RANK, .from = 20, .to = BINS, .excess_us = 900};
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(fabs(c->most_us - (BINS - 20) * 300.0) < 0.05 * (BINS - 20) * 300);
  c->most_us = 0;
  struct ni_cause *other = ni_cause_add(&f->causes, NI_FIND_LATE_RANK, NI_LEVEL_RANK, 1);
  *other = (struct ni_cause){.kind = NI_FIND_LATE_RANK, .to = 20, .excess_us = 900};
  assert_int_equal(ni_count_clock_costs(&f->b, &f->causes), 0);
  assert_true(c->most_us == 0);
  free_fabric(f);
}

/*
 * All links are slow in two bins that stand alone; in one, which may be anything; as much as they differ
 * anyway.
 */
static void test_congestion(void **state) {
  (void)state;
  for (int how = 0; how < 3; how++) {
    struct fabric *f = new_fabric();
    for (uint32_t k = 0; k < BINS; k++)
      for (uint32_t i = 0; i < LINKS; i++)
        f->us[i][k] = how == 2 ? 70 + (float)(k * 37 % 11) * 8 : k == 10 || (k == 30 && how == 0) ? 400 : 100;
    const struct ni_cause *c = caused(f);
    assert_true(how ? !c : c && c->kind == NI_FIND_CONGESTION && c->bins_hit == 2);
    free_fabric(f);
  }
}

/*
 * * Collectives of one communicator alone cross hosts: the communicator is named, by how often it was slow
 * or by when. Messages of one communicator go several ways, and all of them are slow.
 */
static void test_only_comm_is_slow(void **state) {
  (void)state;
  enum { TWICE, ONCE, MESSAGES, HOWS };
  for (int how = 0; how < HOWS; how++) {
    struct fabric *f = new_fabric();
    for (uint32_t i = 0; i < LINKS; i++) {
      f->link[i].comm = 0;
      f->link[i].from = how == MESSAGES ? (int32_t)f->of[i][0] : -1;
      for (uint32_t k = 10; k < 14; k++)
        f->us[i][how == ONCE || k < 12 ? k : k + 10] = 400;
    }
    const struct ni_cause *c = caused(f);
    assert_non_null(c);
    assert_int_equal(c->level, how == MESSAGES ? NI_LEVEL_FABRIC : NI_LEVEL_COMM);
    assert_int_equal(c->kind,
                     how == TWICE      ? NI_FIND_FLAPPING
                         : how == ONCE ? NI_FIND_SLOW_COMM
                                       : NI_FIND_CONGESTION);
    assert_int_equal(c->bins_hit, how == TWICE ? 2 : how == ONCE ? 1 : 4);
    assert_true(c->from == 10 && c->to == (how == ONCE ? 14 : 24));
    free_fabric(f);
  }
}

/*
 * All links are slow from some bin on, and stay so: something broke, and nobody knows what. Till the middle
 * of the run, or in the last tenth alone, it is congestion.
 */
static void test_slow_from_some_bin_on(void **state) {
  (void)state;
  static const struct {
    uint32_t from, to;
    bool lasts;
  } how[] = {{BINS / 2, BINS, true}, {BINS / 4, BINS / 2, false}, {BINS - BINS / 10, BINS, false}};
  for (size_t x = 0; x < sizeof how / sizeof *how; x++) {
    struct fabric *f = new_fabric();
    for (uint32_t k = how[x].from; k < how[x].to; k++)
      for (uint32_t i = 0; i < LINKS; i++)
        f->us[i][k] = 300;
    const struct ni_cause *c = caused(f);
    assert_non_null(c);
    assert_int_equal(c->kind, how[x].lasts ? NI_FIND_SLOW_COMM : NI_FIND_CONGESTION);
    assert_int_equal(c->level, how[x].lasts ? NI_LEVEL_COMM : NI_LEVEL_FABRIC);
    assert_true(near(c->share, 2) && (!how[x].lasts || (c->from == how[x].from && c->to == BINS)));
    free_fabric(f);
  }
}

/* Two links alone are slow in two bins: by many operations each, by few, and by one that nobody counted. */
static void test_congestion_of_two(void **state) {
  (void)state;
  static uint8_t ops[BINS];
  for (int many = 0; many < 2; many++) {
    for (int counted = 0; counted < 2; counted++) {
      struct fabric *f = new_fabric();
      f->b.n_links = 2;
      memset(ops, many ? 4 : 3, sizeof ops);
      for (uint32_t i = 0; i < 2; i++) {
        f->link[i].ops = counted ? ops : NULL;
        f->us[i][10] = f->us[i][30] = 400;
      }
      const struct ni_cause *c = caused(f);
      const bool is_congestion = c && c->kind == NI_FIND_CONGESTION && c->bins_hit == 2;
      assert_int_equal(is_congestion, many && counted);
      free_fabric(f);
    }
  }
}

/* The shortest of how many: of a bin of two steps the fewer; where one of them has none the other's. */
static void test_alike_of_two_steps(void **state) {
  (void)state;
  struct ni_blame_cell cell[2] = {{.places = 1}, {.places = 1}};
  struct ni_blame_link_cell link[4] = {{0}};
  link[0].n = link[1].n = 9;
  link[0].alike = link[1].alike = 7;
  link[2].n = 5;
  link[2].alike = 4;
  struct ni_blame_rank o = {.cell = cell, .link_cell = link, .max_slots = 2, .n_bins = 2, .bin_steps = 1};
  ni_blame_coarsen(&o);
  assert_true(link[0].alike == 4 && link[0].n == 14 && link[1].alike == 7 && link[1].n == 9);
}

/* All transfers take 15 % longer for a while: four links may do so by chance, eight do not. */
static void test_congestion_of_many(void **state) {
  (void)state;
  for (int how = 0; how < 2; how++) {
    struct fabric *f = new_fabric();
    struct ni_blame_link link[2 * LINKS];
    for (uint32_t i = 0; i < 2 * LINKS; i++)
      link[i] = f->link[i % LINKS];
    for (uint32_t k = 10; k < 14; k++)
      for (uint32_t i = 0; i < LINKS; i++)
        f->us[i][k] = 115;
    f->b.link = link;
    f->b.n_links = how ? LINKS : 2 * LINKS;
    const struct ni_cause *c = caused(f);
    assert_true(how ? !c : c && c->kind == NI_FIND_CONGESTION && c->bins_hit == 4);
    free_fabric(f);
  }
}

/*
 * A ring of messages within a host. Both links of rank 0 are slow: its NVLink. One alone: a link, and nobody
 * knows of which end. Those two that two ranks have with each other: of which end they are slow is not known,
 * either.
 */
static void test_nvlink_of_rank(void **state) {
  (void)state;
  enum { BOTH, ONE, PAIR, HOWS };
  for (int how = 0; how < HOWS; how++) {
    struct fabric *f = new_fabric();
    static const uint32_t ring[LINKS][2] = {{3, 0}, {0, 1}, {1, 2}, {2, 3}},
                          pair[LINKS][2] = {{1, 0}, {0, 1}, {2, 3}, {3, 2}};
    for (uint32_t r = 0; r < LINKS; r++)
      f->process[r].host = 0;
    for (uint32_t i = 0; i < LINKS; i++) {
      memcpy(f->of[i], how == PAIR ? pair[i] : ring[i], sizeof f->of[i]);
      f->link[i].host = 0;
      f->link[i].from = (int32_t)f->of[i][0];
      f->link[i].to = (int32_t)f->of[i][1];
      for (uint32_t k = 0; k < BINS && i < (how == ONE ? 1 : 2); k++)
        f->us[i][k] = 120;
    }
    const struct ni_cause *c = caused(f);
    assert_non_null(c);
    if (how == BOTH) {
      assert_true(f->causes.n == 1 && c->kind == NI_FIND_SLOW_NVLINK && c->level == NI_LEVEL_RANK);
      assert_true(c->of == 0 && c->n_items == 2);
    } else
      assert_int_equal(c->kind, NI_FIND_SLOW_COMM);
    free_fabric(f);
  }
}

/*
 * Ranks on hosts of their own send in a ring. Rank 1's NIC is slow, and the message behind it waits for it in
 * turn: rank 2 has as many slow links, but the NIC explains far more.
 */
static void test_ripples_of_nic(void **state) {
  (void)state;
  static const float us[LINKS] = {500, 520, 130, 100};
  struct fabric *f = new_fabric();
  for (uint32_t i = 0; i < LINKS; i++) {
    f->of[i][0] = i;
    f->of[i][1] = (i + 1) % LINKS;
    f->link[i].from = (int32_t)i;
    f->link[i].to = (int32_t)(i + 1) % LINKS;
    f->link[i].quiet_us = us[i];
    for (uint32_t k = 0; k < BINS; k++)
      f->us[i][k] = us[i];
  }
  const struct ni_cause *c = caused(f);
  assert_true(c && c->kind == NI_FIND_SLOW_NIC && c->level == NI_LEVEL_HOST && c->of == 1);
  assert_int_equal(c->n_items, 2);
  free_fabric(f);
}

/*
 * Two of four ranks of a host share a slow NIC, and each sends to one rank of another host: it is one cause.
 */
static void test_shared_nic_of_links(void **state) {
  (void)state;
  struct fabric *f = new_fabric();
  for (uint32_t r = 0; r < 2 * LINKS; r++)
    f->process[r].host = r % 2;
  for (uint32_t i = 0; i < LINKS; i++) {
    f->link[i].from = 0;
    f->link[i].to = 1;
  }
  for (uint32_t i = 0; i < 2; i++) {
    f->link[i].quiet_us = 500;
    for (uint32_t k = 0; k < BINS; k++)
      f->us[i][k] = 500;
  }
  const struct ni_cause *c = caused(f);
  assert_true(c && f->causes.n == 1 && c->kind == NI_FIND_SLOW_PAIR && c->level == NI_LEVEL_RANK);
  assert_true(c->n_items == 2 && c->n_beside == 2);
  free_fabric(f);
}

static void test_not_slow(void **state) {
  (void)state;
  struct fabric *f = new_fabric(); /* sizes that differ from step to step */
  for (uint32_t k = 0; k < BINS; k++)
    f->us[0][k] = 50 + (float)(k * 37 % 130);
  assert_null(caused(f));
  free_fabric(f);

  f = new_fabric(); /* a rank of it has no log: who came last is not known */
  drop(f, 10, 14, 1000);
  drop(f, 30, 33, 1000);
  f->comm[0].n_ranks = 3;
  assert_null(caused(f));
  free_fabric(f);

  f = new_fabric(); /* less than two ticks of a timer of 1 us */
  for (uint32_t i = 0; i < LINKS; i++) {
    f->link[i].baseline_us = f->link[i].quiet_us = 5;
    f->link[i].per_step = 100;
  }
  for (uint32_t k = 0; k < BINS; k++)
    for (uint32_t i = 0; i < LINKS; i++)
      f->us[i][k] = i ? 5 : 6.5f;
  assert_null(caused(f));
  ni_causes_free(&f->causes);
  for (uint32_t k = 0; k < BINS; k++)
    f->us[0][k] = 8;
  assert_non_null(caused(f));
  free_fabric(f);
}

/*
 * Two hosts, a link between them, slow in bins 10 to 19: the fabric, or its communicator. from: the ranks of
 * a host pause, or its CPUs are busy (kind), in ten bins from there on. Returns how many causes are left.
 */
static uint32_t find_busy_host_of(enum ni_finding_level level, enum ni_finding_kind kind, uint32_t from,
                                  uint32_t host, uint32_t link_host, struct ni_cause *first) {
  enum { HOST_BINS = 60 };
  struct ni_process process[3] = {{.host = 0}, {.host = 1}, {.host = 2}};
  struct ni_blame_rank rank[3] = {{.process = 0}, {.process = 1}, {.process = 2}};
  uint32_t ends[2] = {0, link_host};
  struct ni_blame_link link = {.rank = ends, .n_ranks = 2, .host = -1};
  struct ni_summary s = {.process = process, .n_hosts = 3};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 3, .link = &link, .n_links = 1, .bins = HOST_BINS};
  struct ni_causes causes = {0};
  struct ni_cause *crowded = ni_cause_add(&causes, NI_FIND_CONGESTION, level, 0);
  struct ni_cause *pauses = ni_cause_add(&causes, kind, NI_LEVEL_HOST, host);
  crowded->at = calloc(HOST_BINS + 1, sizeof *crowded->at);
  pauses->at = calloc(HOST_BINS + 1, sizeof *pauses->at);
  assert_true(crowded->at && pauses->at);
  crowded->to = pauses->to = HOST_BINS;
  crowded->share = 4;
  crowded->links = true;
  for (uint32_t k = 0; k < 10; k++)
    crowded->at[10 + k] = pauses->at[from + k] = true;
  assert_int_equal(ni_cause_add_item(crowded, 0), 0);
  ni_find_busy_host(&b, &causes);
  *first = causes.item[0];
  uint32_t bins = 0;
  for (uint32_t k = 0; k < HOST_BINS; k++)
    bins += first->at[k];
  first->bins_hit = bins;
  const uint32_t n = causes.n;
  ni_causes_free(&causes);
  return n;
}

static uint32_t find_busy_host(uint32_t from, uint32_t host, uint32_t link_host, struct ni_cause *first) {
  return find_busy_host_of(NI_LEVEL_FABRIC, NI_FIND_PAUSES, from, host, link_host, first);
}

/* A slow network that one host pauses with is that host, if nothing else can be slow. */
static void test_busy_host(void **state) {
  (void)state;
  struct ni_cause c;
  assert_int_equal(find_busy_host(12, 1, 1, &c), 1);
  assert_true(c.kind == NI_FIND_PAUSES && c.of == 1 && c.crowded > 3.9f && c.bins_hit == 12);
  assert_int_equal(find_busy_host(16, 1, 1, &c), 2); /* it pauses at other times */
  assert_int_equal(find_busy_host(12, 1, 2, &c), 2); /* the link goes elsewhere */
  assert_int_equal(find_busy_host_of(NI_LEVEL_COMM, NI_FIND_SLOW_HOST, 12, 1, 1, &c), 1);
  assert_true(c.kind == NI_FIND_SLOW_HOST && c.crowded > 3.9f && c.bins_hit == 12);
  assert_int_equal(find_busy_host_of(NI_LEVEL_HOST, NI_FIND_SLOW_HOST, 12, 1, 1, &c), 2); /* a host's NICs */
}

/* A finding that ends where nothing begins said that it ended in 1970. */
static void test_begins_of_empty_bins(void **state) {
  (void)state;
  struct ni_step step[6] = {{.start_us = 100}, {0}, {.start_us = 300}, {.start_us = 400}, {0}, {0}};
  struct ni_summary s = {.step = step, .last_us = 900};
  ni_judge_fill_begins(&s, 5);
  assert_int_equal(step[1].start_us, 300);
  assert_int_equal(step[3].start_us, 400);
  assert_int_equal(step[4].start_us, 900);
  assert_int_equal(step[5].start_us, 900);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_begins_of_empty_bins),
      cmocka_unit_test(test_flapping),
      cmocka_unit_test(test_nvlink_of_rank),
      cmocka_unit_test(test_ripples_of_nic),
      cmocka_unit_test(test_shared_nic_of_links),
      cmocka_unit_test(test_not_slow),
      cmocka_unit_test(test_dense_clock_cost),
      cmocka_unit_test(test_bound_by_clock),
      cmocka_unit_test(test_pauses_behind_first_steps),
      cmocka_unit_test(test_late_behind_first_steps),
      cmocka_unit_test(test_congestion),
      cmocka_unit_test(test_only_comm_is_slow),
      cmocka_unit_test(test_congestion_of_two),
      cmocka_unit_test(test_slow_from_some_bin_on),
      cmocka_unit_test(test_alike_of_two_steps),
      cmocka_unit_test(test_congestion_of_many),
      cmocka_unit_test(test_stops),
      cmocka_unit_test(test_longest),
      cmocka_unit_test(test_slow_beside),
      cmocka_unit_test(test_slow_of_many),
      cmocka_unit_test(test_none_is_steadier_than_most),
      cmocka_unit_test(test_one_bin_is_no_slow_link),
      cmocka_unit_test(test_congestion_of_a_part),
      cmocka_unit_test(test_sure_by_one_block),
      cmocka_unit_test(test_clock_cost_beside_others),
      cmocka_unit_test(test_busy_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
