/*
 * libFuzzer: any bytes as a black box, through the reader, `recover` and `hang`. Nothing may crash or be read
 * out of bounds; every line of the part that comes out must be one our parser takes; a part once written
 * leaves nothing to recover; a copy must read as the box does.
 *
 * The first byte chooses: the bytes as they are, or a sound box (synthetic_box.h) with the rest written over
 * it, as pairs of place and value, so that the fuzzer gets behind the header at once.
 *
 *   test/fuzz/run.sh 60 box
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/model/hang/read_boxes.h"
#include "exporter/cmds/hang/say.h"
#include "exporter/model/hang/verdict.h"
#include "exporter/input/line_reader.h"
#include "exporter/input/parse/parse.h"
#include "exporter/input/box/box_decode.h"
#include "format/line_tables.h"
#include "test/unit/exporter/recover_part.h"
#include "test/unit/exporter/synthetic_box.h"

#include "fuzz_dir.h"

#define T0 UINT64_C(1790000000000000000)
#define S UINT64_C(1000000000)

static void must(int truth, int line) {
  if (truth)
    return;
  fprintf(stderr, "line %d does not hold\n", line);
  abort();
}
#define need(truth) must((truth), __LINE__)

static char dir[64], path[96], copy[96];

static void clean(void) {
  (void)unlink(path);
  (void)unlink(copy);
  (void)rmdir(dir);
}

static struct sbox sound(void) {
  struct sbox s = sbox_new("node-a", 4242, 0, 2, T0 + 400 * S);
  uint32_t c[2] = {sbox_comm(&s, "dp0", 0xabc, 0, 2, T0), sbox_comm(&s, NULL, 0xdef, 1, 2, T0)};
  for (int i = 0; i < 40; i++) {
    static const uint32_t flags[] = {0xf, 0, 0x13, 0x33, 0x53, 0x3, 0xf, 0x1};
    struct sbox_op op = {.flags = flags[i % 8],
                         .want = i % 5 ? 4 : 255,
                         .started = 4,
                         .stopped = i % 8 == 5 ? 2 : 4,
                         .kind = i % 3 == 2,
                         .sn = (uint64_t)i,
                         .rec_sn = (uint64_t)i,
                         .count = 1000,
                         .root = i % 2,
                         .start_ns = T0 + (uint64_t)i * S,
                         .first_ns = T0 + (uint64_t)i * S + 1000,
                         .done_ns = T0 + (uint64_t)i * S + 50000,
                         .gpu_start_ns = 5 * S,
                         .gpu_stop_ns = 5 * S + 40000,
                         .func = i % 3 == 2 ? (i % 2 ? "Recv" : "Send") : "AllReduce"};
    (void)sbox_op(&s, c[i % 2], &op);
  }
  sbox_session(&s, T0, "/nowhere", "node-a-pid4242-1.jsonl.gz",
               "{\"header\":{\"id\":\"0x0\",\"rank\":0,\"n_ranks\":2,\"nnodes\":0},\"metadata\":{\"dump_"
               "timestamp_us\":1,\"hostname\":"
               "\"node-a\",\"pid\":4242,\"producer\":\"t\"},\"process\":{\"start_ns\":1790000000000000000}}");
  sbox_close(&s);
  return s;
}

static int count_ops(const struct ni_box_op *op, void *arg) {
  uint64_t *sum = arg;
  *sum = *sum * 31 + op->rec_sn + op->slot + (uint64_t)op->is + strlen(op->func) + strlen(op->datatype);
  int64_t c = ni_box_comm_of((const struct ni_box *)(uintptr_t)sum[1], op);
  if (c >= 0)
    *sum += ni_box_open_channels((const struct ni_box *)(uintptr_t)sum[1], (size_t)c, op);
  return 0;
}

/* Every line parses; the first is the process's and marked. */
static void check_part(const char *path) {
  struct ni_reader *r;
  struct ni_parser *p;
  struct ni_line *line = malloc(sizeof *line);
  struct ni_text t;
  need(line && ni_reader_open(&r, path, NULL) == 0 && ni_parser_new(&p) == 0);
  for (uint64_t n = 0; ni_reader_next(r, &t) == 1; n++) {
    enum ni_reject why = t.too_long ? NI_REJ_TOO_LONG : ni_parse_line(p, t.text, t.len, t.room, line);
    if (why != NI_OK)
      fprintf(stderr, "line %llu: %s %s\n", (unsigned long long)n + 1, ni_reject_name(why),
              line->bad_key ? line->bad_key : "");
    need(why == NI_OK && line->has_header && line->unknown_keys == 0);
    if (n == 0)
      need(line->kind == NI_LINE_PROCESS && line->process.recovered_ns);
  }
  need(ni_reader_stats(r)->damages == 0);
  ni_reader_close(r);
  ni_parser_free(p);
  free(line);
}

static void recover_it(const struct ni_box *b) {
  struct ni_log_state log = {0};
  struct ni_recovered r;
  char part[600], again[600];
  need(recover_part(b, &log, dir, "part", false, &r, part) == 0);
  if (*part) {
    check_part(part);
    need(ni_log_state_read(&log, part, 0) == 0);
    need(recover_part(b, &log, dir, "part", false, &r, again) == 0 && !*again);
    need(unlink(part) == 0);
  }
  ni_log_state_free(&log);
}

static void judge_it(char *path) {
  struct ni_hang_looks looks = {0};
  struct ni_hang_model base = {0}, m = {0};
  struct ni_hang_verdict v;
  struct ni_file file = {.path = path};
  FILE *null = fopen("/dev/null", "we");
  need(null && ni_hang_read_boxes(&looks, &file, 1, 1, NULL, &base) == 0);
  need(ni_hang_model_at(&m, &base, &looks, UINT64_MAX) == 0);
  need(ni_hang_judge(&v, &m, S, 0) == 0);
  ni_hang_say(null, &v);
  for (size_t i = 0; i < v.n; i++)
    ni_hang_say_knot(null, &v, &v.knot[i]);
  for (size_t i = 0; ni_hang_say_missing(null, &v, i); i++) {}
  fclose(null);
  ni_hang_verdict_free(&v);
  ni_hang_model_free(&m);
  ni_hang_model_free(&base);
  ni_hang_looks_free(&looks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!*dir) {
    snprintf(dir, sizeof dir, "%s", fuzz_dir("box"));
    snprintf(path, sizeof path, "%s/x.box", dir);
    snprintf(copy, sizeof copy, "%s/y.box", dir);
    need(atexit(clean) == 0);
  }
  if (size == 0)
    return 0;
  FILE *f = fopen(path, "wbe");
  need(f != NULL);
  if (*data & 1) {
    struct sbox s = sound();
    size_t bytes = (size_t)s.pages * NI_BOX_PAGE_BYTES;
    for (size_t i = 1; i + 4 <= size; i += 4) { /* place 24 bits, value 8 */
      size_t at = (size_t)(data[i] | data[i + 1] << 8 | data[i + 2] << 16) % bytes;
      s.p[at] = data[i + 3];
    }
    need(fwrite(s.p, 1, bytes, f) == bytes);
    sbox_free(&s);
  } else {
    need(fwrite(data + 1, 1, size - 1, f) == size - 1);
  }
  need(fclose(f) == 0);
  struct ni_box *b = NULL, *c = NULL;
  char why[256];
  int e = ni_box_open(&b, path, 0, why, sizeof why);
  need(e == 0 || (b == NULL && (e != -EBADMSG || *why)));
  if (e)
    return 0;
  uint64_t x[2] = {1, (uint64_t)(uintptr_t)b}, y[2] = {1, 0};
  need(ni_box_each_op(b, count_ops, x) == 0);
  f = fopen(copy, "wbe");
  need(f && ni_box_write_copy(b, fileno(f)) == 0 && fclose(f) == 0);
  need(ni_box_open(&c, copy, 0, why, sizeof why) == 0 && ni_box_is_copy(c));
  y[1] = (uint64_t)(uintptr_t)c;
  need(ni_box_each_op(c, count_ops, y) == 0 && x[0] == y[0]);
  recover_it(b);
  ni_box_close(b);
  ni_box_close(c);
  judge_it(path);
  return 0;
}
