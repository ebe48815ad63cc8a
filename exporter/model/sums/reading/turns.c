#include "turns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "exporter/base/order.h"
#include "exporter/model/clocks/turn.h"
#include "exporter/model/sums/partial/tables.h"
#include "exporter/model/sums/team/team.h"

static int compare_streams(const void *a, const void *b) {
  const struct ni_turns_stream *x = a, *y = b;
  return NI_BY(x, y, member, kind, func);
}

const struct ni_clock_turns *ni_turns_of(const struct ni_turns *t, const struct ni_turns_stream *stream) {
  size_t i;
  ni_array_search(i, t->n, compare_streams(&t->item[i], stream) < 0);
  return i < t->n && compare_streams(&t->item[i], stream) == 0 ? &t->item[i].turns : NULL;
}

static void free_turns(struct ni_turns *t) {
  free(t->item);
  *t = (struct ni_turns){0};
}

/* ---- one stream ---- */

struct stream_part { /* a segment of a stream */
  uint32_t member, func;
  uint8_t kind;
  uint64_t min_sn;
  const struct ni_piece *piece;
};

struct open_part {
  struct ni_segment_reader reader;
  struct ni_entry head;
  const struct ni_piece *piece;
  size_t order; /* of parts that have one number: two logs may hold the same record */
};

struct stream_merge {
  struct ni_run *r;
  const struct stream_part *part; /* of the stream, by smallest number */
  size_t n, next;                 /* parts [next, n) are not open yet */
  struct open_part **heap;
  size_t n_heap, cap_heap;
};

static int compare_parts(const void *a, const void *b) {
  const struct stream_part *x = a, *y = b;
  const int k = NI_BY(x, y, member, kind, func, min_sn);
  return k ? k : NI_BY(x->piece, y->piece, file, range, ordinal);
}

static bool is_part_before(const struct open_part *a, const struct open_part *b) {
  return a->head.sn != b->head.sn ? a->head.sn < b->head.sn : a->order < b->order;
}

static void close_part(struct open_part *o) {
  ni_segment_read_end(&o->reader);
  free(o);
}

static int open_next_part(struct stream_merge *m) {
  struct open_part *o = ni_array_room(m->heap, m->n_heap, m->cap_heap) ? calloc(1, sizeof *o) : NULL;
  if (!o)
    return -ENOMEM;
  o->order = m->next;
  o->piece = m->part[m->next++].piece;
  ni_segment_read(&o->reader, &o->piece->s, &m->r->store);
  const int e = ni_segment_next(&o->reader, &o->head);
  if (e <= 0) {
    close_part(o);
    return e;
  }
  m->heap[m->n_heap++] = o;
  ni_heap_up(m->heap, m->n_heap - 1, is_part_before);
  return 0;
}

/* Opens all parts whose numbers may come now. */
static int open_due_parts(struct stream_merge *m) {
  int e = 0;
  while (e == 0 && m->next < m->n) {
    const bool is_due = !m->n_heap || m->part[m->next].min_sn <= m->heap[0]->head.sn;
    if (!is_due)
      break;
    e = open_next_part(m);
  }
  return e;
}

/* From the first one to that behind it. */
static int advance_merge(struct stream_merge *m) {
  struct open_part *o = m->heap[0];
  const int e = ni_segment_next(&o->reader, &o->head);
  if (e < 0)
    return e;
  if (e == 0) {
    m->heap[0] = m->heap[--m->n_heap];
    close_part(o);
  }
  ni_heap_down(m->heap, m->n_heap, 0, is_part_before);
  return 0;
}

/* The stream's times by the clock of its host, and its numbers, in their order. */
struct stream_times {
  int64_t *t_ns;
  uint64_t *sn;
  size_t n, cap_t, cap_sn;
};

static int add_time(struct stream_times *times, const struct ni_stamps_log *stamps, const struct ni_piece *p,
                    const struct ni_entry *x) {
  struct ni_entry right = *x;
  if (stamps)
    ni_correct_stamp(stamps, p, &right);
  const bool has_room =
      ni_array_room(times->t_ns, times->n, times->cap_t) && ni_array_room(times->sn, times->n, times->cap_sn);
  if (!has_room)
    return -ENOMEM;
  times->t_ns[times->n] = ni_time_ns(right.start_ns, right.dump_us);
  times->sn[times->n++] = x->sn;
  return 0;
}

/* part: all of one stream. */
static int read_stream(struct stream_merge *m, const struct stream_part *part, size_t n,
                       struct stream_times *times) {
  const struct ni_stamps_log *stamps = ni_stamps_of(&m->r->stamps, part->member);
  m->part = part;
  m->n = n;
  m->next = 0;
  times->n = 0;
  int e = open_due_parts(m);
  while (e == 0 && m->n_heap) {
    e = add_time(times, stamps, m->heap[0]->piece, &m->heap[0]->head);
    if (e == 0)
      e = advance_merge(m);
    if (e == 0)
      e = open_due_parts(m);
  }
  while (m->n_heap)
    close_part(m->heap[--m->n_heap]);
  return e;
}

static int find_turns_of_stream(const struct ni_host_clock *clock, const struct stream_times *times,
                                struct ni_clock_turns *turns) {
  size_t turn[NI_CLOCK_STEPS];
  const int e = ni_clock_find_turns(clock, times->t_ns, times->n, turn);
  for (uint32_t k = 0; k < NI_CLOCK_STEPS; k++)
    turns->sn[k] = e == 0 && k < clock->n_steps && turn[k] < times->n ? times->sn[turn[k]] : UINT64_MAX;
  return e;
}

/* ---- all of them ---- */

static const struct ni_host_clock *find_stepped_clock(const struct ni_run *r, uint32_t member) {
  const struct ni_host_clock *c = r->process[r->who.member[member].process].clock;
  return c && c->n_steps ? c : NULL;
}

/* The segments of hosts whose clocks have steps, stream after stream. */
static int gather_parts(const struct ni_run *r, struct stream_part **out, size_t *n) {
  size_t cap = 0;
  for (uint32_t i = 0; i < r->n_cells; i++) {
    const struct ni_sum_cell *c = &r->cell[i];
    for (size_t k = 0; k < c->n; k++) {
      const struct ni_piece *p = c->piece[k];
      if (!find_stepped_clock(r, p->member))
        continue;
      if (!ni_array_room(*out, *n, cap))
        return -ENOMEM;
      (*out)[(*n)++] = (struct stream_part){p->member, c->func, c->kind, p->s.min_sn, p};
    }
  }
  if (*n > 1)
    qsort(*out, *n, sizeof **out, compare_parts);
  return 0;
}

static bool is_same_stream(const struct stream_part *a, const struct stream_part *b) {
  return NI_BY(a, b, member, kind, func) == 0;
}

static int find_local_turns(struct ni_run *r) {
  struct stream_part *part = NULL;
  size_t n = 0;
  struct stream_merge m = {.r = r};
  struct stream_times times = {0};
  int e = gather_parts(r, &part, &n);
  for (size_t i = 0, end; e == 0 && i < n; i = end) {
    for (end = i + 1; end < n && is_same_stream(&part[end], &part[i]); end++) {}
    if (!ni_array_room(r->turns.item, r->turns.n, r->turns.cap)) {
      e = -ENOMEM;
      break;
    }
    struct ni_turns_stream *x = &r->turns.item[r->turns.n++];
    *x = (struct ni_turns_stream){.member = part[i].member, .func = part[i].func, .kind = part[i].kind};
    e = read_stream(&m, part + i, end - i, &times);
    if (e == 0)
      e = find_turns_of_stream(find_stepped_clock(r, part[i].member), &times, &x->turns);
  }
  free(times.t_ns);
  free(times.sn);
  free(m.heap);
  free(part);
  return e;
}

/* ---- a team ---- */

struct turns_on_wire {
  struct ni_run *r;
  struct ni_partial_numbers x; /* members are called by their places in the result */
};

static void wire_stream(struct ni_wire *w, struct turns_on_wire *l, struct ni_turns_stream *x) {
  uint32_t member = w->load ? 0 : l->x.member.place[x->member], kind = x->kind;
  char *func = w->load ? NULL : (char *)ni_name_text(&l->r->names, x->func);
  NI_WIRE(w, &member, &kind, &func);
  ni_wire_u64s(w, x->turns.sn, NI_CLOCK_STEPS);
  if (!w->load)
    return;
  if (!w->bad && (!func || ni_name(&l->r->names, NULL, func, &x->func) < 0))
    w->bad = true;
  if (!w->bad)
    x->member = l->x.member.number[member];
  x->kind = (uint8_t)kind;
  free(func);
}

/* Loading: adds to what is there. */
static void wire_turns(struct ni_wire *w, void *arg) {
  struct turns_on_wire *l = arg;
  struct ni_turns *t = &l->r->turns;
  size_t n = t->n;
  ni_wire_count(w, &n, 1);
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_turns_stream got = {0};
    wire_stream(w, l, w->load ? &got : &t->item[i]);
    if (!w->load || w->bad)
      continue;
    if (ni_array_room(t->item, t->n, t->cap))
      t->item[t->n++] = got;
    else
      w->bad = true;
  }
}

static int receive_turns(struct turns_on_wire *l, int rank) {
  struct ni_bytes got = {0};
  int e = l->r->team->swap(-1, NULL, rank, &got);
  if (e == 0) {
    struct ni_wire w = ni_wire_load(got.at, got.n);
    wire_turns(&w, l);
    e = ni_wire_over(&w) ? 0 : -ENOMEM;
  }
  free(got.at);
  return e;
}

/* All streams of all go to rank 0, and from there to all. */
static int share_turns(struct ni_run *r) {
  const struct ni_team *t = r->team;
  struct turns_on_wire l = {.r = r};
  struct ni_wire w = {0};
  int e = ni_partial_order(r, &l.x);
  if (e == 0 && t->rank > 0) {
    wire_turns(&w, &l);
    e = ni_team_give(t, &w);
    free_turns(&r->turns);
  }
  for (int k = 1; e == 0 && t->rank == 0 && k < t->size; k++)
    e = receive_turns(&l, k);
  if (e == 0)
    e = ni_team_share(t, wire_turns, &l);
  ni_wire_free(&w);
  ni_partial_numbers_free(&l.x);
  return e;
}

int ni_turns_find(struct ni_run *r) {
  free_turns(&r->turns);
  int e = find_local_turns(r);
  if (e == 0 && r->team)
    e = share_turns(r);
  struct ni_turns *t = &r->turns;
  if (e == 0 && t->n > 1)
    qsort(t->item, t->n, sizeof *t->item, compare_streams);
  return e;
}
