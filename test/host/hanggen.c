/*
 * Logs, or black boxes, of an invented job of N ranks that hangs: for the speed of `nccl-inspector hang`, and
 * for verdicts on jobs larger than the simulator can run.
 *
 *   hanggen DIR RANKS logs|boxes [records per rank]
 *
 * Each rank is a process, eight on a host; it is in `world` and in the communicator of its host. Rank 17
 * never called the newest collective of the world, rank 4 of the last host neither, everybody else is inside.
 * Logs end with stuck lines and, of the two that are missing, with accounts that say nothing is in flight; of
 * both, times go on for 400 s.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test/unit/exporter/synthetic_box.h"

#define T0 UINT64_C(1790000000000000000)
#define S UINT64_C(1000000000)
#define CALLED (T0 + 100 * S) /* when the operation that hangs was called */
#define NOW (CALLED + 400 * S)

static bool missing(int rank, int n) { return rank == 17 || rank == n - 4; }

static void head(FILE *f, int rank, int n, uint64_t hash, const char *name, int comm_rank, int comm_ranks,
                 uint64_t ts_ns) {
  fprintf(
      f,
      "{\"header\":{\"id\":\"0x%" PRIx64
      "\"%s%s%s,\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":"
      "\"v4.0\",\"git_rev\":\"g\",\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":"
      "%" PRIu64
      ",\"hostname\":\"node-%d\",\"pid\":%d,"
      "\"producer\":\"nccl-inspector-c t\"},",
      hash, name ? ",\"comm_name\":\"" : "", name ? name : "", name ? "\"" : "", comm_rank, comm_ranks, n / 8,
      ts_ns / 1000, rank / 8, 1000 + rank);
}

static void record(FILE *f, const char *func, int sn, uint64_t rec, uint64_t at) {
  fprintf(f,
          "\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%d,\"coll_msg_size_bytes\":4194304,\"coll_exec_time_"
          "us\":59,\"coll_timing_source\":"
          "\"kernel_gpu\",\"coll_algobw_gbs\":17.735501,\"coll_busbw_gbs\":31.037127,\"coll_algo\":\"RING\","
          "\"coll_proto\":\"SIMPLE\",\"coll_datatype\":"
          "\"ncclBfloat16\",\"coll_root\":0,\"coll_nchannels\":8,\"coll_exec_time_ns\":59123,\"coll_enqueue_"
          "ns\":%" PRIu64 ",\"rec_sn\":%" PRIu64 ",\"nccl_tests_size_bytes\":4194304}}\n",
          func, sn, at, rec);
}

static void stats(FILE *f, int started, int in_flight) {
  fprintf(f,
          "\"dump_stats\":{\"coll_records\":%d,\"final\":false,\"coll\":{\"started\":%d,\"written\":%d,"
          "\"filtered_by\":{},\"dropped_by\":{},"
          "\"incomplete\":0,\"late\":0,\"in_flight\":%d,\"timing_fallback_by\":{}},\"p2p\":{\"started\":0,"
          "\"written\":0,\"incomplete\":0,\"in_flight\":0}}}\n",
          started - in_flight, started, started - in_flight, in_flight);
}

static void write_log(const char *dir, int rank, int n, int records) {
  char path[512], host[32];
  snprintf(path, sizeof path, "%s/node-%d-pid%d-1790000000.jsonl", dir, rank / 8, 1000 + rank);
  snprintf(host, sizeof host, "tp%d", rank / 8);
  FILE *f = fopen(path, "we");
  if (!f) {
    perror(path);
    exit(1);
  }
  head(f, rank, n, 0, NULL, rank, n, T0);
  fprintf(f,
          "\"process\":{\"start_ns\":%" PRIu64
          ",\"boot_id\":\"b\",\"exe\":\"python3\",\"rank\":%d,\"local_rank\":%d,\"world_size\":%d,\"env\":{},"
          "\"nccl_version\":23007,\"interface\":\"v6\",\"settings\":{}}}\n",
          T0, rank, rank % 8, n);
  for (int i = 0; i < records; i++) {
    uint64_t at = T0 + 90 * S * (uint64_t)i / (uint64_t)records;
    bool world = i % 2;
    head(f, rank, n, world ? 0xabc : 0x1000u + (unsigned)rank / 8, world ? "world" : host,
         world ? rank : rank % 8, world ? n : 8, T0 + 95 * S);
    record(f, "AllReduce", i / 2, (uint64_t)i / 2, at);
  }
  bool gone = missing(rank, n);
  if (!gone) {
    head(f, rank, n, 0xabc, "world", rank, n, NOW - 90 * S);
    fprintf(f,
            "\"stuck\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":%d,\"rec_sn\":%d,\"msg_size_bytes\":"
            "4194304,\"channels_expected\":8,"
            "\"channels_started\":8,\"channels_stopped\":0,\"enqueue_ns\":%" PRIu64
            ",\"age_ms\":310000,\"why\":\"stuck\",\"state\":\"kernel\",\"datatype\":"
            "\"ncclBfloat16\",\"root\":0,\"channels_open\":\"0xff\"}}\n",
            records / 2, records / 2, CALLED + (uint64_t)rank * 1000);
  }
  head(f, rank, n, 0xabc, "world", rank, n, NOW);
  stats(f, records / 2 + !gone, !gone);
  fclose(f);
}

static void write_box(const char *dir, int rank, int n) {
  char host[32], path[512];
  snprintf(host, sizeof host, "node-%d", rank / 8);
  snprintf(path, sizeof path, "%s/nccl-inspector-%s-pid%d-0123456789abcdef.box", dir, host, 1000 + rank);
  struct sbox b = sbox_new(host, 1000 + rank, rank, n, NOW);
  uint32_t world = sbox_comm(&b, "world", 0xabc, rank, n, T0),
           tp = sbox_comm(&b, "tp", 0x1000u + (unsigned)rank / 8, rank % 8, 8, T0);
  for (unsigned i = 0; i < 40; i++) {
    struct sbox_op op = {.flags = 0,
                         .want = 8,
                         .started = 8,
                         .stopped = 8,
                         .sn = i,
                         .rec_sn = i,
                         .count = 1048576,
                         .start_ns = T0 + i * S,
                         .first_ns = T0 + i * S,
                         .done_ns = T0 + i * S + 60000,
                         .func = "AllReduce"};
    (void)sbox_op(&b, world, &op);
    (void)sbox_op(&b, tp, &op);
  }
  struct sbox_op op = {.flags = 3,
                       .want = 8,
                       .started = 8,
                       .stopped = 0,
                       .sn = 40,
                       .rec_sn = 40,
                       .count = 1048576,
                       .start_ns = CALLED + (unsigned)rank * 1000,
                       .first_ns = CALLED + S,
                       .func = "AllReduce"};
  if (!missing(rank, n))
    (void)sbox_op(&b, world, &op);
  if (sbox_write(&b, path) != 0) {
    perror(path);
    exit(1);
  }
  sbox_free(&b);
}

int main(int argc, char **argv) {
  int n = argc > 2 ? atoi(argv[2]) : 0, records = argc > 4 ? atoi(argv[4]) : 200;
  bool boxes = argc > 3 && strcmp(argv[3], "boxes") == 0;
  if (n < 32 || n > 65536 || n % 8 || records < 2 || (!boxes && strcmp(argv[3], "logs") != 0)) {
    fprintf(stderr, "usage: hanggen DIR RANKS logs|boxes [records per rank]; RANKS 32 to 65536, by eights\n");
    return 64;
  }
  (void)mkdir(argv[1], 0777);
  for (int r = 0; r < n; r++) {
    if (boxes)
      write_box(argv[1], r, n);
    else
      write_log(argv[1], r, n, records);
  }
  return 0;
}
