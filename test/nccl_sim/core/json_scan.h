/*
 * Values by key from one line of JSON whose keys are unique: our truth files, and recorded callbacks.
 *
 * Not a JSON parser: it finds `"key":` and reads what follows, which is enough for lines that a program of
 * known habits wrote. Pure functions on the caller's line. Failure: the default when the key is not there.
 */
#ifndef NI_SIM_JSON_SCAN_H
#define NI_SIM_JSON_SCAN_H

#include <ctype.h>
#include <string.h>

#include "sim.h"

/* The text after `"key":`, NULL when absent. */
static inline const char *ni_scan(const char *line, const char *key) {
  char quoted[64];
  int n = snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = line ? strstr(line, quoted) : NULL;
  return at ? at + n : NULL;
}

static inline uint64_t ni_scan_u64(const char *line, const char *key, uint64_t def) {
  const char *at = ni_scan(line, key);
  if (!at)
    return def;
  if (*at == '"')
    at++; /* addresses and hashes are strings */
  return strtoull(at, NULL, at[0] == '0' && at[1] == 'x' ? 16 : 10);
}

static inline int ni_scan_int(const char *line, const char *key, int def) {
  const char *at = ni_scan(line, key);
  return at ? (int)strtol(at, NULL, 10) : def;
}

static inline double ni_scan_double(const char *line, const char *key, double def) {
  const char *at = ni_scan(line, key);
  return at ? strtod(at, NULL) : def;
}

/* Copies a string value, unescaping \" \\ and \u00xx; false when absent. */
static inline bool ni_scan_text(const char *line, const char *key, char *out, size_t cap) {
  const char *at = ni_scan(line, key);
  size_t n = 0;
  *out = 0;
  if (!at || *at != '"')
    return false;
  for (at++; *at && *at != '"' && n + 1 < cap; at++) {
    unsigned code;
    if (*at == '\\' && at[1] == 'u' && sscanf(at + 2, "%4x", &code) == 1) {
      out[n++] = (char)code;
      at += 5;
    } else {
      if (*at == '\\')
        at++;
      out[n++] = *at;
    }
  }
  out[n] = 0;
  return true;
}

#endif
