/*
 * The recordings of all ranks, read from the files that were given.
 *
 *   files ─▶ each process, alone (formats.h) ─▶ its operations aside, in a temporary file ─▶ cycles
 *
 * What is kept of a recording is all but its operations: ni_recordings_load() brings them back for as long as
 * they are needed. So memory is that of one rank's operations (imported.h).
 *
 * A file that cannot be read is named and left out. So is a recording that is there twice: of the same rank
 * and time, or of the same process where it does not say its rank.
 *
 * A profiler with a schedule that repeats writes a file a rank and cycle. Recordings of one rank that do not
 * overlap in time are such *cycles*.
 *
 * One thread. Ownership: ni_recordings_free(), also after a failure. Failure: -errno, and what went wrong is
 * said.
 */
#ifndef NI_IMPORT_RECORDINGS_H
#define NI_IMPORT_RECORDINGS_H

#include "exporter/base/spill/spill_file.h"
#include "exporter/input/discover.h"
#include "formats.h"

struct ni_recording {
  struct ni_imported m;   /* without its operations, but while they are loaded */
  uint64_t operations_at; /* where these are put aside */
  uint32_t cycle;
};

struct ni_recordings {
  /* the caller's: who reads, for messages; the folder for the logs */
  const char *who, *out;
  const struct ni_import_format *format;
  struct ni_progress *progress;
  struct ni_files files;
  struct ni_spill aside;
  struct ni_recording *item;
  size_t n, cap;
  size_t left_out; /* files, and recordings in them */
  uint32_t cycles;
  int dir;     /* `out`, made for the first recording; -1: there is none */
  bool failed; /* not the file that is read, but what is done with it */
};

void ni_recordings_init(struct ni_recordings *x);
/*
 * Reads them, in order of time if there are several cycles. Before: who, out, format and progress. -ENODATA:
 * there is none, and each file was named.
 */
int ni_recordings_read(struct ni_recordings *x, char *const *path, size_t n);
/* Operations of recording i, into its m.op. */
int ni_recordings_load(struct ni_recordings *x, size_t i);
void ni_recordings_unload(struct ni_recordings *x, size_t i);
void ni_recordings_free(struct ni_recordings *x);

#endif
