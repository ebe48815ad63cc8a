/*
 * Another program's file as a whole, plain or gzip, whatever its name: what is too large is refused by who
 * asks for one byte more. Any thread.
 */
#ifndef NI_WHOLE_H
#define NI_WHOLE_H

#include <stddef.h>

/*
 * Its first `most` bytes (below 1 GiB), and NI_PARSE_PADDING bytes 0, for free(). NULL: why says it, without
 * the path.
 */
char *ni_read_whole(const char *path, size_t most, size_t *len, char *why, size_t cap);

#endif
