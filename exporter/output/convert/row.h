/*
 * One record as JSON of others has it, and the file it goes to. For the thread that reads the log.
 */
#ifndef NI_CONVERT_ROW_H
#define NI_CONVERT_ROW_H

#include "exporter/base/map.h"
#include "exporter/base/text/json_fields.h"
#include "format/line.h"

#define NI_NOT_STATED INT64_MIN

/*
 * Named as the columns of our Parquet files. NULL, "", NI_NOT_STATED, NAN: the log does not say; such members
 * are not written.
 */
struct ni_convert_row {
  const char *comm_name, *hostname, *kind, *coll, *timing, *algo, *proto, *datatype, *producer, *kernel;
  char id[24];        /* "0x..." of the communicator */
  char timestamp[40]; /* ISO 8601 with ns */
  uint64_t comm_hash, sn, msg_bytes, exec_us;
  int64_t rank, n_ranks, nnodes, pid, global_rank, root, nchannels, start_ns, enqueue_ns, gpu_delta_ns,
      rec_sn, tests_bytes, dump_us, exec_ns, user_tag, nccl_tag, initial_sync_ns, compute_ns, final_sync_ns,
      prev_replay_ns;
  bool symmetric, shared_span;
  double algobw, busbw;
  int64_t unit, lane; /* pid and tid of a .pfw */
};

/*
 * Text on its way into a file: put aside up to a size, then written, as a gzip member where that is asked
 * for.
 */
struct ni_convert_out {
  int fd;
  bool gzip;
  FILE *f; /* over `text`; NULL until something is written */
  char *text;
  size_t len;
  struct ni_map hosts, comms; /* of --pfw: what has its line */
};

/* The stream to write one record's lines to; NULL: no memory. */
FILE *ni_convert_stream(struct ni_convert_out *o);
/* The record's lines are complete: a cut may come here. 0 or -errno. */
int ni_convert_cut(struct ni_convert_out *o);
/* Writes the rest; frees all but fd. e: what went wrong before, or 0; returned if so. */
int ni_convert_end(struct ni_convert_out *o, int e);

/* Members that the log states; pfw: those that the event's own keys do not say. */
void ni_convert_fields(struct ni_json *j, const struct ni_convert_row *row, bool pfw);
/* What each of them is to Elasticsearch. */
extern const struct ni_convert_type {
  const char *key, *type;
} ni_convert_types[];
extern const size_t ni_convert_n_types;

/* The lines of one record. 0, -ENOMEM or -errno. */
int ni_pfw_row(struct ni_convert_out *o, const struct ni_convert_row *row);
int ni_bulk_row(struct ni_convert_out *o, const struct ni_convert_row *row);
/* The index template that goes with them. */
void ni_bulk_template(FILE *f);

#endif
