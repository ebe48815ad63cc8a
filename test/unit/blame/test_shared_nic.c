/* Ranks whose NICs are slow at once are one cause; so are pairs of ranks between two hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/model/sums/links/shared_nic.h"

enum { RANKS = 8, OF_HOST = 4 };

struct job {
  struct ni_blame b;
  struct ni_summary s;
  struct ni_process process[RANKS];
  struct ni_blame_rank rank[RANKS];
  struct ni_causes causes;
};

static void begin(struct job *x) {
  memset(x, 0, sizeof *x);
  x->s.process = x->process;
  x->b = (struct ni_blame){.s = &x->s, .rank = x->rank, .n_ranks = RANKS};
  for (uint32_t r = 0; r < RANKS; r++) {
    x->rank[r].process = r;
    x->process[r].host = r / OF_HOST;
  }
}

/* A slow NIC of a rank, or the way between two: its transfers take `share` longer from..to. */
static struct ni_cause *add(struct job *x, uint32_t rank, uint32_t other, float share, uint32_t from,
                            uint32_t to) {
  const bool pair = other != NI_BLAME_NONE;
  struct ni_cause *c =
      ni_cause_add(&x->causes, pair ? NI_FIND_SLOW_PAIR : NI_FIND_SLOW_NIC, NI_LEVEL_RANK, rank);
  c->links = true;
  c->link = c->kind;
  c->other = other;
  c->share = share;
  c->from = from;
  c->to = to;
  assert_int_equal(ni_cause_add_item(c, 10 + rank), 0);
  assert_int_equal(ni_cause_add_unmatched(c, 77), 0);
  return c;
}

static uint32_t join(struct job *x, uint32_t first) {
  assert_int_equal(ni_join_shared_nics(&x->b, &x->causes, first), 0);
  return x->causes.n;
}

static void test_nics_of_host(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  (void)add(&x, 0, NI_BLAME_NONE, 5, 0, 100);
  (void)add(&x, 1, NI_BLAME_NONE, 6, 0, 100);
  (void)add(&x, 3, NI_BLAME_NONE, 7, 5, 90);
  (void)add(&x, 2, NI_BLAME_NONE, 1, 0, 100); /* far less */
  (void)add(&x, 5, NI_BLAME_NONE, 6, 0, 100); /* on another host */
  assert_int_equal(join(&x, 0), 3);
  const struct ni_cause *c = &x.causes.item[0];
  assert_true(c->of == 0 && c->n_beside == 2 && c->beside[0] == 1 && c->beside[1] == 3);
  assert_true(c->n_items == 3 && c->n_unmatched == 1 && c->share > 5.9f && c->share < 6.1f);
  assert_true(x.causes.item[1].of == 2 && x.causes.item[2].of == 5);
  ni_causes_free(&x.causes);

  begin(&x); /* one after the other, and what is no link of ranks before them */
  (void)add(&x, 0, NI_BLAME_NONE, 5, 0, 40);
  (void)add(&x, 1, NI_BLAME_NONE, 5, 50, 100);
  add(&x, 2, NI_BLAME_NONE, 5, 30, 100)->level = NI_LEVEL_HOST;
  assert_int_equal(join(&x, 0), 3);
  ni_causes_free(&x.causes);

  begin(&x); /* those before the first one are another's */
  (void)add(&x, 0, NI_BLAME_NONE, 5, 0, 40);
  (void)add(&x, 1, NI_BLAME_NONE, 5, 0, 40);
  assert_int_equal(join(&x, 1), 2);
  ni_causes_free(&x.causes);
}

/* Four that send at once over one NIC take up to four times as long as where they send one by one. */
static void test_order_of_work(void **state) {
  (void)state;
  struct job x;
  for (int slow = 0; slow < 2; slow++) {
    begin(&x);
    for (uint32_t r = 0; r < OF_HOST; r++)
      (void)add(&x, r, NI_BLAME_NONE, slow ? 3.1f : 2.9f, 0, 100);
    assert_int_equal(join(&x, 0), slow ? 1 : OF_HOST);
    ni_causes_free(&x.causes);
  }
}

static void test_pairs_between_hosts(void **state) {
  (void)state;
  struct job x;
  begin(&x);
  (void)add(&x, 0, 4, 5, 0, 100);
  (void)add(&x, 5, 1, 5, 0, 100);
  (void)add(&x, 2, 3, 5, 0, 100); /* within a host */
  assert_int_equal(join(&x, 0), 2);
  assert_true(x.causes.item[0].n_beside == 2 && x.causes.item[0].beside[0] == 5);
  ni_causes_free(&x.causes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nics_of_host),
      cmocka_unit_test(test_order_of_work),
      cmocka_unit_test(test_pairs_between_hosts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
