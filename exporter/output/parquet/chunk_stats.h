/*
 * Bounds of the values of a column chunk, for the footer.
 *
 * Pure functions over a ni_chunk_stats, which a chunk of zeros starts; one thread at a time; nothing can fail. A chunk
 * uses the functions of its own type only.
 */
#ifndef NI_PARQUET_CHUNK_STATS_H
#define NI_PARQUET_CHUNK_STATS_H

#include <stdbool.h>
#include <stdint.h>

/* Longer texts are no use as bounds, and pages of them would bloat the footer. */
#define NI_STAT_TEXT_BYTES 256u

/* Bounds so far; `has` is false while there is no value (NaN is none). */
struct ni_chunk_stats {
  bool has, text_too_long;
  int64_t int_min, int_max;
  double dbl_min, dbl_max;
  char text_min[NI_STAT_TEXT_BYTES], text_max[NI_STAT_TEXT_BYTES];
  uint32_t text_min_len, text_max_len;
};

void ni_stats_ints(struct ni_chunk_stats *st, const int64_t *v, uint32_t n);
void ni_stats_doubles(struct ni_chunk_stats *st, const double *v, uint32_t n);
/* Compared as unsigned bytes. p is never NULL. */
void ni_stats_text(struct ni_chunk_stats *st, const char *p, uint32_t len);
uint64_t ni_count_nans(const double *v, uint32_t n);

#endif
