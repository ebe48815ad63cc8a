/* A session: one log file, from the first communicator to the last. */
#include <stdio.h>
#include <string.h>

#include "dump.h"
#include "thread.h"

/* Fills d->dir. False: it is too long, the current one serves. Not on the stack: the caller's may be the host's, and small. */
static bool log_dir(struct ni_dump *d) {
  char dir[NI_DIR_MAX_BYTES];
  bool fits = ni_config_dump_dir(&ni_g.config, &d->job, d->hostname, d->origin.pid, dir, sizeof dir) >= 0;
  if (!fits) memcpy(dir, ".", 2);
  snprintf(d->dir, sizeof d->dir, "%s%s%s", dir[0] == '/' ? "" : d->cwd, dir[0] == '/' || !d->cwd[0] ? "" : "/", dir);
  return fits;
}

void ni_dump_plan(struct ni_dump *d) {
  (void)log_dir(d);
  ni_keep_session(&ni_g.box, &ni_g.arena, 0, d->dir, "", "", 0);
}

int ni_session_open(struct ni_dump *d) {
  const struct ni_config *c = &ni_g.config;
  if (!log_dir(d)) {
    ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_WRITE, "NCCL_INSPECTOR_DUMP_DIR with its tokens put in is longer than %d "
                     "bytes; writing to the current directory", NI_DIR_MAX_BYTES);
  }
  d->start_ns = ni_realtime_ns();
  struct ni_out_options o = {.dir = d->dir,
                             .host = d->hostname,
                             .pid = d->origin.pid,
                             .start_s = d->start_ns / UINT64_C(1000000000),
                             .suffix = ni_format_suffix(c->format),
                             .file_max_bytes = c->file_max_bytes,
                             .dir_max_bytes = c->dir_max_bytes,
                             .keep_seconds = c->keep_seconds};
  struct ni_ident process = {.rank = (int32_t)d->job.rank,
                             .n_ranks = d->job.world_size > 0 ? (int32_t)d->job.world_size : 0};
  int rc = ni_line_prefix_init(&d->process_prefix, &process, &d->origin);
  if (rc == 0 && (rc = ni_out_init(&d->out, &o)) != 0) ni_line_prefix_free(&d->process_prefix);
  if (rc == 0 && (rc = ni_roll_open(d, &o)) != 0) {
    (void)ni_out_close(&d->out, NULL);
    ni_line_prefix_free(&d->process_prefix);
  }
  if (rc) {
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->now_ns, "cannot prepare the log in %s: %s; trying again", d->dir,
                        strerror(-rc));
    return rc;
  }
  ni_detail_open(d, d->dir);
  ni_store_rel(&d->open, 1);
  d->head_set = d->ended = 0;
  d->early_told = 0;
  d->last_flush_ms = d->now_ms;
  d->last_clock_line_ms = d->now_ms;
  d->ts_us = d->start_ns / 1000;
  ni_keep_session(&ni_g.box, &ni_g.arena, d->start_ns, d->dir, ni_out_base(&d->out), d->line, ni_lines_process(d));
  /* The log begins at once, with its head alone: whoever is killed before the first flush leaves a process line without the
   * process's last line. Communicators whose identity comes later are said with their first operation. */
  ni_drain_join(d);
  for (struct ni_side *s = d->sides; s; s = s->next) /* others rest, their lines are in a log that is closed */
    s->announced = s->stage == NI_SIDE_LIVE && ni_side_identify(d, s, 0);
  d->urgent = ni_flush(d, d->awaited) != 0;
  return 0;
}

int ni_session_wanted(const struct ni_dump *d) {
  if (atomic_load_explicit(&d->joining, memory_order_relaxed)) return 1;
  for (const struct ni_side *s = d->sides; s; s = s->next)
    if (s->stage != NI_SIDE_WRITTEN) return 1;
  return !ni_late_empty(&ni_g.late); /* a channel of a communicator that rests: its line is owed */
}

void ni_session_close(struct ni_dump *d) {
  ni_roll_close(d);
  int rc = ni_out_close(&d->out, NULL);
  if (rc)
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->now_ns, "closing the log failed: %s; its last records may be lost",
                        strerror(-rc));
  ni_line_prefix_free(&d->process_prefix);
  ni_store_rel(&d->open, 0); /* pairs with ni_dump_idle */
  ni_keep_state(&ni_g.box, 0);
  if (atomic_load(&d->joining)) ni_keep_state(&ni_g.box, 1); /* see add_comm */
}
