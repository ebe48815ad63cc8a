#include "reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "tables.h"

int ni_find_stream(struct ni_reading *x, const struct ni_seen_context *c, const struct ni_line *l, uint32_t func,
                       struct ni_stream **out) {
  uint64_t msg = l->op.msg_bytes;
  uint8_t kind = l->is_p2p;
  struct ni_stream *s = x->last_stream;
  if (s && s->member == c->c.member && s->func == func && s->msg_bytes == msg && s->kind == kind) {
    *out = s;
    return 0;
  }
  const uint64_t hash = ni_hash(ni_hash(msg, (uint64_t)c->c.member << 32 | func), kind);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&x->stream_at_hash, hash, &at)) != NI_INDEX_NONE;) {
    s = &x->stream[k];
    if (s->member == c->c.member && s->func == func && s->msg_bytes == msg && s->kind == kind) {
      x->last_stream = *out = s;
      return 0;
    }
  }
  if (!ni_array_room(x->stream, x->n_streams, x->cap_streams)) return -ENOMEM;
  struct ni_stream n = {.member = c->c.member, .func = func, .msg_bytes = msg, .kind = kind};
  struct ni_sum_cell key = {.type = (uint8_t)ni_comm_type_of(x->r, c->n_ranks, c->c.nnodes), .kind = kind, .func = func,
                            .msg_bytes = msg};
  int e = ni_find_cell(x->r, &key, &n.cell);
  if (e == 0) e = ni_index_add(&x->stream_at_hash, hash, x->n_streams);
  if (e == 0 && !(n.piece = calloc(1, sizeof *n.piece))) e = -ENOMEM;
  if (e < 0) return e;
  n.piece->member = n.member;
  n.piece->file = (uint32_t)x->file_no;
  n.piece->range = (uint32_t)x->range_no;
  n.piece->ordinal = x->ordinal++;
  s = &x->stream[x->n_streams++];
  *s = n;
  x->last_stream = *out = s;
  return 0;
}

int ni_hand_over(struct ni_reading *x) {
  int e = 0;
  for (uint32_t i = 0; i < x->n_streams; i++) {
    struct ni_piece *p = x->stream[i].piece;
    if (e == 0) e = ni_segment_end(&p->s, &x->r->store);
    if (e == 0) e = ni_cell_take(x->r, x->stream[i].cell, p);
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
