/*
 * The one loop over the lines of a log: opens a file or a part of it, reads, parses, and tells what is wrong
 * with it in the same way to all commands.
 *
 * A record of NVIDIA's v4.3 or later has no header: it belongs to the marker before it in the same file. It
 * comes with the marker's ident and metadata, and has_header false. Records without a marker, or more of them
 * than it has announced, are faults and do not come.
 *
 * A last line without a line feed that cannot be parsed is no bad line: the file is cut there, or still being
 * written.
 *
 * Threads: a scan belongs to one thread, with its parser. Ownership: the line is the scan's, until the
 * callback returns.
 */
#ifndef NI_SCAN_H
#define NI_SCAN_H

#include "format/line.h"
#include "granules.h"
#include "line_reader.h"
#include "line_split.h"

enum ni_fault_kind {
  NI_FAULT_BAD_LINE, /* why, key */
  NI_FAULT_ORPHAN,   /* a record without a header that no marker before it has announced */
  NI_FAULT_MARKER,   /* announced records, followed were there */
  NI_FAULT_CUT_LINE, /* plain text that ends within a line */
};

struct ni_fault {
  enum ni_fault_kind kind;
  uint64_t line_no;
  enum ni_reject why;
  const char *key; /* NULL: none. Valid during the call */
  uint64_t announced, followed;
};

/* What a command does with the lines. A negative result of take or fault ends the scan with it. */
struct ni_scan_to {
  void *arg;
  int (*take)(void *arg, struct ni_line *l, uint64_t line_no);
  int (*fault)(void *arg, const struct ni_fault *f); /* NULL: passed over */
  /* lines of counters come as well; else they are passed over */
  bool counters;
  bool head; /* the first lines are wanted alone (line_reader.h) */
  /* NULL: nobody maps the file. Of what is read, from its first byte on */
  struct ni_granules *granules;
  void *team; /* of scan_files.c: the argument of both that follow */
  /* NULL: never. Asked now and then; true ends the scan with 0 */
  bool (*stop)(void *team);
  /* NULL: nobody asks. So many bytes of the file more are read */
  void (*read)(void *team, uint64_t bytes);
};

struct ni_scan_end {
  struct ni_reader_stats stats;
  uint64_t blank; /* lines of white space: in stats.lines, and no fault */
  int error;      /* -errno: the file could not be opened or read on; 0: it was read to its end */
};

struct ni_scan;

/* 0 or -ENOMEM. */
int ni_scan_new(struct ni_scan **out);
void ni_scan_free(struct ni_scan *s);

/*
 * Reads path, or the part of it. part NULL: all of it. end: filled in any case; NULL: not asked for. 0,
 * -ENOMEM, or what a callback returned; a file that cannot be read is told in end->error alone.
 */
int ni_scan_file(struct ni_scan *s, const char *path, const struct ni_range *part,
                 const struct ni_scan_to *to, struct ni_scan_end *end);

/*
 * The same for one line that lies in memory: text[0..len), of which NI_PARSE_PADDING bytes behind it may be
 * read. NULL: it is no sound line; *e is -ENOMEM where there was no memory for it, else 0. The line is the
 * scan's, until its next. A record without a header is placed as in a file: by the last marker since
 * ni_scan_begin().
 */
const struct ni_line *ni_scan_text(struct ni_scan *s, char *text, size_t len, int *e);
/* What comes next to ni_scan_text() is of another file. */
void ni_scan_begin(struct ni_scan *s);
/* Says that so many records of the marker that ni_scan_text() read last were read before. */
void ni_scan_skip_records(struct ni_scan *s, uint64_t records);
/* Records that the marker at hand has announced and that are still to come. */
uint64_t ni_scan_count_owed(const struct ni_scan *s);

/*
 * The lines that a map keeps of granules from..to-1, to to->take, as if they were read; line_no is 0. 0,
 * -ENOMEM, or what take returned.
 */
int ni_scan_kept(struct ni_scan *s, const struct ni_granules *g, size_t from, size_t to_granule,
                 const struct ni_scan_to *to);

#endif
