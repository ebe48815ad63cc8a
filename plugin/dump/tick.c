/*
 * One pass of the dump role, from the done lists to the disk: looks at the communicators, formats what has finished, says
 * the last lines of those that are over, and writes when it is time.
 */
#include "dump.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/callbacks/want.h"

#define LIVES_A_TICK 64u /* of communicators of the same hash and rank, one after the other */

/* Formats what is there; a block that is full is written in between. 0 when nothing is left. */
static int format_all(struct ni_dump *d) {
  int rc;
  while ((rc = ni_drain_format(d)) == -EFBIG)
    if (ni_flush(d, d->awaited)) return -EBUSY;
  while (rc == 0 && (rc = ni_events_format(d)) == -EFBIG) {
    if (ni_flush(d, d->awaited)) return -EBUSY;
    rc = 0;
  }
  return rc;
}

/* Steps that wait for an operation whose communicator ends, or the process: its line may never come. */
static int release_steps(struct ni_dump *d, struct ni_side *s) {
  int rc;
  while ((rc = ni_steps_release(d, s, 1)) == -EFBIG)
    if (ni_flush(d, d->awaited)) return -EBUSY;
  return rc;
}

/* From here on its memory rests, if it has to (may_still_come in drain.c). */
static void note_closing(const struct ni_dump *d, struct ni_side *s) {
  if (s->closing_ms) return;
  s->closing_ms = d->now_ms;
  s->closing_judge_ms = d->judge_ms;
  s->closing_tick = (uint32_t)d->ticks;
}

/* Is a callback on its way: a number taken and no slot yet, or finished and not on the done list yet? Its operation would
 * miss the last lines. Finalize promises that none is, but a communicator may share its progress thread with others, and
 * an abort waits for nobody. */
static int still_on_its_way(struct ni_dump *d, struct ni_side *s) {
  /* All that was in flight has become a record or incomplete by now, so nothing must be left. */
  if (!ni_side_any_unsettled(s)) return 0;
  note_closing(d, s);
  d->watching = 1;
  return d->now_ms - s->closing_ms < NI_SETTLE_MS;
}

/* Is a communicator that was finalized still to be finished by others? One that shares its progress thread with a communicator
 * that lives may be finalized before that thread has raised the last channels and transfers of kernels that are over (contract
 * 4.4): nothing is joined then. Nobody waits for its last lines, so they can. */
static int others_may_finish(struct ni_dump *d, struct ni_side *s) {
  int open = ni_events_in_flight(&s->comm->events, &s->ev) || ni_side_any_unsettled(s);
  if (!open || !ni_load_acq(&ni_g.live) || !ni_load_rlx(&d->has_thread)) return 0;
  if (!s->left_ms) s->left_ms = d->now_ms;
  d->watching = 1;
  return d->now_ms - s->left_ms < NI_SETTLE_MS;
}

/* Is it time for the communicator's last lines, and why? Decided once a pass: one that is finalized meanwhile may have
 * finished something since the lists were drained. Counts those that are left open in *later. */
static enum ni_end end_of(struct ni_dump *d, struct ni_side *s, enum ni_end end, uint32_t *later) {
  if (s->stage != NI_SIDE_LIVE) return NI_END_NONE;
  /* Acquire pairs with finalize's release: the counters of its last callbacks are there. */
  if (ni_comm_phase_of(ni_load_acq(&s->comm->state)) != NI_COMM_CLOSING) return end;
  if (end == NI_END_NONE && others_may_finish(d, s)) return ++*later, NI_END_NONE;
  return NI_END_DESTROY;
}

/* Roll-ups that did not fit: makes room. 0, or it has to wait. */
static int roll_out_of_the_way(struct ni_dump *d) {
  return d->roll_open ? ni_roll_flush(d, d->awaited) : ni_flush(d, d->awaited);
}

/*
 * Last lines of the sides that finalize has left; at exit, of all. Returns how many are still to be closed.
 * Judge, drain, last lines, each for all sides: what the judge met half-way was finished by a callback and is on the done
 * list now, and nothing is drained once the first has had its last word: at exit callbacks go on.
 */
static uint32_t close_sides(struct ni_dump *d, enum ni_end end) {
  uint32_t open = 0, later = 0;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    s->why = (uint8_t)end_of(d, s, end, &later);
    if (s->why) ni_judge(d, s, (enum ni_end)s->why);
    open += s->why != NI_END_NONE;
  }
  if (!open) return later;
  /* At exit callbacks may finish more at any time: what was finished when we first looked is in, more is in flight. */
  if (end != NI_END_EXIT) (void)ni_drain_collect(d);
  (void)ni_events_collect(d);
  for (struct ni_side *s = d->sides; s; s = s->next) {
    if (s->why) (void)ni_side_identify(d, s, 1);
    if (s->why != NI_END_DESTROY || !ni_events_close(&s->comm->events, &s->ev)) continue;
    s->cut_short = 1;
    note_closing(d, s);
  }
  int rc = format_all(d);
  NI_TESTPOINT();
  for (struct ni_side *s = d->sides; s && rc == 0; s = s->next)
    if (s->why) rc = release_steps(d, s);
  if (rc == 0 && end == NI_END_EXIT) rc = release_steps(d, NULL);
  if (rc == -ETIMEDOUT && end == NI_END_EXIT) {
    ni_drain_give_up(d);
    ni_events_give_up(d);
    ni_lines_note(d, "the process left before everything could be written: the rest is counted as write_error or in flight");
    rc = 0;
  }
  if (rc || ni_gz_finished(d->gz)) return open + later; /* the disk does not take it: later */
  for (struct ni_side *s = d->sides; s; s = s->next)
    if (s->why) ni_events_judge(d, s, (enum ni_end)s->why);
  ni_lines_late(d);
  if (d->no_room && ni_flush(d, d->awaited)) return open + later;
  open = later;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    enum ni_end why = (enum ni_end)s->why;
    if (!why || s->stage != NI_SIDE_LIVE) continue;
    open++;
    if (why == NI_END_DESTROY && still_on_its_way(d, s)) continue;
    if (s->ev.wait.n || s->ev.todo.n || s->ev.n_kept) continue; /* the block took no more */
    int unsaid = ni_roll_say(d, s, 1);
    for (uint32_t i = 0; unsaid && i < 4 * NI_ROLLUP_ENTRIES && roll_out_of_the_way(d) == 0; i++) unsaid = ni_roll_say(d, s, 1);
    if (unsaid) continue;
    /* Where files may not grow long the last lines get a block of their own: roll-ups compress less well than records. */
    if (d->text_max && ni_gz_text_bytes(d->gz) > d->text_max / 8 && ni_flush(d, d->awaited)) continue;
    if (ni_lines_room(d) && (ni_flush(d, d->awaited) || ni_lines_room(d))) continue;
    if (!s->announced) ni_lines_comm(d, s);
    if (why == NI_END_EXIT) ni_unfinished_at_exit(d, s);
    ni_lines_end(d, s, why);
    s->stage = NI_SIDE_CLOSED;
    d->closed_in_block++;
    open--;
  }
  return open;
}

/* Has every communicator said its last? */
static int all_closed(const struct ni_dump *d) {
  for (const struct ni_side *s = d->sides; s; s = s->next)
    if (s->stage == NI_SIDE_LIVE) return 0;
  return !atomic_load_explicit(&d->joining, memory_order_acquire);
}

/* The accounting beside stuck lines: with nothing to write, no other line says how much was started and is in flight. */
static void account_for_stuck(struct ni_dump *d, struct ni_side *s) {
  if (!s->stuck_told || d->now_ms - s->last_stats_ms < NI_STATS_MS || ni_lines_room(d)) return;
  ni_lines_stats(d, s, 0);
  d->urgent = 1;
}

static void look_at_sides(struct ni_dump *d) {
  /* Thousands of communicators: ten ticks are soon enough, unless somebody asks for the roll-ups so far. */
  if (d->n_sides > 256 && d->ticks % 10 && !d->detail.flush) return;
  for (struct ni_side *s = d->sides; s; s = s->next) {
    if (s->stage != NI_SIDE_LIVE) continue;
    if (!ni_side_identify(d, s, 0)) continue; /* nothing has happened on it yet */
    ni_judge(d, s, NI_END_NONE);
    ni_events_judge(d, s, NI_END_NONE);
    ni_lines_gaps(d, s);
    account_for_stuck(d, s);
    d->no_room |= ni_roll_say(d, s, d->detail.flush) != 0 && !d->roll_open;
    d->watching |= s->watch != 0;
  }
  (void)ni_roll_flush(d, 0);
}

static int flush_due(struct ni_dump *d) {
  size_t text = ni_gz_text_bytes(d->gz);
  uint64_t since = d->now_ms - d->last_flush_ms;
  int64_t us = ni_g.config.interval_us;
  if (d->no_room || d->urgent || d->detail.flush) return 1;
  if (!text) return d->closed_in_block || d->busy; /* nothing to write, and so nothing to wait for */
  if (us == NI_INTERVAL_NEVER) {
    if (d->closed_in_block) return 1;
    if (ni_arena_used_bytes(&ni_g.arena) <= ni_g.arena.cap_bytes / 4 * 3) return 0;
    if (!d->early_told) ni_lines_note(d, "interval -1: written early, the arena is three quarters full");
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_EARLY, d->now_ns,
                        "interval -1, but three quarters of NCCL_INSPECTOR_POOL_MAX_BYTES are in use: writing early");
    d->early_told = 1;
    return 1;
  }
  if (d->closed_in_block >= 64) return 1; /* their memory comes back with the write */
  if (us < 100000) return text >= NI_SMALL_TEXT ? since * 1000 >= (uint64_t)us : since >= 100;
  return since * 1000 >= (uint64_t)us;
}

/* Lines that go with a flush: accounting of whoever has written, clocks once a minute. */
static void flush_lines(struct ni_dump *d) {
  for (struct ni_side *s = d->busy; s; s = s->next_busy)
    if (s->stage == NI_SIDE_LIVE && d->now_ms - s->last_stats_ms >= NI_STATS_MS) ni_lines_stats(d, s, 0);
  if (d->now_ms - d->last_clock_line_ms >= NI_CLOCK_LINE_MS) {
    ni_lines_clock(d);
    d->last_clock_line_ms = d->now_ms;
  }
}

static void read_time(struct ni_dump *d) {
  uint64_t now = ni_monotonic_ns(), step = now / NI_MS_NS - d->now_ms; /* whole ms, so that ticks of less add up */
  d->now_ns = now;
  d->now_ms = now / NI_MS_NS;
  if (d->ticks && step > NI_AWAY_MS) d->awake_ns = now;
  d->real_ms = ni_realtime_ns() / NI_MS_NS;
  d->judge_ms += step < NI_JUDGE_STEP_MS ? (uint32_t)step : NI_JUDGE_STEP_MS;
  if (d->judge_ms == 0) d->judge_ms = 1; /* 0 means "never looked" */
  d->ticks++;
  ni_keep_heartbeat(&ni_g.box, now, ni_load_rlx(&d->has_thread) ? NI_HEARTBEAT_MS : 0);
  if (d->now_ms - d->last_sample_ms < 1000) return;
  d->last_sample_ms = d->now_ms;
  (void)ni_clock_sample(&ni_g.clock);
  ni_keep_clock(&ni_g.box, &ni_g.clock);
}

/* From the done lists to the open block. Returns how many communicators are still to be closed. */
static uint32_t gather(struct ni_dump *d, int ask, enum ni_end end) {
  /* Acquire pairs with finalize's release add. Read before the joining list is taken: who finalizes has joined before,
   * so every communicator counted here is among the sides below. */
  uint32_t seen = ni_load_acq(&d->closings), closing = 0, waiting = 0, tries = LIVES_A_TICK;
  ni_detail_tick(d);
  do {
    if (!ni_g.keep_last || ask || seen || d->detail.flush ||
        d->now_ms - d->last_flush_ms >= (uint64_t)ni_g.config.interval_us / 1000)
      d->moved |= ni_drain_collect(d);
    d->moved |= ni_events_collect(d);
    d->patient = !ask && !seen && !end && !d->detail.flush && (ni_events_get() & NI_KINDS_PROXY) &&
                 (!ni_load_rlx(&ni_g.kernel_ch_ever) || ni_channels_overtake(ni_g.nccl_version));
    look_at_sides(d);
    d->moved |= format_all(d) != 0;
    ni_lines_late(d);
    if (!seen && !end) return 0;
    closing = close_sides(d, end);
    /* Some may have waited for the last life of their like to end (ni_drain_join). Theirs may be over, too. */
    waiting = atomic_load_explicit(&d->joining, memory_order_relaxed) != NULL;
  } while (!closing && waiting && --tries);
  if (!closing && !waiting) (void)atomic_fetch_sub_explicit(&d->closings, seen, memory_order_relaxed);
  return closing + waiting;
}

/* The process's last lines say how many records expired, so nothing may expire by the write that carries them. */
static void say_process_end(struct ni_dump *d) {
  const struct ni_config *c = &ni_g.config;
  if ((c->dir_max_bytes || c->keep_seconds) && ni_flush(d, d->awaited)) return;
  if (release_steps(d, NULL) || ni_lines_room(d)) return;
  ni_out_hold(&d->out, true);
  ni_lines_process_end(d);
  d->ended = 1;
}

int ni_tick(struct ni_dump *d, int ask, enum ni_end end) {
  read_time(d);
  d->moved = d->watching = d->no_room = 0;
  if (!d->open && ni_session_wanted(d) && ni_session_open(d)) return 0;
  if (!d->open) {
    if (d->ticks % 16 == 0) ni_drain_release(d);
    return 1;
  }
  if (ni_gz_finished(d->gz)) (void)ni_flush(d, d->awaited);

  int blocked = ni_gz_finished(d->gz);
  uint32_t closing = 0;
  int over = 0, unrolled = 0;
  if (!blocked) {
    if (ni_gz_text_bytes(d->gz) == 0) {
      d->ts_us = ni_realtime_ns() / 1000;
      uint64_t limit = ni_out_size_limit(); /* compressed, text is less than half of it; the file's head needs room too */
      d->text_max = limit == UINT64_MAX ? 0 : limit / 2 + 1;
    }
    if (!d->sealed) closing = gather(d, ask, end);
    /* At exit all is said now; what callbacks finish while the write is tried again was in flight. */
    d->sealed = end == NI_END_EXIT && !closing;
    /* Not `live`: a communicator may have come and gone since we looked at the list. */
    over = d->sealed || (!closing && all_closed(d));
    if (!over && d->ended) {
      d->ended = 0;
      ni_out_hold(&d->out, false);
    }
    if (over) unrolled = ni_roll_flush(d, d->awaited) != 0; /* at exit nobody closes their file */
    if (over && !d->ended) say_process_end(d);
    if (ask || over || flush_due(d)) {
      flush_lines(d);
      (void)ni_flush(d, d->awaited);
    }
    blocked = ni_gz_finished(d->gz);
    if (over && d->ended && !blocked && !d->busy && ni_gz_text_bytes(d->gz) == 0) {
      ni_drain_release(d);
      if (end != NI_END_EXIT) ni_session_close(d);
    }
  }
  if (ask || d->ticks % 16 == 0) ni_drain_release(d);
  uint32_t mark = ni_arena_taken_pages(&ni_g.arena);
  d->moved |= mark != d->seen_mark || d->watching;
  d->seen_mark = mark;
  ni_arena_touch_ahead(&ni_g.arena);
  ni_trace_ahead();
  return !blocked && !unrolled && !d->busy && !closing && (!over || d->ended);
}
