#include "settle.h"

#include <stdlib.h>

#include "plugin/callbacks/chan_trace.h"
#include "plugin/slots/beside/annex.h"
#include "plugin/slots/registry.h"
#include "plugin/slots/slot_pool.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "plugin/write/prom.h"

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

/* ---- slots ---- */

static void put_free(struct ni_comm_writer *s, int kind, struct ni_chain *c) {
  if (!c->n)
    return;
  ni_pool_put_chain(&ni_g.arena, &s->comm->kind[kind].pool, c->first, c->last);
  *c = (struct ni_chain){0};
}

void ni_settle_rest(struct ni_drain *d, struct ni_kind_writer *k, uint32_t slot) {
  struct ni_op *op = op_at(slot);
  op->seen_ms = d->judge_ms;
  op->seen_prog = (uint32_t)d->ticks;
  ni_chain_append(&k->rest, slot);
}

/* A retired operation's record is written, or counted elsewhere: a reader of the black box passes over it. */
static void mark_settled(struct ni_op *op) {
  (void)atomic_fetch_or_explicit(&op->state, NI_STATE_FLAG(NI_OP_SETTLED), memory_order_relaxed);
}

void ni_settle_give(struct ni_drain *d, struct ni_comm_writer *s, int kind, uint32_t slot) {
  struct ni_op *op = op_at(slot);
  if (ni_state_flags(ni_load_rlx(&op->state)) & NI_OP_RETIRED) {
    mark_settled(op);
    ni_settle_rest(d, &s->kind[kind], slot);
    return;
  }
  ni_annex_give(s->comm, op);
  ni_pool_give(&ni_g.arena, &s->comm->kind[kind].pool, slot);
}

/* ---- a written block ---- */

/* The black box has the clock with which the records in the log were judged. */
static void keep_fit(const struct ni_comm_writer *s) {
  struct ni_gpu_relation r = {.n_samples = s->fit.n_samples, .confirmed_at_ns = s->fit.confirmed_at_ns};
  if (ni_gpu_fit_offset(&s->fit, &r.offset_ns, NULL))
    ni_keep_fit(s->comm, &r, s->poisoned);
}

void ni_settle_block(struct ni_drain *d) {
  struct ni_comm_writer *s = d->busy;
  d->busy = NULL;
  ni_accounts_settle_events(&d->w->detached);
  while (s) {
    struct ni_comm_writer *next = s->next_busy;
    s->in_busy = 0;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_kind_writer *k = &s->kind[kind];
      struct ni_chain free_now = {0};
      for (uint32_t slot; (slot = ni_chain_take(&k->held)) != 0;) {
        struct ni_op *op = op_at(slot);
        if (ni_state_flags(ni_load_rlx(&op->state)) & NI_OP_RETIRED) {
          mark_settled(op);
          ni_settle_rest(d, k, slot);
        } else {
          ni_annex_give(s->comm, op);
          ni_slot_new_life(op);
          ni_chain_append(&free_now, slot);
        }
      }
      put_free(s, kind, &free_now);
      k->account->written += k->in_block;
      k->in_block = 0;
      if (k->todo.n)
        ni_drain_busy(d, s);
    }
    ni_accounts_settle_events(&s->ev);
    keep_fit(s);
    s = next;
  }
  for (s = d->closed_in_block ? d->w->comms : NULL; s; s = s->next)
    if (s->stage == NI_STAGE_CLOSED)
      s->stage = NI_STAGE_WRITTEN;
  d->closed_in_block = 0;
  d->w->block_records = 0;
}

/* ---- release ---- */

/* What a callback has filled after the last look at it: whoever gets the page next must not find it alive. */
static void end_life(struct ni_op *op, uint32_t slot, void *arg) {
  if (ni_state_flags(ni_load_rlx(&op->state)))
    ni_slot_new_life(op);
}

/* The accounts did not close: a callback was still on its way when the last lines were said. Or an event was
 * open at the end: one may be inside it. It must not meet another's memory, so the communicator rests as a
 * retired slot does. */
static int may_still_come(const struct ni_drain *d, const struct ni_comm_writer *s) {
  int away = s->cut_short || (s->closing_ms && ni_accounts_any_unsettled(s));
  return away &&
      (d->judge_ms - s->closing_judge_ms < NI_REST_MS ||
       (uint32_t)d->ticks - s->closing_tick < NI_REST_TICKS);
}

static void free_writer(struct ni_drain *d, struct ni_comm_writer *s) {
  ni_accounts_add(s, &d->gone_started, &d->gone_dropped);
  struct ni_comm *c = s->comm;
  for (int kind = 0; s->closing_ms && kind < NI_KIND_COUNT; kind++)
    ni_pool_walk(&ni_g.arena, &c->kind[kind].pool, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->events.proxies, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->events.events, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->more, end_life, NULL);
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    ni_trace_leave(&c->kind[kind].pool);
    ni_pool_close(&ni_g.arena, &c->kind[kind].pool);
  }
  ni_pool_close(&ni_g.arena, &c->events.events);
  ni_pool_close(&ni_g.arena, &c->events.proxies);
  ni_pool_close(&ni_g.arena, &c->more);
  ni_pool_close(&ni_g.arena, &c->annexes);
  d->by_index[s->index] = NULL;
  d->n_comms--;
  d->w->comms_changed = 1;
  pthread_mutex_lock(&ni_g.lock);
  ni_registry_give(s->index);
  pthread_mutex_unlock(&ni_g.lock);
  /* Release: a later init that takes the page sees it as we leave it (through the arena's stack). */
  ni_store_rel(&c->state, ni_comm_state(s->gen + 1, NI_COMM_FREE));
  ni_arena_give(&ni_g.arena, NI_CHUNK_COMM, c->page);
  ni_rollup_free(&s->rollup, &d->w->roll_pool);
  ni_line_prefix_free(&s->prefix);
  free(s->replays);
  free(s);
}

void ni_settle_release(struct ni_drain *d) {
  for (struct ni_comm_writer **p = &d->w->comms, *s; (s = *p);) {
    uint32_t resting = 0;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_kind_writer *k = &s->kind[kind];
      struct ni_chain rested = {0};
      while (k->rest.n) {
        struct ni_op *op = op_at(k->rest.first);
        if (d->judge_ms - op->seen_ms < NI_REST_MS || (uint32_t)d->ticks - op->seen_prog < NI_REST_TICKS)
          break;
        uint32_t slot = ni_chain_take(&k->rest);
        ni_annex_give(s->comm, op);
        ni_slot_new_life(op);
        ni_chain_append(&rested, slot);
      }
      put_free(s, kind, &rested);
      resting += k->rest.n;
    }
    /*
     * Exit closes communicators that nobody has finalized: callbacks still run on them, and use their pools.
     */
    /* pairs with finalize's release */
    int in_use = ni_comm_phase_of(ni_load_acq(&s->comm->state)) == NI_COMM_LIVE;
    if (s->stage == NI_STAGE_WRITTEN && !in_use && !resting && !s->in_busy && !may_still_come(d, s)) {
      *p = s->next;
      ni_prom_take_dropped(d->w, s);
      free_writer(d, s);
    } else {
      p = &s->next;
    }
  }
}
