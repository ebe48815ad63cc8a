/*
 * libFuzzer: any bytes as a log file, read with isa-l and with zlib, whole and split. The first byte chooses the line
 * limit; the second says whether the rest is the file itself or text to be put into gzip members first.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -DNI_HAVE_ISAL=1 -I. -Iinclude test/fuzz/fuzz_gzip.c \
 *     exporter/input/line_reader.c exporter/input/line_split.c exporter/input/inflate.c -lisal -lz -o fuzz_gzip
 *   ./fuzz_gzip -max_len=8192 NEW_CORPUS test/fuzz/corpus/gzip
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/input/line_reader.h"
#include "exporter/input/line_split.h"
#include "exporter/input/parse/parse.h"

static void need(int truth) {
  if (!truth)
    abort();
}

struct sum {
  uint64_t lines, bytes, hash, damages;
};

static void add(struct sum *s, const char *path, struct ni_reader_options opt) {
  struct ni_reader *r;
  struct ni_text t;
  need(ni_reader_open(&r, path, &opt) == 0);
  while (ni_reader_next(r, &t) == 1) {
    s->lines++;
    if (t.too_long)
      continue;
    need(t.room >= t.len + NI_PARSE_PADDING);
    need(t.len <= opt.max_line_bytes);
    for (size_t i = 0; i < t.len; i++) {
      need(t.text[i] != '\n');
      s->hash = (s->hash ^ (uint8_t)t.text[i]) * 0x100000001b3ULL;
    }
    s->hash = s->hash * 31 + 7;
    s->bytes += t.len;
  }
  s->damages += ni_reader_stats(r)->damages;
  ni_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static int fd = -1;
  static char path[64];
  if (size < 2)
    return 0;
  if (fd < 0) {
    fd = memfd_create("fuzz", 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  struct ni_reader_options opt = {.max_line_bytes = 1u + data[0] * 4u};
  unsigned how = data[1];
  data += 2;
  size -= 2;
  need(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
  if (how & 1) {
    need(write(fd, data, size) == (ssize_t)size);
  } else {
    /* Sound members: the lines must come out as they went in, whatever the borders, with both engines. */
    size_t step = 1 + (how >> 1) * 5u;
    for (size_t at = 0; at < size; at += step) {
      uint8_t out[4096];
      size_t n = size - at < step ? size - at : step;
      z_stream z = {.next_in = (Bytef *)(uintptr_t)(data + at),
                    .avail_in = (uInt)n,
                    .next_out = out,
                    .avail_out = sizeof out};
      need(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY) == Z_OK &&
           deflate(&z, Z_FINISH) == Z_STREAM_END);
      deflateEnd(&z);
      need(write(fd, out, sizeof out - z.avail_out) == (ssize_t)(sizeof out - z.avail_out));
    }
  }
  struct sum isal = {0}, zlib = {0}, parts = {0};
  opt.engine = NI_INFLATE_ZLIB;
  add(&zlib, path, opt);
  opt.engine = NI_INFLATE_ISAL;
  add(&isal, path, opt);
  /* On damaged data the engines stop at different bytes; on sound data they must agree. */
  if (!zlib.damages && !isal.damages)
    need(memcmp(&zlib, &isal, sizeof zlib) == 0);
  if (!(how & 1))
    need(!zlib.damages && !isal.damages);
  struct ni_range range[4];
  int n = ni_reader_split(path, 4, 16, range);
  need(n >= 1 && n <= 4);
  for (int i = 0; i < n; i++) {
    opt.from = range[i].from;
    opt.to = range[i].to;
    add(&parts, path, opt);
  }
  if (!isal.damages)
    need(memcmp(&parts, &isal, sizeof isal) == 0);
  return 0;
}
