/*
 * Names of the application's tags, from the file that NCCL_INSPECTOR_TAGS names: each becomes a `control`
 * line of source "tags" in the log, as a line of a control file would, so that whoever reads the log knows
 * them. Dump role.
 *
 *   ni_tags_open ─▶ text of the file ──ni_tags_next, as long as the block takes lines──▶ all said, text freed
 *
 * A file that cannot be read, and lines that say nothing, are named once in NCCL's log; the job goes on
 * without these names.
 */
#ifndef NI_TAGS_H
#define NI_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_TAGS_FILE_BYTES (256u << 10)

struct ni_control_line;

struct ni_tag_lines {
  char *text;     /* owned, terminated; NULL: nothing is left to say */
  char *at;       /* the next line */
  uint32_t line;  /* its number, from 1 */
  uint32_t wrong; /* lines that were not understood */
};

/* With each session: its log has the names, too. */
void ni_tags_open(struct ni_tag_lines *t);

/*
 * The next name as a control line, in *in and command, which it points into; false: there is none (any more).
 */
bool ni_tags_next(struct ni_tag_lines *t, struct ni_control_line *in, char *command, size_t cap);

#endif
