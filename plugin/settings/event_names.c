#include "event_names.h"

#include <stdio.h>
#include <string.h>

#include "format/events.h"

static bool one_name(const char *name, size_t n, uint32_t *kinds) {
  for (int i = 0; i < NI_PRESET_COUNT; i++)
    if (strlen(ni_presets[i].name) == n && memcmp(ni_presets[i].name, name, n) == 0) {
      *kinds = ni_presets[i].kinds;
      return true;
    }
  for (int i = 0; i < NI_EVENT_COUNT; i++)
    if (strlen(ni_event_names[i]) == n && memcmp(ni_event_names[i], name, n) == 0) {
      *kinds = NI_KINDS(i);
      return true;
    }
  if (n == 3 && memcmp(name, "all", 3) == 0) {
    *kinds = NI_KINDS_ALL;
    return true;
  }
  return n == 4 && memcmp(name, "none", 4) == 0 ? *kinds = 0, true : false;
}

bool ni_kinds_parse(const char *text, uint32_t *kinds, char *why, size_t cap) {
  uint32_t set = 0, words = 0;
  for (const char *s = text; *s;) {
    size_t n = strcspn(s, ", \t");
    if (n) {
      bool take = *s == '-';
      uint32_t these;
      if (words++ == 0 && take)
        set = NI_KINDS_STANDARD;
      if (!one_name(s + take, n - take, &these)) {
        if (cap)
          snprintf(why, cap, "\"%.*s\" is no kind of event", n < 40 ? (int)n : 40, s);
        return false;
      }
      /* parts of it */
      if (!take && these == NI_KINDS(NI_EVENT_KERNEL_PHASE))
        these |= NI_KINDS(NI_EVENT_KERNEL_CH);
      set = take ? set & ~these : set | these;
    }
    s += n + strspn(s + n, ", \t");
  }
  if (!words) {
    if (cap)
      snprintf(why, cap, "no kind of event is named");
    return false;
  }
  if (!(set & NI_KINDS(NI_EVENT_KERNEL_CH)))
    set &= ~NI_KINDS(NI_EVENT_KERNEL_PHASE);
  *kinds = set;
  return true;
}

void ni_kinds_text(uint32_t kinds, char *buf, size_t cap) {
  for (int i = 0; i < NI_PRESET_COUNT; i++)
    if (ni_presets[i].kinds == kinds) {
      snprintf(buf, cap, "%s", ni_presets[i].name);
      return;
    }
  if (!kinds)
    snprintf(buf, cap, "none");
  size_t at = 0;
  for (int i = 0; i < NI_EVENT_COUNT && at < cap; i++)
    if (kinds & NI_KINDS(i))
      at += (size_t)snprintf(buf + at, cap - at, "%s%s", at ? "," : "", ni_event_names[i]);
}
