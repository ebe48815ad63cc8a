#include "page_json.h"

#include <string.h>

void ni_page_table_begin(struct ni_json *j, const char *key, const struct ni_json_field *fields, size_t n) {
  ni_json_object(j, key);
  NI_JSON_ARRAY (j, "cols")
    for (size_t i = 0; i < n; i++)
      ni_json_text(j, NULL, fields[i].key);
  ni_json_array(j, "rows");
}

void ni_page_table_end(struct ni_json *j, size_t all, size_t shown) {
  ni_json_end_array(j);
  ni_json_u64(j, "left_out", all - shown);
  ni_json_end_object(j);
}

void ni_page_table(struct ni_json *j, const char *key, const struct ni_json_field *fields, size_t n_fields,
                   const void *items, size_t size, size_t n, size_t limit, const struct ni_summary *s) {
  size_t shown = ni_page_at_most(n, limit);
  ni_page_table_begin(j, key, fields, n_fields);
  for (size_t i = 0; i < shown; i++)
    NI_JSON_ARRAY (j, NULL)
      ni_json_fields(j, fields, n_fields, false, (const char *)items + i * size, s);
  ni_page_table_end(j, n, shown);
}

size_t ni_page_at_most(size_t n, size_t limit) { return n < limit ? n : limit; }

void ni_page_num(struct ni_json *j, double value) { ni_json_rounded(j, NULL, value, 5); }

/*
 * Names of any length come out of logs; the page needs no more than this of one. Cut between UTF-8 sequences.
 */
void ni_page_name(struct ni_json *j, const char *key, const char *text) {
  char cut[260];
  if (!text || strlen(text) <= 256) {
    ni_json_text(j, key, text);
    return;
  }
  size_t n = 253;
  while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
    n--;
  memcpy(cut, text, n);
  memcpy(cut + n, "...", 4);
  ni_json_text(j, key, cut);
}

void ni_page_stats(struct ni_json *j, const struct ni_stats *s) {
  ni_json_array(j, NULL);
  ni_json_u64(j, NULL, s->n);
  const double v[] = {s->mean, s->stddev, s->min, s->p10, s->p25, s->p50, s->p75, s->p90, s->p99, s->max};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++)
    ni_page_num(j, v[i]);
  ni_json_u64(j, NULL, s->approx);
  ni_json_end_array(j);
}

NI_JSON_FORM(ni_page_put_num, double, ni_page_num(j, *v))
NI_JSON_FORM(ni_page_put_name, char *, ni_page_name(j, key, *v))
NI_JSON_FORM(ni_page_put_bool, bool, ni_json_u64(j, key, *v))
NI_JSON_FORM(ni_page_put_stats, struct ni_stats, ni_page_stats(j, v))
