#include "chan_trace.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "plugin/slots/beside/chan_more.h"
#include "plugin/slots/slot_pool.h"
#include "plugin/slots/state.h"

static struct ni_trace_page *page_at(uint32_t page) {
  return (struct ni_trace_page *)ni_arena_page(&ni_g.traces.arena, page);
}

static struct ni_trace_page *page_of(_Atomic uint32_t *of, uint32_t slot) {
  uint32_t page = ni_load_rlx(&of[slot]);
  return page ? page_at(page) : NULL;
}

static void begin(_Atomic uint32_t *of, uint32_t slot) {
  struct ni_trace_page *p = page_of(of, slot);
  if (!ni_load_rlx(&ni_g.verbose)) {
    if (!p)
      return;
    ni_arena_give(&ni_g.traces.arena, NI_CHUNK_OP_FIRST, ni_load_rlx(&of[slot]));
    ni_store_rlx(&of[slot], 0);
    return;
  }
  if (!p) {
    uint32_t page = ni_arena_take(&ni_g.traces.arena, NI_CHUNK_OP_FIRST);
    ni_store_rlx(&of[slot], page);
    if (!page) {
      ni_add_rlx(&ni_g.traces.lost, 1);
      return;
    }
    p = page_at(page);
  }
  ni_store_rlx(&p->sn, 1);
  ni_store_rlx(&p->stop_sn, 0);
  ni_store_rlx(&p->stop_ticks, 0);
  ni_store_rlx(&p->seen, 0);
}

static void note(_Atomic uint32_t *of, uint32_t slot, uint32_t channel, enum ni_trace_what what) {
  struct ni_trace_page *p = page_of(of, slot);
  if (!p || channel >= NI_CHANNELS)
    return;
  uint64_t ticks = ni_ticks(ni_g.tick_source), bit = UINT64_C(1) << channel;
  uint32_t sn = ni_add_rlx(&p->sn, 1) + 1; /* starter and poller both count */
  if (what == NI_TRACE_START) {
    for (int i = 0; i < 3; i++) {
      ni_store_rlx(&p->cell[channel].ticks[i], 0);
      ni_store_rlx(&p->cell[channel].sn[i], 0);
    }
    ni_store_rlx(&p->seen, ni_load_rlx(&p->seen) | bit); /* one poller an operation */
  } else if (!(ni_load_rlx(&p->seen) & bit)) {
    return; /* it started before the trace was there */
  }
  ni_store_rlx(&p->cell[channel].ticks[what], ticks);
  ni_store_rlx(&p->cell[channel].sn[what], sn);
}

static void end(_Atomic uint32_t *of, uint32_t slot) {
  struct ni_trace_page *p = page_of(of, slot);
  if (!p)
    return;
  ni_store_rlx(&p->stop_ticks, ni_ticks(ni_g.tick_source));
  ni_store_rlx(&p->stop_sn, ni_add_rlx(&p->sn, 1) + 1);
}

/*
 * Is the operation that a payload names in flight? A slot that has begun another life, or one that is judged,
 * is left alone.
 */
static int in_flight(uint64_t payload, uint32_t *flags) {
  struct ni_op *op = ni_arena_op_checked(&ni_g.arena, ni_payload_index(payload));
  uint64_t state = op ? ni_load_acq(&op->state) : 0; /* pairs with the LIVE store of its start */
  *flags = ni_state_flags(state);
  return op && ni_state_is(state, ni_payload_gen(payload)) && !(*flags & (NI_OP_DONE | NI_OP_RETIRED));
}

static void channel_beside(_Atomic uint32_t *of, const void *handle, enum ni_trace_what what) {
  struct ni_event_slot *e = ni_more_of(ni_handle_payload(handle, ni_g.nonce));
  uint64_t parent = e ? ni_load_rlx(&e->chan.parent) : 0;
  uint32_t flags;
  if (e && in_flight(parent, &flags))
    note(of, ni_payload_index(parent), ni_load_rlx(&e->chan.channel), what);
}

static void channel(_Atomic uint32_t *of, const void *handle, enum ni_trace_what what) {
  if (ni_handle_kind(handle) == NI_H_MORE) {
    channel_beside(of, handle, what);
    return;
  }
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  uint32_t page = ni_payload_cell_page(payload), flags;
  if (ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM)
    return;
  struct ni_chan_cell *cell = &ni_arena_comm(&ni_g.arena, page)->cell[ni_payload_cell_index(payload)];
  uint64_t parent = ni_load_rlx(&cell->open);
  if ((ni_load_rlx(&cell->number) & NI_H_NUMBER_MASK) != ni_payload_cell_number(payload) || !parent)
    return;
  if (in_flight(parent, &flags))
    note(of, ni_payload_index(parent), ni_payload_cell_index(payload) / 2, what);
}

static int is_channel(const void *handle) {
  return ni_handle_kind(handle) == NI_H_CHANNEL || ni_handle_kind(handle) == NI_H_MORE;
}

void ni_trace_started(const void *handle) {
  /* pairs with make_memory's release: the arena is there */
  _Atomic uint32_t *of = ni_load_acq(&ni_g.traces.of);
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  uint32_t flags;
  if (!of)
    return;
  if (is_channel(handle))
    channel(of, handle, NI_TRACE_START);
  else if (ni_handle_kind(handle) == NI_H_OP && in_flight(payload, &flags))
    begin(of, ni_payload_index(payload));
}

void ni_trace_stamped(const void *handle) {
  _Atomic uint32_t *of = ni_load_acq(&ni_g.traces.of); /* as above */
  if (of && is_channel(handle))
    channel(of, handle, NI_TRACE_RECORD);
}

void ni_trace_stopping(const void *handle) {
  /* pairs with make_memory's release: the arena is there */
  _Atomic uint32_t *of = ni_load_acq(&ni_g.traces.of);
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  uint32_t flags;
  if (!of)
    return;
  if (is_channel(handle))
    channel(of, handle, NI_TRACE_STOP);
  else if (ni_handle_kind(handle) == NI_H_OP && in_flight(payload, &flags) && !(flags & NI_OP_CLOSED))
    end(of, ni_payload_index(payload));
}

/* ---- init and dump role ---- */

static int make_memory(void) {
  struct ni_traces *t = &ni_g.traces;
  size_t bytes = (size_t)ni_g.arena.n_pages * NI_SLOTS_PER_PAGE * sizeof(uint32_t);
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return -errno;
  (void)madvise(p, bytes, MADV_DONTFORK);
  uint64_t cap = ni_g.config.pool_max_bytes / 2;
  int rc =
      ni_arena_open(&t->arena, cap < (1u << 20) ? 1u << 20 : cap, NI_SLOTS_PER_PAGE, NI_SLOTS_PER_PAGE, NULL);
  if (rc) {
    (void)munmap(p, bytes);
    return rc;
  }
  _Atomic uint32_t *of = p;
  ni_store_rel(&t->of, of); /* pairs with the callbacks' acquire */
  (void)atomic_fetch_or_explicit(&ni_g.armed, NI_EXTRA_TRACES, memory_order_relaxed);
  return 0;
}

int ni_verbose_set(int on) {
  int was = ni_load_rlx(&ni_g.verbose), rc;
  if (on && !ni_load_rlx(&ni_g.traces.of) && (rc = make_memory()) != 0) {
    ni_log_warn(&ni_g.log, "no memory for channel traces: %s; records are written without them",
                strerror(-rc));
    return 0;
  }
  ni_store_rlx(&ni_g.verbose, on != 0);
  return was != (on != 0);
}

static uint64_t unix_us(uint64_t ticks) { return ticks ? ni_clock_unix_ns(&ni_g.clock, ticks) / 1000 : 0; }

const struct ni_trace *ni_trace_read(uint32_t slot, struct ni_trace *out) {
  _Atomic uint32_t *of = ni_load_acq(&ni_g.traces.of);
  struct ni_trace_page *p = of ? page_of(of, slot) : NULL;
  if (!p)
    return NULL;
  memset(out, 0, sizeof *out);
  out->has_sn = out->has_ts = true;
  out->start_sn = 1;
  out->start_us = unix_us(ni_arena_op(&ni_g.arena, slot)->ticks_start);
  out->stop_sn = ni_load_rlx(&p->stop_sn);
  out->stop_us = unix_us(ni_load_rlx(&p->stop_ticks));
  for (uint64_t seen = ni_load_rlx(&p->seen); seen; seen &= seen - 1) {
    int ch = __builtin_ctzll(seen);
    out->event[out->n++] =
        (struct ni_trace_event){.channel = ch,
                                .start_sn = ni_load_rlx(&p->cell[ch].sn[NI_TRACE_START]),
                                .stop_sn = ni_load_rlx(&p->cell[ch].sn[NI_TRACE_STOP]),
                                .record_sn = ni_load_rlx(&p->cell[ch].sn[NI_TRACE_RECORD]),
                                .start_us = unix_us(ni_load_rlx(&p->cell[ch].ticks[NI_TRACE_START])),
                                .stop_us = unix_us(ni_load_rlx(&p->cell[ch].ticks[NI_TRACE_STOP])),
                                .record_us = unix_us(ni_load_rlx(&p->cell[ch].ticks[NI_TRACE_RECORD]))};
  }
  return out;
}

static void leave_one(struct ni_op *op, uint32_t slot, void *arg) {
  _Atomic uint32_t *of = ni_load_rlx(&ni_g.traces.of);
  uint32_t page = ni_load_rlx(&of[slot]);
  if (!page)
    return;
  ni_store_rlx(&of[slot], 0);
  ni_arena_give(&ni_g.traces.arena, NI_CHUNK_OP_FIRST, page);
}

void ni_trace_leave(struct ni_pool *pool) {
  if (ni_load_rlx(&ni_g.traces.of))
    ni_pool_walk(&ni_g.arena, pool, leave_one, NULL);
}

void ni_trace_ahead(void) {
  if (ni_load_rlx(&ni_g.traces.of))
    ni_arena_touch_ahead(&ni_g.traces.arena);
}
