#include "detail_text.h"

#include <stdio.h>
#include <string.h>

bool ni_digits(const char **s, uint64_t max, uint64_t *out) {
  uint64_t v = 0;
  const char *p = *s;
  if (*p < '0' || *p > '9')
    return false;
  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v) || v > max)
      return false;
  *s = p;
  *out = v;
  return true;
}

bool ni_sample_parse(const char *s, uint64_t *n) {
  uint64_t v;
  if (s[0] != '1' || s[1] != '/')
    return false;
  s += 2;
  if (!ni_digits(&s, NI_SAMPLE_MAX, &v) || *s || v == 0)
    return false;
  *n = v;
  return true;
}
