#include "log.h"

#include <stdarg.h>
#include <time.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/time_text.h"

enum { LINES_A_SECOND = 50 };

void ni_head_log(const char *format, ...) {
  static time_t second;
  static unsigned lines;
  char at[40];
  va_list args;
  time_t now = time(NULL);
  ni_utc_text((int64_t)now * 1000000, 'T', 0, at);
  if (now != second && lines > LINES_A_SECOND)
    ni_say(stderr, "%s %u lines were left out\n", at, lines - LINES_A_SECOND);
  if (now != second) {
    second = now;
    lines = 0;
  }
  if (lines++ >= LINES_A_SECOND)
    return;
  ni_say(stderr, "%s ", at);
  va_start(args, format);
  ni_vsay(stderr, format, args);
  va_end(args);
  ni_say(stderr, "\n");
}
