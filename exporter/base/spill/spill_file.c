#include "spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "exporter/base/out_file.h"

void ni_spill_init(struct ni_spill *st, const char *dir, uint64_t limit_bytes) {
  *st = (struct ni_spill){.fd = -1, .dir = dir, .limit_bytes = limit_bytes};
}

void ni_spill_close(struct ni_spill *st) {
  if (st->fd >= 0)
    close(st->fd);
  st->fd = -1;
}

static int open_spill_file(struct ni_spill *st) {
  int state = 0;
  if (atomic_compare_exchange_strong(&st->fd_state, &state, 1)) {
    st->fd = open(st->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (st->fd < 0) {
      /* Not every file system has O_TMPFILE. */
      char path[4200];
      snprintf(path, sizeof path, "%.4096s/spill.XXXXXX", st->dir);
      st->fd = mkostemp(path, O_CLOEXEC);
      if (st->fd >= 0)
        unlink(path);
    }
    state = st->fd >= 0 ? 2 : -errno;
    atomic_store_explicit(&st->fd_state, state, memory_order_release);
  }
  while ((state = atomic_load_explicit(&st->fd_state, memory_order_acquire)) == 1)
    usleep(100);
  return state == 2 ? 0 : state;
}

int ni_spill_reserve(struct ni_spill *st, uint64_t bytes, uint64_t *offset) {
  int e = open_spill_file(st);
  if (e == 0)
    *offset = atomic_fetch_add_explicit(&st->file_end, bytes, memory_order_relaxed);
  return e;
}

int ni_spill_write(struct ni_spill *st, const void *from, size_t bytes, uint64_t offset) {
  return ni_write_all(st->fd, from, bytes, (off_t)offset);
}

int ni_spill_read(struct ni_spill *st, void *to, size_t bytes, uint64_t offset) {
  return ni_read_at(st->fd, to, bytes, (off_t)offset);
}
