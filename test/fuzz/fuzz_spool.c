/*
 * libFuzzer: bytes as what happens to a spool: samples, acknowledgements, kills, and changes of its file with
 * checksums that fit. What is kept must come back, in bounds, and in a whole file again after a kill.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/agent/spool.h"

#include "fuzz_dir.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static int dir;

/* Each message is its number, again and again. */
static void check(struct ni_spool *s, int ours) {
  uint64_t first, next, lost, seq;
  size_t len;
  ni_spool_range(s, &first, &next, &lost);
  need(first >= 1 && first <= next && next - first <= NI_SPOOL_SAMPLES && ni_spool_next(s) == next);
  need(!ni_spool_get(s, first - 1, &len) && !ni_spool_get(s, next, &len));
  for (uint64_t i = next - first > 64 ? next - 64 : first; i < next; i++) {
    const char *p = ni_spool_get(s, i, &len);
    if (ours)
      need(p && len >= 8);
    if (p && len >= 8)
      memcpy(&seq, p, 8), need(seq == i);
  }
}

static void put(struct ni_spool *s, size_t words) {
  uint64_t message[256], next = ni_spool_next(s);
  for (size_t i = 0; i <= words; i++)
    message[i] = next;
  need(ni_spool_put(s, message, (words + 1) * 8) == 0);
}

/* A record that is sound by itself goes to the end of the file, or over a part of it. */
static void forge(uint64_t seq, size_t words, off_t at) {
  struct {
    uint32_t len, crc;
    uint64_t seq, epoch, message[256];
  } r = {(uint32_t)(words * 8), 0, seq, seq, {0}};
  for (size_t i = 0; i < words; i++)
    r.message[i] = seq;
  r.crc = (uint32_t)crc32_z(0, (const Bytef *)&r, 24 + words * 8);
  int fd = openat(dir, "head.spool", O_WRONLY | O_CREAT, 0600);
  need(fd >= 0 && pwrite(fd, &r, 24 + words * 8, at < 0 ? lseek(fd, 0, SEEK_END) : at) > 0);
  close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_spool *s;
  uint64_t first, next, lost, again[2];
  int ours = 1, fd;
  if (!dir)
    need((dir = open(fuzz_dir("spool"), O_RDONLY | O_DIRECTORY)) > 0);
  (void)unlinkat(dir, "head.spool", 0);
  need(ni_spool_open(&s, dir) == 0);
  for (; size >= 3; data += 3, size -= 3) {
    size_t v = (size_t)(data[1] | data[2] << 8);
    switch (data[0] % 6) {
      case 0:
        put(s, data[1]);
        break;
      case 1:
        ni_spool_range(s, &first, &next, &lost), ni_spool_drop(s, first + v % 64);
        break;
      case 2:
        for (size_t i = 0; i < v % 1024; i++)
          put(s, data[2]);
        break;
      case 3: /* killed */
        ni_spool_range(s, &first, &next, &lost);
        ni_spool_close(s);
        need(ni_spool_open(&s, dir) == 0);
        ni_spool_range(s, &again[0], &again[1], &lost);
        if (ours)
          need(first == next ? again[1] <= next : again[1] == next && again[0] <= first);
        if (ours && next > 1)
          ni_spool_drop(s, next - 1);
        break;
      default:
        ours = 0;
        ni_spool_close(s);
        if (data[0] & 64)
          forge(data[0] & 128 ? (uint64_t)v << 40 : v, data[1] % 64, data[0] & 32 ? -1 : (off_t)v);
        else if ((fd = openat(dir, "head.spool", O_WRONLY)) >= 0)
          need(ftruncate(fd, (off_t)v) == 0), close(fd);
        need(ni_spool_open(&s, dir) == 0);
    }
    check(s, ours);
  }
  ni_spool_close(s);
  return 0;
}
