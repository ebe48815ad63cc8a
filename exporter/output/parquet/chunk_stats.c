#include "chunk_stats.h"

#include <string.h>

void ni_stats_ints(struct ni_chunk_stats *st, const int64_t *v, uint32_t n) {
  int64_t lo = st->has ? st->int_min : INT64_MAX, hi = st->has ? st->int_max : INT64_MIN;
  for (uint32_t i = 0; i < n; i++) {
    if (v[i] < lo) lo = v[i];
    if (v[i] > hi) hi = v[i];
  }
  st->has |= n > 0;
  st->int_min = lo;
  st->int_max = hi;
}

/* A NaN compares false and so changes nothing. */
void ni_stats_doubles(struct ni_chunk_stats *st, const double *v, uint32_t n) {
  double lo = st->has ? st->dbl_min : __builtin_inf(), hi = st->has ? st->dbl_max : -__builtin_inf();
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    if (v[i] < lo) lo = v[i];
    if (v[i] > hi) hi = v[i];
    any |= v[i] == v[i];
  }
  st->has |= any;
  st->dbl_min = lo;
  st->dbl_max = hi;
}

static int compare_text(const char *a, uint32_t a_len, const char *b, uint32_t b_len) {
  int d = memcmp(a, b, a_len < b_len ? a_len : b_len);
  return d ? d : (a_len > b_len) - (a_len < b_len);
}

void ni_stats_text(struct ni_chunk_stats *st, const char *p, uint32_t len) {
  bool below = !st->has || compare_text(p, len, st->text_min, st->text_min_len) < 0;
  bool above = !st->has || compare_text(p, len, st->text_max, st->text_max_len) > 0;
  if (st->text_too_long || (!below && !above)) return;
  if (len > NI_STAT_TEXT_BYTES) {
    st->text_too_long = true; /* the bound would be wrong without it, so the chunk has none */
    return;
  }
  if (below) memcpy(st->text_min, p, st->text_min_len = len);
  if (above) memcpy(st->text_max, p, st->text_max_len = len);
  st->has = true;
}

uint64_t ni_count_nans(const double *v, uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += v[i] != v[i];
  return sum;
}
