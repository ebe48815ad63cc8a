#include "cover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/now.h"

enum { FIRST_SHIFT = 24 }; /* 17 ms */

static uint64_t *bin(const struct ni_cover *c, uint64_t b) { return &c->busy[b % NI_COVER_BINS]; }

static uint64_t full(const struct ni_cover *c) { return UINT64_C(1) << c->shift; }

/* Bins twice as wide. */
static void widen(struct ni_cover *c) {
  uint64_t wide[NI_COVER_BINS] = {0};
  for (uint64_t b = c->first; b <= c->last; b++) wide[b / 2 % NI_COVER_BINS] += *bin(c, b);
  memcpy(c->busy, wide, sizeof wide);
  c->first /= 2;
  c->last /= 2;
  c->shift++;
}

/* Bins for the time between, both ends included. */
static int make_room(struct ni_cover *c, uint64_t from_ns, uint64_t to_ns) {
  if (!c->busy) {
    if (!(c->busy = calloc(NI_COVER_BINS, sizeof *c->busy))) return -ENOMEM;
    if (c->shift < FIRST_SHIFT) c->shift = FIRST_SHIFT;
    c->first = c->last = from_ns >> c->shift;
  }
  for (;; widen(c)) {
    uint64_t first = from_ns >> c->shift, last = to_ns >> c->shift;
    if (first > c->first) first = c->first;
    if (last < c->last) last = c->last;
    if (last - first >= NI_COVER_BINS) continue;
    c->first = first;
    c->last = last;
    return 0;
  }
}

int ni_cover_add(struct ni_cover *c, int64_t start_ns, int64_t end_ns) {
  if (!ni_time_of_a_job(start_ns) || !ni_time_of_a_job(end_ns) || end_ns <= start_ns) return 0;
  uint64_t at = (uint64_t)start_ns, end = (uint64_t)end_ns;
  if (make_room(c, at, end) < 0) return -ENOMEM;
  while (at < end) {
    uint64_t next = ((at >> c->shift) + 1) << c->shift;
    if (next > end) next = end;
    *bin(c, at >> c->shift) += next - at;
    at = next;
  }
  return 0;
}

int ni_cover_merge(struct ni_cover *c, const struct ni_cover *other, bool most) {
  if (!other->busy) return 0;
  struct ni_cover o = *other;
  uint64_t copy[NI_COVER_BINS];
  memcpy(copy, other->busy, sizeof copy);
  o.busy = copy;
  while (c->busy && c->shift < o.shift) widen(c);
  if (c->shift < o.shift) c->shift = o.shift;
  if (make_room(c, o.first << o.shift, ((o.last + 1) << o.shift) - 1) < 0) return -ENOMEM;
  while (o.shift < c->shift) widen(&o);
  for (uint64_t b = o.first; b <= o.last; b++) {
    uint64_t theirs = *bin(&o, b), *ours = bin(c, b);
    if (!most) *ours += theirs;
    else if (theirs > *ours) *ours = theirs;
  }
  return 0;
}

void ni_cover_free(struct ni_cover *c) {
  free(c->busy);
  *c = (struct ni_cover){0};
}

struct ni_cover_share ni_cover_between(const struct ni_cover *c, int64_t from_ns, int64_t to_ns) {
  struct ni_cover_share s = {0};
  if (!ni_time_of_a_job(from_ns) || !ni_time_of_a_job(to_ns) || to_ns <= from_ns || !c->busy) return s;
  uint64_t at = (uint64_t)from_ns, end = (uint64_t)to_ns;
  double busy = 0;
  s.all = true;
  for (uint64_t next; at < end; at = next) {
    uint64_t b = at >> c->shift, in_it = b < c->first || b > c->last ? 0 : *bin(c, b);
    next = (b + 1) << c->shift;
    if (next > end) next = end;
    if (in_it > full(c)) in_it = full(c);
    busy += (double)(next - at) * ((double)in_it / (double)full(c));
    s.some |= in_it > 0;
    s.all &= in_it == full(c);
    if (b < c->first && c->first << c->shift < end) next = next < c->first << c->shift ? c->first << c->shift : next, s.all = false;
    else if (b > c->last) next = end;
  }
  s.share = busy / (double)(to_ns - from_ns);
  return s;
}
