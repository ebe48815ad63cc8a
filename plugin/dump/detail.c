/*
 * Detail that changes while the job runs: control files, and an event mask that somebody else changes.
 */
#include "detail.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugin/settings/control_parse.h"
#include "plugin/settings/event_names.h"
#include "dump.h"
#include "plugin/callbacks/chan_trace.h"
#include "plugin/callbacks/event_masks.h"
#include "plugin/slots/state.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"

#define LOOK_MS 1000u

/* ---- what holds, and how it is said ---- */

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

struct ctl_told {
  struct ni_dump *d;
  struct ni_ctl_file *f;
  uint64_t mtime_ns, done_ns;
};

static const char kernel_ch_stays[] =
    "needs a new process: from NCCL 2.31 on the times of kernels are spoilt when kernelch is switched "
    "while a communicator lives; set NCCL_INSPECTOR_EVENTS at the start, or ask with kernelch as it is";

/* The result for the log. *why: with "refused". */
static const char *switch_events(uint32_t kinds, const char **why) {
  uint32_t before = ni_masks_kinds();
  if (ni_masks_set(kinds))
    return ni_masks_kinds() != before ? "done" : "no_change";
  *why = kernel_ch_stays;
  return "refused";
}

/* 1: something changed. Of what cannot be refused any more. */
static int carry_out(struct ni_dump *d, const struct ni_ctl_command *c) {
  uint64_t before;
  switch (c->verb) {
    case NI_CTL_VERBOSE:
      return ni_verbose_set(c->on);
    case NI_CTL_SAMPLE:
      before = d->drain.sample;
      d->drain.sample = c->sample;
      return d->drain.sample != before;
    case NI_CTL_FLUSH:
      d->w.flush = 1;
      return 1;
    default:
      return 1;
  }
}

static void take(void *arg, const struct ni_ctl_command *c) {
  struct ctl_told *t = arg;
  struct ni_dump *d = t->d;
  int momentary = c->verb == NI_CTL_FLUSH || c->verb == NI_CTL_MARK;
  if (c->at_ns && c->at_ns <= t->f->done_ns)
    return; /* carried out before */
  if (c->at_ns > t->done_ns)
    t->done_ns = c->at_ns;
  /* A file of an earlier run says what holds, but not what is to happen now. */
  if (momentary && (c->at_ns ? c->at_ns : t->mtime_ns) < d->w.start_ns)
    return;
  struct ni_control_line in = {
      .source = "file", .file = t->f->name, .line = c->line, .command = c->text, .result = "refused"};
  if (c->verb == NI_CTL_REFUSED) {
    in.why = c->why;
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns, "%s line %u is ignored: \"%s\": %s",
                        t->f->path, c->line, c->text, c->why);
  } else {
    if (c->verb == NI_CTL_EVENTS)
      in.result = switch_events(c->kinds, &in.why);
    else
      in.result = carry_out(d, c) ? "done" : "no_change";
    if (c->verb == NI_CTL_MARK)
      in.mark = c->mark;
    ni_log_info(&ni_g.log, "%s: %s (%s)", t->f->name, c->text, in.result);
  }
  say(d, &in);
}

static void look(struct ni_dump *d) {
  struct ni_detail *x = &d->detail;
  if (!ni_g.config.control_file || d->w.now_ms - x->last_look_ms < LOOK_MS)
    return;
  if (ni_block_room(&d->w))
    return; /* acknowledgements must fit: at the next tick */
  struct ctl_told t = {.d = d, .f = &x->file[x->turn]};
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
    struct ni_control_line in = {
        .source = "file", .file = t.f->name, .command = "", .result = "refused", .why = why};
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns, "%s is ignored: %s", t.f->path, why);
    say(d, &in);
  }
}

/* ---- names of tags ---- */

static void say_tags(struct ni_dump *d) {
  struct ni_control_line in;
  char command[NI_CTL_LINE_BYTES];
  while (!ni_block_room(&d->w) && ni_tags_next(&d->detail.tags, &in, command, sizeof command))
    say(d, &in);
}

/* ---- NCCL's event mask in other hands ---- */

/* The mask is a number of the process that others may write, too (RAS does, callbacks 5): nobody tells us. */
static void watch_mask(struct ni_dump *d) {
  int found, asked;
  if (ni_block_room(&d->w) || !ni_masks_changed(&found, &asked))
    return;
  char command[96];
  if (found == asked)
    snprintf(command, sizeof command, "NCCL's event mask is 0x%x again, as asked for", (unsigned)found);
  else
    snprintf(command, sizeof command, "NCCL's event mask is 0x%x now, 0x%x was asked for", (unsigned)found,
             (unsigned)asked);
  struct ni_control_line in = {
      .source = "mask",
      .command = command,
      .result = "done",
      .why = "another than this plugin has written it, as RAS does at CONTROL PROFILER_MASK"};
  ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_CONTROL, d->w.now_ns,
                      "%s: another than this plugin has written it", command);
  say(d, &in);
}

/* ---- from the dump role ---- */

void ni_detail_open(struct ni_dump *d, const char *dir) {
  struct ni_detail *x = &d->detail;
  if (d->w.job.rank >= 0)
    snprintf(x->own_name, sizeof x->own_name, NI_CONTROL_FILE ".rank%" PRId64, d->w.job.rank);
  else
    snprintf(x->own_name, sizeof x->own_name, NI_CONTROL_FILE ".%.200s-pid%" PRId64, d->w.hostname,
             d->w.origin.pid);
  (void)ni_ctl_file_init(&x->file[0], dir, NI_CONTROL_FILE);
  (void)ni_ctl_file_init(&x->file[1], dir, x->own_name);
  x->last_look_ms = 0;
  ni_tags_open(&x->tags);
}

void ni_detail_init(struct ni_dump *d, const struct ni_config *c) { d->drain.sample = c->sample; }

void ni_detail_tick(struct ni_dump *d) {
  say_tags(d);
  watch_mask(d);
  look(d);
}
