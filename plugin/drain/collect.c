#include "collect.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/slots/state.h"

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

/*
 * Is one of the same hash and rank over, and its last lines are not said yet? Nothing in a line tells the two
 * apart.
 */
static int last_life_ends(const struct ni_drain *d, const struct ni_comm_writer *s) {
  /* Acquire pairs with the release in ni_dump_finalize: who came after that finalize finds it counted. */
  if (!ni_load_acq(&d->closings))
    return 0;
  for (const struct ni_comm_writer *o = d->w->comms; o; o = o->next)
    if (o->ident.comm_hash == s->ident.comm_hash && o->ident.rank == s->ident.rank &&
        o->stage == NI_STAGE_LIVE && ni_comm_phase_of(ni_load_acq(&o->comm->state)) == NI_COMM_CLOSING)
      return s->ident.comm_hash != 0; /* v1 to v3 do not know it yet */
  return 0;
}

static struct ni_comm_writer *turned(struct ni_comm_writer *list) {
  struct ni_comm_writer *out = NULL;
  for (struct ni_comm_writer *s = list, *next; s; s = next) {
    next = s->next;
    s->next = out;
    out = s;
  }
  return out;
}

/* Takes communicators in that init has announced, in their order. One that has to wait, or that finds no
 * memory, stays announced with all behind it. */
void ni_collect_join(struct ni_drain *d) {
  struct ni_comm_writer *s = turned(atomic_exchange_explicit(&d->joining, NULL, memory_order_acquire)),
                        *head = NULL;
  while (s && !last_life_ends(d, s)) {
    struct ni_comm_writer *next = s->next;
    if (s->index >= d->cap_index) {
      uint32_t cap = d->cap_index ? d->cap_index : 64;
      while (cap <= s->index)
        cap *= 2;
      struct ni_comm_writer **p = realloc(d->by_index, cap * sizeof *p);
      if (!p)
        break;
      memset(p + d->cap_index, 0, (cap - d->cap_index) * sizeof *p);
      d->by_index = p;
      d->cap_index = cap;
    }
    d->by_index[s->index] = s;
    s->next = d->w->comms;
    d->w->comms = s;
    d->n_comms++;
    d->w->comms_changed = 1;
    s = next;
  }
  if (!s)
    return;
  /* to the old end of the list: others push at its head only, with a release that pairs with this acquire */
  s = turned(s);
  if (atomic_compare_exchange_strong_explicit(&d->joining, &head, s, memory_order_release,
                                              memory_order_acquire))
    return;
  while (head->next)
    head = head->next;
  head->next = s;
}

static void append_to_todo(struct ni_comm_writer *s, uint32_t slot) {
  while (slot) {
    struct ni_op *op = op_at(slot);
    uint32_t next = ni_load_rlx(&op->next);
    ni_chain_append(&s->kind[op->kind].todo, slot);
    slot = next;
  }
}

static int collect_side(struct ni_drain *d, struct ni_comm_writer *s) {
  uint32_t n = 0;
  /* its final line is out: what finishes at exit after it is in flight there */
  if (s->stage != NI_STAGE_LIVE)
    return 0;
  append_to_todo(s, ni_done_drain(&ni_g.arena, &s->comm->done, &n));
  if (n)
    ni_drain_busy(d, s);
  return n != 0;
}

int ni_collect(struct ni_drain *d) {
  int moved = 0;
  ni_collect_join(d);
  uint32_t words = (d->cap_index + 63) / 64;
  for (uint32_t w = 0; w < words; w++) {
    if (!ni_load_rlx(&ni_g.dirty[w]))
      continue;
    /* Acquire pairs with the or in publish_done: the entry that set the bit is on the list. A communicator
     * that is not taken in yet gets its bit back: whoever set it came after the join, so the joining list is
     * not empty. Otherwise the bit is of a communicator that is gone (its entry was drained before the bit
     * came), and kept it would never let an interval of 0 sleep again. */
    uint64_t bits = ni_swap_acqrel(&ni_g.dirty[w], 0);
    while (bits) {
      uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
      bits &= bits - 1;
      struct ni_comm_writer *s = i < d->cap_index ? d->by_index[i] : NULL;
      if (s)
        moved |= collect_side(d, s);
      else if (atomic_load_explicit(&d->joining, memory_order_acquire))
        ni_or_rel(&ni_g.dirty[w], UINT64_C(1) << (i % 64));
    }
  }
  return moved;
}
