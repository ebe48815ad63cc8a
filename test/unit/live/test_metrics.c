/*
 * The state as metrics: what has equal labels is one series, the limit, which form is asked for, numbers that
 * read back.
 *   test_metrics --print full|hostile|many|empty text|open|nvidia   writes a state made here
 *                                                                   (test/cases/agent/agent_metrics.sh)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "exporter/model/live/live_tick.h"
#include "exporter/output/metrics/now.h"
#include "exporter/output/metrics/text.h"
#include "live_made.h"

struct made {
  struct ni_live live;
  struct ni_running running;
  struct ni_agent_self self;
};

static void apply(struct ni_live *l, const struct ni_live_batch *b, uint64_t s) {
  if (ni_live_apply(l, b, T(s), s * S))
    abort();
}

static void make_ranks(struct ni_live *l, const char *job, const char *comm, int from, int n, uint64_t ino) {
  for (int i = from; i < from + n; i++) {
    struct ni_live_counts c[2] = {counts(who(job, comm, i), "AllReduce", 10 + (uint64_t)i),
                                  counts(who(job, comm, i), "SendRecv", 5)};
    struct ni_live_account a = {
        .who = c[0].who, .hash = 5, .comm_rank = i, .started = 100, .written = 80, .incomplete = 2};
    struct ni_live_nvidia v[2] = {
        {.who = c[0].who, .func = "AllReduce", .algo_proto = "Ring_ll", .size_log2 = 23, .n_ranks = 16},
        {.who = c[0].who, .func = "Send", .algo_proto = "Ring_simple", .p2p = true, .size_log2 = 9}};
    for (int k = 0; k < 2; k++) {
      v[k].n = 4;
      v[k].us = 50;
      v[k].bus_n = 2;
      v[k].log_bus_gbs = log(100) + log(400);
      v[k].nnodes = 2;
    }
    c[0].late_n = 3;
    c[0].late_ns = 4500000000;
    for (int k = 0; k < NI_DROP_COUNT; k++)
      a.dropped[k] = 3;
    for (int k = 0; k < NI_FILTER_COUNT; k++)
      a.filtered[k] = 1;
    struct ni_live_batch b = logs(ino + (uint64_t)i, 0, 500, job);
    b.counts = c;
    b.n_counts = 2;
    b.accounts = &a;
    b.n_accounts = 1;
    b.nvidia = v;
    b.n_nvidia = 2;
    b.totals.bad_lines = 1;
    b.totals.damages = 1;
    apply(l, &b, 1);
  }
}

static void make_looks(struct ni_live *l, const char *job, const char *comm, uint32_t n, bool hangs) {
  struct ni_live_process *p = calloc(n, sizeof *p);
  struct ni_live_open *o = calloc(n, sizeof *o);
  for (uint32_t i = 0; i < n; i++) {
    p[i] = process(job, (int)i, NI_LIFE_ALIVE);
    o[i] = (struct ni_live_open){
        .who = who(job, comm, (int)i), .pid = p[i].pid, .in_flight = 2, .func = "AllReduce", .stuck = hangs};
    o[i].since_ns = T(40);
  }
  struct ni_live_hang h = {.attempt = "0", .sentence = "rank 3 did not come", .certain = true};
  snprintf(h.job, sizeof h.job, "%s", job);
  struct ni_live_batch b = {
      .kind = NI_LIVE_LOOK, .uid = 1001, .behind = 77, .logs = n, .boxes = n, .unread = 1};
  b.processes = p;
  b.n_processes = n;
  b.open = o;
  b.n_open = n;
  b.hangs = &h;
  b.n_hangs = hangs;
  apply(l, &b, 50);
  free(p);
  free(o);
}

static void sampled(struct ni_running *r, const char *nic, uint64_t v) {
  static const struct {
    enum ni_metric_source source;
    const char *entity, *pci, *about, *name[12];
    uint64_t value[12];
  } row[] = {
      {NI_METRIC_GPU,
       "gpu3",
       "0000:01:00.0",
       "NVIDIA H100 80GB HBM3, GPU-aaaa-bbbb; does not tell: energy",
       {"utilization_gpu", "memory_used", "clock_sm", "power", "energy", "temperature", "throttle_reasons",
        "throttled_power", "nvlink_rx_bytes", "nvlink_tx_bytes", "pcie_replays", "xid_last"},
       {98, 1 << 30, 1980, 640500, 12345678, 61, 4 | 0x40, 2500000000, 1 << 20, 2 << 20, 7, 79}},
      {NI_METRIC_GPU, "gpu4", "0000:02:00.0", "GPU-cccc", {"utilization_memory", "clock_memory"}, {50, 1593}},
      {NI_METRIC_CXI,
       NULL,
       "0000:c1:00.0",
       NULL,
       {"hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets", "hni_tx_paused_0", "hni_tx_paused_1",
        "pct_spt_timeouts"},
       {1000, 2000, 30, 70, 1}},
      {NI_METRIC_RH, NULL, NULL, NULL, {"spt_timeouts", "nid_value"}, {9, 4}},
      {NI_METRIC_HOST,
       "host",
       NULL,
       NULL,
       {"cpu_user", "cpu_idle", "run_queue", "context_switches"},
       {150, 850, 3, 1000}},
      {NI_METRIC_TCP, "tcp", NULL, NULL, {"RetransSegs", "MaxConn"}, {5, UINT64_MAX}}};
  struct ni_set set = {0};
  struct ni_reading reading[64] = {0};
  size_t n = 0;
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    struct ni_entity *e = ni_set_entity(&set, row[i].source, row[i].entity ? row[i].entity : nic);
    e->pci = ni_set_text(&set, row[i].pci);
    e->about = ni_set_text(&set, row[i].about);
    e->link_bytes_s = row[i].source == NI_METRIC_CXI ? 25e9 : 0;
    for (size_t k = 0; k < 12 && row[i].name[k]; k++) {
      ni_set_counter(&set, row[i].name[k]);
      reading[n++] = (struct ni_reading){row[i].value[k] + v, (int64_t)T(50), 50 * S, NI_READ_OK};
    }
  }
  if (ni_running_add(r, &set, reading, (int64_t)T(50)))
    abort();
  ni_set_free(&set);
}

static void make(struct made *m, const char *what) {
  m->self = (struct ni_agent_self){.node = "n1",
                                   .version = "0.1.0",
                                   .began_ns = T(0),
                                   .cpu_ns = 1500000000,
                                   .resident_bytes = 1 << 20,
                                   .scrapes = UINT64_C(9007199254740993),
                                   .otlp_sent = 3,
                                   .state_saved_ns = T(45),
                                   .head = strcmp(what, "empty") != 0,
                                   .head_connected = true,
                                   .head_sent = 9,
                                   .head_lost = 2,
                                   .head_kept = 4,
                                   .head_skew_ns = -1500000000};
  if (strcmp(what, "empty") != 0)
    m->self.ras = (struct ni_agent_ras){.asked = true,
                                        .there = true,
                                        .answered = 2,
                                        .failed = 1,
                                        .age_ns = 3 * S,
                                        .communicators = 4,
                                        .odd = 1,
                                        .ranks = 8,
                                        .dead = 1,
                                        .behind = 1,
                                        .still_ns = 15 * S};
  ni_live_tick(&m->live, S, 600 * S);
  if (strcmp(what, "full") == 0) {
    make_ranks(&m->live, "77", "dp0", 0, 4, 1);
    make_looks(&m->live, "77", "dp0", 4, true);
    struct ni_live_account begun = {.who = who("78", "dp0", 0), .hash = 6, .started = 1};
    struct ni_live_batch unseen = logs(99, 0, 500, "78"); /* a job of which no box is seen */
    unseen.accounts = &begun;
    unseen.n_accounts = 1;
    apply(&m->live, &unseen, 50);
    sampled(&m->running, "cxi0", 0);
  } else if (strcmp(what, "hostile") == 0) {
    char longest[64];
    memset(longest, 'x', 63);
    longest[63] = 0;
    m->self.node = "n\"1\\\n";
    const char *const name[] = {
        "a\"b\\c\nd", "\xff\xfe{}\x80",   "\"} 1\n# EOF\n", longest, "\xe2\x80\xae\x1b[2J",
        "",           "\xc3\xa4,le=\"x\""};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
      make_ranks(&m->live, name[i], name[(i + 1) % 7], 0, 2, 10 * i);
    make_ranks(&m->live, "a\"b\\c\nd", "\xfe\xff{}\x81", 0, 2, 100); /* made safe it is one that is there */
    make_looks(&m->live, name[1], name[2], 3, true);
    sampled(&m->running, "cx\"i\\0\n\xff", 0);
  } else if (strcmp(what, "many") == 0) {
    for (int i = 0; i < 20; i++) {
      char job[16];
      snprintf(job, sizeof job, "job%d", i);
      make_ranks(&m->live, job, "dp0", 0, 64, (uint64_t)i * 100 + 1);
    }
    make_looks(&m->live, "job0", "dp0", 64, false);
    sampled(&m->running, "cxi0", 0);
  }
  ni_live_tick(&m->live, 50 * S, 600 * S);
}

static void unmake(struct made *m) {
  ni_live_free(&m->live);
  ni_running_free(&m->running);
}

static char *text_of(const struct made *m, bool open, bool nvidia) {
  struct ni_metrics_in in = {.live = &m->live,
                             .running = &m->running,
                             .self = &m->self,
                             .unix_ns = T(50),
                             .mono_ns = 50 * S,
                             .nvidia = nvidia};
  char *text;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  if (ni_metrics_text(f, &in, open))
    abort();
  fclose(f);
  return text;
}

static void has(const char *text, const char *line) {
  char want[512];
  snprintf(want, sizeof want, "\n%s\n", line);
  if (!strstr(text, want))
    fail_msg("not there: %s", line);
}

static void values(void **state) {
  (void)state;
  struct made m = {0};
  make(&m, "full");
  char *t = text_of(&m, false, true);
#define N "nccl_inspector_"
#define R0 "{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"0\",gpu=\"3\",comm=\"dp0\""
  has(t, "# TYPE " N "operations_total counter");
  has(t, N "operations_total" R0 ",function=\"AllReduce\"} 10");
  has(t, N "bus_seconds_total" R0 ",function=\"AllReduce\"} 0.01");
  has(t, N "late_seconds_total" R0 ",function=\"AllReduce\"} 4.5");
  has(t, N "lost_operations_total" R0 ",cause=\"incomplete\"} 2");
  has(t, N "lost_operations_total" R0 ",cause=\"pool_full\"} 3");
  has(t, N "started_operations_total" R0 "} 100");
  has(t, N "in_flight_operations" R0 "} 2.0");
  has(t, N "oldest_in_flight_seconds" R0 "} 10.0");
  has(t,
      N
      "operation_duration_seconds_bucket{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",function="
      "\"AllReduce\",size=\"1Mi-16Mi\",le=\"0.001\"} 46");
  has(t,
      N
      "operation_duration_seconds_bucket{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",function="
      "\"AllReduce\",size=\"1Mi-16Mi\",le=\"1.0\"} 46");
  has(t,
      N
      "operation_bus_bandwidth_bytes_per_second_sum{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\","
      "function=\"AllReduce\",size=\"1Mi-16Mi\"} 115000000000.0");
  has(t, N "job_hang{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",verdict=\"certain\"} 1.0");
  has(t, N "job_logs_only{node=\"n1\",job_id=\"78\",attempt=\"0\",user=\"1001\"} 1.0");
  assert_null(strstr(t, N "job_hang{node=\"n1\",job_id=\"78\""));
  assert_null(strstr(t, N "job_logs_only{node=\"n1\",job_id=\"77\""));
  has(t, N "gpu_info{node=\"n1\",gpu=\"3\",uuid=\"GPU-aaaa-bbbb\",pci=\"0000:01:00.0\"} 1.0");
  has(t, N "gpu_info{node=\"n1\",gpu=\"4\",uuid=\"GPU-cccc\",pci=\"0000:02:00.0\"} 1.0");
  has(t, N "gpu_utilization_ratio{node=\"n1\",gpu=\"3\"} 0.98");
  has(t, N "gpu_sm_clock_hertz{node=\"n1\",gpu=\"3\"} 1980000000.0");
  has(t, N "gpu_power_watts{node=\"n1\",gpu=\"3\"} 640.5");
  has(t, N "gpu_energy_joules_total{node=\"n1\",gpu=\"3\"} 12345.678");
  has(t, N "gpu_throttled_seconds_total{node=\"n1\",gpu=\"3\",cause=\"power\"} 2.5");
  has(t, N "gpu_throttled{node=\"n1\",gpu=\"3\",cause=\"thermal\"} 1.0");
  has(t, N "gpu_throttled{node=\"n1\",gpu=\"3\",cause=\"brake\"} 0.0");
  has(t, N "nic_unified_total{node=\"n1\",nic=\"cxi0\",name=\"tx_held\"} 70");
  has(t, N "nic_unified_total{node=\"n1\",nic=\"cxi0\",name=\"timeouts\"} 1");
  has(t, N "nic_transmit_bytes_total{node=\"n1\",nic=\"cxi0\"} 1000");
  has(t, N "nic_link_bytes_per_second{node=\"n1\",nic=\"cxi0\"} 25000000000.0");
  has(t, N "host_cpu_seconds_total{node=\"n1\",mode=\"user\"} 1.5");
  has(t, N "host_level{node=\"n1\",name=\"MaxConn\"} -1.0");
  has(t, N "agent_scrapes_total{node=\"n1\"} 9007199254740993"); /* more than a double holds */
  has(t, N "agent_head_samples_total{node=\"n1\",result=\"lost\"} 2");
  has(t, N "agent_head_clock_skew_seconds{node=\"n1\"} -1.5");
  has(t, N "agent_log_behind_bytes{node=\"n1\",user=\"1001\"} 77.0");
  const char *mean =
      strstr(t,
             "\nnccl_bus_bandwidth_gbs{node=\"n1\",version=\"v5.1\",slurm_job_id=\"77\",gpu=\"GPU3\",comm_"
             "name=\"dp0\",n_nodes=\"2\","
             "nranks=\"16\",collective=\"AllReduce\",message_size=\"8-9MB\",algo_proto=\"Ring_ll\"} ");
  assert_non_null(mean);
  assert_float_equal(strtod(strchr(mean, '}') + 1, NULL), 200, 1e-9); /* of 100 and 400, geometric */
  assert_non_null(
      strstr(t, "p2p_operation=\"Send\",message_size=\"512-513B\",algo_proto=\"Ring_simple\"} 12.5\n"));
  free(t);
  t = text_of(&m, false, false);
  assert_null(strstr(t, "\nnccl_bus_bandwidth"));
  free(t);
  t = text_of(&m, true, false);
  has(t, "# TYPE " N "operations counter");
  has(t, "# UNIT " N "bus_seconds seconds");
  has(t, "# TYPE " N "gpu info");
  has(t,
      N
      "operation_bus_bandwidth_bytes_per_second_bucket{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\","
      "function=\"AllReduce\",size=\"1Mi-16Mi\","
      "le=\"2.5e+10\"} 46");
  assert_string_equal(t + strlen(t) - 7, "\n# EOF\n");
  free(t);
  unmake(&m);
}

static void equal_labels(void **state) {
  (void)state;
  struct made m = {.self = {.node = "n1", .version = "1"}};
  for (uint32_t uid = 1; uid < 3; uid++) { /* two users, one name of a job: two jobs */
    struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 10);
    struct ni_live_batch b = logs(uid, 0, 1, "77");
    b.file.uid = uid;
    b.counts = &c;
    b.n_counts = 1;
    apply(&m.live, &b, 1);
    struct ni_live_process p = process("77", 0, NI_LIFE_ALIVE);
    struct ni_live_open one = {
        .who = c.who, .pid = p.pid, .in_flight = uid, .func = "AllReduce", .since_ns = T(10 * uid)};
    struct ni_live_open o[2] = {one, one}; /* two communicators of one name */
    b = (struct ni_live_batch){
        .kind = NI_LIVE_LOOK, .uid = uid, .processes = &p, .n_processes = 1, .open = o, .n_open = 2};
    apply(&m.live, &b, 50);
  }
  char *t = text_of(&m, false, false);
#undef R0
#define R0 "{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"2\",rank=\"0\",gpu=\"0\",comm=\"dp0\""
  assert_int_equal(m.live.n_jobs, 2);
  has(t, N "operations_total" R0 ",function=\"AllReduce\"} 10");
  has(t, N "in_flight_operations" R0 "} 4.0");
  has(t, N "oldest_in_flight_seconds" R0 "} 30.0");
  has(t, N "process_up{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"2\",rank=\"0\"} 1.0");
  has(t,
      N
      "operation_duration_seconds_count{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"2\",function="
      "\"AllReduce\",size=\"1Mi-16Mi\"} 10");
  has(t,
      N
      "oldest_in_flight_seconds{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1\",rank=\"0\",gpu=\"0\",comm="
      "\"dp0\"} 40.0");
  has(t, N "job_processes{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1\"} 1.0");
  free(t);
  unmake(&m);
}

static void limit(void **state) {
  (void)state;
  struct made m = {0};
  make(&m, "many");
  char *t = text_of(&m, false, false), *left = strstr(t, "\n" N "agent_series_left_out{node=\"n1\"} ");
  unsigned lines = 0;
  for (const char *p = t; *p; p = strchr(p, '\n') + 1)
    lines += *p != '#';
  assert_in_range(lines, NI_METRICS_SERIES_MAX - 20, NI_METRICS_SERIES_MAX);
  assert_non_null(left);
  assert_true(strtod(strchr(left, '}') + 1, NULL) > 15000);
  has(t, N "agent_scrapes_total{node=\"n1\"} 9007199254740993"); /* what matters most is there */
  assert_non_null(strstr(t, "\n" N "in_flight_operations{node=\"n1\",job_id=\"job0\""));
  free(t);
  /* Another user, who came last and has little: all of his is told. */
  struct ni_live_counts c = counts(who("small", "dp0", 3), "AllReduce", 10);
  struct ni_live_batch b = logs(100000, 0, 1, "small");
  b.file.uid = 1002;
  b.counts = &c;
  b.n_counts = 1;
  apply(&m.live, &b, 50);
  t = text_of(&m, false, false);
  has(t,
      N
      "operations_total{node=\"n1\",job_id=\"small\",attempt=\"0\",user=\"1002\",rank=\"3\",gpu=\"3\",comm="
      "\"dp0\",function=\"AllReduce\"} 10");
  has(t,
      N
      "operation_bus_bandwidth_bytes_per_second_count{node=\"n1\",job_id=\"small\",attempt=\"0\",user="
      "\"1002\",function=\"AllReduce\",size=\"1Mi-16Mi\"} 10");
  free(t);
  unmake(&m);
}

static void dead(void **state) {
  (void)state;
  struct made m = {.self = {.node = "n1", .version = "1"}};
  struct ni_live_process p[6] = {process("77", 0, NI_LIFE_DEAD),   process("77", 1, NI_LIFE_ALIVE),
                                 process("77", -1, NI_LIFE_ALIVE), process("77", -1, NI_LIFE_DEAD),
                                 process("77", 5, NI_LIFE_DEAD),   process("77", 5, NI_LIFE_ALIVE)};
  struct ni_live_open o[2] = {{.who = who("77", "dp0", 0), .pid = 100, .in_flight = 1},
                              {.who = who("77", "dp0", 1), .pid = 101, .in_flight = 1}};
  struct ni_live_batch b = {
      .kind = NI_LIVE_LOOK, .uid = 1001, .processes = p, .n_processes = 6, .open = o, .n_open = 2};
  p[5].start_ns = T(1); /* begun anew, where the one before had died */
  apply(&m.live, &b, 2);
  char *t = text_of(&m, false, false);
  has(t, N "process_up{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"0\"} 0.0");
  /* one of two, of which no launcher tells */
  has(t, N "process_up{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"\"} 0.0");
  has(t, N "process_up{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"5\"} 1.0");
  assert_null(
      strstr(t, N "in_flight_operations{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"0\""));
  assert_non_null(
      strstr(t, N "in_flight_operations{node=\"n1\",job_id=\"77\",attempt=\"0\",user=\"1001\",rank=\"1\""));
  free(t);
  unmake(&m);
}

/*
 * Rows of ranks: of which operation the number tells whom all wait for; how late, of the last window; no
 * sample yet.
 */
static void now(void **state) {
  (void)state;
  struct made m = {.self = {.node = "n1", .version = "1"}};
  struct ni_live_process p[2] = {process("77", 0, NI_LIFE_ALIVE), process("77", 1, NI_LIFE_ALIVE)};
  struct ni_live_open o[3] = {
      {.pid = 100, .in_flight = 3, .stuck = 2, .func = "AllReduce", .rec_sn = 7, .since_ns = T(1)},
      {.pid = 101, .in_flight = 1, .func = "Send", .kind = NI_KIND_P2P, .rec_sn = 8},
      {.pid = 101, .rec_sn = 9}};
  struct ni_live_batch look = {
      .kind = NI_LIVE_LOOK, .uid = 1001, .processes = p, .n_processes = 2, .open = o, .n_open = 3};
  struct ni_live_counts c[2] = {counts(who("77", "dp0", 0), "AllReduce", 10),
                                counts(who("77", "dp0", 0), "SendRecv", 10)};
  struct ni_live_batch b = logs(1, 0, 1, "77");
  char *text = NULL;
  size_t n;
  for (int i = 0; i < 3; i++)
    o[i].who = who("77", i == 2 ? "tp0" : "dp0", i > 0);
  b.counts = c;
  b.n_counts = 2;
  c[1].who.gpu = -1; /* what is not known yet makes it no other rank */
  apply(&m.live, &b, 0);
  ni_live_tick(&m.live, 1 * S, S);
  ni_live_tick(&m.live, 6 * S, 600 * S);
  b.file.from = 1;
  b.file.to = 2;
  c[0].late_ns = 1 * S;
  c[1].late_ns = S / 2;
  apply(&m.live, &b, 7);
  apply(&m.live, &look, 8);
  ni_live_tick(&m.live, 12 * S, 600 * S);
  sampled(&m.running, "cxi0", 5);
  struct ni_metrics_in in = {
      .live = &m.live, .running = &m.running, .self = &m.self, .unix_ns = T(12), .mono_ns = 12 * S};
  FILE *f = open_memstream(&text, &n);
  ni_now_json(f, &in);
  fclose(f);
  const char *const wanted[] = {"\"in_flight\":3,\"stuck\":2,\"function\":\"AllReduce\"",
                                "\"call\":7,",
                                "\"late_share\":0.25}",
                                "\"uid\":1001",
                                "\"function\":\"Send\",\"sn\":0,\"call\":null",
                                "\"function\":null,\"sn\":0,\"call\":null",
                                "\"rx_bytes_s\":null"};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (!strstr(text, wanted[i]))
      fail_msg("%s is not in %s", wanted[i], text);
  free(text);
  /* Records that came behind time: more waiting than the window is long is all of it. */
  b.file.from = 2;
  b.file.to = 3;
  c[0].late_ns = 50 * S;
  apply(&m.live, &b, 13);
  ni_live_tick(&m.live, 18 * S, 600 * S);
  in.mono_ns = 18 * S;
  f = open_memstream(&text, &n);
  ni_now_json(f, &in);
  fclose(f);
  if (!strstr(text, "\"late_share\":1}"))
    fail_msg("no share of 1 in %s", text);
  free(text);
  unmake(&m);
}

static void accepts(void **state) {
  (void)state;
  static const struct {
    const char *accept;
    bool open;
  } of[] = {{NULL, false},
            {"", false},
            {"*/*", false},
            {"text/plain", false},
            {"application/openmetrics-text", true},
            {"application/openmetrics-text; version=1.0.0; charset=utf-8", true},
            {"application/openmetrics-text;version=1.0.0;q=0.8,application/"
             "openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
             true},
            {"application/openmetrics-text;q=0.4,text/plain;q=0.5", false},
            {"text/plain;q=0.5, Application/OpenMetrics-Text ; Q=0.6", true},
            {"application/openmetrics-text;q=0", false},
            {"application/openmetrics-text;q=0.2,*/*;q=0.3", false},
            {"application/openmetrics-text;q=0.2,text/plain;q=0.1,*/*;q=0.3", true},
            {"application/openmetrics-text;version=0.0.1", false},
            {"application/openmetrics-textual", false},
            {"application/openmetrics-text;q=", false},
            {";;;,,,q=q=;,", false},
            {"application/openmetrics-text;version=", true}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++)
    if (ni_metrics_wants_open(of[i].accept) != of[i].open)
      fail_msg("%s", of[i].accept);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--print") == 0) {
    struct made m = {0};
    make(&m, argv[2]);
    char *t = text_of(&m, strcmp(argv[3], "open") == 0, strcmp(argv[3], "nvidia") == 0);
    fputs(t, stdout);
    free(t);
    unmake(&m);
    return 0;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(values),  cmocka_unit_test(equal_labels),
                                     cmocka_unit_test(limit),   cmocka_unit_test(dead),
                                     cmocka_unit_test(accepts), cmocka_unit_test(now)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
