#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "page_heat.h"
#include "page_json.h"

static unsigned char byte_of(double ratio) {
  double b = 128 + 24 * log2(ratio);
  return !(ratio > 0) ? 0 : b < 1 ? 1 : b > 255 ? 255 : (unsigned char)lrint(b);
}

/* n bytes -> base64 text in place of a JSON string's inside; out holds 4 * ((n + 2) / 3) + 1. */
static void base64(const unsigned char *in, size_t n, char *out) {
  static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    unsigned v = (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) | (i + 2 < n ? in[i + 2] : 0);
    *out++ = digit[v >> 18];
    *out++ = digit[v >> 12 & 63];
    *out++ = i + 1 < n ? digit[v >> 6 & 63] : '=';
    *out++ = i + 2 < n ? digit[v & 63] : '=';
  }
  *out = 0;
}

int ni_page_heat_write(struct ni_json *j, const struct ni_summary *s) {
  const struct ni_heat *h = &s->heat;
  uint32_t rows = (uint32_t)ni_page_at_most(h->rows, NI_PAGE_PROCESSES);
  uint32_t run = rows ? (uint32_t)(((uint64_t)rows * h->bins + NI_PAGE_HEAT_CELLS - 1) / NI_PAGE_HEAT_CELLS) : 1;
  if (run < 1) run = 1;
  uint32_t bins = (h->bins + run - 1) / run;
  size_t n = (size_t)rows * bins;
  unsigned char *cell = malloc(n + 1);
  char *text = malloc(4 * (n + 2) / 3 + 8);
  uint32_t *source = malloc((h->bins + 1) * sizeof *source);
  if (!cell || !text || !source) {
    free(cell);
    free(text);
    free(source);
    return -ENOMEM;
  }
  ni_heat_sources(s, source);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t b = 0; b < bins; b++) {
      double sum = 0, weight = 0;
      for (uint32_t i = b * run; i < (b + 1) * run && i < h->bins; i++) {
        size_t at = (size_t)r * h->bins + source[i];
        if (source[i] == h->bins || h->count[at] == 0 || !isfinite(h->relative[at])) continue;
        sum += (double)h->relative[at] * h->count[at];
        weight += h->count[at];
      }
      cell[(size_t)r * bins + b] = weight > 0 ? byte_of(sum / weight) : 0;
    }
  base64(cell, n, text);
  ni_json_object(j, "heat");
  ni_json_u64(j, "rows", rows);
  ni_json_u64(j, "bins", bins);
  ni_json_u64(j, "run", run); /* bins of the run's time axis per cell */
  ni_json_u64(j, "left_out", h->rows - rows);
  ni_json_text(j, "cells", text);
  ni_json_end_object(j);
  free(cell);
  free(text);
  free(source);
  return 0;
}
