/* Totals of counters from sample to sample: wraps, resets, entities that go and come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <string.h>

#include "exporter/model/counters/running.h"

#define S INT64_C(1000000000)

struct row {
  enum ni_metric_source source;
  const char *entity, *name;
  uint64_t value;
  enum ni_reading_state state;
};

static void sample(struct ni_running *r, const struct row *row, size_t n, int64_t at) {
  struct ni_set set = {0};
  struct ni_reading reading[16] = {0};
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || row[i].source != row[i - 1].source || strcmp(row[i].entity, row[i - 1].entity) != 0)
      ni_set_entity(&set, row[i].source, row[i].entity)->link_bytes_s = 25e9;
    assert_true(ni_set_counter(&set, row[i].name));
    reading[i] = (struct ni_reading){row[i].value, 1790000000 * S + at * S, at * S, (uint8_t)row[i].state};
  }
  assert_int_equal(ni_running_add(r, &set, reading, 1790000000 * S + at * S), 0);
  assert_int_equal(r->at_ns, 1790000000 * S + at * S);
  ni_set_free(&set);
}

static const struct ni_running_value *value(const struct ni_running *r, enum ni_metric_source source,
                                            const char *entity, const char *name) {
  for (size_t i = 0; i < r->n; i++)
    if (r->value[i].source == source && strcmp(r->value[i].entity, entity) == 0 &&
        strcmp(r->value[i].name, name) == 0)
      return &r->value[i];
  fail_msg("no %s of %s", name, entity);
  return NULL;
}

static void wraps(void **state) {
  (void)state;
  struct ni_running r = {0};
  const uint64_t top56 = UINT64_C(1) << 56, top32 = UINT64_C(1) << 32;
  struct row row[] = {{NI_METRIC_CXI, "cxi0", "hni_sts_tx_ok_octets", top56 - 1000, 0},
                      {NI_METRIC_IB, "mlx5_0:1", "rx_read_requests", top32 - 6, 0},
                      {NI_METRIC_IB, "mlx5_0:1", "port_xmit_data", 100, 0},
                      {NI_METRIC_HOST, "host", "cpu_user", 7, 0},
                      {NI_METRIC_HOST, "host", "memory_available", 4096, 0}};
  sample(&r, row, 5, 1);
  assert_int_equal(r.n, 5);
  /* begins at what it shows */
  assert_int_equal(value(&r, NI_METRIC_CXI, "cxi0", "hni_sts_tx_ok_octets")->total, top56 - 1000);
  /* words of four bytes */
  assert_int_equal(value(&r, NI_METRIC_IB, "mlx5_0:1", "port_xmit_data")->total, 400);
  row[0].value = 5000;
  row[1].value = 10;
  row[2].value = 200;
  row[3].value = 9;
  row[4].value = 1024;
  sample(&r, row, 5, 11);
  assert_int_equal(r.n, 5);
  assert_int_equal(value(&r, NI_METRIC_CXI, "cxi0", "hni_sts_tx_ok_octets")->total, top56 + 5000);
  assert_int_equal(value(&r, NI_METRIC_IB, "mlx5_0:1", "rx_read_requests")->total, top32 + 10);
  assert_int_equal(value(&r, NI_METRIC_IB, "mlx5_0:1", "port_xmit_data")->total, 800);
  assert_int_equal(value(&r, NI_METRIC_HOST, "host", "cpu_user")->total, 90);
  assert_int_equal(value(&r, NI_METRIC_HOST, "host", "memory_available")->total, 1024); /* a level falls */
  assert_int_equal(value(&r, NI_METRIC_CXI, "cxi0", "hni_sts_tx_ok_octets")->resets, 0);
  ni_running_free(&r);
}

static void resets(void **state) {
  (void)state;
  struct ni_running r = {0};
  struct row row = {NI_METRIC_CXI, "cxi0", "pct_spt_timeouts", 1000, 0};
  sample(&r, &row, 1, 1);
  row.value = 3;
  sample(&r, &row, 1, 2);
  assert_int_equal(r.value[0].total, 1000);
  assert_int_equal(r.value[0].resets, 1);
  row.value = 8;
  sample(&r, &row, 1, 3);
  assert_int_equal(r.value[0].total, 1005);
  sample(&r, &row, 1, 3); /* the same reading once more */
  assert_int_equal(r.value[0].total, 1005);
  row = (struct row){NI_METRIC_IB, "mlx5_0:1", "symbol_error", 65530, 0};
  sample(&r, &row, 1, 4);
  row.value = 65535; /* stays there */
  sample(&r, &row, 1, 5);
  assert_int_equal(value(&r, NI_METRIC_IB, "mlx5_0:1", "symbol_error")->total, 65535);
  sample(&r, &row, 1, 6);
  assert_int_equal(value(&r, NI_METRIC_IB, "mlx5_0:1", "symbol_error")->total, 65535);
  ni_running_free(&r);
}

static void goes_and_comes(void **state) {
  (void)state;
  struct ni_running r = {0};
  struct row row[] = {{NI_METRIC_ETH, "eth0", "tx_bytes", 100, 0},
                      {NI_METRIC_ETH, "eth1", "tx_bytes", 50, 0}};
  sample(&r, row, 2, 1);
  sample(&r, row + 1, 1, 2);
  assert_int_equal(r.n, 2);
  assert_false(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->known);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->total, 100);
  row[0].value = 130;
  row[1].state = NI_READ_UNREADABLE;
  row[1].value = 0;
  sample(&r, row, 2, 3);
  assert_int_equal(r.n, 2);
  assert_true(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->known);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->total, 130);
  assert_false(value(&r, NI_METRIC_ETH, "eth1", "tx_bytes")->known);
  row[1].state = NI_READ_OK;
  row[1].value = 70;
  sample(&r, row, 2, 4);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth1", "tx_bytes")->total, 70);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth1", "tx_bytes")->resets, 0);
  row[0].value = 10; /* it came back as another: begun anew */
  sample(&r, row, 2, 5);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->total, 130);
  sample(&r, row, 2, 6);
  assert_int_equal(value(&r, NI_METRIC_ETH, "eth0", "tx_bytes")->total, 130);
  ni_running_free(&r);
}

/* Of indexes with one unified name the one that rises most counts, not the one that stands highest. */
static void alike(void **state) {
  (void)state;
  struct ni_running r = {0};
  struct row row[] = {{NI_METRIC_CXI, "cxi0", "hni_tx_paused_1", 5000000, 0},
                      {NI_METRIC_CXI, "cxi0", "hni_tx_paused_3", 100, 0},
                      {NI_METRIC_CXI, "cxi1", "hni_tx_paused_3", 7, 0}};
  sample(&r, row, 3, 1);
  row[1].value = 1100;
  row[2].value = 8;
  sample(&r, row, 3, 2);
  row[0].value = 5000300;
  row[1].value = 1200;
  sample(&r, row, 3, 3);
  const struct ni_running_value *first = value(&r, NI_METRIC_CXI, "cxi0", "hni_tx_paused_1");
  assert_int_equal(first->lead, first - r.value);
  assert_int_equal(value(&r, NI_METRIC_CXI, "cxi0", "hni_tx_paused_3")->lead, first - r.value);
  assert_int_equal(first->alike, 5000000 + 1000 + 300);
  const struct ni_running_value *other = value(&r, NI_METRIC_CXI, "cxi1", "hni_tx_paused_3");
  assert_int_equal(other->lead, other - r.value);
  assert_int_equal(other->alike, 8);
  ni_running_free(&r);
}

static void negative(void **state) {
  (void)state;
  struct ni_running r = {0};
  struct row row = {NI_METRIC_TCP, "host", "MaxConn", (uint64_t)-1, 0};
  sample(&r, &row, 1, 1);
  assert_int_equal((int64_t)r.value[0].total, -1);
  ni_running_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wraps), cmocka_unit_test(resets),
                                     cmocka_unit_test(goes_and_comes), cmocka_unit_test(negative),
                                     cmocka_unit_test(alike)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
