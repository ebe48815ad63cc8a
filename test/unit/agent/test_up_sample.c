/*
 * A sample for a head out of planted readings and jobs: values in the units of frames, NaN where nothing is
 * known.
 */
#include "exporter/agent/up_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include <cmocka.h>

#include "test/unit/live/live_made.h"

static struct ni_running_value value[256];
static struct ni_running running = {.value = value};
static struct ni_live live;
static struct ni_up up;

static struct ni_running_value *plant(uint8_t source, const char *entity, const char *name, uint64_t total,
                                      int64_t mono_ns) {
  struct ni_running_value *v = value;
  while (v < value + running.n &&
         !(v->source == source && strcmp(v->entity, entity) == 0 && strcmp(v->name, name) == 0))
    v++;
  if (v == value + running.n)
    running.n++;
  v->source = source;
  v->total = total;
  v->known = true;
  v->last.mono_ns = mono_ns;
  snprintf(v->entity, sizeof v->entity, "%s", entity);
  snprintf(v->name, sizeof v->name, "%s", name);
  return v;
}
#define GPU(n, name, total, s) plant(NI_METRIC_GPU, "gpu" n, name, total, (int64_t)(s) * (int64_t)S)
#define HOST(name, total, s) plant(NI_METRIC_HOST, "host", name, total, (int64_t)(s) * (int64_t)S)

static struct ni_sample *sample(void) {
  const struct ni_metrics_in in = {.live = &live, .running = &running, .unix_ns = T(100)};
  struct ni_sample *s = ni_up_sample(&up, &in);
  assert_non_null(s);
  return s;
}
#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b) + 1e-12)

static int teardown(void **ctx) {
  (void)ctx;
  ni_up_free(&up);
  ni_live_free(&live);
  memset(value, 0, sizeof value);
  running.n = 0;
  return 0;
}

static void gpus(void **ctx) {
  (void)ctx;
  for (int turn = 0; turn < 3; turn++) {
    strcpy(GPU("3", "utilization_gpu", 91, turn + 1)->about,
           "NVIDIA H100 80GB HBM3, GPU-3-0000; does not tell: energy");
    GPU("3", "memory_used", 20u << 20, turn + 1);
    GPU("3", "memory_total", 80u << 20, turn + 1);
    GPU("3", "power", 650500, turn + 1);
    GPU("3", "temperature", 61, turn + 1);
    GPU("3", "clock_sm", 1980, turn + 1);
    GPU("3", "pcie_rx_bytes", 1000 + (uint64_t)turn * 3000, turn * 3 + 1);
    GPU("3", "pcie_tx_bytes", 7000 + (uint64_t)turn * 200, turn + 1);
    if (turn < 2) {
      GPU("3", "nvlink_rx_bytes", (uint64_t)turn * 500, turn + 1);
      GPU("3", "nvlink_tx_bytes", (uint64_t)turn * 900, turn + 1);
    }
    GPU("11", "utilization_gpu", 5, 1)->known = turn != 2; /* lost */
    GPU("3/mig1", "memory_used", 1, 1);
    struct ni_sample *s = sample();
    assert_int_equal(s->n_gpus, 2);
    struct ni_sample_gpu *g = s->gpu;
    assert_int_equal(g[0].index, 3);
    assert_string_equal(g[0].name, "NVIDIA H100 80GB HBM3");
    NEAR(g[0].util, 0.91);
    NEAR(g[0].memory, 0.25);
    NEAR(g[0].power_w, 650.5);
    NEAR(g[0].temperature_c, 61.0);
    NEAR(g[0].sm_hz, 1.98e9);
    assert_int_equal(g[1].index, 11);
    if (turn == 2)
      assert_true(isnan(g[1].util));
    else
      NEAR(g[1].util, 0.05);
    assert_true(isnan(g[1].memory) && isnan(g[1].pcie_rx) && isnan(g[1].power_w) && isnan(g[1].sm_hz));
    if (turn == 0)
      assert_true(isnan(g[0].pcie_rx) && isnan(g[0].pcie_tx) && isnan(g[0].nvlink_rx) &&
                  isnan(g[0].nvlink_tx));
    else {
      NEAR(g[0].pcie_rx, 1000.0);
      NEAR(g[0].pcie_tx, 200.0);
      NEAR(g[0].nvlink_rx, 500.0);
      NEAR(g[0].nvlink_tx, 900.0);
    } /* one left out: as before */
    assert_true(s->seq == 0 && s->n_jobs == 0 && s->n_open == 0 && s->disk > 0 && s->disk <= 1 &&
                isnan(s->cpu) && isnan(s->memory));
    free(s);
  }
}

static void nics_and_host(void **ctx) {
  (void)ctx;
  struct sysinfo host;
  assert_int_equal(sysinfo(&host), 0);
  for (int turn = 0; turn < 2; turn++) {
    int64_t at = (int64_t)(turn + 1) * (int64_t)S;
    uint64_t t = (uint64_t)turn;
    plant(NI_METRIC_CXI, "cxi0", "hni_sts_rx_ok_octets", 5 + t * 4000, at)->link_bytes_s = 25e9;
    plant(NI_METRIC_CXI, "cxi0", "hni_sts_tx_ok_octets", 5 + t * 6000, at)->link_bytes_s = 25e9;
    plant(NI_METRIC_CXI, "cxi0", "hni_tx_paused_0", t * 1000, at);
    plant(NI_METRIC_CXI, "cxi0", "hni_tx_paused_1", t * 250000000, at);
    plant(NI_METRIC_ETH, "cxi0", "rx_bytes", t * 7, at);
    plant(NI_METRIC_IB, "mlx5_0:1", "port_rcv_data", t * 400, at)->known = false;
    plant(NI_METRIC_TCP, "host", "RetransSegs", t, at);
    HOST("cpu_user", 100 + 300 * t, turn + 1);
    HOST("cpu_idle", 100 + 600 * t, turn + 1);
    HOST("cpu_iowait", 100 * t, turn + 1);
    HOST("memory_available", (uint64_t)host.totalram * host.mem_unit / 1024 / 4, turn + 1);
    struct ni_sample *s = sample();
    assert_int_equal(s->n_nics, 3);
    assert_string_equal(s->nic[0].name, "cxi0");
    assert_true(isnan(s->nic[1].tx) && isnan(s->nic[1].link) && isnan(s->nic[1].held) && isnan(s->nic[2].rx));
    assert_string_equal(s->nic[2].name, "mlx5_0:1");
    NEAR(s->nic[0].link, 25e9);
    assert_true(fabs(s->memory - 0.75) < 1e-4);
    if (turn == 0)
      assert_true(isnan(s->nic[0].rx) && isnan(s->cpu));
    else {
      NEAR(s->nic[0].rx, 4000.0);
      NEAR(s->nic[0].tx, 6000.0);
      NEAR(s->nic[0].held, 0.25);
      NEAR(s->nic[1].rx, 7.0);
      NEAR(s->cpu, 0.3);
    }
    free(s);
  }
}

static void jobs(void **ctx) {
  (void)ctx;
  struct ni_live_counts c[2] = {counts(who("77", "dp0", 0), "AllReduce", 3),
                                counts(who("77", "dp0", 1), "Broadcast", 2)};
  struct ni_live_batch b = logs(1, 0, 500, "77");
  b.counts = c;
  b.n_counts = 2;
  assert_int_equal(ni_live_apply(&live, &b, T(0), S), 0);
  struct ni_live_process p[2] = {process("77", 0, NI_LIFE_ALIVE), process("77", 1, NI_LIFE_ALIVE)};
  struct ni_live_open o[3] = {
      {.who = c[0].who,
       .pid = 100,
       .func = "AllReduce",
       .in_flight = 2,
       .stuck = 1,
       .sn = 41,
       .since_ns = T(60)},
      {.who = c[1].who, .pid = 101, .func = "Broadcast", .in_flight = 1, .sn = 7, .since_ns = T(40)},
      {.who = c[1].who, .pid = 101}}; /* nothing in flight */
  struct ni_live_hang hang = {.job = "77", .attempt = "0", .sentence = "rank 3 never came"};
  struct ni_live_batch look = {.kind = NI_LIVE_LOOK,
                               .uid = 1001,
                               .boxes = 2,
                               .n_processes = 2,
                               .n_open = 3,
                               .n_hangs = 1,
                               .processes = p,
                               .open = o,
                               .hangs = &hang};
  assert_int_equal(ni_live_apply(&live, &look, T(90), S), 0);
  struct ni_live_batch other = logs(2, 0, 500, "78");
  other.n_counts = 1;
  other.counts = &(struct ni_live_counts){.size_class = 0};
  *other.counts = counts(who("78", "dp0", 0), "AllReduce", 5);
  assert_int_equal(ni_live_apply(&live, &other, T(0), S), 0);
  for (size_t i = 0; i < live.n_jobs; i++)
    if (strcmp(live.job[i].job, "77") == 0)
      live.job[i].ended_ns = 0;
    else
      live.job[i].ended_ns = T(1);
  struct ni_sample *s = sample();
  assert_int_equal(s->n_jobs, 2);
  const struct ni_sample_job *j = s->job;
  assert_string_equal(j[0].job, "77");
  assert_string_equal(j[0].attempt, "0");
  assert_string_equal(j[0].verdict, "rank 3 never came");
  assert_true(j[0].uid == 1001 && j[0].processes == 2 && j[0].state == 1 && j[0].operations == 5 &&
              j[0].bytes == 5u << 20);
  assert_true(j[0].in_flight == 3 && j[0].stuck == 1);
  NEAR(j[0].bus_bytes, (double)(5u << 21));
  NEAR(j[0].bus_seconds, 0.005);
  NEAR(j[0].oldest_s, 60.0);
  assert_true(strcmp(j[1].job, "78") == 0 && j[1].state == 3 /* of its logs alone */ &&
              j[1].operations == 5 && j[1].in_flight == 0 && !*j[1].verdict);
  assert_int_equal(s->n_open, 2); /* the oldest first */
  assert_true(s->open[0].rank == 1 && s->open[0].sn == 7 && !s->open[0].stuck &&
              strcmp(s->open[0].function, "Broadcast") == 0);
  assert_true(s->open[1].rank == 0 && s->open[1].sn == 41 && s->open[1].stuck &&
              strcmp(s->open[1].comm, "dp0") == 0);
  assert_string_equal(s->open[1].job, "77");
  NEAR(s->open[0].age_s, 60.0);
  NEAR(s->open[1].age_s, 40.0);
  free(s);
}

/* More than a sample has room for: the first GPUs and NICs, the oldest operations. */
static void bounds(void **ctx) {
  (void)ctx;
  static struct ni_live_open o[NI_SAMPLE_OPEN_MAX + 9];
  char name[32];
  for (int i = 0; i < NI_SAMPLE_GPUS_MAX + 3; i++) {
    snprintf(name, sizeof name, "gpu%d", i);
    plant(NI_METRIC_GPU, name, "power", 1, 1);
  }
  for (int i = 0; i < NI_SAMPLE_NICS_MAX + 3; i++) {
    snprintf(name, sizeof name, "eth%d", i);
    plant(NI_METRIC_ETH, name, "rx_bytes", 1, 1);
  }
  for (int i = 0; i < NI_SAMPLE_OPEN_MAX + 9; i++)
    o[i] = (struct ni_live_open){.who = who("77", "dp0", i),
                                 .pid = 100,
                                 .func = "AllReduce",
                                 .in_flight = 1,
                                 .since_ns = T(50 - i % 50)};
  struct ni_live_process p = process("77", 0, NI_LIFE_ALIVE);
  struct ni_live_batch look = {.kind = NI_LIVE_LOOK,
                               .uid = 1001,
                               .boxes = 1,
                               .n_processes = 1,
                               .n_open = NI_SAMPLE_OPEN_MAX + 9,
                               .processes = &p,
                               .open = o};
  assert_int_equal(ni_live_apply(&live, &look, T(90), S), 0);
  struct ni_sample *s = sample();
  assert_true(s->n_gpus == NI_SAMPLE_GPUS_MAX && s->n_nics == NI_SAMPLE_NICS_MAX &&
              s->n_open == NI_SAMPLE_OPEN_MAX);
  assert_int_equal(s->open[0].rank, 49);
  for (uint32_t i = 1; i < s->n_open; i++)
    assert_true(s->open[i].age_s <= s->open[i - 1].age_s);
  free(s);
}

int main(void) {
#define TEST(t) cmocka_unit_test_teardown(t, teardown)
  const struct CMUnitTest tests[] = {TEST(gpus), TEST(nics_and_host), TEST(jobs), TEST(bounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
