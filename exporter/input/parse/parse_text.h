/*
 * Scalars of a line, read from their text.
 *
 * t points at a value's first character. Of a line whose structure is known: a string has its closing quote, and at
 * least NI_PARSE_PADDING bytes behind the line may be read. What is no plain value of the wanted kind gets its reason:
 * wrong in type, in range, or no JSON. Pure functions, any thread. Inline is what every record needs.
 */
#ifndef NI_PARSE_TEXT_H
#define NI_PARSE_TEXT_H

#include <stdbool.h>
#include <string.h>

#include "format/line.h"

#ifdef __cplusplus
extern "C" {
#endif

bool ni_text_is_number(const char *t); /* of any form that JSON has */
/* "nan", NaN, "inf", -inf and their like, quoted or not: how writers say that there is no value. */
bool ni_text_is_no_value(const char *t);
/* Why a value that is no integer in the wanted range is none: never NI_OK. */
enum ni_reject ni_text_not_integer(const char *t);
/* Why a value is no text: it is of another type, or no JSON. */
enum ni_reject ni_text_not_text(const char *t);
/* "0x..." of up to 16 digits. */
enum ni_reject ni_text_hash(const char *t, uint64_t *out);

static inline uint64_t ni_text_load8(const char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

static inline bool ni_text_ends(char c) {
  return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static inline bool ni_text_is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* word: null, true or false, with its length. */
static inline bool ni_text_is_word(const char *t, const char *word, size_t len) {
  return memcmp(t, word, len) == 0 && ni_text_ends(t[len]);
}
static inline bool ni_text_is_null(const char *t) { return ni_text_is_word(t, "null", 4); }
static inline bool ni_text_is_true(const char *t) { return ni_text_is_word(t, "true", 4); }
static inline bool ni_text_is_false(const char *t) { return ni_text_is_word(t, "false", 5); }

/* 0 to 2^63-1. */
static inline enum ni_reject ni_text_u64(const char *t, uint64_t *out) {
  const char *p = t;
  uint64_t v = 0;
  while (ni_text_is_digit(*p)) {
    if (p - t >= 19) return ni_text_not_integer(t);
    v = v * 10 + (unsigned char)(*p++ - '0');
  }
  if (p == t || !ni_text_ends(*p) || (*t == '0' && p - t > 1) || v > INT64_MAX) return ni_text_not_integer(t);
  *out = v;
  return NI_OK;
}

static inline enum ni_reject ni_text_i64(const char *t, int64_t *out) {
  bool minus = *t == '-';
  uint64_t v = 0;
  if (minus && !ni_text_is_digit(t[1])) return NI_REJ_BAD_JSON;
  enum ni_reject r = ni_text_u64(t + minus, &v);
  if (r == NI_OK) *out = minus ? -(int64_t)v : (int64_t)v;
  return r;
}

/* A number that digits and a point alone give exactly: below 2^53 and 10^22 numerator and power are exact, so the
 * quotient is the nearest double. false: it has another form, or is no number. */
static inline bool ni_text_decimal(const char *t, double *out) {
  static const double tenth[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *p = t + (*t == '-'), *first = p, *point = NULL;
  uint64_t m = 0;
  if (!ni_text_is_digit(*p) || (*p == '0' && ni_text_is_digit(p[1]))) return false;
  for (; p - first < 17; p++) {
    if (ni_text_is_digit(*p)) m = m * 10 + (unsigned char)(*p - '0');
    else if (*p == '.' && !point) point = p;
    else break;
  }
  unsigned decimals = point ? (unsigned)(p - point - 1) : 0;
  if (!ni_text_ends(*p) || m >= (1ULL << 53) || (point && !decimals)) return false;
  double d = (double)m / tenth[decimals];
  *out = *t == '-' ? -d : d;
  return true;
}

#ifdef __cplusplus
}
#endif

#endif
