/* Who does the same work, who is a stage, and when stages are their host. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/lateness.h"
#include "exporter/model/sums/blame/causes.h"
#include "exporter/model/sums/blame/peer_groups.h"

enum { RANKS = 8, OF_TEAM = 4, SLOTS = 8, PLACES = 16, BINS = 16 };
enum {
  WORLD,
  ALL,
  TEAM,
  ACROSS = TEAM + RANKS / OF_TEAM,
  NORM = ACROSS + OF_TEAM,
  MORE = NORM + RANKS / OF_TEAM,
  COMMS = MORE + 2 * RANKS
};

struct job {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_comm_row comm[COMMS];
  struct ni_process process[RANKS];
  struct ni_host host[RANKS];
  struct ni_blame_rank rank[RANKS];
  struct ni_blame_slot slot[RANKS][SLOTS];
  struct ni_blame_place place[RANKS][PLACES];
  struct ni_blame_cell cell[RANKS][BINS];
  struct ni_blame_link_cell link_cell[RANKS][BINS * SLOTS];
};

static struct ni_blame_slot *add_slot(struct job *x, uint32_t r, uint32_t comm, uint64_t bytes) {
  struct ni_blame_slot *slot = &x->slot[r][x->rank[r].n_slots++];
  *slot = (struct ni_blame_slot){.comm = comm, .peer = -1, .ops = 100, .bytes = bytes};
  x->comm[comm].n_ranks++;
  return slot;
}

/* Two hosts of four ranks, which take the norm over all. */
static struct job *new_job(void) {
  struct job *x = calloc(1, sizeof *x);
  x->s = (struct ni_summary){
      .comm = x->comm, .n_comms = COMMS, .process = x->process, .host = x->host, .n_hosts = 2};
  x->b = (struct ni_blame){.s = &x->s, .rank = x->rank, .n_ranks = RANKS, .bins = BINS, .bin_steps = 1};
  for (uint32_t r = 0; r < RANKS; r++) {
    x->process[r].host = r / OF_TEAM;
    x->rank[r] = (struct ni_blame_rank){.process = r,
                                        .judged = true,
                                        .colls = 100,
                                        .n_steps = BINS,
                                        .whole_steps = BINS,
                                        .slot = x->slot[r],
                                        .place = x->place[r],
                                        .cell = x->cell[r],
                                        .link_cell = x->link_cell[r],
                                        .max_slots = SLOTS,
                                        .n_bins = BINS,
                                        .bin_steps = 1,
                                        .last_ns = 1000000000};
    (void)add_slot(x, r, WORLD, 400);
  }
  return x;
}

static void free_job(struct job *x) {
  ni_blame_free_links(&x->b);
  free(x);
}

/* Messages to the next rank of a team, and from the one before. */
static void add_ring(struct job *x, uint32_t r) {
  const int32_t at = (int32_t)(r % OF_TEAM);
  struct ni_blame_slot *to = add_slot(x, r, TEAM + r / OF_TEAM, 1 << 30);
  to->kind = NI_BLAME_SEND;
  to->rank = at;
  to->peer = (at + 1) % OF_TEAM;
  struct ni_blame_slot *from = add_slot(x, r, TEAM + r / OF_TEAM, 1 << 30);
  from->kind = NI_BLAME_RECV;
  from->rank = at;
  from->peer = (at + OF_TEAM - 1) % OF_TEAM;
}

/*
 * Ranks that exchange all parameters hold the same layers: sequences go round among them, no micro-batches.
 */
static void test_ring_is_no_pipeline(void **state) {
  (void)state;
  for (int weights = 0; weights < 2; weights++) {
    struct job *x = new_job();
    for (uint32_t r = 0; r < RANKS; r++) {
      add_ring(x, r);
      if (weights)
        (void)add_slot(x, r, ALL, 1 << 23);
    }
    assert_int_equal(ni_group_peers(&x->b), 0);
    assert_int_equal(x->b.stages, !weights); /* without: the norm joins no stages */
    assert_int_equal(x->b.n_classes, weights ? 1 : RANKS);
    free_job(x);
  }
}

/* A norm of each pipeline, as its gradients need one, does not make one stage of all. */
static void test_norm_joins_no_stages(void **state) {
  (void)state;
  struct job *x = new_job();
  for (uint32_t r = 0; r < RANKS; r++) {
    add_ring(x, r);
    (void)add_slot(x, r, NORM + r / OF_TEAM, 400);
    (void)add_slot(x, r, ACROSS + r % OF_TEAM, 1 << 18);
    x->comm[TEAM + r / OF_TEAM].n_ranks = OF_TEAM;
  }
  assert_int_equal(ni_group_peers(&x->b), 0);
  assert_true(x->b.stages);
  assert_int_equal(x->b.n_classes, OF_TEAM); /* gradients join the stages of both pipelines */
  free_job(x);
}

/* A message to the rank at `peer` of the communicator, and one back. */
static void add_messages(struct job *x, uint32_t r, uint32_t comm, int32_t at, int32_t peer) {
  for (int kind = NI_BLAME_SEND; kind <= NI_BLAME_RECV; kind++) {
    struct ni_blame_slot *slot = add_slot(x, r, comm, 1 << 30);
    slot->kind = (uint8_t)kind;
    slot->rank = at;
    slot->peer = peer;
  }
}

/*
 * * Four stages of two ranks, with a communicator for each way from stage to stage. A norm over ranks of the
 * two in the middle makes no stage of them, nor does an embedding that the first and the last one share.
 */
static void test_stages_share_collectives(void **state) {
  (void)state;
  struct job *x = new_job();
  for (uint32_t r = 0; r < RANKS; r++) {
    const uint32_t stage = r / 2, way = MORE + r;
    if (stage < 3)
      add_messages(x, r, way, 0, 1);
    if (stage > 0)
      add_messages(x, r, way - 2, 1, 0);
    (void)add_slot(x, r, ACROSS + stage, 1 << 20);
    if (stage == 1 || stage == 2)
      (void)add_slot(x, r, NORM, 400);
    else
      (void)add_slot(x, r, TEAM + r % 2, 400);
  }
  for (uint32_t k = MORE; k < COMMS; k++)
    x->comm[k].n_ranks = 2;
  assert_int_equal(ni_group_peers(&x->b), 0);
  assert_true(x->b.stages);
  assert_int_equal(x->b.n_classes, RANKS / 2);
  free_job(x);
}

/* In a pipeline a replica with more tokens is compared with its like as well: they add up gradients. */
static void test_large_replica_of_pipeline(void **state) {
  (void)state;
  struct job *x = new_job();
  for (uint32_t r = 0; r < RANKS; r++) {
    const uint32_t stage = r / 4, replica = r / 2 % 2;
    add_messages(x, r, ACROSS + r % 4, (int32_t)stage, 1 - (int32_t)stage);
    (void)add_slot(x, r, MORE + r / 2, replica ? 3 << 20 : 2 << 20);
    (void)add_slot(x, r, MORE + RANKS + stage * 2 + r % 2, 1 << 18);
  }
  for (uint32_t k = ACROSS; k < NORM; k++)
    x->comm[k].n_ranks = 2;
  assert_int_equal(ni_group_peers(&x->b), 0);
  assert_true(x->b.stages);
  assert_int_equal(x->b.n_classes, 2);
  free_job(x);
}

/* A replica with half as many tokens again is compared with those with which it adds up gradients. */
static void test_large_replica(void **state) {
  (void)state;
  for (int joined = 0; joined < 2; joined++) {
    struct job *x = new_job();
    for (uint32_t r = 0; r < RANKS; r++) {
      (void)add_slot(x, r, TEAM + r / OF_TEAM, r < OF_TEAM ? 2 << 20 : 3 << 20);
      if (joined)
        (void)add_slot(x, r, ACROSS + r % OF_TEAM, 1 << 18);
    }
    assert_int_equal(ni_group_peers(&x->b), 0);
    assert_int_equal(x->b.n_classes, joined ? 1 : 2); /* else they are two models */
    free_job(x);
  }
}

/* Four stages of two ranks, one or two on each host; stages take longer as slow says. */
static struct ni_causes judge_stages(const float *slow, uint32_t of_host) {
  static const float layer_us[4] = {400, 600, 800, 1200};
  struct job *x = new_job();
  struct ni_causes out = {.crowded = calloc(BINS, sizeof *out.crowded)};
  x->b.stages = true;
  x->s.n_hosts = RANKS / 2 / of_host;
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.n_classes = RANKS / 2;
  x->b.bins = x->b.steps = BINS;
  x->b.bin_steps = 1;
  for (uint32_t r = 0; r < RANKS; r++) {
    const uint32_t stage = r / 2;
    x->rank[r].cls = stage;
    x->process[r].host = stage / of_host;
    x->rank[r].n_places = PLACES;
    x->rank[r].team = NI_BLAME_NONE;
    for (uint32_t k = 0; k < PLACES; k++)
      x->place[r][k] = (struct ni_blame_place){.name = k + 1,
                                               .at = k + 1,
                                               .order = k,
                                               .usual_us = slow[stage] * layer_us[k % 4],
                                               .mean_us = slow[stage] * layer_us[k % 4]};
  }
  assert_int_equal(ni_find_late_ranks(&x->b, &out), 0);
  free_job(x);
  return out;
}

/* Layers do not follow hosts' bounds: all stages of a host are slow, so the host is. */
static void test_host_of_stages(void **state) {
  (void)state;
  static const float host[4] = {1.1f, 1.12f, 1, 1}, one[4] = {1.1f, 1, 1, 1}, end[4] = {1.04f, 1, 1, 1},
                     most[4] = {1.5f, 1.08f, 1, 1};
  struct ni_causes found = judge_stages(host, 2);
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_HOST && found.item[0].of == 0);
  assert_int_equal(found.item[0].n_items, OF_TEAM);
  assert_true(fabsf(found.item[0].share - 0.11f) < 0.01f && !found.item[0].of_one_stage);
  ni_causes_free(&found);
  found = judge_stages(one, 1); /* all that is on its host */
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_HOST && found.item[0].of_one_stage);
  ni_causes_free(&found);
  found = judge_stages(one, 2);
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_STAGE && found.item[0].of == 0 &&
              !found.item[0].can_be_work);
  ni_causes_free(&found);
  found = judge_stages(end, 2); /* so much can be the embedding */
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_STAGE && found.item[0].can_be_work);
  ni_causes_free(&found);
  found = judge_stages(most, 2); /* far more of one than of the other */
  assert_int_equal(found.n, 2);
  assert_true(found.item[0].kind == NI_FIND_SLOW_STAGE && found.item[1].kind == NI_FIND_SLOW_STAGE);
  ni_causes_free(&found);
}

/* Where stages differ by nature one of them is longer than some others, and another one is as long. */
static void test_stages_by_nature(void **state) {
  (void)state;
  static const float nature[4] = {1.04f, 1.035f, 1, 0.83f}, slow[4] = {1.3f, 1, 1, 0.83f};
  struct ni_causes found = judge_stages(nature, 2);
  assert_int_equal(found.n, 0);
  ni_causes_free(&found);
  found = judge_stages(slow, 2); /* two others are as long as each other */
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_STAGE && found.item[0].of == 0);
  ni_causes_free(&found);
}

/*
 * Three stages without tensor parallelism: nothing is like the one in the middle. It computes `slow` times as
 * long as the other two for as many layers, or for `layers` as many.
 */
static struct ni_causes judge_middle_stage(float slow, float layers) {
  static const float forward_us = 31500, backward_us = 63000;
  struct job *x = new_job();
  struct ni_causes out = {.crowded = calloc(BINS, sizeof *out.crowded)};
  x->b.stages = true;
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.n_classes = 3;
  x->b.bins = x->b.steps = BINS;
  x->b.bin_steps = 1;
  for (uint32_t r = 0; r < RANKS; r++) {
    const uint32_t stage = r < 2 ? 0 : r < 6 ? 1 : 2;
    const float times = stage == 1 ? slow : 1;
    struct ni_blame_rank *o = &x->rank[r];
    o->cls = stage;
    o->team = NI_BLAME_NONE;
    (void)add_slot(x, r, ACROSS + stage, (uint64_t)((stage == 1 ? layers : 1) * (1 << 20)));
    if (stage < 2)
      add_messages(x, r, NORM, (int32_t)stage, (int32_t)stage + 1);
    if (stage > 0)
      add_messages(x, r, NORM, (int32_t)stage, (int32_t)stage - 1);
    o->n_places = stage == 1 ? 8 : 4;
    o->idle_us = BINS * 4 * (double)(times * (forward_us + backward_us));
    for (uint32_t k = 0; k < o->n_places; k++) {
      const bool whole = stage == 0 && k < 3;
      const float us = stage == 2 ? forward_us + backward_us : whole || k % 2 ? forward_us : backward_us;
      x->place[r][k] = (struct ni_blame_place){.name = k + 1,
                                               .at = k + 1,
                                               .order = k,
                                               .message = stage != 0 || whole,
                                               .usual_us = times * us,
                                               .mean_us = times * us};
    }
    x->place[r][3].usual_us = stage == 0 ? backward_us : x->place[r][3].usual_us;
  }
  for (uint32_t stage = 0; stage < 3; stage++)
    x->comm[ACROSS + stage].n_ranks = 2;
  assert_int_equal(ni_find_late_ranks(&x->b, &out), 0);
  free_job(x);
  return out;
}

/* An embedding and a loss make the ends longer, never shorter: what is longer than both is slow. */
static void test_middle_stage(void **state) {
  (void)state;
  struct ni_causes found = judge_middle_stage(1.08f, 1);
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_SLOW_STAGE && found.item[0].of == 1 &&
              !found.item[0].can_be_work);
  assert_true(fabsf(found.item[0].share - 0.08f) < 0.005f);
  ni_causes_free(&found);
  found = judge_middle_stage(1.08f, 1.1f); /* it has more layers */
  assert_int_equal(found.n, 0);
  ni_causes_free(&found);
  found = judge_middle_stage(0.92f, 1); /* they have more to do, as ends may */
  assert_int_equal(found.n, 0);
  ni_causes_free(&found);
}

/*
 * Others stay ahead of a rank by 300 us in all of its places but one. So over the run it is late by these
 * 300 us: too little to be named, if it was so all the time. But from the middle on its gaps are longer by
 * much, and the mean of both halves does not say whether others were held up then. What it costs is bounded
 * by how much longer steps are (causes.h).
 */
static void test_lead_of_half(void **state) {
  (void)state;
  enum { LATE = RANKS - 1 };
  struct job *x = new_job();
  struct ni_causes out = {.crowded = calloc(BINS, sizeof *out.crowded)};
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.n_classes = 1;
  x->b.bins = x->b.steps = BINS;
  x->b.bin_steps = 1;
  float sum = 0;
  for (uint32_t r = 0; r < RANKS; r++) {
    x->rank[r].team = NI_BLAME_NONE;
    x->rank[r].n_places = PLACES;
    for (uint32_t k = 0; k < PLACES; k++) {
      const float more = k == 1 ? 60 : 300, us = k ? 2100 : 19700;
      x->place[r][k] = (struct ni_blame_place){.name = k + 1, .at = k + 1, .order = k, .usual_us = us};
      x->place[r][k].mean_us = r == LATE ? us + more : us;
      sum += r == LATE ? more : 0;
    }
  }
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < BINS; k++)
      x->cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k * INT64_C(62500000),
                                             .dev = r == LATE && k >= BINS / 2 ? 2 * sum : 0,
                                             .places = PLACES};
  assert_int_equal(ni_find_late_ranks(&x->b, &out), 0);
  assert_int_equal(out.n, 1);
  assert_true(out.item[0].kind == NI_FIND_LATE_RANK && out.item[0].of == LATE);
  assert_int_equal(out.item[0].from, BINS / 2);
  assert_true(out.item[0].share > 0.1f);
  ni_causes_free(&out);
  free_job(x);
}

/*
 * A rank is 5 ms late when its step begins, and others are as far ahead of it in all places, of 1.7 ms each.
 * Beside these they compute for 58 ms, and it for `rest_us` longer. Returns how far its gaps are what it is late
 * by: from 0, which is once, to 1.
 */
static float find_apart(float rest_us) {
  enum { LATE = RANKS - 1, EACH_US = 1700, MORE_US = 5000, REST_US = 58000 };
  struct job *x = new_job();
  struct ni_causes out = {.crowded = calloc(BINS, sizeof *out.crowded)};
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.n_classes = 1;
  x->b.bins = x->b.steps = BINS;
  x->b.bin_steps = 1;
  for (uint32_t r = 0; r < RANKS; r++) {
    const float more = r == LATE ? MORE_US : 0;
    x->rank[r].team = NI_BLAME_NONE;
    x->rank[r].one_comm = true;
    x->rank[r].n_places = PLACES;
    x->rank[r].idle_us = BINS * (REST_US + (r == LATE ? rest_us : 0) + PLACES * (EACH_US + more));
    for (uint32_t k = 0; k < PLACES; k++)
      x->place[r][k] = (struct ni_blame_place){
          .name = k + 1, .at = k + 1, .order = k, .usual_us = EACH_US + more, .mean_us = EACH_US + more};
    for (uint32_t k = 0; k < BINS; k++)
      x->cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k * INT64_C(62500000), .places = PLACES};
  }
  assert_int_equal(ni_find_late_ranks(&x->b, &out), 0);
  assert_int_equal(out.n, 1);
  assert_true(out.item[0].kind == NI_FIND_LATE_RANK && out.item[0].of == LATE);
  const float apart = out.item[0].lead.apart;
  ni_causes_free(&out);
  free_job(x);
  return apart;
}

static void test_late_once(void **state) {
  (void)state;
  assert_true(find_apart(5000) <= 0);
  assert_true(find_apart(3 * 58000) > 0.9f); /* it computes for longer wherever it does */
}

/*
 * Two hosts, whose ranks take turns, so that a team lies on both. `more_us` longer than 10 ms is what the
 * ranks of the first team take in each step.
 */
static struct ni_causes judge_team(const float *more_us) {
  struct job *x = new_job();
  struct ni_causes out = {.crowded = calloc(BINS, sizeof *out.crowded)};
  for (uint32_t r = 0; r < RANKS; r++) {
    x->process[r].host = r % 2;
    add_slot(x, r, TEAM + r / OF_TEAM, 1 << 20)->shape = 1;
    add_slot(x, r, ACROSS + r % OF_TEAM, 1 << 18)->shape = 2;
  }
  assert_int_equal(ni_group_peers(&x->b), 0);
  x->b.beyond_us = calloc(RANKS * BINS, sizeof *x->b.beyond_us);
  x->b.bins = x->b.steps = BINS;
  for (uint32_t r = 0; r < RANKS; r++) {
    const float us = (10000 + (r < OF_TEAM ? more_us[r] : 0)) / PLACES;
    x->rank[r].n_places = PLACES;
    for (uint32_t k = 0; k < PLACES; k++)
      x->place[r][k] =
          (struct ni_blame_place){.name = k + 1, .at = k + 1, .order = k, .usual_us = us, .mean_us = us};
    for (uint32_t k = 0; k < BINS; k++)
      x->cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k * INT64_C(62500000), .places = PLACES};
  }
  assert_int_equal(ni_find_late_ranks(&x->b, &out), 0);
  free_job(x);
  return out;
}

/* All ranks of a communicator that are as late as each other have more to do: one cause, and a note. */
static void test_late_together(void **state) {
  (void)state;
  static const float all[OF_TEAM] = {3000, 3200, 2800, 3100}, some[OF_TEAM] = {3000, 0, 2800, 3100},
                     one_more[OF_TEAM] = {3000, 3200, 2800, 9000};
  struct ni_causes found = judge_team(all);
  assert_int_equal(found.n, 1);
  assert_true(found.item[0].kind == NI_FIND_UNEVEN && found.item[0].level == NI_LEVEL_REPLICA);
  assert_int_equal(found.item[0].n_items, OF_TEAM);
  assert_true(fabsf(found.item[0].excess_us - 3025) < 100 && !(found.item[0].more_bytes > 0));
  ni_causes_free(&found);
  found = judge_team(some); /* one of them is not: those that are have nothing in common */
  assert_int_equal(found.n, OF_TEAM - 1);
  assert_true(found.item[0].kind == NI_FIND_LATE_RANK);
  ni_causes_free(&found);
  found = judge_team(one_more); /* one of them has more than that */
  assert_int_equal(found.n, OF_TEAM);
  assert_true(found.item[0].kind == NI_FIND_LATE_RANK && found.item[0].of == 3);
  ni_causes_free(&found);
}

enum { TOGETHER_HOSTS = 4, TOGETHER_EACH = 4, TOGETHER_RANKS = 16, TOGETHER_BINS = 40, TOGETHER_SLOW = 2 };

/*
 * How many ranks are late together where those of one host take longer by `more` of what is usual, each a
 * little more or less, from a bin on. named: another cause has one of them.
 */
static uint32_t count_together(const float more[TOGETHER_EACH], uint32_t from, bool named, bool unseen) {
  static float beyond_us[TOGETHER_RANKS][TOGETHER_BINS];
  struct ni_process process[TOGETHER_RANKS];
  struct ni_blame_rank rank[TOGETHER_RANKS];
  struct ni_rank_lateness late[TOGETHER_RANKS] = {0};
  struct ni_lead lead[TOGETHER_RANKS] = {0};
  float seen_us[TOGETHER_RANKS], scratch[TOGETHER_RANKS + TOGETHER_BINS], means[TOGETHER_RANKS];
  struct ni_summary s = {.process = process, .n_hosts = TOGETHER_HOSTS};
  struct ni_blame b = {.s = &s,
                       .rank = rank,
                       .n_ranks = TOGETHER_RANKS,
                       .bins = TOGETHER_BINS,
                       .bin_steps = 1,
                       .beyond_us = beyond_us[0],
                       .waits_unseen = unseen};
  struct ni_lateness w = {
      .b = &b, .late = late, .scratch = scratch, .means = means, .c = {.seen_us = seen_us, .lead = lead}};
  struct ni_causes causes = {0};
  uint32_t n = 0;
  for (uint32_t r = 0; r < TOGETHER_RANKS; r++) {
    const uint32_t host = r / TOGETHER_EACH;
    process[r] = (struct ni_process){.host = host};
    rank[r] = (struct ni_blame_rank){.process = r, .judged = true};
    late[r].of_us = seen_us[r] = 1000;
    for (uint32_t k = 0; k < TOGETHER_BINS; k++) {
      const float noise = 0.4f * (float)((k * 7919 + r * 104729) % 11) - 2;
      const bool is_slow = host == TOGETHER_SLOW && k >= from;
      /* ranks lie 0.7 % apart, so five times that is more than any of them is late by */
      beyond_us[r][k] = 3 * (float)(r * 5 % 8) + noise + (is_slow ? more[r % TOGETHER_EACH] * 1000 : 0);
    }
  }
  struct ni_cause *c = named ? ni_cause_add(&causes, NI_FIND_UNEVEN, NI_LEVEL_RANK, 0) : NULL;
  if (c)
    assert_int_equal(ni_cause_add_item(c, TOGETHER_SLOW * TOGETHER_EACH + 1), 0);
  assert_int_equal(ni_lateness_judge_hosts(&w, &causes), 0);
  for (uint32_t r = 0; r < TOGETHER_RANKS; r++) {
    assert_true(!late[r].together || r / TOGETHER_EACH == TOGETHER_SLOW);
    assert_true(!late[r].together || (late[r].from == from && late[r].to == TOGETHER_BINS));
    n += late[r].together;
  }
  ni_causes_free(&causes);
  return n;
}

/* Of none of the four ranks it can be told that it is late; of all of them together it can. */
static void test_late_host(void **state) {
  (void)state;
  static const float slow[TOGETHER_EACH] = {0.04f, 0.035f, 0.03f, 0.04f};
  static const float one[TOGETHER_EACH] = {0.16f, 0, 0, 0},
                     little[TOGETHER_EACH] = {0.015f, 0.015f, 0.015f, 0.015f};
  assert_int_equal(count_together(slow, 0, false, false), TOGETHER_EACH);
  assert_int_equal(count_together(slow, 15, false, false), TOGETHER_EACH);
  assert_int_equal(count_together(one, 0, false, false), 0); /* it is that rank */
  assert_int_equal(count_together(little, 0, false, false), 0);
  assert_int_equal(count_together(slow, 0, true, false), 0); /* it is known why */
  assert_int_equal(count_together(slow, 0, false, true), 0); /* they may wait */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_late_host),
      cmocka_unit_test(test_ring_is_no_pipeline),
      cmocka_unit_test(test_large_replica),
      cmocka_unit_test(test_host_of_stages),
      cmocka_unit_test(test_lead_of_half),
      cmocka_unit_test(test_late_together),
      cmocka_unit_test(test_norm_joins_no_stages),
      cmocka_unit_test(test_late_once),
      cmocka_unit_test(test_stages_share_collectives),
      cmocka_unit_test(test_large_replica_of_pipeline),
      cmocka_unit_test(test_stages_by_nature),
      cmocka_unit_test(test_middle_stage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
