/* Records to their owners. */
#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/partial/tables.h"
#include "team.h"

#define LETTER_BYTES (1u << 20) /* about so much goes at once */
enum { SHARES = 4 };            /* ranges for a rank's share of the records */

struct range { /* of a cell's numbers; owner of the first part, how many there are */
  uint64_t least, width;
  uint32_t base, parts;
};
struct parcel {
  struct ni_piece *piece;
  uint32_t cell, to; /* cell: in the result */
};
struct mail {
  struct ni_run *r;
  struct ni_summary *s;
  struct ni_partial_numbers x;
  uint8_t mix[NI_MIX_MAX + 1]; /* what codes of others become */
  struct range *range;
  struct parcel *item;
  size_t n, cap;
  bool to_root;
};

static struct ni_sum_cell *cell_at(const struct mail *m, size_t i) {
  return &m->r->cell[m->r->cell_order[i]];
}

static int plan(struct mail *m) {
  const struct ni_team *t = m->r->team;
  const uint32_t size = (uint32_t)t->size, rank = (uint32_t)t->rank;
  uint64_t *end = malloc((2 * m->s->n_cells + 1) * sizeof *end), all = 0, turn = 0;
  if (!end || !(m->range = calloc(m->s->n_cells + 1, sizeof *m->range))) {
    free(end);
    return -ENOMEM;
  }
  for (size_t i = 0; i < m->s->n_cells; i++) {
    const struct ni_sum_cell *c = cell_at(m, i);
    all += c->records;
    end[2 * i] = end[2 * i + 1] = UINT64_MAX;
    for (size_t k = 0; k < c->n; k++) {
      const struct ni_segment *s = &c->piece[k]->s;
      if (s->min_sn < end[2 * i])
        end[2 * i] = s->min_sn;
      if (~s->max_sn < end[2 * i + 1])
        end[2 * i + 1] = ~s->max_sn;
    }
  }
  t->least(end, 2 * m->s->n_cells);
  const uint64_t share = all / SHARES / size + 1;
  for (size_t i = 0; i < m->s->n_cells; i++) {
    const struct ni_sum_cell *c = cell_at(m, i);
    struct range *x = &m->range[i];
    const bool whole = m->to_root || c->kind == NI_KIND_P2P || m->r->opt.skip_first;
    uint64_t parts = whole ? 1 : c->records / share + 1, span = ~end[2 * i + 1] - end[2 * i];
    if (parts > size)
      parts = size;
    *x = (struct range){end[2 * i], span / parts + 1, (uint32_t)(turn % size), (uint32_t)parts};
    if (m->to_root)
      x->base = 0;
    else if (c->kind == NI_KIND_P2P)
      x->base = (uint32_t)(ni_mix(c->msg_bytes * NI_TYPE_COUNT + c->type + 1) % size);
    else
      turn += parts;
    const uint32_t mine = (rank + size - x->base) % size;
    m->s->cell[i].chunk = mine;
    m->s->cell[i].chunks = mine < parts ? (uint32_t)parts : 0;
  }
  free(end);
  return 0;
}

/* A piece comes in order of its numbers, so its parts one after the other. */
static int cut(struct mail *m, uint32_t at, const struct ni_piece *p) {
  const struct range *x = &m->range[at];
  const uint32_t size = (uint32_t)m->r->team->size, rank = (uint32_t)m->r->team->rank;
  struct ni_segment_reader reader;
  struct ni_entry entry;
  struct parcel *now = NULL;
  uint64_t part = UINT64_MAX;
  int e;
  ni_segment_read(&reader, &p->s, &m->r->store);
  while ((e = ni_segment_next(&reader, &entry)) > 0) {
    const uint64_t k = (entry.sn - x->least) / x->width;
    if (k != part) {
      if (now && (e = ni_segment_end(&now->piece->s, &m->r->store)) < 0)
        break;
      struct ni_piece *piece = ni_array_room(m->item, m->n, m->cap) ? calloc(1, sizeof *piece) : NULL;
      if (!piece) {
        e = -ENOMEM;
        break;
      }
      *piece =
          (struct ni_piece){.member = p->member, .file = p->file, .range = p->range, .ordinal = p->ordinal};
      now = &m->item[m->n++];
      *now = (struct parcel){piece, at, (uint32_t)((x->base + k) % size)};
      part = k;
    }
    if (now->to != rank)
      entry.mix = m->x.mix[entry.mix];
    if ((e = ni_segment_add(&now->piece->s, &m->r->store, &entry)) < 0)
      break;
  }
  ni_segment_read_end(&reader);
  return e == 0 && now ? ni_segment_end(&now->piece->s, &m->r->store) : e;
}

static int cut_all(struct mail *m) {
  int e = 0;
  for (uint32_t i = 0; i < m->s->n_cells; i++) {
    struct ni_sum_cell *c = cell_at(m, i);
    for (size_t k = 0; k < c->n; k++) {
      if (e == 0)
        e = cut(m, i, c->piece[k]);
      ni_segment_free(&c->piece[k]->s, &m->r->store);
      free(c->piece[k]);
    }
    c->n = 0;
  }
  return e;
}

/* The cell's number of records stays that of all ranks. */
static int keep(struct mail *m, uint32_t at, struct ni_piece *p) {
  struct ni_sum_cell *c = cell_at(m, at);
  if (!ni_array_room(c->piece, c->n, c->cap))
    return -ENOMEM;
  c->piece[c->n++] = p;
  return 0;
}

static void forget(struct mail *m, struct ni_piece *p) {
  if (p)
    ni_segment_free(&p->s, &m->r->store);
  free(p);
}

/* Some of the parcels [*at, end); it says whether more come. */
static int write_letter(struct mail *m, size_t *at, size_t end, struct ni_wire *w) {
  bool follows = true, none = false;
  int e = 0;
  w->n = 0;
  for (; e == 0 && *at < end && w->n < LETTER_BYTES; ++*at) {
    struct ni_piece *p = m->item[*at].piece;
    uint32_t head[] = {m->item[*at].cell, m->x.member.place[p->member], p->file, p->range, p->ordinal};
    ni_wire_bool(w, &follows);
    for (size_t k = 0; k < sizeof head / sizeof *head; k++)
      ni_wire_u32(w, &head[k]);
    e = ni_segment_encode(&p->s, &m->r->store, w);
    forget(m, p);
    m->item[*at].piece = NULL;
  }
  follows = *at < end;
  NI_WIRE(w, &none, &follows);
  return w->bad ? -ENOMEM : e;
}

static int read_letter(struct mail *m, const struct ni_bytes *b, bool *more) {
  struct ni_wire w = ni_wire_load(b->at, b->n);
  bool follows = false;
  int e = 0;
  for (ni_wire_bool(&w, &follows); e == 0 && follows; ni_wire_bool(&w, &follows)) {
    struct ni_piece *p = calloc(1, sizeof *p);
    uint32_t cell = 0;
    if (!p)
      return -ENOMEM;
    NI_WIRE(&w, &cell, &p->member, &p->file, &p->range, &p->ordinal);
    e = ni_segment_decode(&p->s, &m->r->store, &w, m->mix, m->x.n_mix);
    p->member = m->x.member.number[p->member];
    if (e == 0)
      e = keep(m, cell, p);
    if (e < 0)
      forget(m, p);
  }
  ni_wire_bool(&w, more);
  return w.bad ? -EINVAL : e;
}

static NI_ORDER_BY(by_receiver, struct parcel, to, cell);

/* In each round every rank sends to one and receives from one. */
static int exchange(struct mail *m) {
  const struct ni_team *t = m->r->team;
  struct ni_wire w = {0};
  int e = 0;
  if (m->n)
    qsort(m->item, m->n, sizeof *m->item, by_receiver);
  for (int k = 0; e == 0 && k < t->size; k++) {
    const int to = (t->rank + k) % t->size, from = (t->rank + t->size - k) % t->size;
    size_t at, end;
    ni_array_search(at, m->n, m->item[at].to < (uint32_t)to);
    for (end = at; end < m->n && m->item[end].to == (uint32_t)to;)
      end++;
    bool sends = k > 0, receives = k > 0;
    for (; k == 0 && e == 0 && at < end; m->item[at++].piece = NULL)
      e = keep(m, m->item[at].cell, m->item[at].piece);
    while (e == 0 && (sends || receives)) {
      struct ni_bytes got = {0};
      if (sends)
        e = write_letter(m, &at, end, &w);
      if (e == 0)
        e = t->swap(sends ? to : -1, &w, receives ? from : -1, &got);
      sends = sends && at < end;
      if (e == 0 && receives)
        e = read_letter(m, &got, &receives);
      free(got.at);
    }
  }
  ni_wire_free(&w);
  return e;
}

int ni_team_spread(struct ni_run *r, struct ni_summary *s, bool to_root) {
  struct mail m = {.r = r, .s = s, .to_root = to_root};
  int e = ni_partial_order(r, &m.x);
  for (unsigned i = 0; e == 0 && i < r->n_mix; i++)
    m.mix[m.x.mix[i]] = (uint8_t)i;
  if (e == 0)
    e = plan(&m);
  if (e == 0)
    e = cut_all(&m);
  if (e == 0)
    e = exchange(&m);
  for (size_t i = 0; i < m.n; i++)
    forget(&m, m.item[i].piece);
  free(m.item);
  free(m.range);
  if (to_root)
    r->team = NULL;
  ni_partial_numbers_free(&m.x);
  return e;
}
