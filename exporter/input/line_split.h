/* Files in parts that can be read at once. Any thread. */
#ifndef NI_LINE_SPLIT_H
#define NI_LINE_SPLIT_H

#include <stdint.h>

/* A part of a file that can be read on its own. */
struct ni_range {
  uint64_t from, to;
};

/*
 * Cuts a file into at most want ranges of about equal size (want >= 1, out has that many). Every cut is proven: plain
 * text is cut before a line that begins with {"header"; a gzip file before a member that begins so, where the member
 * before it was inflated, has the right checksum and ends with a line feed exactly there. A file without such places
 * gives fewer ranges, one at least. Returns their number or -errno. Lines keep their order from range to range.
 */
int ni_reader_split(const char *path, int want, uint64_t min_bytes, struct ni_range *out);

#endif
