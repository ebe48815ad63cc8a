#include "session.h"

#include <stdio.h>
#include <string.h>

#include "plugin/drain/collect.h"
#include "plugin/drain/settle.h"
#include "plugin/slots/state.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "plugin/write/rollup_lines.h"

#define BLOCK_MIN 4096u /* of block_max: shorter ones are dear */

/*
 * Fills d->dir. False: it is too long, the current one serves. Not on the stack: the caller's may be the
 * host's, and small.
 */
static bool log_dir(struct ni_dump *d) {
  char dir[NI_DIR_MAX_BYTES];
  bool fits =
      ni_job_dump_dir(&d->w.job, ni_g.config.dump_dir, d->w.hostname, d->w.origin.pid, dir, sizeof dir) >= 0;
  if (!fits)
    memcpy(dir, ".", 2);
  snprintf(d->dir, sizeof d->dir, "%s%s%s", dir[0] == '/' ? "" : d->cwd,
           dir[0] == '/' || !d->cwd[0] ? "" : "/", dir);
  return fits;
}

void ni_session_plan(struct ni_dump *d) {
  (void)log_dir(d);
  ni_keep_session(&ni_g.box, &ni_g.arena, 0, d->dir, "", "", 0);
}

int ni_session_flush(struct ni_dump *d) {
  int rc = ni_block_write(&d->w, d->awaited);
  if (rc == 0)
    ni_settle_block(&d->drain);
  return rc;
}

int ni_session_open(struct ni_dump *d) {
  const struct ni_config *c = &ni_g.config;
  if (!log_dir(d)) {
    ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_WRITE,
                     "NCCL_INSPECTOR_DUMP_DIR with its tokens put in is longer than %d "
                     "bytes; writing to the current directory",
                     NI_DIR_MAX_BYTES);
  }
  d->w.start_ns = ni_realtime_ns();
  struct ni_out_options o = {.dir = d->dir,
                             .host = d->w.hostname,
                             .pid = d->w.origin.pid,
                             .start_s = d->w.start_ns / UINT64_C(1000000000),
                             .suffix = ni_format_suffix(c->format),
                             .file_max_bytes = c->file_max_bytes,
                             .dir_max_bytes = c->dir_max_bytes,
                             .keep_seconds = c->keep_seconds};
  struct ni_ident process = {.rank = (int32_t)d->w.job.rank,
                             .n_ranks = d->w.job.world_size > 0 ? (int32_t)d->w.job.world_size : 0};
  int rc = ni_line_prefix_init(&d->w.process_prefix, &process, &d->w.origin);
  if (rc == 0 && (rc = ni_out_init(&d->w.out, &o)) != 0)
    ni_line_prefix_free(&d->w.process_prefix);
  if (rc == 0 && (rc = ni_roll_open(&d->w, &o)) != 0) {
    (void)ni_out_close(&d->w.out, NULL);
    ni_line_prefix_free(&d->w.process_prefix);
  }
  if (rc) {
    d->w.write_error = -rc;
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->w.now_ns,
                        "cannot prepare the log in %s: %s; trying again", d->dir, strerror(-rc));
    return rc;
  }
  /*
   * A file ends between blocks. So a block is a quarter of what a file may have: what is longer than guessed
   * fits, too.
   */
  uint64_t most = ni_out_file_max(&d->w.out);
  d->w.block_max = most == 0 || most / 4 > BLOCK_MIN ? most / 4 : BLOCK_MIN;
  ni_detail_open(d, d->dir);
  ni_store_rel(&d->open, 1);
  d->w.head_set = d->ended = 0;
  d->early_told = 0;
  d->start_seen_ns = d->w.now_ns;
  d->w.last_flush_ms = d->w.now_ms;
  d->last_clock_line_ms = d->w.now_ms;
  d->w.ts_us = d->w.start_ns / 1000;
  ni_keep_session(&ni_g.box, &ni_g.arena, d->w.start_ns, d->dir, ni_out_base(&d->w.out), d->w.line,
                  ni_lines_process(&d->w));
  /* The log begins at once, with its head alone: whoever is killed before the first flush leaves a process
   * line without the process's last line. Communicators whose identity comes later are said with their first
   * operation. */
  ni_collect_join(&d->drain);
  /* others rest, their lines are in a log that is closed */
  for (struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    s->announced = s->stage == NI_STAGE_LIVE && ni_lines_identify(&d->w, s, 0);
  d->w.urgent = ni_session_flush(d) != 0;
  return 0;
}

int ni_session_wanted(const struct ni_dump *d) {
  if (atomic_load_explicit(&d->drain.joining, memory_order_relaxed))
    return 1;
  for (const struct ni_comm_writer *s = d->w.comms; s; s = s->next)
    if (s->stage != NI_STAGE_WRITTEN)
      return 1;
  return !ni_late_empty(&ni_g.late); /* a channel of a communicator that rests: its line is owed */
}

void ni_session_close(struct ni_dump *d) {
  ni_roll_close(&d->w);
  int rc = ni_out_close(&d->w.out, NULL);
  if (rc)
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->w.now_ns,
                        "closing the log failed: %s; its last records may be lost", strerror(-rc));
  ni_line_prefix_free(&d->w.process_prefix);
  ni_store_rel(&d->open, 0); /* pairs with ni_dump_idle */
  ni_keep_state(&ni_g.box, 0);
  if (atomic_load(&d->drain.joining))
    ni_keep_state(&ni_g.box, 1); /* see add_comm */
}
