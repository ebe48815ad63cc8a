/*
 * Detail that changes while the job runs: control files, slices of KernelCh, the budget.
 */
#include "detail.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugin/settings/control_parse.h"
#include "plugin/settings/event_names.h"
#include "dump.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/callbacks/meter.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"

#define LOOK_MS 1000u

/* ---- what holds, and how it is said ---- */

static void apply(struct ni_dump *d) {
  struct ni_detail *x = &d->detail;
  uint32_t kinds = ni_budget_kinds(x->asked, x->budget.level);
  if (x->out_of_slice) kinds &= ~NI_KINDS(NI_EVENT_KERNEL_CH);
  if (kinds != ni_masks_kinds()) ni_masks_set(kinds);
}

static void say(struct ni_dump *d, struct ni_control_line *in) {
  char events[NI_KINDS_TEXT_BYTES];
  ni_kinds_text(ni_masks_kinds(), events, sizeof events);
  in->events = events;
  in->verbose = ni_load_rlx(&ni_g.verbose) != 0;
  in->sample = d->drain.sample;
  in->ns = ni_realtime_ns();
  ni_lines_control(&d->w, in);
  in->events = NULL;
}

/* ---- control files ---- */

struct told {
  struct ni_dump *d;
  struct ni_ctl_file *f;
  uint64_t mtime_ns, done_ns;
};

/* 1: something changed. */
static int carry_out(struct ni_dump *d, const struct ni_ctl_command *c) {
  struct ni_detail *x = &d->detail;
  uint64_t before;
  switch (c->verb) {
    case NI_CTL_EVENTS:
      before = x->asked;
      x->asked = c->kinds;
      apply(d);
      return x->asked != before;
    case NI_CTL_VERBOSE: return ni_verbose_set(c->on);
    case NI_CTL_SAMPLE:
      before = d->drain.sample;
      d->drain.sample = c->sample;
      return d->drain.sample != before;
    case NI_CTL_FLUSH: d->w.flush = 1; return 1;
    default: return 1;
  }
}

static void take(void *arg, const struct ni_ctl_command *c) {
  struct told *t = arg;
  struct ni_dump *d = t->d;
  int momentary = c->verb == NI_CTL_FLUSH || c->verb == NI_CTL_MARK;
  if (c->at_ns && c->at_ns <= t->f->done_ns) return; /* carried out before */
  if (c->at_ns > t->done_ns) t->done_ns = c->at_ns;
  /* A file of an earlier run says what holds, but not what is to happen now. */
  if (momentary && (c->at_ns ? c->at_ns : t->mtime_ns) < d->w.start_ns) return;
  struct ni_control_line in = {.source = "file", .file = t->f->name, .line = c->line, .command = c->text, .result = "refused"};
  if (c->verb == NI_CTL_REFUSED) {
    in.why = c->why;
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns, "%s line %u is ignored: \"%s\": %s", t->f->path, c->line,
                        c->text, c->why);
  } else {
    in.result = carry_out(d, c) ? "done" : "no_change";
    if (c->verb == NI_CTL_MARK) in.mark = c->mark;
    ni_log_info(&ni_g.log, "%s: %s (%s)", t->f->name, c->text, in.result);
  }
  say(d, &in);
}

static void look(struct ni_dump *d) {
  struct ni_detail *x = &d->detail;
  if (!ni_g.config.control_file || d->w.now_ms - x->last_look_ms < LOOK_MS) return;
  if (ni_block_room(&d->w)) return; /* acknowledgements must fit: at the next tick */
  struct told t = {.d = d, .f = &x->file[x->turn]};
  x->last_look_ms = d->w.now_ms;
  x->turn ^= 1;
  const char *why;
  size_t n;
  int got = ni_ctl_file_look(t.f, x->text, sizeof x->text, &n, &t.mtime_ns, &why);
  if (got > 0) {
    t.done_ns = t.f->done_ns;
    ni_ctl_parse(x->text, n, take, &t);
    t.f->done_ns = t.done_ns;
  } else if (got < 0) {
    struct ni_control_line in = {.source = "file", .file = t.f->name, .command = "", .result = "refused", .why = why};
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns, "%s is ignored: %s", t.f->path, why);
    say(d, &in);
  }
}

/* ---- slices of KernelCh ---- */

static void slice(struct ni_dump *d) {
  struct ni_detail *x = &d->detail;
  /* Without a thread nobody comes to switch it on again. */
  if (!ni_g.config.duty.period_ms || !ni_load_rlx(&d->has_thread)) return;
  uint8_t off = !ni_duty_on(ni_g.config.duty, d->w.real_ms, &x->slice_ends_ms);
  if (off == x->out_of_slice) return;
  if (ni_block_room(&d->w)) return;
  x->out_of_slice = off;
  apply(d);
  if (!(ni_budget_kinds(x->asked, x->budget.level) & NI_KINDS(NI_EVENT_KERNEL_CH))) return; /* nothing to switch */
  struct ni_control_line in = {.source = "duty", .command = off ? "kernelch off" : "kernelch on", .result = "done"};
  say(d, &in);
}

/* ---- the budget ---- */

static void budget(struct ni_dump *d) {
  struct ni_detail *x = &d->detail;
  if (!x->budget.limit) return;
  if (x->window_ns && d->w.now_ns - x->window_ns < NI_BUDGET_WINDOW_MS * UINT64_C(1000000)) return;
  if (ni_block_room(&d->w)) return;
  uint64_t ticks = ni_load_rlx(&ni_g.meter.ticks), started = d->drain.gone_started, dropped = d->drain.gone_dropped;
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next) ni_accounts_add(s, &started, &dropped);
  struct ni_budget_window w = {.elapsed_ns = d->w.now_ns - x->window_ns,
                               .callback_ns = ni_clock_span_ns(&ni_g.clock, ticks - x->ticks),
                               .started = started - x->started,
                               .dropped = dropped - x->dropped};
  int first = x->window_ns == 0;
  x->window_ns = d->w.now_ns;
  x->ticks = ticks;
  x->started = started;
  x->dropped = dropped;
  if (first) return;
  enum ni_budget_step step = ni_budget_judge(&x->budget, x->asked, &w);
  if (step == NI_BUDGET_KEEP) return;
  apply(d);
  char why[256], share[32], limit[32];
  ni_percent_text(ni_budget_share(&w), share, sizeof share);
  ni_percent_text(x->budget.limit, limit, sizeof limit);
  snprintf(why, sizeof why, "in %" PRIu64 " ms callbacks took %s %% of a CPU, %" PRIu64 " of %" PRIu64
           " operations were dropped; the limit is %s %%", w.elapsed_ns / 1000000, share, w.dropped, w.started, limit);
  struct ni_control_line in = {.source = "budget", .result = step == NI_BUDGET_NO_LOWER ? "refused" : "done", .why = why,
                               .command = step == NI_BUDGET_UP ? "detail up" : step == NI_BUDGET_NO_LOWER ? "no lower detail" : "detail down"};
  ni_log_info_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns, "%s: %s", in.command, why);
  say(d, &in);
}

/* ---- from the dump role ---- */

void ni_detail_open(struct ni_dump *d, const char *dir) {
  struct ni_detail *x = &d->detail;
  if (d->w.job.rank >= 0)
    snprintf(x->own_name, sizeof x->own_name, NI_CONTROL_FILE ".rank%" PRId64, d->w.job.rank);
  else
    snprintf(x->own_name, sizeof x->own_name, NI_CONTROL_FILE ".%.200s-pid%" PRId64, d->w.hostname, d->w.origin.pid);
  (void)ni_ctl_file_init(&x->file[0], dir, NI_CONTROL_FILE);
  (void)ni_ctl_file_init(&x->file[1], dir, x->own_name);
  x->last_look_ms = 0;
}

void ni_detail_init(struct ni_dump *d, const struct ni_config *c) {
  d->drain.sample = c->sample;
  d->detail.asked = c->events;
  d->detail.budget.limit = c->dump_thread ? c->max_overhead : 0;
  if (d->detail.budget.limit) ni_meter_start(&ni_g.meter, ni_g.clock.ns_per_tick);
}

void ni_detail_tick(struct ni_dump *d) {
  look(d);
  slice(d);
  budget(d);
}

uint64_t ni_detail_wait_ms(const struct ni_dump *d, uint64_t ms) {
  const struct ni_detail *x = &d->detail;
  if (!ni_g.config.duty.period_ms || x->slice_ends_ms <= d->w.real_ms) return ms;
  uint64_t left = x->slice_ends_ms - d->w.real_ms;
  return left < ms ? left : ms;
}
