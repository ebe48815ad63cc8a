/*
 * Where the log of a box lies, what it says already, and where the part may go.
 *
 * What a box says about its log is text that anybody may have written. Its log is a file of the same owner, found among the
 * paths of the command line, where the box says, or in --output; with --output, which names the place, the owner is not asked
 * for. A name out of the box becomes a name in a folder, never a path. A folder that it names is made and written to with
 * the rights of the box's owner alone (as_user.h), and by root for a box of root's own only where root found it itself.
 *
 * One thread. ni_place_free(). Failure: -ENOMEM.
 */
#ifndef NI_RECOVER_PLACE_H
#define NI_RECOVER_PLACE_H

#include "exporter/base/out_file.h"
#include "exporter/model/ledger/log_state.h"
#include "exporter/input/box/sources.h"

struct ni_place {
  struct ni_log_state log;
  char stem[256];      /* name of the part without its extension */
  char *dir;           /* where it goes; NULL: nobody says */
  char *logs;          /* where its log is; NULL: nowhere that we looked */
  char said[4096];     /* where the box says that it is; "": it does not */
  bool elsewhere;      /* the box of a job that was not asked for */
  const char *closed;  /* a folder that could not be searched, with its errno; or NULL */
  int error;
};

int ni_place_find(struct ni_place *p, const struct ni_box_sources *s, const struct ni_inputs *in, const char *output,
                  const struct ni_box *b);
void ni_place_free(struct ni_place *p);

/* ---- the part's file ---- */

/* A stream whose lines go to fd as gzip; fclose() syncs and says what went wrong, and leaves fd open. NULL: -ENOMEM. */
FILE *ni_recover_lines(int fd);
/* Names the file by the first free stem.N.jsonl.gz from N on; 0 is stem.jsonl.gz. Its name is in name. 0 or -errno. */
int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size);

#endif
