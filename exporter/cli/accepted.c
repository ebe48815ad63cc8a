/* What parser, help and completion say of a row alike: the rows that every command has, and what a row accepts. */
#include <string.h>

#include "words.h"

const struct ni_opt ni_words_common[] = {
    {"help", 'h', NI_OPT_FLAG, NULL, "This help", .at = NI_COMMON_HELP},
    {"usage", 0, NI_OPT_FLAG, NULL, "How it is called", .at = NI_COMMON_USAGE},
    {"version", 'V', NI_OPT_FLAG, NULL, "The version", .at = NI_COMMON_VERSION},
    {0}};

/* "zstd, snappy, gzip or none" */
static void list_words(const char *words, char *out, size_t size) {
  for (const char *w = words; *w; w += *w == '|') {
    size_t n = strcspn(w, "|"), used = strlen(out);
    snprintf(out + used, size - used, "%s%.*s", w == words ? "" : w[n] ? ", " : " or ", (int)n, w);
    w += n;
  }
}

const char *ni_words_accepted(const struct ni_opt *o, bool in_help, char *out, size_t size) {
  static const char *const wants[] = {
      [NI_OPT_NUMBER] = "a number", [NI_OPT_RANKS] = "ranks and ranges, such as 0-7,16",
      [NI_OPT_WHEN] = "2026-11-21T08:00:00Z, seconds since 1970, -10m (before the end) or +5m (after the start)",
      [NI_OPT_TAKE] = NULL};
  const char *want = o->want ? o->want : wants[o->kind];
  unsigned long long min = o->min, max = o->max < INT64_MAX ? o->max : 0;
  *out = 0;
  if (o->kind == NI_OPT_CHOICE && !(in_help && !strchr(want, '|'))) list_words(want, out, size); /* one word: its argument is called so */
  else if (o->kind == NI_OPT_SIZE && in_help) snprintf(out, size, "%lluM or more", min >> 20);
  else if (o->kind == NI_OPT_SIZE) snprintf(out, size, "a size of %lluM or more, such as %s or 2G", min >> 20, o->def);
  else if (o->kind == NI_OPT_NUMBER && max) snprintf(out, size, "%s%s%llu to %llu", in_help ? "" : want, in_help ? "" : " from ", min, max);
  else if (o->kind == NI_OPT_NUMBER && !in_help) snprintf(out, size, "%s from %llu on", want, min);
  else if (!in_help) snprintf(out, size, "%s", want ? want : "a value");
  return out;
}
