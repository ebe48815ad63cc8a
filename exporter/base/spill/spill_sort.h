/*
 * Items of any length in order, in bounded memory: an external merge sort.
 *
 * Model: add() copies items into a buffer; a full buffer is sorted and becomes a run in the temporary file;
 * next() merges the runs. What never filled the buffer is sorted there and goes to no file. Several threads
 * fill a sort each, over one file; join() makes one of them. The order is compare()'s; what it calls equal
 * keeps the order of adding, within one sort.
 *
 * Memory: limit_bytes for the buffer, then for reading runs (at least 4 KiB each). One thread a sort.
 * Failure: -ENOMEM, -errno of the temporary file. Ownership: ni_sort_free().
 */
#ifndef NI_SPILL_SORT_H
#define NI_SPILL_SORT_H

#include "spill_file.h"

#define NI_SORT_ITEM_MAX 1024u

struct ni_sort;
typedef int ni_sort_compare(const void *a, const void *b, void *arg); /* of two items, as qsort_r() has it */

/* store: stays the caller's, until the sort is freed; its limit is not looked at. */
int ni_sort_new(struct ni_sort **out, struct ni_spill *store, uint64_t limit_bytes, ni_sort_compare *compare,
                void *arg);
/* len <= NI_SORT_ITEM_MAX. The copy is aligned to 8 bytes. */
int ni_sort_add(struct ni_sort *s, const void *item, size_t len);
/*
 * What `from` has becomes a part of s, of the same store and order, before the first next(). Frees `from`,
 * also on failure.
 */
int ni_sort_join(struct ni_sort *s, struct ni_sort *from);
/* 1: *item, *len, until the next call; 0: no more; -errno. The first call ends adding. */
int ni_sort_next(struct ni_sort *s, const void **item, size_t *len);
void ni_sort_free(struct ni_sort *s); /* NULL is fine */
/* Runs in the temporary file. */
size_t ni_sort_runs(const struct ni_sort *s);

#endif
