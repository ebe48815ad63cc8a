#include "running.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

static uint64_t hash_of(unsigned source, const char *entity, const char *name) {
  return ni_hash_text(ni_hash_text(ni_hash(0, source), entity), name);
}

/* Another text in place of *to; what is not known now was not wrong before. false without memory: *to stays. */
static bool change(char **to, const char *text) {
  if (!text || (*to && strcmp(*to, text) == 0)) return true;
  char *copy = strdup(text);
  if (!copy) return false;
  free(*to);
  *to = copy;
  return true;
}

static uint32_t find(const struct ni_running *r, unsigned source, const char *entity, const char *name) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&r->index, hash_of(source, entity, name), &at)) != NI_INDEX_NONE;)
    if (r->value[k].source == source && strcmp(r->value[k].name, name) == 0 && strcmp(r->value[k].entity, entity) == 0) break;
  return k;
}

/* The place of a counter of the set, which has no reading yet where it is new. NI_INDEX_NONE without memory. */
static uint32_t place(struct ni_running *r, const struct ni_entity *e, const struct ni_counter *c) {
  uint32_t k = find(r, e->source, e->name, c->name);
  if (k != NI_INDEX_NONE || !ni_array_room(r->value, r->n, r->cap)) return k;
  struct ni_running_value v = {.source = e->source, .what = c->what, .last.state = NI_READ_MISSING};
  if (change(&v.entity, e->name) && change(&v.name, c->name) &&
      ni_index_add(&r->index, hash_of(e->source, e->name, c->name), (uint32_t)r->n) == 0) {
    r->value[r->n] = v;
    return (uint32_t)r->n++;
  }
  free(v.entity);
  free(v.name);
  return NI_INDEX_NONE;
}

static void take(struct ni_running_value *v, const struct ni_reading *now, double link_bytes_s) {
  uint64_t scale = v->what.scale ? v->what.scale : 1;
  v->known = now->state == NI_READ_OK;
  v->link_bytes_s = link_bytes_s;
  if (!v->known) return; /* the last one counts when it comes back */
  struct ni_change c = ni_change_of(&v->what, &v->last, now, link_bytes_s);
  if (v->what.kind == NI_METRIC_GAUGE) v->total = now->value * scale;
  else if (c.state == NI_CHANGE_NEW) v->total = now->value * scale;
  else if (c.state == NI_CHANGE_CHANGED) v->total += (uint64_t)c.delta * scale;
  else if (c.state == NI_CHANGE_STUCK && now->value > v->last.value) v->total += (now->value - v->last.value) * scale;
  v->resets += c.state == NI_CHANGE_RESET;
  if (c.state != NI_CHANGE_STALE) v->last = *now;
}

int ni_running_take(struct ni_running *r, const struct ni_set *set, const struct ni_reading *reading, int64_t at_ns) {
  uint32_t *to = malloc((set->n_counters + 1) * sizeof *to);
  bool failed = !to;
  for (size_t i = 0; i < set->n_counters && !failed; i++) {
    const struct ni_entity *e = &set->entity[set->counter[i].entity];
    to[i] = place(r, e, &set->counter[i]);
    failed = to[i] == NI_INDEX_NONE || !change(&r->value[to[i]].pci, e->pci) || !change(&r->value[to[i]].about, e->about);
  }
  if (!failed) {
    for (size_t i = 0; i < r->n; i++) r->value[i].known = false;
    for (size_t i = 0; i < set->n_counters; i++) take(&r->value[to[i]], &reading[i], set->entity[set->counter[i].entity].link_bytes_s);
    r->at_ns = at_ns;
  }
  free(to);
  return failed ? -ENOMEM : 0;
}

void ni_running_free(struct ni_running *r) {
  for (size_t i = 0; i < r->n; i++) {
    free(r->value[i].entity);
    free(r->value[i].name);
    free(r->value[i].pci);
    free(r->value[i].about);
  }
  free(r->value);
  ni_index_free(&r->index);
  *r = (struct ni_running){0};
}
