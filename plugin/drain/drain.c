#include "drain.h"

#include <errno.h>
#include <string.h>

#include "fused.h"
#include "op_record.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/slots/state.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/write/prom.h"
#include "plugin/write/rollup_lines.h"
#include "sample.h"
#include "settle.h"

#define EXIT_TEXT (4u << 20) /* text of one block at exit */

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

/*
 * One writer, the dump role; in the communicator, so that whoever reads its accounts from outside finds it.
 */

/* What a reader of the box learns to be usual. Without a kernel it ends with its bracket. */
static void note_longest(struct ni_drain *d, const struct ni_op *op) {
  uint64_t done = ni_load_rlx(&op->ticks_done), end = done ? done : op->ticks_stop;
  uint64_t ns = ni_clock_span_ns(&ni_g.clock, ni_ticks_between(op->ticks_start, end));
  if (ns > d->longest_ns)
    d->longest_ns = ns;
}

/* One finished operation into the open block. On an error it is as if it had not been tried. */
static int format_one(struct ni_drain *d, struct ni_comm_writer *s, struct ni_kind_writer *k) {
  struct ni_op *op = op_at(k->todo.first);
  struct ni_gpu_fit fit = s->fit;
  uint8_t poisoned = s->poisoned;
  uint64_t fallback[NI_FALLBACK_COUNT];
  memcpy(fallback, k->account->fallback, sizeof fallback);
  struct ni_record r;
  ni_op_record(d, s, op, &r);
  note_longest(d, op);
  if (ni_g.config.require_kernel_timing && r.timing != NI_TIMING_KERNEL_GPU) {
    /* no write to wait for; perhaps none will ever come */
    ni_settle_give(d, s, op->kind, ni_chain_take(&k->todo));
    k->account->judged_out++;
    return 0;
  }
  if (!ni_sample_keeps(d->sample, s->ident.comm_hash, r.sn)) {
    if (ni_roll_counted())
      ni_rollup_add(&s->rollup, &d->w->roll_pool, op->func, &r, d->w->real_ms * 1000000);
    ni_prom_add(d->w, s, &r);
    ni_settle_give(d, s, op->kind, ni_chain_take(&k->todo));
    ni_drain_sampled(s, r.kind);
    return 0;
  }
  r.trace = ni_trace_read(k->todo.first, &d->trace);
  int rc = r.has & NI_HAS_GPU_DELTA ? ni_lines_gpu_offset(d->w, s) : 0;
  if (rc == 0)
    rc = ni_block_put(d->w, d->w->line,
                      ni_format_op(d->w->line, sizeof d->w->line, &s->prefix, d->w->ts_us, &r));
  if (rc) { /* it will come again: its stamps must not be judged twice */
    s->fit = fit;
    s->poisoned = poisoned;
    memcpy(k->account->fallback, fallback, sizeof fallback);
    return rc;
  }
  if (ni_roll_counted())
    ni_rollup_add(&s->rollup, &d->w->roll_pool, op->func, &r, d->w->real_ms * 1000000);
  ni_prom_add(d->w, s, &r);
  k->in_block++;
  d->w->block_records++;
  ni_chain_append(&k->held, ni_chain_take(&k->todo));
  /* One writer at a time (the dump role), so load and store: a locked add would cost a record 5 ns. */
  ni_store_rlx(&d->w->progress, ni_load_rlx(&d->w->progress) + 1);
  /* A tick with a backlog is long, and callbacks go on taking pages. */
  if (ni_load_rlx(&d->w->progress) % 512 == 0)
    ni_arena_touch_ahead(&ni_g.arena);
  return 0;
}

/* Is the open block to be written before more goes in? It must fit into a file where files may not grow long.
 * At exit time is short: text goes to disk in pieces, so that the end of the process finds most of it there,
 * and what cannot be formatted in time is given up while there is time to say so. */
int ni_drain_check(const struct ni_drain *d) {
  if (d->w->text_max && ni_gz_text_bytes(d->w->gz) >= d->w->text_max)
    return -EFBIG;
  if (ni_unlikely(d->w->block_max) && ni_gz_bytes(d->w->gz) >= d->w->block_max)
    return -EFBIG;
  /* pairs with ni_dump_exit's release: leave_by_ns is there */
  if (ni_likely(!ni_load_acq(&d->exiting)))
    return 0;
  if (ni_gz_text_bytes(d->w->gz) >= EXIT_TEXT)
    return -EFBIG;
  return ni_load_rlx(&d->w->progress) % 64 == 0 && ni_monotonic_ns() >= d->leave_by_ns ? -ETIMEDOUT : 0;
}

void ni_drain_give_up(struct ni_drain *d) {
  for (struct ni_comm_writer *s = d->w->comms; s; s = s->next) {
    (void)ni_fused_end(d, s);
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_kind_writer *k = &s->kind[kind];
      uint64_t n = k->todo.n, from = UINT64_MAX, to = 0;
      for (uint32_t slot; (slot = ni_chain_take(&k->todo)) != 0;) {
        uint64_t sn = op_at(slot)->rec_sn;
        if (sn < from)
          from = sn;
        if (sn > to)
          to = sn;
      }
      d->gave_up |= n != 0;
      k->account->lost_write += n;
      if (n)
        ni_lines_given_up(d->w, s, kind, n, from, to);
    }
  }
}

/* Without KernelCh an operation is finished by its bracket, and from 2.31 on by a thread that waits for
 * nobody: often before its network operations begin, which find who they belong to in its slot. NCCL begins
 * them as soon as its progress thread comes to it. Without KernelCh the bracket's end was noted, else the
 * last channel's. */
static int too_young(const struct ni_drain *d, const struct ni_op *op) {
  uint64_t ticks = op->ticks_stop ? op->ticks_stop : ni_load_rlx(&op->ticks_done);
  uint64_t at = ni_clock_monotonic_ns(&ni_g.clock, ticks), ms = UINT64_C(1000000);
  /* No tick is that long: one that ended so much later than it began ended before the counter went back. */
  return ticks && at + NI_PATIENCE_MS * ms > d->w->now_ns && at < d->w->now_ns + NI_AWAY_MS * ms;
}

/* What one communicator has finished, into the open block. */
static int format_todo(struct ni_drain *d, struct ni_comm_writer *s) {
  for (int kind = 0; kind < NI_KIND_COUNT; kind++)
    while (s->kind[kind].todo.n) {
      if (kind == NI_KIND_COLL && ni_fused_set_aside(s))
        continue;
      int rc = ni_drain_check(d);
      if (rc == 0 && d->patient && too_young(d, op_at(s->kind[kind].todo.first))) {
        d->watching = 1;
        break;
      }
      if (rc == 0)
        rc = format_one(d, s, &s->kind[kind]);
      if (rc)
        return rc;
    }
  return 0;
}

int ni_drain_format(struct ni_drain *d) {
  for (struct ni_comm_writer *s = d->busy; s; s = s->next_busy) {
    /* v1 to v3: its first operation is saying who it is at this moment */
    if (!ni_lines_identify(d->w, s, 0))
      continue;
    if (!s->announced) {
      ni_lines_comm(d->w, s);
      if (!s->announced)
        return ni_gz_finished(d->w->gz) ? -EBUSY : -EFBIG;
    }
    int rc = format_todo(d, s);
    bool ends = s->why || ni_load_acq(&d->exiting); /* pairs with ni_dump_exit */
    if (rc == 0 && ends && ni_fused_end(d, s))
      rc = format_todo(d, s);
    if (rc)
      return rc;
  }
  return 0;
}
