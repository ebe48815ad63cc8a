/*
 * libFuzzer: bytes as changes of a sound map, account, sums, standing of hang and index file, whose checksums
 * fit. What is taken must be whole enough to be joined, merged, judged and put again; what is refused must
 * leave nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cmds/hang/say.h"
#include "exporter/cmds/summarize.h"
#include "exporter/index/map_wire.h"
#include "exporter/index/shelf.h"
#include "exporter/input/scan.h"
#include "exporter/model/hang/standing.h"
#include "exporter/model/hang/settle.h"
#include "exporter/model/hang/verdict.h"
#include "exporter/model/ledger/judge.h"
#include "exporter/model/ledger/pack.h"
#include "exporter/model/ledger/read.h"
#include "exporter/model/ledger/take.h"
#include "exporter/model/sums/approx/log_sums.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static struct ni_wire map, account, standing, sums;
static uint8_t *shelf;
static size_t n_shelf;
static struct ni_file file = {.path = (char *)(uintptr_t)"/logs/a.log", .run = 1};

/* A log of several granules, as a process and a communicator would write it, with a bad line and a loss. */
static void write_log(const char *path) {
  FILE *f = fopen(path, "w");
  need(f != NULL);
  for (unsigned i = 0; i < 2000; i++) {
    fprintf(f,
            "{\"header\":{\"id\":\"0x%x\",\"comm_name\":\"dp\",\"rank\":0,\"n_ranks\":2,\"nnodes\":1},"
            "\"metadata\":{"
            "\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"x\",\"rec_mechanism\":\"m\",\"dump_"
            "timestamp_us\":%u,"
            "\"hostname\":\"h\",\"pid\":7%s},\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%u,\"coll_msg_size_"
            "bytes\":%u,"
            "\"coll_exec_time_us\":9,\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":1.0,\"coll_"
            "busbw_gbs\":1.0}}\n",
            16 + i % 3, 1000 + i, i % 2 ? ",\"producer\":\"p\"" : "", i % 5 ? "AllReduce" : "Broadcast", i,
            1u << i % 20);
    if (i == 9)
      fputs("{\"no\n", f);
  }
  need(fclose(f) == 0);
}

/* Of a log of one process, in two communicators: one goes on, one hangs. */
static void stand(void) {
  struct ni_hang_model m = {0};
  struct ni_hang_reading r = {
      .m = &m, .process = ni_hang_process_of(&m, "h", 7, 5), .member = 1, .recovered = true};
  m.process[0].exe = strdup("python3");
  m.process[0].life = NI_HANG_ALIVE;
  for (int32_t k = 0; k < 2; k++) {
    const struct ni_ident id = {
        .comm_hash = 16 + (uint64_t)k, .comm_name = "dp", .rank = k, .n_ranks = 2, .nnodes = 1};
    const int64_t at = ni_hang_member_of(&m, 0, &id, 9);
    struct ni_hang_member *x = r.x = m.member[at];
    struct ni_hang_op op = {.kind = NI_KIND_COLL,
                            .func = (uint16_t)ni_hang_name(&m, "AllReduce"),
                            .bytes = 4096,
                            .enqueue_ns = 1000000,
                            .datatype = (uint16_t)ni_hang_name(&m, "ncclFloat"),
                            .root = -1,
                            .want = -1,
                            .started = -1,
                            .stopped = -1,
                            .net_peer = -1,
                            .net_channel = -1};
    for (op.sn = 0; op.sn < 20; op.sn++, op.enqueue_ns += 100)
      op.rec_sn = op.sn + op.sn / 5, need(ni_hang_finished(x, &op) == 0);
    for (uint8_t kind = 0; kind < NI_KIND_COUNT; kind++) {
      op.kind = kind;
      op.rec_sn = 40u + kind;
      op.state = NI_HANG_KERNEL;
      op.want = op.started = 8;
      op.root = 1 - k;
      need(ni_hang_in_flight(x, &op) == 0);
    }
    x->log_ns = x->active_ns = op.enqueue_ns + 400000000000;
    m.process[0].alive_ns = x->log_ns;
  }
  standing = ni_hang_standing_bytes(&r);
  need(!standing.bad);
  ni_hang_model_free(&m);
}

/* As summary --approximate reads the log. */
static void add_up(char *path) {
  struct ni_run r;
  need(ni_summarize_init(&r) == 0 && ni_discover(&r.files, &path, 1) == 0 && r.files.n == 1);
  r.opt.approximate = r.opt.no_parquet = r.opt.no_csv = r.opt.quiet = true;
  r.opt.jobs = 1;
  r.opt.memory_bytes = 16 << 20;
  ni_summarize_store(&r, NULL);
  need(ni_summarize_read(&r) == 0);
  ni_wire_bytes(&sums, r.log_sums[0].at, r.log_sums[0].n);
  need(!sums.bad && ni_log_sums_sound(sums.bytes, sums.n, 2000) &&
       !ni_log_sums_sound(sums.bytes, sums.n, 1999));
  ni_summarize_free(&r);
}

static void fill(void) {
  const char *folder = fuzz_dir("index");
  char path[300], shelf_path[300];
  snprintf(path, sizeof path, "%s/x.log", folder);
  snprintf(shelf_path, sizeof shelf_path, "%s/a.log", folder);
  struct ni_scan *scan;
  struct ni_scan_end end;
  struct ni_ledger c = {0};
  struct ni_granules *joined = NULL, *g = ni_granules_new(0);
  need(ni_scan_new(&scan) == 0 && g);
  write_log(path);
  ni_ledger_begin(&c, &file, true);
  const struct ni_scan_to to = {.arg = &c, .take = ni_ledger_take, .fault = ni_ledger_fault, .granules = g};
  need(ni_scan_file(scan, path, NULL, &to, &end) == 0);
  ni_ledger_end(&c, &end);
  need(ni_granules_join(&joined, g) == 0 && joined->n > 2 && !joined->odd);
  ni_map_wire(&map, joined);
  ni_ledger_wire(&account, &c);
  need(!map.bad && !account.bad);
  stand();
  add_up(path);
  char name[] = "a.log", why[256];
  struct ni_shelf_entry e = {.name = name,
                             .map = {map.bytes, map.n, ni_crc32(0, map.bytes, map.n)},
                             .account = {account.bytes, account.n, ni_crc32(0, account.bytes, account.n)}};
  unlink(path);
  need(ni_shelf_write(&e, 1, folder, name, why, sizeof why) == 0);
  int fd = open(shelf_path, O_RDONLY);
  need((shelf = malloc(1 << 20)) != NULL);
  n_shelf = (size_t)read(fd, shelf, 1 << 20);
  close(fd);
  unlink(shelf_path);
  rmdir(folder);
  ni_granules_free(joined);
  ni_ledger_free(&c);
  ni_scan_free(scan);
}

/* Where, how far, and what. */
static uint8_t *changed(const uint8_t *good, size_t *n, const uint8_t *data, size_t size) {
  uint8_t *b = malloc(*n + 1);
  need(b != NULL);
  memcpy(b, good, *n);
  for (; size >= 4; data += 4, size -= 4) {
    size_t at = ((size_t)data[0] | (size_t)data[1] << 8) % (*n + 1);
    if (data[3] & 1 && at < *n)
      b[at] = data[2];
    else if (data[3] & 2 && at < *n)
      memmove(b + at, b + at + 1, *n - at - 1), --*n;
    else if (data[3] == 4)
      *n = at;
  }
  return b;
}

static void try_map(const uint8_t *bytes, size_t n) {
  struct ni_wire p = ni_wire_load(bytes, n), again = {0};
  struct ni_granules *g = ni_granules_new(0), *joined = NULL;
  uint64_t at = 0;
  need(g != NULL);
  ni_map_wire(&p, g);
  for (size_t i = 0; !p.bad && i < g->n; at += g->item[i++].bytes) {
    need(g->item[i].at == at && g->item[i].bytes);
    for (uint32_t k = 0; k < g->item[i].n_sorts; k++)
      need(g->list[g->item[i].first_sort + k] < g->n_sorts);
  }
  if (p.bad) {
    ni_granules_free(g);
    return;
  }
  ni_map_wire(&again, g);
  need(!again.bad);
  free(again.bytes);
  need(ni_map_unpack(g) != -ENOMEM);
  need(ni_granules_join(&joined, g) == 0);
  ni_granules_free(joined);
}

static void try_account(const uint8_t *bytes, size_t n) {
  struct ni_wire p = ni_wire_load(bytes, n), again = {0};
  struct ni_ledger all = {0}, *part = calloc(1, sizeof *part);
  struct ni_files files = {.file = &file, .n = 1};
  struct ni_ledgers l;
  need(part && ni_ledgers_init(&l, &all, &files) == 0);
  ni_ledger_begin(part, &file, true);
  ni_ledger_wire(&p, part);
  if (!p.bad)
    ni_ledger_wire(&again, part);
  need(!again.bad);
  free(again.bytes);
  if (p.bad) {
    ni_ledgers_drop(NULL, part);
  } else {
    need(ni_ledgers_merge(&l, 0, part) == 0 && ni_ledgers_file_done(&l, 0) == 0);
    need(ni_ledger_judge(&all) == 0);
  }
  ni_ledgers_free(&l);
  ni_ledger_free(&all);
}

/* Read on, merged with another one, judged, said. */
static void try_standing(const uint8_t *bytes, size_t n) {
  struct ni_hang_model m = {0}, all = {0};
  struct ni_hang_reading r = {.m = &m, .process = -1, .member = -1};
  struct ni_hang_verdict v = {0};
  struct ni_wire p = ni_wire_load(bytes, n), good = ni_wire_load(standing.bytes, standing.n);
  char *text = NULL;
  ni_hang_standing_wire(&p, &r);
  if (!p.bad) {
    const struct ni_hang_op op = {.kind = NI_KIND_COLL, .sn = 7, .rec_sn = 41, .root = -1};
    struct ni_hang_model other = {0};
    struct ni_hang_reading o = {.m = &other, .process = -1, .member = -1};
    ni_hang_standing_wire(&good, &o);
    need(!r.x || (ni_hang_finished(r.x, &op) == 0 && ni_hang_in_flight(r.x, &op) == 0));
    struct ni_wire again = ni_hang_standing_bytes(&r);
    need(!again.bad);
    ni_wire_free(&again);
    need(ni_hang_model_merge(&all, &m) == 0 && ni_hang_model_merge(&all, &other) == 0);
    ni_hang_model_settle(&all);
    need(ni_hang_judge(&v, &all, 1000000000, 0) == 0);
    NI_HANG_SAID(text, ni_hang_say(f, &v));
    free(text);
    ni_hang_verdict_free(&v);
    ni_hang_model_free(&other);
  }
  ni_hang_model_free(&m);
  ni_hang_model_free(&all);
}

static void try_shelf(uint8_t *bytes, size_t n) {
  struct ni_shelf s = {.bytes = bytes};
  uint64_t table = 0;
  for (int i = 8; n > 24 && i-- > 0;)
    table = table << 8 | bytes[12 + i];
  if (n > 24 && table <= n - 24) {
    uint32_t crc = ni_crc32(ni_crc32(0, bytes, 20), bytes + 24, table);
    for (int i = 0; i < 4; i++)
      bytes[20 + i] = (uint8_t)(crc >> 8 * i);
  }
  if (ni_shelf_parse(&s, n) == 0)
    for (size_t i = 0; i < s.n; i++)
      if (ni_shelf_is_intact(&s.entry[i].map) && ni_shelf_is_intact(&s.entry[i].account))
        try_map(s.entry[i].map.bytes, s.entry[i].map.n);
  ni_shelf_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!n_shelf)
    fill();
  if (!size)
    return 0;
  int what = *data >= 200 ? 4 : *data >= 160 ? 3 : *data % 3;
  const uint8_t *const good[] = {map.bytes, account.bytes, shelf, standing.bytes, sums.bytes};
  size_t n = (const size_t[]){map.n, account.n, n_shelf, standing.n, sums.n}[what];
  uint8_t *b = changed(good[what], &n, data + 1, size - 1);
  if (what == 0)
    try_map(b, n);
  if (what == 1)
    try_account(b, n);
  if (what == 3)
    try_standing(b, n);
  if (what == 4)
    (void)ni_log_sums_sound(b, n, 2000);
  if (what == 2)
    try_shelf(b, n); /* frees it */
  else
    free(b);
  return 0;
}
