#include "choose.h"

#include <errno.h>
#include <stdlib.h>

bool ni_tr_is_choosing(const struct ni_tr_options *o) {
  const struct ni_filters *f = &o->filter;
  return !o->with.n &&
      (f->since.base || f->until.base || f->rank.n || f->job_rank.n || f->host.n || f->comm.n);
}

int ni_tr_choose_begin(struct ni_tr *r) {
  if (!(r->log = calloc(r->files.n + 1, sizeof *r->log)))
    return -ENOMEM;
  for (size_t i = 0; i < r->files.n; i++) {
    struct ni_tr_log *x = &r->log[i];
    const struct ni_granules *g = ni_atlas_log_map(r->atlas, i);
    *x = (struct ni_tr_log){.process = NI_TR_NONE};
    if (!g)
      continue;
    x->member = malloc((g->n_contexts + 1) * sizeof *x->member);
    x->wanted = calloc(g->n, sizeof *x->wanted);
    if (!x->member || !x->wanted)
      return -ENOMEM;
    for (size_t k = 0; k < g->n_contexts; k++)
      x->member[k] = NI_TR_NONE;
    x->map = g;
  }
  return 0;
}

void ni_tr_choose_free(struct ni_tr *r) {
  for (size_t i = 0; r->log && i < r->files.n; i++) {
    free(r->log[i].member);
    free(r->log[i].wanted);
  }
  free(r->log);
  r->log = NULL;
}

/*
 * How far ahead of the clock of the window a host is at that time, at least or at most, whichever of its
 * steps lie before.
 */
static int64_t ahead_at(const struct ni_tr *r, uint32_t host, int64_t t, bool most) {
  const struct ni_host_clock *c = &r->host[host].clock;
  int64_t steps = 0, end = 0;
  for (uint32_t i = 0; i < c->n_steps; i++) {
    steps += c->step[i].by_ns;
    if (most ? steps > end : steps < end)
      end = steps;
  }
  return (int64_t)ni_clock_ahead(c, t) + end;
}

bool ni_tr_touches(const struct ni_tr *r, uint32_t host, bool matching, int64_t begin, int64_t end) {
  if (begin > end || (matching && !r->windowed))
    return begin <= end;
  int64_t since = r->since_ns, until = r->until_ns;
  if (since != INT64_MIN)
    since += (matching ? 0 : ahead_at(r, host, since, false)) - NI_TR_CLOCK_NS;
  if (until != INT64_MAX)
    until += (matching ? 0 : ahead_at(r, host, until, true)) + NI_TR_CLOCK_NS;
  return end >= since && begin <= until;
}

static bool is_granule_wanted(const struct ni_tr *r, const struct ni_tr_log *x, const struct ni_granule *g,
                              bool matching) {
  if (!matching && g->process_lines && x->process != NI_TR_NONE) {
    const uint32_t u = r->process[x->process].first_unit;
    const bool is_shown = u != NI_TR_NONE && r->unit[u].shown;
    if (is_shown && !r->opt.filter.comm.n &&
        ni_tr_touches(r, r->process[x->process].host, false, g->begin_ns, g->end_ns))
      return true;
  }
  for (uint32_t i = 0; i < g->n_sorts; i++) {
    const struct ni_granule_sort *s = &x->map->sort[x->map->list[g->first_sort + i]];
    const uint32_t first = ni_tr_first_of(r, x, s->context);
    const bool is_of_kind = s->kind == NI_SORT_OP || (!matching && s->kind == NI_SORT_EVENT);
    if (first == NI_TR_NONE || !is_of_kind)
      continue;
    const struct ni_tr_member *m = &r->member[first];
    if ((matching ? m->matched : m->drawn) &&
        ni_tr_touches(r, ni_tr_host_of(r, m), matching, g->begin_ns, g->end_ns))
      return true;
  }
  return false;
}

/* Counts records without a time, of all logs: of logs with maps here, of others while they are read. */
static void count_untimed(struct ni_tr *r, const struct ni_tr_log *x) {
  for (size_t i = 0; i < x->map->n_sorts; i++) {
    const struct ni_granule_sort *s = &x->map->sort[i];
    const uint32_t first = ni_tr_first_of(r, x, s->context);
    if (first != NI_TR_NONE && r->member[first].drawn)
      r->count.no_start += s->untimed;
  }
}

void ni_tr_choose(struct ni_tr *r, enum ni_tr_pass pass) {
  const bool matching = pass == NI_TR_MATCH;
  for (uint32_t i = 0; i < r->n_members; i++) {
    struct ni_tr_member *first = &r->member[r->member[i].first];
    first->matched |= r->unit[r->member[i].unit].shown;
    first->drawn |= r->member[i].shown;
  }
  for (size_t f = 0; f < r->files.n; f++) {
    struct ni_tr_log *x = &r->log[f];
    for (size_t i = 0; x->map && i < x->map->n; i++)
      x->wanted[i] = is_granule_wanted(r, x, &x->map->item[i], matching);
    if (x->map && !matching)
      count_untimed(r, x);
  }
}
