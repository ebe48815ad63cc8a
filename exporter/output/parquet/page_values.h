/*
 * Values of a column into its open page: as codes of the chunk's dictionary, or PLAIN; with their statistics, but for
 * the dictionary's. One thread a chunk. Failure: -ENOMEM, -EINVAL, -EMSGSIZE as ni_pq_append() has them.
 */
#ifndef NI_PAGE_VALUES_H
#define NI_PAGE_VALUES_H

#include "column_chunk.h"

/* The rows of one call, without the nulls. */
struct ni_pq_slice {
  const void *values; /* n_values of them, of strings codes; one when `repeat` */
  const uint8_t *valid;
  const struct ni_pq_dict *dict;
  uint32_t n_rows, n_values;
  bool repeat;
};

/* The caller's dictionary may have grown since the last call, or be another one. Before its codes are added. */
int ni_values_ready(struct ni_chunk *c, const struct ni_pq_dict *dict);
/* Adds them. Where not all had room the slice is cut down to the rows that were taken; NI_DICT_FULL: for want of codes. */
int ni_values_add(struct ni_chunk *c, struct ni_chunk_env *env, struct ni_pq_slice *s);
/* The open page's codes become PLAIN bytes: the dictionary turned out not to pay. */
int ni_values_to_plain(struct ni_chunk *c, struct ni_chunk_env *env);

#endif
