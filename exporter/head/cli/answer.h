/* What a head says in JSON, as rows of texts. One thread. */
#ifndef NI_ANSWER_H
#define NI_ANSWER_H

#include <stddef.h>

enum { NI_ANSWER_KEYS_MAX = 16 };
/* cell[k]: the text, number or truth of key k, "" where there is none; an array: its texts with commas, those
 * of arrays in it as well. A key that begins with '/' is a JSON pointer. Not safe to print by itself. */
typedef void ni_answer_row(void *arg, const char *const *cell);

/* A row for each element of the array at a JSON pointer ("/sessions"; an element that is no object is its
 * first cell), or one for the object there ("": the document). How many rows; -1: it is no JSON, or nothing
 * is there. */
long ni_answer_rows(const char *json, size_t bytes, const char *at, const char *const *key, size_t keys,
                    ni_answer_row *row, void *arg);

#endif
