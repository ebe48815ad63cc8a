#include "pair.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CXI_HZ 1e9 /* of Cassini's clock: what its cycles count */

/* Both sets' entities in one order; one that both have stands twice, before's first. */
struct place {
  const struct ni_set *set;
  const struct ni_entity *of;
  bool after;
};

static int by_source_and_name(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->of->source != y->of->source) return x->of->source < y->of->source ? -1 : 1;
  int d = strverscmp(x->of->name, y->of->name);
  return d ? d : (int)x->after - (int)y->after;
}

static uint64_t name_hash(uint32_t entity, const char *name) { return ni_hash_text(ni_hash(0, entity), name); }

const struct ni_pair_row *ni_pair_row(const struct ni_pair *p, uint32_t entity, const char *name) {
  uint32_t k;
  uint64_t hash = name_hash(entity, name);
  for (size_t at = 0; (k = ni_index_next(&p->by_name, hash, &at)) != NI_INDEX_NONE;)
    if (p->row[k].entity == entity && strcmp(p->row[k].name, name) == 0) return &p->row[k];
  return NULL;
}

const struct ni_pair_entity *ni_pair_entity_of(const struct ni_pair *p, const struct ni_entity *e) {
  for (size_t i = 0; i < p->n_entities; i++)
    if (p->entity[i].of->source == e->source && strcmp(p->entity[i].of->name, e->name) == 0) return &p->entity[i];
  return NULL;
}

static int add_row(struct ni_pair *p, uint32_t entity, const struct ni_counter *c) {
  struct ni_pair_row *r = &p->row[p->n_rows];
  *r = (struct ni_pair_row){.entity = entity, .name = c->name, .what = c->what,
                            .before.state = NI_READ_MISSING, .after.state = NI_READ_MISSING};
  int e = ni_index_add(&p->by_name, name_hash(entity, c->name), (uint32_t)p->n_rows);
  if (e == 0) p->n_rows++, p->entity[entity].n++;
  return e;
}

/* The rows of one entity: after's, then what only before has. Sets are mostly in one order, so the row that comes next is
 * looked at first. */
static int add_rows(struct ni_pair *p, uint32_t k, const struct place *b, const struct ni_reading *before,
                    const struct place *a, const struct ni_reading *after) {
  struct ni_pair_entity *e = &p->entity[k];
  int bad = 0;
  for (uint32_t i = 0; a && i < a->of->n && bad == 0; i++) {
    bad = add_row(p, k, &a->set->counter[a->of->first + i]);
    if (bad == 0) p->row[p->n_rows - 1].after = after[a->of->first + i];
  }
  uint32_t next = e->first, end = (uint32_t)p->n_rows;
  for (uint32_t i = 0; b && i < b->of->n && bad == 0; i++) {
    const struct ni_counter *c = &b->set->counter[b->of->first + i];
    const struct ni_pair_row *r =
        next < end && strcmp(p->row[next].name, c->name) == 0 ? &p->row[next] : ni_pair_row(p, k, c->name);
    if (!r) {
      bad = add_row(p, k, c);
      r = &p->row[p->n_rows - 1];
    } else {
      next = (uint32_t)(r - p->row) + 1;
    }
    if (bad == 0) p->row[r - p->row].before = before[b->of->first + i];
  }
  return bad;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* What became of each counter, and what that says of the entity. seconds has room for one a row. */
static void judge(struct ni_pair *p, struct ni_pair_entity *e, double *seconds) {
  size_t n = 0, above = 0;
  for (struct ni_pair_row *r = p->row + e->first; r < p->row + e->first + e->n; r++) {
    r->change = ni_change_of(&r->what, &r->before, &r->after, e->of->link_bytes_s);
    e->changed += r->change.state == NI_CHANGE_CHANGED || r->change.state == NI_CHANGE_LEVEL;
    e->resets += r->change.state == NI_CHANGE_RESET;
    above += r->change.seconds > 0 && r->what.kind != NI_METRIC_GAUGE && r->before.value > 0;
    if (r->change.seconds > 0) seconds[n++] = r->change.seconds;
  }
  /* A single counter that fell may have been set to 0 by somebody. */
  e->reloaded = e->resets > 1 && 2 * (size_t)e->resets >= above;
  qsort(seconds, n, sizeof *seconds, by_size);
  e->seconds = n ? seconds[n / 2] : 0;
  if (e->seconds > p->seconds) p->seconds = e->seconds;
}

static int make(struct ni_pair *p, const struct place *place, size_t n, const struct ni_reading *before,
                const struct ni_reading *after) {
  int bad = 0;
  for (size_t i = 0; i < n && bad == 0; i++) {
    const struct place *b = place[i].after ? NULL : &place[i], *a = place[i].after ? &place[i] : NULL;
    if (b && i + 1 < n && place[i + 1].after && b->of->source == place[i + 1].of->source &&
        strcmp(b->of->name, place[i + 1].of->name) == 0)
      a = &place[++i];
    p->entity[p->n_entities] = (struct ni_pair_entity){
        .of = a ? a->of : b->of, .in_before = b != NULL, .in_after = a != NULL, .first = (uint32_t)p->n_rows};
    bad = add_rows(p, (uint32_t)p->n_entities++, b, before, a, after);
  }
  return bad;
}

int ni_pair_make(struct ni_pair *out, const struct ni_set *before_set, const struct ni_reading *before,
                 const struct ni_set *after_set, const struct ni_reading *after) {
  size_t n = before_set->n_entities + after_set->n_entities, rows = before_set->n_counters + after_set->n_counters;
  struct place *place = malloc((n + 1) * sizeof *place);
  double *seconds = malloc((rows + 1) * sizeof *seconds);
  *out = (struct ni_pair){.entity = malloc((n + 1) * sizeof *out->entity), .row = malloc((rows + 1) * sizeof *out->row)};
  int e = place && seconds && out->entity && out->row ? 0 : -ENOMEM;
  if (e == 0) {
    for (size_t i = 0; i < n; i++) {
      bool is_after = i >= before_set->n_entities;
      const struct ni_set *s = is_after ? after_set : before_set;
      place[i] = (struct place){s, &s->entity[is_after ? i - before_set->n_entities : i], is_after};
    }
    qsort(place, n, sizeof *place, by_source_and_name);
    e = make(out, place, n, before, after);
  }
  for (size_t i = 0; i < out->n_entities && e == 0; i++) judge(out, &out->entity[i], seconds);
  free(place);
  free(seconds);
  if (e < 0) ni_pair_free(out);
  return e;
}

void ni_pair_free(struct ni_pair *p) {
  free(p->entity);
  free(p->row);
  ni_index_free(&p->by_name);
  *p = (struct ni_pair){0};
}

double ni_pair_rate(const struct ni_pair_row *r) { return ni_change_rate(&r->change) * (r->what.scale ? r->what.scale : 1); }

double ni_pair_share(const struct ni_pair *p, const struct ni_pair_row *r) {
  const struct ni_entity *e = p->entity[r->entity].of;
  if (r->change.state != NI_CHANGE_CHANGED) return NAN;
  if (strcmp(r->what.unit, "cycles") == 0 && e->source == NI_METRIC_CXI) return ni_pair_rate(r) / CXI_HZ;
  if (strcmp(r->what.unit, "bytes") == 0 && e->link_bytes_s > 0) return ni_pair_rate(r) / e->link_bytes_s;
  return NAN;
}
