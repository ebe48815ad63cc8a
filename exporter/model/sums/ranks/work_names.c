#include "work_names.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/mix.h"
#include "exporter/base/order.h"
#include "usual_step.h"

/* Operations by function; further functions than there is room for are left out. */
struct tally {
  uint64_t function[32], ops[32];
  uint32_t n;
};

/* Of the collectives of one slot, or of all (slot: NI_BLAME_NONE). */
static void count_functions(const struct ni_work_seen *x, uint32_t slot, struct tally *t) {
  const struct ni_blame_rank *o = x->places->out;
  t->n = 0;
  for (uint32_t i = 0; i < x->n_functions; i++) {
    const struct ni_blame_function *f = &x->function[i];
    const bool is_wanted = f->slot != NI_BLAME_NONE && (slot == NI_BLAME_NONE || f->slot == slot);
    if (!x->function_ops[i] || !is_wanted)
      continue;
    const uint64_t function = ni_blame_hash_function(f->name, x->b->s->comm[o->slot[f->slot].comm].n_ranks);
    uint32_t k = 0;
    while (k < t->n && t->function[k] != function)
      k++;
    if (k == sizeof t->ops / sizeof *t->ops)
      continue;
    if (k == t->n) {
      t->function[t->n] = function;
      t->ops[t->n++] = 0;
    }
    t->ops[k] += x->function_ops[i];
  }
}

/*
 * What most of a slot's operations are. Sizes and order of messages are the rank's own: they all are one
 * thing.
 */
static uint64_t hash_slot_kind(const struct ni_work_seen *x, uint32_t slot) {
  const struct ni_blame_slot *s = &x->places->out->slot[slot];
  const bool message = s->kind != NI_BLAME_COLL;
  const bool group = message && x->places->group[slot] == slot && ni_places_is_group(x->places->out, slot);
  struct tally t = {.n = 0};
  uint64_t most = 0, function = 0;
  if (!message)
    count_functions(x, slot, &t);
  for (uint32_t i = 0; i < t.n; i++) {
    if (t.ops[i] <= most)
      continue;
    most = t.ops[i];
    function = t.function[i];
  }
  return ni_mix(ni_mix(function + (uint64_t)x->b->s->comm[s->comm].n_ranks) + (group ? 7 : s->kind) + 1);
}

/*
 * Slots of one kind are told apart by how many operations of a step they have, those with as many by the
 * order of their communicators.
 */
static void hash_slot_shapes(const struct ni_work_seen *x) {
  struct ni_blame_rank *o = x->places->out;
  uint64_t kind[NI_BLAME_SLOTS];
  for (uint32_t i = 0; i < o->n_slots; i++)
    kind[i] = hash_slot_kind(x, i);
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const uint64_t mine = (o->slot[i].ops + x->turns / 2) / (x->turns + 1);
    uint32_t before = 0;
    for (uint32_t k = 0; k < o->n_slots; k++) {
      const uint64_t theirs = (o->slot[k].ops + x->turns / 2) / (x->turns + 1);
      before += k != i && kind[k] == kind[i] && (theirs > mine || (theirs == mine && k < i));
    }
    o->slot[i].shape = ni_mix(kind[i] + before);
  }
}

/*
 * What work it does: which collectives, on communicators as large; and how many slots with messages. How many
 * they are: peer_groups.c.
 */
static void sign_work(const struct ni_work_seen *x) {
  struct ni_blame_rank *o = x->places->out;
  const uint32_t turns = x->turns + 1;
  struct tally t;
  count_functions(x, NI_BLAME_NONE, &t);
  for (uint32_t i = 0; i < t.n; i++) {
    if (t.ops[i] * 2 <= turns)
      continue;
    o->signature += ni_mix(t.function[i]);
    o->colls += (float)t.ops[i] / (float)turns;
  }
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind != NI_BLAME_COLL && o->slot[i].ops * 2 > turns)
      o->signature += ni_mix(o->slot[i].kind);
}

/* How a place is called on all ranks with the same work. */
static struct ni_blame_place name_place(const struct ni_work_seen *x, const struct ni_place_key *k) {
  const struct ni_blame_rank *o = x->places->out;
  const uint32_t slot = ni_place_slot(k), order = (k->name - 1) % NI_PLACE_POSITIONS;
  /* counted from elsewhere: others */
  const uint64_t shape = o->slot[slot].shape + !x->places->per_step[slot];
  const uint64_t at = ni_mix(shape + order + 1);
  uint64_t waits = 0, bits = 0;
  for (uint32_t m = 0; m < o->n_slots; m++) {
    if (!(k->baseline.waits_for >> m & 1))
      continue;
    const uint64_t of = ni_mix(o->slot[m].shape);
    waits += of;
    bits |= UINT64_C(1) << (of & 63);
  }
  return (struct ni_blame_place){
      .name = ni_mix(at + waits),
      .at = at,
      .waits = bits,
      .order = order,
      .message = o->slot[slot].kind != NI_BLAME_COLL && !ni_places_is_group(o, slot)};
}

static int compare_places(const void *a, const void *b) {
  const struct ni_blame_place *x = a, *y = b;
  return NI_BY(x, y, name);
}

static int build_places(const struct ni_work_seen *x) {
  struct ni_blame_rank *o = x->places->out;
  const uint32_t turns = x->turns + 1;
  const float each = (float)turns / (float)o->n_steps;
  if (!(o->place = malloc((x->places->n_keys + 1) * sizeof *o->place)))
    return -ENOMEM;
  for (uint32_t i = 0; i < NI_PLACE_KEYS; i++) {
    const struct ni_place_key *k = &x->places->key[i];
    if (!ni_place_is_compared(x->places, k) || k->n * 2 < turns)
      continue;
    const float mean_us = k->steady ? (float)(k->own / k->steady) : k->baseline.us;
    struct ni_blame_place *p = &o->place[o->n_places++];
    *p = name_place(x, k);
    p->usual_us = k->baseline.us * each;
    p->mean_us = mean_us * each;
  }
  qsort(o->place, o->n_places, sizeof *o->place, compare_places);
  return 0;
}

int ni_work_names(const struct ni_work_seen *x) {
  hash_slot_shapes(x);
  const int e = build_places(x);
  if (e == 0)
    sign_work(x);
  return e;
}
