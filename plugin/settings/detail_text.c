#include "detail_text.h"

#include <stdio.h>
#include <string.h>

bool ni_digits(const char **s, uint64_t max, uint64_t *out) {
  uint64_t v = 0;
  const char *p = *s;
  if (*p < '0' || *p > '9') return false;
  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v) || v > max) return false;
  *s = p;
  *out = v;
  return true;
}

bool ni_sample_parse(const char *s, uint64_t *n) {
  uint64_t v;
  if (s[0] != '1' || s[1] != '/') return false;
  s += 2;
  if (!ni_digits(&s, NI_SAMPLE_MAX, &v) || *s || v == 0) return false;
  *n = v;
  return true;
}

static const struct {
  const char *text;
  uint32_t ms;
} units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
enum { N_UNITS = sizeof units / sizeof *units };

static bool duration(const char **s, uint32_t *ms) {
  uint64_t v;
  if (!ni_digits(s, NI_DUTY_PERIOD_MAX_MS, &v)) return false;
  size_t n = strcspn(*s, "/");
  for (int i = 0; i < N_UNITS; i++) {
    if (strlen(units[i].text) != n || memcmp(*s, units[i].text, n) != 0) continue;
    v *= units[i].ms;
    if (v > NI_DUTY_PERIOD_MAX_MS) return false;
    *ms = (uint32_t)v;
    *s += n;
    return true;
  }
  return false;
}

bool ni_duty_parse(const char *s, struct ni_duty *d) {
  struct ni_duty got = {0, 0};
  if (strcmp(s, "0") == 0) {
    *d = got;
    return true;
  }
  if (!duration(&s, &got.on_ms) || *s++ != '/' || !duration(&s, &got.period_ms) || *s) return false;
  if (got.on_ms < NI_DUTY_ON_MIN_MS || got.on_ms >= got.period_ms) return false;
  *d = got;
  return true;
}

static int put_duration(char *out, size_t cap, uint32_t ms) {
  int i = 0;
  while (ms % units[i].ms) i++;
  return snprintf(out, cap, "%u%s", ms / units[i].ms, units[i].text);
}

void ni_duty_text(struct ni_duty d, char *out, size_t cap) {
  if (d.period_ms == 0) {
    snprintf(out, cap, "0");
    return;
  }
  char on[24], period[24];
  put_duration(on, sizeof on, d.on_ms);
  put_duration(period, sizeof period, d.period_ms);
  snprintf(out, cap, "%s/%s", on, period);
}

bool ni_duty_on(struct ni_duty d, uint64_t realtime_ms, uint64_t *next_ms) {
  if (d.period_ms == 0) {
    *next_ms = UINT64_MAX;
    return true;
  }
  uint64_t into = realtime_ms % d.period_ms, begin = realtime_ms - into;
  bool on = into < d.on_ms;
  *next_ms = begin + (on ? d.on_ms : d.period_ms);
  return on;
}

bool ni_percent_parse(const char *s, uint64_t *thousandths) {
  uint64_t v;
  if (!ni_digits(&s, 100, &v)) return false;
  v *= NI_PERCENT_ONE;
  if (*s == '.') {
    s++;
    if (!*s) return false;
    for (uint64_t unit = NI_PERCENT_ONE / 10; *s; unit /= 10, s++) {
      if (*s < '0' || *s > '9' || unit == 0) return false;
      v += (uint64_t)(*s - '0') * unit;
    }
  }
  if (*s || v > 100 * NI_PERCENT_ONE) return false;
  *thousandths = v;
  return true;
}

void ni_percent_text(uint64_t v, char *out, size_t cap) {
  int n = snprintf(out, cap, "%llu.%03llu", (unsigned long long)(v / NI_PERCENT_ONE), (unsigned long long)(v % NI_PERCENT_ONE));
  if (n < 0 || (size_t)n >= cap) return;
  while (out[n - 1] == '0') out[--n] = 0;
  if (out[n - 1] == '.') out[n - 1] = 0;
}
