#include "utf8.h"

#include <string.h>

int ni_utf8_char(const char *text, size_t n, uint32_t *code) {
  const unsigned char *p = (const unsigned char *)text;
  unsigned char c = p[0], low = 0x80, high = 0xbf;
  int need;
  *code = c;
  if (c < 0x80)
    return 1;
  if (c >= 0xc2 && c <= 0xdf) {
    need = 1;
  } else if (c >= 0xe0 && c <= 0xef) {
    need = 2;
    if (c == 0xe0)
      low = 0xa0; /* overlong below */
    if (c == 0xed)
      high = 0x9f; /* surrogates above */
  } else if (c >= 0xf0 && c <= 0xf4) {
    need = 3;
    if (c == 0xf0)
      low = 0x90;
    if (c == 0xf4)
      high = 0x8f; /* U+10FFFF is the last */
  } else {
    return -1;
  }
  *code = c & (0x3fu >> need);
  for (int i = 1; i <= need; i++) {
    if ((size_t)i >= n || p[i] < low || p[i] > high)
      return -i;
    *code = *code << 6 | (p[i] & 0x3f);
    low = 0x80;
    high = 0xbf;
  }
  return need + 1;
}

/* Bytes of ASCII at the start, counted in steps of 8: names and ids are nothing else. */
static size_t count_ascii(const char *p, size_t n) {
  size_t i = 0;
  for (uint64_t v; i + 8 <= n; i += 8) {
    memcpy(&v, p + i, 8);
    if (v & 0x8080808080808080ull)
      break;
  }
  return i;
}

bool ni_utf8_valid(const char *p, size_t n) {
  size_t i = count_ascii(p, n);
  while (i < n) {
    uint32_t code;
    int len = ni_utf8_char(p + i, n - i, &code);
    if (len < 0)
      return false;
    i += (size_t)len;
  }
  return true;
}

size_t ni_utf8_replace(char *out, const char *p, size_t n) {
  size_t o = 0;
  for (size_t i = 0; i < n;) {
    uint32_t code;
    int len = ni_utf8_char(p + i, n - i, &code);
    if (len > 0) {
      memcpy(out + o, p + i, (size_t)len);
      o += (size_t)len;
      i += (size_t)len;
    } else {
      memcpy(out + o, "\xef\xbf\xbd", 3);
      o += 3;
      i += (size_t)-len;
    }
  }
  return o;
}
