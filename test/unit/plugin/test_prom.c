/* NVIDIA's Prometheus mode: the files of two windows, to the byte, and that they go. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/slots/state.h"
#include "plugin/write/prom.h"

static char dir[] = "/tmp/ni-test-prom-XXXXXX";

static int setup(void **state) {
  (void)state;
  ni_g.config.prom_dump = 1;
  ni_g.interface = 5;
  return mkdtemp(dir) ? 0 : -1;
}
static int teardown(void **state) {
  (void)state;
  return rmdir(dir); /* fails when something was left */
}

static struct ni_writer *new_writer(void) {
  struct ni_writer *w = calloc(1, sizeof *w);
  assert_non_null(w);
  strcpy(w->hostname, "node-a");
  strcpy(w->job.job_id, "4711");
  w->now_ms = 5000;
  w->origin.pid = 99;
  return w;
}

static struct ni_comm_writer *new_comm(const char *name, const char *uuid, int index) {
  struct ni_comm_writer *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->ident = (struct ni_ident){.comm_name = name, .n_ranks = 16, .nnodes = 2};
  strcpy(s->gpu.uuid, uuid);
  s->gpu.index = index;
  return s;
}

static struct ni_record coll(uint64_t bytes, uint64_t ns, double busbw) {
  return (struct ni_record){.kind = NI_KIND_COLL,
                            .has = NI_HAS_EXEC_NS | NI_HAS_BUSBW,
                            .func = "AllReduce",
                            .algo = "RING",
                            .proto = "SIMPLE",
                            .msg_bytes = bytes,
                            .exec_ns = ns,
                            .busbw_gbs = busbw};
}

static char *text_of(const char *name) {
  static char text[1 << 21];
  char path[256];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "r");
  if (!f)
    return NULL;
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

static unsigned files(void) {
  unsigned n = 0;
  DIR *d = opendir(dir);
  for (struct dirent *e; (e = readdir(d));)
    n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
  closedir(d);
  return n;
}

#define FILE_OF_GPU "nccl_inspector_metrics_GPU-1b.prom"
#define HEAD(name, help) "# HELP " name " " help "\n# TYPE " name " gauge\n"
#define BUS \
  HEAD("nccl_bus_bandwidth_gbs", \
       "Geometric mean of the bus bandwidth of collectives in the last window, in 1e9 bytes per second.")
#define TOOK \
  HEAD("nccl_collective_exec_time_microseconds", "Mean duration of collectives in the last window.")
#define P2P_BUS \
  HEAD("nccl_p2p_bus_bandwidth_gbs", \
       "Geometric mean of the bandwidth of Sends and Recvs in the last window, in 1e9 bytes per second.")
#define P2P_TOOK \
  HEAD("nccl_p2p_exec_time_microseconds", "Mean duration of Sends and Recvs in the last window.")
#define WHO \
  "{version=\"v5.1\",slurm_job_id=\"4711\",node=\"node-a\",gpu=\"GPU3\",comm_name=\"dp " \
  "\\\"0\\\"?\",n_nodes=\"2\",nranks=\"16\","

static void windows(void **state) {
  (void)state;
  struct ni_writer *w = new_writer();
  struct ni_comm_writer *s = new_comm("dp \"0\"\n", "GPU-1b", 3);
  struct ni_record r = coll(1536, 2000, 4);
  ni_prom_add(w, s, &r);
  r = coll(2047, 5000, 9); /* the same class; 6 is the geometric mean of 4 and 9 */
  ni_prom_add(w, s, &r);
  r = (struct ni_record){.kind = NI_KIND_P2P,
                         .has = NI_HAS_EXEC_NS | NI_HAS_BUSBW,
                         .func = "Send",
                         .msg_bytes = 3 << 20,
                         .exec_ns = 1500500,
                         .busbw_gbs = 2};
  ni_prom_add(w, s, &r);
  r.has = NI_HAS_EXEC_NS;
  r.msg_bytes = 0; /* without a bandwidth there is none */
  ni_prom_add(w, s, &r);
  w->now_ms += NI_PROM_WINDOW_MS - 1;
  ni_prom_tick(w, dir);
  assert_int_equal(files(), 0);
  w->now_ms++;
  ni_prom_tick(w, dir);
  assert_int_equal(files(), 1);
  const char *text = text_of(FILE_OF_GPU);
  assert_non_null(text);
  assert_non_null(strstr(
      text,
      BUS "nccl_bus_bandwidth_gbs" WHO
          "collective=\"AllReduce\",message_size=\"1-2KB\",algo_proto=\"RING_SIMPLE\"} 6.000000\n" TOOK
          "nccl_collective_exec_time_microseconds" WHO
          "collective=\"AllReduce\",message_size=\"1-2KB\",algo_proto=\"RING_SIMPLE\"} 3.500000\n" P2P_BUS
          "nccl_p2p_bus_bandwidth_gbs" WHO
          "p2p_operation=\"Send\",message_size=\"3-4MB\"} 2.000000\n" P2P_TOOK));
  assert_non_null(strstr(text,
                         "nccl_p2p_exec_time_microseconds" WHO
                         "p2p_operation=\"Send\",message_size=\"3-4MB\"} 1500.500000\n"));
  assert_non_null(strstr(text,
                         "nccl_p2p_exec_time_microseconds" WHO
                         "p2p_operation=\"Send\",message_size=\"0B\"} 1500.500000\n"));
  struct stat st;
  char path[256];
  snprintf(path, sizeof path, "%s/%s", dir, FILE_OF_GPU);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0644);
  /* Nothing in the next window: no old value stays. */
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  assert_string_equal(text_of(FILE_OF_GPU), BUS TOOK P2P_BUS P2P_TOOK);
  ni_prom_end(w, dir);
  assert_int_equal(files(), 0);
  free(s);
  free(w);
}

static void two_gpus_and_none(void **state) {
  (void)state;
  struct ni_writer *w = new_writer();
  struct ni_comm_writer *a = new_comm(NULL, "GPU-a", 0), *b = new_comm("", "", -1);
  struct ni_record r = coll(8, 1000, 1);
  ni_prom_add(w, a, &r);
  ni_prom_add(w, b, &r);
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  assert_non_null(strstr(text_of("nccl_inspector_metrics_GPU-a.prom"), "gpu=\"GPU0\",comm_name=\"unknown\""));
  assert_non_null(
      strstr(text_of("nccl_inspector_metrics_node-a-pid99.prom"), "gpu=\"unknown\",comm_name=\"unknown\""));
  ni_prom_end(w, dir);
  assert_int_equal(files(), 0);
  free(a);
  free(b);
  free(w);
}

/*
 * Many alike, so that a product of bandwidths would not fit into a double; and more series than there is room
 * for.
 */
static void many(void **state) {
  (void)state;
  struct ni_writer *w = new_writer();
  struct ni_comm_writer *s = new_comm("c", "GPU-1b", 0);
  struct ni_record r = coll(1 << 20, 1000, 3e5);
  for (int i = 0; i < 5000; i++)
    ni_prom_add(w, s, &r);
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  assert_non_null(strstr(text_of(FILE_OF_GPU), "} 300000.000000\n"));
  for (uint32_t i = 0; i < NI_PROM_SERIES + 500; i++) {
    s->ident.n_ranks = (int32_t)i + 1;
    ni_prom_add(w, s, &r);
  }
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  unsigned lines = 0;
  for (const char *t = text_of(FILE_OF_GPU); (t = strstr(t, "nccl_bus_bandwidth_gbs{")); t++)
    lines++;
  assert_int_equal(lines, NI_PROM_SERIES);
  ni_prom_end(w, dir);
  free(s);
  free(w);
}

static void totals_are(unsigned coll, unsigned coll_dropped, unsigned p2p, unsigned p2p_dropped) {
  static const char *const names[] = {"nccl_collectives_total", "nccl_collectives_dropped_total",
                                      "nccl_p2p_total", "nccl_p2p_dropped_total"};
  const unsigned want[] = {coll, coll_dropped, p2p, p2p_dropped};
  for (int i = 0; i < 4; i++) {
    char line[256];
    snprintf(
        line, sizeof line,
        "# TYPE %s counter\n%s{version=\"v5.1\",slurm_job_id=\"4711\",node=\"node-a\",gpu=\"GPU3\"} %u\n",
        names[i], names[i], want[i]);
    if (!strstr(text_of(FILE_OF_GPU), line))
      fail_msg("no %s in\n%s", line, text_of(FILE_OF_GPU));
  }
}

/* NCCL_INSPECTOR_PROM_DUMP_STATS: counters of the process, which stay when windows and communicators end. */
static void totals(void **state) {
  (void)state;
  struct ni_writer *w = new_writer();
  struct ni_comm_writer *s[2] = {new_comm("a", "GPU-1b", 3), new_comm("b", "GPU-1b", 3)};
  static struct ni_account account[2][NI_KIND_COUNT];
  for (int i = 0; i < 2; i++) {
    s[i]->comm = calloc(1, sizeof *s[i]->comm);
    for (int kind = 0; kind < NI_KIND_COUNT; kind++)
      s[i]->kind[kind].account = &account[i][kind];
  }
  ni_g.config.prom_dump_stats = 1;
  w->comms = s[0];
  s[0]->next = s[1];
  struct ni_record r = coll(8, 1000, 1);
  for (int i = 0; i < 3; i++)
    ni_prom_add(w, s[i % 2], &r);
  r.kind = NI_KIND_P2P;
  ni_prom_add(w, s[0], &r);
  s[0]->comm->kind[NI_KIND_COLL].dropped[NI_DROP_POOL_FULL] = 4;
  s[1]->comm->kind[NI_KIND_COLL].dropped[NI_DROP_POOL_FULL] = 1;
  account[1][NI_KIND_P2P].lost_write = 2;
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  totals_are(3 + 5, 5, 1 + 2, 2);
  /* One communicator goes, with a loss that no window has seen. */
  s[1]->comm->kind[NI_KIND_COLL].dropped[NI_DROP_POOL_FULL] = 11;
  ni_prom_take_dropped(w, s[1]);
  s[0]->next = NULL;
  r.kind = NI_KIND_COLL;
  ni_prom_add(w, s[0], &r);
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  totals_are(4 + 15, 15, 1 + 2, 2);
  ni_g.config.prom_dump_stats = 0;
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  assert_null(strstr(text_of(FILE_OF_GPU), "_total"));
  ni_prom_end(w, dir);
  for (int i = 0; i < 2; i++) {
    free(s[i]->comm);
    free(s[i]);
  }
  free(w);
}

/* A folder that is not there: nothing is left behind, and the next window tries again. */
static void no_folder(void **state) {
  (void)state;
  struct ni_writer *w = new_writer();
  struct ni_comm_writer *s = new_comm("c", "GPU-1b", 0);
  struct ni_record r = coll(8, 1000, 1);
  ni_prom_add(w, s, &r);
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, "/nonexistent/folder");
  ni_prom_add(w, s, &r);
  w->now_ms += NI_PROM_WINDOW_MS;
  ni_prom_tick(w, dir);
  assert_non_null(strstr(text_of(FILE_OF_GPU), "nccl_bus_bandwidth_gbs{"));
  ni_prom_end(w, dir);
  free(s);
  free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(two_gpus_and_none),
                                     cmocka_unit_test(many), cmocka_unit_test(no_folder),
                                     cmocka_unit_test(totals)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
