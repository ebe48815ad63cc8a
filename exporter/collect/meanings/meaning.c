#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/collect/metric.h"

static const struct meaning_row {
  uint8_t source;
  const char *pattern, *text;
} rows[] = {
#define MEANS(source, pattern, text) {NI_METRIC_##source, pattern, text},
#include "exporter/collect/meanings/cassini_host.def"
#include "exporter/collect/meanings/cassini_link.def"
#include "exporter/collect/meanings/cassini_work.def"
#include "exporter/collect/meanings/fabrics.def"
#include "exporter/collect/meanings/host.def"
};

/*
 * The number that a '$' of the text stands for: the first one of the name for "$1", and so on. Its length; 0:
 * there is none.
 */
static int find_number(const char *name, int which, const char **at) {
  for (;;) {
    name += strcspn(name, "0123456789");
    int n = (int)strspn(name, "0123456789");
    if (n == 0 || --which == 0) {
      *at = name;
      return n;
    }
    name += n;
  }
}

const char *ni_metric_meaning(enum ni_metric_source source, const char *name, char *out, size_t size) {
  const struct meaning_row *r = rows, *end = rows + sizeof rows / sizeof *rows;
  while (r < end && (r->source != source || !ni_metric_fits(r->pattern, name)))
    r++;
  if (r == end || size == 0)
    return NULL;
  size_t used = 0;
  for (const char *p = r->text; *p && used + 1 < size; p++) {
    const char *at = p;
    int n = 1;
    if (*p == '$' && isdigit((unsigned char)p[1]))
      n = find_number(name, *++p - '0', &at);
    for (int i = 0; i < n && used + 1 < size; i++)
      out[used++] = at[i];
  }
  out[used] = 0;
  return out;
}
