/* Rules for logs whose stamps are off, whose clocks nobody can compare, and where somebody is always last. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/model/sums/blame/causes.h"
#include "exporter/model/sums/compare/compare.h"
#include "exporter/model/sums/compare/stages.h"
#include "exporter/model/sums/cpus/launches.h"
#include "exporter/model/sums/blame/replay.h"
#include "exporter/model/sums/ranks/overlaps.h"
#include "exporter/model/sums/ranks/places.h"
#include "exporter/model/sums/ranks/usual_step.h"
#include "exporter/model/sums/spells/spells.h"
#include "exporter/model/sums/work/number.h"

enum { SAMPLES = 60 };

/* 0..1 */
static double drawn(uint64_t *draw) {
  return (double)((*draw = *draw * 6364136223846793005u + 1442695040888963407u) >> 11) / 0x1p53;
}

/*
 * Slot 0 is the place's own. It begins `far` us behind slot 1's end, give or take `noise`, and that one ended
 * some 5 ms behind the end on slot 0.
 */
static void samples(float gap[SAMPLES][2], float far, uint32_t noise) {
  for (uint32_t i = 0; i < SAMPLES; i++) {
    gap[i][1] = far + (float)(i * 7919 % noise);
    gap[i][0] = 5000 + (float)(i * 104729 % 90) + gap[i][1];
  }
}

static bool waits(float gap[SAMPLES][2], float off_us) {
  struct ni_baseline u;
  ni_baseline_find(&u, gap[0], SAMPLES, 2, 0, false, off_us);
  return u.waits_for >> 1 & 1;
}

/* One stamp that is far off outweighs all others in a line. */
static void test_line(void **state) {
  (void)state;
  float gap[SAMPLES][2];
  samples(gap, 0, 20);
  assert_true(waits(gap, 2));
  for (uint32_t i = 0; i < SAMPLES; i += 20)
    gap[i][1] = 900; /* its end seemed to lie behind the start */
  assert_true(waits(gap, 2));
}

/* Where stamps are off by more than the times vary no line tells; but what begins at once has waited. */
static void test_at_once(void **state) {
  (void)state;
  float gap[SAMPLES][2];
  samples(gap, 0, 3);
  for (uint32_t i = 0; i < SAMPLES; i++) {
    gap[i][0] = 5000 + (float)((i * 2654435761u >> 16) % 90); /* the end on slot 1 moves by more */
    gap[i][1] = (float)(((i + 100) * 2246822519u >> 16) % 160);
  }
  assert_true(waits(gap, 100));
  assert_false(waits(gap, 2));
  for (uint32_t i = 0; i < SAMPLES; i++)
    gap[i][1] += 300;
  assert_false(waits(gap, 100));
}

/*
 * A message that always takes as long: its end moves by what its stamp is off alone, and starts do not move
 * with stamps. That they do not is no proof that nobody waits for it.
 */
static void test_always_as_long(void **state) {
  (void)state;
  float gap[SAMPLES][2];
  for (uint32_t i = 0; i < SAMPLES; i++) {
    const float off = (float)((i * 2654435761u >> 16) % 120);
    gap[i][0] = 5000 + (float)(i * 104729 % 90); /* its start, behind its own slot's end, */
    gap[i][1] = gap[i][0] - 3500 - off;          /* and behind the message's, whose stamp is off */
  }
  struct ni_baseline u;
  ni_baseline_find(&u, gap[0], SAMPLES, 2, 0, false, 100);
  /* the places of which more is known say it */
  assert_true(u.alternative_slot == 1 && u.alternative_us > 1300 && u.alternative_us < 1700);
  ni_baseline_find(&u, gap[0], SAMPLES, 2, 0, false, 2);
  assert_true(isnan(u.alternative_us));
}

/* Slot 0 and slot 1 by turns: slot 1 begins `early` before the end of one in `each` operations of slot 0. */
static int64_t overlap_each(uint32_t each, int64_t early_ns, bool beside, int64_t second_ns) {
  enum { N = 200 };
  static struct ni_blame_op op[N];
  static const uint16_t function[2] = {0, 1};
  struct ni_blame_slot slot[2] = {{.comm = 0}, {.comm = 1, .kind = NI_BLAME_SEND, .peer = 1}};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2};
  struct ni_step_mark mark = {.slot = 0, .n = 1, .token = 9};
  struct ni_places *x = calloc(1, sizeof *x);
  x->out = &rank;
  x->function = function;
  for (uint32_t i = 0; i < N; i++) {
    const int64_t start = 1000000 + i * INT64_C(200000);
    const int64_t off = i % (2 * each) == 1 ? (beside ? (int64_t)(i * 7919 % 100) * 1000 : early_ns) : 0;
    const int64_t length = i % 2 ? second_ns : 200000;
    op[i] = (struct ni_blame_op){.start_ns = start - off,
                                 .end_ns = start - off + length,
                                 .sn = i / 2,
                                 .token = i % 2,
                                 .what = i % 2,
                                 .slot = (uint16_t)(i % 2)};
  }
  assert_int_equal(ni_places_find(x, op, N, &mark), 0);
  const int64_t overlap = x->overlap_ns;
  ni_places_free(x);
  free(x);
  return overlap;
}

static int64_t overlap_of(int64_t early_ns, bool beside, int64_t second_ns) {
  return overlap_each(2, early_ns, beside, second_ns);
}

static void test_overlap_of_two(void **state) {
  (void)state;
  assert_int_equal(overlap_of(60000, false, 200000),
                   60000); /* one follows the other: so far stamps are off */
  assert_int_equal(overlap_of(0, false, 200000), NI_PLACE_OVERLAP_LEAST_NS);
  assert_int_equal(overlap_of(150000, false, 200000),
                   NI_PLACE_OVERLAP_LEAST_NS); /* beside it, or in one kernel */
  assert_int_equal(overlap_of(60000, false, 50000),
                   60000); /* the norm of the gradients: shorter than stamps are off */
  assert_int_equal(overlap_each(1, 60000, false, 50000),
                   NI_PLACE_OVERLAP_LEAST_NS); /* never behind it: computed beside */
}

/* A rank that is late from some step on, a little less in some: not in bursts. */
static void test_onset_is_no_burst(void **state) {
  (void)state;
  enum { BINS = 200 };
  float x[BINS];
  bool hit[BINS];
  for (uint32_t k = 0; k < BINS; k++)
    x[k] = k < 100 ? 0 : k % 20 < 4 ? 0.08f : 0.14f;
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 0);
  for (uint32_t k = 100; k < BINS; k++)
    x[k] = k % 20 < 4 ? 0 : 0.14f;
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 5);
}

/*
 * Four links of two ranks, of which rank 0 is late; stamps are off by 20 us. Transfers of its link are 10 us
 * longer, since the duration of the last one alone is left.
 */
static void test_always_last(void **state) {
  (void)state;
  enum { BINS = 40, LINKS = 4 };
  for (int late = 0; late < 2; late++) {
    struct ni_process process[2 * LINKS] = {0};
    struct ni_host host[2 * LINKS] = {0};
    struct ni_comm_row comm[LINKS] = {0};
    struct ni_blame_rank rank[2 * LINKS] = {0};
    struct ni_blame_link link[LINKS] = {0};
    uint32_t of[LINKS][2];
    float us[LINKS][BINS];
    struct ni_summary s = {.process = process, .host = host, .n_hosts = 2 * LINKS, .comm = comm};
    struct ni_blame b = {.s = &s,
                         .rank = rank,
                         .n_ranks = 2 * LINKS,
                         .link = link,
                         .n_links = LINKS,
                         .bins = BINS,
                         .steps = BINS,
                         .bin_steps = 1};
    struct ni_causes causes = {0};
    for (uint32_t r = 0; r < 2 * LINKS; r++) {
      process[r].host = r;
      rank[r] = (struct ni_blame_rank){
          .process = r, .judged = true, .n_steps = BINS, .last_ns = BINS * INT64_C(10000), .overlap_us = 20};
    }
    for (uint32_t i = 0; i < LINKS; i++) {
      comm[i].n_ranks = 2;
      of[i][0] = 2 * i;
      of[i][1] = 2 * i + 1;
      for (uint32_t k = 0; k < BINS; k++)
        us[i][k] = i ? 50 : 60;
      link[i] = (struct ni_blame_link){.comm = i,
                                       .from = -1,
                                       .to = -1,
                                       .rank = of[i],
                                       .n_ranks = 2,
                                       .host = -1,
                                       .us = us[i],
                                       .per_step = 1,
                                       .mean_us = us[i][0],
                                       .quiet_us = us[i][0],
                                       .baseline_us = 50,
                                       .alike = LINKS};
    }
    if (late)
      (void)ni_cause_add(&causes, NI_FIND_LATE_RANK, NI_LEVEL_RANK, 0);
    assert_int_equal(ni_find_slow_links(&b, &causes), 0);
    assert_int_equal(causes.n, 1); /* the link, or the late rank alone */
    assert_int_equal(causes.item[0].links, !late);
    ni_causes_free(&causes);
  }
}

/*
 * Two stages that exchange messages alone; the clock of the second is an hour ahead, and its steps begin 2
 * later.
 */
static void test_number_by_messages(void **state) {
  (void)state;
  struct ni_blame_slot slot[2] = {{.comm = 0, .rank = 0, .peer = 1, .kind = NI_BLAME_SEND, .ops = 80},
                                  {.comm = 0, .rank = 1, .peer = 0, .kind = NI_BLAME_RECV, .ops = 80}};
  struct ni_blame_cell cell[2][20] = {0};
  struct ni_blame_rank rank[2];
  struct ni_process process[2] = {0};
  struct ni_summary s = {.process = process};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 2};
  for (uint32_t r = 0; r < 2; r++) {
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = &slot[r],
                                     .n_slots = 1,
                                     .one_comm = true,
                                     .cell = cell[r],
                                     .n_bins = 20,
                                     .bin_steps = 1,
                                     .n_steps = 20,
                                     .whole_steps = 20,
                                     .ops = 80};
    for (uint32_t k = 0; k < 20; k++) {
      cell[r][k].start_ns = 1000000000 * (int64_t)(k + 1) + (r ? 3600000000000 : 0);
      for (uint32_t i = 0; i < 4; i++)
        ni_anchor_update(&slot[r], NI_BLAME_MESSAGE, k * 4 + i, r && k > 2 ? k - 2 : r ? 0 : k, i);
    }
  }
  assert_int_equal(ni_number_steps(&b), 0);
  assert_int_equal(rank[1].shift - rank[0].shift, 2);
  slot[1].ops = 70; /* some are missing: their numbers are others */
  b.bins = b.steps = 0;
  assert_int_equal(ni_number_steps(&b), 0);
  assert_true(rank[1].shift - rank[0].shift != 2);
}

/* Three stages in a row, of which the last comes second in the tables: the one between joins it with the
 * first. */
static void test_number_by_way_of(void **state) {
  (void)state;
  static const int32_t stage[3] = {0, 2, 1};
  struct ni_blame_slot slot[3][2] = {0};
  struct ni_blame_cell cell[3][20] = {0};
  struct ni_blame_rank rank[3];
  struct ni_process process[3] = {0};
  struct ni_summary s = {.process = process};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 3};
  for (uint32_t r = 0; r < 3; r++) {
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = slot[r],
                                     .cell = cell[r],
                                     .n_bins = 20,
                                     .bin_steps = 1,
                                     .n_steps = 20,
                                     .whole_steps = 20,
                                     .ops = 80};
    for (int32_t to = stage[r] - 1; to <= stage[r] + 1; to += 2)
      if (to >= 0 && to <= 2)
        slot[r][rank[r].n_slots++] = (struct ni_blame_slot){
            .rank = stage[r], .peer = to, .kind = to > stage[r] ? NI_BLAME_SEND : NI_BLAME_RECV, .ops = 80};
    for (uint32_t k = 0; k < 20; k++) {
      cell[r][k].start_ns = 1000000000 * (int64_t)(k + 1 + 7 * r); /* clocks that nobody can compare */
      for (uint32_t i = 0; i < 4 * rank[r].n_slots; i++)
        ni_anchor_update(&slot[r][i % rank[r].n_slots], NI_BLAME_MESSAGE, k * 4 + i / rank[r].n_slots, k,
                         i / rank[r].n_slots);
    }
  }
  assert_int_equal(ni_number_steps(&b), 0);
  assert_int_equal(rank[1].shift, rank[0].shift);
  assert_int_equal(rank[2].shift, rank[0].shift);
}

/*
 * Stages of a rank each. With tensor parallelism two layers of four micro-batches, and something besides that
 * takes long; without it forward and backward of eight.
 */
enum { STAGES = 4, STAGE_KEYS = 64 };

struct stages {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_comm_row comm[STAGES + 1];
  struct ni_blame_rank rank[STAGES];
  struct ni_blame_slot slot[STAGES][3];
  struct ni_blame_place place[STAGES][STAGE_KEYS];
};

static struct stages *new_stages(void) {
  struct stages *x = calloc(1, sizeof *x);
  x->s.comm = x->comm;
  x->b =
      (struct ni_blame){.s = &x->s, .rank = x->rank, .n_ranks = STAGES, .n_classes = STAGES, .stages = true};
  for (uint32_t r = 0; r < STAGES; r++) {
    const int32_t stage = (int32_t)r;
    x->comm[r].n_ranks = 1;
    x->rank[r] = (struct ni_blame_rank){.cls = r, .slot = x->slot[r], .place = x->place[r], .n_steps = 1};
    x->slot[r][x->rank[r].n_slots++] = (struct ni_blame_slot){.comm = r, .peer = -1, .bytes = 1 << 20};
    for (int32_t to = stage - 1; to <= stage + 1; to += 2)
      if (to >= 0 && to < STAGES)
        x->slot[r][x->rank[r].n_slots++] =
            (struct ni_blame_slot){.comm = STAGES, .rank = stage, .peer = to, .kind = NI_BLAME_SEND};
  }
  return x;
}

static void put_places(struct stages *x, uint32_t r, float times, bool whole) {
  static const float layer_us[4] = {400, 600, 800, 1200}, pass_us[2] = {4000, 8000};
  for (uint32_t k = 0; k < 16; k++)
    x->place[r][k] = (struct ni_blame_place){.usual_us = times * (whole ? pass_us[k % 2] : layer_us[k % 4]),
                                             .message = whole};
  x->rank[r].n_places = 16;
}

static struct ni_stage_more stage_more(struct stages *x, uint32_t r) {
  static const float over_us[STAGES];
  struct ni_stage_more more[STAGES];
  assert_int_equal(ni_compare_stages(&x->b, over_us, more), 0);
  return more[r];
}

static bool is_share(float share, float right) { return fabsf(share - right) < 0.005f; }

static void test_stages(void **state) {
  (void)state;
  struct stages *x = new_stages();
  for (uint32_t r = 0; r < STAGES; r++)
    put_places(x, r, r == 1 ? 1.05f : 1, false);
  for (uint32_t k = 0; k < 4; k++) { /* the last one has a loss, and kernels that follow at once */
    x->place[3][x->rank[3].n_places++] = (struct ni_blame_place){.usual_us = 4000 + (float)k};
    x->place[3][x->rank[3].n_places++] = (struct ni_blame_place){.usual_us = 20};
  }
  assert_true(is_share(stage_more(x, 1).share, 0.05f));
  assert_false(stage_more(x, 1).can_be_work);
  assert_true(is_share(stage_more(x, 3).share, 0));
  put_places(x, 1, 1, false);
  for (uint32_t k = 0; k < 16; k++)
    x->place[1][k].usual_us *= k % 4 ? 1 : 1.2f; /* a tenth of its layers: other work */
  assert_true(is_share(stage_more(x, 1).share, 0));
  put_places(x, 1, 1, false);
  /* a fourth of its layers are as long as elsewhere, the others are longer: other work, too */
  for (uint32_t k = 0; k < 16; k++)
    x->place[1][k].usual_us *= k % 4 ? 1.15f : 1;
  assert_true(is_share(stage_more(x, 1).share, 0));
  for (uint32_t r = 0; r < STAGES; r++) { /* a layer of two micro-batches, and kernels that follow at once */
    put_places(x, r, r == 1 ? 1.15f : 1, false);
    for (uint32_t k = 7; k < 16; k++)
      x->place[r][k].usual_us = 5;
  }
  assert_true(is_share(stage_more(x, 1).share, 0.15f));
  /* of two replicas the third stage has the logs of one, which may be the slow one */
  for (uint32_t r = 0; r < STAGES; r++)
    put_places(x, r, r == 2 ? 1.15f : 1, false);
  x->rank[1].cls = 0;
  x->rank[2].cls = 1;
  x->rank[3].cls = NI_BLAME_NONE;
  x->b.n_classes = 2;
  assert_true(is_share(stage_more(x, 1).share, 0));
  free(x);
}

/* A stage of many places: its loss takes longer than its layers, and is the longest of them. */
static void test_stages_of_many_places(void **state) {
  (void)state;
  enum { LAYERS = 48, LOSS = 12 };
  struct stages *x = new_stages();
  for (uint32_t r = 0; r < STAGES; r++) {
    const uint32_t n = r == STAGES - 1 ? LAYERS + LOSS : LAYERS;
    const float times = r == STAGES - 1 ? 1.1f : 1;
    x->rank[r].n_places = n;
    for (uint32_t k = 0; k < n; k++) {
      const float us = k >= LAYERS ? 3940 : k % 2 ? 3340 : 1670;
      x->place[r][k] = (struct ni_blame_place){.usual_us = times * us};
    }
  }
  assert_true(is_share(stage_more(x, STAGES - 1).share, 0.1f));
  assert_true(is_share(stage_more(x, 0).share, 0));
  free(x);
}

static void test_whole_stages(void **state) {
  (void)state;
  struct stages *x = new_stages();
  static const float times[STAGES] = {1.3f, 1.1f, 1, 1.3f};
  for (uint32_t r = 0; r < STAGES; r++)
    put_places(x, r, times[r], true);
  /* not beside the first one, which can have an embedding, and the last one, which can have a loss */
  assert_true(is_share(stage_more(x, 1).share, 0.1f));
  assert_false(stage_more(x, 1).can_be_work);
  assert_true(is_share(stage_more(x, 2).share, 0) || stage_more(x, 2).share < 0);
  assert_true(stage_more(x, 3).can_be_work && stage_more(x, 3).share > 0.1f);
  for (uint32_t r = 0; r < STAGES; r++)
    put_places(x, r, r % 3 ? 1 : 0.8f, true);
  assert_true(is_share(stage_more(x, 1).share, 0)); /* nor beside ends that are quicker */
  for (uint32_t r = 0; r < STAGES; r++)
    put_places(x, r, r == 3 ? 1.3f : r == 1 ? 1.1f : 1, true);
  for (uint32_t r = 0; r < STAGES; r++)
    x->slot[r][0].bytes = 0; /* no gradients: how many layers, nobody knows */
  assert_true(is_share(stage_more(x, 1).share, 0));
  assert_true(is_share(stage_more(x, 3).share, 0));
  for (uint32_t r = 0; r < STAGES; r++)
    x->slot[r][0].bytes =
        r == 1 ? 3 << 20 : 2 << 20; /* it has more layers, and takes longer by these alone */
  put_places(x, 1, 1.5f, true);
  assert_true(is_share(stage_more(x, 1).share, 0));
  assert_true(is_share(stage_more(x, 2).share, 0));
  x->slot[1][0].bytes =
      1 << 20; /* half as many, and takes less by a fourth: it is slow, or they are others */
  put_places(x, 1, 0.75f, true);
  assert_true(is_share(stage_more(x, 1).share, 0.5f) && stage_more(x, 1).can_be_work);
  assert_true(stage_more(x, 1).by_layers && !stage_more(x, 1).at_end);
  assert_true(stage_more(x, 2).share < 0);
  x->slot[1][0].bytes = 1 << 17; /* so few that gradients do not say it */
  assert_true(is_share(stage_more(x, 1).share, 0));
  free(x);
}

/* Before each message of a rank lie these, by turns; so long it is idle in a step. */
static void put_passes(struct stages *x, uint32_t r, float first_us, float second_us, double idle_us) {
  for (uint32_t k = 0; k < 6; k++)
    x->place[r][k] = (struct ni_blame_place){.usual_us = k % 2 ? second_us : first_us, .message = true};
  x->rank[r].n_places = 6;
  x->rank[r].idle_us = idle_us;
  x->rank[r].late_idle_us = 0;
}

/* Before each message of the last stage lies a forward pass and the backward pass of the same micro-batch. */
static void test_last_stage(void **state) {
  (void)state;
  struct stages *x = new_stages();
  for (uint32_t r = 0; r < STAGES; r++)
    put_passes(x, r, 4000, 8000, 38000);
  put_passes(x, 3, 14400, 14400, 45200);
  assert_true(is_share(stage_more(x, 3).share, 0.2f));
  assert_true(stage_more(x, 3).can_be_work); /* a loss is as long */
  assert_true(stage_more(x, 1).share <= 0);
  put_passes(x, 3, 12000, 12000, 45200); /* idle for another reason than that it computes */
  assert_true(is_share(stage_more(x, 3).share, 0));
  put_passes(x, 3, 14400, 14400, 45200);
  x->rank[3].late_idle_us = 6000; /* its CPU launches late */
  assert_true(is_share(stage_more(x, 3).share, 0));
  put_passes(x, 3, 14400, 14400, 45200);
  x->slot[3][0].bytes = 6 << 18; /* half as many layers more */
  put_passes(x, 3, 18900, 18900, 58700);
  assert_true(is_share(stage_more(x, 3).share, 0.05f));
  free(x);
}

/*
 * Eight ranks with one communicator compute 10 ms before each of six operations that run beside the next
 * part; one takes a tenth longer. Others are 1 ms further ahead in each place, until their operation begins
 * when the one before has ended: then its gap is longer than theirs by all of it. Behind the step all wait
 * for all.
 */
static void test_lead(void **state) {
  (void)state;
  enum { RANKS = 8, PLACES = 6, LATE = 7 };
  static const float late_us[PLACES] = {11000, 9000, 9000, 9000, 9000, 1100};
  static const float more_us[PLACES] = {1000, 1900, 2800, 9000, 9000, 100};
  struct ni_blame_place place[RANKS][PLACES];
  struct ni_blame_rank rank[RANKS];
  uint32_t member[RANKS];
  float over[RANKS], seen[RANKS];
  struct ni_lead lead[RANKS];
  struct ni_blame b = {.rank = rank, .n_ranks = RANKS, .bins = 20, .bin_steps = 1};
  struct ni_compared c = {.member = member, .n = RANKS, .over_us = over, .seen_us = seen, .lead = lead};
  for (uint32_t r = 0; r < RANKS; r++) {
    member[r] = r;
    rank[r] = (struct ni_blame_rank){.judged = true,
                                     .place = place[r],
                                     .n_places = PLACES,
                                     .n_slots = 1,
                                     .one_comm = true,
                                     .n_steps = 10,
                                     .last_ns = 10 * INT64_C(52000000)};
    for (uint32_t k = 0; k < PLACES; k++) {
      const float us = r == LATE ? late_us[k] : late_us[k] - more_us[k];
      place[r][k] =
          (struct ni_blame_place){.name = k + 1, .at = k + 1, .order = k, .usual_us = us, .mean_us = us};
    }
  }
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(lead[LATE].rate > 0.08f && lead[LATE].rate < 0.12f);
  /* 1 ms of each 11: not the 23.8 ms that its gaps are longer by together */
  assert_true(lead[LATE].of_sum * 23800 > 4000 && lead[LATE].of_sum * 23800 < 6000);
  assert_true(lead[0].rate == 0);
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < PLACES; k++)
      place[r][k].usual_us = place[r][k].mean_us = r == LATE ? 11000 : 10000;
  assert_int_equal(ni_compare_places(&b, &c), 0); /* nobody runs ahead: it is late by the sum */
  assert_true(lead[LATE].rate == 0 && lead[LATE].apart == 1);
  assert_true(c.level_us > 59000 && c.level_us < 61000);
  /* Half of the ranks count their operations from elsewhere: nobody computes in the places of both halves. */
  for (uint32_t r = RANKS / 2; r < RANKS; r++)
    for (uint32_t k = 0; k < PLACES; k++)
      place[r][k].at = place[r][k].name = 100 + k;
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(c.level_us > 59000 && c.level_us < 61000);
  assert_true(over[LATE] > 5900 && over[LATE] < 6100);
}

/*
 * The same, where all wait for all before the longest place: nobody is ahead there, and the rank takes 2 %
 * longer in it. Each bucket behind it is late by as much and a little more, while the others compute.
 */
static void test_lead_from_even(void **state) {
  (void)state;
  enum { RANKS = 8, PLACES = 6, LATE = 7 };
  static const float late_us[PLACES] = {27000, 900, 900, 900, 900, 1280};
  static const float more_us[PLACES] = {580, 590, 600, 620, 640, 5};
  struct ni_blame_place place[RANKS][PLACES];
  struct ni_blame_rank rank[RANKS];
  uint32_t member[RANKS];
  float over[RANKS], seen[RANKS];
  struct ni_lead lead[RANKS];
  struct ni_blame b = {.rank = rank, .n_ranks = RANKS, .bins = 20, .bin_steps = 1};
  struct ni_compared c = {.member = member, .n = RANKS, .over_us = over, .seen_us = seen, .lead = lead};
  for (uint32_t r = 0; r < RANKS; r++) {
    member[r] = r;
    rank[r] = (struct ni_blame_rank){.judged = true,
                                     .place = place[r],
                                     .n_places = PLACES,
                                     .n_slots = 1,
                                     .one_comm = true,
                                     .n_steps = 10,
                                     .last_ns = 10 * INT64_C(44000000)};
    for (uint32_t k = 0; k < PLACES; k++) {
      const float us = r == LATE ? late_us[k] : late_us[k] - more_us[k];
      place[r][k] =
          (struct ni_blame_place){.name = k + 1, .at = k + 1, .order = k, .usual_us = us, .mean_us = us};
    }
  }
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(lead[LATE].rate > 0.01f && lead[LATE].rate < 0.02f);
  /* by 0.64 ms of a step, not by the 3 ms that its gaps are longer by together */
  assert_true(lead[LATE].of_sum * 3030 > 500 && lead[LATE].of_sum * 3030 < 800);
}

/*
 * The last stage of eight pipelines: 12 ms forward and 24 ms back, twice. All but one wait for activations in
 * between. The slow one finds them there, so it waits for what it sent itself, and no place of it is like a
 * place of the others.
 */
static void test_whole_own_time(void **state) {
  (void)state;
  enum { RANKS = 8, SLOW = 7, STEPS = 10 };
  struct ni_blame_place place[RANKS][2];
  struct ni_blame_cell cell[RANKS];
  struct ni_blame_rank rank[RANKS];
  uint32_t member[RANKS];
  float over[RANKS], seen[RANKS];
  struct ni_lead lead[RANKS];
  struct ni_blame b = {.rank = rank, .n_ranks = RANKS, .bins = 1, .bin_steps = STEPS};
  struct ni_compared c = {.member = member, .n = RANKS, .over_us = over, .seen_us = seen, .lead = lead};
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool is_slow = r == SLOW;
    const float us = is_slow ? 54000 : 24000 + 100 * (float)r;
    member[r] = r;
    place[r][0] = (struct ni_blame_place){
        .name = is_slow ? 2 : 1, .at = 1, .waits = is_slow ? 1 : 3, .usual_us = us, .mean_us = us};
    place[r][1] = (struct ni_blame_place){.name = 3, .at = 3, .order = 1, .usual_us = 5, .mean_us = 5};
    cell[r] = (struct ni_blame_cell){.burst = is_slow ? 50000 : 0}; /* a pause is not how fast it computes */
    rank[r] = (struct ni_blame_rank){.judged = true,
                                     .place = place[r],
                                     .n_places = 2,
                                     .cell = &cell[r],
                                     .n_bins = 1,
                                     .n_slots = 2,
                                     .n_steps = STEPS,
                                     .own_us = is_slow ? 1130000 : 720000 + 1000 * r,
                                     .last_ns = STEPS * INT64_C(120000000)};
  }
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(over[SLOW] > 35500 && over[SLOW] < 36000);
  assert_true(seen[SLOW] > 72000 && seen[SLOW] < 72500);
  assert_true(seen[0] > 23900 && seen[0] < 24500);
  place[SLOW][0].waits = 7; /* for what the others wait for, and for more: it is as late as it looks there */
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(over[SLOW] > 29500 && over[SLOW] < 30000);
  place[SLOW][0].waits = 1;
  rank[6].own_us = rank[5].own_us = 900000; /* nobody knows what it would take */
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(!(over[SLOW] > 0));
  rank[6].own_us = rank[5].own_us = 726000;
  b.waits_unseen = true;
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(!(over[SLOW] > 0));
  for (uint32_t r = SLOW - 2; r < SLOW; r++) { /* two others wait for the same, and do not take longer */
    place[r][0].name = 2;
    assert_int_equal(ni_compare_places(&b, &c), 0);
    assert_true(r + 1 < SLOW ? !(over[SLOW] > 0) : over[SLOW] > 29000 && over[SLOW] < 31000);
  }
  b.waits_unseen = false;
  place[SLOW][0].name = 1; /* it waits for the same: then its place says it */
  assert_int_equal(ni_compare_places(&b, &c), 0);
  assert_true(over[SLOW] > 29000 && over[SLOW] < 31000);
}

static bool paces(const struct ni_blame *b, uint32_t rank) {
  struct ni_launches x;
  assert_int_equal(ni_launches_begin(&x, b), 0);
  const bool answer = ni_launches_pace(&x, rank);
  ni_launches_end(&x);
  return answer;
}

/* Two hosts of four ranks, all of whose idle time ends with a launch; ms of it in a step. */
static void test_launches(void **state) {
  (void)state;
  enum { RANKS = 8 };
  static const double ms[RANKS] = {10, 11, 12, 13, 12, 11, 14, 10};
  struct ni_process process[RANKS] = {0};
  struct ni_host host[2] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = 2};
  struct ni_blame_cell cell[RANKS];
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = RANKS, .bins = 1, .bin_steps = 1};
  for (uint32_t r = 0; r < RANKS; r++) {
    const float us = 1e3f * (float)ms[r];
    process[r].host = r / 4;
    cell[r] = (struct ni_blame_cell){.start_ns = 1, .idle = us, .late_idle = 0.9f * us};
    rank[r] = (struct ni_blame_rank){
        .process = r, .judged = true, .n_steps = 1, .cell = &cell[r], .n_bins = 1, .bin_steps = 1};
  }
  assert_true(paces(&b, 6)); /* the longest, by what chance makes */
  cell[6].late_idle = cell[6].idle = 30e3f;
  assert_false(paces(&b, 6)); /* its CPU is slow */
  cell[6].late_idle = 10e3f;
  assert_false(paces(&b, 6)); /* its GPU computes */
}

/*
 * 40 steps, of which those from `from` to `to` have 10 ms before late launches, and the first one 500 ms, as
 * everywhere. Returns how many times as much it is in the interval.
 */
static float find_interval(uint32_t from, uint32_t to, uint32_t *found_from, uint32_t *found_to) {
  enum { STEPS = 40 };
  struct ni_process process[2] = {0};
  struct ni_host host[1] = {0};
  struct ni_blame_cell cell[2][STEPS] = {0};
  struct ni_blame_rank rank[2];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = 1};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 2, .bins = STEPS, .steps = STEPS, .bin_steps = 1};
  struct ni_launches x;
  for (uint32_t r = 0; r < 2; r++) {
    rank[r] = (struct ni_blame_rank){
        .process = r, .judged = true, .n_steps = STEPS, .n_bins = STEPS, .bin_steps = 1, .cell = cell[r]};
    for (uint32_t k = 0; k < STEPS; k++)
      cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k,
                                          .late_idle = k == 0       ? 500e3f
                                              : k >= from && k < to ? 10e3f
                                                                    : 0};
  }
  assert_int_equal(ni_launches_begin(&x, &b), 0);
  const float times = ni_launches_find_interval(&x, 1, found_from, found_to);
  ni_launches_end(&x);
  return times;
}

/* A CPU is slow by what it does all the time, however long others took to load and compile at first. */
static void test_launches_of_first_step(void **state) {
  (void)state;
  enum { RANKS = 8, STEPS = 20, SLOW = 5 };
  struct ni_process process[RANKS] = {0};
  struct ni_host host[2] = {0};
  struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = 2};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = RANKS, .bins = STEPS, .bin_steps = 1};
  struct ni_launches x;
  for (uint32_t r = 0; r < RANKS; r++) {
    process[r].host = r / 4;
    rank[r] = (struct ni_blame_rank){
        .process = r, .judged = true, .n_steps = STEPS, .cell = cell[r], .n_bins = STEPS, .bin_steps = 1};
    for (uint32_t k = 0; k < STEPS; k++) {
      const float late_us = (r == SLOW ? 5e3f : 0) + (k == 0 && r % 2 == 0 ? 300e3f : 0);
      cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k, .idle = 20e3f + late_us, .late_idle = late_us};
    }
  }
  assert_int_equal(ni_launches_begin(&x, &b), 0);
  assert_true(x.late[SLOW] && ni_launches_stand_out(&x, SLOW));
  assert_false(x.late[0]);
  ni_launches_end(&x);
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < STEPS; k++) { /* most of what is idle is computing: a loader is little of it */
      const float late_us = 1500 + 10 * (float)r + (r == SLOW ? 6e3f : 0);
      cell[r][k] = (struct ni_blame_cell){.start_ns = 1 + k, .idle = 150e3f + late_us, .late_idle = late_us};
    }
  assert_int_equal(ni_launches_begin(&x, &b), 0);
  assert_true(x.late[SLOW] && ni_launches_stand_out(&x, SLOW));
  assert_false(x.late[RANKS - 1]);
  assert_false(ni_launches_pace_peers(&x, SLOW));
  ni_launches_end(&x);
  for (uint32_t r = 0; r < RANKS; r++)
    for (uint32_t k = 0; k < STEPS; k++) /* it is most of what they are idle for: CPUs pace them all */
      cell[r][k].late_idle = 0.6f * cell[r][k].idle;
  assert_int_equal(ni_launches_begin(&x, &b), 0);
  assert_true(ni_launches_pace_peers(&x, SLOW));
  ni_launches_end(&x);
}

static void test_launch_interval(void **state) {
  (void)state;
  uint32_t from, to;
  const float times = find_interval(20, 40, &from, &to);
  assert_true(from == 20 && to == 40 && times > 1.8f && times < 2.05f);
  assert_true(fabsf(find_interval(0, 40, &from, &to) - 1) < 0.01f && from == 0 && to == 40);
  (void)find_interval(10, 30, &from, &to);
  assert_true(from == 10 && to == 30);
  assert_true(find_interval(1, 3, &from, &to) <= 0); /* warming up: for a moment only */
}

/*
 * Eight ranks of a host, 16 operations in each step of a block. Each rank computes 200 us before each of
 * them, give or take 10; the last one takes 10 % longer. Stamps are off by up to `off_us`. Returns what is
 * said that it costs.
 */
static double late_costs(float off_us) {
  enum { RANKS = 8, EACH = 16, OPS = EACH * NI_BLAME_BLOCK, TRANSFER = 200 };
  static struct ni_blame_rank rank[RANKS];
  static struct ni_process process[RANKS];
  static double end[RANKS];
  struct ni_comm_row comm = {0};
  struct ni_summary s = {.comm = &comm, .n_comms = 1, .process = process, .n_hosts = 1};
  uint32_t member[RANKS], late = RANKS - 1;
  struct ni_blame_link link = {.from = -1, .to = -1, .rank = member, .n_ranks = RANKS};
  struct ni_blame_slot slot = {.peer = -1};
  uint64_t hash = 1, draw = 7;
  struct ni_cause cause = {.kind = NI_FIND_LATE_RANK,
                           .of = late,
                           .item = &late,
                           .n_items = 1,
                           .to = NI_BLAME_BLOCK,
                           .share = 0.1f,
                           .of_gaps = 0.1f,
                           .excess_us = 20 * EACH,
                           .lead = {.part = 1, .apart = 1}};
  struct ni_causes causes = {.n = 1};
  struct ni_blame b = {.s = &s,
                       .rank = rank,
                       .n_ranks = RANKS,
                       .link = &link,
                       .n_links = 1,
                       .bins = NI_BLAME_BLOCK,
                       .bin_steps = 1,
                       .steps = NI_BLAME_BLOCK - 1,
                       .sample_every = 1};
  struct ni_replay out;
  double done = 0;
  causes.item[0] = cause;
  for (uint32_t r = 0; r < RANKS; r++) {
    member[r] = r;
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = &slot,
                                     .n_slots = 1,
                                     .one_comm = true,
                                     .token_hash = &hash,
                                     .n_sample = OPS,
                                     .overlap_us = 2 * off_us};
    rank[r].sample = calloc(OPS, sizeof *rank[r].sample);
    end[r] = 0;
  }
  for (uint32_t i = 0; i < OPS; i++) {
    double start[RANKS], last = 0;
    for (uint32_t r = 0; r < RANKS; r++) {
      start[r] = done + (r == late ? 220 : 200) + 10 * (2 * drawn(&draw) - 1);
      last = fmax(last, start[r]);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
      const double begun = start[r] + off_us * (2 * drawn(&draw) - 1);
      const double ended = last + TRANSFER + off_us * (2 * drawn(&draw) - 1);
      struct ni_blame_sampled *op = &rank[r].sample[i];
      *op = (struct ni_blame_sampled){.exec_us = (float)(ended - begun),
                                      .gap_us = (float)(begun - end[r]),
                                      .sn = i,
                                      .step = i / EACH,
                                      .main = i > 0};
      op->after_us = i ? op->gap_us + op[-1].exec_us : 0;
      end[r] = ended;
    }
    done = last + TRANSFER;
  }
  rank[0].last_ns = (int64_t)(done * 1e3);
  assert_int_equal(ni_replay(&b, &causes, &out), 0);
  return causes.item[0].cost_us;
}

/* Stamps that are off by as much as the rank is late do not hide most of what it costs, and add nothing. */
static void test_cost_of_late(void **state) {
  (void)state;
  const double exact = late_costs(0), off = late_costs(20);
  assert_true(exact > 1000);
  assert_true(off > 0.65 * exact && off <= exact);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_line),
      cmocka_unit_test(test_at_once),
      cmocka_unit_test(test_always_as_long),
      cmocka_unit_test(test_overlap_of_two),
      cmocka_unit_test(test_onset_is_no_burst),
      cmocka_unit_test(test_always_last),
      cmocka_unit_test(test_lead),
      cmocka_unit_test(test_lead_from_even),
      cmocka_unit_test(test_whole_own_time),
      cmocka_unit_test(test_launches),
      cmocka_unit_test(test_launches_of_first_step),
      cmocka_unit_test(test_launch_interval),
      cmocka_unit_test(test_number_by_messages),
      cmocka_unit_test(test_number_by_way_of),
      cmocka_unit_test(test_stages),
      cmocka_unit_test(test_stages_of_many_places),
      cmocka_unit_test(test_whole_stages),
      cmocka_unit_test(test_last_stage),
      cmocka_unit_test(test_cost_of_late),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
