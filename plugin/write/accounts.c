#include "accounts.h"

#include <string.h>

#include "plugin/slots/state.h"
#include "writer.h"

/* ---- operations ---- */

static uint64_t filtered(const struct ni_comm_writer *s, int kind, enum ni_filter f) {
  uint64_t n = ni_load_rlx(&s->comm->kind[kind].filtered[f]);
  return f == NI_FILTER_NO_KERNEL_TIMING ? n + s->kind[kind].account->judged_out : n;
}

uint64_t ni_accounts_dropped(const struct ni_comm_writer *s, int kind, enum ni_drop why) {
  uint64_t n = ni_load_rlx(&s->comm->kind[kind].dropped[why]);
  return why == NI_DROP_WRITE_ERROR ? n + s->kind[kind].account->lost_write : n;
}

int64_t ni_accounts_unsettled(const struct ni_comm_writer *s, int kind) {
  const struct ni_kind_writer *k = &s->kind[kind];
  uint64_t settled = k->account->written + k->in_block + k->account->incomplete;
  for (int f = 0; f < NI_FILTER_COUNT; f++)
    settled += filtered(s, kind, (enum ni_filter)f);
  for (int w = 0; w < NI_DROP_OF_PLUGIN; w++)
    settled += ni_accounts_dropped(s, kind, (enum ni_drop)w);
  return (int64_t)(ni_load_rlx(&s->comm->kind[kind].started) - settled);
}

/*
 * Fills the accounting of one kind. in_flight is what is left of `started`. On a final line of a destroyed
 * communicator nothing moves any more and walking the slot states must give the same; at exit callbacks may
 * still run, and what they finish after the drain counts as in flight. `started` is read last: an operation
 * that starts while we add up appears in flight, never as a negative number.
 */
void ni_accounts_fill(struct ni_comm_writer *s, int kind, int final, struct ni_kind_counts *o) {
  struct ni_kind_writer *k = &s->kind[kind];
  uint64_t settled = o->written = k->account->written + k->in_block, dropped = 0;
  for (int f = 0; f < NI_FILTER_COUNT; f++)
    settled += o->filtered[f] = filtered(s, kind, (enum ni_filter)f);
  for (int w = 0; w < NI_DROP_OF_PLUGIN; w++) {
    /*
     * At exit operations are still dropped: the last line states those that its gap lines name, more are in
     * flight.
     */
    bool as_told = final && w < NI_DROP_OF_CALLBACKS;
    dropped += o->dropped[w] = as_told ? k->gap_seen[w] : ni_accounts_dropped(s, kind, (enum ni_drop)w);
  }
  o->dropped[NI_DROP_BOX_FULL] = 0; /* of a process that lives nothing is lost with its box */
  settled += dropped + (o->incomplete = k->account->incomplete);
  o->late = ni_load_rlx(&s->comm->kind[kind].late);
  memcpy(o->fallback, k->account->fallback, sizeof o->fallback);
  atomic_thread_fence(memory_order_seq_cst); /* the counters above are read before `started` below */
  o->started = ni_load_rlx(&s->comm->kind[kind].started);
  o->in_flight = o->started > settled ? o->started - settled : 0;
  o->records = o->written - k->stats_lines;
  o->dropped_since_last = dropped - k->stats_dropped;
}

void ni_accounts_add(const struct ni_comm_writer *s, uint64_t *started, uint64_t *dropped) {
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    *started += ni_load_rlx(&s->comm->kind[kind].started);
    for (int why = 0; why < NI_DROP_OF_CALLBACKS; why++)
      *dropped += ni_load_rlx(&s->comm->kind[kind].dropped[why]);
  }
}

static void count_one(struct ni_op *op, uint32_t slot, void *arg) {
  *(uint64_t *)arg += ni_op_in_flight(ni_load_rlx(&op->state)) != 0; /* relaxed: a count, no field is read */
}

uint64_t ni_accounts_walked(struct ni_comm_writer *s, enum ni_kind kind) {
  uint64_t n = 0;
  ni_pool_walk(&ni_g.arena, &s->comm->kind[kind].pool, count_one, &n);
  return n;
}

static void count_unwritten(struct ni_op *op, uint32_t slot, void *arg) {
  uint32_t flags = ni_state_flags(ni_load_rlx(&op->state)); /* relaxed: a count, no field is read */
  bool finished = (flags & (NI_OP_DONE | NI_OP_RETIRED)) != 0;
  bool over = (flags & (NI_OP_GIVEN_UP | NI_OP_SETTLED)) != 0;
  *(uint64_t *)arg += finished && !over;
}

uint64_t ni_accounts_unwritten(const struct ni_writer *w) {
  uint64_t n = 0;
  for (struct ni_comm_writer *s = w->comms; s; s = s->next)
    for (int kind = 0; kind < NI_KIND_COUNT; kind++)
      ni_pool_walk(&ni_g.arena, &s->comm->kind[kind].pool, count_unwritten, &n);
  return n;
}

/* ---- events ---- */

void ni_accounts_settle_events(struct ni_event_writer *ev) {
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    ev->written[k] += ev->in_block[k];
    ev->in_block[k] = 0;
  }
}

void ni_accounts_events(const struct ni_event_store *st, const struct ni_event_writer *ev,
                        struct ni_event_stats *out) {
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    out[k].written = ev->written[k] + ev->in_block[k];
    out[k].dropped = ni_load_rlx(&st->dropped[k]) + ev->lost[k];
  }
  atomic_thread_fence(memory_order_seq_cst);
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    out[k].started = ni_load_rlx(&st->started[k]);
    uint64_t settled = out[k].written + out[k].dropped;
    out[k].in_flight = out[k].started > settled ? out[k].started - settled : 0;
  }
}
