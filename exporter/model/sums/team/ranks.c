/* The judge's tables of processes, from those who filled them to rank 0. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "team.h"

/* n items of an array, as they lie in memory. */
static void wire_items(struct ni_wire *w, void *at, size_t n, size_t size) {
  void *items = NULL;
  if (!w->load)
    memcpy(&items, at, sizeof items);
  const uint8_t *from = ni_wire_bytes(w, items, n * size);
  if (!w->load)
    return;
  if (!w->bad && n && !(items = malloc(n * size)))
    w->bad = true;
  if (!w->bad && n)
    memcpy(items, from, n * size);
  memcpy(at, &items, sizeof items);
}

static void wire_rank(struct ni_wire *w, struct ni_names *names, struct ni_blame_rank *o) {
  const uint8_t *at = ni_wire_bytes(w, o, sizeof *o);
  if (w->load) {
    if (w->bad)
      return;
    memcpy(o, at, sizeof *o);
    o->slot = NULL;
    o->token_func = NULL;
    o->token_hash = o->token_bytes = NULL;
    o->cell = NULL;
    o->link_cell = NULL;
    o->place = NULL;
    o->pace = NULL;
    o->incident = NULL;
    o->sample = NULL;
  }
  wire_items(w, &o->slot, o->n_slots, sizeof *o->slot);
  wire_items(w, &o->token_hash, o->n_tokens, sizeof *o->token_hash);
  wire_items(w, &o->token_bytes, o->n_tokens, sizeof *o->token_bytes);
  wire_items(w, &o->cell, o->n_bins, sizeof *o->cell);
  wire_items(w, &o->link_cell, (size_t)o->n_bins * o->max_slots, sizeof *o->link_cell);
  wire_items(w, &o->place, o->n_places, sizeof *o->place);
  wire_items(w, &o->pace, o->n_paces, sizeof *o->pace);
  wire_items(w, &o->incident, o->n_incidents, sizeof *o->incident);
  wire_items(w, &o->sample, o->n_sample, sizeof *o->sample);
  if (w->load && !(o->token_func = calloc(o->n_tokens + 1, sizeof *o->token_func)))
    w->bad = true;
  for (uint32_t i = 0; i < o->n_tokens && !w->bad; i++)
    ni_wire_kept(w, names, &o->token_func[i]);
  ni_wire_kept(w, names, &o->mark_func);
  ni_wire_kept(w, names, &o->why_not);
}

/* One process at a time; an empty message is the end. */
static int give_all(struct ni_blame *b, bool (*mine)(const void *arg, uint32_t process), const void *arg) {
  struct ni_wire w = {0};
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!mine(arg, i) || (b->usual_steps > 0 && !b->rank[i].ops_before))
      continue;
    w.n = 0;
    wire_rank(&w, &b->r->names, &b->rank[i]);
    e = ni_team_give(b->r->team, &w);
  }
  w.n = 0;
  if (e == 0)
    e = ni_team_give(b->r->team, &w);
  ni_wire_free(&w);
  return e;
}

static int take_all(struct ni_blame *b, int from) {
  for (;;) {
    struct ni_bytes got = {0};
    struct ni_blame_rank o = {0};
    int e = b->r->team->swap(-1, NULL, from, &got);
    if (e < 0 || !got.n) {
      free(got.at);
      return e;
    }
    struct ni_wire w = ni_wire_load(got.at, got.n);
    wire_rank(&w, &b->r->names, &o);
    free(got.at);
    if (!ni_wire_over(&w) || o.process >= b->n_ranks) {
      ni_blame_free_rank(&o);
      return -EINVAL;
    }
    ni_blame_free_rank(&b->rank[o.process]);
    b->rank[o.process] = o;
  }
}

int ni_team_blame(struct ni_blame *b, bool (*mine)(const void *arg, uint32_t process), const void *arg) {
  const struct ni_team *t = b->r->team;
  if (t->rank)
    return give_all(b, mine, arg);
  int e = 0;
  for (int i = 1; e == 0 && i < t->size; i++)
    e = take_all(b, i);
  return e;
}

struct steps {
  struct ni_blame *b;
  int64_t again;
};

static void wire_steps(struct ni_wire *w, void *arg) {
  struct steps *s = arg;
  NI_WIRE(w, &s->again, &s->b->usual_steps);
  for (uint32_t i = 0; i < s->b->n_ranks; i++) {
    uint64_t ops = w->load ? 0 : s->b->rank[i].ops_before;
    ni_wire_u64(w, &ops);
    NI_WIRE(w, &s->b->rank[i].usual_steps, &s->b->rank[i].usual_span_s, &s->b->rank[i].usual_mark);
    if (w->load && ops)
      ni_blame_reset_rank(&s->b->rank[i], ops);
  }
}

int64_t ni_team_steps(struct ni_blame *b, int64_t (*find)(struct ni_blame *b)) {
  const struct ni_team *t = b->r->team;
  struct steps s = {b, t->rank == 0 ? find(b) : 0};
  int e = s.again < 0 ? 0 : ni_team_share(t, wire_steps, &s);
  return e < 0 ? e : s.again;
}
