#include "json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

unsigned ni_json_utf8_length(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  unsigned n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
  if (s[0] == 0xed && s[1] > 0x9f) return 0;
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0;
  for (unsigned i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return n;
}

static void put_string(FILE *f, const char *text) {
  putc('"', f);
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    unsigned n = ni_json_utf8_length(s);
    if (n == 0) {
      fputs("\\ufffd", f);
      s++;
    } else if (*s == '"' || *s == '\\') {
      putc('\\', f);
      putc(*s++, f);
    } else if (*s < 0x20 || *s == 0x7f) {
      fprintf(f, "\\u%04x", *s++);
    } else {
      fwrite(s, 1, n, f);
      s += n;
    }
  }
  putc('"', f);
}

static void before(struct ni_json *j, const char *key) {
  if (j->filled[j->depth]) putc(',', j->f);
  j->filled[j->depth] = true;
  if (key) {
    put_string(j->f, key);
    putc(':', j->f);
  }
}

static void open_with(struct ni_json *j, const char *key, char c) {
  before(j, key);
  putc(c, j->f);
  assert(j->depth + 1 < NI_JSON_DEPTH);
  j->filled[++j->depth] = false;
}

void ni_json_begin(struct ni_json *j, FILE *f) { *j = (struct ni_json){.f = f}; }
void ni_json_object(struct ni_json *j, const char *key) { open_with(j, key, '{'); }
void ni_json_array(struct ni_json *j, const char *key) { open_with(j, key, '['); }

void ni_json_end_object(struct ni_json *j) {
  j->depth--;
  putc('}', j->f);
}

void ni_json_end_array(struct ni_json *j) {
  j->depth--;
  putc(']', j->f);
}

void ni_json_text(struct ni_json *j, const char *key, const char *value) {
  before(j, key);
  if (value) put_string(j->f, value);
  else fputs("null", j->f);
}

void ni_json_u64(struct ni_json *j, const char *key, uint64_t value) {
  before(j, key);
  fprintf(j->f, "%" PRIu64, value);
}

void ni_json_i64(struct ni_json *j, const char *key, int64_t value) {
  before(j, key);
  fprintf(j->f, "%" PRId64, value);
}

void ni_json_f64(struct ni_json *j, const char *key, double value) {
  before(j, key);
  if (!isfinite(value)) {
    fputs("null", j->f);
    return;
  }
  /* The shortest form that reads back the same. */
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  fputs(text, j->f);
}

void ni_json_rounded(struct ni_json *j, const char *key, double value, int digits) {
  before(j, key);
  if (isfinite(value)) fprintf(j->f, "%.*g", digits, value);
  else fputs("null", j->f);
}

void ni_json_fixed_decimals(struct ni_json *j, const char *key, double value, int decimals) {
  before(j, key);
  if (isfinite(value)) fprintf(j->f, "%.*f", decimals, value);
  else fputs("null", j->f);
}

void ni_json_hex_text(struct ni_json *j, const char *key, uint64_t value) {
  before(j, key);
  fprintf(j->f, "\"0x%" PRIx64 "\"", value);
}

void ni_json_bool(struct ni_json *j, const char *key, bool value) {
  before(j, key);
  fputs(value ? "true" : "false", j->f);
}

void ni_json_finish(struct ni_json *j) { putc('\n', j->f); }
