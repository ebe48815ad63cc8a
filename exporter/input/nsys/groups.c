#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { AROUND = 64 }; /* ranges that begin between a launch and the begin of what lies around it */

/* What a kernel can be of a group: a collective of its function, or messages, whose kernel has one
 * name for both. */
enum { MESSAGES = NI_FUNC_SEND, KINDS = NI_FUNC_COUNT };

struct ni_nsys_group {
  uint32_t calls[KINDS], kernels[KINDS], last[KINDS]; /* last: the call's range */
  uint64_t comm;
  bool several; /* communicators, or one that is not named */
};

static unsigned find_kind(enum ni_func func) { return func == NI_FUNC_RECV ? MESSAGES : (unsigned)func; }

static unsigned find_kind_of_kernel(const struct ni_nsys_kernel *k) {
  return strcmp(k->func, "SendRecv") == 0 ? MESSAGES : (unsigned)ni_func_from_name(k->func);
}

/* ---- groups of calls ----------------------------------------------------------------------------------- */

static void add_call_to_group(struct ni_nsys_group *x, const struct ni_nsys_range_row *r, uint32_t number) {
  const bool first = !x->comm && !x->several;
  x->several = x->several || r->said.comm == 0 || (!first && x->comm != r->said.comm);
  x->comm = x->several ? 0 : r->said.comm;
  x->calls[find_kind(r->func)]++;
  x->last[find_kind(r->func)] = number;
}

/* One group for each outermost ncclGroupEnd, which alone gets its number. 0 or -ENOMEM. */
static int find_groups(struct ni_nsys_groups *g, struct ni_nsys_tables *t) {
  struct ni_nsys_group now = {0};
  unsigned depth = 0;
  for (uint32_t i = 0; i < t->n_ranges; i++) {
    struct ni_nsys_range_row *r = &t->range[i];
    r->group = UINT32_MAX;
    if (i == 0 || r[-1].thread != r->thread)
      depth = 0;
    if (r->what == NI_NSYS_GROUP_BEGIN && depth++ == 0)
      now = (struct ni_nsys_group){0};
    if (r->what == NI_NSYS_CALL && depth)
      add_call_to_group(&now, r, i);
    if (r->what != NI_NSYS_GROUP_END || depth == 0)
      continue;
    depth--;
    if (depth > 0)
      continue;
    if (!ni_array_room(g->group, g->n, g->cap))
      return -ENOMEM;
    r->group = (uint32_t)g->n;
    g->group[g->n++] = now;
  }
  return 0;
}

/* ---- kernels in them ----------------------------------------------------------------------------------- */

/* The last one that began is the innermost. */
static void find_group_of_kernel(struct ni_nsys_tables *t, struct ni_nsys_kernel *k) {
  size_t i;
  if (k->launch == NI_DB_NONE)
    return;
  ni_array_search(
      i, t->n_ranges,
      t->range[i].thread < k->thread || (t->range[i].thread == k->thread && t->range[i].start <= k->launch));
  for (int n = 0; n < AROUND && i > 0 && t->range[i - 1].thread == k->thread; n++) {
    const struct ni_nsys_range_row *r = &t->range[--i];
    if (r->end < k->launch)
      continue;
    if (r->what == NI_NSYS_TORCH) {
      k->torch = r->func;
      return; /* NCCL's own lie within */
    }
    if (k->range == UINT32_MAX && (r->what == NI_NSYS_CALL || r->what == NI_NSYS_GROUP_END))
      k->range = (uint32_t)i;
  }
}

int ni_nsys_groups(struct ni_nsys_groups *g, struct ni_nsys_tables *t) {
  *g = (struct ni_nsys_groups){0};
  int e = find_groups(g, t);
  if (e < 0)
    return e;
  NI_EACH(struct ni_nsys_kernel, k, t->kernel, t->n_kernels) {
    find_group_of_kernel(t, k);
    if (k->range == UINT32_MAX || t->range[k->range].group == UINT32_MAX)
      continue;
    g->group[t->range[k->range].group].kernels[find_kind_of_kernel(k)]++;
  }
  return 0;
}

void ni_nsys_groups_free(struct ni_nsys_groups *g) {
  free(g->group);
  *g = (struct ni_nsys_groups){0};
}

/* Symmetric kernels and those of several functions ("Generic") have no function in their name: the
 * group's only call is theirs. */
static unsigned find_only_kind(const struct ni_nsys_group *x) {
  unsigned only = NI_FUNC_OTHER;
  for (unsigned i = 1; i < KINDS; i++) {
    if (x->calls[i] == 0)
      continue;
    if (only != NI_FUNC_OTHER)
      return NI_FUNC_OTHER;
    only = i;
  }
  return only;
}

const struct ni_nsys_range_row *ni_nsys_call_of(const struct ni_nsys_groups *g,
                                                const struct ni_nsys_tables *t,
                                                const struct ni_nsys_kernel *k, uint64_t *comm) {
  *comm = 0;
  if (k->range == UINT32_MAX)
    return NULL;
  const struct ni_nsys_range_row *r = &t->range[k->range];
  if (r->what == NI_NSYS_CALL) {
    *comm = r->said.comm;
    return r;
  }
  if (r->group == UINT32_MAX)
    return NULL;
  const struct ni_nsys_group *x = &g->group[r->group];
  const unsigned named = find_kind_of_kernel(k), kind = named == NI_FUNC_OTHER ? find_only_kind(x) : named;
  *comm = x->comm;
  if (kind == NI_FUNC_OTHER || x->calls[kind] != 1 || x->kernels[named] != 1)
    return NULL;
  *comm = t->range[x->last[kind]].said.comm;
  return &t->range[x->last[kind]];
}
