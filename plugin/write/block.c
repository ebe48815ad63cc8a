/*
 * The open block to disk: one write() a block, kept until it has succeeded.
 */
#include "plugin/dump/dump.h"

#include <string.h>

/* New files begin with who wrote them and with the communicators alive. A later file can come at any write:
 * by rotation, or because the one before was deleted or failed. -ENOMEM when there is no head at all: no file is begun
 * without one; an outdated head is better than a record that waits. */
static int renew_head(struct ni_dump *d) {
  uint8_t which = ni_out_files(&d->out) ? NI_HEAD_LATER : NI_HEAD_FIRST;
  if (d->head_set == which && !(which == NI_HEAD_LATER && d->comms_changed)) return 0;
  /* The first file has those that began it; the lines of later ones come by themselves. */
  if (ni_lines_head(d, &d->out, 1)) return d->head_set == NI_HEAD_NONE ? -ENOMEM : 0;
  d->head_set = which;
  d->comms_changed = 0;
  return 0;
}

int ni_flush(struct ni_dump *d, int force) {
  const void *block;
  size_t n;
  int rc = ni_gz_finish(d->gz, &block, &n);
  /* Without a line there is nothing to wait for, but a session's first file: its head alone is worth writing. */
  if (rc == 0 && n == 0 && (!ni_g.config.control_lines || ni_out_files(&d->out))) {
    d->urgent = d->detail.flush = 0;
    ni_drain_settle(d, 1);
    return 0;
  }
  if (rc == 0) {
    rc = renew_head(d);
    if (rc == 0) rc = ni_out_write(&d->out, block, n, d->block_records, d->now_ns, force);
  }
  d->last_flush_ms = d->now_ms;
  if (rc == 0) {
    ni_keep_expired(&ni_g.box, ni_out_lost(&d->out).expired_records);
    (void)ni_add_rlx(&d->progress, 1);
    ni_gz_release(d->gz);
    d->urgent = d->detail.flush = 0;
    ni_drain_settle(d, 1);
    ni_log_info_once(&ni_g.log, NI_LOG_CAUSE_FILES, "writing %s", ni_out_path(&d->out));
    if ((rc = ni_out_rotation_error(&d->out)) != 0)
      ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_ROTATE,
                       "cannot begin the next file: %s (%d). %s grows beyond its limit, nothing is lost; tried again every "
                       "5 s. Free files or space there (NCCL_INSPECTOR_DUMP_DIR)", strerror(-rc), -rc, ni_out_path(&d->out));
    return 0;
  }
  if (rc != -EAGAIN)
    ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, d->now_ns,
                        "cannot write %s: %s (%d). %llu records wait in memory and are tried again; free space or make "
                        "the directory writable (NCCL_INSPECTOR_DUMP_DIR)",
                        ni_out_path(&d->out), strerror(-rc), -rc, (unsigned long long)d->block_records);
  return rc;
}
