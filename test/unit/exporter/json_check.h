/*
 * A strict JSON reader for tests: says whether one line is one JSON object (RFC 8259, UTF-8 checked) and
 * walks to a value by its path. Written apart from both halves of the project, so that writer and checker
 * share no mistake.
 */
#ifndef NI_TEST_JSON_CHECK_H
#define NI_TEST_JSON_CHECK_H

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jc {
  const unsigned char *p, *end;
};

static bool jc_value(struct jc *c, int depth);

static bool jc_lit(struct jc *c, const char *s) {
  size_t n = strlen(s);
  if ((size_t)(c->end - c->p) < n || memcmp(c->p, s, n))
    return false;
  c->p += n;
  return true;
}

static bool jc_string(struct jc *c) {
  if (c->p >= c->end || *c->p++ != '"')
    return false;
  while (c->p < c->end) {
    unsigned char ch = *c->p++;
    if (ch == '"')
      return true;
    if (ch < 0x20)
      return false;
    if (ch == '\\') {
      if (c->p >= c->end)
        return false;
      ch = *c->p++;
      if (ch == 'u') {
        for (int i = 0; i < 4; i++)
          if (c->p >= c->end || !isxdigit(*c->p++))
            return false;
      } else if (!strchr("\"\\/bfnrt", ch)) {
        return false;
      }
    } else if (ch >= 0x80) {
      /* Decode and look at the code point instead of at byte ranges, as the writer does. */
      int more = ch >= 0xf0 ? 3 : ch >= 0xe0 ? 2 : ch >= 0xc0 ? 1 : -1;
      if (more < 0 || c->end - c->p < more)
        return false;
      uint32_t cp = ch & (0x3fu >> more);
      for (int i = 0; i < more; i++) {
        if ((*c->p & 0xc0) != 0x80)
          return false;
        cp = cp << 6 | (*c->p++ & 0x3f);
      }
      if (cp < (more == 1       ? 0x80u
                    : more == 2 ? 0x800u
                                : 0x10000u) ||
          cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return false;
    }
  }
  return false;
}

static bool jc_number(struct jc *c) {
  if (c->p < c->end && *c->p == '-')
    c->p++;
  if (c->p >= c->end || !isdigit(*c->p))
    return false;
  if (*c->p == '0' && c->p + 1 < c->end && isdigit(c->p[1]))
    return false;
  while (c->p < c->end && isdigit(*c->p))
    c->p++;
  if (c->p < c->end && *c->p == '.') {
    c->p++;
    if (c->p >= c->end || !isdigit(*c->p))
      return false;
    while (c->p < c->end && isdigit(*c->p))
      c->p++;
  }
  return true;
}

static bool jc_object(struct jc *c, int depth) {
  if (*c->p++ != '{')
    return false;
  if (c->p < c->end && *c->p == '}') {
    c->p++;
    return true;
  }
  for (;;) {
    if (!jc_string(c) || c->p >= c->end || *c->p++ != ':' || !jc_value(c, depth + 1) || c->p >= c->end)
      return false;
    if (*c->p == '}') {
      c->p++;
      return true;
    }
    if (*c->p++ != ',')
      return false;
  }
}

static bool jc_array(struct jc *c, int depth) {
  if (*c->p++ != '[')
    return false;
  if (c->p < c->end && *c->p == ']') {
    c->p++;
    return true;
  }
  for (;;) {
    if (!jc_value(c, depth + 1) || c->p >= c->end)
      return false;
    if (*c->p == ']') {
      c->p++;
      return true;
    }
    if (*c->p++ != ',')
      return false;
  }
}

static bool jc_value(struct jc *c, int depth) {
  if (c->p >= c->end || depth > 8)
    return false;
  switch (*c->p) {
    case '{':
      return jc_object(c, depth);
    case '[':
      return jc_array(c, depth);
    case '"':
      return jc_string(c);
    case 't':
      return jc_lit(c, "true");
    case 'f':
      return jc_lit(c, "false");
    case 'n':
      return jc_lit(c, "null");
    default:
      return jc_number(c);
  }
}

/* One line of n bytes, newline at the end and nowhere else. */
static inline bool jc_line_ok(const char *line, size_t n) {
  if (n < 3 || line[n - 1] != '\n' || memchr(line, '\n', n - 1))
    return false;
  struct jc c = {(const unsigned char *)line, (const unsigned char *)line + n - 1};
  return *c.p == '{' && jc_object(&c, 0) && c.p == c.end;
}

/*
 * Raw text of the value at `path` ("coll_perf.coll_sn"), malloc'ed; NULL when there is none. The line must be
 * valid.
 */
static inline char *jc_get(const char *line, size_t n, const char *path) {
  struct jc c = {(const unsigned char *)line, (const unsigned char *)line + n - 1};
  for (;;) {
    size_t want = strcspn(path, ".");
    if (c.p >= c.end || *c.p++ != '{')
      return NULL;
    for (;;) {
      if (*c.p == '}')
        return NULL;
      const unsigned char *key = c.p + 1;
      if (!jc_string(&c))
        return NULL;
      bool hit = (size_t)(c.p - 1 - key) == want && !memcmp(key, path, want);
      c.p++;
      if (hit)
        break;
      if (!jc_value(&c, 0))
        return NULL;
      if (*c.p++ == '}')
        return NULL;
    }
    if (!path[want])
      break;
    path += want + 1;
  }
  const unsigned char *from = c.p;
  if (!jc_value(&c, 0))
    return NULL;
  return strndup((const char *)from, (size_t)(c.p - from));
}

/* Keys of the object at `path`, joined by commas, malloc'ed. */
static inline char *jc_keys(const char *line, size_t n, const char *path) {
  char *obj = jc_get(line, n, path);
  if (!obj || *obj != '{') {
    free(obj);
    return NULL;
  }
  char *out = calloc(1, strlen(obj) + 1), *o = out;
  struct jc c = {(const unsigned char *)obj + 1, (const unsigned char *)obj + strlen(obj)};
  while (*c.p != '}') {
    const unsigned char *key = c.p + 1;
    jc_string(&c);
    if (o > out)
      *o++ = ',';
    memcpy(o, key, (size_t)(c.p - 1 - key));
    o += c.p - 1 - key;
    c.p++;
    jc_value(&c, 0);
    if (*c.p == ',')
      c.p++;
  }
  free(obj);
  return out;
}

#endif
