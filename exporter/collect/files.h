/*
 * The reader of counters that are files, one number in each: sysfs, and the retry handler's files.
 *
 * Descriptors stay open: a reading is a pread() into the stack and a few digits by hand. Where the process
 * may have no more of them, the rest of the files is opened at each reading, which takes five times as long.
 *
 * A file that goes while it is open (its driver was unloaded, the retry handler ended) is MISSING, and the
 * reader has changed. What has no number in it, or cannot be read, is UNREADABLE. Threads: as source.h says.
 */
#ifndef NI_FILES_H
#define NI_FILES_H

#include "source.h"

struct ni_folder {
  const char *path, *sub;  /* as a whole; a folder in it, NULL: itself */
  bool must;               /* told by ni_set_unread() where it is not there */
  const char *prefix;      /* before the files' names, of its counters; NULL: nothing */
  const char *const *only; /* patterns of files; NULL: all */
  const char *const *skip; /* but these, which are no counters; NULL: none */
  const char *const *left; /* and these counters, which are left out; NULL: none */
  const char *left_why;    /* told of each of them by ni_set_skipped() */
  /* a folder that is read as well: counters that it has, too, are left out here, and told once; NULL: none */
  const char *but_in;
  bool stamped; /* "value@seconds.nanoseconds", Unix time; else "value" */
  /* only what has a number now is a counter; the others are told once, together */
  bool proven;
  bool anew; /* opened at each reading: FUSE answers an open file from its cache */
  /* the driver asks the device so seldom: within that time a reading has the time of the one before */
  unsigned lifespan_ms;
};

/*
 * Adds the files of n folders, four at most, to the last entity, and hands the reader over (ni_find_reader):
 * all counters of the entity come from here. Returns how many there are; -errno where the first folder is not
 * there or cannot be listed.
 */
int ni_files_find(struct ni_find *f, const struct ni_folder *folder, unsigned n);

#endif
