/*
 * Numbers of JSON that 64 bits or a double cannot hold: as texts, so that what stands beside them can be
 * read.
 *
 * JSON does not bound its numbers, and programs write longer ones (Python's integers; NaN and Infinity, which
 * are no JSON). simdjson refuses the whole text for one of them. So whoever reads a text of other programs
 * and is refused tries once more with what comes from here. Any thread; nothing is allocated.
 */
#ifndef NI_JSON_NUMBERS_H
#define NI_JSON_NUMBERS_H

#include <stddef.h>

/* The room that `out` needs for a text of n bytes. */
#define NI_JSON_QUOTED_MAX(n) (2 * (n))

/*
 * Copies the text to `out`, and puts quotes around each number outside of texts that is an integer of more
 * than 64 bits, of a size beyond DBL_MAX, NaN, Infinity or -Infinity: a text of the same digits. text[n] must
 * be readable, and no digit. Takes time by n alone, however long a number is.
 *
 * Returns the bytes in `out`; n: there was no such number, the two are the same.
 */
size_t ni_json_quote_numbers(const char *text, size_t n, char *out);

#endif
