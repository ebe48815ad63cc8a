/* The tables of all on every rank, and what the ranks agree on. */
#include <errno.h>
#include <stdlib.h>

#include "exporter/model/sums/partial/tables.h"
#include "team.h"

int ni_team_share(const struct ni_team *t, void (*wire)(struct ni_wire *w, void *arg), void *arg) {
  struct ni_wire w = {0};
  uint8_t *hold = NULL;
  const bool root = t->rank == 0;
  if (root)
    wire(&w, arg);
  int e = w.bad ? -ENOMEM : t->share(&w, &hold);
  if (e == 0 && !root) {
    wire(&w, arg);
    if (!ni_wire_over(&w))
      e = -ENOMEM;
  }
  if (root)
    ni_wire_free(&w);
  free(hold);
  return e;
}

struct tables {
  struct ni_run *r;
  struct ni_partial_numbers x;
};

static void wire_tables(struct ni_wire *w, void *arg) {
  struct tables *t = arg;
  ni_partial_wire_tables(w, t->r, &t->x);
}

/* Sums in r's own tables are then of no use on other ranks than 0. */
static int share_tables(struct ni_run *r) {
  struct tables t = {.r = r};
  int e = 0;
  if (r->team->rank == 0) {
    e = ni_partial_order(r, &t.x);
  } else {
    r->tally = (struct ni_tally_sum){0};
    r->marks.n_lines = 0;
    ni_stamps_free(&r->stamps);
  }
  if (e == 0)
    e = ni_team_share(r->team, wire_tables, &t);
  ni_partial_numbers_free(&t.x);
  return e;
}

int ni_team_tables(struct ni_run *r) {
  struct ni_partial_numbers x = {0};
  int e = share_tables(r);
  if (e == 0)
    e = ni_partial_order(r, &x);
  const size_t cells = x.cell.n, n = cells + x.process.n;
  uint64_t *v = e == 0 ? calloc(n + 1, sizeof *v) : NULL;
  if (e == 0 && !v)
    e = -ENOMEM;
  for (size_t i = 0; e == 0 && i < cells; i++) {
    const struct ni_sum_cell *c = &r->cell[i];
    for (size_t k = 0; k < c->n; k++) {
      v[x.cell.place[i]] += c->piece[k]->s.n;
      v[cells + x.process.place[r->who.member[c->piece[k]->member].process]] = 1;
    }
  }
  if (e == 0)
    r->team->sum(v, n);
  r->partial->apart = true;
  for (size_t i = 0; e == 0 && i < cells; i++)
    r->cell[i].records = v[x.cell.place[i]];
  for (size_t i = cells; e == 0 && i < n; i++)
    r->partial->apart &= v[i] < 2;
  free(v);
  ni_partial_numbers_free(&x);
  return e;
}

static void wire_own_time(struct ni_wire *w, void *summary) {
  struct ni_summary *s = summary;
  ni_wire_bool(w, &s->by_own_time);
  ni_wire_bool(w, &s->steps_differ);
}

int ni_team_agree(const struct ni_run *r, struct ni_summary *s) {
  return ni_team_share(r->team, wire_own_time, s);
}
