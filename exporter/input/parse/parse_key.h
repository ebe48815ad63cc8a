/* Keys of a line in the tables of format/line_tables.h. Private to parse_simdjson.cc. */
#ifndef NI_PARSE_KEY_H
#define NI_PARSE_KEY_H

#include <cstdint>

#include "format/line_tables.h"
#include "parse_text.h"

/* key holds its closing quote, and as the field's may be read up to the next multiple of 8. */
inline bool ni_key_is(const ni_field &f, const char *key) {
  unsigned i = 0, len = f.len;
  for (; i + 8 <= len; i += 8)
    if (ni_text_load8(key + i) != ni_text_load8(f.key + i))
      return false;
  unsigned rest = len - i;
  if (!rest)
    return true;
  uint64_t d = ni_text_load8(key + i) ^ ni_text_load8(f.key + i);
  return !(d << (64 - 8 * rest));
}

/* Number of the field with this key, or -1. Lines come with the keys in the order of the table, so the field
 * after the last one found, *next, is tried first. */
inline int ni_key_find(const ni_key_table &t, const char *key, unsigned &next) {
  for (unsigned i = next; i < t.n; i++)
    if (ni_key_is(t.field[i], key))
      return static_cast<int>((next = i + 1) - 1);
  for (unsigned i = 0; i < next && i < t.n; i++)
    if (ni_key_is(t.field[i], key))
      return static_cast<int>((next = i + 1) - 1);
  return -1;
}

#endif
