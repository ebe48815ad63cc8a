#include "block.h"

#include <errno.h>
#include <string.h>

#include "lines.h"
#include "plugin/slots/state.h"

/* New files begin with who wrote them and with the communicators alive. A later file can come at any write:
 * by rotation, or because the one before was deleted or failed. -ENOMEM when there is no head at all: no file
 * is begun without one; an outdated head is better than a record that waits. */
static int renew_head(struct ni_writer *w) {
  uint8_t which = ni_out_files(&w->out) ? NI_HEAD_LATER : NI_HEAD_FIRST;
  if (w->head_set == which && !(which == NI_HEAD_LATER && w->comms_changed))
    return 0;
  /* The first file has those that began it; the lines of later ones come by themselves. */
  if (ni_lines_head(w, &w->out, 1))
    return w->head_set == NI_HEAD_NONE ? -ENOMEM : 0;
  w->head_set = which;
  w->comms_changed = 0;
  return 0;
}

int ni_block_write(struct ni_writer *w, int force) {
  const void *block;
  size_t n;
  int rc = ni_gz_finish(w->gz, &block, &n);
  /*
   * Without a line there is nothing to wait for, but a session's first file: its head alone is worth writing.
   */
  if (rc == 0 && n == 0 && (!ni_g.config.control_lines || ni_out_files(&w->out))) {
    w->urgent = w->flush = 0;
    return 0;
  }
  if (rc == 0) {
    rc = renew_head(w);
    if (rc == 0)
      rc = ni_out_write(&w->out, block, n, w->block_records, w->now_ns, force);
  }
  w->last_flush_ms = w->now_ms;
  if (rc != -EAGAIN)
    w->write_error = -rc; /* EAGAIN: it was not tried, an earlier failure is young */
  if (rc == 0) {
    ni_keep_expired(&ni_g.box, ni_out_lost(&w->out).expired_records);
    (void)ni_add_rlx(&w->progress, 1);
    ni_gz_release(w->gz);
    w->urgent = w->flush = 0;
    ni_log_info_once(&ni_g.log, NI_LOG_CAUSE_FILES, "writing %s", ni_out_path(&w->out));
    if ((rc = ni_out_rotation_error(&w->out)) != 0)
      ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_ROTATE,
                       "cannot begin the next file: %s (%d). %s grows beyond its limit, nothing is lost; "
                       "tried again every 5 s. Free files or space there (NCCL_INSPECTOR_DUMP_DIR)",
                       strerror(-rc), -rc, ni_out_path(&w->out));
    return 0;
  }
  if (rc != -EAGAIN)
    ni_log_warn_limited(
        &ni_g.log, NI_LOG_CAUSE_WRITE, w->now_ns,
        "cannot write %s: %s (%d). %llu records wait in memory and are tried again; free space or make "
        "the directory writable (NCCL_INSPECTOR_DUMP_DIR)%s",
        ni_out_path(&w->out), strerror(-rc), -rc, (unsigned long long)w->block_records,
        ni_g.box.h ? ". If the process ends first, nccl-inspector recover gets them from the black box" : "");
  return rc;
}
