#include "csv_out.h"

#include <string.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/shortest.h"

void ni_csv_text(FILE *f, const char *text) {
  if (!text) return;
  const char *quote = strpbrk(text, ",\"") ? "\"" : "";
  fprintf(f, "%s%s", quote, *text && strchr("=+-@", *text) ? "'" : "");
  for (const char *mark; (mark = strchr(text, '"')); text = mark + 1) ni_say(f, "%.*s\"\"", (int)(mark - text), text);
  ni_say(f, "%s%s", text, quote);
}

void ni_csv_double(FILE *f, double value) {
  char text[NI_SHORTEST_BYTES];
  fwrite(text, 1, ni_shortest(value, text), f);
}
