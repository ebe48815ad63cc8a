#include "join.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "exporter/model/sums/reading/correct_clocks.h"

struct open_piece {
  struct ni_segment_reader reader;
  struct ni_entry head;
  const struct ni_piece *piece;
};

struct rank_stream {
  const struct ni_who_member *member;
  uint32_t process, seat;  /* in the result */
  struct ni_piece **piece; /* by smallest sn */
  size_t n, next;          /* pieces [next, n) are not open yet */
  struct open_piece *open;
  size_t n_open, cap_open, at; /* open[at] holds the head */
  bool has;
  struct ni_entry head;
  struct ni_stream_clock clock;
};

struct comm_streams {
  uint32_t comm, order; /* ours; place in the result */
  struct rank_stream *stream;
  size_t n;
  uint64_t sn; /* smallest head */
};

struct ni_join {
  struct ni_run *r;
  struct ni_sum_cell *cell;
  struct rank_stream *stream;
  struct comm_streams *comm, **heap;
  size_t n_heap, n_comms, n_streams;
  struct ni_op_part *part;
  size_t cap_part;
  uint64_t duplicates;
};

static bool is_piece_before(const struct ni_piece *a, const struct ni_piece *b) {
  if (a->file != b->file)
    return a->file < b->file;
  if (a->range != b->range)
    return a->range < b->range;
  return a->ordinal < b->ordinal;
}

/* By communicator, rank, process, smallest sn, place in the input. */
static int compare_by_stream(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_piece *x = *(struct ni_piece *const *)a, *y = *(struct ni_piece *const *)b;
  const struct ni_who_member *m = &r->who.member[x->member], *k = &r->who.member[y->member];
  uint32_t c = r->comm_at[m->comm], d = r->comm_at[k->comm];
  if (c != d)
    return c < d ? -1 : 1;
  if (m->rank != k->rank)
    return m->rank < k->rank ? -1 : 1;
  uint32_t p = r->process_at[m->process], q = r->process_at[k->process];
  if (p != q)
    return p < q ? -1 : 1;
  if (x->s.min_sn != y->s.min_sn)
    return x->s.min_sn < y->s.min_sn ? -1 : 1;
  return is_piece_before(x, y) ? -1 : 1;
}

static int open_next_piece(struct ni_join *j, struct rank_stream *s) {
  if (!ni_array_room_one(s->open, s->n_open, s->cap_open))
    return -ENOMEM;
  struct open_piece *o = &s->open[s->n_open];
  o->piece = s->piece[s->next++];
  ni_segment_read(&o->reader, &o->piece->s, &j->r->store);
  int e = ni_segment_next(&o->reader, &o->head);
  if (e <= 0) {
    ni_segment_read_end(&o->reader);
    return e;
  }
  s->n_open++;
  return 1;
}

static void set_head(struct rank_stream *s, const struct open_piece *o) {
  s->head = o->head;
  ni_correct_entry(&s->clock, o->piece, &s->head);
}

static bool is_head_before(const struct open_piece *a, const struct open_piece *b) {
  if (a->head.sn != b->head.sn)
    return a->head.sn < b->head.sn;
  return is_piece_before(a->piece, b->piece);
}

/* Takes the smallest of the open heads; opens a piece once its numbers may come. */
static int choose_head(struct ni_join *j, struct rank_stream *s) {
  for (;;) {
    size_t best = 0;
    for (size_t i = 1; i < s->n_open; i++)
      if (is_head_before(&s->open[i], &s->open[best]))
        best = i;
    const bool is_due =
        s->next < s->n && (!s->n_open || s->piece[s->next]->s.min_sn <= s->open[best].head.sn);
    if (!is_due) {
      s->has = s->n_open > 0;
      s->at = best;
      if (s->has)
        set_head(s, &s->open[best]);
      return 0;
    }
    int e = open_next_piece(j, s);
    if (e < 0)
      return e;
  }
}

static int advance_stream(struct ni_join *j, struct rank_stream *s) {
  struct open_piece *o = &s->open[s->at];
  int e = ni_segment_next(&o->reader, &o->head);
  if (e < 0)
    return e;
  const bool is_next_later = s->next == s->n || s->piece[s->next]->s.min_sn > o->head.sn;
  if (e > 0 && s->n_open == 1 && is_next_later) {
    set_head(s, o);
    return 0;
  }
  if (e == 0) {
    ni_segment_read_end(&o->reader);
    *o = s->open[--s->n_open];
  }
  return choose_head(j, s);
}

static bool is_comm_before(const struct comm_streams *a, const struct comm_streams *b) {
  return a->sn != b->sn ? a->sn < b->sn : a->order < b->order;
}

/* The smallest head of its streams; false: all are at their end. */
static bool find_smallest_head(struct comm_streams *c) {
  bool any = false;
  for (size_t i = 0; i < c->n; i++) {
    if (!c->stream[i].has || (any && c->stream[i].head.sn >= c->sn))
      continue;
    c->sn = c->stream[i].head.sn;
    any = true;
  }
  return any;
}

int ni_join_begin(struct ni_join **out, struct ni_run *r, struct ni_sum_cell *cell) {
  struct ni_join *j = calloc(1, sizeof *j);
  *out = j;
  if (!j)
    return -ENOMEM;
  j->r = r;
  j->cell = cell;
  qsort_r(cell->piece, cell->n, sizeof *cell->piece, compare_by_stream, r);
  size_t n_streams = 0, n_comms = 0;
  for (size_t i = 0; i < cell->n; i++) {
    bool new_stream = i == 0 || cell->piece[i]->member != cell->piece[i - 1]->member;
    n_streams += new_stream;
    n_comms += i == 0 ||
        r->who.member[cell->piece[i]->member].comm != r->who.member[cell->piece[i - 1]->member].comm;
  }
  j->stream = calloc(n_streams, sizeof *j->stream);
  j->comm = calloc(n_comms, sizeof *j->comm);
  j->heap = calloc(n_comms, sizeof(struct comm_streams *));
  if (!j->stream || !j->comm || !j->heap)
    return -ENOMEM;
  for (size_t i = 0; i < cell->n; i++) {
    const struct ni_who_member *m = &r->who.member[cell->piece[i]->member];
    if (i > 0 && cell->piece[i]->member == cell->piece[i - 1]->member) {
      j->stream[j->n_streams - 1].n++;
      continue;
    }
    struct rank_stream *s = &j->stream[j->n_streams++];
    *s = (struct rank_stream){.member = m,
                              .process = r->process_at[m->process],
                              .seat = r->seat_at[cell->piece[i]->member],
                              .piece = &cell->piece[i],
                              .n = 1,
                              .clock = ni_stream_clock(r, cell->piece[i]->member, cell)};
    if (j->n_comms == 0 || j->comm[j->n_comms - 1].comm != m->comm)
      j->comm[j->n_comms++] =
          (struct comm_streams){.comm = m->comm, .order = r->comm_at[m->comm], .stream = s};
    j->comm[j->n_comms - 1].n++;
  }
  for (size_t i = 0; i < j->n_streams; i++) {
    int e = choose_head(j, &j->stream[i]);
    if (e < 0)
      return e;
  }
  for (size_t i = 0; i < j->n_comms; i++)
    if (find_smallest_head(&j->comm[i]))
      j->heap[j->n_heap++] = &j->comm[i];
  ni_heap_make(j->heap, j->n_heap, is_comm_before);
  return 0;
}

static int append_part(struct ni_join *j, struct ni_operation *op, const struct rank_stream *s) {
  for (uint32_t i = op->n; i-- > 0 && j->part[i].rank == s->member->rank;)
    if (j->cell->kind != NI_KIND_P2P || ni_entry_peer(&j->part[i].e) == ni_entry_peer(&s->head)) {
      j->duplicates++;
      return 0;
    }
  if (!ni_array_room(j->part, op->n, j->cap_part))
    return -ENOMEM;
  j->part[op->n++] = (struct ni_op_part){s->head, s->process, s->seat, s->member->rank, s->member->nnodes};
  op->part = j->part;
  return 0;
}

int ni_join_next(struct ni_join *j, struct ni_operation *op) {
  if (j->n_heap == 0)
    return 0;
  struct comm_streams *c = j->heap[0];
  *op = (struct ni_operation){.sn = c->sn, .comm = c->comm};
  for (size_t i = 0; i < c->n; i++) {
    struct rank_stream *s = &c->stream[i];
    while (s->has && s->head.sn == c->sn) {
      int e = append_part(j, op, s);
      if (e == 0)
        e = advance_stream(j, s);
      if (e < 0)
        return e;
    }
  }
  if (!find_smallest_head(c))
    j->heap[0] = j->heap[--j->n_heap];
  ni_heap_down(j->heap, j->n_heap, 0, is_comm_before);
  return 1;
}

uint64_t ni_join_duplicates(const struct ni_join *j) { return j->duplicates; }

void ni_join_end(struct ni_join *j) {
  if (!j)
    return;
  for (size_t i = 0; i < j->n_streams; i++) {
    for (size_t k = 0; k < j->stream[i].n_open; k++)
      ni_segment_read_end(&j->stream[i].open[k].reader);
    free(j->stream[i].open);
  }
  free(j->stream);
  free(j->comm);
  free(j->heap);
  free(j->part);
  free(j);
}
