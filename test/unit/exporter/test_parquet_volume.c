/*
 * Volume: the columns of a log, as the exporter writes them. Memory must stay within the budget, several
 * writers at once included, and a row must stay small. NI_PQ_BENCH_ROWS=10000000 makes it a benchmark; it
 * prints time and size per row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/mix.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/parquet/writer.h"

#define BATCH 4096
#define N_COMMS 24

static const struct ni_pq_field fields[] = {
    {"id", NI_PQ_STRING},
    {"comm_name", NI_PQ_STRING},
    {"rank", NI_PQ_INT64},
    {"n_ranks", NI_PQ_INT64},
    {"nnodes", NI_PQ_INT64},
    {"comm_type", NI_PQ_STRING},
    {"coll", NI_PQ_STRING},
    {"coll_sn", NI_PQ_INT64},
    {"coll_msg_size_bytes", NI_PQ_INT64},
    {"coll_exec_time_us", NI_PQ_INT64},
    {"coll_timing_source", NI_PQ_STRING},
    {"coll_algobw_gbs", NI_PQ_DOUBLE},
    {"coll_busbw_gbs", NI_PQ_DOUBLE},
    {"format_version", NI_PQ_STRING},
    {"dump_timestamp_us", NI_PQ_INT64},
    {"hostname", NI_PQ_STRING},
    {"pid", NI_PQ_INT64},
    {"coll_exec_time_ns", NI_PQ_INT64},
    {"enqueue_ns", NI_PQ_INT64},
    {"rec_sn", NI_PQ_INT64},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

struct batch {
  uint32_t id[BATCH], name[BATCH], type[BATCH], coll[BATCH];
  int64_t rank[BATCH], n_ranks[BATCH], nnodes[BATCH], sn[BATCH], size[BATCH], exec[BATCH], dump[BATCH],
      exec_ns[BATCH], enqueue_ns[BATCH], rec_sn[BATCH];
  double algobw[BATCH], busbw[BATCH];
  uint8_t bw_valid[BATCH];
};

static uint64_t seed = 42;

static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

static struct ni_str texts[N_COMMS + 8];
static char text_bytes[N_COMMS + 8][32];

static void make_dict(struct ni_pq_dict *dict, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    int len = snprintf(text_bytes[i], sizeof text_bytes[i], "0x%08x5a5a5a5a", i * 2654435761u);
    texts[i] = (struct ni_str){text_bytes[i], (uint32_t)len};
  }
  texts[n++] = (struct ni_str){"node0042.cluster.example.org", 28};
  texts[n++] = (struct ni_str){"v4.0", 4};
  texts[n++] = (struct ni_str){"kernel_gpu", 10};
  *dict = (struct ni_pq_dict){texts, n, 1};
}

static void fill(struct batch *b, uint64_t row) {
  static int64_t sn[N_COMMS][4];
  for (int i = 0; i < BATCH; i++) {
    uint64_t r = next_random();
    /* Records come in batches of one communicator, as the dump thread writes them. */
    uint32_t comm = (uint32_t)((row + (uint64_t)i) / 200 % N_COMMS), coll = (uint32_t)(r & 3);
    double jitter = 1 + 0.3 * (double)(r >> 40) / (1 << 24);
    b->id[i] = b->name[i] = comm;
    b->type[i] = comm & 3;
    b->coll[i] = coll;
    b->rank[i] = comm & 7;
    b->n_ranks[i] = comm & 1 ? 8 : 64;
    b->nnodes[i] = comm & 1 ? 1 : 8;
    b->sn[i] = sn[comm][coll]++;
    b->size[i] = 1ll << (10 + (r >> 8) % 20);
    b->exec_ns[i] = (int64_t)(20000 * jitter + (double)b->size[i] / 200 * jitter);
    b->exec[i] = (b->exec_ns[i] + 500) / 1000;
    b->enqueue_ns[i] = 1700000000000000000 + (int64_t)(row + (uint64_t)i) * 40000 + (int64_t)(r >> 48);
    b->rec_sn[i] = (int64_t)((row + (uint64_t)i) / 200 / N_COMMS * 200 + (row + (uint64_t)i) % 200);
    b->algobw[i] = round((double)b->size[i] / (double)b->exec_ns[i] * 1e6) / 1e6;
    b->busbw[i] = round(b->algobw[i] * 1.75 * 1e6) / 1e6;
    b->bw_valid[i] = (r >> 20) % 100 != 0;
    b->dump[i] = 1700000000000000 + (int64_t)((row + (uint64_t)i) / 5000) * 1000003;
  }
}

static void columns_of(struct ni_pq_column *c, const struct batch *b, const struct ni_pq_dict *dict) {
  static const uint32_t host = N_COMMS, version = N_COMMS + 1, source = N_COMMS + 2;
  static const int64_t pid = 123456;
  const struct ni_pq_column all[N_FIELDS] = {{.values = b->id, .dict = dict},
                                             {.values = b->name, .dict = dict},
                                             {.values = b->rank},
                                             {.values = b->n_ranks},
                                             {.values = b->nnodes},
                                             {.values = b->type, .dict = dict},
                                             {.values = b->coll, .dict = dict},
                                             {.values = b->sn},
                                             {.values = b->size},
                                             {.values = b->exec},
                                             {.values = &source, .dict = dict, .repeat = true},
                                             {.values = b->algobw, .valid = b->bw_valid},
                                             {.values = b->busbw, .valid = b->bw_valid},
                                             {.values = &version, .dict = dict, .repeat = true},
                                             {.values = b->dump},
                                             {.values = &host, .dict = dict, .repeat = true},
                                             {.values = &pid, .repeat = true},
                                             {.values = b->exec_ns},
                                             {.values = b->enqueue_ns},
                                             {.values = b->rec_sn}};
  memcpy(c, all, sizeof all);
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_files(int n_files, uint64_t rows, size_t memory_bytes, double max_bytes_per_row) {
  struct ni_pq *w[64];
  char path[64][64];
  struct ni_pq_dict dict;
  struct batch *b = malloc(sizeof *b);
  struct ni_pq_column c[N_FIELDS];
  struct ni_pq_totals t;
  size_t peak = 0;
  double spent = 0;
  uint64_t bytes = 0;
  const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", *codec = getenv("NI_PQ_BENCH_CODEC");
  struct ni_pq_options o = {.memory_bytes = memory_bytes};
  for (int i = 0; codec && i < NI_PQ_CODEC_COUNT; i++)
    if (strcmp(codec, ni_pq_codec_name((enum ni_pq_codec)i)) == 0)
      o.codec = (enum ni_pq_codec)i;
  if (getenv("NI_PQ_BENCH_DICT"))
    o.dict_entries = (uint32_t)atoi(getenv("NI_PQ_BENCH_DICT"));
  if (getenv("NI_PQ_BENCH_LEVEL"))
    o.level = atoi(getenv("NI_PQ_BENCH_LEVEL"));
  if (getenv("NI_PQ_BENCH_PAGE"))
    o.page_rows = (uint32_t)atoi(getenv("NI_PQ_BENCH_PAGE"));
  if (getenv("NI_PQ_BENCH_PLAIN"))
    o.no_dict = true;
  if (!ni_pq_codec_available(o.codec))
    o.codec = ni_pq_codec_default();
  assert_non_null(b);
  make_dict(&dict, N_COMMS);
  for (int i = 0; i < n_files; i++) {
    char message[256];
    snprintf(path[i], sizeof path[i], "%s/ni-pq-volume-%d-%d.parquet", dir, (int)getpid(), i);
    int rc = ni_pq_create(&w[i], path[i], fields, N_FIELDS, &o, message, sizeof message);
    if (rc)
      fail_msg("%s", message);
  }
  for (uint64_t row = 0; row < rows; row += BATCH) {
    fill(b, row);
    columns_of(c, b, &dict);
    double start = now_s();
    for (int i = 0; i < n_files; i++)
      assert_int_equal(ni_pq_append(w[i], c, BATCH), 0);
    spent += now_s() - start;
    size_t held = 0;
    for (int i = 0; i < n_files; i++)
      held += ni_pq_memory_bytes(w[i]);
    if (held > peak)
      peak = held;
  }
  double start = now_s();
  uint64_t groups = 0, total_rows = 0;
  for (int i = 0; i < n_files; i++) {
    assert_int_equal(ni_pq_finish(w[i], &t), 0);
    struct stat st;
    assert_int_equal(stat(path[i], &st), 0);
    assert_int_equal((uint64_t)st.st_size, t.file_bytes);
    bytes += t.file_bytes;
    groups += t.row_groups;
    total_rows += t.rows;
    if (getenv("NI_PQ_BENCH_KEEP") == NULL)
      unlink(path[i]);
  }
  spent += now_s() - start;
  printf("parquet: %d files, %" PRIu64 " rows, %" PRIu64
         " row groups, %s: %.0f ns/row CPU (%.2f M rows/s), %.1f bytes/row, peak %.1f MiB\n",
         n_files, total_rows, groups, ni_pq_codec_name(o.codec), spent * 1e9 / (double)total_rows,
         (double)total_rows / spent / 1e6, (double)bytes / (double)total_rows, (double)peak / (1 << 20));
  /* One slice of 1024 rows, and the blocks that it fills in each column, may come on top. */
  assert_in_range(peak, 1, (uintmax_t)n_files * (memory_bytes + N_FIELDS * 16384 + 262144));
  assert_true((double)bytes < max_bytes_per_row * (double)total_rows);
  free(b);
}

static uint64_t wanted_rows(uint64_t otherwise) {
  const char *s = getenv("NI_PQ_BENCH_ROWS");
  return s ? strtoull(s, NULL, 10) : otherwise;
}

static void one_file(void **state) {
  (void)state;
  write_files(1, wanted_rows(600000), 16u << 20, 40);
}

static void many_files(void **state) {
  (void)state;
  write_files(32, wanted_rows(32 * 20000) / 32, 3u << 20, 48);
}

/* One column, written to NI_PQ_LARGE_DIR (test/long/parquet_large.sh reads it). */
static void write_large(const char *name, const struct ni_pq_field *field, const struct ni_pq_options *o,
                        uint64_t rows) {
  enum { N = 65536 };
  char path[512], message[256];
  struct ni_pq *w;
  struct ni_pq_totals t;
  int64_t *v = malloc(N * sizeof *v);
  const double half = 0.5;
  const struct ni_pq_column c = {.values = field->type == NI_PQ_DOUBLE ? (const void *)&half : v,
                                 .repeat = field->type == NI_PQ_DOUBLE};
  assert_non_null(v);
  snprintf(path, sizeof path, "%s/%s", getenv("NI_PQ_LARGE_DIR"), name);
  if (ni_pq_create(&w, path, field, 1, o, message, sizeof message) != 0)
    fail_msg("%s", message);
  for (uint64_t row = 0; row < rows; row += N) {
    size_t n = rows - row < N ? (size_t)(rows - row) : N;
    for (size_t i = 0; i < n; i++)
      v[i] = (int64_t)ni_spread(row + i); /* no codec makes them shorter */
    if (ni_pq_append(w, &c, n) != 0)
      fail_msg("%s", ni_pq_error(w));
  }
  assert_int_equal(ni_pq_finish(w, &t), 0);
  printf("%s: %" PRIu64 " rows, %" PRIu64 " row groups, %" PRIu64 " bytes\n", name, t.rows, t.row_groups,
         t.file_bytes);
  free(v);
}

/* A file, and a column chunk, beyond 2^31 bytes. */
static void beyond_2_31(void **state) {
  (void)state;
  if (!getenv("NI_PQ_LARGE_DIR"))
    skip();
  const uint64_t rows = 280000000; /* x 8 bytes = 2.24e9 */
  const struct ni_pq_options plain = {
      .codec = ni_pq_codec_default(), .no_dict = true, .row_group_rows = 1u << 20, .memory_bytes = 32u << 20};
  const struct ni_pq_options one_group = {
      .codec = ni_pq_codec_default(), .no_dict = true, .row_group_rows = INT32_MAX, .memory_bytes = 1u << 30};
  write_large("file.parquet", &(struct ni_pq_field){"n", NI_PQ_INT64}, &plain, rows);
  write_large("chunk.parquet", &(struct ni_pq_field){"x", NI_PQ_DOUBLE}, &one_group, rows);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_file), cmocka_unit_test(many_files),
                                     cmocka_unit_test(beyond_2_31)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
