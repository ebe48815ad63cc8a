/*
 * --dataset: all records as one Parquet data set, a folder for each host, sorted by (id, kind, coll, coll_sn, rank).
 *
 * Model: every reading thread has a sort of its own (base/spill/spill_sort.h) over one temporary file; once all is read they
 * are joined, and the rows written host by host. The order of rows is total (ties: time of the dump, then place in the
 * input), so the bytes do not depend on --jobs or --memory.
 *
 * Memory: an eighth of --memory for the buffers, later for reading the runs. Temporary file: about 170 bytes a record.
 * Threads: a sorter is its thread's until main ends it, and main writes. Failure: -errno; ni_run_fail() has been told why.
 */
#ifndef NI_SUMMARY_DATASET_H
#define NI_SUMMARY_DATASET_H

#include "batch.h"

struct ni_sorter;

int ni_sorter_new(struct ni_sorter **out, struct ni_run *r, const struct ni_batch_words *w);
/* Copies the rows of b, which stand in `range` of `file` behind those that were added before. */
int ni_sorter_add(struct ni_sorter *s, const struct ni_batch *b, uint32_t file, uint32_t range);
/* Joins what was added before, by main. Frees s, also on failure; NULL is fine. */
int ni_sorter_end(struct ni_sorter *s);

int ni_dataset_write(struct ni_run *r);

#endif
