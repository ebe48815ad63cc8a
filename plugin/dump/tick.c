/*
 * One pass of the dump role, from the done lists to the disk: looks at the communicators, formats what has
 * finished, says the last lines of those that are over, and writes when it is time.
 */
#include "tick.h"

#include "closing.h"
#include "fill.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/callbacks/want.h"
#include "plugin/drain/collect.h"
#include "plugin/drain/event_drain.h"
#include "plugin/drain/judge.h"
#include "plugin/drain/settle.h"
#include "plugin/os/host.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/write/prom.h"
#include "plugin/write/rollup_lines.h"
#include "session.h"

#define CLOCK_LINE_MS 60000u /* a clock line at most so often */
/* a dump_stats line at most so often per communicator, unless something was lost */
#define STATS_MS 10000u
#define JUDGE_STEP_MS 200u /* what a tick adds to judge_ms at most */
/* of the black box: the longest pause of a dump thread that is not parked */
#define HEARTBEAT_MS 1000u
/* below 100 ms intervals, less text than this waits until 100 ms have passed */
#define SMALL_TEXT (32u << 10)
#define LIVES_A_TICK 64u /* of communicators of the same hash and rank, one after the other */

/*
 * The accounting beside stuck lines: with nothing to write, no other line says how much was started and is in
 * flight.
 */
static void account_for_stuck(struct ni_dump *d, struct ni_comm_writer *s) {
  if (!s->stuck_told || d->w.now_ms - s->last_stats_ms < STATS_MS || ni_block_room(&d->w))
    return;
  ni_lines_stats(&d->w, s, 0);
  d->w.urgent = 1;
}

/* The longest time without a start, for the box. A process that was stopped has not waited. */
static void watch_gaps(struct ni_dump *d) {
  uint64_t starts = d->drain.gone_started, dropped = 0, now = d->w.now_ns;
  if (d->drain.n_comms > 256 && d->drain.ticks % 10)
    return; /* as look_at_comms */
  for (const struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    ni_accounts_add(s, &starts, &dropped);
  if (d->start_seen_ns < d->drain.awake_ns)
    d->start_seen_ns = d->drain.awake_ns;
  if (starts != d->starts_seen) {
    if (now - d->start_seen_ns > d->longest_gap_ns)
      d->longest_gap_ns = now - d->start_seen_ns;
    d->starts_seen = starts;
    d->start_seen_ns = now;
  }
  ni_keep_longest(&ni_g.box, d->drain.longest_ns, d->longest_gap_ns);
}

static void look_at_comms(struct ni_dump *d) {
  /* Thousands of communicators: ten ticks are soon enough, unless somebody asks for the roll-ups so far. */
  if (d->drain.n_comms > 256 && d->drain.ticks % 10 && !d->w.flush)
    return;
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next) {
    if (s->stage != NI_STAGE_LIVE)
      continue;
    if (!ni_lines_identify(&d->w, s, 0))
      continue; /* nothing has happened on it yet */
    ni_judge(&d->drain, s, NI_END_NONE);
    ni_events_judge(&d->drain, s, NI_END_NONE);
    ni_lines_gaps(&d->w, s);
    account_for_stuck(d, s);
    d->w.no_room |= ni_roll_say(&d->w, s, d->w.flush) != 0 && !d->w.roll_open;
    d->drain.watching |= s->watch != 0;
  }
  (void)ni_roll_flush(&d->w, 0);
}

static int flush_due(struct ni_dump *d) {
  size_t text = ni_gz_text_bytes(d->w.gz);
  uint64_t since = d->w.now_ms - d->w.last_flush_ms;
  int64_t us = ni_g.config.interval_us;
  if (d->w.no_room || d->w.urgent || d->w.flush)
    return 1;
  /* nothing to write, and so nothing to wait for */
  if (!text)
    return d->drain.closed_in_block || d->drain.busy;
  if (us == NI_INTERVAL_NEVER) {
    if (d->drain.closed_in_block)
      return 1;
    if (ni_arena_used_bytes(&ni_g.arena) <= ni_g.arena.cap_bytes / 4 * 3)
      return 0;
    if (!d->early_told)
      ni_lines_note(&d->w, "interval -1: written early, the arena is three quarters full");
    ni_log_warn_limited(
        &ni_g.log, NI_LOG_CAUSE_EARLY, d->w.now_ns,
        "interval -1, but three quarters of NCCL_INSPECTOR_POOL_MAX_BYTES are in use: writing early");
    d->early_told = 1;
    return 1;
  }
  if (d->drain.closed_in_block >= 64)
    return 1; /* their memory comes back with the write */
  if (us < 100000)
    return text >= SMALL_TEXT ? since * 1000 >= (uint64_t)us : since >= 100;
  return since * 1000 >= (uint64_t)us;
}

/* Lines that go with a flush: accounting of whoever has written, clocks once a minute. */
static void flush_lines(struct ni_dump *d) {
  for (struct ni_comm_writer *s = d->drain.busy; s; s = s->next_busy)
    if (s->stage == NI_STAGE_LIVE && d->w.now_ms - s->last_stats_ms >= STATS_MS)
      ni_lines_stats(&d->w, s, 0);
  if (d->w.now_ms - d->last_clock_line_ms >= CLOCK_LINE_MS) {
    ni_lines_clock(&d->w);
    d->last_clock_line_ms = d->w.now_ms;
  }
}

static void read_time(struct ni_dump *d) {
  /* whole ms, so that ticks of less add up */
  uint64_t now = ni_monotonic_ns(), step = now / NI_MS_NS - d->w.now_ms;
  d->w.now_ns = now;
  d->w.now_ms = now / NI_MS_NS;
  if (d->drain.ticks && step > NI_AWAY_MS)
    d->drain.awake_ns = now;
  d->w.real_ms = ni_realtime_ns() / NI_MS_NS;
  d->drain.judge_ms += step < JUDGE_STEP_MS ? (uint32_t)step : JUDGE_STEP_MS;
  if (d->drain.judge_ms == 0)
    d->drain.judge_ms = 1; /* 0 means "never looked" */
  d->drain.ticks++;
  ni_keep_heartbeat(&ni_g.box, now, ni_load_rlx(&d->has_thread) ? HEARTBEAT_MS : 0);
  if (d->w.now_ms - d->last_sample_ms < 1000)
    return;
  d->last_sample_ms = d->w.now_ms;
  (void)ni_clock_sample(&ni_g.clock);
  ni_keep_clock(&ni_g.box, &ni_g.clock);
}

/* From the done lists to the open block. Returns how many communicators are still to be closed. */
static uint32_t gather(struct ni_dump *d, int ask, enum ni_end end) {
  /* Acquire pairs with finalize's release add. Read before the joining list is taken: who finalizes has
   * joined before, so every communicator counted here is in the list below. */
  uint32_t seen = ni_load_acq(&d->drain.closings), closing = 0, waiting = 0, tries = LIVES_A_TICK;
  ni_detail_tick(d);
  do {
    d->moved |= ni_collect(&d->drain);
    d->moved |= ni_events_collect(&d->drain);
    d->drain.patient = !ask && !seen && !end && !d->w.flush && (ni_masks_kinds() & NI_KINDS_PROXY) &&
        (!ni_load_rlx(&ni_g.kernel_ch_ever) || ni_channels_overtake(ni_g.interface, ni_g.nccl_version));
    look_at_comms(d);
    d->moved |= ni_fill(d) != 0;
    ni_lines_late(&d->w);
    if (!seen && !end)
      return 0;
    closing = ni_closing(d, end);
    /*
     * Some may have waited for the last life of their like to end (ni_collect_join). Theirs may be over, too.
     */
    waiting = atomic_load_explicit(&d->drain.joining, memory_order_relaxed) != NULL;
  } while (!closing && waiting && --tries);
  if (!closing && !waiting)
    (void)atomic_fetch_sub_explicit(&d->drain.closings, seen, memory_order_relaxed);
  return closing + waiting;
}

/*
 * The process's last lines say how many records expired, so nothing may expire by the write that carries
 * them.
 */
static void say_process_end(struct ni_dump *d) {
  const struct ni_config *c = &ni_g.config;
  if ((c->dir_max_bytes || c->keep_seconds) && ni_session_flush(d))
    return;
  if (ni_block_room(&d->w))
    return;
  ni_out_hold(&d->w.out, true);
  ni_lines_process_end(&d->w, d->sealed ? NI_END_EXIT : NI_END_DESTROY);
  ni_prom_end(&d->w, d->dir);
  d->ended = 1;
}

/* A new block: its timestamp, and how long it may get. */
static void begin_block(struct ni_dump *d) {
  if (ni_gz_text_bytes(d->w.gz))
    return;
  /* compressed, text is less than half of it; the file's head needs room too */
  uint64_t limit = ni_file_size_limit();
  d->w.ts_us = ni_realtime_ns() / 1000;
  d->w.text_max = limit == UINT64_MAX ? 0 : limit / 2 + 1;
}

/*
 * Nobody has anything to say any more: roll-ups and the process's last lines. 0, or the roll-ups' file does
 * not take them.
 */
static int say_all_is_over(struct ni_dump *d) {
  int unrolled = ni_roll_flush(&d->w, d->awaited); /* at exit nobody closes their file */
  if (!d->ended)
    say_process_end(d);
  return unrolled;
}

/*
 * One pass over an open session that is not blocked. Returns 1 when nothing is pending but what the disk
 * refuses.
 */
static int pass(struct ni_dump *d, int ask, enum ni_end end) {
  uint32_t closing = 0;
  int unrolled = 0;
  begin_block(d);
  if (!d->sealed)
    closing = gather(d, ask, end);
  /* At exit all is said now; what callbacks finish while the write is tried again was in flight. */
  d->sealed = end == NI_END_EXIT && !closing;
  /* Not `live`: a communicator may have come and gone since we looked at the list. */
  int over = d->sealed || (!closing && ni_closing_all_said(d));
  if (over) {
    unrolled = say_all_is_over(d) != 0;
  } else if (d->ended) {
    d->ended = 0;
    ni_out_hold(&d->w.out, false);
  }
  if (ask || over || flush_due(d)) {
    flush_lines(d);
    (void)ni_session_flush(d);
  }
  const bool holds_no_text = !ni_gz_finished(d->w.gz) && ni_gz_text_bytes(d->w.gz) == 0;
  if (over && d->ended && holds_no_text && !d->drain.busy) {
    ni_settle_release(&d->drain);
    if (end != NI_END_EXIT)
      ni_session_close(d);
  }
  return !unrolled && !closing && (!over || d->ended);
}

/* Memory that callbacks will want is mapped before they do. */
static void look_ahead(struct ni_dump *d) {
  uint32_t mark = ni_arena_taken_pages(&ni_g.arena);
  d->moved |= mark != d->seen_mark || d->drain.watching;
  d->seen_mark = mark;
  ni_arena_touch_ahead(&ni_g.arena);
  ni_trace_ahead();
}

int ni_tick(struct ni_dump *d, int ask, enum ni_end end) {
  read_time(d);
  d->moved = d->drain.watching = d->w.no_room = 0;
  if (!d->open && ni_session_wanted(d) && ni_session_open(d))
    return 0;
  if (!d->open) {
    if (d->drain.ticks % 16 == 0)
      ni_settle_release(&d->drain);
    return 1;
  }
  watch_gaps(d);
  if (ni_gz_finished(d->w.gz))
    (void)ni_session_flush(d);
  int done = ni_gz_finished(d->w.gz) || pass(d, ask, end);
  if (ask || d->drain.ticks % 16 == 0)
    ni_settle_release(&d->drain);
  ni_prom_tick(&d->w, d->dir);
  look_ahead(d);
  return done && !ni_gz_finished(d->w.gz) && !d->drain.busy;
}
