/*
 * What one thread holds while it reads a range, shared by read.c (lines to operations) and read_streams.c
 * (operations to segments).
 *
 * Threads: a struct ni_sum_range belongs to one. Ownership: pieces are the thread's until
 * ni_range_hand_over(). Failure: -ENOMEM, -errno of the temporary file.
 */
#ifndef NI_SUMMARY_READING_H
#define NI_SUMMARY_READING_H

#include "exporter/base/sink.h"
#include "exporter/model/sums/state.h"

enum { CONTEXT_SLOTS = 64 };

/* A segment under construction, found by rank, function and size. */
struct ni_stream {
  struct ni_piece *piece;
  uint32_t member, func, cell;
  uint64_t msg_bytes;
  uint8_t type, kind;
};

struct ni_seen_context {
  bool used;
  struct ni_context c;
  uint32_t code, process, host, head_no; /* head_no: of the last line with it */
  uint64_t hash, start_ns;
  int64_t pid;
  int32_t rank, n_ranks;
  uint32_t stamp; /* number of the range's ni_stamps_seen + 1; 0: no clock line yet */
  uint8_t type;   /* of the communicator: enum ni_comm_type */
  bool wanted;    /* by --comm, --node, --rank */
};

struct ni_sum_range {
  struct ni_run *r;
  struct ni_name_cache names;
  struct ni_tally_sum t;
  void *rows; /* of the range, in r->records */
  /* of the range */
  struct ni_sum_file *f;
  struct ni_ledger *ledger; /* of the range */
  bool of_granule;          /* the index has told of all but operations and roll-ups */
  int range_no, file_no;
  uint64_t start_ns;
  uint32_t ordinal;
  struct ni_seen_context seen[CONTEXT_SLOTS], *last;
  struct ni_stream *stream, *last_stream;
  struct ni_index stream_at_hash;
  uint32_t n_streams;
  size_t cap_streams;
  uint32_t func[NI_FUNCS_NUMBERED + 1];   /* names by the parser's number; 0: not met yet */
  uint32_t algo, proto, datatype, kernel; /* of the last record */
  uint32_t mix_algo, mix_proto;
  uint8_t mix;
  struct ni_stamps_seen *stamp;
  uint32_t n_stamps;
  size_t cap_stamps;
  /* When the process of the lines had operations in flight; added to its own when the range is over. */
  struct ni_cover cover;
  uint32_t cover_of;
  uint64_t sent_bytes[2];
};

/* The segment for records of this rank, function and size in this range. */
int ni_find_or_add_stream(struct ni_sum_range *x, const struct ni_seen_context *c, const struct ni_line *l,
                          uint32_t func, struct ni_stream **out);
/* The range is over: its segments are the run's from here on. */
int ni_range_hand_over(struct ni_sum_range *x);

#endif
