/*
 * GPUs by NVML, with a library that says what is planted (test/fake_nvml/fake_nvml.c): each test loads it
 * before the collector asks for libnvidia-ml.so.1, and the loader gives the collector the one that is there
 * by its name.
 */
#include "gpu_fake.h"

static void planted_values(void **state) {
  (void)state;
  open_it((struct ni_wanted){.all = true});
  assert_int_equal(ni_set_n_unread(set), 0);
  assert_int_equal(sweep(), 0);
  const struct ni_entity *e = entity("gpu0");
  assert_string_equal(e->pci, "0000:c0:00.0");
  assert_int_equal(e->numa, 1);
  assert_non_null(strstr(e->about, "NVIDIA H100 80GB HBM3, GPU-0-0000"));
  assert_non_null(strstr(
      e->about, "does not tell: throttled_sync_boost, retired_pages_corrected, retired_pages_uncorrected"));
  assert_string_equal(e->link, "PCIe generation 5, x16");
  assert_null(e->warning);
  assert_true(e->link_bytes_s > 60e9 && e->link_bytes_s < 64e9);
  expect("gpu0", "utilization_gpu", 91);
  expect("gpu0", "utilization_memory", 40);
  expect("gpu0", "memory_used", 60000000000);
  expect("gpu0", "memory_total", 85899345920);
  expect("gpu0", "memory_free", 25899345920);
  expect("gpu0", "clock_sm", 1980);
  expect("gpu0", "clock_memory", 2619);
  expect("gpu0", "power", 650123);
  expect("gpu1", "power", 99000);
  expect("gpu0", "energy", 123456789);
  expect("gpu0", "temperature", 61);
  expect("gpu0", "temperature_memory", 70);
  expect("gpu0", "throttle_reasons", 4);
  expect("gpu0", "throttled_power", 5000);
  expect("gpu0", "pcie_tx_bytes", 7000);
  expect("gpu0", "nvlink_tx_bytes", 10240);
  expect("gpu0", "nvlink_rx_bytes", 20480);
  expect("gpu0", "ecc_corrected", 1);
  expect("gpu0", "xid_count", 0);
  assert_string_equal(set->counter[place("gpu0", "power")].what.unit, "mW");
  assert_int_equal(set->counter[place("gpu0", "power")].what.kind, NI_METRIC_GAUGE);
  assert_string_equal(set->counter[place("gpu0", "nvlink_tx_bytes")].what.unit, "bytes");
  assert_int_equal(set->counter[place("gpu0", "throttled_power")].what.kind, NI_METRIC_COUNTER);
  plant("1 field.83 123456999\n");
  sweep();
  expect("gpu1", "energy", 123456999);
  expect("gpu0", "energy", 123456789);
  /* One call for all that is cheap, one for the bytes: not one a field. */
  long before = calls("FieldValues");
  for (int i = 0; i < SWEEPS && calls("FieldValues") == before; i++) {
    wait_ms(50);
    sweep();
  }
  assert_in_range(calls("FieldValues") - before, 1, 2 * 2);
}

static void short_list(void **state) {
  (void)state;
  static const char *const one[] = {"gpu1", NULL};
  open_it((struct ni_wanted){.entities = one});
  sweep();
  assert_null(entity("gpu0"));
  assert_true(has("gpu1", "power") && has("gpu1", "nvlink_tx_bytes") && has("gpu1", "pcie_rx_bytes"));
  assert_false(has("gpu1", "memory_free") || has("gpu1", "gpm_sm_activity"));
}

/* What blocks is called only for those who ask for it. */
static void blocking(void **state) {
  (void)state;
  open_it((struct ni_wanted){.all = true});
  sweep();
  assert_false(has("gpu0", "pcie_tx_rate"));
  assert_int_equal(calls("PcieThroughput") + calls("GpmSampleGet") + calls("GpmQueryDeviceSupport"), 0);
  open_it((struct ni_wanted){.slow = true});
  sweep();
  expect("gpu0", "pcie_tx_rate", 1000);
  expect("gpu0", "pcie_rx_rate", 2000);
}

/*
 * PCIe's throughput stands in for its bytes where a GPU does not count those, for those who ask for it; it
 * has its part of the time.
 */
static void throughput(void **state) {
  (void)state;
  static const char *const named[] = {"pcie_*_rate", NULL};
  plant("0 ret.field.197 3\n0 ret.field.198 3\n* delay.PcieThroughput 20\n");
  open_it((struct ni_wanted){0});
  assert_false(has("gpu0", "pcie_tx_bytes") || has("gpu0", "pcie_tx_rate"));
  assert_int_equal(calls("PcieThroughput"), 0);
  open_it((struct ni_wanted){.pcie = true});
  sweep();
  expect("gpu0", "pcie_tx_rate", 1000);
  expect("gpu0", "pcie_rx_rate", 2000);
  assert_true(has("gpu1", "pcie_tx_bytes") && has("gpu1", "pcie_rx_bytes"));
  assert_false(has("gpu1", "pcie_tx_rate") || has("gpu1", "pcie_rx_rate"));
  assert_null(strstr(entity("gpu1")->about, "pcie_tx_rate"));
  for (int i = 0; i < 20; i++) {
    wait_ms(50);
    sweep();
  }
  assert_in_range(calls("PcieThroughput"), 2, 6); /* 40 ms each second, not each time */
  open_it((struct ni_wanted){.counters = named});
  assert_true(has("gpu0", "pcie_rx_rate") && has("gpu1", "pcie_tx_rate"));
}

/* Bytes that 32 bits count are none. */
static void narrow_bytes(void **state) {
  (void)state;
  plant("* type.197 1\n");
  open_it((struct ni_wanted){.all = true});
  sweep();
  assert_false(has("gpu0", "pcie_tx_bytes"));
  expect("gpu0", "pcie_rx_bytes", 8000);
}

static void link_warnings(void **state) {
  (void)state;
  plant("0 width 8\n1 gen 1\n1 util 0\n");
  open_it((struct ni_wanted){.all = true});
  assert_non_null(strstr(entity("gpu0")->warning, "PCIe link x8 of x16"));
  assert_null(entity("gpu1")->warning);
  assert_string_equal(entity("gpu1")->link, "PCIe generation 1, x16 (idle; up to generation 5)");
  plant("1 gen 1\n");
  open_it((struct ni_wanted){.all = true});
  assert_non_null(strstr(entity("gpu1")->warning, "generation 1 of 5 under load"));
}

/* Each fault costs what it hits, and nothing beside it. */
static void faults(void **state) {
  (void)state;
  static const struct {
    const char *line, *name;
    uint8_t lost, during;
  } t[] = {
      {"0 ret.PowerUsage 999\n", "power", 1, NI_READ_UNREADABLE},
      {"0 ret.PowerUsage 10\n", "power", 1, NI_READ_UNREADABLE},
      {"0 ret.PowerUsage 3\n", "power", 1, NI_READ_MISSING},
      {"0 ret.MemoryInfo_v2 999\n", "memory_used", 2, NI_READ_UNREADABLE},
      {"0 ret.field.83 999\n", "energy", 1, NI_READ_UNREADABLE},
      {"0 ret.CurrentClocksEventReasons 4\n", "throttle_reasons", 1, NI_READ_UNREADABLE},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    plant("");
    open_it((struct ni_wanted){0});
    assert_int_equal(sweep(), 0);
    plant(t[i].line);
    sweep_until(t[i].lost);
    assert_int_equal(reading("gpu0", t[i].name)->state, t[i].during);
    plant("");
    sweep_until(t[i].during == NI_READ_MISSING);
  }
  /* Not supported: asked once, then never again. */
  plant("0 ret.PowerUsage 3\n1 ret.PowerUsage 4\n* ret.field.4 3\n");
  open_it((struct ni_wanted){.all = true});
  assert_false(has("gpu0", "power") || has("gpu1", "power") || has("gpu0", "ecc_uncorrected"));
  assert_non_null(strstr(entity("gpu0")->about, "does not tell: power"));
  assert_int_equal(ni_set_n_unread(set), 1);
  assert_string_equal(set->unread[0].path, "gpu1");
  assert_string_equal(set->unread[0].why, "needs root: power");
  long before = calls("PowerUsage");
  assert_int_equal(sweep(), 0);
  assert_int_equal(calls("PowerUsage"), before);
  plant("1 ret.HandleByIndex 15\n");
  open_it((struct ni_wanted){0});
  assert_null(entity("gpu1"));
  assert_non_null(strstr(set->unread[0].why, "fallen off the bus"));
}

static void lost_and_back(void **state) {
  (void)state;
  open_it((struct ni_wanted){0});
  assert_int_equal(sweep(), 0);
  plant("0 ret 15\n");
  long before = calls("");
  sweep();
  long both = calls("") - before;
  sweep_until(entity("gpu0")->n - 2); /* Xids are told by another way */
  assert_int_equal(reading("gpu0", "power")->state, NI_READ_MISSING);
  expect("gpu1", "power", 99000);
  plant("");
  sweep_until(0);
  expect("gpu0", "power", 650123);
  assert_true(both < 20); /* not each call of it is tried */
}

/* A call of 200 ms is made rarely; what it brought stays, with its time. The others go on. */
static void slow_call(void **state) {
  (void)state;
  plant("0 delay.PowerUsage 200\n");
  /*
   * gpu1's is slow, too, where this machine held its first one up, and then not made in the first sweep:
   * opened once more.
   */
  long first, sweeps = 1;
  for (int i = 0; i < 50; i++) {
    open_it((struct ni_wanted){0});
    first = calls("PowerUsage"); /* one a GPU */
    sweep();
    if (calls("PowerUsage") != first)
      break;
  }
  int64_t read_at = reading("gpu0", "power")->mono_ns;
  for (; sweeps <= 20 || (calls("PowerUsage") - first < 2 && sweeps < 1000); sweeps++) {
    wait_ms(20);
    sweep();
    expect("gpu0", "power", 650123);
    assert_true(reading("gpu0", "power")->mono_ns == read_at);
  }
  /* gpu1's: one a sweep, fewer where the machine held one up. */
  assert_in_range(calls("PowerUsage") - first, 2, sweeps);
  assert_true(reading("gpu1", "power")->mono_ns > read_at);
  struct ni_reading earlier = {.real_ns = 1, .mono_ns = read_at};
  struct ni_change change =
      ni_change_of(&set->counter[place("gpu0", "power")].what, &earlier, reading("gpu0", "power"), 0);
  assert_int_equal(change.state, NI_CHANGE_STALE);
  /* One of 6 ms is due again after 1.2 s, and not before. */
  plant("0 delay.PowerUsage 6\n");
  open_it((struct ni_wanted){0});
  sweep();
  read_at = reading("gpu0", "power")->mono_ns;
  wait_ms(1000);
  sweep();
  if (ms_since(read_at) < 1200)
    assert_true(reading("gpu0", "power")->mono_ns == read_at);
  for (int i = 0; i < SWEEPS && reading("gpu0", "power")->mono_ns == read_at; i++) {
    wait_ms(50);
    sweep();
  }
  assert_true(reading("gpu0", "power")->mono_ns >= read_at + 1200000000);
}

/*
 * Calls that are not slow, but more than their part of the time: what is due is spread, and nothing is lost.
 */
static void too_many(void **state) {
  (void)state;
  plant("* delay 2\n");
  open_it((struct ni_wanted){0});
  int64_t began = mono_ns();
  long before = calls("");
  for (int i = 0; i < 50; i++) {
    wait_ms(20);
    assert_int_equal(sweep(), 0);
  }
  long made =
      calls("") - before; /* 50 ms at first, and 0.5 % of the time since; 24 each sweep, 1200, without that */
  long most = 97 + ms_since(began) / 400;
  if (made > most)
    fail_msg("%ld calls, at most %ld", made, most);
}

/* However many threads read: one call of ours at a time. */
static void one_at_a_time(void **state) {
  (void)state;
  plant("* gpus 6\n* delay 1\n");
  open_it((struct ni_wanted){.all = true});
  for (int i = 0; i < 3; i++)
    ni_collector_read(c, now, 6);
  assert_int_equal(number("fake_most_at_once"), 1);
}

static void gpm(void **state) {
  (void)state;
  static const char *const named[] = {"gpm_*", NULL};
  static const char with[] = "0 gpm 1\n0 gpm.2 45300\n0 gpm.5 1000\n0 gpm.10 99949\n0 gpm.61 2000\n";
  plant(with);
  open_it((struct ni_wanted){.counters = named});
  assert_false(has("gpu1", "gpm_sm_activity") || has("gpu0", "gpm_pcie_tx_rate"));
  sweep();
  expect("gpu0", "gpm_sm_activity", 453);
  expect("gpu0", "gpm_dram_activity", 999);
  expect("gpu0", "gpm_nvlink_tx_rate", 2 << 20);
  assert_int_equal(calls("GpmSampleAlloc"), 2);
  assert_non_null(strstr(entity("gpu1")->about, ", gpm_graphics_activity, "));
  /* Samples that are too close are not taken: the values stay. */
  long taken = calls("GpmSampleGet");
  int64_t at = reading("gpu0", "gpm_sm_activity")->mono_ns;
  plant("0 gpm 1\n0 gpm.2 50000\n0 gpm.5 1000\n0 gpm.10 99949\n0 gpm.61 2000\n");
  int64_t newest = 0;
  for (int i = 0; i < SWEEPS && reading("gpu0", "gpm_sm_activity")->mono_ns == at; i++) {
    wait_ms(150);
    sweep();
    newest = mono_ns();
  }
  sweep();
  if (ms_since(newest) < 50)
    assert_int_equal(calls("GpmSampleGet"), taken + 1);
  assert_true(reading("gpu0", "gpm_sm_activity")->mono_ns > at);
  expect("gpu0", "gpm_sm_activity", 500);
  /* A guest that has GPM by name only: its samples say nothing. */
  plant("0 gpm 1\n0 ret.GpmMetricsGet 3\n");
  open_it((struct ni_wanted){.counters = named});
  assert_false(has("gpu0", "gpm_sm_activity"));
  sweep();
}

static void xids(void **state) {
  (void)state;
  int threads = entries("/proc/self/task");
  open_it((struct ni_wanted){0});
  assert_int_equal(entries("/proc/self/task"), threads); /* opening starts none */
  sweep();
  assert_int_equal(entries("/proc/self/task"), threads + 1);
  expect("gpu1", "xid_count", 0);
  plant("1 xids 2\n1 xid 79\n");
  for (int i = 0; i < 1000 && reading("gpu1", "xid_count")->value < 2; i++) {
    wait_ms(20);
    sweep();
  }
  expect("gpu1", "xid_count", 2);
  expect("gpu1", "xid_last", 79);
  expect("gpu0", "xid_count", 0);
  plant("1 xids 2\n1 xid 79\n* ret.EventSetWait 999\n");
  for (int i = 0; i < 1000 && reading("gpu1", "xid_count")->state == NI_READ_OK; i++) {
    wait_ms(20);
    sweep();
  }
  assert_int_equal(reading("gpu1", "xid_count")->state, NI_READ_UNREADABLE);
  int64_t began = mono_ns();
  long before = calls("EventSetWait");
  wait_ms(600);
  /* An error that comes at once is not asked for again and again. */
  assert_true(calls("EventSetWait") - before <= 2 + ms_since(began) / 250);
  plant("* ret.RegisterEvents 3\n");
  open_it((struct ni_wanted){0});
  sweep();
  assert_false(has("gpu0", "xid_count"));
  assert_non_null(strstr(entity("gpu0")->about, "xid_count, xid_last"));
}

static void mig(void **state) {
  (void)state;
  plant("0 mig 2\n0 ret.UtilizationRates 3\n0/1 used 111\n0/2 used 222\n");
  open_it((struct ni_wanted){.all = true});
  assert_int_equal(sweep(), 0);
  assert_int_equal(set->n_entities, 4);
  assert_false(has("gpu0", "utilization_gpu"));
  assert_int_equal(entity("gpu0/mig1")->n, 3);
  assert_non_null(strstr(entity("gpu0/mig1")->about, "MIG-0/1"));
  assert_string_equal(entity("gpu0/mig2")->pci, "0000:c0:00.0");
  expect("gpu0/mig1", "memory_used", 111);
  expect("gpu0/mig2", "memory_used", 222);
}

static void no_driver(void **state) {
  (void)state;
  static const struct {
    const char *line, *says;
  } t[] = {{"* ret.Init 9\n", "driver is not loaded: modprobe nvidia"},
           {"* ret.Init 18\n", "another version than the loaded driver"},
           {"* ret.Init 999\n", "NVML says 999: Unknown Error"},
           {"* ret.Count 999\n", "NVML says 999"}};
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    plant(t[i].line);
    open_it((struct ni_wanted){0});
    assert_int_equal(set->n_entities, 0);
    assert_int_equal(ni_set_n_unread(set), 1);
    assert_string_equal(set->unread[0].path, "libnvidia-ml.so.1");
    assert_non_null(strstr(set->unread[0].why, t[i].says));
    assert_int_equal(sweep(), 0);
  }
}

static void old_driver(void **state) {
  (void)state;
  static const char *const named[] = {"gpm_*", NULL};
  open_it((struct ni_wanted){.counters = named});
  assert_int_equal(sweep(), 0);
  expect("gpu0", "memory_used", 60000000000);
  expect("gpu0", "throttle_reasons", 4);
  assert_int_equal(calls("MemoryInfo") > 0 && calls("CurrentClocksThrottleReasons") > 0, 1);
  assert_false(has("gpu0", "gpm_sm_activity"));
}

static void no_library(void **state) {
  (void)state;
  void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (real) {
    dlclose(real);
    skip(); /* this machine has one */
  }
  open_it((struct ni_wanted){0});
  assert_int_equal(set->n_entities, 0);
  assert_string_equal(set->unread[0].path, "libnvidia-ml.so.1");
  assert_non_null(strstr(set->unread[0].why, "no NVIDIA driver is here"));
}

static void nothing_left(void **state) {
  (void)state;
  static const char *const named[] = {"gpm_*", NULL};
  plant("* gpm 1\n* gpm.2 1\n* mig 1\n");
  int fds = 0, threads = 0;
  for (int i = 0; i < 4; i++) {
    open_it((struct ni_wanted){.all = true, .slow = true, .counters = named});
    ni_collector_read(c, now, 4);
    ni_collector_close(c);
    c = NULL;
    assert_int_equal(number("fake_started"), 0);
    assert_int_equal(number("fake_samples"), 0);
    if (i == 0) {
      fds = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
  }
  assert_int_equal(entries("/proc/self/fd"), fds);
  assert_int_equal(entries("/proc/self/task"), threads);
}

int main(void) {
  char path[160], *at;
  snprintf(dir, sizeof dir, "%s/ni-gpu.XXXXXX",
           getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 40 ? getenv("TMPDIR") : "/tmp");
  if (!mkdtemp(dir))
    return 1;
  snprintf(file, sizeof file, "%s/planted", dir);
  setenv("NI_FAKE_NVML", file, 1);
  setenv("NI_ROOT", dir, 1);
  snprintf(path, sizeof path, "%s/sys/bus/pci/devices/0000:c0:00.0/numa_node", dir);
  for (at = path + strlen(dir) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = 0;
    mkdir(path, 0755);
  }
  FILE *f = fopen(path, "w");
  if (!f)
    return 1;
  fputs("1\n", f);
  fclose(f);
#define WITH(test, fake_of) cmocka_unit_test_setup_teardown(test, fake_of, without)
  const struct CMUnitTest tests[] = {
      WITH(no_library, NULL),         WITH(planted_values, with_fake),
      WITH(short_list, with_fake),    WITH(blocking, with_fake),
      WITH(throughput, with_fake),    WITH(narrow_bytes, with_fake),
      WITH(link_warnings, with_fake), WITH(faults, with_fake),
      WITH(lost_and_back, with_fake), WITH(slow_call, with_fake),
      WITH(one_at_a_time, with_fake), WITH(gpm, with_fake),
      WITH(xids, with_fake),          WITH(mig, with_fake),
      WITH(no_driver, with_fake),     WITH(old_driver, with_old),
      WITH(nothing_left, with_fake),  WITH(too_many, with_fake),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(path, sizeof path, "rm -rf '%s'", dir);
  return system(path) == 0 ? failed : 1;
}
