#include "pair.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

#define CXI_HZ 1e9 /* of Cassini's clock: what its cycles count */

static bool is_same_entity(const struct ni_entity *a, const struct ni_entity *b) {
  return a->source == b->source && strcmp(a->name, b->name) == 0;
}

static int by_source_and_name(const void *a, const void *b) {
  const struct ni_entity *x = ((const struct ni_pair_entity *)a)->of,
                         *y = ((const struct ni_pair_entity *)b)->of;
  return x->source != y->source ? (int)x->source - (int)y->source : strverscmp(x->name, y->name);
}

static uint64_t hash_name(uint32_t entity, const char *name) {
  return ni_hash_text(ni_hash(0, entity), name);
}

const struct ni_pair_row *ni_pair_row(const struct ni_pair *p, uint32_t entity, const char *name) {
  uint32_t k;
  uint64_t hash = hash_name(entity, name);
  for (size_t at = 0; (k = ni_index_next(&p->by_name, hash, &at)) != NI_INDEX_NONE;)
    if (p->row[k].entity == entity && strcmp(p->row[k].name, name) == 0)
      return &p->row[k];
  return NULL;
}

const struct ni_pair_entity *ni_pair_entity_of(const struct ni_pair *p, const struct ni_entity *e) {
  for (size_t i = 0; i < p->n_entities; i++)
    if (is_same_entity(p->entity[i].of, e))
      return &p->entity[i];
  return NULL;
}

/* Adds what a sweep says of an entity to the rows that are there, and to new ones. */
static int add_rows(struct ni_pair *p, uint32_t k, const struct ni_set *set, const struct ni_reading *reading,
                    bool after) {
  size_t at = 0;
  while (at < set->n_entities && !is_same_entity(&set->entity[at], p->entity[k].of))
    at++;
  if (at == set->n_entities)
    return 0;
  const struct ni_entity *e = &set->entity[at];
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const struct ni_counter *c = &set->counter[i];
    const struct ni_pair_row *old = ni_pair_row(p, k, c->name);
    struct ni_pair_row *r = &p->row[old ? (size_t)(old - p->row) : p->n_rows];
    if (!old) {
      if (ni_index_add(&p->by_name, hash_name(k, c->name), (uint32_t)p->n_rows) < 0)
        return -ENOMEM;
      *r = (struct ni_pair_row){.entity = k,
                                .name = c->name,
                                .what = c->what,
                                .before.state = NI_READ_MISSING,
                                .after.state = NI_READ_MISSING};
      p->n_rows++;
      p->entity[k].n++;
    }
    *(after ? &r->after : &r->before) = reading[i];
  }
  return 0;
}

static NI_ORDER_OF(by_size, double);

double ni_pair_median(double *of, size_t n) {
  qsort(of, n, sizeof *of, by_size);
  return n ? of[n / 2] : NAN;
}

/*
 * Finds what became of each counter, and what that says of the entity. seconds has room for one number a row.
 */
static void judge_entity(struct ni_pair *p, struct ni_pair_entity *e, double *seconds) {
  size_t n = 0, above = 0;
  NI_EACH(struct ni_pair_row, r, p->row + e->first, e->n) {
    r->change = ni_change_of(&r->what, &r->before, &r->after, e->of->link_bytes_s);
    e->changed += r->change.state == NI_CHANGE_CHANGED || r->change.state == NI_CHANGE_LEVEL;
    e->resets += r->change.state == NI_CHANGE_RESET;
    above += r->change.seconds > 0 && r->what.kind != NI_METRIC_GAUGE && r->before.value > 0;
    if (r->change.seconds > 0)
      seconds[n++] = r->change.seconds;
  }
  /* A single counter that fell may have been set to 0 by somebody. */
  e->reloaded = e->resets > 1 && 2 * (size_t)e->resets >= above;
  e->seconds = n ? ni_pair_median(seconds, n) : 0;
  if (e->seconds > p->seconds)
    p->seconds = e->seconds;
}

static void add_entities(struct ni_pair *p, const struct ni_set *set, bool after) {
  for (size_t i = 0; i < set->n_entities; i++) {
    const struct ni_entity *e = &set->entity[i];
    const struct ni_pair_entity *old = ni_pair_entity_of(p, e);
    struct ni_pair_entity *to = &p->entity[old ? (size_t)(old - p->entity) : p->n_entities++];
    if (!old)
      *to = (struct ni_pair_entity){.of = e};
    *(after ? &to->in_after : &to->in_before) = true;
  }
}

int ni_pair_make(struct ni_pair *out, const struct ni_set *before_set, const struct ni_reading *before,
                 const struct ni_set *after_set, const struct ni_reading *after) {
  size_t n = before_set->n_entities + after_set->n_entities,
         rows = before_set->n_counters + after_set->n_counters;
  double *seconds = malloc((rows + 1) * sizeof *seconds);
  *out = (struct ni_pair){.entity = malloc((n + 1) * sizeof *out->entity),
                          .row = malloc((rows + 1) * sizeof *out->row)};
  int e = seconds && out->entity && out->row ? 0 : -ENOMEM;
  if (e == 0) {
    add_entities(out, after_set, true);
    add_entities(out, before_set, false);
    qsort(out->entity, out->n_entities, sizeof *out->entity, by_source_and_name);
  }
  for (uint32_t i = 0; i < out->n_entities && e == 0; i++) {
    out->entity[i].first = (uint32_t)out->n_rows;
    e = add_rows(out, i, after_set, after, true);
    if (e == 0)
      e = add_rows(out, i, before_set, before, false);
    if (e == 0)
      judge_entity(out, &out->entity[i], seconds);
  }
  free(seconds);
  if (e < 0)
    ni_pair_free(out);
  return e;
}

void ni_pair_free(struct ni_pair *p) {
  free(p->entity);
  free(p->row);
  ni_index_free(&p->by_name);
  *p = (struct ni_pair){0};
}

double ni_pair_rate(const struct ni_pair_row *r) {
  return ni_change_rate(&r->change) * (r->what.scale ? r->what.scale : 1);
}

double ni_pair_share(const struct ni_pair *p, const struct ni_pair_row *r) {
  const struct ni_entity *e = p->entity[r->entity].of;
  if (r->change.state != NI_CHANGE_CHANGED)
    return NAN;
  if (strcmp(r->what.unit, "cycles") == 0 && e->source == NI_METRIC_CXI)
    return ni_pair_rate(r) / CXI_HZ;
  if (strcmp(r->what.unit, "bytes") == 0 && e->link_bytes_s > 0)
    return ni_pair_rate(r) / e->link_bytes_s;
  return NAN;
}
