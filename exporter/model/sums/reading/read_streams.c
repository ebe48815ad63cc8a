#include "reading.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "tables.h"

static bool is_stream(const struct ni_stream *s, const struct ni_stream *want) {
  return s->member == want->member && s->func == want->func && s->msg_bytes == want->msg_bytes &&
      s->kind == want->kind && s->type == want->type;
}

int ni_find_or_add_stream(struct ni_sum_range *x, const struct ni_seen_context *c, const struct ni_line *l,
                          uint32_t func, struct ni_stream **out) {
  struct ni_stream n = {
      .member = c->c.member, .func = func, .msg_bytes = l->op.msg_bytes, .type = c->type, .kind = l->is_p2p};
  struct ni_stream *s = x->last_stream;
  if (s && is_stream(s, &n)) {
    *out = s;
    return 0;
  }
  const uint64_t hash =
      ni_hash(ni_hash(n.msg_bytes, (uint64_t)n.member << 32 | func), (uint64_t)n.type << 8 | n.kind);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&x->stream_at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (is_stream(&x->stream[k], &n)) {
      x->last_stream = *out = &x->stream[k];
      return 0;
    }
  if (!ni_array_room(x->stream, x->n_streams, x->cap_streams))
    return -ENOMEM;
  struct ni_sum_cell key = {.type = c->type, .kind = n.kind, .func = func, .msg_bytes = n.msg_bytes};
  int e = ni_find_or_add_cell(x->r, &key, &n.cell);
  if (e == 0)
    e = ni_index_add(&x->stream_at_hash, hash, x->n_streams);
  if (e == 0 && !(n.piece = calloc(1, sizeof *n.piece)))
    e = -ENOMEM;
  if (e < 0)
    return e;
  n.piece->member = n.member;
  n.piece->file = (uint32_t)x->file_no;
  n.piece->range = (uint32_t)x->range_no;
  n.piece->ordinal = x->ordinal++;
  s = &x->stream[x->n_streams++];
  *s = n;
  x->last_stream = *out = s;
  return 0;
}

int ni_range_hand_over(struct ni_sum_range *x) {
  int e = 0;
  for (uint32_t i = 0; i < x->n_streams; i++) {
    struct ni_piece *p = x->stream[i].piece;
    if (e == 0)
      e = ni_segment_end(&p->s, &x->r->store);
    if (e == 0)
      e = ni_cell_add_piece(x->r, x->stream[i].cell, p);
    if (e < 0) {
      ni_segment_free(&p->s, &x->r->store);
      free(p);
    }
  }
  x->n_streams = 0;
  x->last_stream = NULL;
  ni_index_free(&x->stream_at_hash);
  return e;
}
