#include "safe_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

int ni_text_is_printable(uint32_t c) {
  if (c < 0xa0)
    return c >= 0x20 && c < 0x7f;
  if (c >= 0x2000 && c < 0x2070) {
    const bool is_zero_width = c >= 0x200b && c < 0x2010, is_direction = c >= 0x2028 && c < 0x202f;
    return !is_zero_width && !is_direction && c < 0x2060;
  }
  return c != 0xad && c != 0x61c && c != 0xfeff;
}

/* The safe form of the character at *text, n bytes; *text moves behind it. */
static const char *make_next_safe(const char **text, unsigned *n) {
  uint32_t code;
  const char *p = *text;
  int bytes = ni_utf8_char(p, 4, &code);
  bool fit = bytes > 0 && ni_text_is_printable(code);
  *text += bytes > 0 ? bytes : 1;
  *n = fit ? (unsigned)bytes : 1;
  return fit ? p : "?";
}

void ni_put_text(FILE *f, const char *text) {
  for (unsigned n; *text;) {
    const char *p = make_next_safe(&text, &n);
    fwrite(p, 1, n, f);
  }
}

const char *ni_safe_text(const char *text, char *out, size_t size) {
  size_t at = 0;
  for (unsigned n; text && *text; at += n) {
    const char *p = make_next_safe(&text, &n);
    if (at + n >= size)
      break;
    memcpy(out + at, p, n);
  }
  out[at] = 0;
  return out;
}

static int write_safely(FILE *f, const char *format, va_list args) {
  char *text, *head = strdup(format);
  va_list again;
  va_copy(again, args);
  int n = vasprintf(&text, format, again);
  va_end(again);
  if (n < 0 || !head) {
    if (n >= 0)
      free(text);
    free(head);
    return fputs(format, f);
  }
  /* Where the format's own control characters came to stand: behind what the format up to there makes. No
   * argument has a NUL, so one marks the place. */
  for (size_t i = strlen(head); i-- > 0;) {
    if ((unsigned char)format[i] >= 0x20)
      continue;
    head[i] = 0;
    va_copy(again, args);
    text[vsnprintf(NULL, 0, head, again)] = 0;
    va_end(again);
  }
  const char *part = text;
  for (const char *own = format;; own++, part += strlen(part) + 1) {
    ni_put_text(f, part);
    while (*own && (unsigned char)*own >= 0x20)
      own++;
    if (!*own)
      break;
    putc(*own, f);
  }
  free(text);
  free(head);
  return n;
}

int ni_vsay(FILE *f, const char *format, va_list args) {
  char *said = NULL;
  size_t len;
  /* it has no buffer: each byte would be a write */
  FILE *whole = f == stderr ? open_memstream(&said, &len) : NULL;
  if (!whole)
    return write_safely(f, format, args);
  int n = write_safely(whole, format, args);
  if (fclose(whole) != 0)
    fputs(format, f);
  else
    fwrite(said, 1, len, f);
  free(said);
  return n;
}

int ni_say(FILE *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = ni_vsay(f, format, args);
  va_end(args);
  return n;
}
