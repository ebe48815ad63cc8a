/*
 * Records as other programs read them: .pfw.gz files for dfanalyzer, lines for the bulk interface of
 * Elasticsearch and OpenSearch. docs/convert.md says what becomes of which key.
 *
 * Model: each log is one part. The thread that reads it writes what it becomes into a hidden file in the
 * folder of the output; files of one process, or for the bulk form all, are then put together in the order of
 * the list of logs, so --jobs changes no byte. Names are given at the very end: a run that fails leaves
 * nothing.
 *
 * pid of a .pfw is the global rank: as the process line states it, else the rank in the process's largest
 * communicator, for which a log without that line is read twice.
 *
 * Threads: ni_convert_all() is the main thread's, which starts the others. Ownership: the command's;
 * ni_convert_free(). Failure: -errno, with a sentence in error_text.
 */
#ifndef NI_CONVERT_H
#define NI_CONVERT_H

#include <signal.h>

#include "exporter/base/counts.h"
#include "exporter/base/out_file.h"
#include "exporter/input/discover.h"
#include "exporter/input/filters.h"
#include "exporter/input/inputs.h"
#include "exporter/input/scan_files.h"
#include "exporter/model/ledger/ledger.h"
#include "exporter/model/ledger/read.h"

struct ni_convert_counts {
  /*
   * no_start: written with the time of their dump, since the log states no other; processes: .pfw.gz files.
   */
  NI_COUNTS(all, records, written, filtered, no_duration, no_start, files);
};

struct ni_convert {
  struct ni_inputs inputs;
  /* a folder, a file, a folder: one of them; dataset is the command's (exporter/cmds/convert.c) */
  const char *pfw, *bulk, *dataset;
  uint8_t partition[8]; /* of dataset: enum ni_partition */
  bool quiet;
  unsigned jobs;
  struct ni_filters filter; /* no sn, no size */
  struct ni_files files;
  const volatile sig_atomic_t *stop; /* not 0: a signal came */
  struct ni_progress progress;
  struct ni_ledger ledger; /* takes all lines */
  /* what follows is filled in */
  struct ni_convert_counts count;
  char error_text[512];
  int64_t since_us, until_us;
  struct ni_ledgers ledgers;
  struct ni_scan_plan plan;
  int dir;                 /* of the output; 0: not open yet */
  const char *name;        /* of the file of --bulk */
  struct ni_convert_file { /* of each log */
    struct ni_out_file out;
    uint64_t written;
  } *of_file;
  size_t head; /* the log whose hidden file takes those behind it */
};

/* Reads all and writes. */
int ni_convert_all(struct ni_convert *c);
void ni_convert_free(struct ni_convert *c);

#endif
