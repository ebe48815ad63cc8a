#include "json_write.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "safe_text.h"
#include "time_text.h"
#include "utf8.h"

/* A character that stands for itself in a string; nearly all do. */
static bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

unsigned ni_json_char(char out[8], const char **text) {
  const char *s = *text;
  if (is_plain(*s)) {
    *out = *s;
    *text = s + 1;
    return 1;
  }
  uint32_t code;
  int n = ni_utf8_char(s, 4, &code);
  *text += n > 0 ? n : 1;
  if (n < 0)
    code = 0xfffd;
  if (n < 0 || !ni_text_is_printable(code))
    return (unsigned)sprintf(out, "\\u%04x", (unsigned)code);
  unsigned escape = *s == '"' || *s == '\\';
  out[0] = '\\';
  memcpy(out + escape, s, (size_t)n);
  return (unsigned)n + escape;
}

static void write_string(FILE *f, const char *text) {
  char c[8];
  putc('"', f);
  while (*text) {
    size_t plain = 0; /* names are nearly all plain: written at once */
    while (is_plain(text[plain]))
      plain++;
    fwrite(text, 1, plain, f);
    text += plain;
    if (*text)
      fwrite(c, 1, ni_json_char(c, &text), f);
  }
  putc('"', f);
}

static void begin_value(struct ni_json *j, const char *key) {
  if (j->filled[j->depth])
    putc(',', j->f);
  j->filled[j->depth] = true;
  if (key) {
    write_string(j->f, key);
    putc(':', j->f);
  }
}

static void open_bracket(struct ni_json *j, const char *key, char c) {
  begin_value(j, key);
  putc(c, j->f);
  assert(j->depth + 1 < NI_JSON_DEPTH);
  j->filled[++j->depth] = false;
}

void ni_json_begin(struct ni_json *j, FILE *f) { *j = (struct ni_json){.f = f}; }
void ni_json_object(struct ni_json *j, const char *key) { open_bracket(j, key, '{'); }
void ni_json_array(struct ni_json *j, const char *key) { open_bracket(j, key, '['); }

static void close_bracket(struct ni_json *j, char c) {
  j->depth--;
  putc(c, j->f);
}

void ni_json_end_object(struct ni_json *j) { close_bracket(j, '}'); }
void ni_json_end_array(struct ni_json *j) { close_bracket(j, ']'); }

void ni_json_text(struct ni_json *j, const char *key, const char *value) {
  begin_value(j, key);
  if (value)
    write_string(j->f, value);
  else
    fputs("null", j->f);
}

void ni_json_u64(struct ni_json *j, const char *key, uint64_t value) {
  begin_value(j, key);
  fprintf(j->f, "%" PRIu64, value);
}

void ni_json_i64(struct ni_json *j, const char *key, int64_t value) {
  begin_value(j, key);
  fprintf(j->f, "%" PRId64, value);
}

void ni_json_f64(struct ni_json *j, const char *key, double value) {
  char text[40] = "null";
  begin_value(j, key);
  /* The shortest form that reads back the same. */
  for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value)
      break;
  }
  fputs(text, j->f);
}

void ni_json_rounded(struct ni_json *j, const char *key, double value, int digits) {
  begin_value(j, key);
  if (isfinite(value))
    fprintf(j->f, "%.*g", digits, value);
  else
    fputs("null", j->f);
}

void ni_json_seconds(struct ni_json *j, const char *key, int64_t ns) {
  begin_value(j, key);
  fprintf(j->f, "%s%" PRId64 ".%09" PRId64, ns < 0 ? "-" : "", (int64_t)imaxabs(ns / 1000000000),
          (int64_t)imaxabs(ns % 1000000000));
}

void ni_json_utc(struct ni_json *j, const char *key, int64_t ns) {
  char text[40];
  ni_json_text(j, key, ns ? ni_utc_text(ns / 1000, 'T', 6, text) : NULL);
}

void ni_json_hex_text(struct ni_json *j, const char *key, uint64_t value) {
  begin_value(j, key);
  fprintf(j->f, "\"0x%" PRIx64 "\"", value);
}

void ni_json_bool(struct ni_json *j, const char *key, bool value) {
  begin_value(j, key);
  fputs(value ? "true" : "false", j->f);
}

void ni_json_finish(struct ni_json *j) { putc('\n', j->f); }

void ni_json_open(struct ni_json *j, FILE *f, const char *schema) {
  ni_json_begin(j, f);
  ni_json_object(j, NULL);
  if (schema)
    ni_json_text(j, "schema_version", schema);
}

void ni_json_close(struct ni_json *j) {
  ni_json_end_object(j);
  ni_json_finish(j);
}
