/* What is known of a counter by its name, and what lies between two readings of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/collect/metric.h"

#define NS INT64_C(1000000000)

static void names(void **state) {
  (void)state;
  static const struct {
    const char *pattern, *name;
    bool fits;
  } t[] = {
      {"hni_tx_paused_#", "hni_tx_paused_1", true},
      {"hni_tx_paused_#", "hni_tx_paused_11", true},
      {"hni_tx_paused_#", "hni_tx_paused_", false},
      {"hni_tx_paused_#", "hni_tx_paused_std", false},
      {"hni_tx_ok_#_to_#", "hni_tx_ok_36_to_63", true},
      {"hni_tx_ok_#_to_#", "hni_tx_ok_8192_to_max", false},
      {"*_in_use*", "pct_prf_spt_status_spt_in_use", true},
      {"*", "", true},
      {"a*b*c", "aXbYbZc", true},
      {"a*b*c", "aXbYbZ", false},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    if (ni_metric_fits(t[i].pattern, t[i].name) != t[i].fits)
      fail_msg("%s, %s", t[i].pattern, t[i].name);
  assert_int_equal(ni_metric_of(NI_METRIC_CXI, "hni_sts_tx_ok_octets").width, 56);
  assert_string_equal(ni_metric_of(NI_METRIC_CXI, "hni_sts_tx_ok_octets").unit, "bytes");
  assert_int_equal(ni_metric_of(NI_METRIC_CXI, "lpe_sts_load_stats_load_3").width, 48);
  assert_int_equal(ni_metric_of(NI_METRIC_CXI, "lpe_sts_load_stats_max_3").kind, NI_METRIC_GAUGE);
  assert_int_equal(ni_metric_of(NI_METRIC_CXI, "pct_prf_sct_status_max_sct_in_use").kind, NI_METRIC_GAUGE);
  assert_int_equal(ni_metric_of(NI_METRIC_CXI, "of a later NIC").kind, NI_METRIC_COUNTER);
}

static void groups(void **state) {
  (void)state;
  struct ni_metric_member m;
  char all[256] = "";
  for (size_t at = 0; ni_metric_next_group("hni_tx_paused_1", &at, &m);)
    strcat(strcat(all, m.group), " ");
  assert_string_equal(all, "CxiPerfStats CxiCongestion ");
  size_t at = 0, n = 0;
  assert_false(ni_metric_next_group("hni_multicast_pkts_sent_by_tc_0", &at, &m));
  uint32_t id = 0;
  while (ni_metric_important(n, &id))
    n++;
  assert_int_equal(n, 16);
}

static struct ni_change between(const char *name, uint64_t before, uint64_t after, int64_t ns, double most) {
  struct ni_metric m = ni_metric_of(NI_METRIC_CXI, name);
  struct ni_reading a = {.value = before, .real_ns = NS}, b = {.value = after, .real_ns = NS + ns};
  return ni_change_of(&m, &a, &b, most);
}

static void differences(void **state) {
  (void)state;
  uint64_t end = UINT64_C(1) << 56;
  struct ni_change c = between("hni_tx_paused_1", 1000, 2500001000, 10 * NS, 0);
  assert_true(c.state == NI_CHANGE_CHANGED && c.delta == 2500000000 && !c.wrapped);
  /* 25 % of the cycles of 10 s */
  assert_true(ni_change_rate(&c) == 250e6);
  /* 0.5 GB/s over the end */
  c = between("hni_sts_tx_ok_octets", end - 1000, 5000000000 - 1000, 10 * NS, 25e9);
  assert_true(c.state == NI_CHANGE_CHANGED && c.wrapped && c.delta == 5000000000 &&
              ni_change_rate(&c) == 5e8);
  /* more than the line carries */
  c = between("hni_sts_tx_ok_octets", end - 1000, 500000000000, 10 * NS, 25e9);
  assert_true(c.state == NI_CHANGE_RESET && c.delta == 0 && ni_change_rate(&c) == 0);
  c = between("hni_tx_paused_1", 5000, 10, 10 * NS, 0); /* the driver was loaded anew */
  assert_true(c.state == NI_CHANGE_RESET && c.delta == 0);
  c = between("pi_ipd_cfg_event_cnts_ovf_cnt", 65530, 4, NS, 0); /* 16 bits */
  assert_true(c.wrapped && c.delta == 10);
  c = between("pct_prf_spt_status_spt_in_use", 90, 10, NS, 0);
  assert_true(c.state == NI_CHANGE_LEVEL && c.delta == -80 && ni_change_rate(&c) == 0);
  /* out of a file: no number of events */
  assert_int_equal(between("hni_tx_paused_1", 7, (uint64_t)-7, NS, 0).state, NI_CHANGE_RESET);
  assert_int_equal(between("hni_tx_paused_1", 7, 7, NS, 0).state, NI_CHANGE_NONE);
  assert_int_equal(between("hni_tx_paused_1", 7, 9, 0, 0).state, NI_CHANGE_STALE);
  assert_int_equal(between("hni_tx_paused_1", 7, 9, -NS, 0).state, NI_CHANGE_STALE);
}

static void what_is_not_there(void **state) {
  (void)state;
  struct ni_metric m = ni_metric_of(NI_METRIC_CXI, "hni_tx_paused_1"), narrow = {NI_METRIC_STICKY, 16, 1, ""};
  struct ni_reading ok = {.value = 5, .real_ns = NS}, later = {.value = 65535, .real_ns = 2 * NS},
                    none = {.state = NI_READ_MISSING}, bad = {.state = NI_READ_UNREADABLE};
  assert_int_equal(ni_change_of(&m, &ok, &none, 0).state, NI_CHANGE_GONE);
  assert_int_equal(ni_change_of(&m, &none, &ok, 0).state, NI_CHANGE_NEW);
  assert_int_equal(ni_change_of(&m, &ok, &bad, 0).state, NI_CHANGE_UNREADABLE);
  assert_int_equal(ni_change_of(&m, &bad, &none, 0).state, NI_CHANGE_UNREADABLE);
  assert_int_equal(ni_change_of(&narrow, &ok, &later, 0).state, NI_CHANGE_STUCK);
  /* The wall clock was set back between them: the other one counts. */
  struct ni_reading a = {.value = 5, .real_ns = 9 * NS, .mono_ns = 1 * NS},
                    b = {.value = 25, .real_ns = 3 * NS, .mono_ns = 3 * NS};
  struct ni_change c = ni_change_of(&m, &a, &b, 0);
  assert_true(c.state == NI_CHANGE_CHANGED && c.seconds == 2 && ni_change_rate(&c) == 10);
}

/*
 * ---- two sweeps of eight working NICs: every difference is that of a plain subtraction, and nothing is a
 * reset ----
 */

struct sweep {
  struct ni_reading *r;
  size_t n;
};

static struct sweep read_sweep(const char *path) {
  struct sweep s = {0};
  char cmd[512], line[128];
  snprintf(cmd, sizeof cmd, "gzip -dc '%s'", path);
  FILE *f = popen(cmd, "r");
  assert_non_null(f);
  s.r = calloc(20000, sizeof *s.r);
  while (fgets(line, sizeof line, f)) {
    uint64_t value, sec, ns;
    assert_int_equal(sscanf(line, "%" SCNu64 "@%" SCNu64 ".%" SCNu64, &value, &sec, &ns), 3);
    s.r[s.n++] = (struct ni_reading){.value = value, .real_ns = (int64_t)(sec * 1000000000u + ns)};
  }
  pclose(f);
  return s;
}

static void working_nics(void **state) {
  (void)state;
  const char *data = getenv("NI_TEST_DATA");
  char path[512], name[128];
  snprintf(path, sizeof path, "%s/cassini/counter-names.txt", data ? data : "../shared/data");
  FILE *f = fopen(path, "r");
  if (!f) {
    print_message("no %s: NI_TEST_DATA names the folder of recorded data\n", path);
    skip();
  }
  char(*names_of)[128] = calloc(2000, sizeof *names_of);
  size_t n = 0;
  while (n < 2000 && fscanf(f, "%127s", name) == 1)
    strcpy(names_of[n++], name);
  fclose(f);
  assert_int_equal(n, 1890);
  snprintf(path, sizeof path, "%s/cassini/before.txt.gz", data ? data : "../shared/data");
  struct sweep before = read_sweep(path);
  snprintf(path, sizeof path, "%s/cassini/after.txt.gz", data ? data : "../shared/data");
  struct sweep after = read_sweep(path);
  assert_int_equal(before.n, 8 * n);
  assert_int_equal(after.n, 8 * n);
  static const unsigned changed_by_nic[8] = {280, 143, 188, 187, 170, 146, 177, 215};
  unsigned gauges = 0, falls = 0;
  for (size_t nic = 0; nic < 8; nic++) {
    unsigned changed = 0;
    for (size_t i = 0; i < n; i++) {
      const struct ni_reading *a = &before.r[nic * n + i], *b = &after.r[nic * n + i];
      struct ni_metric m = ni_metric_of(NI_METRIC_CXI, names_of[i]);
      struct ni_change c = ni_change_of(&m, a, b, 0);
      assert_true(c.state <= NI_CHANGE_LEVEL); /* 1: octets are far below 1.02e9 a second here */
      assert_true(c.delta == (int64_t)(b->value - a->value) && c.seconds > 44 && c.seconds < 45 &&
                  !c.wrapped);
      changed += c.state != NI_CHANGE_NONE;
      gauges += c.state == NI_CHANGE_LEVEL;
      falls += c.delta < 0;
    }
    assert_int_equal(changed, changed_by_nic[nic]);
  }
  assert_int_equal(gauges, 36);
  assert_int_equal(falls, 22);
  free(before.r);
  free(after.r);
  free(names_of);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(groups),
                                     cmocka_unit_test(differences), cmocka_unit_test(what_is_not_there),
                                     cmocka_unit_test(working_nics)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
