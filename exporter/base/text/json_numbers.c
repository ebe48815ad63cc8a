#include "json_numbers.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t count_digits(const char *s, const char *end) {
  const char *from = s;
  while (s < end && isdigit((unsigned char)*s))
    s++;
  return (size_t)(s - from);
}

/* How long the number is that begins here, by the grammar of JSON; 0: none does. */
static size_t measure_number(const char *s, const char *end, bool *is_integer) {
  const char *at = s + (*s == '-');
  size_t digits = count_digits(at, end);
  if (digits == 0 || (digits > 1 && *at == '0'))
    return 0;
  at += digits;
  *is_integer = true;
  if (at < end && *at == '.') {
    digits = count_digits(at + 1, end);
    if (digits == 0)
      return 0;
    at += 1 + digits;
    *is_integer = false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    at++;
    at += at < end && (*at == '+' || *at == '-');
    digits = count_digits(at, end);
    if (digits == 0)
      return 0;
    at += digits;
    *is_integer = false;
  }
  return (size_t)(at - s);
}

/* Can 64 bits hold it, with a sign or without one? */
static bool holds_integer(const char *s, size_t n) {
  enum { DIGITS_OF_2_TO_64 = 20 };
  if (n > DIGITS_OF_2_TO_64)
    return false;
  errno = 0;
  if (*s == '-')
    strtoll(s, NULL, 10);
  else
    strtoull(s, NULL, 10);
  return errno != ERANGE;
}

/* What Python writes for numbers that JSON has not; 0: it is none of them. */
static size_t measure_word(const char *s, const char *end) {
  static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(end - s) >= n && memcmp(s, words[i], n) == 0)
      return n;
  }
  return 0;
}

/*
 * How long the number is that begins here and cannot be held; else 0, and *skip is what may be copied as it
 * is.
 */
static size_t measure_too_large(const char *s, const char *end, size_t *skip) {
  bool is_integer = false;
  size_t word = measure_word(s, end);
  if (word)
    return word;
  *skip = 1;
  if (*s != '-' && !isdigit((unsigned char)*s))
    return 0;
  size_t n = measure_number(s, end, &is_integer);
  if (n == 0) {
    *skip += count_digits(s + 1, end);
    return 0;
  }
  *skip = n;
  bool holds = is_integer ? holds_integer(s, n) : isfinite(strtod(s, NULL));
  return holds ? 0 : n;
}

/* The length of the text in quotes that begins here, with the second quote. */
static size_t measure_quoted(const char *s, const char *end) {
  const char *at = s + 1;
  while (at < end && *at != '"')
    at += *at == '\\' && at + 1 < end ? 2 : 1;
  return (size_t)(at - s) + (at < end);
}

size_t ni_json_quote_numbers(const char *text, size_t n, char *out) {
  const char *end = text + n;
  char *to = out;
  for (const char *s = text; s < end;) {
    size_t skip = 0;
    size_t number = *s == '"' ? 0 : measure_too_large(s, end, &skip);
    size_t length = *s == '"' ? measure_quoted(s, end) : number ? number : skip;
    if (number)
      *to++ = '"';
    memcpy(to, s, length);
    to += length;
    if (number)
      *to++ = '"';
    s += length;
  }
  return (size_t)(to - out);
}
