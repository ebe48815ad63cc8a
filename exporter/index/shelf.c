#include "shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/bytes/wire.h"
#include "exporter/base/out_file.h"
#include "exporter/base/process/as_user.h"
#include "exporter/input/granules.h"
#include "exporter/model/ledger/ledger.h"

/* Raise it with whatever changes what is in it and not one of the numbers below. */
enum { FORMAT = 8, FIXED_BYTES = 24, CRC_BYTES = 4 };
#define BYTES_MAX (UINT64_C(4) << 30)
static const char magic[8] = "NCCLIDX";

static uint32_t hash_rules(void) {
  static const uint64_t shape[] = {FORMAT,
                                   NI_BORDER_GZIP,
                                   NI_BORDER_PLAIN,
                                   NI_BORDER_TEXT,
                                   NI_SORTS_MAX,
                                   NI_KEPT_MAX,
                                   NI_MAX_LINE_BYTES,
                                   NI_REJ_COUNT,
                                   NI_EVENT_COUNT,
                                   NI_IMPLAUSIBLE_COUNT,
                                   NI_PROBLEM_COUNT,
                                   NI_LEDGER_NAMES,
                                   NI_LEDGER_SAMPLES,
                                   NI_LEDGER_WHERES,
                                   NI_SEQ_SET_MAX,
                                   NI_LINE_KIND_COUNT};
  uint32_t crc = 0;
  uint8_t b[8];
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
    ni_put_le(b, shape[i], sizeof b);
    crc = ni_crc32(crc, b, sizeof b);
  }
  for (int i = 0; i < NI_PROBLEM_COUNT; i++) {
    const char *name = ni_problem_name((enum ni_problem_code)i);
    crc = ni_crc32(crc, name, strlen(name) + 1);
  }
  return crc;
}

static void append_little_endian(struct ni_wire *w, uint64_t v, size_t bytes) {
  uint8_t b[8];
  ni_put_le(b, v, bytes);
  ni_wire_bytes(w, b, bytes);
}

static int compare_by_name(const void *a, const void *b) {
  return strcmp(((const struct ni_shelf_entry *)a)->name, ((const struct ni_shelf_entry *)b)->name);
}

/* Sizes and sums of a part in the table. */
static void wire_part(struct ni_wire *w, struct ni_shelf_part *part) {
  uint64_t n = part->n;
  ni_wire_u64(w, &n);
  ni_wire_u32(w, &part->crc);
  part->n = (size_t)n;
}

static bool place_part(struct ni_shelf_part *part, const uint8_t **at, const uint8_t *end) {
  if (part->n > (size_t)(end - *at))
    return false;
  part->bytes = *at;
  *at += part->n;
  return true;
}

static int parse_table(struct ni_shelf *s, struct ni_wire *table) {
  size_t n = 0;
  ni_wire_count(table, &n, 7);
  for (size_t i = 0; i < n && !table->bad; i++) {
    if (!ni_array_room(s->entry, s->n, s->cap))
      return -ENOMEM;
    struct ni_shelf_entry *e = &s->entry[s->n++];
    *e = (struct ni_shelf_entry){0};
    ni_wire_text(table, &e->name);
    wire_part(table, &e->map);
    wire_part(table, &e->account);
    wire_part(table, &e->sums);
    table->bad |= !e->name || (i && compare_by_name(e - 1, e) >= 0);
  }
  return table->bad || table->at != table->end ? -EBADMSG : 0;
}

int ni_shelf_parse(struct ni_shelf *s, size_t n) {
  const uint8_t *b = s->bytes;
  if (n < FIXED_BYTES + CRC_BYTES || memcmp(b, magic, sizeof magic) != 0 ||
      ni_get_le(b + 8, 4) != hash_rules())
    return -EBADMSG;
  uint64_t table_bytes = ni_get_le(b + 12, 8);
  if (table_bytes > n - FIXED_BYTES - CRC_BYTES ||
      ni_crc32(ni_crc32(0, b, 20), b + FIXED_BYTES, table_bytes) != ni_get_le(b + 20, 4))
    return -EBADMSG;
  struct ni_wire table = ni_wire_load(b + FIXED_BYTES, table_bytes);
  int e = parse_table(s, &table);
  if (e < 0)
    return e;
  const uint8_t *at = table.end, *end = b + n - CRC_BYTES;
  for (size_t i = 0; i < s->n; i++)
    if (!place_part(&s->entry[i].map, &at, end) || !place_part(&s->entry[i].account, &at, end) ||
        !place_part(&s->entry[i].sums, &at, end))
      return -EBADMSG;
  if ((size_t)(end - at) != s->n * NI_SHELF_STAT_BYTES ||
      ni_crc32(0, at, (size_t)(end - at)) != ni_get_le(end, 4))
    return -EBADMSG;
  for (size_t i = 0; i < s->n; i++, at += NI_SHELF_STAT_BYTES)
    s->entry[i].stat = (struct ni_shelf_stat){ni_get_le(at, 8), ni_get_le(at + 8, 8),
                                              (int64_t)ni_get_le(at + 16, 8), (int64_t)ni_get_le(at + 24, 8)};
  return 0;
}

int ni_shelf_read(struct ni_shelf *s, const char *path) {
  struct stat st;
  *s = (struct ni_shelf){0};
  int fd = ni_plain_open(AT_FDCWD, path, &st);
  if (fd < 0)
    return fd == -EINVAL ? -EBADMSG : fd;
  int e = (uint64_t)st.st_size < BYTES_MAX ? 0 : -EBADMSG;
  size_t n = e ? 0 : (size_t)st.st_size;
  if (e == 0 && !(s->bytes = malloc(n + 1)))
    e = -ENOMEM;
  if (e == 0)
    e = ni_read_at(fd, s->bytes, n, 0);
  if (e == 0)
    s->owner = st.st_uid;
  close(fd);
  if (e == 0)
    e = ni_shelf_parse(s, n);
  if (e < 0)
    ni_shelf_free(s);
  return e == -EIO ? -EBADMSG : e; /* it was cut meanwhile */
}

void ni_shelf_sort(struct ni_shelf *s) {
  if (s->n)
    qsort(s->entry, s->n, sizeof *s->entry, compare_by_name);
}

void ni_shelf_free(struct ni_shelf *s) {
  for (size_t i = 0; i < s->n; i++)
    free(s->entry[i].name);
  free(s->entry);
  free(s->bytes);
  *s = (struct ni_shelf){0};
}

const struct ni_shelf_entry *ni_shelf_find(const struct ni_shelf *s, const char *name) {
  size_t i;
  ni_array_search(i, s->n, strcmp(s->entry[i].name, name) < 0);
  return i < s->n && strcmp(s->entry[i].name, name) == 0 ? &s->entry[i] : NULL;
}

bool ni_shelf_is_intact(const struct ni_shelf_part *part) {
  return ni_crc32(0, part->bytes, part->n) == part->crc;
}

static void encode_entries(struct ni_wire *w, const struct ni_shelf_entry *entry, size_t n) {
  struct ni_wire table = {0}, stats = {0};
  ni_wire_count(&table, &n, 1);
  for (size_t i = 0; i < n; i++) {
    struct ni_shelf_entry e = entry[i];
    ni_wire_text(&table, &e.name);
    wire_part(&table, &e.map);
    wire_part(&table, &e.account);
    wire_part(&table, &e.sums);
    append_little_endian(&stats, e.stat.size, 8);
    append_little_endian(&stats, e.stat.ino, 8);
    append_little_endian(&stats, (uint64_t)e.stat.mtime_ns, 8);
    append_little_endian(&stats, (uint64_t)e.stat.ctime_ns, 8);
  }
  ni_wire_bytes(w, magic, sizeof magic);
  append_little_endian(w, hash_rules(), 4);
  append_little_endian(w, table.n, 8);
  if (!w->bad && !table.bad)
    append_little_endian(w, ni_crc32(ni_crc32(0, w->bytes, 20), table.bytes, table.n), 4);
  ni_wire_bytes(w, table.bytes, table.n);
  for (size_t i = 0; i < n; i++) {
    ni_wire_bytes(w, entry[i].map.bytes, entry[i].map.n);
    ni_wire_bytes(w, entry[i].account.bytes, entry[i].account.n);
    ni_wire_bytes(w, entry[i].sums.bytes, entry[i].sums.n);
  }
  ni_wire_bytes(w, stats.bytes, stats.n);
  append_little_endian(w, ni_crc32(0, stats.bytes, stats.n), 4);
  w->bad |= table.bad || stats.bad;
  free(table.bytes);
  free(stats.bytes);
}

int ni_shelf_write(const struct ni_shelf_entry *entry, size_t n, const char *folder, const char *name,
                   char *why, size_t cap) {
  struct ni_wire p = {0};
  struct ni_out_file out = {0};
  *why = 0;
  int dir = ni_out_dir(folder, true, why, cap), e = dir < 0 ? dir : 0;
  encode_entries(&p, entry, n);
  if (e == 0 && p.bad)
    e = -ENOMEM;
  if (e == 0)
    ni_out_sweep(dir, "", "", 0);
  if (e == 0)
    e = ni_out_begin(&out, dir, 0666);
  /* keeps the lock until the file has its name */
  int held = e == 0 ? dup(out.fd) : -1;
  /* just swept away */
  if (held >= 0 && flock(held, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
    e = -EAGAIN;
  if (e == 0)
    e = ni_write_all(out.fd, p.bytes, p.n, 0);
  /* swept away before it was locked: another one writes */
  if (e == 0 && (e = ni_out_commit(&out, name, true)) == -ENOENT)
    e = 0;
  if (e < 0 && !*why)
    snprintf(why, cap, "%s", strerror(-e));
  ni_out_drop(&out);
  if (held >= 0)
    close(held);
  free(p.bytes);
  if (dir >= 0)
    close(dir);
  return e == -EAGAIN ? 0 : e;
}
