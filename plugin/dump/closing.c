/*
 * Judge, drain, last lines, each for all communicators that end: what the judge met half-way was finished by
 * a callback and is on the done list now, and nothing is drained once the first has had its last word: at
 * exit callbacks go on.
 */
#include "closing.h"

#include <errno.h>

#include "fill.h"
#include "plugin/drain/collect.h"
#include "plugin/drain/event_drain.h"
#include "plugin/drain/judge.h"
#include "plugin/drain/unfinished.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/write/rollup_lines.h"
#include "session.h"

/* ---- who ends ---- */

/* From here on its memory rests, if it has to (may_still_come in settle.c). */
static void note_closing(const struct ni_dump *d, struct ni_comm_writer *s) {
  if (s->closing_ms)
    return;
  s->closing_ms = d->w.now_ms;
  s->closing_judge_ms = d->drain.judge_ms;
  s->closing_tick = (uint32_t)d->drain.ticks;
}

/* Is a callback on its way: a number taken and no slot yet, or finished and not on the done list yet? Its
 * operation would miss the last lines. Finalize promises that none is, but a communicator may share its
 * progress thread with others, and an abort waits for nobody. */
static int still_on_its_way(struct ni_dump *d, struct ni_comm_writer *s) {
  /* All that was in flight has become a record or incomplete by now, so nothing must be left. */
  if (!ni_accounts_any_unsettled(s))
    return 0;
  note_closing(d, s);
  d->drain.watching = 1;
  return d->w.now_ms - s->closing_ms < NI_SETTLE_MS;
}

/* May events of a finalized communicator still come from a progress thread that others share? Such a one may
 * be finalized before that thread has raised the last channels and transfers of kernels that are over
 * (callbacks 4.4): nothing is joined then. Nobody waits for its last lines, so they can. */
static int others_may_finish(struct ni_dump *d, struct ni_comm_writer *s) {
  int open = ni_events_in_flight(&s->comm->events, &s->ev) || ni_accounts_any_unsettled(s);
  if (!open || !ni_load_acq(&ni_g.live) || !ni_load_rlx(&d->has_thread))
    return 0;
  if (!s->left_ms)
    s->left_ms = d->w.now_ms;
  d->drain.watching = 1;
  return d->w.now_ms - s->left_ms < NI_SETTLE_MS;
}

/* Is it time for the communicator's last lines, and why? Decided once a pass: one that is finalized meanwhile
 * may have finished something since the lists were drained. Counts those that are left open in *later. */
static enum ni_end end_of(struct ni_dump *d, struct ni_comm_writer *s, enum ni_end end, uint32_t *later) {
  if (s->stage != NI_STAGE_LIVE)
    return NI_END_NONE;
  /* Acquire pairs with finalize's release: the counters of its last callbacks are there. */
  if (ni_comm_phase_of(ni_load_acq(&s->comm->state)) != NI_COMM_CLOSING)
    return end;
  if (end == NI_END_NONE && others_may_finish(d, s)) {
    ++*later;
    return NI_END_NONE;
  }
  return NI_END_DESTROY;
}

/* Marks those that end and judges what is in flight on them. Returns how many they are. */
static uint32_t mark_ending(struct ni_dump *d, enum ni_end end, uint32_t *later) {
  uint32_t n = 0;
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next) {
    s->why = (uint8_t)end_of(d, s, end, later);
    if (s->why)
      ni_judge(&d->drain, s, (enum ni_end)s->why);
    n += s->why != NI_END_NONE;
  }
  return n;
}

/* ---- what they have left ---- */

/* What never stopped on those that end is closed, so that its line can be written. */
static void close_events(struct ni_dump *d) {
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next) {
    if (s->why)
      (void)ni_lines_identify(&d->w, s, 1);
    if (s->why != NI_END_DESTROY || !ni_events_close(&s->comm->events, &s->ev))
      continue;
    s->cut_short = 1;
    note_closing(d, s);
  }
}

/* Everything but the last lines into the block. 0, or the disk does not take it. */
static int drain_ending(struct ni_dump *d, enum ni_end end) {
  /*
   * At exit callbacks may finish more at any time: what was finished when we first looked is in, more is in
   * flight.
   */
  if (end != NI_END_EXIT)
    (void)ni_collect(&d->drain);
  (void)ni_events_collect(&d->drain);
  close_events(d);
  int rc = ni_fill(d);
  NI_TESTPOINT();
  if (rc == -ETIMEDOUT && end == NI_END_EXIT) {
    ni_drain_give_up(&d->drain);
    ni_events_give_up(&d->drain);
    ni_lines_note(&d->w,
                  "the process left before everything could be written: the rest is counted as write_error "
                  "or in flight");
    rc = 0;
  }
  if (rc || ni_gz_finished(d->w.gz))
    return -EBUSY;
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    if (s->why)
      ni_events_judge(&d->drain, s, (enum ni_end)s->why);
  ni_lines_late(&d->w);
  return d->w.no_room ? ni_session_flush(d) : 0;
}

/* ---- last lines ---- */

/*
 * 0: all its roll-ups are said. Those that did not fit are said again after a write, in the log or in their
 * own file.
 */
static int say_rollups(struct ni_dump *d, struct ni_comm_writer *s) {
  int unsaid = ni_roll_say(&d->w, s, 1);
  for (uint32_t i = 0; unsaid && i < 4 * NI_ROLLUP_ENTRIES; i++) {
    if (d->w.roll_open ? ni_roll_flush(&d->w, d->awaited) : ni_session_flush(d))
      break;
    unsaid = ni_roll_say(&d->w, s, 1);
  }
  return unsaid;
}

/* 0: there is room for its last lines. Where files may not grow long they get a block of their own: roll-ups
 * compress less well than records. */
static int make_room(struct ni_dump *d) {
  if (d->w.text_max && ni_gz_text_bytes(d->w.gz) > d->w.text_max / 8 && ni_session_flush(d))
    return -EBUSY;
  return ni_block_room(&d->w) && (ni_session_flush(d) || ni_block_room(&d->w)) ? -EBUSY : 0;
}

/* 0: they are said. */
static int say_last(struct ni_dump *d, struct ni_comm_writer *s) {
  enum ni_end why = (enum ni_end)s->why;
  if (why == NI_END_DESTROY && still_on_its_way(d, s))
    return -EAGAIN;
  if (s->ev.wait.n || s->ev.todo.n)
    return -EBUSY; /* the block took no more */
  if (say_rollups(d, s) || make_room(d))
    return -EBUSY;
  if (!s->announced)
    ni_lines_comm(&d->w, s);
  if (why == NI_END_EXIT)
    ni_unfinished_at_exit(&d->drain, s);
  ni_lines_end(&d->w, s, why);
  s->stage = NI_STAGE_CLOSED;
  d->drain.closed_in_block++;
  return 0;
}

uint32_t ni_closing(struct ni_dump *d, enum ni_end end) {
  uint32_t later = 0, open = mark_ending(d, end, &later);
  if (!open)
    return later;
  if (drain_ending(d, end))
    return open + later;
  open = later;
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    if (s->why && s->stage == NI_STAGE_LIVE)
      open += say_last(d, s) != 0;
  return open;
}

int ni_closing_all_said(const struct ni_dump *d) {
  for (const struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    if (s->stage == NI_STAGE_LIVE)
      return 0;
  return !atomic_load_explicit(&d->drain.joining, memory_order_acquire);
}
