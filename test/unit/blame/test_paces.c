/* What ranks compute between operations of a size, and hosts that take longer for all sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/host_paces.h"
#include "exporter/model/sums/ranks/paces.h"
#include "exporter/model/sums/ranks/sizes.h"

/* ---- gaps of one rank ---- */

enum { SMALL, LARGE, GATHER, TOKENS, COLLS = 0, MESSAGES = 1 };

struct one {
  struct ni_comm_row comm;
  struct ni_summary s;
  struct ni_blame b;
  struct ni_blame_slot slot[2];
  uint64_t bytes[TOKENS];
  uint16_t function[TOKENS];
  struct ni_blame_function functions[2];
  struct ni_blame_rank out;
  struct ni_paces paces;
  int64_t now_ns;
  uint64_t sn[2];
};

static void begin(struct one *x) {
  *x = (struct one){.comm.n_ranks = 8,
                    .slot = {{.kind = NI_BLAME_COLL}, {.kind = NI_BLAME_SEND}},
                    .bytes = {8192, 1 << 20, 4096},
                    .function = {0, 0, 1},
                    .functions = {{"AllReduce", 0}, {"AllGather", 0}},
                    .now_ns = 1000};
  x->s = (struct ni_summary){.comm = &x->comm, .n_comms = 1};
  x->b.s = &x->s;
  x->out = (struct ni_blame_rank){.slot = x->slot, .n_slots = 2, .token_bytes = x->bytes, .n_tokens = TOKENS};
  assert_int_equal(ni_paces_begin(&x->paces, &x->out, x->functions, x->function), 0);
}

/* An operation, so long after the last one has ended. */
static void add(struct one *x, uint32_t token, uint16_t slot, int64_t gap_us) {
  const int64_t start = x->now_ns + gap_us * 1000;
  const struct ni_blame_op op = {.start_ns = start,
                                 .end_ns = start + 5000,
                                 .token = token,
                                 .slot = slot,
                                 .sn = x->sn[x->function[token]]++};
  ni_paces_count(&x->paces, &op, 1);
  x->now_ns = op.end_ns;
}

static void end(struct one *x) {
  assert_int_equal(ni_paces_end(&x->paces, &x->b, &x->out), 0);
  ni_paces_free(&x->paces);
}

/* A batch of four layers of a size; first_us: since the one before. */
static void add_batch(struct one *x, uint32_t size, int64_t first_us, int64_t gap_us) {
  add(x, size, COLLS, first_us);
  for (int i = 0; i < 3; i++)
    add(x, size, COLLS, gap_us);
  add(x, GATHER, COLLS, 1);
}

static void test_gaps(void **state) {
  (void)state;
  struct one x;
  begin(&x);
  for (int i = 0; i < 100; i++) {
    add_batch(&x, SMALL, i % 4 ? 900 : 50000, i % 2 ? 100 : 102);
    if (i % 4 == 0)
      add_batch(&x, LARGE, 1500, i == 40 ? 80000 : 700);
  }
  end(&x);
  assert_int_equal(x.out.n_paces, 2); /* nothing lies between two that gather */
  const struct ni_blame_pace *small = &x.out.pace[0], *large = &x.out.pace[1];
  assert_true(small->size < large->size && small->function == large->function);
  assert_int_equal(small->ops, 400);
  assert_int_equal(small->firsts, 99); /* nothing is known of what precedes the first one */
  assert_true(fabsf(small->us - 101) < 0.5f && fabsf(small->first_us - 900) < 1);
  assert_int_equal(large->ops, 100);
  /* a pause of three gaps counts as three times the usual, not more */
  assert_true(large->us >= 700 && large->us < 700 * (1 + 2 * 6 / 64.0f));
  free(x.out.pace);
}

/* A gap that holds something else says nothing. */
static void test_what_lies_between(void **state) {
  (void)state;
  struct one x;
  begin(&x);
  for (int i = 0; i < 40; i++) {
    x.sn[0] += i % 2; /* one that is not in the log */
    add(&x, SMALL, COLLS, i % 2 ? 250 : 100);
  }
  for (int i = 0; i < 20; i++) {
    add(&x, GATHER, MESSAGES, 5000);
    add(&x, SMALL, COLLS, 5000);
  }
  end(&x);
  assert_int_equal(x.out.n_paces, 1);
  assert_true(fabsf(x.out.pace[0].us - 100) < 0.5f);
  assert_int_equal(x.out.pace[0].firsts, 20);
  free(x.out.pace);
}

/* What is kept is of the whole run: the second half of it is slower. */
static void test_even_sample(void **state) {
  (void)state;
  struct one x;
  begin(&x);
  for (int i = 0; i < 5000; i++)
    add(&x, LARGE, COLLS, i < 2500 ? 100 : 200);
  end(&x);
  assert_true(fabsf(x.out.pace[0].us - 150) < 5);
  free(x.out.pace);
}

static void test_sizes(void **state) {
  (void)state;
  enum { SIZES = 60 };
  uint64_t bytes[SIZES], ops[SIZES];
  uint16_t function[SIZES] = {0};
  const struct ni_blame_rank o = {.n_tokens = SIZES, .token_bytes = bytes};
  bool differ;
  for (uint32_t i = 0; i < SIZES; i++) {
    bytes[i] = 1000 * (i + 1);
    ops[i] = 10;
  }
  assert_int_equal(ni_sizes_differ(&o, function, 0, ops, (struct ni_size_bounds){50, 1.5}, &differ), 0);
  assert_true(differ);
  assert_int_equal(ni_sizes_differ(&o, function, 0, ops, (struct ni_size_bounds){10, 1.5}, &differ), 0);
  assert_false(differ); /* they come often enough */
  for (uint32_t i = 0; i < SIZES; i++)
    bytes[i] = 100000 + 100 * i;
  assert_int_equal(ni_sizes_differ(&o, function, 0, ops, (struct ni_size_bounds){50, 1.5}, &differ), 0);
  assert_false(differ); /* about as large */
}

/* ---- hosts ---- */

enum { HOSTS = 3, EACH = 4, RANKS = HOSTS * EACH, SIZES_OF_RANK = 6, HOT = 1 };

struct job {
  struct ni_process process[RANKS];
  struct ni_host host[HOSTS];
  struct ni_comm_row comm[HOSTS];
  struct ni_blame_slot slot[RANKS];
  struct ni_blame_pace pace[RANKS][SIZES_OF_RANK];
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s;
  struct ni_blame b;
};

static void begin_job(struct job *x) {
  *x = (struct job){0};
  for (uint32_t r = 0; r < RANKS; r++) {
    x->process[r].host = r / EACH;
    x->slot[r] = (struct ni_blame_slot){.comm = r / EACH};
    x->rank[r] = (struct ni_blame_rank){
        .process = r, .slot = &x->slot[r], .n_slots = 1, .pace = x->pace[r], .n_paces = SIZES_OF_RANK};
    for (int32_t k = 0; k < SIZES_OF_RANK; k++)
      x->pace[r][k] = (struct ni_blame_pace){.function = 7,
                                             .comm = r / EACH,
                                             .size = 40 + 2 * k,
                                             .ops = 100,
                                             .firsts = 25,
                                             .us = 100 * (1 + k) * (1 + 0.002f * (float)(r % EACH)),
                                             .first_us = 1000 + 100 * (float)(1 + k)};
  }
  x->s = (struct ni_summary){.process = x->process,
                             .n_processes = RANKS,
                             .host = x->host,
                             .n_hosts = HOSTS,
                             .comm = x->comm,
                             .n_comms = HOSTS};
  x->b = (struct ni_blame){.s = &x->s, .rank = x->rank, .n_ranks = RANKS};
}

/* Ranks [from, to) take so many times as long at sizes [low, SIZES_OF_RANK). */
static void slow_down(struct job *x, uint32_t from, uint32_t to, int32_t low, float times) {
  for (uint32_t r = from; r < to; r++)
    for (int32_t k = low; k < SIZES_OF_RANK; k++)
      x->pace[r][k].us *= times;
}

static double find_times(struct job *x, uint32_t host) {
  for (uint32_t h = 0; h < HOSTS; h++)
    x->host[h].paced = (struct ni_paced){0};
  assert_int_equal(ni_paces_tell(&x->b, &x->s), 0);
  for (uint32_t h = 0; h < HOSTS; h++)
    assert_true(h == host || x->host[h].paced.times == 0);
  return x->host[host].paced.times;
}

static void test_hot_host(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  assert_true(find_times(&x, HOT) == 0);
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.2f);
  assert_true(fabs(find_times(&x, HOT) - 1.2) < 0.01);
  /* 100 operations of each of six sizes, 100 to 600 us before them */
  assert_true(fabs(x.host[HOT].paced.lost_us - 0.2 * 100 * 2100) < 1000);
  assert_true(fabs(x.host[HOT].paced.own_us - 1.2 * 100 * 2100) < 1000);
  assert_int_equal(x.host[HOT].paced.groups, 1);
  assert_false(x.host[HOT].paced.in_stage);
}

/* Longer contexts make decoding longer, or prompts, not both. */
static void test_other_work(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, SIZES_OF_RANK / 3, 1.2f);
  assert_true(find_times(&x, HOT) == 0);
  begin_job(&x);
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.2f);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int32_t k = 0; k < SIZES_OF_RANK; k++)
      x.pace[r][k].size = 40 + k; /* about as large: all of it may be decoding */
  assert_true(find_times(&x, HOT) == 0);
}

static void test_one_rank(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  slow_down(&x, HOT * EACH, HOT * EACH + 1, 0, 1.5f);
  assert_true(find_times(&x, HOT) == 0);
  /* all are a little, one is far more: it is that one */
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.04f);
  assert_true(find_times(&x, HOT) == 0);
}

/* Engines differ by as much: other contexts, or other models. */
static void test_others_differ(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.1f);
  assert_true(find_times(&x, HOT) > 0);
  for (uint32_t r = 0; r < RANKS; r++)
    slow_down(&x, r, r + 1, 0, r / EACH == HOT ? 1 : 1 + 0.02f * (float)(r % EACH));
  assert_true(find_times(&x, HOT) == 0);
}

static void test_stage(void **state) {
  (void)state;
  struct job x;
  struct ni_blame_slot both[RANKS][2];
  begin_job(&x);
  for (uint32_t r = 0; r < RANKS; r++) {
    both[r][0] = x.slot[r];
    both[r][1] = (struct ni_blame_slot){.kind = NI_BLAME_SEND};
    x.rank[r].slot = both[r];
    x.rank[r].n_slots = 2;
  }
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.04f);
  assert_true(find_times(&x, HOT) == 0);
  slow_down(&x, HOT * EACH, (HOT + 1) * EACH, 0, 1.04f);
  assert_true(find_times(&x, HOT) > 0);
  assert_true(x.host[HOT].paced.in_stage);
}

/* A slow CPU is later before batches alone. */
static void test_later(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  for (uint32_t r = HOT * EACH; r < (HOT + 1) * EACH; r++)
    for (uint32_t k = 0; k < SIZES_OF_RANK; k++)
      x.pace[r][k].first_us += 400;
  assert_true(find_times(&x, HOT) == 0);
  assert_true(fabs(x.host[HOT].paced.later_us - 400 * 25 * SIZES_OF_RANK) < 1000);
  assert_true(x.host[0].paced.later_us < 1000);
}

/* Each run by itself: an earlier attempt ran on the same hosts. */
static void test_runs(void **state) {
  (void)state;
  struct job x;
  begin_job(&x);
  for (uint32_t r = 0; r < RANKS; r++)
    x.rank[r].run = r % 2 + 1;
  for (uint32_t r = HOT * EACH; r < (HOT + 1) * EACH; r += 2)
    slow_down(&x, r, r + 1, 0, 1.2f);
  assert_true(fabs(find_times(&x, HOT) - 1.2) < 0.01);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gaps),        cmocka_unit_test(test_what_lies_between),
      cmocka_unit_test(test_even_sample), cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_hot_host),    cmocka_unit_test(test_other_work),
      cmocka_unit_test(test_one_rank),    cmocka_unit_test(test_others_differ),
      cmocka_unit_test(test_stage),       cmocka_unit_test(test_later),
      cmocka_unit_test(test_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
