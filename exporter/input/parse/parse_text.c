#include "parse_text.h"

bool ni_text_is_number(const char *t) {
  const char *p = t + (*t == '-');
  if (!ni_text_is_digit(*p) || (*p == '0' && ni_text_is_digit(p[1])))
    return false;
  while (ni_text_is_digit(*p))
    p++;
  if (*p == '.') {
    if (!ni_text_is_digit(*++p))
      return false;
    while (ni_text_is_digit(*p))
      p++;
  }
  if (*p == 'e' || *p == 'E') {
    p++;
    if (*p == '+' || *p == '-')
      p++;
    if (!ni_text_is_digit(*p))
      return false;
    while (ni_text_is_digit(*p))
      p++;
  }
  return ni_text_ends(*p);
}

bool ni_text_is_no_value(const char *t) {
  static const char *const words[] = {"nan", "NaN", "NAN", "inf", "Inf", "INF", "infinity", "Infinity"};
  bool quoted = *t == '"';
  const char *p = t + quoted;
  if (*p == '-' || *p == '+')
    p++;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    if (memcmp(p, words[i], n) != 0)
      continue;
    if (quoted ? p[n] == '"' : ni_text_ends(p[n]))
      return true;
  }
  return false;
}

enum ni_reject ni_text_not_integer(const char *t) {
  if (*t && strchr("\"{[tfn", *t))
    return NI_REJ_BAD_TYPE;
  if (!ni_text_is_number(t))
    return NI_REJ_BAD_JSON;
  const char *p = t + (*t == '-');
  while (ni_text_is_digit(*p))
    p++;
  return ni_text_ends(*p) ? NI_REJ_OUT_OF_RANGE : NI_REJ_BAD_TYPE;
}

enum ni_reject ni_text_not_text(const char *t) {
  return ni_text_not_integer(t) == NI_REJ_BAD_JSON ? NI_REJ_BAD_JSON : NI_REJ_BAD_TYPE;
}

enum ni_reject ni_text_hash(const char *t, uint64_t *out) {
  if (*t != '"')
    return ni_text_not_text(t);
  if (t[1] != '0' || t[2] != 'x')
    return NI_REJ_BAD_VALUE;
  uint64_t v = 0;
  const char *p = t + 3;
  for (; *p != '"'; p++) {
    unsigned c = (unsigned char)*p, x;
    if (c - '0' < 10)
      x = c - '0';
    else if ((c | 32) - 'a' < 6)
      x = (c | 32) - 'a' + 10;
    else
      return NI_REJ_BAD_VALUE;
    if (p - t >= 3 + 16)
      return NI_REJ_OUT_OF_RANGE;
    v = v << 4 | x;
  }
  *out = v;
  return p == t + 3 ? NI_REJ_BAD_VALUE : NI_OK;
}
