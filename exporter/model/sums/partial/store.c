/* The state of a run into sections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "tables.h"

/* a section of pieces, and one of accounts, ends behind this */
#define PIECES_BYTES (256u << 10)

struct placed { /* a piece and its cell */
  const struct ni_piece *piece;
  uint32_t cell;
};

static int by_place(const void *a, const void *b) {
  const struct ni_piece *x = ((const struct placed *)a)->piece, *y = ((const struct placed *)b)->piece;
  return NI_BY(x, y, file, range, ordinal);
}

static int put(const struct ni_section_to *to, enum ni_section id, struct ni_wire *w) {
  int e = w->bad ? -ENOMEM : to->put(to->arg, id, w->bytes, w->n);
  w->n = 0;
  return e;
}

/*
 * The records in order of their numbers, with the partial's codes of algorithm and protocol: a segment that
 * is never put aside.
 */
static int pack(struct ni_run *r, const struct ni_partial_numbers *x, const struct ni_piece *p,
                struct ni_segment *out) {
  struct ni_spill held = {.fd = -1, .limit_bytes = UINT64_MAX};
  struct ni_segment_reader reader;
  struct ni_entry entry;
  int e;
  ni_segment_read(&reader, &p->s, &r->store);
  while ((e = ni_segment_next(&reader, &entry)) > 0) {
    entry.mix = x->mix[entry.mix];
    if ((e = ni_segment_add(out, &held, &entry)) < 0)
      break;
  }
  ni_segment_read_end(&reader);
  return e;
}

static int put_pieces(struct ni_run *r, const struct ni_partial_numbers *x, const struct ni_section_to *to) {
  struct placed *piece = NULL;
  struct ni_wire w = {0};
  size_t n = 0, cap = 0;
  int e = 0;
  for (uint32_t c = 0; e == 0 && c < r->n_cells; c++)
    for (size_t i = 0; e == 0 && i < r->cell[c].n; i++) {
      if (!ni_array_room(piece, n, cap))
        e = -ENOMEM;
      else
        piece[n++] = (struct placed){r->cell[c].piece[i], c};
    }
  if (n)
    qsort(piece, n, sizeof *piece, by_place);
  for (size_t i = 0; e == 0 && i < n; i++) {
    const struct ni_piece *p = piece[i].piece;
    uint32_t head[] = {x->member.place[p->member], x->cell.place[piece[i].cell], p->file, p->range,
                       p->ordinal};
    struct ni_segment s = {0};
    struct ni_spill held = {.fd = -1};
    e = pack(r, x, p, &s);
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
      ni_wire_u32(&w, &head[k]);
    if (e == 0)
      e = ni_segment_encode(&s, &held, &w);
    ni_segment_free(&s, &held);
    if (e == 0 && (w.n >= PIECES_BYTES || i + 1 == n))
      e = put(to, NI_SECTION_PIECES, &w);
  }
  ni_wire_free(&w);
  free(piece);
  return e;
}

static int put_accounts(const struct ni_run *r, const struct ni_section_to *to) {
  struct ni_wire w = {0};
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < r->files.n; i++) {
    struct ni_bytes *b = &r->partial->account[i];
    if (b->at) {
      uint32_t file = i;
      NI_WIRE(&w, &file, &r->partial->parquet[i]);
      ni_wire_count(&w, &b->n, 1);
      ni_wire_bytes(&w, b->at, b->n);
    }
    if (w.n >= PIECES_BYTES || (w.n && i + 1 == r->files.n))
      e = put(to, NI_SECTION_ACCOUNTS, &w);
  }
  ni_wire_free(&w);
  return e;
}

static void wire_shards(struct ni_wire *w, struct ni_partial *p) {
  size_t n = 0;
  for (uint32_t i = 0; i < p->of; i++)
    n += p->have[i];
  ni_wire_u32(w, &p->of);
  ni_wire_count(w, &n, 1);
  for (uint32_t i = 0; i < p->of; i++)
    if (p->have[i])
      ni_wire_u32(w, &i);
}

int ni_partial_store(struct ni_run *r, const struct ni_section_to *to) {
  struct ni_partial_numbers x;
  struct ni_wire w = {0};
  ni_partial_wire_options(&w, r);
  int e = put(to, NI_SECTION_OPTIONS, &w);
  ni_partial_wire_logs(&w, r);
  if (e == 0)
    e = put(to, NI_SECTION_LOGS, &w);
  wire_shards(&w, r->partial);
  if (e == 0)
    e = put(to, NI_SECTION_SHARDS, &w);
  int ordered = ni_partial_order(r, &x);
  if (e == 0)
    e = ordered;
  if (e == 0) {
    ni_partial_wire_tables(&w, r, &x);
    e = put(to, NI_SECTION_TABLES, &w);
  }
  ni_wire_free(&w);
  if (e == 0 && !r->partial->no_pieces)
    e = put_pieces(r, &x, to);
  if (e == 0)
    e = put_accounts(r, to);
  if (e == 0)
    e = to->put(to->arg, NI_SECTION_END, NULL, 0);
  ni_partial_numbers_free(&x);
  return e < 0 ? ni_run_fail(r, e, "the partial result: %s", strerror(-e)) : e;
}
