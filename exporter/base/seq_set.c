#include "seq_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* Index of the first range that ends at or after sn. */
static size_t find_range(const struct ni_seq_set *s, uint64_t sn) {
  size_t i;
  ni_array_search(i, s->n, s->range[i].to < sn);
  return i;
}

static void fold_half(struct ni_seq_set *s) {
  size_t half = s->n / 2;
  s->floor = s->range[half].from;
  s->n -= half;
  memmove(s->range, s->range + half, s->n * sizeof *s->range);
}

static int insert_range(struct ni_seq_set *s, size_t i, uint64_t sn) {
  if (!ni_array_room(s->range, s->n, s->cap))
    return -ENOMEM;
  memmove(s->range + i + 1, s->range + i, (s->n - i) * sizeof *s->range);
  s->range[i] = (struct ni_seq_range){sn, sn};
  s->n++;
  return 0;
}

int ni_seq_set_add(struct ni_seq_set *s, uint64_t sn) {
  if (sn < s->floor) {
    s->unsure++;
    return 0;
  }
  /* Nearly always the number after the last one. */
  size_t i = s->n > 0 && sn > s->range[s->n - 1].to ? s->n : find_range(s, sn);
  if (i < s->n && s->range[i].from <= sn) {
    s->doubles++;
    return 0;
  }
  if (i > 0 && s->range[i - 1].to + 1 == sn) {
    s->range[i - 1].to = sn;
    if (i < s->n && s->range[i].from == sn + 1) {
      s->range[i - 1].to = s->range[i].to;
      memmove(s->range + i, s->range + i + 1, (s->n - i - 1) * sizeof *s->range);
      s->n--;
    }
  } else if (i < s->n && s->range[i].from == sn + 1) {
    s->range[i].from = sn;
  } else {
    int e = insert_range(s, i, sn);
    if (e < 0)
      return e;
    if (s->n > NI_SEQ_SET_MAX)
      fold_half(s);
  }
  if (!s->distinct++ || sn < s->lowest)
    s->lowest = sn;
  if (sn > s->highest)
    s->highest = sn;
  return 0;
}

void ni_seq_set_free(struct ni_seq_set *s) {
  free(s->range);
  *s = (struct ni_seq_set){0};
}

uint64_t ni_seq_set_missing(const struct ni_seq_set *s, uint64_t from) {
  return s->distinct ? s->highest - from + 1 - s->distinct : 0;
}

uint64_t ni_seq_set_below(const struct ni_seq_set *s, uint64_t end) {
  uint64_t n = s->distinct;
  for (size_t i = s->n; i-- > 0 && s->range[i].to >= end;) {
    uint64_t from = s->range[i].from > end ? s->range[i].from : end;
    n -= s->range[i].to - from + 1;
  }
  return n < end ? n : end;
}

int ni_seq_set_first_hole(const struct ni_seq_set *s, uint64_t from, struct ni_seq_range *out) {
  if (!s->distinct || s->floor > 0)
    return 0;
  if (s->range[0].from > from) {
    *out = (struct ni_seq_range){from, s->range[0].from - 1};
    return 1;
  }
  if (s->n < 2)
    return 0;
  *out = (struct ni_seq_range){s->range[0].to + 1, s->range[1].from - 1};
  return 1;
}

bool ni_seq_set_has(const struct ni_seq_set *s, uint64_t sn) {
  size_t i = find_range(s, sn);
  return i < s->n && s->range[i].from <= sn;
}

int ni_seq_set_merge(struct ni_seq_set *a, const struct ni_seq_set *b) {
  if (!b->n)
    return 0;
  struct ni_seq_range *out = malloc((a->n + b->n) * sizeof *out);
  if (!out)
    return -ENOMEM;
  size_t n = 0;
  uint64_t distinct = 0;
  for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
    bool mine = k == b->n || (i < a->n && a->range[i].from <= b->range[k].from);
    struct ni_seq_range r = mine ? a->range[i++] : b->range[k++];
    /*
     * Touching or overlapping: one range. A range that ends at the last number there is touches whatever
     * follows.
     */
    if (n && (out[n - 1].to == UINT64_MAX || r.from <= out[n - 1].to + 1)) {
      if (r.to > out[n - 1].to)
        out[n - 1].to = r.to;
    } else {
      out[n++] = r;
    }
  }
  for (size_t i = 0; i < n; i++)
    distinct += out[i].to - out[i].from + 1;
  uint64_t folded = a->distinct + b->distinct;
  for (size_t i = 0; i < a->n; i++)
    folded -= a->range[i].to - a->range[i].from + 1;
  for (size_t i = 0; i < b->n; i++)
    folded -= b->range[i].to - b->range[i].from + 1;
  free(a->range);
  a->range = out;
  a->cap = a->n + b->n;
  a->n = n;
  a->doubles += a->distinct + b->distinct - folded - distinct + b->doubles;
  a->lowest = a->distinct && a->lowest < b->lowest ? a->lowest : b->lowest;
  a->highest = a->distinct && a->highest > b->highest ? a->highest : b->highest;
  a->distinct = distinct + folded; /* numbers that fold_half() took out are in no range and stay counted */
  a->unsure += b->unsure;
  if (b->floor > a->floor)
    a->floor = b->floor;
  while (a->n > NI_SEQ_SET_MAX)
    fold_half(a);
  return 0;
}

void ni_seq_set_wire(struct ni_wire *w, struct ni_seq_set *s) {
  size_t n = s->n;
  ni_wire_count(w, &n, 2);
  if (w->load) {
    w->bad |= n > NI_SEQ_SET_MAX || (n && !ni_array_exact(&s->range, &s->cap, n, sizeof *s->range));
    s->n = w->bad ? 0 : n;
  }
  uint64_t before = 0, there = 0;
  for (size_t i = 0; i < s->n; i++) { /* distances, which cannot fall */
    struct ni_seq_range *r = &s->range[i];
    uint64_t gap = r->from - before, len = r->to - r->from;
    NI_WIRE(w, &gap, &len);
    r->from = before + gap;
    r->to = r->from + len;
    w->bad |= r->from < before || r->to < r->from || (i && gap < 2) || len == UINT64_MAX;
    there += len + 1;
    before = r->to;
  }
  NI_WIRE(w, &s->distinct, &s->doubles, &s->unsure, &s->floor, &s->lowest, &s->highest);
  const bool has_wrong_bounds = s->n && (s->lowest > s->range[0].from || s->highest != before);
  w->bad |= s->distinct < there || has_wrong_bounds || s->lowest > s->highest;
}
