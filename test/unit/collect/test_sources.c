/*
 * The sources of counters on fake trees (test/lib/counters/counter_trees.py): what is found, what is read,
 * and what of it cannot be.
 *
 * ioctl(), pread() and clock_gettime() are this program's own: a driver that ethtool asks, files that go
 * while they are open, a wall clock that is set, and read a little later now and then.
 */
#include "source_trees.h"

/* ---- Cassini ---- */

static void cassini(void **state) {
  (void)state;
  tree(
      "cxi before 2 -- rh cxi1 spt_timeouts=-5 sct_in_use=3 -- put "
      "sys/class/cxi/cxi0/device/link_restarts/time_3 1746209999 "
      "-- put sys/class/cxi/cxi0/device/current_link_width 8");
  struct got g = open_all(&ALL);
  const struct ni_entity *e = entity(&g, NI_METRIC_CXI, "cxi1");
  assert_non_null(e);
  assert_int_equal(e->n, 1890);
  assert_string_equal(e->link, "up, 200 Gb/s");
  assert_true(e->link_bytes_s == 25e9);
  assert_string_equal(e->pci, "0000:11:00.0");
  assert_int_equal(e->numa, 0);
  assert_null(e->warning);
  assert_string_equal(entity(&g, NI_METRIC_CXI, "cxi0")->warning, "PCIe link x8 of x16");
  const struct ni_reading *r = at(&g, NI_METRIC_CXI, "cxi0", "atu_ats_dynamic_state_change_cntr");
  assert_int_equal(r->value, 2036);
  assert_int_equal(r->real_ns, INT64_C(1746204071662953620));
  assert_int_equal(g.bad, 0);
  unsigned gauges = 0;
  for (uint32_t i = e->first; i < e->first + e->n; i++)
    gauges += g.set->counter[i].what.kind == NI_METRIC_GAUGE;
  assert_int_equal(gauges, 411);
  assert_int_equal(at(&g, NI_METRIC_CXIDEV, "cxi0", "link_restart_time_3")->value, 1746209999);
  assert_int_equal(at(&g, NI_METRIC_CXIDEV, "cxi0", "pcie_corr_err")->value, 3);
  /* The retry handler prints 32 bits with a sign; what writing to resets is no counter. */
  assert_int_equal(at(&g, NI_METRIC_RH, "cxi1", "spt_timeouts")->value, UINT64_C(4294967291));
  assert_int_equal(at(&g, NI_METRIC_RH, "cxi1", "sct_in_use")->value, 3);
  assert_true(find(&g, NI_METRIC_RH, "cxi1", "reset_counters") == SIZE_MAX);
  /* An open file of its would be read from a cache: a new one is opened. */
  tree("rh cxi1 spt_timeouts=7");
  again(&g);
  assert_int_equal(at(&g, NI_METRIC_RH, "cxi1", "spt_timeouts")->value, 7);
  done(&g);
  /* What lies between two sweeps is what lies between their stamps, by both clocks. */
  g = open_all(&ONLY(NI_METRIC_CXI));
  struct ni_reading before = *at(&g, NI_METRIC_CXI, "cxi0", "hni_tx_paused_1");
  tree("tick 10 cxi0 hni_tx_paused_1+=3000000000");
  again(&g);
  const struct ni_reading *after = at(&g, NI_METRIC_CXI, "cxi0", "hni_tx_paused_1");
  struct ni_change c = ni_change_of(&g.set->counter[after - g.r].what, &before, after, 0);
  assert_int_equal(c.state, NI_CHANGE_CHANGED);
  assert_int_equal(c.delta, 3000000000);
  if (c.seconds < 9.999 || c.seconds > 10.001)
    fail_msg("%.9f s", c.seconds);
  done(&g);
  struct ni_wanted few = {.sources = 1u << NI_METRIC_CXI};
  g = open_all(&few);
  if (g.set->n_counters < 2 * 50 || g.set->n_counters > 2 * 75)
    fail_msg("%zu counters are in the short list of two NICs", g.set->n_counters);
  done(&g);
}

/* Stamps that stand still are STALE in each sweep, however the wall clock is read, and where it is set. */
static void cassini_stands_still(void **state) {
  (void)state;
  static const int64_t set_by[] = {0, 0, 0, 0, INT64_C(3600000000000), 0, -INT64_C(1000000), 0};
  tree("cxi before 1");
  jitter_ns = 20000;
  struct got g = open_all(&ONLY(NI_METRIC_CXI));
  size_t i = find(&g, NI_METRIC_CXI, "cxi0", "hni_tx_paused_1");
  for (size_t k = 0; k < sizeof set_by / sizeof *set_by; k++) {
    struct ni_reading before = g.r[i];
    stepped_ns += set_by[k];
    again(&g);
    struct ni_change c = ni_change_of(&g.set->counter[i].what, &before, &g.r[i], 0);
    if (c.state != NI_CHANGE_STALE)
      fail_msg("sweep %zu: state %u, %.9f s", k, c.state, c.seconds);
  }
  /* An hour is taken back while ten seconds go by: there are ten between the two. */
  struct ni_reading before = g.r[i];
  stepped_ns -= INT64_C(3600000000000);
  tree("tick -3590 cxi0 hni_tx_paused_1+=1000");
  again(&g);
  struct ni_change c = ni_change_of(&g.set->counter[i].what, &before, &g.r[i], 0);
  assert_int_equal(c.state, NI_CHANGE_CHANGED);
  if (c.seconds < 9.9 || c.seconds > 10.1)
    fail_msg("%.9f s", c.seconds);
  done(&g);
}

static void cassini_faults(void **state) {
  (void)state;
  tree(
      "cxi before 11 -- fault cxi0 hni_tx_paused_1 eio -- fault cxi0 hni_tx_paused_2 empty -- fault cxi0 "
      "hni_tx_paused_3 noat "
      "-- fault cxi0 hni_tx_paused_4 text -- fault cxi0 hni_tx_paused_5 gone -- fault cxi1 - binary "
      "-- put sys/class/cxi/cxi10/device/telemetry/hni_tx_paused_0 18446744073709551616@1.000000000");
  struct got g = open_all(&ONLY(NI_METRIC_CXI));
  for (int i = 1; i <= 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "hni_tx_paused_%d", i);
    assert_int_equal(at(&g, NI_METRIC_CXI, "cxi0", name)->state, NI_READ_UNREADABLE);
    assert_int_equal(at(&g, NI_METRIC_CXI, "cxi0", name)->value, 0);
  }
  /* beyond 64 bits */
  assert_int_equal(at(&g, NI_METRIC_CXI, "cxi10", "hni_tx_paused_0")->state, NI_READ_UNREADABLE);
  assert_int_equal(g.bad, 5);
  assert_true(find(&g, NI_METRIC_CXI, "cxi0", "hni_tx_paused_5") == SIZE_MAX);
  assert_int_equal(entity(&g, NI_METRIC_CXI, "cxi1")->n, 1890);
  assert_true(told(&g, "cxi1/device/telemetry/ALL-in-binary", "skipped", true));
  /* cxi2 before cxi10, as people count */
  assert_string_equal(g.set->entity[2].name, "cxi2");
  assert_string_equal(g.set->entity[10].name, "cxi10");
  /* A driver that goes: MISSING, and the collector is told to look again. */
  assert_false(ni_collector_changed(g.c));
  pread_fails = ENODEV;
  again(&g);
  assert_int_equal(g.bad, g.set->n_counters);
  assert_int_equal(at(&g, NI_METRIC_CXI, "cxi3", "hni_tx_paused_0")->state, NI_READ_MISSING);
  assert_true(ni_collector_changed(g.c));
  pread_fails = EIO;
  again(&g);
  assert_int_equal(at(&g, NI_METRIC_CXI, "cxi3", "hni_tx_paused_0")->state, NI_READ_UNREADABLE);
  done(&g);
}

static void cassini_paths(void **state) {
  (void)state;
  char path[256];
  tree("cxi cassini2 2 -- rh cxi0");
  struct ni_wanted w = {.all = true, .sources = 1u << NI_METRIC_CXI | 1u << NI_METRIC_RH, .cxi_dir = path};
  snprintf(path, sizeof path, "%s/sys/class/cxi/", root);
  struct got g = open_all(&w);
  assert_int_equal(g.set->n_entities, 2); /* a copy's retry handler is not this machine's */
  assert_int_equal(g.set->n_counters, 2 * (1890 + 32));
  assert_string_equal(entity(&g, NI_METRIC_CXI, "cxi0")->link, "up, 400 Gb/s");
  size_t bin = find(&g, NI_METRIC_CXI, "cxi1", "hni_pcs_corrected_cw_bin_14");
  assert_int_equal(g.r[bin].state, NI_READ_OK);
  assert_int_equal(g.set->counter[bin].what.width, 56);
  assert_string_equal(g.set->counter[bin].what.unit, "codewords");
  done(&g);
  snprintf(path, sizeof path, "%s/sys/class/cxi/cxi1/device/telemetry", root);
  g = open_all(&w);
  assert_int_equal(g.set->n_entities, 1);
  assert_string_equal(g.set->entity[0].name, "cxi1");
  done(&g);
  snprintf(path, sizeof path, "%s/sys/class", root);
  g = open_all(&w);
  assert_int_equal(g.set->n_entities, 0);
  assert_true(told(&g, "/sys/class", ".../cxi0/device/telemetry", false));
  done(&g);
}

/* Fewer descriptors than counters: they are read all the same. */
static void few_descriptors(void **state) {
  (void)state;
  struct rlimit old, few;
  getrlimit(RLIMIT_NOFILE, &old);
  few = (struct rlimit){256, old.rlim_max};
  tree("cxi before 1");
  setrlimit(RLIMIT_NOFILE, &few);
  struct got g = open_all(&ONLY(NI_METRIC_CXI));
  setrlimit(RLIMIT_NOFILE, &old);
  assert_int_equal(g.set->n_counters, 1890);
  assert_int_equal(g.bad, 0);
  assert_int_equal(g.set->n_unread, 0);
  done(&g);
}

/* ---- InfiniBand, RoCE, EFA ---- */

static void ports(void **state) {
  (void)state;
  tree(
      "mlx5 mlx5_0 port_xmit_data=1000 symbol_error=65535 rx_write_requests=4294967290 lifespan=10000 -- "
      "bnxt bnxt_re0 -- efa efa_0 "
      "-- put sys/class/infiniband/mlx5_0/device/current_link_speed '8.0 GT/s PCIe' -- mlx5 mlx5_1 "
      "'port_xmit_wait=N/A (no PMA)' 'symbol_error=N/A (no PMA)' 'state=1: DOWN' 'rate=10 Gb/sec (4X SDR)'");
  struct got g = open_all(&ONLY(NI_METRIC_IB));
  const struct ni_entity *e = entity(&g, NI_METRIC_IB, "mlx5_0:1");
  assert_string_equal(e->warning, "PCIe link 8.0 GT/s PCIe of 16.0 GT/s PCIe");
  assert_string_equal(e->link, "ACTIVE, 400 Gb/sec (4X NDR), InfiniBand");
  assert_true(e->link_bytes_s == 50e9);
  assert_int_equal(e->n, 21 + 26);
  assert_true(find(&g, NI_METRIC_IB, "mlx5_0:1", "lifespan") == SIZE_MAX);
  size_t i = find(&g, NI_METRIC_IB, "mlx5_0:1", "port_xmit_data");
  assert_int_equal(g.r[i].value, 1000);
  assert_int_equal(g.set->counter[i].what.scale, 4);
  static const struct {
    const char *name;
    unsigned kind, width;
  } kinds[] = {{"link_downed", NI_METRIC_STICKY, 8},
               {"port_rcv_errors", NI_METRIC_STICKY, 16},
               {"port_rcv_constraint_errors", NI_METRIC_STICKY, 8},
               {"local_link_integrity_errors", NI_METRIC_STICKY, 4},
               {"VL15_dropped", NI_METRIC_STICKY, 16},
               {"port_xmit_wait", NI_METRIC_STICKY, 32},
               {"port_rcv_data", NI_METRIC_COUNTER, 64},
               {"out_of_sequence", NI_METRIC_COUNTER, 32},
               {"packet_seq_err", NI_METRIC_COUNTER, 32},
               {"roce_adp_retrans_to", NI_METRIC_COUNTER, 32},
               {"np_cnp_sent", NI_METRIC_COUNTER, 64},
               {"rp_cnp_handled", NI_METRIC_COUNTER, 64},
               {"rx_icrc_encapsulated", NI_METRIC_COUNTER, 64},
               {"active_qps", NI_METRIC_GAUGE, 0},
               {"rdma_read_bytes", NI_METRIC_COUNTER, 64}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    struct ni_metric m = ni_metric_of(NI_METRIC_IB, kinds[k].name);
    if (m.kind != kinds[k].kind || m.width != kinds[k].width)
      fail_msg("%s: kind %u, %u bits", kinds[k].name, m.kind, m.width);
  }
  const struct ni_metric *narrow = &g.set->counter[find(&g, NI_METRIC_IB, "mlx5_0:1", "symbol_error")].what;
  assert_int_equal(narrow->kind, NI_METRIC_STICKY);
  assert_int_equal(narrow->width, 16);
  assert_int_equal(entity(&g, NI_METRIC_IB, "bnxt_re0:1")->n, 21 + 18);
  assert_true(find(&g, NI_METRIC_IB, "bnxt_re0:1", "recoverable_errors") == SIZE_MAX);
  assert_int_equal(entity(&g, NI_METRIC_IB, "efa_0:1")->n, 22);
  assert_non_null(strstr(entity(&g, NI_METRIC_IB, "efa_0:1")->link, "as all older drivers say"));
  e = entity(&g, NI_METRIC_IB, "mlx5_1:1");
  assert_int_equal(e->n, 21 + 26 - 2);
  assert_true(e->link_bytes_s == 0);
  assert_true(told(&g, "mlx5_1/ports/1/counters/", "N/A (no PMA)", true));
  assert_true(told(&g, "mlx5_1/ports/1/counters/", "1 more file", true));
  /* Within its lifespan the driver answers as before: such a reading is no newer, and no rate comes of it. */
  struct ni_reading wraps = *at(&g, NI_METRIC_IB, "mlx5_0:1", "rx_write_requests"),
                    pma = *at(&g, NI_METRIC_IB, "mlx5_0:1", "port_xmit_data");
  tree("put sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data 2000");
  again(&g);
  struct ni_change c = ni_change_of(narrow, &wraps, at(&g, NI_METRIC_IB, "mlx5_0:1", "rx_write_requests"), 0);
  assert_int_equal(c.state, NI_CHANGE_STALE);
  c = ni_change_of(&g.set->counter[i].what, &pma, &g.r[i], 0);
  assert_int_equal(c.state, NI_CHANGE_CHANGED);
  assert_int_equal(c.delta, 1000);
  done(&g);
  /* 32 bits that went over their end */
  tree("mlx5 mlx5_0 rx_write_requests=4294967290 lifespan=0");
  g = open_all(&ONLY(NI_METRIC_IB));
  i = find(&g, NI_METRIC_IB, "mlx5_0:1", "rx_write_requests");
  wraps = g.r[i];
  tree("put sys/class/infiniband/mlx5_0/ports/1/hw_counters/rx_write_requests 10");
  again(&g);
  c = ni_change_of(&g.set->counter[i].what, &wraps, &g.r[i], 0);
  assert_int_equal(c.state, NI_CHANGE_CHANGED);
  assert_int_equal(c.delta, 16);
  assert_true(c.wrapped);
  done(&g);
}

/* ---- interfaces ---- */

static void interfaces(void **state) {
  (void)state;
  tree(
      "eth hsn0 rx_bytes=12345 speed=200000 ifindex=42 -- eth down0 speed=-1 operstate=down flags=0x1002 "
      "-- put sys/class/net/veth9/statistics/rx_bytes 5 -- put sys/class/net/veth9/flags 0x1003 -- put "
      "sys/class/net/veth9/operstate up "
      "-- put sys/class/net/virbr0/statistics/rx_bytes 5 -- put sys/class/net/virbr0/flags 0x1002 -- put "
      "sys/class/net/bonding_masters x");
  driver.n = 3;
  driver.ifindex = 42;
  driver.name[0] = "rx_prio3_pause";
  driver.name[1] = "  corrected_cw";
  driver.name[2] = "a_name_of_thirty_two_bytes_0123456789";
  driver.value[0] = 77;
  driver.value[1] = 88;
  driver.value[2] = UINT64_MAX;
  struct ni_wanted w = {.all = true, .sources = 1u << NI_METRIC_ETH | 1u << NI_METRIC_ETHTOOL};
  struct got g = open_all(&w);
  assert_string_equal(entity(&g, NI_METRIC_ETH, "hsn0")->link, "up, 200 Gb/s");
  assert_int_equal(at(&g, NI_METRIC_ETH, "hsn0", "rx_bytes")->value, 12345);
  assert_int_equal(at(&g, NI_METRIC_ETH, "hsn0", "carrier_changes")->value, 2);
  assert_string_equal(entity(&g, NI_METRIC_ETH, "down0")->link, "down");
  assert_true(entity(&g, NI_METRIC_ETH, "down0")->link_bytes_s == 0);
  assert_non_null(entity(&g, NI_METRIC_ETH, "veth9")); /* virtual, and up */
  assert_null(entity(&g, NI_METRIC_ETH, "virbr0"));
  assert_int_equal(at(&g, NI_METRIC_ETHTOOL, "hsn0", "rx_prio3_pause")->value, 77);
  assert_int_equal(at(&g, NI_METRIC_ETHTOOL, "hsn0", "corrected_cw")->value, 88);
  assert_int_equal(at(&g, NI_METRIC_ETHTOOL, "hsn0", "a_name_of_thirty_two_bytes_01234")->value, UINT64_MAX);
  assert_int_equal(g.bad, 0);
  /* Other counters than those that were named: no value is anybody's, until it is opened anew. */
  driver.n = 4;
  driver.name[0] = "a_queue_of_its_own";
  driver.name[3] = "rx_prio3_pause";
  again(&g);
  assert_int_equal(at(&g, NI_METRIC_ETHTOOL, "hsn0", "rx_prio3_pause")->state, NI_READ_MISSING);
  assert_true(ni_collector_changed(g.c));
  done(&g);
  g = open_all(&w);
  assert_int_equal(at(&g, NI_METRIC_ETHTOOL, "hsn0", "a_queue_of_its_own")->value, 77);
  done(&g);
  w.all = false; /* the short list */
  g = open_all(&w);
  assert_int_equal(entity(&g, NI_METRIC_ETHTOOL, "hsn0")->n, 1);
  done(&g);
  driver.ifindex = 43; /* of that name, and another: whose /sys this is it is not */
  g = open_all(&w);
  assert_null(entity(&g, NI_METRIC_ETHTOOL, "hsn0"));
  done(&g);
}

static void host(void **state) {
  (void)state;
  tree("host -- put proc/pressure/io garbage");
  struct ni_wanted w = {.all = true, .sources = 1u << NI_METRIC_TCP | 1u << NI_METRIC_HOST};
  struct got g = open_all(&w);
  static const struct {
    enum ni_metric_source source;
    const char *name;
    uint64_t value;
  } t[] = {{NI_METRIC_TCP, "RetransSegs", 3},
           {NI_METRIC_TCP, "OutSegs", 2000},
           {NI_METRIC_TCP, "TCPTimeouts", 6},
           {NI_METRIC_TCP, "TCPRcvQDrop", 8},
           {NI_METRIC_HOST, "cpu_user", 100},
           {NI_METRIC_HOST, "cpu_steal", 8},
           {NI_METRIC_HOST, "context_switches", 77777},
           {NI_METRIC_HOST, "run_queue", 3},
           {NI_METRIC_HOST, "softirq_net_rx", 300},
           {NI_METRIC_HOST, "softirq_net_tx", 30},
           {NI_METRIC_HOST, "memory_available", 8000000},
           {NI_METRIC_HOST, "pressure_cpu_some", 1234},
           {NI_METRIC_HOST, "pressure_memory_full", 567}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    if (at(&g, t[i].source, "host", t[i].name)->value != t[i].value)
      fail_msg("%s: %" PRIu64, t[i].name, at(&g, t[i].source, "host", t[i].name)->value);
  assert_true(find(&g, NI_METRIC_HOST, "host", "pressure_io_some") == SIZE_MAX);
  assert_true(find(&g, NI_METRIC_HOST, "host", "clock_synchronised") != SIZE_MAX);
  assert_int_equal(g.bad, 0);
  done(&g);
}

static void nearest(void **state) {
  (void)state;
  tree(
      "cxi before 4 -- gpu 0000:12:00.0 pci0000:10/0000:10:01.0 -- gpu 0000:25:00.0 pci0000:20/0000:20:05.0 "
      "-- gpu 0000:34:00.0 pci0000:30/0000:30:01.0/0000:32:00.0 -- gpu 0000:02:00.0 pci0000:90/0000:90:01.0");
  struct got g = open_all(&ONLY(NI_METRIC_CXI));
  struct ni_nearest n[4];
  assert_int_equal(ni_nearest_find(g.set, n), 0);
  static const char *const gpus[] = {"0000:12:00.0", "0000:12:00.0", "0000:25:00.0", "0000:34:00.0"},
                           *const how[] = {"SYS", "PIX", "PHB", "PXB"};
  for (int i = 0; i < 4; i++) {
    assert_string_equal(n[i].gpu, gpus[i]); /* of those beyond its host bridge one of its NUMA node */
    assert_string_equal(ni_near_name(n[i].how), how[i]);
  }
  done(&g);
}

static void nothing(void **state) {
  (void)state;
  struct got g = open_all(&(struct ni_wanted){.all = true, .sources = ~(1u << NI_METRIC_GPU)});
  assert_null(entity(&g, NI_METRIC_CXI, "cxi0"));
  assert_int_equal(g.set->n_entities, 1); /* the clock needs no file */
  done(&g);
}

int main(void) {
  if (!mkdtemp(root)) {
    if (!mkdtemp(elsewhere))
      return 1;
    strcpy(root, elsewhere);
  }
  setenv("NI_ROOT", root, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(cassini, fresh),         cmocka_unit_test_setup(cassini_stands_still, fresh),
      cmocka_unit_test_setup(cassini_faults, fresh),  cmocka_unit_test_setup(cassini_paths, fresh),
      cmocka_unit_test_setup(few_descriptors, fresh), cmocka_unit_test_setup(ports, fresh),
      cmocka_unit_test_setup(interfaces, fresh),      cmocka_unit_test_setup(host, fresh),
      cmocka_unit_test_setup(nearest, fresh),         cmocka_unit_test_setup(nothing, fresh),
  };
  ni_collector_raise_limit();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command) != 0 || failed;
}
