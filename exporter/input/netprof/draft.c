#include "draft.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "exporter/base/array.h"

bool ni_draft_fail(struct ni_draft *d, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!*d->why) vsnprintf(d->why, d->why_cap, format, args);
  va_end(args);
  return false;
}

int64_t ni_draft_entity(struct ni_draft *d, unsigned source, const char *name) {
  uint32_t k;
  uint64_t hash = ni_hash_text(ni_hash(0, source), name);
  for (size_t at = 0; (k = ni_index_next(&d->entities, hash, &at)) != NI_INDEX_NONE;)
    if (d->entity[k].of.source == source && strcmp(d->entity[k].of.name, name) == 0) return k;
  k = (uint32_t)d->n_entities;
  if (k >= NI_SWEEP_ENTITIES) return ni_draft_fail(d, "more than %d NICs and GPUs", NI_SWEEP_ENTITIES) - 1;
  if (!ni_array_room(d->entity, d->n_entities, d->cap_entities) || ni_index_add(&d->entities, hash, k) < 0)
    return ni_draft_fail(d, "no memory") - 1;
  d->entity[d->n_entities++] =
      (struct ni_draft_owner){.of = {.source = (uint8_t)source, .name = ni_set_text(&d->out->set, name), .numa = -1}};
  return k;
}

bool ni_draft_add(struct ni_draft *d, uint32_t entity, const char *name, const struct ni_reading at[2]) {
  struct ni_draft_owner *e = &d->entity[entity];
  uint32_t k;
  uint64_t hash = ni_hash_text(ni_hash(0, entity), name);
  for (size_t i = 0; (k = ni_index_next(&d->items, hash, &i)) != NI_INDEX_NONE;)
    if (d->item[k].entity == entity && strcmp(d->item[k].name, name) == 0) return ni_draft_fail(d, "%s has %s twice", e->of.name, name);
  if (d->n_items >= NI_SWEEP_COUNTERS) return ni_draft_fail(d, "more than %d counters", NI_SWEEP_COUNTERS);
  if (!ni_array_room(d->item, d->n_items, d->cap_items) || ni_index_add(&d->items, hash, (uint32_t)d->n_items) < 0)
    return ni_draft_fail(d, "no memory");
  d->item[d->n_items++] = (struct ni_draft_item){name, entity, 0, {at[0], at[1]}};
  *(e->last ? &d->item[e->last - 1].next : &e->first) = (uint32_t)d->n_items;
  e->last = (uint32_t)d->n_items;
  for (int i = 0; i < 2; i++) e->n[i] += at[i].state != NI_READ_MISSING;
  return true;
}

const char *ni_draft_number(const char *t, uint64_t *out) {
  bool minus = *t == '-';
  char *end;
  if (!isdigit((unsigned char)t[minus])) return NULL;
  errno = 0;
  *out = strtoull(t, &end, 10);
  return errno || (minus && (int64_t)*out > 0) ? NULL : end;
}

const char *ni_draft_stamp(const char *t, int64_t *ns) {
  uint64_t s, part = 0, unit = 1000000000;
  const char *p = *t == '-' ? NULL : ni_draft_number(t, &s);
  if (!p || s > (uint64_t)INT64_MAX / 1000000000 - 1) return NULL;
  if (*p == '.')
    for (p++; isdigit((unsigned char)*p); p++) part += (uint64_t)(*p - '0') * (unit /= 10);
  *ns = (int64_t)(s * 1000000000 + part);
  return p;
}
