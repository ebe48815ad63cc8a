/*
 * Numbers are written by hand because the dump thread formats ten of them a record: printf would take ten
 * times the whole budget, and follows the host's locale (a decimal comma would break the log).
 */
#include "json_text.h"

#include <math.h>
#include <stdbool.h>

static const char two_digits[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051"
    "525354555657"
    "585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

static const char hex[] = "0123456789abcdef";

/* Exactly n digits, leading zeros included. */
static char *put_digits(char *p, uint64_t v, int n) {
  char *q = p + n;
  while (q - p >= 2) {
    q -= 2;
    memcpy(q, two_digits + 2 * (v % 100), 2);
    v /= 100;
  }
  if (q > p)
    *p = (char)('0' + v % 10);
  return p + n;
}

static const uint64_t power_of_ten[20] = {1,
                                          10,
                                          100,
                                          1000,
                                          10000,
                                          100000,
                                          1000000,
                                          10000000,
                                          100000000,
                                          1000000000,
                                          10000000000,
                                          100000000000,
                                          1000000000000,
                                          10000000000000,
                                          100000000000000,
                                          1000000000000000,
                                          10000000000000000,
                                          100000000000000000,
                                          1000000000000000000,
                                          10000000000000000000u};

/*
 * Of 1 and more. floor(log10) from the bit length: 1233 / 4096 is just above log10(2); the table corrects
 * downwards.
 */
static int count_digits(uint64_t v) {
  int t = (64 - __builtin_clzll(v)) * 1233 >> 12;
  return t + (v >= power_of_ten[t]);
}

char *ni_json_put_u64(char *p, uint64_t v) {
  return v < 10 ? (*p = (char)('0' + v), p + 1) : put_digits(p, v, count_digits(v));
}

char *ni_json_put_i64(char *p, int64_t v) {
  if (v >= 0)
    return ni_json_put_u64(p, (uint64_t)v);
  *p = '-';
  return ni_json_put_u64(p + 1, -(uint64_t)v);
}

char *ni_json_hex(char *p, uint64_t v) {
  int n = v ? (67 - __builtin_clzll(v)) / 4 : 1;
  p = NI_JSON_LIT(p, "0x");
  for (int i = n - 1; i >= 0; i--)
    *p++ = hex[(v >> (4 * i)) & 15];
  return p;
}

/*
 * A double below 1e15 is an integer part that fits 50 bits and a fraction m * 2^-e with m < 2^53. Scaled by
 * at most 10^12 the fraction's numerator stays below 2^93, so it is rounded to even exactly in 128 bits, as
 * glibc does it.
 */
char *ni_json_fixed(char *p, double v, int decimals) {
  if (!(fabs(v) < 1e15))
    return NI_JSON_LIT(p, "null");
  if (signbit(v)) {
    *p++ = '-';
    v = -v;
  }
  uint64_t whole = (uint64_t)v, digits = 0, one = power_of_ten[decimals];
  double rest = v - (double)whole;
  if (rest > 0) {
    uint64_t bits;
    memcpy(&bits, &rest, sizeof bits);
    int biased = (int)(bits >> 52);
    uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | (biased ? UINT64_C(1) << 52 : 0);
    int e = 1075 - (biased ? biased : 1); /* rest = m * 2^-e, and 53 <= e because rest < 1 */
    /* beyond, the scaled fraction is below one half of the last digit */
    if (e < 100) {
      unsigned __int128 n = (unsigned __int128)m * one, half = (unsigned __int128)1 << (e - 1);
      digits = (uint64_t)(n >> e);
      unsigned __int128 tail = n & (2 * half - 1);
      if (tail > half || (tail == half && (digits & 1)))
        digits++;
      if (digits == one) {
        digits = 0;
        whole++;
      }
    }
  }
  p = ni_json_put_u64(p, whole);
  *p++ = '.';
  return put_digits(p, digits, decimals);
}

/* Printable ASCII that needs no escape. */
static inline bool plain(unsigned char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '/';
}

/* Bytes of the well-formed UTF-8 sequence at s (RFC 3629 table), 0 when there is none. Stops at the
 * terminator, which is no continuation byte. */
int ni_utf8_length(const unsigned char *s) {
  unsigned char c = s[0], lo = 0x80, hi = 0xbf;
  int n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (n == 0)
    return 0;
  if (c == 0xe0)
    lo = 0xa0; /* overlong */
  if (c == 0xed)
    hi = 0x9f; /* surrogates */
  if (c == 0xf0)
    lo = 0x90; /* overlong */
  if (c == 0xf4)
    hi = 0x8f; /* beyond U+10FFFF */
  if (s[1] < lo || s[1] > hi)
    return 0;
  for (int i = 2; i < n; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  return n;
}

static char *put_escaped(char *p, unsigned char c) {
  static const char from[] = "\"\\/\n\t\r", to[] = "\"\\/ntr";
  const char *known = strchr(from, c);
  if (!known) { /* c is not 0, which ends the text */
    p = NI_JSON_LIT(p, "\\u00");
    *p++ = hex[c >> 4];
    *p++ = hex[c & 15];
    return p;
  }
  *p++ = '\\';
  *p++ = to[known - from];
  return p;
}

char *ni_json_string(char *p, const char *text) {
  if (!text)
    return NI_JSON_LIT(p, "null");
  const unsigned char *s = (const unsigned char *)text, *end = s + NI_TEXT_MAX_BYTES;
  *p++ = '"';
  while (*s) {
    if (s < end && plain(*s)) {
      *p++ = (char)*s++;
      continue;
    }
    int n = *s >= 0x80 ? ni_utf8_length(s) : 1;
    if (s + (n ? n : 1) > end) {
      p = NI_JSON_LIT(p, "\xe2\x80\xa6"); /* the ellipsis: this was longer */
      break;
    }
    if (n == 0) {
      p = NI_JSON_LIT(p, "\xef\xbf\xbd");
      s++;
    } else if (n == 1) {
      p = put_escaped(p, *s++);
    } else {
      memcpy(p, s, (size_t)n);
      p += n;
      s += n;
    }
  }
  *p++ = '"';
  return p;
}
