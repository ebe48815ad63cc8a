/* Files in parts that can be read at once. Any thread. */
#ifndef NI_LINE_SPLIT_H
#define NI_LINE_SPLIT_H

#include <stdint.h>

/* What must be known to go on in the middle of a gzip member, at a block of deflate. */
struct ni_member_entry {
  /* of the byte at `from`, its highest, are of the block; 0: it begins with that byte */
  uint8_t bits;
  uint32_t skip;         /* text before the first line */
  uint32_t n;            /* bytes of window; 0: no entry, a member or plain text begins there */
  const uint8_t *window; /* the text before, deflated (zlib); whose it is says who has it */
};

/* A part of a file that can be read on its own. */
struct ni_range {
  uint64_t from, to; /* bytes of the file */
  uint64_t text;     /* 0: all of their text; else so much of it */
  struct ni_member_entry entry;
};

/*
 * Cuts a file into at most want ranges of about equal size (want >= 1, out has that many). Every cut is
 * proven: plain text is cut before a line that begins with {"header"; a gzip file before a member that begins
 * so, where the member before it was inflated, has the right checksum and ends with a line feed exactly
 * there. A file without such places gives fewer ranges, one at least. Returns their number or -errno. Lines
 * keep their order from range to range.
 */
int ni_reader_split(const char *path, int want, uint64_t min_bytes, struct ni_range *out);

#endif
