/*
 * Of a map: who wrote, and which functions: contexts and sorts, each once a file, and their numbers.
 */
#include <errno.h>
#include <string.h>

#include "exporter/base/array.h"
#include "granules.h"

static bool is_same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

bool ni_same_context(const struct ni_granule_context *c, const struct ni_ident *i, const struct ni_meta *m) {
  const struct ni_ident *x = &c->ident;
  const struct ni_meta *y = &c->meta;
  const bool is_same_rank = x->comm_hash == i->comm_hash && x->rank == i->rank && x->n_ranks == i->n_ranks &&
      x->nnodes == i->nnodes && y->pid == m->pid;
  return is_same_rank && is_same_text(x->comm_name, i->comm_name) && is_same_text(y->version, m->version) &&
      is_same_text(y->git_rev, m->git_rev) && is_same_text(y->rec_mechanism, m->rec_mechanism) &&
      is_same_text(y->hostname, m->hostname) && is_same_text(y->producer, m->producer);
}

int ni_granules_context(struct ni_granules *g, const struct ni_ident *ident, const struct ni_meta *meta,
                        uint32_t *out) {
  uint64_t hash = ni_hash(ni_hash(ident->comm_hash, (uint32_t)ident->rank), (uint64_t)meta->pid);
  for (size_t at = 0; (*out = ni_index_next(&g->context_at, hash, &at)) != NI_INDEX_NONE;)
    if (ni_same_context(&g->context[*out], ident, meta))
      return 0;
  if (!ni_array_room(g->context, g->n_contexts, g->cap_contexts))
    return -ENOMEM;
  struct ni_granule_context *c = &g->context[g->n_contexts];
  *c = (struct ni_granule_context){.ident = *ident, .meta = *meta, .clock_offset_ns = NI_NO_OFFSET};
  c->meta.dump_timestamp_us = 0;
  const char **const text[] = {NI_CONTEXT_TEXTS(c)};
  bool is_fine = true;
  for (int k = 0; k < NI_N_CONTEXT_TEXTS; k++)
    if (*text[k])
      is_fine &= (*text[k] = strdup(*text[k])) != NULL;
  *out = (uint32_t)g->n_contexts++;
  return is_fine && ni_index_add(&g->context_at, hash, *out) == 0 ? 0 : -ENOMEM;
}

int ni_granules_sort(struct ni_granules *g, uint32_t context, enum ni_sort_kind kind, const char *func,
                     uint32_t *out) {
  uint64_t hash = ni_hash_text(ni_hash(context, kind), func);
  for (size_t at = 0; (*out = ni_index_next(&g->sort_at, hash, &at)) != NI_INDEX_NONE;) {
    const struct ni_granule_sort *s = &g->sort[*out];
    if (s->context == context && s->kind == kind && strcmp(s->func, func) == 0)
      return 0;
  }
  if (!ni_array_room(g->sort, g->n_sorts, g->cap_sorts))
    return -ENOMEM;
  if (g->cap_seen < g->cap_sorts) {
    size_t had = g->cap_seen;
    if (!ni_array_exact(&g->seen, &g->cap_seen, g->cap_sorts, sizeof *g->seen))
      return -ENOMEM;
    memset(g->seen + had, 0, (g->cap_seen - had) * sizeof *g->seen);
  }
  struct ni_granule_sort *s = &g->sort[g->n_sorts];
  *s = (struct ni_granule_sort){.context = context, .kind = kind, .func = strdup(func), .min_sn = UINT64_MAX};
  g->context[context].told |= kind != NI_SORT_EVENT;
  *out = (uint32_t)g->n_sorts++;
  return s->func && ni_index_add(&g->sort_at, hash, *out) == 0 ? 0 : -ENOMEM;
}
