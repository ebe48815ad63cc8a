#include "control_parse.h"

#include <stdio.h>
#include <string.h>

#include "detail_text.h"
#include "event_names.h"

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static void refuse(struct ni_ctl_command *c, const char *why) {
  c->verb = NI_CTL_REFUSED;
  snprintf(c->why, sizeof c->why, "%s", why);
}

static bool preset(const char *name, uint32_t *kinds) {
  for (int i = 0; i < NI_PRESET_COUNT; i++)
    if (strcmp(ni_presets[i].name, name) == 0) {
      *kinds = ni_presets[i].kinds;
      return true;
    }
  return false;
}

static void read_mark(struct ni_ctl_command *c, const char *name) {
  if (!*name || strlen(name) >= sizeof c->mark) {
    refuse(c, "mark: a name of 1 to 64 bytes expected");
    return;
  }
  c->verb = NI_CTL_MARK;
  memcpy(c->mark, name, strlen(name) + 1);
}

bool ni_ctl_is_tag(const char *text) {
  uint64_t number;
  while (blank(*text))
    text++;
  if (!ni_digits(&text, INT64_MAX, &number) || number == 0 || !blank(*text))
    return false;
  while (blank(*text))
    text++;
  size_t n = strlen(text);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
      return false;
  return n > 0 && n < NI_CTL_MARK_BYTES;
}

/* c->text is the command without number and remark, trimmed. */
static void read_command(struct ni_ctl_command *c) {
  char verb[16];
  size_t n = strcspn(c->text, " \t");
  const char *rest = c->text + n;
  while (blank(*rest))
    rest++;
  if (n >= sizeof verb) {
    refuse(c, "preset, events, verbose, sample, flush, mark or tag expected");
    return;
  }
  memcpy(verb, c->text, n);
  verb[n] = 0;
  if (strcmp(verb, "preset") == 0) {
    c->verb = NI_CTL_EVENTS;
    if (!preset(rest, &c->kinds))
      refuse(c, "preset: light, standard, deep or trace expected");
  } else if (strcmp(verb, "events") == 0) {
    char why[NI_CTL_WHY_BYTES];
    c->verb = NI_CTL_EVENTS;
    if (!*rest)
      refuse(c, "events: a list of kinds expected");
    else if (!ni_kinds_parse(rest, &c->kinds, why, sizeof why))
      refuse(c, why);
  } else if (strcmp(verb, "verbose") == 0) {
    c->verb = NI_CTL_VERBOSE;
    c->on = strcmp(rest, "on") == 0 || strcmp(rest, "1") == 0;
    if (!c->on && strcmp(rest, "off") != 0 && strcmp(rest, "0") != 0)
      refuse(c, "verbose: on or off expected");
  } else if (strcmp(verb, "sample") == 0) {
    c->verb = NI_CTL_SAMPLE;
    if (!ni_sample_parse(rest, &c->sample))
      refuse(c, "sample: 1/N with N from 1 to 1000000 expected");
  } else if (strcmp(verb, "flush") == 0) {
    c->verb = NI_CTL_FLUSH;
    if (*rest && strcmp(rest, "now") != 0)
      refuse(c, "flush: nothing, or now, expected behind it");
  } else if (strcmp(verb, "mark") == 0) {
    read_mark(c, rest);
  } else if (strcmp(verb, "tag") == 0) {
    c->verb = NI_CTL_TAG;
    if (!ni_ctl_is_tag(rest))
      refuse(c, "tag: a number from 1 and a name of 1 to 64 bytes expected");
  } else {
    refuse(c, "preset, events, verbose, sample, flush, mark or tag expected");
  }
}

/* "@NUMBER " at the start. */
static bool read_number(const char **p, const char *end, uint64_t *out) {
  const char *s = *p + 1;
  uint64_t v = 0;
  for (; s < end && *s >= '0' && *s <= '9'; s++)
    if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v) ||
        v > INT64_MAX)
      return false;
  if (s == *p + 1 || (s < end && !blank(*s)))
    return false;
  *p = s;
  *out = v;
  return true;
}

/* One line [p, end). False: there is nothing in it. */
static bool read_line(const char *p, const char *end, bool whole, struct ni_ctl_command *c) {
  while (p < end && blank(*p))
    p++;
  bool good_number = p >= end || *p != '@' || read_number(&p, end, &c->at_ns);
  while (p < end && blank(*p))
    p++;
  const char *remark = p < end ? memchr(p, '#', (size_t)(end - p)) : NULL;
  if (remark)
    end = remark;
  while (end > p && blank(end[-1]))
    end--;
  if (p == end && good_number)
    return false;
  size_t n = (size_t)(end - p), room = sizeof c->text - 1;
  memcpy(c->text, p, n < room ? n : room);
  c->text[n < room ? n : room] = 0;
  for (char *t = c->text; t < c->text + (n < room ? n : room); t++)
    if ((unsigned char)*t < 0x20 || *t == 0x7f)
      *t = *t == '\t' ? ' ' : '?';
  if (!good_number)
    refuse(c, "a number of Unix ns and a blank expected behind @");
  else if (n > room)
    refuse(c, "longer than 255 bytes");
  else if (!whole)
    refuse(c, "no line feed at its end: perhaps written only in part");
  else
    read_command(c);
  return true;
}

void ni_ctl_parse(const char *text, size_t n, void (*take)(void *arg, const struct ni_ctl_command *c),
                  void *arg) {
  const char *end = text + n;
  uint32_t line = 0, taken = 0;
  for (const char *p = text; p < end;) {
    const char *lf = memchr(p, '\n', (size_t)(end - p));
    struct ni_ctl_command c = {.line = ++line};
    if (read_line(p, lf ? lf : end, lf != NULL, &c)) {
      if (++taken > NI_CTL_LINES) {
        refuse(&c, "too many lines: at most 24 commands, this and all that follow are ignored");
        take(arg, &c);
        return;
      }
      take(arg, &c);
    }
    if (!lf)
      return;
    p = lf + 1;
  }
}
