/*
 * Planted faults among busy NICs are named first, with NIC, counter, difference and rate; working NICs are
 * silent.
 */
#include "pair_made.h"

/* ---- planted faults of the contract, among eight busy NICs ---- */

static void busy_nics(int except) {
  begin();
  for (int i = 0; i < 8; i++) {
    char name[8];
    snprintf(name, sizeof name, "cxi%d", i);
    if (i == except)
      continue;
    entity_in(BOTH, NI_METRIC_CXI, name, 25e9);
    counter("hni_sts_tx_ok_octets", 150e9);
    counter("hni_pcs_good_cw", 390625000);
    counter("pct_req_ordered", 4e9);
    counter("hni_pcs_corrected_cw", 40);
    counter("oxe_channel_idle", 3e9);
  }
}

static void first_is(const char *id, unsigned level, const char *text) {
  if (!b.found.n)
    fail_msg("nothing found, but %s planted", id);
  const struct ni_counter_finding *f = &b.found.finding[0];
  if (strcmp(f->id, id) != 0 || f->level != level || strcmp(f->text, text) != 0)
    fail_msg("%s: %s\nwanted %s: %s", f->id, f->text, id, text);
}

static void held(void **state) {
  (void)state;
  busy_nics(3);
  entity_in(BOTH, NI_METRIC_CXI, "cxi3", 25e9);
  counter_of("hni_tx_paused_1", 5, 3000000005, UINT8_MAX, 0, NULL);
  counter_of("hni_tx_paused_3", 5, 3000000005, UINT8_MAX, 0, NULL);
  counter_of("hni_tx_paused_5", 5, 3000000005, UINT8_MAX, 0, NULL);
  judge();
  first_is(
      "held-by-fabric", NI_LEVEL_WARNING,
      "cxi3 is held by the fabric: it may not send: hni_tx_paused_1 rose by 3,000,000,000 cycles in 10.0 s "
      "(300,000,000 a second, 30.0 % of the time).");
  assert_true(fabs(b.found.finding[0].share - 0.3) < 1e-9 && b.found.finding[0].delta == 3000000000);
  assert_int_equal(b.found.n_faults, 1);
}

static void host_is_slow(void **state) {
  (void)state;
  busy_nics(5);
  entity_in(BOTH, NI_METRIC_CXI, "cxi5", 25e9);
  counter_of("hni_rx_paused_std", 0, 3000000000, UINT8_MAX, 0, NULL);
  judge();
  first_is("slow-host", NI_LEVEL_WARNING,
           "cxi5 holds the fabric: this host is slow to take what comes: hni_rx_paused_std rose by "
           "3,000,000,000 cycles "
           "in 10.0 s (300,000,000 a second, 30.0 % of the time).");
}

static void few_among_billions(void **state) {
  (void)state;
  busy_nics(-1);
  counter("pct_spt_timeouts", 7);
  counter("pct_retry_srb_requests", 4000); /* 1e-6 of the requests */
  judge();
  first_is("timeouts", NI_LEVEL_CRITICAL,
           "cxi7 waited for responses that never came: packets were lost, or a link flapped somewhere: "
           "pct_spt_timeouts rose by 7 in 10.0 s (0.7 a second).");
  assert_int_equal(b.found.n_faults, 1);
}

static void half_down(void **state) {
  (void)state;
  busy_nics(2);
  entity_in(BOTH, NI_METRIC_CXI, "cxi2", 25e9);
  counter("hni_pcs_good_cw", 390625000 / 2);
  counter("hni_tx_paused_1", 9e9);
  judge();
  first_is("link-down", NI_LEVEL_CRITICAL,
           "cxi2 was without its link for a part of the time: hni_pcs_good_cw rose by 195,312,500 in 10.0 s "
           "(19,531,250 a second, of 39,062,500 that its link makes).");
}

static void infiniband(void **state) {
  (void)state;
  /* Many senders, one receiver. */
  begin();
  for (int i = 0; i < 4; i++) {
    char name[16];
    snprintf(name, sizeof name, "mlx5_%d:1", i);
    entity(NI_METRIC_IB, name);
    counter("rp_cnp_handled", i == 2 ? 0 : 50000);
    counter("np_ecn_marked_roce_packets", i == 2 ? 400000 : 30);
  }
  judge();
  assert_string_equal(b.found.finding[0].id, "incast");
  assert_string_equal(b.found.finding[0].entity, "mlx5_2:1");
  assert_int_equal(b.found.n_faults, 4);
  /* Losses, and pauses that could have been and were not. */
  begin();
  struct ni_entity *e = entity(NI_METRIC_IB, "mlx5_0:1");
  e->pci = "0000:c1:00.0";
  counter("packet_seq_err", 900);
  e = entity(NI_METRIC_ETHTOOL, "eth1"); /* another card: pauses here say nothing of that one */
  e->pci = "0000:d1:00.0";
  counter("rx_prio3_pause", 70);
  e = entity(NI_METRIC_ETHTOOL, "eth0");
  e->pci = "0000:c1:00.1";
  counter("rx_prio3_pause", 0);
  judge();
  first_is("lossy-no-pfc", NI_LEVEL_WARNING,
           "mlx5_0:1 lost packets and never was paused: the path is lossy, priority flow control (PFC) does "
           "not work: "
           "packet_seq_err rose by 900 in 10.0 s (90 a second).");
  /* A link that went down outranks all. */
  begin();
  entity(NI_METRIC_IB, "mlx5_0:1");
  counter("req_transport_retries_exceeded", 3);
  counter("local_ack_timeout_err", 12);
  entity(NI_METRIC_IB, "mlx5_1:1");
  counter("link_downed", 1);
  judge();
  first_is("link-down", NI_LEVEL_CRITICAL,
           "mlx5_1:1 lost its link: link_downed rose by 1 in 10.0 s (0.1 a second).");
  /* At its maximum: 0 proves nothing, and what rose to there is told. */
  begin();
  entity(NI_METRIC_IB, "mlx5_0:1");
  counter_of("symbol_error", 65535, 65535, NI_METRIC_STICKY, 16, "");
  counter_of("link_downed", 250, 255, NI_METRIC_STICKY, 8, "");
  judge();
  assert_int_equal(b.found.n, 2);
  assert_string_equal(b.found.finding[0].id, "link-down");
  assert_string_equal(
      b.found.finding[1].text,
      "mlx5_0:1 has a counter at its maximum, which cannot show more: symbol_error stands at 65,535, "
      "as far as it counts.");
}

static void entities(void **state) {
  (void)state;
  busy_nics(6);
  entity_in(BEFORE, NI_METRIC_CXI, "cxi6", 25e9);
  entity_in(AFTER, NI_METRIC_CXI, "cxi8", 25e9);
  judge();
  first_is("gone", NI_LEVEL_CRITICAL, "cxi6 was there before and is gone.");
  assert_string_equal(b.found.finding[1].text, "cxi8 was not there before.");
  /* What a driver counted that was loaded anew is no fault, however much it is. */
  busy_nics(6);
  entity_in(BOTH, NI_METRIC_CXI, "cxi6", 25e9);
  for (int i = 0; i < 4; i++)
    counter_of(i == 0 ? "a" : i == 1 ? "b" : i == 2 ? "c" : "d", 9000, 3, NI_METRIC_COUNTER, 56, "");
  counter("pct_spt_timeouts", 7);
  judge();
  first_is("reloaded", NI_LEVEL_CRITICAL,
           "cxi6 began to count anew: its driver was loaded again, or it was reset.");
  assert_int_equal(b.found.n_faults, 1);
  /* One NIC is slower than its siblings, and stands in half a slot. */
  busy_nics(1);
  struct ni_entity *e = entity_in(BOTH, NI_METRIC_CXI, "cxi1", 12.5e9);
  e->link = "up, 100 Gb/s";
  e->warning = "PCIe link x8 of x16";
  judge();
  first_is("hardware-at-rest", NI_LEVEL_WARNING, "cxi1 is not what it should be: PCIe link x8 of x16.");
  assert_string_equal(b.found.finding[1].text, "cxi1 has a slower link than its siblings: up, 100 Gb/s.");
  assert_int_equal(b.found.n_faults, 2);
}

static void others(void **state) {
  (void)state;
  begin();
  entity(NI_METRIC_ETHTOOL, "ens5");
  counter("bw_in_allowance_exceeded", 40);
  judge();
  first_is("cloud-shaping", NI_LEVEL_WARNING,
           "ens5 is at the limit that the cloud sets for this instance (cloud shaping): "
           "bw_in_allowance_exceeded rose by 40 "
           "in 10.0 s (4 a second).");
  begin();
  entity(NI_METRIC_TCP, "tcp");
  counter("OutSegs", 1e6);
  counter("RetransSegs", 5000);
  judge();
  first_is("lossy", NI_LEVEL_WARNING,
           "tcp sends again what was lost: the path is lossy: RetransSegs rose by 5,000 in 10.0 s (500 a "
           "second, 0.5 % "
           "of OutSegs).");
  begin();
  entity(NI_METRIC_GPU, "gpu2");
  counter_of("throttle_reasons", 1, 0x44, NI_METRIC_GAUGE, 0, "bits");
  counter_of("xid_last", 0, 79, NI_METRIC_GAUGE, 0, "");
  entity(NI_METRIC_CXIDEV, "cxi0");
  counter_of("link_restart_time_3", 0, 1767225600, NI_METRIC_GAUGE, 0, "s");
  judge();
  first_is("link-down", NI_LEVEL_CRITICAL,
           "cxi0 had its link restarted: link_restart_time_3 stands at 1,767,225,600, and was 0.");
  assert_string_equal(b.found.finding[1].text, "gpu2 reported an error (Xid): xid_last stands at 79.");
  assert_string_equal(b.found.finding[2].text,
                      "gpu2 is slowed down by its hardware at this moment: throttle_reasons stands at 0x44.");
  assert_int_equal(b.found.n, 3);
  /* The link never was there, and one of a device's entities says what is wrong with the device. */
  busy_nics(2);
  struct ni_entity *e = entity_in(BOTH, NI_METRIC_CXI, "cxi2", 25e9);
  e->pci = "0000:c1:00.0";
  e->warning = "PCIe link x8 of x16";
  counter("hni_pcs_good_cw", 0);
  e = entity_in(BOTH, NI_METRIC_ETH, "hsn2", 25e9);
  e->pci = "0000:c1:00.0";
  e->warning = "PCIe link x8 of x16";
  judge();
  first_is(
      "link-down", NI_LEVEL_CRITICAL,
      "cxi2 was without its link for a part of the time: hni_pcs_good_cw stands at 1,000 (0 a second, of "
      "39,062,500 that its link makes).");
  assert_int_equal(b.found.n_faults, 2);
  begin();
  judge();
  assert_int_equal(b.found.n, 0);
}

/* ---- two sweeps of eight working NICs, 44 s apart ---- */

static size_t read_sweep(const char *path, struct ni_reading *out) {
  char cmd[600], line[128];
  size_t n = 0;
  snprintf(cmd, sizeof cmd, "gzip -dc '%s'", path);
  FILE *f = popen(cmd, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f) && n < MOST) {
    uint64_t value, sec, ns;
    assert_int_equal(sscanf(line, "%" SCNu64 "@%" SCNu64 ".%" SCNu64, &value, &sec, &ns), 3);
    out[n++] = (struct ni_reading){.value = value, .real_ns = (int64_t)(sec * 1000000000u + ns)};
  }
  pclose(f);
  return n;
}

static void working_nics(void **state) {
  (void)state;
  const char *data = getenv("NI_TEST_DATA");
  char path[512], name[128];
  snprintf(path, sizeof path, "%s/cassini/counter-names.txt", data ? data : "../shared/data");
  FILE *f = fopen(path, "re");
  if (!f) {
    print_message("no %s: NI_TEST_DATA names the folder of recorded data\n", path);
    skip();
  }
  begin();
  struct ni_set *sets[2] = {&b.before, &b.after};
  for (int nic = 0; nic < 8; nic++) {
    char nic_name[8];
    snprintf(nic_name, sizeof nic_name, "cxi%d", nic);
    entity(NI_METRIC_CXI, nic_name);
    rewind(f);
    while (fscanf(f, "%127s", name) == 1)
      for (int i = 0; i < 2; i++)
        ni_set_counter(sets[i], name);
  }
  fclose(f);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/cassini/%s.txt.gz", data ? data : "../shared/data",
             i ? "after" : "before");
    assert_int_equal(read_sweep(path, i ? b.is : b.was), sets[i]->n_counters);
  }
  judge();
  for (size_t i = 0; i < b.found.n_faults; i++)
    print_message("%s: %s\n", b.found.finding[i].id, b.found.finding[i].text);
  assert_int_equal(b.found.n_faults, 0);
  assert_int_equal(b.found.n, 2); /* codewords: good ones, repaired ones */
  assert_string_equal(
      b.found.finding[0].text,
      "cxi3 repaired codewords on its link, as links do: hni_pcs_corrected_cw rose by 210 codewords in "
      "44.1 s (4.76 a second). The same of 7 others.");
}
int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(held),      cmocka_unit_test(host_is_slow), cmocka_unit_test(few_among_billions),
      cmocka_unit_test(half_down), cmocka_unit_test(infiniband),   cmocka_unit_test(entities),
      cmocka_unit_test(others),    cmocka_unit_test(working_nics),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  begin();
  return failed;
}
