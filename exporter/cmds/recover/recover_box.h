/*
 * One black box -> one log part: what had finished and is not in the log, what was in flight, and accounts
 * that close.
 *
 *   box ─▶ operations by communicator life ─▶ less what the log has (place.h) ─▶ lines
 *       ─▶ <log's name>.jsonl.gz[.n]
 *
 * Idempotent by rec_sn: a number that the log has, in whatever file, is not written again; when every
 * communicator has its final line there is nothing to do. The part is written under a hidden name
 * (out_file.h) and gets its own once it is on disk, so a crash leaves no half of it. The box is never
 * written.
 *
 * A process that was alive when the box was looked at: no final lines, the process line says recovered_live.
 *
 * Threads: one. Failure: -ENOMEM; write errors stay in the FILE.
 */
#ifndef NI_RECOVER_BOX_H
#define NI_RECOVER_BOX_H

#include "exporter/input/box/box.h"
#include "place.h"

struct ni_recovered {
  bool part; /* the lines are worth a part: the log has not all of it */
  uint64_t records, in_flight, incomplete, filtered;
  uint64_t communicators; /* whose accounts were closed */
  uint64_t damaged;       /* communicators and slots that cannot be what they say */
  uint64_t unlisted;      /* in flight by the accounts, in no slot: taken and not yet filled */
  uint64_t lost;          /* in no slot, because the box had no room: finished or in flight, nobody knows */
};

/*
 * log: what is in the log already (start_ns of the same session). Lines go to f. live: the process was, or
 * may be, alive.
 */
int ni_recover_box(const struct ni_box *b, const struct ni_log_state *log, FILE *f, bool live,
                   struct ni_recovered *out);

#endif
