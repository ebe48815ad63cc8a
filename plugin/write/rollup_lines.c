/*
 * Periods begin at whole multiples of NCCL_INSPECTOR_ROLLUP_SECONDS since 1970, so those of all ranks can be
 * put side by side. Where files expire (NCCL_INSPECTOR_DIR_MAX_BYTES, _KEEP_SECONDS) the lines go to a file
 * of their own that does not: they are what stays. It is written at the end of each period; while the disk
 * refuses, the block is kept and what comes after it goes on being counted.
 */
#include "rollup_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "block.h"
#include "lines.h"
#include "plugin/slots/state.h"

int ni_roll_counted(void) { return ni_g.config.control_lines && ni_g.config.rollup_seconds; }

int ni_roll_open(struct ni_writer *w, const struct ni_out_options *log) {
  const struct ni_config *c = &ni_g.config;
  if (!ni_roll_counted() || (!c->dir_max_bytes && !c->keep_seconds))
    return 0;
  if (!w->gz_roll && !(w->gz_roll = ni_gz_create(ni_format_compressed(c->format), NI_CODEC_LEVEL)))
    return -ENOMEM;
  char suffix[32];
  snprintf(suffix, sizeof suffix, ".rollup%s", log->suffix);
  struct ni_out_options o = *log;
  o.suffix = suffix;
  o.file_max_bytes = o.dir_max_bytes = o.keep_seconds = 0;
  int rc = ni_out_init(&w->roll_out, &o);
  w->roll_open = rc == 0;
  return rc;
}

void ni_roll_close(struct ni_writer *w) {
  if (!w->roll_open)
    return;
  (void)ni_roll_flush(w, 1);
  ni_gz_release(w->gz_roll);
  int rc = ni_out_close(&w->roll_out, NULL);
  if (rc)
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, w->now_ns,
                        "closing the file of roll-ups failed: %s; its last lines "
                        "may be lost",
                        strerror(-rc));
  w->roll_open = 0;
}

/* A line of roll-ups, or the comm line before a communicator's first. */
static int put(struct ni_writer *w, size_t n) {
  if (!w->roll_open) /* the block must fit into a file, and the last lines behind it, too */
    return w->text_max && ni_gz_text_bytes(w->gz) && ni_gz_text_bytes(w->gz) + n > w->text_max / 2
        ? -EFBIG
        : ni_block_put(w, w->line, n);
  return n ? ni_gz_append(w->gz_roll, w->line, n) : 0;
}

static int say_entry(struct ni_writer *w, struct ni_comm_writer *s, struct ni_rollup_sums *e,
                     uint64_t now_ns) {
  struct ni_rollup_line in = {
      .kind = ni_kind_names[e->kind == NI_KIND_P2P],
      .func = e->cls == NI_ROLLUP_OTHERS ? "(others)" : ni_intern_text(&ni_g.intern, e->func),
      .timing = (enum ni_timing)e->timing,
      .msg_bytes = e->bytes,
      .msg_to_bytes = ni_rollup_last_bytes(e),
      .from_ns = s->rollup.from_ns,
      .to_ns = now_ns,
      .count = e->count,
      .sum_bytes = e->sum_bytes,
      .sum_ns = e->sum_ns,
      .min_ns = e->min_ns,
      .max_ns = e->max_ns};
  const uint32_t *hist = ni_rollup_hist(e);
  in.has_hist = hist != NULL;
  for (uint32_t i = 0; hist && i < NI_HIST_BUCKETS; i++)
    in.hist[i] = hist[i];
  int rc = put(w, ni_format_rollup(w->line, sizeof w->line, &s->prefix, w->ts_us, &in));
  if (rc == 0)
    ni_rollup_said(e);
  return rc;
}

int ni_roll_say(struct ni_writer *w, struct ni_comm_writer *s, int now) {
  if (!ni_roll_counted())
    return 0;
  uint64_t period = w->real_ms / 1000 / ni_g.config.rollup_seconds, now_ns = w->real_ms * 1000000;
  if (s->rollup_period == 0)
    s->rollup_period = period;
  if (!now && s->rollup_period == period && !s->rollup.due)
    return 0;
  if (s->rollup.from_ns > now_ns)
    s->rollup.from_ns = now_ns; /* the wall clock was set back */
  uint32_t at = 0;
  int rc = 0;
  for (struct ni_rollup_sums *e; rc == 0 && (e = ni_rollup_next(&s->rollup, &at)) != NULL;) {
    if (w->roll_open && !s->in_roll_file) {
      rc = put(w, ni_lines_comm_text(w, s));
      s->in_roll_file = rc == 0;
    }
    if (rc == 0)
      rc = say_entry(w, s, e, now_ns);
  }
  if (rc)
    return rc;
  ni_rollup_tidy(&s->rollup, &w->roll_pool);
  s->rollup_period = period;
  return 0;
}

int ni_roll_flush(struct ni_writer *w, int force) {
  const void *block;
  size_t n;
  if (!w->roll_open)
    return 0;
  if (ni_gz_text_bytes(w->gz_roll) == 0 && !ni_gz_finished(w->gz_roll))
    return 0;
  int rc = ni_gz_finish(w->gz_roll, &block, &n);
  if (rc == 0 && ni_out_files(&w->roll_out) == 0)
    rc = ni_lines_head(w, &w->roll_out, 0);
  if (rc == 0)
    rc = ni_out_write(&w->roll_out, block, n, 0, w->now_ns, force);
  if (rc == 0) {
    ni_gz_release(w->gz_roll);
    ni_out_reserve(&w->out, ni_out_bytes(&w->roll_out));
  } else if (rc != -EAGAIN) {
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, w->now_ns,
                        "cannot write roll-ups to %s: %s; they are kept and tried "
                        "again",
                        ni_out_path(&w->roll_out), strerror(-rc));
  }
  return rc;
}
