#include "spill_sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"

enum { READ_MIN_BYTES = 4096, READ_MAX_BYTES = 1 << 20 };

/* What stands before an item, in the buffer and in the file. */
struct item_head {
  uint64_t order;
  uint32_t len, pad;
};

struct sorted_run {
  uint64_t at, end; /* in the file, not read yet */
  char *buffer;
  size_t from, to;              /* of the buffer */
  const struct item_head *head; /* of the item at hand, which lies behind it */
};

struct ni_sort {
  struct ni_spill *store;
  ni_sort_compare *compare;
  void *arg;
  char *buffer;
  size_t used, limit;
  uint32_t *index; /* of items in the buffer, in units of 8 bytes */
  size_t n, cap;
  uint64_t order;
  struct sorted_run *run;
  size_t n_runs, cap_runs;
  struct sorted_run **heap;
  size_t n_heap, read_bytes, next;
  bool reading;
};

static size_t pad(size_t len) { return (len + 7) & ~(size_t)7; }

int ni_sort_new(struct ni_sort **out, struct ni_spill *store, uint64_t limit_bytes, ni_sort_compare *compare,
                void *arg) {
  struct ni_sort *s = *out = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  *s = (struct ni_sort){.store = store, .compare = compare, .arg = arg};
  /* The index takes 4 bytes an item, items are rarely below 60. */
  s->limit = limit_bytes - limit_bytes / 16;
  if (s->limit < 2 * (NI_SORT_ITEM_MAX + sizeof(struct item_head)))
    s->limit = 2 * (NI_SORT_ITEM_MAX + sizeof(struct item_head));
  if (s->limit > (UINT64_C(8) << 31))
    s->limit = UINT64_C(8) << 31;
  return 0;
}

void ni_sort_free(struct ni_sort *s) {
  if (!s)
    return;
  for (size_t i = 0; i < s->n_runs; i++)
    free(s->run[i].buffer);
  free(s->run);
  free(s->heap);
  free(s->buffer);
  free(s->index);
  free(s);
}

size_t ni_sort_runs(const struct ni_sort *s) { return s->n_runs; }

static int compare_items(const struct ni_sort *s, const struct item_head *a, const struct item_head *b) {
  int k = s->compare(a + 1, b + 1, s->arg);
  return k ? k : a->order < b->order ? -1 : 1;
}

static const struct item_head *find_head(const struct ni_sort *s, uint32_t at) {
  return (const void *)(s->buffer + 8 * (size_t)at);
}

static int compare_by_place(const void *a, const void *b, void *sort) {
  const struct ni_sort *s = sort;
  return compare_items(s, find_head(s, *(const uint32_t *)a), find_head(s, *(const uint32_t *)b));
}

static void sort_buffer(struct ni_sort *s) {
  if (s->n > 1)
    qsort_r(s->index, s->n, sizeof *s->index, compare_by_place, s);
}

/* The buffer becomes a run: in pieces, so that no second buffer of its size is needed. */
static int spill_buffer(struct ni_sort *s) {
  enum { PIECE = 256 << 10 };
  uint64_t offset;
  int e = ni_spill_reserve(s->store, s->used, &offset);
  char *piece = e == 0 ? malloc(PIECE) : NULL;
  if (e == 0 && (!piece || !ni_array_room(s->run, s->n_runs, s->cap_runs)))
    e = -ENOMEM;
  uint64_t at = offset;
  size_t held = 0;
  sort_buffer(s);
  for (size_t i = 0; e == 0 && i < s->n; i++) {
    const struct item_head *h = find_head(s, s->index[i]);
    size_t len = sizeof *h + pad(h->len);
    if (held + len > PIECE) {
      e = ni_spill_write(s->store, piece, held, at);
      at += held;
      held = 0;
    }
    memcpy(piece + held, h, len);
    held += len;
  }
  if (e == 0)
    e = ni_spill_write(s->store, piece, held, at);
  free(piece);
  if (e < 0)
    return e;
  s->run[s->n_runs++] = (struct sorted_run){.at = offset, .end = at + held};
  s->used = s->n = 0;
  return 0;
}

int ni_sort_add(struct ni_sort *s, const void *item, size_t len) {
  size_t need = sizeof(struct item_head) + pad(len);
  if (!s->buffer && !(s->buffer = malloc(s->limit)))
    return -ENOMEM;
  if (s->used + need > s->limit) {
    int e = spill_buffer(s);
    if (e < 0)
      return e;
  }
  if (!ni_array_room(s->index, s->n, s->cap))
    return -ENOMEM;
  struct item_head h = {.order = s->order++, .len = (uint32_t)len};
  memcpy(s->buffer + s->used, &h, sizeof h);
  memcpy(s->buffer + s->used + sizeof h, item, len);
  memset(s->buffer + s->used + sizeof h + len, 0, pad(len) - len);
  s->index[s->n++] = (uint32_t)(s->used / 8);
  s->used += need;
  return 0;
}

int ni_sort_join(struct ni_sort *s, struct ni_sort *from) {
  int e = from->n ? spill_buffer(from) : 0;
  for (size_t i = 0; e == 0 && i < from->n_runs; i++) {
    if (!ni_array_room(s->run, s->n_runs, s->cap_runs))
      e = -ENOMEM;
    else
      s->run[s->n_runs++] = from->run[i];
  }
  s->limit += from->limit;
  ni_sort_free(from);
  return e;
}

/* The next item of a run. 1, 0 at its end, -errno. */
static int advance_run(struct ni_sort *s, struct sorted_run *r) {
  for (int again = 0;; again++) {
    size_t have = r->to - r->from;
    if (have >= sizeof *r->head) {
      r->head = (const void *)(r->buffer + r->from);
      size_t len = sizeof *r->head + pad(r->head->len);
      if (have >= len) {
        r->from += len;
        return 1;
      }
    }
    if (r->at == r->end)
      return have == 0 ? 0 : -EIO;
    if (again)
      return -EIO;
    memmove(r->buffer, r->buffer + r->from, have);
    size_t room = s->read_bytes - have, left = (size_t)(r->end - r->at), n = left < room ? left : room;
    int e = ni_spill_read(s->store, r->buffer + have, n, r->at);
    if (e < 0)
      return e;
    r->at += n;
    r->from = 0;
    r->to = have + n;
  }
}

#define run_before(a, b) (compare_items(s, (a)->head, (b)->head) < 0)

static int begin_merge(struct ni_sort *s) {
  s->reading = true;
  if (s->n_runs == 0) {
    sort_buffer(s);
    return 0;
  }
  int e = s->n ? spill_buffer(s) : 0;
  if (e < 0)
    return e;
  free(s->buffer);
  free(s->index);
  s->buffer = NULL;
  s->index = NULL;
  s->read_bytes = s->limit / s->n_runs;
  if (s->read_bytes > READ_MAX_BYTES)
    s->read_bytes = READ_MAX_BYTES;
  if (s->read_bytes < READ_MIN_BYTES)
    s->read_bytes = READ_MIN_BYTES;
  s->heap = calloc(s->n_runs, sizeof *s->heap);
  if (!s->heap)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_runs; i++) {
    struct sorted_run *r = &s->run[i];
    if (!(r->buffer = malloc(s->read_bytes)))
      return -ENOMEM;
    int got = advance_run(s, r);
    if (got < 0)
      return got;
    if (got)
      s->heap[s->n_heap++] = r;
  }
  ni_heap_make(s->heap, s->n_heap, run_before);
  return 0;
}

int ni_sort_next(struct ni_sort *s, const void **item, size_t *len) {
  if (!s->reading) {
    int e = begin_merge(s);
    if (e < 0)
      return e;
  } else if (s->n_runs && s->n_heap) {
    int got = advance_run(s, s->heap[0]);
    if (got < 0)
      return got;
    if (got == 0)
      s->heap[0] = s->heap[--s->n_heap];
    ni_heap_down(s->heap, s->n_heap, 0, run_before);
  }
  if (s->n_runs ? s->n_heap == 0 : s->next == s->n)
    return 0;
  const struct item_head *h = s->n_runs ? s->heap[0]->head : find_head(s, s->index[s->next++]);
  *item = h + 1;
  *len = h->len;
  return 1;
}
