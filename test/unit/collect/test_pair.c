/*
 * Two sweeps side by side: whose counters belong together, what became of them, and which ask to be looked at
 * first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/counters/rank.h"

#define NS INT64_C(1000000000)

struct sweep {
  struct ni_set set;
  struct ni_reading r[64];
};

static void nic(struct sweep *s, enum ni_metric_source source, const char *name, double link) {
  assert_non_null(ni_set_entity(&s->set, source, name));
  s->set.entity[s->set.n_entities - 1].link_bytes_s = link;
}
static void add(struct sweep *s, const char *name, uint64_t value, int64_t ns) {
  assert_true(ni_set_counter(&s->set, name));
  s->r[s->set.n_counters - 1] = (struct ni_reading){.value = value, .real_ns = ns, .state = NI_READ_OK};
}
static struct ni_pair pair_of(const struct sweep *b, const struct sweep *a) {
  struct ni_pair p;
  assert_int_equal(ni_pair_make(&p, &b->set, b->r, &a->set, a->r), 0);
  return p;
}
static void end(struct sweep *b, struct sweep *a, struct ni_pair *p) {
  ni_pair_free(p);
  ni_set_free(&b->set);
  ni_set_free(&a->set);
}

static void order(void **state) {
  (void)state;
  struct sweep b = {0}, a = {0};
  nic(&b, NI_METRIC_CXI, "cxi10", 0);
  add(&b, "one", 1, NS);
  add(&b, "two", 2, NS);
  add(&b, "old", 3, NS);
  nic(&b, NI_METRIC_CXI, "cxi2", 0);
  add(&b, "one", 5, NS);
  nic(&b, NI_METRIC_CXI, "cxi3", 0);
  add(&b, "one", 5, NS);
  nic(&a, NI_METRIC_IB, "cxi2", 0);
  add(&a, "one", 1, 2 * NS);
  nic(&a, NI_METRIC_CXI, "cxi2", 0);
  add(&a, "one", 6, 3 * NS);
  nic(&a, NI_METRIC_CXI, "cxi10", 0);
  add(&a, "new", 9, 2 * NS);
  add(&a, "two", 22, 2 * NS);
  add(&a, "one", 1, 2 * NS);
  struct ni_pair p = pair_of(&b, &a);
  static const struct {
    const char *entity, *name;
    enum ni_change_state is;
    int64_t delta;
  } want[] = {{"cxi2", "one", NI_CHANGE_CHANGED, 1}, {"cxi3", "one", NI_CHANGE_GONE, 0},
              {"cxi10", "new", NI_CHANGE_NEW, 0},    {"cxi10", "two", NI_CHANGE_CHANGED, 20},
              {"cxi10", "one", NI_CHANGE_NONE, 0},   {"cxi10", "old", NI_CHANGE_GONE, 0},
              {"cxi2", "one", NI_CHANGE_NEW, 0}};
  assert_int_equal(p.n_rows, sizeof want / sizeof *want);
  for (size_t i = 0; i < p.n_rows; i++) {
    assert_string_equal(p.entity[p.row[i].entity].of->name, want[i].entity);
    assert_string_equal(p.row[i].name, want[i].name);
    assert_int_equal(p.row[i].change.state, want[i].is);
    assert_int_equal(p.row[i].change.delta, want[i].delta);
    assert_ptr_equal(ni_pair_row(&p, p.row[i].entity, p.row[i].name), &p.row[i]);
  }
  assert_null(ni_pair_row(&p, 0, "two"));
  assert_int_equal(p.n_entities, 4);
  assert_true(p.entity[0].in_before && p.entity[0].in_after && p.entity[1].in_before &&
              !p.entity[1].in_after);
  assert_true(!p.entity[3].in_before && p.entity[3].in_after && p.entity[3].of->source == NI_METRIC_IB);
  assert_int_equal(p.entity[2].changed, 1);
  assert_true(p.entity[0].seconds == 2 && p.entity[2].seconds == 1 && p.entity[3].seconds == 0 &&
              p.seconds == 2);
  end(&b, &a, &p);
}

/* What a counter of bytes can rise by depends on its link; 10 GB/s on a link of 1 GB/s is no wrap. */
static void wraps(void **state) {
  (void)state;
  struct sweep b = {0}, a = {0};
  static const double link[] = {25e9, 1e9, 0};
  static const char *const name[] = {"cxi0", "cxi1", "cxi2"};
  for (int i = 0; i < 3; i++) {
    nic(&b, NI_METRIC_CXI, name[i], link[i]);
    add(&b, "hni_sts_tx_ok_octets", (UINT64_C(1) << 56) - 1000, NS);
    nic(&a, NI_METRIC_CXI, name[i], link[i]);
    add(&a, "hni_sts_tx_ok_octets", 100 * (uint64_t)NS - 1000, 11 * NS);
  }
  struct ni_pair p = pair_of(&b, &a);
  assert_true(p.row[0].change.wrapped && p.row[0].change.delta == 100 * NS &&
              ni_pair_rate(&p.row[0]) == 1e10);
  assert_true(fabs(ni_pair_share(&p, &p.row[0]) - 0.4) < 1e-12);
  assert_int_equal(p.row[1].change.state, NI_CHANGE_RESET);
  assert_true(ni_pair_rate(&p.row[1]) == 0 && isnan(ni_pair_share(&p, &p.row[1])));
  assert_true(p.row[2].change.wrapped && isnan(ni_pair_share(&p, &p.row[2])));
  end(&b, &a, &p);
}

static void units(void **state) {
  (void)state;
  struct sweep b = {0}, a = {0};
  nic(&b, NI_METRIC_CXI, "cxi0", 0);
  add(&b, "hni_tx_paused_1", 0, NS);
  nic(&a, NI_METRIC_CXI, "cxi0", 0);
  add(&a, "hni_tx_paused_1", 3000000000, 11 * NS);
  nic(&b, NI_METRIC_IB, "mlx5_0:1", 50e9);
  add(&b, "port_xmit_data", 0, NS);
  nic(&a, NI_METRIC_IB, "mlx5_0:1", 50e9);
  add(&a, "port_xmit_data", 1000000000, 2 * NS);
  struct ni_pair p = pair_of(&b, &a);
  assert_true(fabs(ni_pair_share(&p, &p.row[0]) - 0.3) < 1e-12);
  assert_true(ni_pair_rate(&p.row[1]) == 4e9); /* words of four bytes */
  end(&b, &a, &p);
}

/* A driver that was loaded anew, and a counter that somebody set to 0. */
static void reloads(void **state) {
  (void)state;
  for (int fell = 1; fell < 5; fell++) {
    struct sweep b = {0}, a = {0};
    char name[16];
    nic(&b, NI_METRIC_CXI, "cxi0", 0);
    nic(&a, NI_METRIC_CXI, "cxi0", 0);
    for (int i = 0; i < 6; i++) {
      snprintf(name, sizeof name, "c%d", i);
      add(&b, name, i < 4 ? 100 : 0, NS);
      add(&a, name, i < fell ? 1 : 100, 2 * NS);
    }
    struct ni_pair p = pair_of(&b, &a);
    assert_int_equal(p.entity[0].resets, fell < 4 ? fell : 4);
    assert_int_equal(p.entity[0].reloaded, fell >= 2);
    end(&b, &a, &p);
  }
}

static void ranks(void **state) {
  (void)state;
  struct sweep b = {0}, a = {0};
  static const char *const name[] = {"cxi0", "cxi1", "cxi2"};
  for (int i = 0; i < 3; i++) {
    nic(&b, NI_METRIC_CXI, name[i], 0);
    nic(&a, NI_METRIC_CXI, name[i], 0);
    const struct {
      const char *name;
      uint64_t delta;
    } c[] = {{"oxe_channel_idle", 9000000000},           {"hni_sts_tx_ok_octets", 5000000000},
             {"hni_pkts_sent_by_tc_0", i ? 1000 : 4000}, {"pct_spt_timeouts", i ? 0 : 7},
             {"ixe_rx_pkt_drop_rmu_norsp", 1000000},     {"still", 0}};
    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
      add(&b, c[k].name, 1, NS);
      add(&a, c[k].name, 1 + c[k].delta, 11 * NS);
    }
  }
  struct ni_pair p = pair_of(&b, &a);
  struct ni_counter_findings none = {0};
  struct ni_ranked *k = ni_rank(&p, &none);
  static const char *const want[] = {"pct_spt_timeouts",     "hni_pkts_sent_by_tc_0",
                                     "hni_sts_tx_ok_octets", "ixe_rx_pkt_drop_rmu_norsp",
                                     "oxe_channel_idle",     "still"};
  for (int i = 0; i < 6; i++)
    assert_string_equal(p.row[k[i].row].name, want[i]);
  assert_true(k[1].usual == 100 && k[1].unusual > 1.9 && k[1].unusual < 2);
  /* A proof comes first, whatever its size. */
  struct ni_counter_finding proof = {.level = NI_LEVEL_WARNING, .row = &p.row[4]};
  struct ni_counter_findings one = {.finding = &proof, .n = 1, .cap = 1};
  free(k);
  k = ni_rank(&p, &one);
  assert_int_equal(k[0].row, 4);
  free(k);
  end(&b, &a, &p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(order), cmocka_unit_test(wraps),
                                     cmocka_unit_test(units), cmocka_unit_test(reloads),
                                     cmocka_unit_test(ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
