/*
 * The records of a run as rows: a sink for the reading phase (model/sums/reading/record_row.h) that fills
 * batches, the Parquet file of each log and, with --dataset, the sorters.
 *
 * A part of the input is one stream. It borrows a batch and a sorter from those that are free, so there are
 * as many as there are threads. Closing hands on what is in the batch and says that the part is over; of a
 * run that was stopped only the latter.
 *
 * --dataset: all records as one Parquet data set, a folder for each host, or what --partition says; within a
 * folder sorted by (id, kind, coll, coll_sn, rank).
 *
 * Model: every reading thread has a sort of its own (base/spill/spill_sort.h) over one temporary file; once
 * all is read they are joined, and the rows written folder by folder. The order of rows is total (ties: time
 * of the dump, then place in the input), so the bytes do not depend on --jobs or --memory.
 *
 * Memory: an eighth of --memory for the buffers, later for reading the runs. Temporary file: about 240 bytes
 * a record. Threads: the sink's by any; init and end by main, before and after reading. Failure: -errno;
 * ni_run_fail() has been told why.
 */
#ifndef NI_RECORDS_H
#define NI_RECORDS_H

#include "batch.h"
#include "exporter/base/sink.h"

struct ni_record_writer;

struct ni_records {
  struct ni_run *run;
  struct ni_sink sink;
  struct ni_batch_words words;
  pthread_mutex_t lock; /* idle */
  struct ni_record_writer *idle;
};

int ni_records_init(struct ni_records *x, struct ni_run *r);
/* What the sorters still hold goes to the temporary file. Also after a failure. */
int ni_records_end(struct ni_records *x);
/* Then, by main. */
int ni_dataset_write(struct ni_run *r);

#endif
