/*
 * One black box -> one log part: what had finished and is not in the log, what was in flight, and accounts that close.
 *
 *   box ─▶ operations by communicator life ─▶ less what the log has (log_state.h) ─▶ lines ─▶ <log's name>.jsonl.gz[.n]
 *
 * Idempotent by rec_sn: a number that the log has, in whatever file, is not written again; when every communicator has
 * its final line there is nothing to do. The part is written under a hidden name and linked to its own once it is on disk, so
 * a crash leaves no half of it. The box is never written.
 *
 * A process that was alive when the box was looked at: no final lines, the process line says recovered_live.
 *
 * Threads: one. Ownership: the result's texts belong to it (ni_recovered_free). Failure: -ENOMEM, or -errno of writing the
 * part with `error` as a sentence; nothing is left behind then.
 */
#ifndef NI_RECOVER_BOX_H
#define NI_RECOVER_BOX_H

#include "box.h"
#include "log_state.h"

struct ni_recovered {
  char *path;   /* the part; NULL: nothing was to be written */
  char *error;
  uint64_t records, in_flight, incomplete, filtered;
  uint64_t communicators; /* whose accounts were closed */
  uint64_t damaged;       /* communicators and slots that cannot be what they say */
  uint64_t unlisted;      /* in flight by the accounts, in no slot: taken, not yet filled, or outside the box */
};

/*
 * stem: directory and name of the part without extension. log: what is in the log already (start_ns of the same session).
 * live: the process was, or may be, alive.
 */
int ni_recover_box(const struct ni_box *b, const struct ni_log_state *log, const char *stem, bool live,
                   struct ni_recovered *out);
void ni_recovered_free(struct ni_recovered *r);

/* Writes len bytes of text as gzip to the first free stem.N.jsonl.gz from number `from` on; 0 is stem.jsonl.gz
 * (recover_file.c). *path: malloc'd. */
int ni_recover_write(const char *stem, uint64_t from, const char *text, size_t len, char **path);

/* A finished slot as a record, as the plugin's own fill_record has it (docs/blackbox.md, "Values of a record"). */
void ni_recover_record(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                       struct ni_record *r, int *fallback); /* *fallback: index of ni_fallback_names, -1 none */

#endif
