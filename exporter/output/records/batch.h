/*
 * A few thousand records as columns, and the Parquet file of one log.
 *
 * Model: a batch is filled by the thread that reads a range; the file takes batches in the order of the log,
 * whatever the order in which ranges are read. The range that is next appends at once; ranges behind it leave
 * their batches in a queue, and wait when the queues of all files hold more than their limit. Ranges are
 * begun in order, so the one that is next is always being read, or done.
 *
 * Columns: those of NVIDIA's exporter first, with P2P records in the same ones (coll is then "Send" or
 * "Recv", coll_sn p2p_sn); then ours and `kind`. With --compat NVIDIA's alone, without P2P, comm_name and
 * coll_timing_source (and algo and proto) there when the file's first record has them.
 *
 * Threads: ni_batch_* by the owner of the batch; ni_parquet_* by any, they lock the file. Ownership: a batch
 * that is handed to a file comes back empty, or another one does. Failure: -errno; ni_run_fail() has been
 * told why.
 */
#ifndef NI_SUMMARY_BATCH_H
#define NI_SUMMARY_BATCH_H

#include "exporter/model/sums/reading/record_row.h"
#include "exporter/model/sums/state.h"
#include "exporter/output/parquet/writer.h"

/* What a row brings itself: type here, type in a row of its own (records.c), name. Texts are names' codes. */
#define NI_BATCH_COLUMNS(X) NI_BATCH_USUAL_COLUMNS(X) NI_BATCH_RARE_COLUMNS(X)
/* clang-format off */
#define NI_BATCH_USUAL_COLUMNS(X) \
  X(uint32_t, uint32_t, context) \
  X(uint32_t, uint32_t, func) \
  X(uint32_t, uint32_t, timing) \
  X(uint32_t, uint32_t, algo) \
  X(uint32_t, uint32_t, proto) \
  X(uint32_t, uint32_t, datatype) \
  X(uint32_t, uint32_t, kind) \
  X(int64_t, int64_t, sn) \
  X(int64_t, int64_t, msg_bytes) \
  X(int64_t, int64_t, exec_us) \
  X(int64_t, int64_t, dump_us) \
  X(double, double, algobw) \
  X(double, double, busbw) \
  X(int64_t, int32_t, root) \
  X(int64_t, int32_t, nchannels) \
  X(int64_t, int64_t, exec_ns) \
  X(int64_t, int64_t, enqueue_ns) \
  X(int64_t, int64_t, gpu_delta_ns) \
  X(int64_t, int64_t, rec_sn) \
  X(int64_t, int64_t, tests_bytes)
/* clang-format on */
/* What NCCL states since 2.31, and of few operations. */
/* clang-format off */
#define NI_BATCH_RARE_COLUMNS(X) \
  X(int64_t, int64_t, user_tag) \
  X(int64_t, int64_t, nccl_tag) \
  X(int64_t, uint8_t, symmetric) \
  X(uint32_t, uint32_t, kernel) \
  X(int64_t, uint8_t, shared_span) \
  X(int64_t, int64_t, initial_sync_ns) \
  X(int64_t, int64_t, compute_ns) \
  X(int64_t, int64_t, final_sync_ns) \
  X(int64_t, int64_t, prev_replay_ns)
/* clang-format on */
/* Which of them may be null. */
#define NI_BATCH_NULLABLE(X) NI_BATCH_USUAL(X) NI_BATCH_RARE(X)
/* clang-format off */
#define NI_BATCH_USUAL(X) \
  X(algobw) \
  X(busbw) \
  X(algo) \
  X(proto) \
  X(datatype) \
  X(timing) \
  X(root) \
  X(nchannels) \
  X(exec_ns) \
  X(enqueue_ns) \
  X(gpu_delta_ns) \
  X(rec_sn) \
  X(tests_bytes)
#define NI_BATCH_RARE(X) \
  X(user_tag) \
  X(nccl_tag) \
  X(symmetric) \
  X(kernel) \
  X(shared_span) \
  X(initial_sync_ns) \
  X(compute_ns) \
  X(final_sync_ns) \
  X(prev_replay_ns)
/* clang-format on */

struct ni_batch {
  struct ni_batch *next;
  uint32_t n;
  bool mixed_contexts; /* context[] differs within the batch */
  bool has_ours;       /* any of the columns that NVIDIA's logs lack is set */
  bool has_rare;       /* any of NI_BATCH_RARE is set; else their has_...[] are not filled in */
#define X(type, narrow, name) type name[NI_BATCH_ROWS];
  NI_BATCH_COLUMNS(X)
#undef X
#define X(name) uint8_t has_##name[NI_BATCH_ROWS];
  NI_BATCH_NULLABLE(X)
#undef X
};

/* Codes that batches need for constant texts. */
struct ni_batch_words {
  uint32_t timing[NI_TIMING_COUNT], kind[NI_KIND_COUNT];
};
int ni_batch_words(struct ni_run *r, struct ni_batch_words *w);

/* Adds a row; the batch must have room. A name whose number is 0 is none: the column is null there. */
void ni_batch_add(struct ni_batch *b, const struct ni_batch_words *w, const struct ni_record_row *row);

void ni_batch_clear(struct ni_batch *b); /* no rows; also where there was nothing yet */

int ni_parquet_new(struct ni_sum_file *f);
/*
 * Takes the rows of *batch as the next ones of this range; *batch is empty afterwards and may be another one.
 */
int ni_parquet_append(struct ni_run *r, struct ni_sum_file *f, int range, struct ni_batch **batch);
/*
 * Without turns, for a file that has no ranges: rows as the next ones; finish. f->out is as ni_parquet_new()
 * made it.
 */
int ni_parquet_write(struct ni_run *r, struct ni_sum_file *f, const struct ni_batch *b);
int ni_parquet_close(struct ni_run *r, struct ni_sum_file *f);
/* The range is over. After the last one the file is finished and closed. */
int ni_parquet_range_done(struct ni_run *r, struct ni_sum_file *f, int range);
void ni_parquet_abort(struct ni_sum_file *f);

#endif
