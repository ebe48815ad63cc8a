/*
 * The log of an imported rank: the lines that the plugin would have written, as far as the source knows what
 * they say (docs/import.md has what is absent), one file, whole or not at all.
 *
 * One thread. Failure: -errno, with a sentence in why.
 */
#ifndef NI_IMPORT_LOG_H
#define NI_IMPORT_LOG_H

#include "align.h"

struct ni_import_log {
  const struct ni_imported *m; /* with its operations, in order */
  const struct ni_align *align;
  uint32_t file;         /* in align */
  const char *mechanism; /* rec_mechanism: NI_MECHANISM_KINETO */
  const char *source;    /* the same for people: "a Kineto trace" */
  const char *host;      /* metadata.hostname */
  /* ranks of this import whose logs have that host, pid and second of the start in their names */
  size_t before;
  char name[512]; /* out: what the file is called */
  char why[1024];
};

/* Into the folder; a file that is there is never replaced (-EEXIST). */
int ni_import_log(struct ni_import_log *l, int dir);

#endif
