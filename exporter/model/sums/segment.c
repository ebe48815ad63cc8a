#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"

enum { FIRST_BLOCK_BYTES = 80, BLOCK_BYTES = 8192, ENTRY_MAX_BYTES = 72, SMALL_BYTES = 256 };

/* First byte of a record. */
enum {
  F_SN_NEXT = 1,   /* sn is the last one + 1 */
  F_SAME_MIX = 2,  /* timing, algorithm and protocol as before */
  F_BW_MICRO = 4,  /* bandwidth has six decimals in GB/s, as logs write it: stored in thousands */
  F_BW = 8,
  F_START = 16,
  F_EXEC_US = 32,  /* whole µs */
  F_SAME_DUMP = 64,
  F_SAME_PEER = 128,
};

void ni_store_init(struct ni_store *st, const char *dir, uint64_t limit_bytes) {
  *st = (struct ni_store){.fd = -1, .dir = dir, .limit_bytes = limit_bytes};
}

void ni_store_close(struct ni_store *st) {
  if (st->fd >= 0) close(st->fd);
  st->fd = -1;
}

static inline uint8_t *put(uint8_t *p, uint64_t v) {
  while (v >= 128) {
    *p++ = (uint8_t)(v | 128);
    v >>= 7;
  }
  *p++ = (uint8_t)v;
  return p;
}

static inline const uint8_t *get(const uint8_t *p, uint64_t *v) {
  uint64_t x = *p & 127;
  for (unsigned shift = 7; *p++ & 128; shift += 7) x |= (uint64_t)(*p & 127) << shift;
  *v = x;
  return p;
}

/* Differences of either sign, modulo 2^64, small ones short. */
static inline uint64_t fold(uint64_t d) { return (d << 1) ^ (uint64_t)((int64_t)d >> 63); }
static inline uint64_t unfold(uint64_t z) { return (z >> 1) ^ (uint64_t)(-(int64_t)(z & 1)); }

static int open_file(struct ni_store *st) {
  int state = 0;
  if (atomic_compare_exchange_strong(&st->fd_state, &state, 1)) {
    st->fd = open(st->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (st->fd < 0) {
      /* Not every file system has O_TMPFILE. */
      char path[4200];
      snprintf(path, sizeof path, "%.4096s/spill.XXXXXX", st->dir);
      st->fd = mkostemp(path, O_CLOEXEC);
      if (st->fd >= 0) unlink(path);
    }
    state = st->fd >= 0 ? 2 : -errno;
    atomic_store_explicit(&st->fd_state, state, memory_order_release);
  }
  while ((state = atomic_load_explicit(&st->fd_state, memory_order_acquire)) == 1) usleep(100);
  return state == 2 ? 0 : state;
}

int ni_store_reserve(struct ni_store *st, uint64_t bytes, uint64_t *offset) {
  int e = open_file(st);
  if (e == 0) *offset = atomic_fetch_add_explicit(&st->file_end, bytes, memory_order_relaxed);
  return e;
}

int ni_store_write(struct ni_store *st, const void *from, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    ssize_t k = pwrite(st->fd, (const char *)from + done, bytes - done, (off_t)(offset + done));
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) return -errno;
    done += (size_t)k;
  }
  return 0;
}

int ni_store_read(struct ni_store *st, void *to, size_t bytes, uint64_t offset) {
  for (size_t done = 0; done < bytes;) {
    ssize_t k = pread(st->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return k < 0 ? -errno : -EIO;
    done += (size_t)k;
  }
  return 0;
}

static int spill(struct ni_store *st, struct ni_block *b) {
  int e = ni_store_reserve(st, b->len, &b->offset);
  return e < 0 ? e : ni_store_write(st, b->at, b->len, b->offset);
}

static int next_block(struct ni_segment *s, struct ni_store *st) {
  struct ni_block *last = s->n_blocks ? &s->block[s->n_blocks - 1] : NULL;
  uint8_t *memory = NULL;
  uint32_t size = last ? 2 * last->size : FIRST_BLOCK_BYTES;
  if (size > BLOCK_BYTES) size = BLOCK_BYTES;
  if (s->n_blocks == s->cap_blocks) {
    uint32_t cap = s->cap_blocks ? 2 * s->cap_blocks : 1;
    struct ni_block *b = realloc(s->block, cap * sizeof *b);
    if (!b) return -ENOMEM;
    s->block = b;
    s->cap_blocks = cap;
    last = s->n_blocks ? &b[s->n_blocks - 1] : NULL;
  }
  if (last && last->size == BLOCK_BYTES &&
      atomic_load_explicit(&st->held_bytes, memory_order_relaxed) >= st->limit_bytes) {
    int e = spill(st, last);
    if (e < 0) return e;
    memory = last->at;
    last->at = NULL;
  } else {
    memory = malloc(size);
    if (!memory) return -ENOMEM;
    atomic_fetch_add_explicit(&st->held_bytes, size, memory_order_relaxed);
  }
  s->block[s->n_blocks++] = (struct ni_block){memory, 0, 0, size};
  return 0;
}

int ni_segment_add(struct ni_segment *s, struct ni_store *st, const struct ni_entry *e) {
  if (!s->last && !(s->last = calloc(1, sizeof *s->last))) return -ENOMEM;
  if (s->n_blocks == 0 || s->block[s->n_blocks - 1].len + ENTRY_MAX_BYTES > s->block[s->n_blocks - 1].size) {
    int r = next_block(s, st);
    if (r < 0) return r;
  }
  struct ni_block *b = &s->block[s->n_blocks - 1];
  uint8_t *first = b->at + b->len, *p = first + 1;
  const struct ni_entry *l = s->last;
  unsigned f = 0;
  if (e->sn == l->sn + 1) f |= F_SN_NEXT;
  else p = put(p, fold(e->sn - l->sn));
  if (e->exec_ns % 1000 == 0) {
    f |= F_EXEC_US;
    p = put(p, e->exec_ns / 1000);
  } else {
    p = put(p, e->exec_ns);
  }
  if (e->bytes_per_s != NI_NO_BW) {
    f |= F_BW;
    bool micro = e->bytes_per_s % 1000 == 0;
    if (micro) f |= F_BW_MICRO;
    p = put(p, micro ? e->bytes_per_s / 1000 : e->bytes_per_s);
  }
  if (e->dump_us == l->dump_us) f |= F_SAME_DUMP;
  else p = put(p, fold(e->dump_us - l->dump_us));
  if (e->start_ns != NI_NO_START) {
    f |= F_START;
    p = put(p, fold((uint64_t)e->start_ns - (uint64_t)l->start_ns));
  }
  if (e->timing == l->timing && e->mix == l->mix) {
    f |= F_SAME_MIX;
  } else {
    *p++ = e->timing;
    *p++ = e->mix;
  }
  if (e->peer == l->peer) f |= F_SAME_PEER;
  else p = put(p, fold((uint64_t)(int64_t)e->peer - (uint64_t)(int64_t)l->peer));
  *first = (uint8_t)f;
  b->len = (uint32_t)(p - b->at);

  if (s->n == 0) s->min_sn = s->max_sn = e->sn;
  if (e->sn < s->min_sn) s->min_sn = e->sn;
  if (e->sn > s->max_sn) s->max_sn = e->sn;
  if (s->max_sn - e->sn > s->back) s->back = s->max_sn - e->sn;
  int64_t start = s->last->start_ns;
  *s->last = *e;
  if (e->start_ns == NI_NO_START) s->last->start_ns = start;
  s->n++;
  return 0;
}

/* Over the limit whatever is left of a segment goes too: many short ones would otherwise be held as a whole. */
static int spill_rest(struct ni_segment *s, struct ni_store *st) {
  for (uint32_t i = 0; i < s->n_blocks; i++) {
    struct ni_block *b = &s->block[i];
    if (!b->at) continue;
    int e = spill(st, b);
    if (e < 0) return e;
    free(b->at);
    b->at = NULL;
    atomic_fetch_sub_explicit(&st->held_bytes, b->size, memory_order_relaxed);
  }
  return 0;
}

int ni_segment_end(struct ni_segment *s, struct ni_store *st) {
  free(s->last);
  s->last = NULL;
  if (s->n_blocks == 0) return 0;
  struct ni_block *b = &s->block[s->n_blocks - 1];
  if (atomic_load_explicit(&st->held_bytes, memory_order_relaxed) >= st->limit_bytes &&
      (s->n_blocks > 1 || b->len > SMALL_BYTES))
    return spill_rest(s, st);
  uint8_t *p = realloc(b->at, b->len);
  if (!p) return 0;
  b->at = p;
  atomic_fetch_sub_explicit(&st->held_bytes, b->size - b->len, memory_order_relaxed);
  b->size = b->len;
  return 0;
}

void ni_segment_free(struct ni_segment *s, struct ni_store *st) {
  for (uint32_t i = 0; i < s->n_blocks; i++) {
    if (!s->block[i].at) continue;
    atomic_fetch_sub_explicit(&st->held_bytes, s->block[i].size, memory_order_relaxed);
    free(s->block[i].at);
  }
  free(s->block);
  free(s->last);
  s->block = NULL;
  s->last = NULL;
  s->n_blocks = 0;
}

void ni_segment_read(struct ni_segment_reader *r, const struct ni_segment *s, struct ni_store *st) {
  *r = (struct ni_segment_reader){.s = s, .st = st};
}

void ni_segment_read_end(struct ni_segment_reader *r) {
  free(r->buffer);
  free(r->heap);
  r->buffer = NULL;
  r->heap = NULL;
}

static int load_block(struct ni_segment_reader *r) {
  const struct ni_block *b = &r->s->block[r->block++];
  r->at = b->at;
  if (!r->at) {
    if (!r->buffer && !(r->buffer = malloc(BLOCK_BYTES))) return -ENOMEM;
    int e = ni_store_read(r->st, r->buffer, b->len, b->offset);
    if (e < 0) return e;
    r->at = r->buffer;
  }
  r->end = r->at + b->len;
  return 0;
}

static int unpack(struct ni_segment_reader *r, struct ni_entry *e) {
  if (r->at == r->end) {
    int x = load_block(r);
    if (x < 0) return x;
  }
  const uint8_t *p = r->at;
  unsigned f = *p++;
  uint64_t v;
  struct ni_entry *l = &r->last;
  if (f & F_SN_NEXT) l->sn++;
  else {
    p = get(p, &v);
    l->sn += unfold(v);
  }
  p = get(p, &v);
  l->exec_ns = f & F_EXEC_US ? v * 1000 : v;
  l->bytes_per_s = NI_NO_BW;
  if (f & F_BW) {
    p = get(p, &v);
    l->bytes_per_s = f & F_BW_MICRO ? v * 1000 : v;
  }
  if (!(f & F_SAME_DUMP)) {
    p = get(p, &v);
    l->dump_us += unfold(v);
  }
  int64_t start = NI_NO_START;
  if (f & F_START) {
    p = get(p, &v);
    start = l->start_ns = (int64_t)((uint64_t)l->start_ns + unfold(v));
  }
  if (!(f & F_SAME_MIX)) {
    l->timing = *p++;
    l->mix = *p++;
  }
  if (!(f & F_SAME_PEER)) {
    p = get(p, &v);
    l->peer = (int32_t)((uint64_t)(int64_t)l->peer + unfold(v));
  }
  r->at = p;
  r->read++;
  *e = *l;
  e->start_ns = start;
  return 1;
}

static bool before(const struct ni_waiting *a, const struct ni_waiting *b) {
  return a->e.sn != b->e.sn ? a->e.sn < b->e.sn : a->order < b->order;
}

static int heap_push(struct ni_segment_reader *r, const struct ni_entry *e) {
  if (!ni_array_room(r->heap, r->n_heap, r->cap_heap)) return -ENOMEM;
  struct ni_waiting w = {*e, r->read};
  size_t i = r->n_heap++;
  for (; i > 0 && before(&w, &r->heap[(i - 1) / 2]); i = (i - 1) / 2) r->heap[i] = r->heap[(i - 1) / 2];
  r->heap[i] = w;
  return 0;
}

static void heap_pop(struct ni_segment_reader *r, struct ni_entry *e) {
  *e = r->heap[0].e;
  struct ni_waiting w = r->heap[--r->n_heap];
  size_t i = 0;
  for (;;) {
    size_t c = 2 * i + 1;
    if (c >= r->n_heap) break;
    if (c + 1 < r->n_heap && before(&r->heap[c + 1], &r->heap[c])) c++;
    if (!before(&r->heap[c], &w)) break;
    r->heap[i] = r->heap[c];
    i = c;
  }
  if (r->n_heap) r->heap[i] = w;
}

int ni_segment_next(struct ni_segment_reader *r, struct ni_entry *e) {
  if (r->given == r->s->n) return 0;
  r->given++;
  if (r->s->back == 0) return unpack(r, e);
  while (r->read < r->s->n && (r->n_heap == 0 || r->high < r->heap[0].e.sn + r->s->back)) {
    struct ni_entry x;
    int k = unpack(r, &x);
    if (k < 0) return k;
    if (x.sn > r->high) r->high = x.sn;
    if (heap_push(r, &x) < 0) return -ENOMEM;
  }
  heap_pop(r, e);
  return 1;
}
