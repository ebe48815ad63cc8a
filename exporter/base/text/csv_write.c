#include "csv_write.h"

#include <string.h>

#include "safe_text.h"
#include "shortest.h"

void ni_csv_text(FILE *f, const char *text) {
  if (!text)
    return;
  const char *quote = strpbrk(text, ",\"") ? "\"" : "";
  fprintf(f, "%s%s", quote, *text && strchr("=+-@", *text) ? "'" : "");
  for (const char *mark; (mark = strchr(text, '"')); text = mark + 1)
    ni_say(f, "%.*s\"\"", (int)(mark - text), text);
  ni_say(f, "%s%s", text, quote);
}

/* Shortest form; nothing for NAN. */
static void write_csv_double(FILE *f, double value) {
  char text[NI_SHORTEST_BYTES];
  fwrite(text, 1, ni_shortest(value, text), f);
}

void ni_csv_doubles(FILE *f, const double *v, size_t n) {
  for (size_t i = 0; i < n; i++) {
    putc(',', f);
    write_csv_double(f, v[i]);
  }
}
