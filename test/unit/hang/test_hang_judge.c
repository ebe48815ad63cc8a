/*
 * The judge of hangs by itself: made-up models, one rule each (docs/hang.md), and every answer with its words
 * and its exit code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/base/now.h"
#include "exporter/cmds/hang/print.h"
#include "exporter/cmds/hang/say.h"
#include "exporter/cmds/hang/words.h"
#include "exporter/model/hang/judge/knot.h"
#include "exporter/model/hang/verdict.h"
#include "exporter/model/hang/settle.h"

#define S UINT64_C(1000000000)
#define T0 (UINT64_C(1790000000) * S)
#define STARTED (T0 - 100 * S) /* of all processes; operations begin at T0 */

/* ---- a job in the making ---- */

struct made {
  struct ni_hang_model m;
  struct ni_hang_verdict v;
  uint64_t now;
};

static struct ni_hang_process *process(struct made *j, int rank, const char *host) {
  int64_t k = ni_hang_process_of(&j->m, host, 1000 + rank, STARTED);
  struct ni_hang_process *p = &j->m.process[k];
  p->rank = rank;
  p->has_box = p->has_log = p->ours = true;
  p->life = NI_HANG_ALIVE;
  p->alive_ns = p->look_ns = j->now;
  return p;
}

static struct ni_hang_member *member_of(struct made *j, int rank, const char *host, const char *comm,
                                        uint64_t hash, int at, int n) {
  (void)process(j, rank, host);
  int64_t k = ni_hang_process_of(&j->m, host, 1000 + rank, STARTED);
  const struct ni_ident id = {.comm_hash = hash, .comm_name = comm, .rank = at, .n_ranks = n, .nnodes = 1};
  int64_t i = ni_hang_member_of(&j->m, (uint32_t)k, &id, T0 - S);
  struct ni_hang_member *x = j->m.member[i];
  x->open_ns = x->started_ns = j->now;
  if (x->started[0] == NI_HANG_NONE)
    x->started[0] = x->started[1] = 0;
  j->m.boxes = 1;
  return x;
}

static struct ni_hang_op call(struct made *j, uint64_t sn, uint64_t at_ns) {
  return (struct ni_hang_op){.kind = NI_KIND_COLL,
                             .func = (uint16_t)ni_hang_name(&j->m, "AllReduce"),
                             .sn = sn,
                             .rec_sn = sn,
                             .bytes = 1024,
                             .enqueue_ns = at_ns,
                             .state = NI_HANG_KERNEL,
                             .root = -1,
                             .want = 1,
                             .started = 1,
                             .net_peer = -1,
                             .net_channel = -1};
}

/* A second each: called at its beginning, ended half a second later. */
static void finishes(struct made *j, struct ni_hang_member *x, uint64_t from, uint64_t to) {
  for (uint64_t sn = from; sn < to; sn++) {
    struct ni_hang_op op = call(j, sn, T0 + sn * S);
    op.seen_ns = op.enqueue_ns + S / 2;
    assert_int_equal(ni_hang_finished(x, &op), 0);
    if (sn + 1 > x->started[0])
      x->started[0] = sn + 1;
  }
}

static void waits_in(struct made *j, struct ni_hang_member *x, uint64_t sn, uint64_t at_ns) {
  struct ni_hang_op op = call(j, sn, at_ns);
  op.seen_ns = j->now;
  assert_int_equal(ni_hang_in_flight(x, &op), 0);
  if (sn + 1 > x->started[0])
    x->started[0] = sn + 1;
}

static void dies(struct made *j, int rank, const char *host, uint64_t at_ns) {
  struct ni_hang_process *p = process(j, rank, host);
  p->life = NI_HANG_DEAD;
  p->alive_ns = at_ns;
}

static void ends(struct made *j, int rank, const char *host, uint64_t at_ns) {
  struct ni_hang_process *p = process(j, rank, host);
  p->life = NI_HANG_LEFT;
  p->alive_ns = at_ns;
}

static void judge(struct made *j, uint64_t after_s) {
  assert_int_equal(ni_hang_model_settle(&j->m), 0);
  assert_int_equal(ni_hang_judge(&j->v, &j->m, after_s * S, j->now), 0);
  ni_hang_make_certain(&j->v);
}

/* The sentence; the test's to free. */
static char *sentence(const struct made *j) {
  char *text;
  NI_HANG_SAID(text, ni_hang_say(f, &j->v));
  assert_non_null(text);
  return text;
}

static void says(const struct made *j, const char *part) {
  char *text = sentence(j);
  if (!strstr(text, part))
    fail_msg("'%s' is not in: %s", part, text);
  free(text);
}

static void done(struct made *j) {
  ni_hang_verdict_free(&j->v);
  ni_hang_model_free(&j->m);
}

/*
 * Four ranks that have finished 20 operations and wait in the next since they called it; those of `missing`,
 * a bit each, do not.
 */
static struct made four(uint64_t now, unsigned missing) {
  struct made j = {.now = now};
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 4);
    finishes(&j, x, 0, 20);
    if (!(missing >> r & 1))
      waits_in(&j, x, 20, T0 + 20 * S);
  }
  return j;
}

static size_t causes(const struct made *j, int *rank) {
  const struct ni_hang_knot *k = ni_hang_first(&j->v);
  size_t n = 0;
  assert_non_null(k);
  for (size_t i = 0; i < k->n; i++)
    if (ni_hang_is_cause(k, &k->view[i])) {
      *rank = k->view[i].rank;
      n++;
    }
  return n;
}

/* ---- one list: sentence, document and exit code ---- */

/* What ni_hang_print_json() writes; the test's to free. */
static char *document(const struct made *j) {
  char path[] = "/tmp/test_hang_judge.XXXXXX", *text = calloc(1, 1 << 20);
  int fd = mkstemp(path), out = dup(STDOUT_FILENO);
  assert_true(fd >= 0 && out >= 0 && text);
  fflush(stdout);
  dup2(fd, STDOUT_FILENO);
  ni_hang_print_json(&j->v, &(const struct ni_runs){0}, NULL);
  fflush(stdout);
  dup2(out, STDOUT_FILENO);
  assert_true(pread(fd, text, (1 << 20) - 1, 0) > 0);
  close(fd);
  close(out);
  unlink(path);
  return text;
}

static void has(const char *text, const char *key, const char *value) {
  char part[96];
  snprintf(part, sizeof part, "\"%s\":\"%s\"", key, value);
  if (!strstr(text, part))
    fail_msg("%s is not in: %.400s", part, text);
}

static void agrees(struct made *j, enum ni_hang_answer answer, const char *begins, int code,
                   const char *state) {
  const struct ni_hang_answer_words *w = ni_hang_words_of(answer);
  assert_int_equal(j->v.answer, answer);
  assert_int_equal(w->exit_code, code);
  char *text = sentence(j), *doc = document(j);
  assert_string_equal(w->head, begins);
  assert_int_equal(strncmp(text, w->head, strlen(w->head)), 0);
  has(doc, "answer", w->answer);
  has(doc, "verdict", w->verdict);
  if (state)
    has(doc, "state", state);
  assert_int_equal(strstr(doc, "\"cannot_tell\":null") == NULL, answer == NI_HANG_CANNOT_TELL);
  free(text);
  free(doc);
  done(j);
}

static void answers_are_one(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0};
  judge(&j, 300);
  agrees(&j, NI_HANG_NO_DATA_AT_ALL, "no data", 1, "no_data");
  j = four(T0 + 400 * S, 1 << 2);
  judge(&j, 300);
  agrees(&j, NI_HANG_LIKELY, "HANG (likely)", 3, "running");
  j = four(T0 + 400 * S, 1 << 2);
  dies(&j, 2, "a", T0 + 21 * S);
  judge(&j, 300);
  agrees(&j, NI_HANG_CERTAIN, "HANG (certain)", 3, "running");
  j = four(T0 + 94 * S, 1 << 2);
  judge(&j, 300);
  agrees(&j, NI_HANG_NOT_YET, "not yet a hang", 0, "running");
  j = four(T0 + 400 * S, 15);
  judge(&j, 300);
  agrees(&j, NI_HANG_NO_HANG, "no hang", 0, "running");
  j = four(T0 + 25 * S, 1 << 2);
  for (int r = 0; r < 4; r++) {
    struct ni_hang_process *p = process(&j, r, "a");
    p->life = NI_HANG_LIFE_UNKNOWN;
    p->has_box = false;
  }
  judge(&j, 300);
  agrees(&j, NI_HANG_CANNOT_TELL, "CANNOT TELL", 2, "unknown");
  j = four(T0 + 30 * S, 15);
  for (int r = 0; r < 4; r++)
    dies(&j, r, "a", T0 + 21 * S);
  judge(&j, 300);
  agrees(&j, NI_HANG_ALL_DEAD, "DEAD", 4, "dead");
  j = four(T0 + 30 * S, 15);
  for (int r = 0; r < 4; r++)
    ends(&j, r, "a", T0 + 21 * S);
  judge(&j, 300);
  agrees(&j, NI_HANG_ALL_ENDED, "ENDED", 0, "ended");
  /* Half of the logs were deleted: that those who are left ended says nothing of the others. */
  j = (struct made){.now = T0 + 30 * S};
  for (int r = 0; r < 2; r++) {
    finishes(&j, member_of(&j, r, "a", "world", 7, r, 4), 0, 20);
    ends(&j, r, "a", T0 + 21 * S);
  }
  judge(&j, 300);
  agrees(&j, NI_HANG_CANNOT_TELL, "CANNOT TELL", 2, "ended");
}

/* ---- who counts ---- */

static void what_a_dead_rank_left_proves_nothing(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0 + 60 * S};
  int rank = -1;
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 4);
    finishes(&j, x, 0, r == 0 ? 18 : 25);
    for (uint64_t sn = 18; r == 0 && sn < 25; sn++)
      waits_in(&j, x, sn, T0 + sn * S);
    if (r)
      waits_in(&j, x, 25, T0 + 25 * S);
  }
  dies(&j, 0, "a", T0 + 25 * S);
  judge(&j, 300);
  says(&j,
       "HANG (certain): AllReduce 25 of communicator world: the process of rank 0 (a) is gone; everyone else "
       "(3 ranks) is inside");
  assert_int_equal(causes(&j, &rank), 1);
  assert_int_equal(rank, 0);
  done(&j);
}

static void what_was_passed_is_lost(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 15);
  waits_in(&j, j.m.member[1], 5, T0 + 5 * S);
  ni_seq_set_free(&j.m.member[1]->recorded[0]); /* its end was not seen */
  for (uint64_t sn = 0; sn < 20; sn++)
    if (sn != 5)
      assert_int_equal(ni_seq_set_add(&j.m.member[1]->recorded[0], sn), 0);
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_NO_HANG);
  assert_int_equal(j.m.member[1]->lost, 1);
  assert_int_equal(j.v.n, 0);
  done(&j);
}

static void who_went_on_elsewhere_is_not_held_up(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 1 << 2);
  dies(&j, 2, "a", T0 + 21 * S);
  for (int r = 0; r < 4; r++) {
    if (r == 2)
      continue;
    const struct ni_ident id = {
        .comm_hash = 8, .comm_name = "again", .rank = r > 2 ? 2 : r, .n_ranks = 3, .nnodes = 1};
    int64_t i =
        ni_hang_member_of(&j.m, (uint32_t)ni_hang_process_of(&j.m, "a", 1000 + r, STARTED), &id, T0 + 30 * S);
    j.m.member[i]->open_ns = j.now;
    finishes(&j, j.m.member[i], 40, 50);
  }
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_NO_HANG);
  done(&j);
}

static void who_left_has_no_wait(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 1 << 2);
  for (int r = 0; r < 4; r++) {
    j.m.member[r]->destroyed = r != 2;
    j.m.member[r]->end_ns = T0 + 60 * S;
  }
  judge(&j, 30);
  assert_int_equal(j.v.answer, NI_HANG_NO_HANG);
  done(&j);
}

static void one_behind_is_named(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0 + 400 * S};
  int rank = -1;
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 4);
    finishes(&j, x, 0, r == 3 ? 20 : 21);
    waits_in(&j, x, r == 3 ? 20 : 21, T0 + (r == 3 ? 20 : 21) * S);
  }
  judge(&j, 300);
  says(&j,
       "AllReduce 20 of communicator world: 3 ranks have finished it, and 3 wait in a later one; one rank is "
       "inside: rank 3 (a)");
  assert_int_equal(causes(&j, &rank), 1);
  assert_int_equal(rank, 3);
  done(&j);
  /* Where nobody waits for it, it is none. */
  j = four(T0 + 400 * S, 15);
  for (int r = 0; r < 3; r++)
    finishes(&j, j.m.member[r], 20, 21);
  waits_in(&j, j.m.member[3], 20, T0 + 20 * S);
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_NO_HANG);
  done(&j);
}

static void one_call_too_many(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 15 & ~(1u << 1));
  int rank = -1;
  judge(&j, 300);
  says(&j, "rank 0 (a), rank 2 (a) and rank 3 (a) never called it; one rank is inside: rank 1 (a)");
  assert_int_equal(causes(&j, &rank), 1);
  assert_int_equal(rank, 1);
  done(&j);
}

/* ---- the cause ---- */

/* Rank 3 never calls on tp1; rank 2 waits there, and all others in world. */
static struct made chain(uint64_t now) {
  struct made j = {.now = now};
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *tp = member_of(&j, r, "a", r < 2 ? "tp0" : "tp1", r < 2 ? 10 : 11, r % 2, 2);
    finishes(&j, tp, 0, r < 2 ? 21 : 20);
    if (r == 2)
      waits_in(&j, tp, 20, T0 + 20 * S);
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 4);
    finishes(&j, x, 0, 20);
    if (r < 2)
      waits_in(&j, x, 20, T0 + 21 * S);
  }
  return j;
}

static void the_cause_comes_first(void **ctx) {
  (void)ctx;
  struct made j = chain(T0 + 400 * S);
  judge(&j, 300);
  says(&j, "HANG (likely): AllReduce 20 of communicator tp1: rank 3 (a) never called it");
  assert_int_equal(j.v.n_roots, 1);
  assert_int_equal(j.v.n_hangs, 2);
  done(&j);
  j = chain(T0 + 94 * S);
  judge(&j, 300);
  says(&j,
       "not yet a hang (a hang from 300 s on): AllReduce 20 of tp1, rank 3 (a) has not called it for 74 s");
  done(&j);
  j = chain(T0 + 94 * S);
  for (int r = 0; r < 4; r++)
    dies(&j, r, "a", T0 + 90 * S);
  judge(&j, 300);
  says(&j, "DEAD (4 ranks, 3 communicators): ");
  says(&j, "in flight then: AllReduce 20 of communicator tp1: rank 3 (a) had not called it");
  done(&j);
}

static void a_consequence_hangs_with_its_cause(void **ctx) {
  (void)ctx;
  struct made j = chain(T0 + 400 * S);
  struct ni_hang_member *x = member_of(&j, 3, "a", "own", 12, 0, 1); /* rank 3 works on: it is late */
  finishes(&j, x, 380, 399);
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_NOT_YET);
  done(&j);
}

static void a_deadlock_is_told_after_death(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0 + 90 * S};
  for (int r = 0; r < 2; r++)
    for (int c = 0; c < 2; c++) {
      struct ni_hang_member *x = member_of(&j, r, "a", c ? "b" : "a", 20 + (uint64_t)c, r, 2);
      finishes(&j, x, 0, 20);
      if (r == c)
        waits_in(&j, x, 20, T0 + 20 * S);
    }
  for (int r = 0; r < 2; r++)
    dies(&j, r, "a", T0 + 90 * S);
  judge(&j, 300);
  says(&j, "in flight then: deadlock of 2 communicators: ");
  done(&j);
}

/*
 * Ranks 2 and 3 were killed together in their own group; the others waited for them in world until all were.
 */
static void a_group_that_died_is_history(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0 + 90 * S};
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 4);
    finishes(&j, x, 0, 20);
    if (r < 2)
      waits_in(&j, x, 20, T0 + 20 * S);
    if (r < 2)
      continue;
    struct ni_hang_member *pair = member_of(&j, r, "a", "pair", 9, r - 2, 2);
    finishes(&j, pair, 0, 20);
    waits_in(&j, pair, 20, T0 + 20 * S);
  }
  for (int r = 0; r < 4; r++)
    dies(&j, r, "a", T0 + (r < 2 ? 90 : 21) * S);
  judge(&j, 300);
  says(&j,
       "HANG (likely): AllReduce 20 of communicator world: the processes of rank 2 (a) and rank 3 (a) are "
       "gone");
  done(&j);
}

/* Rank 4 is missing from a pair, rank 2 from the group of four: no rank in common. */
static void most_wait_for_the_first(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 1 << 2);
  for (int r = 4; r < 6; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "aside", 3, r - 4, 2);
    finishes(&j, x, 0, 20);
    if (r == 5)
      waits_in(&j, x, 20, T0 + 20 * S);
  }
  judge(&j, 300);
  says(&j, "HANG (likely): AllReduce 20 of communicator world: rank 2 (a) never called it");
  assert_int_equal(j.v.n_roots, 2);
  done(&j);
}

/* ---- when ---- */

static void the_limit_is_learnt(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 100 * S, 1 << 2);
  for (size_t i = 0; i < j.m.n_processes; i++) {
    j.m.process[i].longest_gap_ns = 5 * S;
    j.m.process[i].longest_operation_ns = 15 * S;
  }
  judge(&j, 300);
  assert_int_equal(j.v.limit_ns, 60 * S);
  assert_int_equal(j.v.answer, NI_HANG_LIKELY);
  done(&j);
  j = four(T0 + 75 * S, 1 << 2);
  for (size_t i = 0; i < j.m.n_processes; i++)
    j.m.process[i].longest_operation_ns = 15 * S;
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_NOT_YET);
  says(&j, "(a hang from 60 s on)");
  done(&j);
  j = four(T0 + 100 * S, 1 << 2);
  j.m.process[0].longest_operation_ns = S / 2; /* at least 10 s */
  judge(&j, 300);
  assert_int_equal(j.v.limit_ns, 10 * S);
  done(&j);
  j = four(T0 + 100 * S, 1 << 2);
  j.m.process[0].longest_operation_ns = 15 * S;
  judge(&j, 20); /* what the user set is the most */
  assert_int_equal(j.v.limit_ns, 20 * S);
  done(&j);
}

static void a_death_is_certain_at_once(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 26 * S, 1 << 2);
  dies(&j, 2, "a", T0 + 22 * S);
  judge(&j, 300);
  assert_int_equal(j.v.answer, NI_HANG_CERTAIN);
  assert_false(ni_hang_say_missing(stderr, &j.v, 0));
  done(&j);
  j = four(T0 + 24 * S, 1 << 2);
  dies(&j, 2, "a", T0 + 22 * S);
  judge(&j, 300);
  assert_false(ni_hang_is_hang(&j.v));
  done(&j);
}

/*
 * Two runs, one behind the other, of a communicator with one hash: what lies between them is no difference of
 * two hosts' clocks.
 */
static void runs_are_not_compared(void **ctx) {
  (void)ctx;
  enum { APART = 150 };
  struct made j = {.now = T0 + 400 * S};
  for (int run = 0; run < 2; run++)
    for (int r = 0; r < 8; r++) {
      const char *host = r < 4 ? "a" : "b";
      uint64_t later = (uint64_t)run * APART * S;
      int pid = 1000 + 10 * run + r;
      int64_t k = ni_hang_process_of(&j.m, host, pid, STARTED + later);
      const struct ni_ident id = {.comm_hash = 7, .comm_name = "world", .rank = r, .n_ranks = 8, .nnodes = 2};
      int64_t i = ni_hang_member_of(&j.m, (uint32_t)k, &id, T0 - S + later);
      struct ni_hang_member *x = j.m.member[i];
      x->started[0] = x->started[1] = 0;
      for (uint64_t sn = 0; sn < 20; sn++) {
        struct ni_hang_op op = call(&j, sn, T0 + sn * S + later);
        op.seen_ns = op.enqueue_ns + S / 2;
        assert_int_equal(ni_hang_finished(x, &op), 0);
      }
      struct ni_hang_process *p = &j.m.process[k];
      *p = (struct ni_hang_process){.rank = r,
                                    .world = 8,
                                    .has_log = true,
                                    .ours = true,
                                    .life = NI_HANG_LEFT,
                                    .alive_ns = T0 + 20 * S + later};
    }
  judge(&j, 300);
  for (size_t i = 0; i < j.m.n_processes; i++)
    assert_int_equal(j.m.process[i].skew_ns, 0);
  assert_int_equal(j.v.fate.earlier, 8);
  assert_int_equal(j.v.fate.processes, 8);
  done(&j);
}

/* Two ranks that ended before the other two began, by clocks nobody compares: an earlier run, if not one. */
static void one_run_is_not_its_own_past(void **ctx) {
  (void)ctx;
  for (uint32_t runs = 0; runs < 2; runs++) {
    struct made j = {.now = T0 + 900 * S};
    for (int r = 0; r < 4; r++) {
      (void)member_of(&j, r, r < 2 ? "a" : "b", r < 2 ? "tp0" : "tp1", r < 2 ? 10 : 11, r % 2, 2);
      ends(&j, r, r < 2 ? "a" : "b", r < 2 ? T0 + 20 * S : T0 + 800 * S);
    }
    for (size_t i = 0; i < j.m.n_processes; i++)
      j.m.process[i].run = runs;
    for (size_t i = 2; i < 4; i++)
      j.m.who.process[i].start_ns = T0 + 300 * S;
    judge(&j, 300);
    assert_int_equal(j.v.fate.earlier, runs ? 0 : 2);
    done(&j);
  }
}

static void clocks_of_hosts_are_put_right(void **ctx) {
  (void)ctx;
  struct made j = four(T0 + 400 * S, 1 << 2);
  uint64_t ahead = 317 * S, now = j.now;
  for (int r = 4; r < 8; r++) {
    j.now = now + ahead;
    struct ni_hang_member *x = member_of(&j, r, "b", "world", 7, r, 8);
    for (uint64_t sn = 0; sn < 20; sn++) {
      struct ni_hang_op op = call(&j, sn, T0 + sn * S + ahead);
      op.seen_ns = op.enqueue_ns + S / 2;
      assert_int_equal(ni_hang_finished(x, &op), 0);
    }
    waits_in(&j, x, 20, T0 + 20 * S + ahead);
  }
  j.now = now;
  for (int r = 0; r < 4; r++) {
    struct ni_hang_member *x = member_of(&j, r, "a", "world", 7, r, 8);
    finishes(&j, x, 0, 20);
    if (r != 2)
      waits_in(&j, x, 20, T0 + 20 * S);
  }
  judge(&j, 300);
  says(&j,
       "AllReduce 20 of communicator world: rank 2 (a) never called it; everyone else (7 ranks) is inside; "
       "nothing has moved for 380 s");
  assert_int_equal(j.v.fate.earlier, 0);
  done(&j);
}

static void a_thousand_ranks_in_a_second(void **ctx) {
  (void)ctx;
  struct made j = {.now = T0 + 400 * S};
  for (int r = 0; r < 1024; r++) {
    char host[16], name[16];
    snprintf(host, sizeof host, "n%d", r / 8);
    for (int c = 0; c < 3; c++) { /* the job, eight by eight, and across */
      int n = c == 0 ? 1024 : c == 1 ? 8 : 128, at = c == 0 ? r : c == 1 ? r % 8 : r / 8;
      uint64_t which = (uint64_t)(c == 0 ? 0 : c == 1 ? r / 8 : r % 8);
      snprintf(name, sizeof name, "%s%d", c == 0 ? "world" : c == 1 ? "tp" : "dp", (int)which);
      struct ni_hang_member *x = member_of(&j, r, host, name, 1000 * ((uint64_t)c + 1) + which, at, n);
      finishes(&j, x, 0, 20);
      if (r != 500)
        waits_in(&j, x, 20, T0 + (20 + (uint64_t)(2 - c)) * S);
    }
  }
  uint64_t begun = ni_now_ns(CLOCK_PROCESS_CPUTIME_ID);
  judge(&j, 300);
  uint64_t took = ni_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begun;
  printf("1,024 ranks of 3 communicators: %llu ms\n", (unsigned long long)(took / 1000000));
  /* The shipped code is what is timed, by the plain build; a sanitizer looks at each of its steps. */
  assert_true(took < (getenv("NI_VARIANT") ? 10 : 1) * S);
  assert_int_equal(j.v.answer, NI_HANG_LIKELY);
  says(&j, "rank 500 (n62) never called it");
  done(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_one),
      cmocka_unit_test(what_a_dead_rank_left_proves_nothing),
      cmocka_unit_test(what_was_passed_is_lost),
      cmocka_unit_test(who_went_on_elsewhere_is_not_held_up),
      cmocka_unit_test(who_left_has_no_wait),
      cmocka_unit_test(one_behind_is_named),
      cmocka_unit_test(one_call_too_many),
      cmocka_unit_test(the_cause_comes_first),
      cmocka_unit_test(a_group_that_died_is_history),
      cmocka_unit_test(most_wait_for_the_first),
      cmocka_unit_test(a_consequence_hangs_with_its_cause),
      cmocka_unit_test(a_deadlock_is_told_after_death),
      cmocka_unit_test(the_limit_is_learnt),
      cmocka_unit_test(a_death_is_certain_at_once),
      cmocka_unit_test(one_run_is_not_its_own_past),
      cmocka_unit_test(clocks_of_hosts_are_put_right),
      cmocka_unit_test(runs_are_not_compared),
      cmocka_unit_test(a_thousand_ranks_in_a_second),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
