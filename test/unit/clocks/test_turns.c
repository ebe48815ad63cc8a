/* Clocks that are set in the middle of a run: which host's it was, and which operations are behind that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/clocks/steps.h"
#include "exporter/model/clocks/turn.h"

#define MS INT64_C(1000000)

/* ---- which operation is the first behind a step ---- */

enum { OPS = 400 };

struct stream {
  int64_t true_ns[OPS], t_ns[OPS]; /* t_ns: by the clock that is set */
  size_t n;
};

/* The clock is set by by_ns between operations `behind` - 1 and `behind`. Others are known each 3 ms. */
static size_t find_turn(struct stream *s, size_t behind, int64_t by_ns) {
  const int64_t set_ns = s->true_ns[behind] - MS;
  const struct ni_host_clock clock = {
      .n_steps = 1,
      .step = {{.before_ns = set_ns - MS, .after_ns = set_ns + 2 * MS + by_ns, .by_ns = by_ns}}};
  size_t turn[NI_CLOCK_STEPS];
  for (size_t i = 0; i < s->n; i++)
    s->t_ns[i] = s->true_ns[i] + (i >= behind ? by_ns : 0);
  assert_int_equal(ni_clock_find_turns(&clock, s->t_ns, s->n, turn), 0);
  return turn[0];
}

/* gap_ms: before each operation, again and again. */
static struct stream repeat_gaps(const int *gap_ms, size_t n_gaps) {
  struct stream s = {.n = OPS};
  int64_t now = 0;
  for (size_t i = 0; i < OPS; i++) {
    now += gap_ms[i % n_gaps] * MS + (int64_t)(i * 7919 % 100) * 1000;
    s.true_ns[i] = now;
  }
  return s;
}

static void a_time_need_not_run_back(void **state) {
  (void)state;
  const int two_a_step[] = {31, 11};
  struct stream s = repeat_gaps(two_a_step, 2);
  for (size_t behind = 100; behind < 104; behind++) {
    assert_int_equal(find_turn(&s, behind, -8 * MS), behind);
    assert_int_equal(find_turn(&s, behind, -25 * MS), behind);
    assert_int_equal(find_turn(&s, behind, -28 * MS), behind);
    assert_int_equal(find_turn(&s, behind, -200 * MS), behind);
  }
}

/* Messages that begin together, and a step that takes nearly all of the gap between two groups of them. */
static void groups_of_messages(void **state) {
  (void)state;
  const int grouped[] = {26, 0, 0, 0, 9, 0, 0, 0};
  struct stream s = repeat_gaps(grouped, 8);
  assert_int_equal(find_turn(&s, 160, -24 * MS), 160);
  assert_int_equal(find_turn(&s, 160, -28 * MS), 160);
  assert_int_equal(find_turn(&s, 164, -28 * MS), 164);
}

static void set_forward(void **state) {
  (void)state;
  const int two_a_step[] = {31, 11};
  struct stream s = repeat_gaps(two_a_step, 2);
  assert_int_equal(find_turn(&s, 100, 13 * MS), 100);
  assert_int_equal(find_turn(&s, 101, 13 * MS), 101);
  assert_int_equal(find_turn(&s, 101, 3000 * MS), 101);
}

static void a_stream_that_ends_before(void **state) {
  (void)state;
  const int each[] = {10};
  struct stream s = repeat_gaps(each, 1);
  s.n = 201;
  assert_int_equal(find_turn(&s, 200, -25 * MS), 200);
  s.n = 200;
  assert_int_equal(find_turn(&s, 200, -25 * MS), 200);
  s.n = 0;
  assert_int_equal(find_turn(&s, 200, -25 * MS), 0);
}

static void two_steps(void **state) {
  (void)state;
  const int two_a_step[] = {31, 11};
  struct stream s = repeat_gaps(two_a_step, 2);
  struct ni_host_clock clock = {.n_steps = 2};
  const size_t behind[] = {100, 301};
  const int64_t by_ns[] = {-25 * MS, 40 * MS};
  int64_t off_ns = 0;
  for (size_t k = 0; k < 2; k++) {
    const int64_t set_ns = s.true_ns[behind[k]] - MS + off_ns;
    clock.step[k] = (struct ni_clock_step){set_ns - MS, set_ns + 2 * MS + by_ns[k], by_ns[k]};
    off_ns += by_ns[k];
  }
  for (size_t i = 0; i < s.n; i++)
    s.t_ns[i] = s.true_ns[i] + (i >= behind[0] ? by_ns[0] : 0) + (i >= behind[1] ? by_ns[1] : 0);
  size_t turn[NI_CLOCK_STEPS];
  assert_int_equal(ni_clock_find_turns(&clock, s.t_ns, s.n, turn), 0);
  assert_int_equal(turn[0], 100);
  assert_int_equal(turn[1], 301);
}

/* ---- whose clock it was ---- */

enum { HOSTS = 4, EACH = 30 };

struct marks {
  struct ni_clocks_mark item[HOSTS * EACH * 8];
  size_t n;
};

/* A communicator of these hosts: an operation each 40 ms. Host 0 is set back by 25 ms behind the 15th. */
static void add_communicator(struct marks *m, uint32_t comm, const uint32_t *host, size_t hosts) {
  for (uint32_t sn = 0; sn < EACH; sn++)
    for (size_t i = 0; i < hosts; i++) {
      const int64_t end_ns = (int64_t)sn * 40 * MS + comm * MS + 1000 * MS + host[i] * 5000 * MS -
          (host[i] == 0 && sn >= 15 ? 25 * MS : 0);
      m->item[m->n++] = (struct ni_clocks_mark){comm, 1, host[i], sn, 8, end_ns - MS, end_ns};
    }
}

static void check_host_0_alone(struct marks *m) {
  struct ni_host_clock clock[HOSTS] = {0};
  assert_int_equal(ni_clocks_find_steps(m->item, m->n, clock, HOSTS, 10 * MS), 0);
  assert_int_equal(clock[0].n_steps, 1);
  assert_int_equal(clock[0].step[0].by_ns, -25 * MS);
  for (uint32_t i = 1; i < HOSTS; i++)
    assert_int_equal(clock[i].n_steps, 0);
  assert_int_equal(ni_clocks_remove_steps(m->item, m->n, clock, HOSTS), 0);
  for (size_t i = 0; i < m->n; i++) {
    const struct ni_clocks_mark *x = &m->item[i];
    assert_int_equal(x->end_ns, (int64_t)x->sn * 40 * MS + x->comm * MS + 1000 * MS + x->host * 5000 * MS);
    assert_int_equal(x->end_ns - x->start_ns, MS);
  }
}

static void three_hosts_say_whose(void **state) {
  (void)state;
  struct marks m = {0};
  add_communicator(&m, 0, (const uint32_t[]){0, 3}, 2);
  add_communicator(&m, 1, (const uint32_t[]){0, 1, 2}, 3);
  check_host_0_alone(&m);
}

static void two_pairs_say_whose(void **state) {
  (void)state;
  struct marks m = {0};
  add_communicator(&m, 0, (const uint32_t[]){0, 1}, 2);
  add_communicator(&m, 1, (const uint32_t[]){0, 2}, 2);
  check_host_0_alone(&m);
}

/* It measured 15 ms once, and 40 ms is what both measure each time. */
static void one_pair(void **state) {
  (void)state;
  struct marks m = {0};
  add_communicator(&m, 0, (const uint32_t[]){0, 1}, 2);
  check_host_0_alone(&m);
}

/*
 * Of operations that come at any time nothing says which of two hosts has stepped: one of them has, and their
 * times agree afterwards.
 */
static void one_irregular_pair(void **state) {
  (void)state;
  struct marks m = {0};
  struct ni_host_clock clock[HOSTS] = {0};
  add_communicator(&m, 0, (const uint32_t[]){0, 1}, 2);
  for (size_t i = 0; i < m.n; i++) {
    const int64_t later_ns = (int64_t)(m.item[i].sn * m.item[i].sn) * 7 * MS;
    m.item[i].start_ns += later_ns;
    m.item[i].end_ns += later_ns;
  }
  assert_int_equal(ni_clocks_find_steps(m.item, m.n, clock, HOSTS, 10 * MS), 0);
  assert_int_equal(clock[0].n_steps + clock[1].n_steps, 1);
  assert_int_equal(ni_clocks_remove_steps(m.item, m.n, clock, HOSTS), 0);
  for (size_t i = 0; i + 1 < m.n; i += 2)
    assert_int_equal(m.item[i + 1].end_ns - m.item[i].end_ns, m.item[1].end_ns - m.item[0].end_ns);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_time_need_not_run_back),
      cmocka_unit_test(groups_of_messages),
      cmocka_unit_test(set_forward),
      cmocka_unit_test(a_stream_that_ends_before),
      cmocka_unit_test(two_steps),
      cmocka_unit_test(three_hosts_say_whose),
      cmocka_unit_test(two_pairs_say_whose),
      cmocka_unit_test(one_pair),
      cmocka_unit_test(one_irregular_pair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
