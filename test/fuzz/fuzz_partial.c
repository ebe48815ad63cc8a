/*
 * libFuzzer: bytes as changes of a sound partial result, as it comes from another process, so without
 * checksums. What is taken must be whole enough to be stored again, to the same bytes when it is loaded once
 * more, and to be judged and joined; what is refused must be refused with a sentence.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/cmds/summarize.h"
#include "exporter/model/ledger/judge.h"
#include "exporter/model/sums/blame/judge.h"
#include "exporter/model/sums/build.h"
#include "exporter/model/sums/figures.h"
#include "exporter/model/sums/join/p2p_pairs.h"
#include "exporter/model/sums/partial/partial.h"
#include "exporter/model/sums/reading/plan.h"
#include "exporter/model/sums/reading/read.h"
#include "exporter/model/sums/rollups.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

/* A partial in memory. */
struct part {
  enum ni_section id[64];
  uint8_t *bytes[64];
  size_t n[64], sections, at;
};

static int put(void *arg, enum ni_section id, const void *bytes, size_t n) {
  struct part *p = arg;
  need(p->sections < 64 && (p->bytes[p->sections] = calloc(1, n + 64)) != NULL);
  if (n)
    memcpy(p->bytes[p->sections], bytes, n);
  p->id[p->sections] = id;
  p->n[p->sections++] = n;
  return 0;
}

static int get(void *arg, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n) {
  struct part *p = arg;
  if (p->at == p->sections) {
    ni_run_fail(r, -EINVAL, "cut");
    return -EINVAL;
  }
  *id = p->id[p->at];
  *bytes = p->bytes[p->at];
  *n = p->n[p->at++];
  return 0;
}

static void part_free(struct part *p) {
  for (size_t i = 0; i < p->sections; i++)
    free(p->bytes[i]);
  p->sections = p->at = 0;
}

static struct part good;

/* Two ranks of a job: operations, messages, a mark, a roll-up, one that hangs, a loss, a bad line. */
static void write_log(const char *path, int rank) {
  FILE *f = fopen(path, "w");
  need(f != NULL);
#define LINE \
  "{\"header\":{\"id\":\"%s\",\"comm_name\":\"dp\",\"rank\":%d,\"n_ranks\":2,\"nnodes\":2},\"metadata\":{" \
  "\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"x\",\"rec_mechanism\":\"m\",\"dump_timestamp_" \
  "us\":1790000000000000," \
  "\"hostname\":\"h%d\",\"pid\":7,\"producer\":\"p\"},"
  fprintf(f,
          LINE
          "\"process\":{\"start_ns\":1790000000000000000,\"boot_id\":\"b\",\"exe\":\"p\",\"rank\":%d,\"local_"
          "rank\":0,\"world_size\":2,"
          "\"env\":{},\"nccl_version\":23007,\"interface\":\"v4\",\"settings\":{}}}\n",
          "0x0", rank, rank, rank);
  for (int i = 0; i < 60; i++)
    fprintf(
        f,
        LINE
        "\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%d,\"coll_msg_size_bytes\":%d,\"coll_exec_time_us\":%d,"
        "\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":1.0,\"coll_busbw_gbs\":1.5,\"coll_algo\":"
        "\"RING\",\"coll_proto\":\"LL\","
        "\"coll_exec_time_ns\":%d,\"coll_enqueue_ns\":%lld,\"coll_gpu_start_delta_ns\":10,\"rec_sn\":%d}}\n",
        "0x10", rank, rank, i % 3 ? "AllReduce" : "Broadcast", i, 1024 << i % 3, 20 + i % 7, 20000 + i,
        1790000000000000000LL + i * 100000LL, i);
  for (int i = 0; i < 8; i++)
    fprintf(f,
            LINE
            "\"p2p_perf\":{\"p2p\":\"%s\",\"p2p_sn\":%d,\"p2p_msg_size_bytes\":512,\"p2p_peer\":%d,\"p2p_"
            "exec_time_us\":9,"
            "\"p2p_timing_source\":\"kernel_gpu\",\"p2p_algobw_gbs\":1.0,\"p2p_busbw_gbs\":1.0}}\n",
            "0x10", rank, rank, rank ? "Recv" : "Send", i, !rank);
  fprintf(f,
          LINE
          "\"control\":{\"source\":\"file\",\"file\":\"c\",\"line\":1,\"command\":\"mark x\",\"mark\":\"step "
          "1\",\"result\":\"done\","
          "\"why\":null,\"events\":\"coll\",\"verbose\":false,\"sample\":1,\"ns\":1790000000000100000}}\n",
          "0x0", rank, rank);
  fputs("{\"no\n", f);
  need(fclose(f) == 0);
}

static void begin(struct ni_run *r) {
  need(ni_summarize_init(r) == 0);
  r->opt.no_parquet = true;
  r->opt.quiet = true;
  r->opt.jobs = 1;
  r->opt.memory_bytes = 16 << 20;
  r->progress.mode = NI_PROGRESS_NONE;
  ni_summarize_store(r, NULL);
}

static int store(struct ni_run *r, struct part *p) {
  return ni_partial_store(r, &(struct ni_section_to){p, put});
}

static void fill(void) {
  const char *folder = fuzz_dir("partial");
  char path[300];
  struct ni_run r;
  begin(&r);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/h%d-pid7.jsonl", folder, i);
    write_log(path, i);
  }
  need(ni_inputs_add(&r.opt.inputs, folder) == 0 &&
       ni_inputs_find(&r.opt.inputs, "fuzz", &r.files, &r.runs) == 0 && r.files.n == 2);
  need(ni_shards_plan(&r, 1, 1) == 0 && ni_summarize_read(&r) == 0 && r.tally.records == 136);
  need(store(&r, &good) == 0 && good.sections >= 7);
  ni_summarize_free(&r);
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/h%d-pid7.jsonl", folder, i);
    unlink(path);
  }
  rmdir(folder);
}

/* Which section, where in it, what. */
static void change(struct part *p, const uint8_t *data, size_t size) {
  for (size_t i = 0; i < good.sections; i++)
    put(p, good.id[i], good.bytes[i], good.n[i]);
  for (; size >= 4; data += 4, size -= 4) {
    size_t k = data[0] & 15;
    if (k >= p->sections)
      continue;
    size_t at = ((size_t)data[1] | (size_t)(data[0] >> 4) << 8) % (p->n[k] + 1);
    if (data[3] & 1 && at < p->n[k])
      p->bytes[k][at] = data[2];
    else if (data[3] & 2 && at < p->n[k])
      memmove(p->bytes[k] + at, p->bytes[k] + at + 1, p->n[k] - at - 1), p->n[k]--;
    else if (data[3] == 4)
      p->n[k] = at;
    else if (data[3] == 8)
      p->id[k] = (enum ni_section)data[2];
  }
}

static int load(struct ni_run *r, struct part *p) {
  const struct ni_section_from from = {p, "the part", get};
  uint32_t *shard = NULL;
  size_t n = 0;
  p->at = 0;
  int e = ni_partial_load_plan(r, &from, "the part", &shard, &n);
  if (e == 0)
    e = ni_plan_reading(r);
  if (e == 0)
    e = ni_partial_load(r, &from, shard, n);
  free(shard);
  need(e == 0 || *r->error_text);
  return e;
}

static void judge(struct ni_run *r) {
  struct ni_summary s = {0};
  struct ni_blame blame = {0};
  int e = ni_partial_settle(r, &r->ledger);
  if (e == 0)
    e = ni_build_begin(r, &s);
  if (e == 0)
    e = ni_pairs_match(r, &s);
  if (e == 0)
    e = ni_judge_all(r, &s, &blame);
  if (e == 0)
    e = ni_figures_sum(r, &s, NULL);
  ni_blame_free(&blame);
  if (e == 0)
    e = ni_build_end(r, &s);
  if (e == 0)
    e = ni_rollups_build(r, &s);
  need(e == 0 || e == -ENOMEM || *r->error_text);
  ni_summary_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct part given = {0}, first = {0}, second = {0};
  struct ni_run r;
  if (!good.sections)
    fill();
  change(&given, data, size);
  begin(&r);
  if (load(&r, &given) == 0) {
    need(store(&r, &first) == 0);
    judge(&r);
    ni_summarize_free(&r);
    begin(&r);
    need(load(&r, &first) == 0 && store(&r, &second) == 0);
    need(first.sections == second.sections);
    for (size_t i = 0; i < first.sections; i++)
      need(first.id[i] == second.id[i] && first.n[i] == second.n[i] &&
           memcmp(first.bytes[i], second.bytes[i], first.n[i]) == 0);
  }
  ni_summarize_free(&r);
  part_free(&given);
  part_free(&first);
  part_free(&second);
  return 0;
}
