#include "stream.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/reading/correct_clocks.h"

/* What one rank did in one cell: one token. Messages of one token have several peers, so several slots. */
struct source {
  const struct ni_blame_piece *piece; /* by smallest number */
  size_t n, next;
  struct ni_segment_reader reader;
  bool open, any;
  struct ni_entry head;
  int64_t called_ns; /* of the head, before its start is corrected */
  uint64_t last_sn;
  uint32_t comm, token;
  int32_t rank;
  uint8_t kind;
  uint16_t slot; /* of collectives */
  struct ni_stream_clock clock;
};

struct ni_blame_stream {
  struct ni_run *r;
  struct ni_blame_rank *out;
  struct source *source, **heap;
  size_t n, n_heap, cap_slots;
  struct ni_blame_function function[NI_BLAME_FUNCTIONS];
  uint32_t n_functions;
  uint16_t *function_of; /* by token */
  uint32_t *what;        /* by token: as of struct ni_blame_op */
};

static int compare_pieces(const void *a, const void *b) {
  const struct ni_blame_piece *x = a, *y = b;
  const struct ni_piece *p = x->piece, *q = y->piece;
  int k =
      NI_BY(x, y, process, cell, comm, member); /* member: several ranks of a communicator in one process */
  if (k == 0)
    k = NI_BY(p, q, s.min_sn);
  return k ? k : NI_BY(p, q, file, range, ordinal);
}

int ni_blame_pieces(const struct ni_run *r, const struct ni_summary *s, struct ni_blame_pieces *out) {
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_cells; i++)
    n += r->cell[r->cell_order[i]].n;
  out->item = malloc((n + 1) * sizeof *out->item);
  out->n = 0;
  if (!out->item)
    return -ENOMEM;
  /* Cells in the order of the result, since ours depends on which thread came first. */
  for (uint32_t i = 0; i < s->n_cells; i++) {
    const struct ni_sum_cell *c = &r->cell[r->cell_order[i]];
    for (size_t k = 0; k < c->n; k++)
      out->item[out->n++] = (struct ni_blame_piece){r->process_at[r->who.member[c->piece[k]->member].process],
                                                    i, r->comm_at[r->who.member[c->piece[k]->member].comm],
                                                    c->piece[k]->member, c->piece[k]};
  }
  qsort(out->item, out->n, sizeof *out->item, compare_pieces);
  return 0;
}

static bool is_slot_of(const struct ni_blame_slot *s, uint32_t comm, int32_t rank, int32_t peer,
                       uint8_t kind) {
  return s->comm == comm && s->kind == kind && s->peer == peer && s->rank == rank;
}

/* The slot of these; NI_BLAME_NONE: there are too many. */
static int64_t find_or_add_slot(struct ni_blame_stream *s, uint32_t comm, int32_t rank, int32_t peer,
                                uint8_t kind) {
  struct ni_blame_rank *o = s->out;
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (is_slot_of(&o->slot[i], comm, rank, peer, kind))
      return i;
  if (o->n_slots == o->max_slots)
    return NI_BLAME_NONE;
  if (!ni_array_room(o->slot, o->n_slots, s->cap_slots))
    return -ENOMEM;
  o->slot[o->n_slots] =
      (struct ni_blame_slot){.comm = comm, .rank = rank, .peer = peer, .kind = kind, .link = NI_BLAME_NONE};
  return o->n_slots++;
}

static bool starts_before(const struct source *a, const struct source *b) {
  if (a->head.start_ns != b->head.start_ns)
    return a->head.start_ns < b->head.start_ns;
  return a->token < b->token;
}

static int64_t find_call_ns(const struct ni_entry *e) {
  const bool is_known = e->lead_us != NI_NO_LEAD && e->start_ns != NI_NO_START;
  return is_known ? e->start_ns - (int64_t)e->lead_us * 1000 : NI_NO_START;
}

/* The next record of a source that is one: 1, 0 at its end, -errno. */
static int read_next_record(struct ni_blame_stream *s, struct source *x) {
  for (;;) {
    if (!x->open) {
      if (x->next == x->n)
        return 0;
      ni_segment_read(&x->reader, &x->piece[x->next++].piece->s, &s->r->store);
      x->open = true;
    }
    int e = ni_segment_next(&x->reader, &x->head);
    if (e < 0)
      return e;
    if (e == 0) {
      ni_segment_read_end(&x->reader);
      x->open = false;
      continue;
    }
    if (x->any && x->head.sn <= x->last_sn)
      continue;
    x->any = true;
    x->last_sn = x->head.sn;
    x->called_ns = find_call_ns(&x->head);
    ni_correct_entry(&x->clock, x->piece[x->next - 1].piece, &x->head);
    /* tail: its first call stands for it */
    const bool no_kernel = x->head.timing == NI_TIMING_COLLECTIVE_CPU || x->head.tail;
    if (no_kernel && !s->out->all_ops)
      continue;
    if (x->head.start_ns != NI_NO_START)
      return 1;
    s->out->no_start = true;
  }
}

static uint16_t find_or_add_function(struct ni_blame_stream *s, const char *name, uint32_t slot) {
  uint32_t i = 0;
  while (i < s->n_functions && (s->function[i].slot != slot || s->function[i].name != name))
    i++;
  if (i == NI_BLAME_FUNCTIONS)
    return NI_BLAME_FUNCTIONS - 1;
  if (i == s->n_functions)
    s->function[s->n_functions++] = (struct ni_blame_function){name, slot};
  return (uint16_t)i;
}

/* Sequences of any length make sizes of any number: which one it is says nothing about the step then. */
static void merge_many_sizes(struct ni_blame_stream *s) {
  uint32_t sizes[NI_BLAME_FUNCTIONS] = {0}, first[NI_BLAME_FUNCTIONS];
  for (uint32_t i = 0; i < s->out->n_tokens; i++)
    if (sizes[s->function_of[i]]++ == 0)
      first[s->function_of[i]] = i;
  for (uint32_t i = 0; i < s->out->n_tokens; i++)
    s->what[i] = sizes[s->function_of[i]] > NI_BLAME_MANY_SIZES ? first[s->function_of[i]] : i;
}

uint32_t ni_blame_functions(const struct ni_blame_stream *s, const struct ni_blame_function **function,
                            const uint16_t **of) {
  *function = s->function;
  *of = s->function_of;
  return s->n_functions;
}

uint64_t ni_blame_hash_function(const char *func, int32_t n_ranks) {
  uint64_t hash = ni_mix((uint64_t)n_ranks);
  for (const char *p = func; *p; p++)
    hash = ni_mix(hash + (unsigned char)*p);
  return hash;
}

/* What it is, the same in another run, which may have other cells. */
static uint64_t hash_token(const struct ni_sum_cell *c, const char *func, int32_t n_ranks) {
  uint64_t hash = ni_mix(c->msg_bytes * 4 + (uint64_t)(c->kind == NI_KIND_P2P));
  for (const char *p = func; *p; p++)
    hash = ni_mix(hash + (unsigned char)*p);
  return ni_mix(hash + (uint64_t)n_ranks);
}

static int open_sources(struct ni_blame_stream *s, const struct ni_blame_piece *item, size_t n) {
  const struct ni_run *r = s->r;
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && item[to].cell == item[from].cell && item[to].member == item[from].member;
         to++) {}
    const struct ni_who_member *m = &r->who.member[item[from].member];
    const struct ni_sum_cell *c = &r->cell[r->cell_order[item[from].cell]];
    struct source *x = &s->source[s->n];
    *x = (struct source){.piece = item + from,
                         .n = to - from,
                         .comm = r->comm_at[m->comm],
                         .rank = m->rank,
                         .clock = ni_stream_clock(r, item[from].member, c)};
    bool p2p = c->kind == NI_KIND_P2P;
    const char *func = ni_name_text(&r->names, c->func);
    x->kind = NI_BLAME_COLL;
    if (p2p)
      x->kind = func[0] == 'S' ? NI_BLAME_SEND : NI_BLAME_RECV;
    if (m->n_ranks < 2)
      continue;
    int64_t slot = p2p ? 0 : find_or_add_slot(s, x->comm, x->rank, -1, NI_BLAME_COLL);
    if (slot < 0)
      return (int)slot;
    if (slot == NI_BLAME_NONE)
      continue;
    x->slot = (uint16_t)slot;
    x->token = s->out->n_tokens++;
    s->out->token_func[x->token] = func;
    s->function_of[x->token] = find_or_add_function(s, func, p2p ? NI_BLAME_NONE : x->slot);
    s->out->token_bytes[x->token] = c->msg_bytes;
    s->out->token_hash[x->token] = hash_token(c, func, m->n_ranks);
    s->n++;
    int e = read_next_record(s, x);
    if (e < 0)
      return e;
    if (e > 0)
      s->heap[s->n_heap++] = x;
  }
  ni_heap_make(s->heap, s->n_heap, starts_before);
  merge_many_sizes(s);
  return 0;
}

int ni_blame_open(struct ni_blame_stream **out, struct ni_run *r, const struct ni_blame_piece *item, size_t n,
                  struct ni_blame_rank *rank) {
  struct ni_blame_stream *s = *out = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  size_t groups = 1;
  for (size_t i = 1; i < n; i++)
    groups += item[i].cell != item[i - 1].cell || item[i].member != item[i - 1].member;
  s->r = r;
  s->out = rank;
  rank->max_slots = NI_BLAME_SLOTS;
  s->source = calloc(groups, sizeof *s->source);
  s->heap = calloc(groups, sizeof(struct source *));
  rank->token_hash = calloc(groups, sizeof *rank->token_hash);
  rank->token_bytes = calloc(groups, sizeof *rank->token_bytes);
  rank->token_func = calloc(groups, sizeof *rank->token_func);
  s->function_of = calloc(groups, sizeof *s->function_of);
  s->what = calloc(groups, sizeof *s->what);
  const bool has_room = s->source && s->heap && s->function_of && s->what && rank->token_hash &&
      rank->token_bytes && rank->token_func;
  return has_room ? open_sources(s, item, n) : -ENOMEM;
}

int ni_blame_next(struct ni_blame_stream *s, struct ni_blame_op *op) {
  while (s->n_heap) {
    struct source *x = s->heap[0];
    const struct ni_entry *h = &x->head;
    int64_t slot =
        x->kind == NI_BLAME_COLL ? x->slot : find_or_add_slot(s, x->comm, x->rank, ni_entry_peer(h), x->kind);
    if (slot < 0)
      return (int)slot;
    const uint64_t pair_sn = x->kind == NI_BLAME_COLL ? NI_NO_SN : ni_entry_pair_sn(h);
    *op = (struct ni_blame_op){.start_ns = h->start_ns,
                               .end_ns = h->start_ns + (int64_t)h->exec_ns,
                               .sn = pair_sn != NI_NO_SN ? pair_sn : h->sn,
                               .paired = pair_sn != NI_NO_SN,
                               .token = x->token,
                               .what = s->what[x->token],
                               .slot = (uint16_t)slot,
                               .launched_late = h->lead_us < NI_BLAME_LAUNCH_NEAR_US,
                               .called_ns = x->called_ns,
                               .timing = h->timing,
                               .mix = h->mix};
    int e = read_next_record(s, x);
    if (e < 0)
      return e;
    if (e == 0)
      s->heap[0] = s->heap[--s->n_heap];
    ni_heap_down(s->heap, s->n_heap, 0, starts_before);
    if (slot == NI_BLAME_NONE)
      s->out->left_out++;
    else
      return 1;
  }
  return 0;
}

void ni_blame_close(struct ni_blame_stream *s) {
  if (!s)
    return;
  for (size_t i = 0; s->source && i < s->n; i++)
    if (s->source[i].open)
      ni_segment_read_end(&s->source[i].reader);
  free(s->source);
  free(s->heap);
  free(s->function_of);
  free(s->what);
  free(s);
}
