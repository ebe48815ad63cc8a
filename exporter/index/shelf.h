/*
 * One file of the index: what is known of the logs of one folder, log by log.
 *
 *   magic, rules, size and CRC-32 of the table
 *       ─▶ table: of each log its name, and of its three parts sizes and CRC-32
 *   ─▶ the parts: map (granules.h), account (ledger/pack.h), sums (atlas.h; mostly none)
 *   ─▶ stats: of each log size, mtime, ctime, inode ─▶ their CRC-32
 *
 * Logs stand sorted by name. No clock, host or path is in it: the same logs have the same bytes, but for the
 * stats at its end, NI_SHELF_STAT_BYTES for each log and 4. `rules` is a number that changes with whatever
 * shapes it; another number is another format, and the file is as if it were not there.
 *
 * It is read whole, and hostile: sizes are bounded by the file, parts are checked when they are asked for. It
 * is written beside itself and moved into place, so a reader sees one or the other; of writers at once the
 * last one stays. What a killed writer left is taken away by the next one: a temporary file is locked (flock)
 * by whoever writes it.
 *
 * One thread. Ownership: ni_shelf_free(); entries point into the shelf.
 */
#ifndef NI_SHELF_H
#define NI_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ni_shelf_stat {
  uint64_t size, ino;
  /* ctime_ns 0: it changed too short a time before it was read; its bytes must be compared */
  int64_t mtime_ns, ctime_ns;
};
#define NI_SHELF_STAT_BYTES 32

struct ni_shelf_part {
  const uint8_t *bytes;
  size_t n;
  uint32_t crc;
};

struct ni_shelf_entry {
  char *name;
  struct ni_shelf_stat stat;
  struct ni_shelf_part map, account, sums;
};

struct ni_shelf { /* all 0: none */
  uint8_t *bytes;
  struct ni_shelf_entry *entry;
  size_t n, cap;
  uid_t owner;
};

/* 0; -ENOENT: there is none; -EBADMSG: damaged, or of another version; -errno. */
int ni_shelf_read(struct ni_shelf *s, const char *path);
/* The same from memory, for ni_shelf_read(); s->bytes is set. 0, -EBADMSG, -ENOMEM. */
int ni_shelf_parse(struct ni_shelf *s, size_t n);
void ni_shelf_free(struct ni_shelf *s);
/* Sorts entries by name. A shelf that was read is sorted already. */
void ni_shelf_sort(struct ni_shelf *s);
/* NULL: it has none of that name. */
const struct ni_shelf_entry *ni_shelf_find(const struct ni_shelf *s, const char *name);
/* The part is as it was written. */
bool ni_shelf_is_intact(const struct ni_shelf_part *part);
/*
 * Writes the entries, sorted by name, as the file `name` in a folder, which is made. 0 or -errno, with a
 * sentence in why.
 */
int ni_shelf_write(const struct ni_shelf_entry *entry, size_t n, const char *folder, const char *name,
                   char *why, size_t cap);

#endif
