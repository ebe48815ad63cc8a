#include "terminal.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "utf8.h"

enum { NARROWEST = 20, USUAL = 80, LABELS = 24, MOST = 32 };

/* The line being written. */
static struct terminal_line {
  int fd;     /* of the terminal; of stdout until somebody writes elsewhere */
  bool whole; /* as it is, however long */
  int column, columns;
  char indent[MOST + 1]; /* before what goes on */
} line = {.fd = STDOUT_FILENO};

static int columns_of(int fd) {
  struct winsize size;
  if (!isatty(fd))
    return 0;
  const char *said = getenv("COLUMNS");
  long n = said ? strtol(said, NULL, 10) : 0;
  if ((n < 1 || n > 10000) && ioctl(fd, TIOCGWINSZ, &size) == 0)
    n = size.ws_col;
  if (n < 1 || n > 10000)
    n = USUAL;
  return n < NARROWEST ? NARROWEST : (int)n;
}

int ni_terminal_columns(FILE *f) { return f == stdout ? columns_of(STDOUT_FILENO) : 0; }

int ni_text_columns(const char *text, size_t bytes) {
  int n = 0;
  for (size_t i = 0; i < bytes;) {
    uint32_t code;
    int got = ni_utf8_char(text + i, bytes - i, &code), wide = got > 0 ? wcwidth((wchar_t)code) : 1;
    i += (size_t)abs(got);
    n += wide < 0 ? 1 : wide;
  }
  return n;
}

static bool write_out(const char *text, size_t n) {
  while (n) {
    ssize_t got = write(line.fd, text, n);
    if (got < 0 && errno != EINTR)
      return false;
    if (got > 0) {
      text += got;
      n -= (size_t)got;
    }
  }
  return true;
}

static bool begins_with(const char *text, size_t n, const char *word) {
  return n >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* "-> export NAME=value", "next: build/nccl-inspector show ...": broken in the middle it cannot be pasted. */
static bool is_command(const char *text, size_t n) {
  static const char name[] = "nccl-inspector";
  size_t at = 0, end;
  while (at < n && text[at] == ' ')
    at++;
  if (begins_with(text + at, n - at, "-> export "))
    return true;
  if (!begins_with(text + at, n - at, "next"))
    return false;
  at += strlen("next");
  while (at < n && (text[at] == ' ' || text[at] == ':'))
    at++;
  for (end = at; end < n && text[end] != ' ' && text[end] != '\n';)
    end++;
  const size_t length = sizeof name - 1;
  return end - at >= length && memcmp(text + end - length, name, length) == 0;
}

/*
 * Lines that are broken go on under the text behind the last label. Two spaces or more end a label. Bars at
 * the start are repeated.
 */
static void prepare_line(const char *text, size_t n) {
  size_t at = 0, spaces = 0, leading = 0;
  while (leading < n && text[leading] == ' ')
    leading++;
  line.whole = *text == '{' || is_command(text, n);
  line.columns = columns_of(line.fd);
  for (size_t i = 0; i < n && i < LABELS; i++) {
    if (text[i] != ' ' && (spaces > 1 || i == leading))
      at = i;
    spaces = text[i] == ' ' ? spaces + 1 : 0;
  }
  if (at == 0)
    at = 2;
  bool bar = leading + 1 < n && text[leading] == '|' && text[leading + 1] == ' ' && leading < LABELS;
  if (bar)
    at = leading + 2;
  else if (at > (size_t)line.columns / 2)
    at = 4;
  memset(line.indent, ' ', at);
  line.indent[at] = 0;
  if (bar)
    line.indent[leading] = '|';
}

/* At most one line, with its end or without. */
static bool write_wrapped(const char *text, size_t n) {
  if (line.column == 0)
    prepare_line(text, n);
  while (n) {
    size_t gap = 0, word = 0;
    while (gap < n && text[gap] == ' ')
      gap++;
    while (gap + word < n && text[gap + word] != ' ' && text[gap + word] != '\n')
      word++;
    int wide = ni_text_columns(text + gap, word), from = (int)strlen(line.indent);
    bool over = word && !line.whole && line.column > from && line.column + (int)gap + wide > line.columns;
    if (over && (!write_out("\n", 1) || !write_out(line.indent, strlen(line.indent))))
      return false;
    if (!write_out(over ? text + gap : text, over ? word : gap + word))
      return false;
    line.column = over ? from + wide : line.column + (int)gap + wide;
    text += gap + word;
    n -= gap + word;
    if (n && *text == '\n') {
      line.column = 0;
      return write_out(text, 1);
    }
  }
  return true;
}

static ssize_t write_lines(void *cookie, const char *text, size_t n) {
  for (size_t at = 0, len; at < n; at += len) {
    const char *end = memchr(text + at, '\n', n - at);
    len = end ? (size_t)(end - text) + 1 - at : n - at;
    if (!write_wrapped(text + at, len))
      return 0;
  }
  return (ssize_t)n;
}

int ni_terminal_write(int fd, const char *text, size_t n) {
  const struct terminal_line before = line;
  line = (struct terminal_line){.fd = fd};
  const bool is_wide = columns_of(fd) == 0;
  const bool fine = is_wide ? write_out(text, n) : write_lines(NULL, text, n) == (ssize_t)n;
  line = before;
  return fine ? 0 : -errno;
}

void ni_terminal_begin(void) {
  static char buffer[1 << 16];
  if (!ni_terminal_columns(stdout))
    return;
  FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_lines});
  if (!f)
    return;
  setvbuf(f, buffer, _IOLBF, sizeof buffer);
  stdout = f;
}
