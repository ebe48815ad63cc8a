/*
 * What lines are written with: the open block, the files, who writes, and the time of this tick. One per
 * process, of the dump role; all of write/ and drain/ work on it.
 */
#ifndef NI_WRITER_H
#define NI_WRITER_H

#include "comm_writer.h"
#include "gz_writer.h"
#include "out_file.h"
#include "plugin/settings/job.h"
#include "plugin/settings/config.h"

struct ni_prom;

/* What the next new file begins with. */
enum { NI_HEAD_NONE = 0, NI_HEAD_FIRST, NI_HEAD_LATER };

struct ni_writer {
  struct ni_comm_writer *comms;    /* all communicators not yet released */
  struct ni_event_writer detached; /* of ni_g.detached */
  /* the open block */
  struct ni_gz *gz, *gz_head; /* the open block; the small member at the head of a new file */
  struct ni_out out;
  uint64_t ts_us;    /* dump_timestamp_us of the open block */
  uint64_t text_max; /* text at which the open block takes no more: RLIMIT_FSIZE; 0: no limit */
  /* bytes, compressed, at which it takes no more, so that files keep their limit; 0: no limit */
  uint64_t block_max;
  uint64_t block_records;
  int write_error; /* errno of the newest try to write; 0: it succeeded, or there was none */
  uint8_t no_room; /* a line that is said once did not fit: write first */
  uint8_t urgent;  /* a line that cannot wait is in the open block */
  uint8_t flush;   /* somebody asked for everything to be written */
  /* NI_HEAD_* of the head that `out` has; a communicator came, went or was said since */
  uint8_t head_set, comms_changed;
  char line[NI_LINE_MAX_BYTES];
  /* roll-ups */
  struct ni_gz *gz_roll; /* block of the roll-ups' own file; NULL: their lines go to the log */
  struct ni_out roll_out;
  struct ni_rollup_pool roll_pool;
  uint8_t roll_open;
  struct ni_prom *prom; /* prom.h; NULL: nothing to say */
  /* who writes */
  struct ni_meta origin;
  struct ni_line_prefix process_prefix;
  char hostname[256], boot_id[64], exe[256];
  char settings[NI_PAIRS_TEXT_BYTES];
  struct ni_job job;
  uint64_t start_ns; /* Unix ns of the file's name */
  /* the time of this tick */
  uint64_t now_ns;  /* CLOCK_MONOTONIC at its start */
  uint64_t now_ms;  /* the same in ms */
  uint64_t real_ms; /* Unix ms */
  uint64_t last_flush_ms;
  _Atomic uint64_t
      progress; /* raised with every record formatted and every block written: shows the waiters that
                                    waiting helps. One writer; relaxed */
};

#endif
