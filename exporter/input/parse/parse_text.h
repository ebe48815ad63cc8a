/*
 * Scalars of a line, read from their text.
 *
 * t points at a value's first character. Of a line whose structure is known: a string has its closing quote,
 * and at least NI_PARSE_PADDING bytes behind the line may be read. What is no plain value of the wanted kind
 * gets its reason: wrong in type, in range, or no JSON. Pure functions, any thread. Inline is what every
 * record needs.
 */
#ifndef NI_PARSE_TEXT_H
#define NI_PARSE_TEXT_H

#include <endian.h>
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

/* The first one is the lowest byte. */
static inline uint64_t ni_text_load8(const char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return le64toh(v);
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

/*
 * What the digits at t say, eight at once, and where they end: 24 behind it at most. Of more than 19 it says
 * nothing.
 */
static inline uint64_t ni_text_digits(const char *t, const char **end) {
  static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
  const char *p = t;
  uint64_t v = 0, other = 0;
  for (; !other && p - t < 24; p += 8) {
    uint64_t x = ni_text_load8(p) ^ 0x3030303030303030;
    other = ((x + 0x7676767676767676) | x) & 0x8080808080808080;
    unsigned n = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
    x = n ? x << (64 - 8 * n) : 0; /* what is before them are zeros; then pairs, and pairs of pairs */
    x = x * 10 + (x >> 8);
    x = ((x & 0xff000000ff) * 0xf424000000064 + (x >> 16 & 0xff000000ff) * 0x271000000001) >> 32;
    v = v * tens[n] + (uint32_t)x;
    p -= 8 - n;
  }
  *end = p;
  return v;
}

/* 0 to 2^63-1. end: behind it. */
static inline enum ni_reject ni_text_u64(const char *t, uint64_t *out, const char **end) {
  uint64_t v = ni_text_digits(t, end);
  const bool has_leading_zero = *t == '0' && *end - t > 1;
  if (*end == t || !ni_text_ends(**end) || has_leading_zero)
    return ni_text_not_integer(t);
  if (*end - t > 19 || v > INT64_MAX)
    return ni_text_not_integer(t);
  *out = v;
  return NI_OK;
}

static inline enum ni_reject ni_text_i64(const char *t, int64_t *out, const char **end) {
  bool minus = *t == '-';
  uint64_t v = 0;
  if (minus && !ni_text_is_digit(t[1]))
    return NI_REJ_BAD_JSON;
  enum ni_reject r = ni_text_u64(t + minus, &v, end);
  if (r == NI_OK)
    *out = minus ? -(int64_t)v : (int64_t)v;
  return r;
}

/* A number that digits and a point alone give exactly: below 2^53 and 10^22 numerator and power are exact, so
 * the quotient is the nearest double. false: it has another form, or is no number. */
static inline bool ni_text_decimal(const char *t, double *out, const char **end) {
  static const double tenth[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *first = t + (*t == '-'), *point;
  uint64_t m = ni_text_digits(first, end), decimals = 0;
  if (*end == first || (*first == '0' && *end - first > 1))
    return false;
  if (**end == '.') {
    uint64_t fraction = ni_text_digits((point = *end) + 1, end);
    decimals = (uint64_t)(*end - point - 1);
    if (decimals == 0 || *end - first > 17)
      return false;
    m = m * (uint64_t)tenth[decimals] + fraction;
  }
  if (!ni_text_ends(**end) || *end - first > 17 || m >= (1ULL << 53))
    return false;
  double d = (double)m / tenth[decimals];
  *out = *t == '-' ? -d : d;
  return true;
}

#ifdef __cplusplus
}
#endif

#endif
