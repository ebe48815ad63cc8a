/*
 * libFuzzer: any bytes as an agent's document or a Prometheus's answer, for `top`. Two sources, so that what
 * one says meets what the other has said: it must not crash or leak, stays within its bounds, and its texts
 * are safe to print.
 *
 *   test/fuzz/run.sh 60 now
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/agent/top/rows.h"
#include "exporter/base/text/safe_text.h"

static void need(int truth) {
  if (!truth)
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_top t = {.source = calloc(2, sizeof *t.source), .n_sources = 2};
  const char *const json = (const char *)data;
  char why[200] = "", safe[2048];
  size_t half = size / 2;
  need(t.source != NULL);
  t.sort = size % NI_TOP_SORTS;
  for (int i = 0; i < 2; i++) {
    bool prometheus = size && data[0] == '!';
    size_t from = size % 7 == 0 && i ? half : prometheus; /* mostly the whole for both */
    bool good = ni_top_read(&t, &t.source[i], json + (from < size ? from : size),
                            size - (from < size ? from : size), prometheus, why, sizeof why);
    if (!good)
      need(*why != 0);
    need(ni_top_look(&t) == 0);
  }
  for (int kind = 0; kind < NI_TOP_KINDS; kind++) {
    need(t.n[kind] <= NI_TOP_ROWS_MAX);
    for (size_t i = 0; i < t.n[kind]; i++)
      for (size_t k = 0; k < ni_top_tables[kind].n; k++) {
        const struct ni_top_field *f = &ni_top_tables[kind].field[k];
        const char *text = (const char *)t.item[kind][i] + f->at;
        if (!f->text)
          continue;
        need(memchr(text, 0, f->text) != NULL);
        need(strcmp(ni_safe_text(text, safe, sizeof safe), text) == 0);
      }
  }
  ni_top_free(&t);
  return 0;
}
