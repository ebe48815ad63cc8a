/*
 * Events of any length in order of time, in bounded memory: an external merge sort.
 *
 * Model: add() copies events into a buffer; a full buffer is sorted and becomes a run in an unnamed temporary file;
 * next() merges the runs. The order is total: time, then the longer first (so that what encloses comes before what it
 * holds), then the order of adding. Bytes out depend on nothing but what was added.
 *
 * Memory: limit_bytes for the buffer, then for reading runs (at least 4 KiB each). One thread. Failure: -ENOMEM, -errno
 * of the temporary file. Ownership: ni_sort_free().
 */
#ifndef NI_TRACE_SORT_H
#define NI_TRACE_SORT_H

#include <stddef.h>
#include <stdint.h>

#define NI_SORT_ITEM_MAX 1024u

struct ni_sort;

/* dir: where the temporary file is made, when one is needed; must stay valid. */
int ni_sort_new(struct ni_sort **out, const char *dir, uint64_t limit_bytes);
/* len <= NI_SORT_ITEM_MAX. dur_ns >= 0. */
int ni_sort_add(struct ni_sort *s, int64_t ts, int64_t dur_ns, const void *item, size_t len);
/* 1: *item, *len, until the next call; 0: no more; -errno. The first call ends adding. */
int ni_sort_next(struct ni_sort *s, const void **item, size_t *len);
void ni_sort_free(struct ni_sort *s);
/* Runs in the temporary file. */
size_t ni_sort_runs(const struct ni_sort *s);

#endif
