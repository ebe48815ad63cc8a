/* What comes and goes, rule by rule: periods of pauses, bursts; whose step is which of another's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exporter/model/sums/ranks/places.h"
#include "exporter/model/sums/spells/spells.h"
#include "exporter/model/sums/work/joined.h"
#include "exporter/model/sums/work/number.h"

/* n moments from step `first` on, `each` steps apart, every third one a step late. */
static uint32_t moments(struct ni_spell_moment *at, uint32_t n, uint32_t first, uint32_t each, float us) {
  for (uint32_t i = 0; i < n; i++)
    at[i] = (struct ni_spell_moment){first + i * each + (i % 3 == 2), us * (1 + 0.05f * (float)(i % 2)), 1};
  return n;
}

static void test_period(void **state) {
  (void)state;
  struct ni_spell_moment at[16];
  bool in[16];
  struct ni_period p = ni_find_period(at, moments(at, 5, 30, 50, 9e5f), in);
  assert_true(p.steps >= 49 && p.steps <= 51 && p.n == 5 && p.first == 30 && p.us > 9e5f && p.us < 9.5e5f);
  uint32_t n = moments(at, 5, 30, 50, 9e5f);
  at[n++] = (struct ni_spell_moment){260, 5e3f, 1}; /* a short one between has another reason */
  p = ni_find_period(at, n, in);
  assert_true(p.n == 5 && in[0] && in[4] && !in[5]);
  n = moments(at, 6, 30, 50, 9e5f);
  at[3] = at[4];
  at[4] = at[5]; /* one was missed: two periods */
  p = ni_find_period(at, n - 1, in);
  assert_true(p.steps >= 49 && p.steps <= 51 && p.n == 5);
  assert_int_equal(ni_find_period(at, moments(at, 2, 30, 50, 9e5f), in).steps, 0);
  assert_int_equal(ni_find_period(at, moments(at, 8, 30, 2, 9e5f), in).steps,
                   0); /* each second step is no period of its own */
  static const uint32_t by_chance[] = {12, 31, 99, 110, 171, 188, 280};
  for (n = 0; n < 7; n++)
    at[n] = (struct ni_spell_moment){by_chance[n], 2e5f, 1};
  assert_int_equal(ni_find_period(at, n, in).steps, 0);
  assert_false(in[0]);
  for (n = 0; n < 3; n++)
    at[n] = (struct ni_spell_moment){n, 5e4f, 1}; /* a job begins slowly */
  for (; n < 11; n++)
    at[n] = (struct ni_spell_moment){5 * (n - 2), 5.5e4f, 1};
  p = ni_find_period(at, n, in);
  assert_true(p.steps == 5 && p.n == 8 && p.first == 5 && p.exact && !in[2] && in[3]);
  at[7].step++; /* one of eight comes late: something else counts than steps */
  p = ni_find_period(at, n, in);
  assert_true(p.steps == 5 && p.n == 8 && !p.exact);
  n = moments(at, 3, 30, 50, 2e5f); /* three could be chance: they have to be as long, too */
  assert_true(ni_find_period(at, n, in).steps > 0);
  at[1].us = 4e5f;
  assert_int_equal(ni_find_period(at, n, in).steps, 0);
}

enum { BINS = 200 };

/* Bins with a little noise, and bursts of `length` from each of n begins on. */
static void bursts(float *x, uint32_t n, const uint32_t *from, uint32_t length, float height) {
  for (uint32_t k = 0; k < BINS; k++)
    x[k] = 0.01f * (float)((int)(k * 7919 % 5) - 2);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = from[i]; k < from[i] + length && k < BINS; k++)
      x[k] += height;
}

static void test_bursts(void **state) {
  (void)state;
  static const uint32_t from[] = {10, 60, 150};
  float x[BINS];
  bool hit[BINS];
  bursts(x, 3, from, 6, 0.2f);
  struct ni_bursts b = ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit);
  assert_true(b.n == 3 && b.bins == 18 && b.excess > 0.18f && b.excess < 0.22f && hit[10] && hit[15] &&
              !hit[16] && !hit[9]);
  x[62] = 0; /* one bin does not end a burst */
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 3);
  assert_int_equal(ni_find_bursts(x, BINS, 0.06f, NI_BURSTS_IN_A_ROW, hit).n, 0); /* chance makes as much */
  assert_false(hit[10]);
  x[62] = x[63] = NAN; /* nor do two that another rank's pause silences */
  b = ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit);
  assert_true(b.n == 3 && b.bins == 18);
  bursts(x, 3, from, 6, 0.09f); /* much of what it computes is hidden: a tenth is seen of it */
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 3);
  assert_int_equal(ni_find_bursts(x, BINS, 0.03f, NI_BURSTS_IN_A_ROW, hit).n, 0);
  bursts(x, 3, from, 6, 0.03f);
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 0);
  bursts(x, 3, from, 1, 0.3f); /* single bins are pauses or chance */
  b = ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit);
  assert_true(b.n == 0 && b.area == 0);
  bursts(x, 1, from, 60, 0.2f); /* an episode */
  b = ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit);
  assert_true(b.n == 0 && b.area > 11);
  bursts(x, 3, from, 45, 0.2f); /* most of the run */
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 0);
  bursts(x, 3, from, 6, 0.2f);
  for (uint32_t k = 0; k < BINS; k++)
    x[k] += 0.08f; /* it is late all along */
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 0);
}

/*
 * Many single bins that are longer are bursts of their own shape; some, or a rank that is late all along, are
 * not.
 */
static void test_single_bins(void **state) {
  (void)state;
  uint32_t from[20];
  float x[BINS];
  bool hit[BINS];
  for (uint32_t i = 0; i < 20; i++)
    from[i] = 3 + i * 9 + i % 3;
  bursts(x, 20, from, 1, 0.2f);
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_IN_A_ROW, hit).n, 0);
  const struct ni_bursts b = ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_OF_ONE, hit);
  assert_true(b.n == 20 && b.bins == 20 && b.excess > 0.17f && b.excess < 0.23f);
  assert_true(hit[from[0]] && hit[from[19]] && !hit[from[0] + 1]);
  assert_int_equal(ni_find_bursts(x, BINS, 0.04f, NI_BURSTS_OF_ONE, hit).n, 0); /* chance makes as much */
  bursts(x, 4, from, 1, 0.2f);
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_OF_ONE, hit).n, 0);
  bursts(x, 20, from, 1, 0.1f);
  for (uint32_t k = 0; k < BINS; k++)
    x[k] += 0.045f; /* it is late all along */
  assert_int_equal(ni_find_bursts(x, BINS, 0.01f, NI_BURSTS_OF_ONE, hit).n, 0);
}

/*
 * Ranks 0 and 1 share a communicator, 1 and 2 another. Rank 1 begins 3 steps later; 2's clock is an hour
 * ahead.
 */
static void test_number(void **state) {
  (void)state;
  struct ni_blame_slot slot[3][2] = {{{.comm = 0, .ops = 100}},
                                     {{.comm = 0, .ops = 100}, {.comm = 1, .ops = 100}},
                                     {{.comm = 1, .ops = 100}}};
  struct ni_blame_cell cell[3][20] = {0};
  struct ni_blame_rank rank[3];
  struct ni_process process[3] = {0};
  struct ni_summary s = {.process = process};
  struct ni_blame b = {.s = &s, .rank = rank, .n_ranks = 3, .sample_every = 1};
  for (uint32_t r = 0; r < 3; r++) {
    const uint32_t late = r == 1 ? 3 : 0, n_slots = r == 1 ? 2 : 1;
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .slot = slot[r],
                                     .n_slots = n_slots,
                                     .cell = cell[r],
                                     .n_bins = 20 - late,
                                     .bin_steps = 1,
                                     .n_steps = 20 - late,
                                     .whole_steps = 20 - late,
                                     .ops = (20 - late) * 5};
    for (uint32_t k = 0; k < 20 - late; k++) {
      cell[r][k].start_ns = 1000000000 * (int64_t)(k + 1 + late) + (r == 2 ? 3600000000000 : 0);
      for (uint32_t i = 0; i < 5 * n_slots; i++)
        ni_anchor_update(&slot[r][i / 5], 77, (k + late) * 5 + i % 5, k, i % 5);
    }
  }
  assert_int_equal(ni_number_steps(&b), 0);
  assert_true(rank[0].shift == 0 && rank[1].shift == 3 && rank[2].shift == 0);
  assert_true(b.steps == 20 && b.bins == 20 && b.whole_steps == 20);
  slot[2][0].anchor_of = 78; /* nothing in common: by time, as far as that goes */
  b.bins = b.steps = 0;
  assert_int_equal(ni_number_steps(&b), 0);
  assert_true(rank[1].shift - rank[0].shift == 3 && b.steps > 20);
  slot[1][0].anchor_of = 78; /* by a communicator that is not in the logs, in the same blocks of the sample */
  process[1].may_wait_unseen = true;
  for (uint32_t k = 0; k < 17; k++)
    cell[1][k].start_ns += 4000000000;
  b.bins = b.steps = 0;
  assert_int_equal(ni_number_steps(&b), 0);
  assert_true(rank[1].shift - rank[0].shift == (int32_t)NI_BLAME_BLOCK);
}

/*
 * Four hosts of four ranks, which the recorded communicators join within a host alone. Rank 0 collects
 * garbage each 20 steps; those of its host wait for it within their operations, those of two other hosts
 * between theirs, for a rank of the first host, in a communicator that is not recorded.
 */
static void test_waits_outside(void **state) {
  (void)state;
  enum { HOSTS = 4, OF_HOST = 4, RANKS = HOSTS * OF_HOST, STEPS = 200, EACH = 20, PAUSES = STEPS / EACH };
  struct ni_process process[RANKS] = {0};
  struct ni_host host[HOSTS] = {0};
  struct ni_blame_incident incident[RANKS][PAUSES] = {0};
  struct ni_blame_cell cell[RANKS][STEPS] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = HOSTS};
  struct ni_blame b = {.s = &s,
                       .rank = rank,
                       .n_ranks = RANKS,
                       .bins = STEPS,
                       .bin_steps = 1,
                       .steps = STEPS,
                       .waits_unseen = true};
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool pauses = r == 0 || (r >= OF_HOST && r < 3 * OF_HOST);
    process[r].host = r / OF_HOST;
    for (uint32_t k = 0; k < PAUSES; k++)
      incident[r][k] = (struct ni_blame_incident){
          .us = 80e3f, .step = k * EACH + 3, .in_step = 1 + 7 * k, .is_pause = true, .is_own = true};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 100,
                                     .team = r / OF_HOST,
                                     .incident = incident[r],
                                     .n_incidents = pauses ? PAUSES : 0,
                                     .incidents = pauses ? PAUSES : 0,
                                     .cell = cell[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  struct ni_causes out = {0};
  assert_int_equal(ni_find_pauses(&b, &out), 0);
  assert_true(out.n > 0 && out.item[0].kind == NI_FIND_PERIODIC);
  assert_true(out.item[0].n_items == 1 && out.item[0].item[0] == 0);
  ni_causes_free(&out);
}

/*
 * Three hosts of four ranks. Four pauses are chance for one rank where a rank elsewhere has one of them, and
 * none for all ranks of a host.
 */
static void test_host_pauses(void **state) {
  (void)state;
  enum { HOSTS = 3, OF_HOST = 4, RANKS = HOSTS * OF_HOST, STEPS = 200, PAUSES = 4, LAST = RANKS - OF_HOST };
  static const uint32_t step[PAUSES] = {53, 70, 86, 142};
  struct ni_process process[RANKS] = {0};
  struct ni_host host[HOSTS] = {0};
  struct ni_blame_incident incident[RANKS][PAUSES] = {0};
  struct ni_blame_cell cell[RANKS][STEPS] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = HOSTS};
  struct ni_blame b = {
      .s = &s, .rank = rank, .n_ranks = RANKS, .bins = STEPS, .bin_steps = 1, .steps = STEPS};
  for (uint32_t most = 1; most <= OF_HOST; most += OF_HOST - 1) {
    struct ni_causes out = {0};
    for (uint32_t r = 0; r < RANKS; r++) {
      const uint32_t n = r == 0 ? 1 : r >= LAST && r < LAST + most ? PAUSES : 0;
      process[r].host = r / OF_HOST;
      for (uint32_t k = 0; k < PAUSES; k++)
        incident[r][k] = (struct ni_blame_incident){
            .us = 1e5f * (float)(k + 1), .step = step[k], .in_step = 1 + 7 * k, .is_pause = true};
      rank[r] = (struct ni_blame_rank){.process = r,
                                       .judged = true,
                                       .n_steps = STEPS,
                                       .ops = STEPS * 100,
                                       .team = r / OF_HOST,
                                       .incident = incident[r],
                                       .n_incidents = n,
                                       .incidents = n,
                                       .cell = cell[r],
                                       .n_bins = STEPS,
                                       .bin_steps = 1};
    }
    assert_int_equal(ni_find_pauses(&b, &out), 0);
    assert_int_equal(out.n, most == OF_HOST);
    if (out.n)
      assert_true(out.item[0].level == NI_LEVEL_HOST && out.item[0].of == HOSTS - 1);
    ni_causes_free(&out);
  }
}

/* Shifts of ranks that pause in each 40th step, or in some of these alone. */
enum { EACH_40TH = 1000, SOME_40TH = 2000 };

static uint32_t get_pause_step(uint32_t shift, uint32_t k) {
  static const uint32_t some[] = {1, 2, 4, 7};
  if (shift >= SOME_40TH)
    return 40 * some[k] + shift - SOME_40TH;
  return shift >= EACH_40TH ? 40 * (k + 1) : 7 * k * k / 4 + shift;
}

/*
 * Ranks pause 30 ms each, without a period, as often as pauses says: the k-th in step 7 * k * k / 4 and the
 * shift of the rank. Returns how many are named; first: one of them.
 */
static uint32_t pausing(const uint32_t *pauses, const uint32_t *shift, struct ni_blame *b, uint32_t *first) {
  enum { HOSTS = 4, OF_HOST = 4, RANKS = HOSTS * OF_HOST, STEPS = 400, MOST = 12 };
  static struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_process process[RANKS] = {0};
  struct ni_host host[HOSTS] = {0};
  struct ni_blame_incident incident[RANKS][MOST] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = HOSTS};
  struct ni_causes out = {0};
  uint32_t n = 0;
  b->s = &s;
  b->rank = rank;
  b->n_ranks = RANKS;
  b->bins = b->steps = STEPS;
  b->bin_steps = 1;
  for (uint32_t r = 0; r < RANKS; r++) {
    process[r].host = r / OF_HOST;
    for (uint32_t k = 0; k < pauses[r]; k++)
      incident[r][k] = (struct ni_blame_incident){.us = 30e3f,
                                                  .step = get_pause_step(shift[r], k),
                                                  .in_step = 1 + 7 * k,
                                                  .is_pause = true,
                                                  .is_own = true};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 100,
                                     .team = r / OF_HOST,
                                     .incident = incident[r],
                                     .n_incidents = pauses[r],
                                     .incidents = pauses[r],
                                     .cell = cell[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  assert_int_equal(ni_find_pauses(b, &out), 0);
  for (uint32_t i = out.n; i-- > 0;)
    if (out.item[i].kind == NI_FIND_PAUSES) {
      *first = out.item[i].item[0];
      n++;
    }
  ni_causes_free(&out);
  return n;
}

/*
 * Two ranks that pause now and then, each at its own moments, are named; of ranks of several hosts that do so
 * together one waits for the other, in what is not in the logs.
 */
static void test_pauses_together(void **state) {
  (void)state;
  struct ni_blame b = {0};
  uint32_t pauses[16] = {0}, shift[16] = {0}, first = 0;
  pauses[1] = pauses[9] = 12;
  shift[9] = 4;
  assert_int_equal(pausing(pauses, shift, &b, &first), 2);
  assert_int_equal(first, 1);
  shift[9] = 0;
  assert_int_equal(pausing(pauses, shift, &b, &first), 0);
  pauses[9] = 8; /* it waits for rank 1, not the other way round */
  assert_int_equal(pausing(pauses, shift, &b, &first), 1);
  assert_int_equal(first, 1);
}

/*
 * What a rank does in some of the steps in which another host's does something else each so many is that,
 * too. At other moments it is its own.
 */
static void test_pauses_in_period(void **state) {
  (void)state;
  for (uint32_t off = 0; off < 20; off += 13) {
    struct ni_blame b = {0};
    uint32_t pauses[16] = {0}, shift[16] = {0}, first = 0;
    pauses[1] = 4;
    shift[1] = SOME_40TH + off;
    pauses[9] = 9;
    shift[9] = EACH_40TH;
    assert_int_equal(pausing(pauses, shift, &b, &first), off ? 1 : 0);
  }
}

/* Small operations of all are left out: what most ranks of a team pause together is a wait in one of them. */
static void test_team_waits(void **state) {
  (void)state;
  struct ni_blame b = {0};
  uint32_t pauses[16] = {0}, shift[16] = {0}, first = 0;
  pauses[1] = 12;
  for (uint32_t r = 4; r < 16; r++)
    pauses[r] = 12; /* three teams wait for rank 1 */
  assert_int_equal(pausing(pauses, shift, &b, &first), 0);
  b.teams_wait_unseen = true;
  assert_int_equal(pausing(pauses, shift, &b, &first), 1);
  assert_int_equal(first, 1);
}

/* Ranks 0 to 3 of a job, in communicators of two; n of these are in the logs. */
static void joined(uint32_t n, const uint32_t (*member)[2], int64_t world, struct ni_process *process,
                   struct ni_comm_row *comm) {
  struct ni_who_comm who_comm[4] = {{.n_ranks = 2}, {.n_ranks = 2}, {.n_ranks = 2}, {.n_ranks = 2}};
  struct ni_who_member who_member[8] = {0};
  struct ni_sum_process of_run[4] = {0};
  struct ni_seat seat[8] = {0};
  uint32_t at[4] = {0, 1, 2, 3};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_summary s = {.process = process,
                         .n_processes = 4,
                         .comm = comm,
                         .n_comms = n,
                         .seat = seat,
                         .n_seats = 2 * (size_t)n};
  assert_non_null(r);
  for (uint32_t i = 0; i < 4; i++) {
    of_run[i].world_size = (int32_t)world;
    process[i] = (struct ni_process){.rank = (int32_t)i, .rank_stated = true, .ranks = 1};
    comm[i] = (struct ni_comm_row){.n_ranks = 2, .ranks_seen = 2};
  }
  for (uint32_t i = 0; i < 2 * n; i++) {
    seat[i] = (struct ni_seat){.comm = i / 2, .process = member[i / 2][i % 2]};
    who_member[i] = (struct ni_who_member){.process = member[i / 2][i % 2], .comm = i / 2};
  }
  r->who.comm = who_comm;
  r->who.member = who_member;
  r->who.n_comms = n;
  r->who.n_members = 2 * (size_t)n;
  r->process = of_run;
  r->comm_at = r->process_at = at;
  assert_int_equal(ni_joined_find(r, &s), 0);
  free(r);
}

/* What joins all ranks is in the logs, or not; between neighbours or not. */
static void test_joined(void **state) {
  (void)state;
  static const uint32_t all[4][2] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}}, far[2][2] = {{0, 2}, {1, 3}};
  struct ni_process process[4];
  struct ni_comm_row comm[4];
  joined(4, all, 4, process, comm);
  assert_false(process[0].may_wait_unseen || process[3].may_wait_unseen);
  joined(2, all, 4, process, comm); /* two pieces */
  assert_true(process[0].may_wait_unseen && process[3].may_wait_unseen);
  assert_true(comm[0].neighbours && comm[1].neighbours);
  joined(2, far, 4, process, comm);
  assert_true(process[0].may_wait_unseen && !comm[0].neighbours);
  joined(1, all, 2, process, comm); /* a job of two ranks */
  assert_false(process[0].may_wait_unseen);
  joined(1, all, 4, process, comm); /* two others have no logs, and share no communicator that has */
  assert_true(process[1].may_wait_unseen);
}

/* A gap is longer than usual by what its place rarely waits for: a quarter and 200 us. */
static void test_least_own(void **state) {
  (void)state;
  assert_true(isnan(ni_baseline_least_own(1000, 1450)));
  assert_true(fabs(ni_baseline_least_own(1000, 1451) - 700) < 0.5);
  assert_true(isnan(ni_baseline_least_own(NAN, 1e9f)));
}

/*
 * Eight ranks on two hosts. All pause in the first step. Rank 3 pauses `own` times, `each` steps apart from
 * step 8 on; the second time the others do so, too, for far shorter: that one is its own all the same.
 */
static void find_pauses_each(uint32_t each, uint32_t own, struct ni_causes *out) {
  enum { RANKS = 8, STEPS = 40, OWN = 10 };
  struct ni_process process[RANKS] = {0};
  struct ni_host host[2] = {0};
  struct ni_blame_incident incident[RANKS][OWN + 2] = {0};
  struct ni_blame_cell cell[RANKS][STEPS] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = 2};
  struct ni_blame b = {
      .s = &s, .rank = rank, .n_ranks = RANKS, .bins = STEPS, .bin_steps = 1, .steps = STEPS};
  for (uint32_t r = 0; r < RANKS; r++) {
    uint32_t n = 0;
    process[r].host = r / 4;
    process[r].rank = (int32_t)r;
    incident[r][n++] =
        (struct ni_blame_incident){.us = 900e3f, .step = 0, .in_step = 9, .is_pause = true, .is_own = true};
    for (uint32_t k = 0; k < own; k++)
      if (r == 3 || k == 1)
        incident[r][n++] = (struct ni_blame_incident){.us = r == 3 ? 300e3f : 20e3f,
                                                      .step = 8 + each * k,
                                                      .in_step = 1 + 7 * k,
                                                      .is_pause = true,
                                                      .is_own = true};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 100,
                                     .incident = incident[r],
                                     .n_incidents = n,
                                     .incidents = n,
                                     .cell = cell[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  assert_int_equal(ni_find_pauses(&b, out), 0);
}

static void test_common_pauses(void **state) {
  (void)state;
  enum { OWN = 4 };
  struct ni_causes out = {0};
  find_pauses_each(6, OWN, &out);
  assert_true(out.n == 1 && out.item[0].kind == NI_FIND_PERIODIC && out.item[0].level == NI_LEVEL_RANK);
  assert_true(out.item[0].of == 3 && out.item[0].period == 6 && out.item[0].bins_hit == OWN);
  assert_true(out.item[0].excess_us > 299e3f && !out.item[0].in_place);
  ni_causes_free(&out);
}

/* Each third step: steps between have to be left, or nothing says what the pauses cost. */
static void test_dense_pauses(void **state) {
  (void)state;
  enum { OWN = 10 };
  struct ni_causes out = {0};
  uint32_t at = 0;
  find_pauses_each(3, OWN, &out);
  assert_true(out.n == 1 && out.item[0].kind == NI_FIND_PAUSES && out.item[0].of == 3);
  for (uint32_t k = 0; k < out.item[0].to; k++)
    at += out.item[0].at[k];
  assert_int_equal(at, OWN);
  ni_causes_free(&out);
}

/* Steps of `each` operations and a norm. */
static void mark_twice(unsigned each) {
  enum { STEPS = 48, MOST = 10, BARRIER = 8 };
  static struct ni_blame_op op[STEPS * (MOST + 2)];
  struct ni_comm_row comm[2] = {{.n_ranks = 2}, {.n_ranks = 4}};
  struct ni_summary s = {.comm = comm};
  struct ni_run *r = calloc(1, sizeof *r);
  struct ni_blame b = {.r = r, .s = &s};
  struct ni_blame_slot slot[2] = {{.comm = 0, .ops = STEPS * (uint64_t)each},
                                  {.comm = 1, .ops = STEPS + STEPS / BARRIER}};
  const char *func[2] = {"AllReduce", "AllReduce"};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2, .token_func = func, .n_tokens = 2};
  struct ni_step_mark m;
  uint32_t n = 0, ends = 0;
  for (unsigned i = 0; i < STEPS; i++)
    for (unsigned k = 0; k <= each + (i % BARRIER == BARRIER - 1); k++, n++)
      op[n] = (struct ni_blame_op){.start_ns = 1000000 + n * 1000,
                                   .end_ns = 1000500 + n * 1000,
                                   .sn = n,
                                   .token = k >= each,
                                   .what = k >= each,
                                   .slot = k >= each};
  assert_int_equal(ni_steps_find(&b, &rank, op, n, 0, &m), 0);
  assert_true(m.found);
  for (uint32_t i = 0; i < n; i++)
    ends += ni_steps_advance(&m, &op[i]);
  assert_int_equal(ends, STEPS);
  free(r);
}

/* Each 8 steps a barrier of the same size follows right behind the norm that ends a step: it ends none. */
static void test_mark_twice(void **state) {
  (void)state;
  mark_twice(10);
  mark_twice(4); /* also where a step is short */
}

/*
 * Steps of four layers and a norm, which ends them. Each eight steps a barrier follows that is the same
 * operation: it is extra, and the norm and the layers keep their places.
 */
static void test_extra_barrier(void **state) {
  (void)state;
  enum { STEPS = 64, EACH = 5, NORM = 1, BARRIER = 8 };
  static struct ni_blame_op op[STEPS * (EACH + 1)];
  static const uint16_t function[2] = {0, 1};
  struct ni_blame_slot slot[2] = {{.comm = 0}, {.comm = 1}};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 2, .n_tokens = 2};
  const struct ni_step_mark mark = {.slot = 0, .gap_ns = 500000, .found = true};
  int64_t t = 1000000;
  struct ni_places *x = calloc(1, sizeof *x);
  uint32_t n = 0, norm = NI_BLAME_NONE;
  uint64_t sn[2] = {0};
  x->out = &rank;
  x->function = function;
  for (unsigned i = 0; i < STEPS; i++)
    for (unsigned k = 0; k < EACH + (i % BARRIER == 3); k++, n++) {
      const bool is_norm = k >= EACH - 1;
      t += k ? 100000 : 1000000;
      op[n] = (struct ni_blame_op){.start_ns = t,
                                   .end_ns = t + 50000,
                                   .sn = sn[is_norm]++,
                                   .token = is_norm,
                                   .what = is_norm,
                                   .slot = is_norm};
    }
  assert_int_equal(ni_places_find(x, op, n, &mark), 0);
  assert_true(!x->extra[0] && !x->extra[NORM] && x->extra[x->n_extra + NORM] && !x->extra[x->n_extra]);
  assert_true(x->per_step[0] == EACH - 1 && x->per_step[1] == 1);
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_place_gap g = ni_places_measure_gap(x, &op[i]);
    const bool is_barrier = i && op[i].slot == NORM && op[i - 1].slot == NORM;
    assert_int_equal(g.extra, is_barrier);
    if (op[i].slot == NORM && norm == NI_BLAME_NONE)
      norm = g.key;
    assert_int_equal(g.key == norm, op[i].slot == NORM && !is_barrier);
    ni_places_count(x, &op[i], 0);
  }
  ni_places_free(x);
  free(x);
}

/*
 * Steps of four buckets. Each ten steps the loss is summed up as well: it has a place of its own, and the
 * buckets keep theirs. A bucket that has another size now and then is the same one.
 */
static void test_extra_operation(void **state) {
  (void)state;
  enum { STEPS = 60, LOSS = 1, LAST = 2, OTHER = 3 };
  static const unsigned EACH = 4;
  static struct ni_blame_op op[STEPS * 5];
  static const uint16_t function[4] = {0};
  struct ni_blame_slot slot[1] = {{.comm = 0}};
  struct ni_blame_rank rank = {.slot = slot, .n_slots = 1, .n_tokens = 4};
  const struct ni_step_mark mark = {.gap_ns = 500000, .found = true};
  int64_t t = 1000000;
  struct ni_places *x = calloc(1, sizeof *x);
  uint32_t n = 0, at = 0, first = 0;
  x->out = &rank;
  x->function = function;
  for (unsigned i = 0; i < STEPS; i++) {
    const bool loss = i % 10 == 0 && i;
    for (unsigned k = 0; k < EACH + loss; k++, n++) {
      const unsigned bucket = k - loss;
      uint32_t what = bucket == EACH - 1 ? LAST : 0;
      if (loss && k == 0)
        what = LOSS;
      else if (bucket == 1 && i % 5 == 3)
        what = OTHER;
      t += k ? 100000 : 1000000;
      op[n] = (struct ni_blame_op){.start_ns = t, .end_ns = t + 50000, .sn = n, .token = what, .what = what};
    }
  }
  assert_int_equal(ni_places_find(x, op, n, &mark), 0);
  assert_int_equal(x->per_step[0], EACH);
  assert_true(x->extra[LOSS] && !x->extra[OTHER] && !x->extra[0]);
  for (unsigned i = 0; i < STEPS; i++)
    for (unsigned k = 0; k < EACH + (i % 10 == 0 && i); k++, at++) {
      const struct ni_place_gap g = ni_places_measure_gap(x, &op[at]);
      const bool is_first =
          op[at].what == 0 && (at == 0 || op[at - 1].what == LAST || op[at - 1].what == LOSS);
      if (i == 0 && k == 0)
        first = g.key;
      assert_int_equal(g.key == first, is_first);
      ni_places_count(x, &op[at], 0);
    }
  ni_places_free(x);
  free(x);
}

/*
 * Two hosts of four ranks, which take as long for a step as one of them is apart from its next pause. Returns
 * how many are named.
 */
static uint32_t pausing_each_step(uint32_t ranks_from, bool in_place) {
  enum { HOSTS = 2, OF_HOST = 4, RANKS = HOSTS * OF_HOST, STEPS = 40, PAUSES = 26 };
  static struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_process process[RANKS] = {0};
  struct ni_host host[HOSTS] = {0};
  struct ni_blame_incident incident[RANKS][PAUSES] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = HOSTS};
  struct ni_blame b = {
      .s = &s, .rank = rank, .n_ranks = RANKS, .bins = STEPS, .bin_steps = 1, .steps = STEPS};
  struct ni_causes out = {0};
  uint32_t n = 0;
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool pauses = r >= ranks_from;
    process[r].host = r / OF_HOST;
    for (uint32_t k = 0; k < STEPS; k++)
      cell[r][k].burst = pauses && k < PAUSES ? 150e3f : 0;
    for (uint32_t k = 0; k < PAUSES; k++)
      incident[r][k] = (struct ni_blame_incident){.us = 150e3f,
                                                  .step = k + k / 3,
                                                  .in_step = in_place ? 7 : 1 + 37 * k % 100,
                                                  .is_pause = true,
                                                  .is_own = true};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 100,
                                     .team = r / OF_HOST,
                                     .incident = incident[r],
                                     .n_incidents = pauses ? PAUSES : 0,
                                     .incidents = pauses ? PAUSES : 0,
                                     .cell = cell[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  assert_int_equal(ni_find_pauses(&b, &out), 0);
  for (uint32_t i = 0; i < out.n; i++)
    n += out.item[i].kind == NI_FIND_PAUSES;
  ni_causes_free(&out);
  return n;
}

/*
 * What stops one rank in most steps, each time elsewhere, is a pause. What comes in one place of each step,
 * or to most ranks with the same work, is what is usual there.
 */
static void test_pauses_in_most_steps(void **state) {
  (void)state;
  assert_int_equal(pausing_each_step(7, false), 1);
  assert_int_equal(pausing_each_step(7, true), 0);
  assert_int_equal(pausing_each_step(4, false), 1); /* of a host all ranks */
  assert_int_equal(pausing_each_step(3, false), 0);
}

/*
 * Six ranks of a job whose 120 steps take 30 ms. After each so many they evaluate for 300 ms more: `more` of
 * them do four times as many operations in that step, which have no own time. Returns how many steps apart
 * that is said to be; 0: nothing.
 */
static uint32_t evaluation_period(uint32_t more, int64_t takes_ns, uint32_t each) {
  enum { RANKS = 6, STEPS = 120 };
  struct ni_process process[RANKS] = {0};
  struct ni_host host = {0};
  struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_blame_link_cell link[RANKS][STEPS] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = &host, .n_hosts = 1};
  struct ni_blame b = {
      .s = &s, .rank = rank, .n_ranks = RANKS, .bins = STEPS, .bin_steps = 1, .steps = STEPS};
  struct ni_causes out = {0};
  for (uint32_t r = 0; r < RANKS; r++) {
    int64_t at_ns = 1000000;
    for (uint32_t k = 0; k < STEPS; k++) {
      const bool evaluates = k % each == each - 1;
      cell[r][k] = (struct ni_blame_cell){.start_ns = at_ns, .places = 10};
      link[r][k].n = evaluates && r < more ? 40 : 10;
      at_ns += evaluates ? takes_ns : 30000000;
    }
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 10,
                                     .n_slots = 1,
                                     .max_slots = 1,
                                     .cell = cell[r],
                                     .link_cell = link[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  assert_int_equal(ni_find_evaluations(&b, &out), 0);
  uint32_t period = 0;
  if (out.n) {
    const struct ni_cause *c = &out.item[0];
    assert_true(c->kind == NI_FIND_PERIODIC && c->level == NI_LEVEL_JOB && ni_spells_is_note(c));
    assert_true(c->n_items == RANKS && ni_cause_is_active(c, each - 1) && !ni_cause_is_active(c, each));
    period = c->period;
    assert_int_equal(ni_find_evaluations(&b, &out), 0); /* it is named already */
    assert_int_equal(out.n, 1);
  }
  ni_causes_free(&out);
  return period;
}

static void test_evaluations(void **state) {
  (void)state;
  assert_int_equal(evaluation_period(6, 330000000, 20), 20);
  assert_int_equal(evaluation_period(6, 330000000, 40), 40); /* nothing says how long the third one takes */
  assert_int_equal(evaluation_period(3, 330000000, 20), 0);  /* half of the ranks: no work of the job */
  assert_int_equal(evaluation_period(6, 31000000, 20), 0);   /* it takes no time */
}

/*
 * Two hosts of four ranks; those of one pause each ten steps in the same place of the step, for 50 ms. Is it
 * told as a note? missed: so many of nine moments each of these ranks misses, each others: somebody else is
 * the last one then.
 */
static bool is_note_of_host(uint32_t host_of, bool stages, uint32_t missed) {
  enum { HOSTS = 2, OF_HOST = 4, RANKS = HOSTS * OF_HOST, STEPS = 100, PAUSES = 9 };
  static struct ni_blame_cell cell[RANKS][STEPS];
  struct ni_process process[RANKS] = {0};
  struct ni_host host[HOSTS] = {0};
  struct ni_blame_incident incident[RANKS][PAUSES] = {0};
  struct ni_blame_rank rank[RANKS];
  struct ni_summary s = {.process = process, .host = host, .n_hosts = HOSTS};
  struct ni_blame b = {.s = &s,
                       .rank = rank,
                       .n_ranks = RANKS,
                       .bins = STEPS,
                       .bin_steps = 1,
                       .steps = STEPS,
                       .stages = stages};
  struct ni_causes out = {0};
  for (uint32_t r = 0; r < RANKS; r++) {
    const bool pauses = r / OF_HOST == host_of;
    process[r].host = r / OF_HOST;
    process[r].rank = (int32_t)r;
    uint32_t n = 0;
    for (uint32_t k = 0; k < PAUSES && pauses; k++)
      if ((k + 2 * r) % PAUSES >= missed)
        incident[r][n++] = (struct ni_blame_incident){
            .us = 50e3f, .step = 5 + 10 * k, .in_step = 1, .is_pause = true, .is_own = true};
    rank[r] = (struct ni_blame_rank){.process = r,
                                     .judged = true,
                                     .n_steps = STEPS,
                                     .ops = STEPS * 100,
                                     .incident = incident[r],
                                     .n_incidents = n,
                                     .incidents = n,
                                     .cell = cell[r],
                                     .n_bins = STEPS,
                                     .bin_steps = 1};
  }
  assert_int_equal(ni_find_pauses(&b, &out), 0);
  assert_int_equal(out.n, 1);
  assert_true(out.item[0].kind == NI_FIND_PERIODIC && out.item[0].level == NI_LEVEL_HOST);
  assert_true(out.item[0].of == host_of && out.item[0].in_place && out.item[0].n_items == OF_HOST);
  assert_true(out.item[0].period == 10 && out.item[0].bins_hit == PAUSES);
  const bool is_note = ni_spells_is_note(&out.item[0]);
  ni_causes_free(&out);
  return is_note;
}

/* A checkpoint is written where rank 0 is. Of another host alone no program asks anything. */
static void test_period_of_host(void **state) {
  (void)state;
  assert_true(is_note_of_host(0, false, 0));
  assert_false(is_note_of_host(1, false, 0));
  assert_true(is_note_of_host(1, true, 0)); /* it is the last stage, and computes the metrics */
}

/* Each rank misses four of nine moments, each others: together they have them all. */
static void test_period_of_whole_host(void **state) {
  (void)state;
  assert_true(is_note_of_host(0, false, 4));
  assert_false(is_note_of_host(1, false, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_evaluations),     cmocka_unit_test(test_period),
      cmocka_unit_test(test_bursts),          cmocka_unit_test(test_single_bins),
      cmocka_unit_test(test_number),          cmocka_unit_test(test_least_own),
      cmocka_unit_test(test_host_pauses),     cmocka_unit_test(test_waits_outside),
      cmocka_unit_test(test_joined),          cmocka_unit_test(test_team_waits),
      cmocka_unit_test(test_pauses_together), cmocka_unit_test(test_pauses_in_period),
      cmocka_unit_test(test_common_pauses),   cmocka_unit_test(test_extra_barrier),
      cmocka_unit_test(test_mark_twice),      cmocka_unit_test(test_extra_operation),
      cmocka_unit_test(test_dense_pauses),    cmocka_unit_test(test_pauses_in_most_steps),
      cmocka_unit_test(test_period_of_host),  cmocka_unit_test(test_period_of_whole_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
