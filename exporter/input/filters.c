#include "filters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter/base/array.h"

int ni_parse_size(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  unsigned long long v = strtoull(text, &end, 10);
  if (errno || end == text || *text == '-') return -EINVAL;
  uint64_t unit = 1;
  if (*end) {
    const char *k = strchr("KMGT", *end);
    if (!k || (end[1] && strcmp(end + 1, "iB") != 0 && strcmp(end + 1, "B") != 0 && strcmp(end + 1, "i") != 0))
      return -EINVAL;
    for (int i = 0; i <= (int)(k - "KMGT"); i++) unit <<= 10;
  }
  *out = v * unit;
  return v > UINT64_MAX / unit ? -ERANGE : 0;
}

/* "10m", "1.5h": µs. Plain numbers are seconds. */
static int parse_span(const char *text, int64_t *us) {
  char *end;
  errno = 0;
  double v = strtod(text, &end), unit = 1;
  if (errno || end == text || v < 0) return -EINVAL;
  if (strcmp(end, "m") == 0) unit = 60;
  else if (strcmp(end, "h") == 0) unit = 3600;
  else if (strcmp(end, "d") == 0) unit = 86400;
  else if (strcmp(end, "ms") == 0) unit = 1e-3;
  else if (strcmp(end, "us") == 0) unit = 1e-6;
  else if (*end && strcmp(end, "s") != 0) return -EINVAL;
  if (v * unit > 1e11) return -ERANGE;
  *us = (int64_t)(v * unit * 1e6 + 0.5);
  return 0;
}

int ni_parse_when(const char *text, struct ni_when *w) {
  if (*text == '-' || *text == '+') {
    w->base = *text == '-' ? NI_WHEN_BEFORE_END : NI_WHEN_AFTER_START;
    return parse_span(text + 1, &w->us);
  }
  w->base = NI_WHEN_ABSOLUTE;
  struct tm tm = {0};
  int n = 0;
  double second;
  if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%lf%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
             &second, &n) == 6 && n) {
    tm.tm_year -= 1900;
    tm.tm_mon--;
    if (tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 ||
        second < 0 || second >= 61)
      return -EINVAL;
    int64_t zone = 0;
    int h, m;
    char sign;
    const char *rest = text + n;
    if (strcmp(rest, "Z") != 0 && strcmp(rest, "z") != 0) {
      int used = 0;
      if (sscanf(rest, "%c%2d:%2d%n", &sign, &h, &m, &used) != 3 || rest[used] || (sign != '+' && sign != '-'))
        return -EINVAL;
      zone = (sign == '-' ? -1 : 1) * (h * 3600 + m * 60);
    }
    w->us = ((int64_t)timegm(&tm) - zone) * 1000000 + (int64_t)(second * 1e6 + 0.5);
    return 0;
  }
  char *end;
  errno = 0;
  double v = strtod(text, &end);
  if (errno || end == text || *end || v < 0 || v > 4102444800.0) return -EINVAL;
  w->us = (int64_t)(v * 1e6 + 0.5);
  return 0;
}

int ni_words_add(struct ni_words *w, const char *list) {
  if (!list[strspn(list, ",")]) return -EINVAL;
  while (*list) {
    size_t n = strcspn(list, ",");
    if (n) {
      if (!ni_array_room(w->word, w->n, w->cap) || !(w->word[w->n] = strndup(list, n))) return -ENOMEM;
      w->n++;
    }
    list += n + (list[n] == ',');
  }
  return 0;
}

void ni_words_free(struct ni_words *w) {
  for (size_t i = 0; i < w->n; i++) free(w->word[i]);
  free(w->word);
  *w = (struct ni_words){0};
}

bool ni_words_have(const struct ni_words *w, const char *text) {
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(text, w->word[i]) == 0) return true;
  return false;
}

int ni_ranks_add(struct ni_ranks *r, const char *list) {
  if (!*list) return -EINVAL;
  for (const char *p = list; *p; p += *p == ',') {
    char *end;
    errno = 0;
    long from = *p >= '0' && *p <= '9' ? strtol(p, &end, 10) : -1, to = from;
    if (from < 0) return -EINVAL;
    if (*end == '-') {
      p = end + 1;
      if (*p < '0' || *p > '9') return -EINVAL;
      to = strtol(p, &end, 10);
    }
    if (errno || (*end && *end != ',') || to < from || to > INT32_MAX) return -EINVAL;
    if (!ni_array_room(r->span, r->n, r->cap)) return -ENOMEM;
    r->span[r->n].from = from;
    r->span[r->n++].to = to;
    p = end;
  }
  return 0;
}

void ni_ranks_free(struct ni_ranks *r) {
  free(r->span);
  *r = (struct ni_ranks){0};
}

bool ni_ranks_have(const struct ni_ranks *r, int64_t rank) {
  for (size_t i = 0; i < r->n; i++)
    if (rank >= r->span[i].from && rank <= r->span[i].to) return true;
  return false;
}

int64_t ni_when_resolve(const struct ni_when *w, int64_t none, int64_t first, int64_t last) {
  switch (w->base) {
    case NI_WHEN_ABSOLUTE: return w->us;
    case NI_WHEN_BEFORE_END: return last - w->us;
    case NI_WHEN_AFTER_START: return first + w->us;
    default: return none;
  }
}
