/*
 * The reader of counters that are files, one number in each: sysfs, and the retry handler's files.
 *
 *   ni_files_new ─▶ ni_files_folder, for each folder of the entity ─▶ ni_files_done
 *
 * Descriptors stay open: a reading is a pread() into the stack and a few digits by hand. Where the process may have no more
 * of them, the rest of the files is opened at each reading, which takes five times as long. All counters of the entity come
 * from here.
 *
 * A file that goes while it is open (its driver was unloaded, the retry handler ended) is MISSING, and the reader has changed.
 * What has no number in it, or cannot be read, is UNREADABLE. Threads: as source.h says.
 */
#ifndef NI_FILES_H
#define NI_FILES_H

#include "source.h"

struct ni_folder {
  const char *path, *sub;     /* as a whole; a folder in it, NULL: itself */
  bool must;                  /* told by ni_set_unread() where it is not there */
  const char *prefix;         /* before the files' names, of its counters; NULL: nothing */
  const char *const *only;    /* patterns of files; NULL: all */
  const char *const *skip;    /* but these; NULL: none */
  const char *skip_why;       /* told by ni_set_skipped(); NULL: what is skipped is no counter */
  bool stamped;               /* "value@seconds.nanoseconds", Unix time; else "value" */
  bool proven;                /* only what has a number now is a counter; the others are told once, together */
  bool anew;                  /* opened at each reading: FUSE answers an open file from its cache */
  unsigned lifespan_ms;       /* the driver asks the device so seldom: within that time a reading has the time of the one before */
};

struct ni_files;
/* NULL without memory, which the set then says; the other two take it. */
struct ni_files *ni_files_new(struct ni_find *f);
/* Adds its files to the last entity. 0, or -errno: there is no such folder, or it cannot be listed. */
int ni_files_folder(struct ni_find *f, struct ni_files *x, const struct ni_folder *how);
/* Hands the reader over (ni_find_reader). */
void ni_files_done(struct ni_find *f, struct ni_files *x);

#endif
