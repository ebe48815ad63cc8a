/*
 * Same head: the lines of one communicator differ before their record only in the dump's time. A line whose
 * bytes before and after that number are those of a line parsed earlier has the same header and metadata by
 * construction, and half of its text need not be parsed at all.
 *
 * Ownership: a head holds copies of the text and the names of the line it was taken from; it is overwritten
 * when a head with the same place in the table is kept. Threads: as the parser that has the table.
 */
#ifndef NI_PARSE_HEAD_H
#define NI_PARSE_HEAD_H

#include "format/line.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NI_HEAD_SLOTS_LOG2 3
#define NI_HEAD_MAX_BYTES 1024

struct ni_read_head {
  /* bytes of text[] up to the number, and from it to the quote of the record's key; 0: unused */
  uint32_t before, after;
  uint32_t used; /* of names[] */
  uint32_t no;   /* of struct ni_line: never that of another head of this parser */
  char text[NI_HEAD_MAX_BYTES];
  char names[NI_HEAD_MAX_BYTES];
  struct ni_ident ident;
  struct ni_meta meta;
};

struct ni_heads { /* zeros: nothing is known yet */
  struct ni_read_head slot[1 << NI_HEAD_SLOTS_LOG2];
  uint32_t last_no;
};

/*
 * Keeps the head of a line that was parsed whole, where the short way can use it. stamp and kind_key: where
 * the number and the quote of the record's key begin in text, NULL where there is none.
 */
void ni_heads_keep(struct ni_heads *heads, const char *text, size_t len, const char *stamp,
                   const char *kind_key, const struct ni_line *line);

/*
 * The head that text begins with, or NULL. The time is in *stamp, the record's key after its quote at *key.
 */
const struct ni_read_head *ni_heads_find(const struct ni_heads *heads, const char *text, size_t len,
                                         uint64_t *stamp, const char **key);

#ifdef __cplusplus
}
#endif

#endif
