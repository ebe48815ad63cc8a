#include "running.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

#define TEXT(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

/* The place of a counter of the set. A new one has no reading yet. NI_INDEX_NONE: no memory. */
static uint32_t find_or_add_value(struct ni_running *r, const struct ni_entity *e,
                                  const struct ni_counter *c) {
  uint64_t hash = ni_hash_text(ni_hash_text(ni_hash(0, e->source), e->name), c->name);
  struct ni_running_value *v;
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&r->index, hash, &at)) != NI_INDEX_NONE;) {
    v = &r->value[k];
    bool named = strncmp(v->name, c->name, sizeof v->name - 1) == 0 &&
        strncmp(v->entity, e->name, sizeof v->entity - 1) == 0;
    if (named && v->source == e->source)
      return k;
  }
  if (!ni_array_room(r->value, r->n, r->cap) || ni_index_add(&r->index, hash, (uint32_t)r->n) < 0)
    return NI_INDEX_NONE;
  v = &r->value[r->n];
  *v = (struct ni_running_value){.source = e->source, .what = c->what, .last.state = NI_READ_MISSING};
  TEXT(v->entity, e->name);
  TEXT(v->name, c->name);
  TEXT(v->pci, e->pci);
  TEXT(v->about, e->about);
  const char *alike = ni_metric_unified(v->source, v->name), *other = NULL;
  for (v->lead = 0; alike && v->lead < r->n; v->lead++) {
    const struct ni_running_value *x = &r->value[v->lead];
    if (x->source != v->source || strcmp(x->entity, v->entity) != 0)
      continue;
    if ((other = ni_metric_unified(x->source, x->name)) && strcmp(other, alike) == 0)
      break;
  }
  if (!alike)
    v->lead = (uint32_t)r->n;
  return (uint32_t)r->n++;
}

static void take_reading(struct ni_running *r, struct ni_running_value *v, const struct ni_reading *now,
                         double link_bytes_s) {
  struct ni_running_value *lead = &r->value[v->lead];
  uint64_t before = v->total, scale = v->what.scale ? v->what.scale : 1;
  v->known = now->state == NI_READ_OK;
  v->link_bytes_s = link_bytes_s;
  if (!v->known)
    return; /* the last one counts when it comes back */
  struct ni_change c = ni_change_of(&v->what, &v->last, now, link_bytes_s);
  if (v->what.kind == NI_METRIC_GAUGE || c.state == NI_CHANGE_NEW)
    v->total = now->value * scale;
  else if (c.state == NI_CHANGE_CHANGED)
    v->total += (uint64_t)c.delta * scale;
  else if (c.state == NI_CHANGE_STUCK && now->value > v->last.value)
    v->total += (now->value - v->last.value) * scale;
  v->resets += c.state == NI_CHANGE_RESET;
  if (c.state != NI_CHANGE_STALE)
    v->last = *now;
  if (v->what.kind == NI_METRIC_GAUGE)
    return;
  if (c.state == NI_CHANGE_NEW && v->total > lead->alike)
    lead->alike = v->total;
  else if (c.state != NI_CHANGE_NEW && v->total - before > lead->rise)
    lead->rise = v->total - before;
}

int ni_running_add(struct ni_running *r, const struct ni_set *set, const struct ni_reading *reading,
                   int64_t at_ns) {
  uint32_t *to = malloc((set->n_counters + 1) * sizeof *to);
  bool failed = !to;
  for (size_t i = 0; i < set->n_counters && !failed; i++) {
    to[i] = find_or_add_value(r, &set->entity[set->counter[i].entity], &set->counter[i]);
    failed = to[i] == NI_INDEX_NONE;
  }
  if (!failed) {
    for (size_t i = 0; i < r->n; i++)
      r->value[i].known = false;
    for (size_t i = 0; i < set->n_counters; i++)
      take_reading(r, &r->value[to[i]], &reading[i], set->entity[set->counter[i].entity].link_bytes_s);
    for (size_t i = 0; i < r->n; i++) {
      r->value[i].alike += r->value[i].rise;
      r->value[i].rise = 0;
    }
    r->at_ns = at_ns;
  }
  free(to);
  return failed ? -ENOMEM : 0;
}

void ni_running_free(struct ni_running *r) {
  free(r->value);
  ni_index_free(&r->index);
  *r = (struct ni_running){0};
}
