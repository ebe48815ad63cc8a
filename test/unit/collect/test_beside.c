/*
 * Counters beside collectives: whose they are, what fell into the time of collectives, and what nobody can
 * know.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "exporter/model/counters/beside.h"

#define S INT64_C(1000000000)
static const int64_t t0 = INT64_C(1767225600) * S;

static struct ni_reading at(uint64_t value, int64_t second) {
  return (struct ni_reading){.value = value, .real_ns = t0 + second * S, .mono_ns = 1 + second * S};
}

/*
 * Two ranks with a GPU each, two NICs near one of them each, an Ethernet port of which nobody knows where it
 * is.
 */
static void rows(void **state) {
  (void)state;
  struct ni_cover cover[2] = {{0}, {0}};
  /* rank 0: seconds 2 to 6 */
  for (int64_t s = 2; s < 6; s++)
    ni_cover_add(&cover[0], t0 + s * S, t0 + (s + 1) * S);
  /* rank 1: a half of second 5 */
  ni_cover_add(&cover[1], t0 + 5 * S, t0 + 5 * S + S / 2);
  const struct ni_beside_process p[] = {{"n1", "0000:1B:00.0", 0, &cover[0]},
                                        {"n1", "0000:1c:00.0", 1, &cover[1]},
                                        {"n2", "0000:1b:00.0", 0, &cover[0]}};
  struct ni_beside b;
  struct ni_set set = {0};
  struct ni_reading r[11][5];
  ni_set_entity(&set, NI_METRIC_CXI, "cxi10")->nearest = "0000:1c:00.0";
  ni_set_counter(&set, "hni_sts_tx_ok_octets");
  ni_set_entity(&set, NI_METRIC_CXI, "cxi2")->nearest = "00000000:1B:00.0,0000:1d:00.0";
  ni_set_counter(&set, "hni_tx_paused_1");
  ni_set_counter(&set, "hni_tx_paused_3");
  ni_set_entity(&set, NI_METRIC_ETH, "eth0");
  ni_set_counter(&set, "tx_bytes");
  ni_set_entity(&set, NI_METRIC_GPU, "gpu0")->pci = "0000:1b:00.0";
  ni_set_counter(&set, "level");
  set.counter[4].what.kind = NI_METRIC_GAUGE;
  for (int64_t s = 0; s <= 10; s++) {
    r[s][0] = at(1000 * (uint64_t)s, s);
    r[s][1] = at(s < 7 ? 500 * (uint64_t)s : 1, s); /* falls at second 7: reset */
    r[s][2] = at(70 * (uint64_t)s, s);
    r[s][3] = at(100 * (uint64_t)s, s);
    r[s][4] = at(s > 2 && s <= 6 ? 1200 : 1980, s);
  }
  r[4][3].state = NI_READ_UNREADABLE;
  ni_beside_begin(&b, p, 3, t0, t0 + 10 * S, 5);
  assert_int_equal(ni_beside_set(&b, "n1", &set), 0);
  for (int s = 0; s < 10; s++) {
    if (s == 5)
      assert_int_equal(ni_beside_set(&b, "n1", &set), 0); /* said again: the same rows */
    ni_beside_sample(&b, r[s], r[s + 1]);
  }
  assert_int_equal(ni_beside_end(&b), 0);
  assert_int_equal(b.n_entities, 4);
  assert_int_equal(b.n_rows, 5);
  assert_string_equal(b.entity[0].name, "cxi2");
  assert_string_equal(b.entity[1].name, "cxi10");
  assert_true(b.entity[0].n_processes == 1 && b.entity[0].process[0] == 0 &&
              b.entity[0].how == NI_BESIDE_NEAREST);
  assert_true(b.entity[1].n_processes == 1 && b.entity[1].process[0] == 1);
  assert_true(b.entity[2].n_processes == 2 && b.entity[2].how == NI_BESIDE_HOST);
  assert_true(b.entity[3].n_processes == 1 && b.entity[3].how == NI_BESIDE_OWN);
  const struct ni_beside_row *x = ni_beside_unified(&b, &b.entity[0], "tx_held");
  assert_string_equal(x->name, "hni_tx_paused_1"); /* the larger of two that are one */
  assert_true(x->unknown == 1 && x->samples == 9);
  /* 4 s of 500; seconds 0, 1 and no more than 0 after */
  assert_true(fabs(x->with - 2000) < 40 && fabs(x->without - 1000) < 40);
  assert_true(x->least > 900 && x->least <= x->with && x->with <= x->most && x->most <= 3000);
  x = ni_beside_unified(&b, &b.entity[1], "tx_bytes");
  assert_true(fabs(x->with - 500) < 10 && fabs(x->without - 9500) < 10 && x->least == 0 && x->most >= 1000 &&
              x->most <= 3000);
  assert_true(fabs(b.entity[1].with_s - 0.5) < 0.01 && fabs(b.entity[1].without_s - 9.5) < 0.01);
  x = ni_beside_unified(&b, &b.entity[2], "tx_bytes");
  assert_true(x->unknown == 2 && x->samples == 8);
  assert_null(ni_beside_unified(&b, &b.entity[2], "tx_held"));
  x = ni_beside_unified(&b, &b.entity[1], "tx_bytes");
  for (int i = 0; i < 5; i++)
    assert_true(fabs(x->bin[i].sum - 2000) < 1e-6 && fabs(x->bin[i].seconds - 2) < 1e-9);
  x = &b.row[b.entity[3].first];
  assert_null(x->bin);
  assert_true(fabs(x->level_with - 1200) < 20 && fabs(x->level_without - 1980) < 20 && x->lowest == 1200);
  ni_beside_free(&b);
  ni_set_free(&set);
  ni_cover_free(&cover[0]);
  ni_cover_free(&cover[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
