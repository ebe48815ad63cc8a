#include "parse_head.h"

#include "exporter/base/mix.h"
#include "parse_text.h"

enum { ID_AT = 19 }; /* the communicator's hash begins here in `{"header":{"id":"0x` */

static size_t choose_slot(const char *text) {
  return ni_spread(ni_text_load8(text + ID_AT)) >> (64 - NI_HEAD_SLOTS_LOG2);
}

static bool keep_name(struct ni_read_head *h, const char **name) {
  if (!*name || !**name)
    return true;
  size_t n = strlen(*name) + 1;
  if (n > NI_HEAD_MAX_BYTES - h->used)
    return false;
  memcpy(h->names + h->used, *name, n);
  *name = h->names + h->used;
  h->used += (uint32_t)n;
  return true;
}

void ni_heads_keep(struct ni_heads *heads, const char *text, size_t len, const char *stamp,
                   const char *kind_key, const struct ni_line *line) {
  if (!line->has_header || line->unknown_keys || len < ID_AT + 8)
    return;
  if (!stamp || !kind_key)
    return;
  if (memcmp(text, "{\"header\":{\"id\":\"0x", ID_AT) != 0 || stamp > kind_key)
    return;
  const char *end = stamp;
  while (ni_text_is_digit(*end))
    end++;
  size_t before = (size_t)(stamp - text), after = (size_t)(kind_key - end);
  /* header and metadata must both lie before the record: its key follows the end of one of them directly. */
  if (before + after > NI_HEAD_MAX_BYTES || before < 8)
    return;
  if (after < 2 || memcmp(kind_key - 2, "},", 2) != 0)
    return;
  struct ni_read_head *h = &heads->slot[choose_slot(text)];
  h->before = h->used = 0;
  h->ident = line->ident;
  h->meta = line->meta;
  const char **names[] = {&h->ident.comm_name,    &h->meta.version,  &h->meta.git_rev,
                          &h->meta.rec_mechanism, &h->meta.hostname, &h->meta.producer};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!keep_name(h, names[i]))
      return;
  memcpy(h->text, text, before);
  memcpy(h->text + before, end, after);
  h->after = (uint32_t)after;
  h->before = (uint32_t)before;
  h->no = heads->last_no < UINT32_MAX ? ++heads->last_no : 0;
}

const struct ni_read_head *ni_heads_find(const struct ni_heads *heads, const char *text, size_t len,
                                         uint64_t *stamp, const char **key) {
  if (len < ID_AT + 8)
    return NULL;
  const struct ni_read_head *h = &heads->slot[choose_slot(text)];
  if (!h->before || len < h->before + 32u + h->after || memcmp(text, h->text, h->before) != 0)
    return NULL;
  const char *first = text + h->before, *s;
  uint64_t v = ni_text_digits(first, &s);
  const bool has_leading_zero = *first == '0' && s - first > 1;
  if (s == first || s - first > 18 || has_leading_zero)
    return NULL;
  if (memcmp(s, h->text + h->before, h->after) != 0)
    return NULL;
  if (s[h->after] != '"')
    return NULL;
  *stamp = v;
  *key = s + h->after + 1;
  return h;
}
