#include "time_text.h"

#include <stdio.h>
#include <time.h>

const char *ni_second_text(int64_t second, char between, bool local, char out[32]) {
  struct tm tm;
  time_t t = (time_t)second;
  *out = 0;
  if (!(local ? localtime_r(&t, &tm) : gmtime_r(&t, &tm)) || strftime(out, 32, "%Y-%m-%d?%H:%M:%S", &tm) < 19)
    *out = 0;
  for (char *p = out; *p; p++)
    if (*p == '?')
      *p = between;
  return out;
}

const char *ni_utc_text(int64_t us, char between, unsigned decimals, char out[40]) {
  char text[32], part[8];
  int64_t second = us / 1000000 - (us % 1000000 < 0);
  *out = 0;
  if (!*ni_second_text(second, between, false, text))
    return out;
  snprintf(part, sizeof part, ".%06u", (unsigned)(us - second * 1000000) % 1000000u);
  snprintf(out, 40, "%s%.*sZ", text, decimals ? (int)decimals + 1 : 0, part);
  return out;
}
