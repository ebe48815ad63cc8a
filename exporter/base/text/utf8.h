/*
 * Valid UTF-8 or not, and making it so. Pure functions, any thread.
 *
 * A STRING column with one bad byte makes readers refuse the whole column (pyarrow, DuckDB), so the writer
 * lets none in.
 */
#ifndef NI_UTF8_H
#define NI_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text with its length, which need not be terminated. Borrowed. */
struct ni_str {
  const char *p;
  uint32_t len;
};

/*
 * The character at p, of which n bytes may be looked at, 1 or more: its bytes, 1 to 4, and *code, its number.
 * Or, when it is ill-formed, the negative number of bytes that could have started one (table 3-7 of the
 * Unicode standard), at least 1: they are replaced as one. A text that ends with NUL may be asked with n 4.
 */
int ni_utf8_char(const char *p, size_t n, uint32_t *code);

/* Surrogates, overlong forms and values over U+10FFFF are invalid; NUL is a character like any other. */
bool ni_utf8_valid(const char *p, size_t n);

/*
 * Copies text, each maximal ill-formed part replaced by U+FFFD (the practice Unicode recommends, and what
 * Python's errors="replace" does). `out` needs 3 * n bytes. Returns the bytes written.
 */
size_t ni_utf8_replace(char *out, const char *p, size_t n);

#endif
