/*
 * What does not fit into memory: one unnamed temporary file for all who have something to put aside, and a
 * count of what they hold beside it.
 *
 * Model: a place of so many bytes is taken once and is then its taker's; bytes go there and come back at
 * offsets in the file. The file is made when the first place is taken.
 *
 * Threads: any; the counters are atomic, and places do not overlap. Ownership: ni_spill_close(). Failure:
 * -errno of the file.
 */
#ifndef NI_SPILL_FILE_H
#define NI_SPILL_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct ni_spill {
  int fd;          /* the temporary file, unlinked; -1 until it is needed */
  const char *dir; /* where it is made */
  /* 0 none, 1 being made, 2 there, < 0: -errno. Release pairs with acquire in open_file() */
  atomic_int fd_state;
  _Atomic uint64_t file_end;   /* relaxed: only hands out places */
  _Atomic uint64_t held_bytes; /* relaxed: a level, not a promise */
  /* of held_bytes: what goes beyond is put aside. The holders look at it, not the store */
  uint64_t limit_bytes;
};

/* dir: must stay valid. */
void ni_spill_init(struct ni_spill *st, const char *dir, uint64_t limit_bytes);
void ni_spill_close(struct ni_spill *st);

/* A place of its own for `bytes`. 0 or -errno. */
int ni_spill_reserve(struct ni_spill *st, uint64_t bytes, uint64_t *offset);
/* Bytes to and from there. 0 or -errno; -EIO where the file ends. */
int ni_spill_write(struct ni_spill *st, const void *from, size_t bytes, uint64_t offset);
int ni_spill_read(struct ni_spill *st, void *to, size_t bytes, uint64_t offset);

#endif
