/*
 * Lines of one log file, plain or gzip (told by its first bytes, not by its name), in bounded memory.
 *
 * Lines are handed out where they lie in the reader's buffer, with NI_PARSE_PADDING readable bytes behind
 * them. A file that is damaged costs what is damaged: all lines before a cut are delivered, after damaged
 * gzip data reading goes on at the next member, a line above the limit costs that line. What happened is in
 * struct ni_reader_stats.
 *
 * One file can be read by several threads: ni_reader_split() (line_split.c) cuts it into ranges that begin at
 * a line with its own header, each for a reader of its own (opt.from, opt.to).
 *
 * Threads: a reader belongs to one thread. Memory: 256 KiB of text and 64 KiB of file; the text buffer grows
 * up to twice the longest line, which max_line_bytes limits. Failure: -errno of open, read and malloc; damage
 * is not a failure. Not promised: a file that another process writes is read as far as it was at that moment;
 * files that change in the middle give what they give.
 */
#ifndef NI_LINE_READER_H
#define NI_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflate.h"
#include "line_split.h"

#define NI_MAX_LINE_BYTES (1u << 20)

struct ni_reader;

struct ni_reader_options {
  size_t max_line_bytes; /* 0: NI_MAX_LINE_BYTES */
  enum ni_inflate_engine engine;
  uint64_t from, to;            /* bytes of the file, from ni_reader_split(); 0, 0: all of it */
  uint64_t text;                /* 0, or so much text and no more */
  struct ni_member_entry entry; /* where from lies in a member */
  bool borders;                 /* ni_reader_border() is asked for */
  bool whole_members;           /* ... but not for those within a member */
  bool head;                    /* the first lines are wanted alone: little is read ahead */
};

/*
 * Where a file can be entered, and what lies before: the first line with a header of its own in each so many
 * bytes of the file, counted from its beginning (NI_BORDER_GZIP, NI_BORDER_PLAIN), in gzip the first one that
 * begins a member. So borders are the same whatever ranges the file is read in. In a gzip member of much text
 * also blocks of deflate, about NI_BORDER_TEXT of text apart: their line is the first one with a header
 * behind them (line_border.h).
 */
struct ni_border {
  uint64_t at;                  /* byte of the file */
  uint64_t text;                /* place of the line, in the text of the range */
  struct ni_member_entry entry; /* n > 0: within a member; the window is the reader's, until its next line */
  /* CRC-32 of the bytes of the file from the border before, or the beginning of the range, to here */
  uint32_t crc;
};
#define NI_BORDER_GZIP (16u << 10)
#define NI_BORDER_PLAIN (256u << 10)
#define NI_BORDER_TEXT (4u << 20)
#define NI_LINE_HEAD "{\"header\"" /* a line that begins so belongs to no marker before it */

struct ni_text {
  char *text; /* until the next call on this reader; may be written to, len bytes */
  /* without line feed and carriage return; of a line too long: its full length, text is empty */
  size_t len;
  size_t room;      /* bytes that may be read from text on: >= len + NI_PARSE_PADDING */
  uint64_t line_no; /* from 1; within the range */
  bool too_long;
  bool unterminated; /* last line, no line feed: perhaps cut */
};

struct ni_reader_stats {
  bool gzip;
  uint64_t lines; /* delivered, those too long included */
  uint64_t too_long;
  uint64_t file_bytes, text_bytes;     /* read; after inflation */
  uint64_t members;                    /* gzip members begun */
  uint64_t damages;                    /* places where gzip data was not what it should be, a cut included */
  uint64_t lost_partial;               /* lines broken by damage before their end */
  uint64_t garbage_bytes;              /* between or after members, zeros not counted */
  bool cut;                            /* the file ends inside a member */
  bool gave_up;                        /* too many damages: the rest of the file was not read */
  enum ni_inflate_result first_damage; /* NI_INF_MORE with damages > 0: cut; NI_INF_END: garbage */
  uint64_t first_damage_at;            /* byte of the file */
};

/* 0, -errno. opt NULL: defaults. */
int ni_reader_open(struct ni_reader **out, const char *path, const struct ni_reader_options *opt);
void ni_reader_close(struct ni_reader *r);

/* 1: a line; 0: no more; -errno: reading failed (once; then 0). */
int ni_reader_next(struct ni_reader *r, struct ni_text *out);

const struct ni_reader_stats *ni_reader_stats(const struct ni_reader *r);

/* Is the line that was handed out last the first one behind a border? */
bool ni_reader_border(const struct ni_reader *r, struct ni_border *out);
/*
 * After the last line: the end of what was read, and the sum of what lies before it. false: it ends within a
 * line or a member.
 */
bool ni_reader_rest(struct ni_reader *r, struct ni_border *out);

#endif
