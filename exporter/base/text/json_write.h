/*
 * Writes JSON for machines: objects, arrays, commas and escapes, nothing kept in memory.
 *
 * State: the nesting, at most NI_JSON_DEPTH deep. Text that is not UTF-8 has its bad bytes written as U+FFFD,
 * so the output is always valid. NaN and infinities become null. One thread per struct; nothing to free.
 * Write errors stay in the FILE (ferror).
 */
#ifndef NI_JSON_OUT_H
#define NI_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define NI_JSON_DEPTH 32

struct ni_json {
  FILE *f;
  unsigned depth;
  bool filled[NI_JSON_DEPTH]; /* something stands before: a comma is due */
};

void ni_json_begin(struct ni_json *j, FILE *f);

/* key NULL: an element of an array, or the document itself. */
void ni_json_object(struct ni_json *j, const char *key);
void ni_json_array(struct ni_json *j, const char *key);
void ni_json_end_object(struct ni_json *j);
void ni_json_end_array(struct ni_json *j);
/*
 * The same with the statement that follows as what is in it, which ends it: for (...) NI_JSON_OBJECT(j, NULL)
 * { ... }. It is not left.
 */
#define NI_JSON_OBJECT(j, key) NI_JSON_WITHIN(ni_json_object(j, key), ni_json_end_object(j), __LINE__)
#define NI_JSON_ARRAY(j, key) NI_JSON_WITHIN(ni_json_array(j, key), ni_json_end_array(j), __LINE__)
#define NI_JSON_WITHIN(begin, end, line) NI_JSON_ONCE(begin, end, line)
#define NI_JSON_ONCE(begin, end, line) \
  for (bool in_##line = ((begin), true); in_##line; in_##line = ((end), false))
void ni_json_text(struct ni_json *j, const char *key, const char *value); /* NULL: null */
void ni_json_u64(struct ni_json *j, const char *key, uint64_t value);
void ni_json_i64(struct ni_json *j, const char *key, int64_t value);
void ni_json_f64(struct ni_json *j, const char *key, double value);
/* Writes a number with so many significant digits (1..17): for pages and tables, where size counts. */
void ni_json_rounded(struct ni_json *j, const char *key, double value, int digits);
/* A time in ns as seconds, all nine decimals: more than a double holds. */
void ni_json_seconds(struct ni_json *j, const char *key, int64_t ns);
/* Unix ns as "2026-11-21T08:00:00.000001Z"; 0: null. */
void ni_json_utc(struct ni_json *j, const char *key, int64_t ns);
/* "0x1f" */
void ni_json_hex_text(struct ni_json *j, const char *key, uint64_t value);
void ni_json_bool(struct ni_json *j, const char *key, bool value);
/*
 * The next character of *text (not at its end) as a string in JSON has it, into out; *text moves behind it.
 * Returns the bytes, no NUL. What could steer a terminal (safe_text.h) is escaped, so that JSON can be looked
 * at: \u009b.
 */
unsigned ni_json_char(char out[8], const char **text);
/* A line feed behind the document. */
void ni_json_finish(struct ni_json *j);
/*
 * The document of a command: an object that begins with its schema, and its end. schema NULL: any other
 * object.
 */
void ni_json_open(struct ni_json *j, FILE *f, const char *schema);
void ni_json_close(struct ni_json *j);

#endif
