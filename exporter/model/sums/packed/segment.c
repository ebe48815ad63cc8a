#include "segment.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/bytes/varint.h"
#include "exporter/base/heap.h"
#include "exporter/model/ledger/gpu_points.h"
#include "exporter/model/ledger/implausible.h"
#include "format/names.h"

enum { FIRST_BLOCK_BYTES = 88, BLOCK_BYTES = 8192, ENTRY_MAX_BYTES = 88, SMALL_BYTES = 256 };

/* First byte of a record. */
enum {
  F_SN_NEXT = 1,  /* sn is the last one + 1 */
  F_SAME_MIX = 2, /* timing, algorithm, protocol and tag as before */
  F_BW_MICRO = 4, /* bandwidth has six decimals in GB/s, as logs write it: stored in thousands */
  F_BW = 8,
  F_START = 16,
  F_EXEC_US = 32, /* whole µs */
  F_SAME_DUMP = 64,
  F_SAME_PEER = 128,
};

/* Of the byte that has the timing. */
enum {
  M_TIMING = 15,
  M_STATED = 16, /* another stated offset follows */
  M_TAIL = 32,
  M_TAG = 64,  /* the tag follows */
  M_LEAD = 128 /* the lead is known, and follows in each record */
};
_Static_assert(NI_TIMING_COUNT <= M_TIMING + 1, "timings fit");

static inline const uint8_t *decode_varint(const uint8_t *p, uint64_t *v) {
  uint64_t x = *p & 127;
  for (unsigned shift = 7; *p++ & 128 && shift < 64; shift += 7)
    x |= (uint64_t)(*p & 127) << shift;
  *v = x;
  return p;
}

static int spill_block(struct ni_spill *st, struct ni_segment_block *b) {
  int e = ni_spill_reserve(st, b->len, &b->offset);
  return e < 0 ? e : ni_spill_write(st, b->at, b->len, b->offset);
}

/* A short block gets twice the room, so that a short segment is one: it is read and written at once. */
static int grow_block(struct ni_segment_block *b, struct ni_spill *st) {
  uint32_t size = 2 * b->size < BLOCK_BYTES ? 2 * b->size : BLOCK_BYTES;
  uint8_t *more = realloc(b->at, size);
  if (!more)
    return -ENOMEM;
  atomic_fetch_add_explicit(&st->held_bytes, size - b->size, memory_order_relaxed);
  b->at = more;
  b->size = size;
  return 0;
}

static int append_block(struct ni_segment *s, struct ni_spill *st) {
  struct ni_segment_block *last = s->n_blocks ? &s->block[s->n_blocks - 1] : NULL;
  uint8_t *memory = NULL;
  uint32_t size = last ? BLOCK_BYTES : FIRST_BLOCK_BYTES;
  if (last && last->size < BLOCK_BYTES)
    return grow_block(last, st);
  if (!ni_array_room_one(s->block, s->n_blocks, s->cap_blocks))
    return -ENOMEM;
  if (last)
    last = &s->block[s->n_blocks - 1];
  if (last && atomic_load_explicit(&st->held_bytes, memory_order_relaxed) >= st->limit_bytes) {
    int e = spill_block(st, last);
    if (e < 0)
      return e;
    memory = last->at;
    last->at = NULL;
  } else {
    memory = malloc(size);
    if (!memory)
      return -ENOMEM;
    atomic_fetch_add_explicit(&st->held_bytes, size, memory_order_relaxed);
  }
  s->block[s->n_blocks++] = (struct ni_segment_block){memory, 0, 0, size};
  return 0;
}

static bool is_same_mix(const struct ni_entry *a, const struct ni_entry *b) {
  const bool both_lead = (a->lead_us == NI_NO_LEAD) == (b->lead_us == NI_NO_LEAD);
  return a->timing == b->timing && a->mix == b->mix && both_lead && a->tail == b->tail && a->tag == b->tag &&
      a->stated_ns == b->stated_ns;
}

/* Of the record before, what its own lead is the difference to. */
static int64_t lead_before(const struct ni_entry *l) { return l->lead_us == NI_NO_LEAD ? 0 : l->lead_us; }

/* From `at` on, as differences to l, with room for ENTRY_MAX_BYTES. Returns the end. */
static uint8_t *encode_entry(uint8_t *at, const struct ni_entry *l, const struct ni_entry *e) {
  uint8_t *p = at + 1;
  unsigned f = 0;
  if (e->sn == l->sn + 1)
    f |= F_SN_NEXT;
  else
    p = ni_put_varint(p, ni_fold(e->sn - l->sn));
  if (e->exec_ns % 1000 == 0) {
    f |= F_EXEC_US;
    p = ni_put_varint(p, e->exec_ns / 1000);
  } else {
    p = ni_put_varint(p, e->exec_ns);
  }
  if (e->bytes_per_s != NI_NO_BW) {
    f |= F_BW;
    const bool micro = e->bytes_per_s % 1000 == 0;
    if (micro)
      f |= F_BW_MICRO;
    p = ni_put_varint(p, micro ? e->bytes_per_s / 1000 : e->bytes_per_s);
  }
  if (e->dump_us == l->dump_us)
    f |= F_SAME_DUMP;
  else
    p = ni_put_varint(p, ni_fold(e->dump_us - l->dump_us));
  if (e->start_ns != NI_NO_START) {
    f |= F_START;
    p = ni_put_varint(p, ni_fold((uint64_t)e->start_ns - (uint64_t)l->start_ns));
  }
  if (is_same_mix(e, l)) {
    f |= F_SAME_MIX;
  } else {
    unsigned mix = e->timing;
    if (e->lead_us != NI_NO_LEAD)
      mix |= M_LEAD;
    if (e->tail)
      mix |= M_TAIL;
    if (e->tag)
      mix |= M_TAG;
    if (e->stated_ns != l->stated_ns)
      mix |= M_STATED;
    *p++ = (uint8_t)mix;
    *p++ = e->mix;
    if (e->tag)
      p = ni_put_varint(p, e->tag);
    if (e->stated_ns != l->stated_ns)
      p = ni_put_varint(p, ni_fold((uint64_t)e->stated_ns - (uint64_t)l->stated_ns));
  }
  if (e->lead_us != NI_NO_LEAD)
    p = ni_put_varint(p, ni_fold((uint64_t)((int64_t)e->lead_us - lead_before(l))));
  if (e->peer_or_wait == l->peer_or_wait)
    f |= F_SAME_PEER;
  else
    p = ni_put_varint(p, ni_fold((uint64_t)e->peer_or_wait - (uint64_t)l->peer_or_wait));
  *at = (uint8_t)f;
  return p;
}

int ni_segment_add(struct ni_segment *s, struct ni_spill *st, const struct ni_entry *e) {
  if (!s->last && !(s->last = calloc(1, sizeof *s->last)))
    return -ENOMEM;
  if (s->n_blocks == 0 || s->block[s->n_blocks - 1].len + ENTRY_MAX_BYTES > s->block[s->n_blocks - 1].size) {
    int r = append_block(s, st);
    if (r < 0)
      return r;
  }
  struct ni_segment_block *b = &s->block[s->n_blocks - 1];
  const uint8_t *end = encode_entry(b->at + b->len, s->last, e);
  b->len = (uint32_t)(end - b->at);
  if (s->n == 0)
    s->min_sn = s->max_sn = e->sn;
  if (e->sn < s->min_sn)
    s->min_sn = e->sn;
  if (e->sn > s->max_sn)
    s->max_sn = e->sn;
  if (s->max_sn - e->sn > s->back)
    s->back = s->max_sn - e->sn;
  int64_t start = s->last->start_ns;
  *s->last = *e;
  if (e->start_ns == NI_NO_START)
    s->last->start_ns = start;
  s->n++;
  return 0;
}

/*
 * Over the limit whatever is left of a segment goes too: many short ones would otherwise be held as a whole.
 */
static int spill_rest(struct ni_segment *s, struct ni_spill *st) {
  for (size_t i = 0; i < s->n_blocks; i++) {
    struct ni_segment_block *b = &s->block[i];
    if (!b->at)
      continue;
    int e = spill_block(st, b);
    if (e < 0)
      return e;
    free(b->at);
    b->at = NULL;
    atomic_fetch_sub_explicit(&st->held_bytes, b->size, memory_order_relaxed);
  }
  return 0;
}

int ni_segment_end(struct ni_segment *s, struct ni_spill *st) {
  free(s->last);
  s->last = NULL;
  if (s->n_blocks == 0)
    return 0;
  struct ni_segment_block *b = &s->block[s->n_blocks - 1];
  if (atomic_load_explicit(&st->held_bytes, memory_order_relaxed) >= st->limit_bytes &&
      (s->n_blocks > 1 || b->len > SMALL_BYTES))
    return spill_rest(s, st);
  size_t cap = b->size;
  ni_array_fit(b->at, b->len, cap);
  atomic_fetch_sub_explicit(&st->held_bytes, b->size - cap, memory_order_relaxed);
  b->size = (uint32_t)cap;
  return 0;
}

void ni_segment_free(struct ni_segment *s, struct ni_spill *st) {
  for (size_t i = 0; i < s->n_blocks; i++) {
    if (!s->block[i].at)
      continue;
    atomic_fetch_sub_explicit(&st->held_bytes, s->block[i].size, memory_order_relaxed);
    free(s->block[i].at);
  }
  free(s->block);
  free(s->last);
  s->block = NULL;
  s->last = NULL;
  s->n_blocks = 0;
}

void ni_segment_read(struct ni_segment_reader *r, const struct ni_segment *s, struct ni_spill *st) {
  *r = (struct ni_segment_reader){.s = s, .st = st};
}

void ni_segment_read_end(struct ni_segment_reader *r) {
  free(r->buffer);
  free(r->heap);
  r->buffer = NULL;
  r->heap = NULL;
}

static int load_block(struct ni_segment_reader *r) {
  const struct ni_segment_block *b = &r->s->block[r->block++];
  r->at = b->at;
  if (!r->at) {
    if (!r->buffer && !(r->buffer = malloc(BLOCK_BYTES)))
      return -ENOMEM;
    int e = ni_spill_read(r->st, r->buffer, b->len, b->offset);
    if (e < 0)
      return e;
    r->at = r->buffer;
  }
  r->end = r->at + b->len;
  return 0;
}

static int decode_entry(struct ni_segment_reader *r, struct ni_entry *e) {
  if (r->at == r->end) {
    int x = load_block(r);
    if (x < 0)
      return x;
  }
  const uint8_t *p = r->at;
  unsigned f = *p++;
  uint64_t v;
  struct ni_entry *l = &r->last;
  if (f & F_SN_NEXT)
    l->sn++;
  else {
    p = decode_varint(p, &v);
    l->sn += ni_unfold(v);
  }
  p = decode_varint(p, &v);
  l->exec_ns = f & F_EXEC_US ? v * 1000 : v;
  l->bytes_per_s = NI_NO_BW;
  if (f & F_BW) {
    p = decode_varint(p, &v);
    l->bytes_per_s = f & F_BW_MICRO ? v * 1000 : v;
  }
  if (!(f & F_SAME_DUMP)) {
    p = decode_varint(p, &v);
    l->dump_us += ni_unfold(v);
  }
  int64_t start = NI_NO_START;
  if (f & F_START) {
    p = decode_varint(p, &v);
    start = l->start_ns = (int64_t)((uint64_t)l->start_ns + ni_unfold(v));
  }
  if (!(f & F_SAME_MIX)) {
    const unsigned m = *p++;
    l->timing = m & M_TIMING;
    l->tail = m & M_TAIL;
    if (!(m & M_LEAD))
      l->lead_us = NI_NO_LEAD;
    else if (l->lead_us == NI_NO_LEAD)
      l->lead_us = 0;
    l->mix = *p++;
    l->tag = 0;
    if (m & M_TAG)
      p = decode_varint(p, &l->tag);
    if (m & M_STATED) {
      p = decode_varint(p, &v);
      l->stated_ns = (int64_t)((uint64_t)l->stated_ns + ni_unfold(v));
    }
  }
  if (l->lead_us != NI_NO_LEAD) {
    p = decode_varint(p, &v);
    l->lead_us = (int32_t)(uint32_t)((uint64_t)l->lead_us + ni_unfold(v));
  }
  if (!(f & F_SAME_PEER)) {
    p = decode_varint(p, &v);
    l->peer_or_wait = (int64_t)((uint64_t)l->peer_or_wait + ni_unfold(v));
  }
  r->at = p;
  r->read++;
  *e = *l;
  e->start_ns = start;
  return 1;
}

int ni_segment_encode(const struct ni_segment *s, struct ni_spill *st, struct ni_wire *w) {
  uint64_t n = s->n;
  size_t bytes = 0;
  for (size_t k = 0; k < s->n_blocks; k++)
    bytes += s->block[k].len;
  ni_wire_u64(w, &n);
  ni_wire_count(w, &bytes, 1);
  for (size_t k = 0; k < s->n_blocks; k++) {
    const struct ni_segment_block *b = &s->block[k];
    uint8_t read[BLOCK_BYTES];
    int e = b->at ? 0 : ni_spill_read(st, read, b->len, b->offset);
    if (e < 0)
      return e;
    ni_wire_bytes(w, b->at ? b->at : read, b->len);
  }
  return 0;
}

static bool is_valid_entry(const struct ni_entry *e, unsigned n_mix) {
  const bool has_valid_time = e->exec_ns > 0 && e->exec_ns <= NI_MAX_EXEC_NS;
  const bool has_valid_codes = e->timing < NI_TIMING_COUNT && e->mix < n_mix && e->tag <= INT64_MAX &&
      ni_gpu_offset_sound(e->stated_ns);
  const bool has_valid_busbw =
      e->bytes_per_s == NI_NO_BW || e->bytes_per_s <= (uint64_t)(NI_MAX_BUSBW_GBS * 1e9);
  return has_valid_time && has_valid_codes && has_valid_busbw;
}

int ni_segment_decode(struct ni_segment *s, struct ni_spill *st, struct ni_wire *w, const uint8_t *mix,
                      unsigned n_mix) {
  uint64_t n = 0;
  size_t bytes = 0;
  ni_wire_u64(w, &n);
  ni_wire_count(w, &bytes, 1);
  const uint8_t *at = ni_wire_bytes(w, NULL, bytes);
  if (w->bad || !n)
    return -EINVAL;
  struct ni_segment_reader r = {.at = at, .end = at + bytes};
  struct ni_entry e;
  int error = 0;
  for (uint64_t i = 0; error == 0 && i < n; i++) {
    if (r.at >= r.end)
      return -EINVAL;
    decode_entry(&r, &e);
    if (r.at > r.end || !is_valid_entry(&e, n_mix))
      return -EINVAL;
    e.mix = mix[e.mix];
    error = ni_segment_add(s, st, &e);
  }
  if (error < 0)
    return error;
  return r.at == r.end ? ni_segment_end(s, st) : -EINVAL;
}

static inline bool is_entry_before(const struct ni_waiting *a, const struct ni_waiting *b) {
  return a->e.sn != b->e.sn ? a->e.sn < b->e.sn : a->order < b->order;
}
#define IS_BEFORE(a, b) is_entry_before(&(a), &(b))

int ni_segment_next(struct ni_segment_reader *r, struct ni_entry *e) {
  if (r->given == r->s->n)
    return 0;
  r->given++;
  if (r->s->back == 0)
    return decode_entry(r, e);
  while (r->read < r->s->n) {
    const bool may_come_before = r->n_heap == 0 || r->high < r->heap[0].e.sn + r->s->back;
    struct ni_entry x;
    if (!may_come_before)
      break;
    int k = decode_entry(r, &x);
    if (k < 0)
      return k;
    if (x.sn > r->high)
      r->high = x.sn;
    if (!ni_array_room(r->heap, r->n_heap, r->cap_heap))
      return -ENOMEM;
    r->heap[r->n_heap++] = (struct ni_waiting){x, r->read};
    ni_heap_up(r->heap, r->n_heap - 1, IS_BEFORE);
  }
  *e = r->heap[0].e;
  r->heap[0] = r->heap[--r->n_heap];
  ni_heap_down(r->heap, r->n_heap, 0, IS_BEFORE);
  return 1;
}
