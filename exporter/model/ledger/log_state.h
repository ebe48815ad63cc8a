/*
 * What the log of one process already says: so that nothing is recovered twice, and the accounts go on where they were.
 *
 * Read from the files of one session (their names begin with <host>-pid<pid>-<start>). Records belong to a communicator's
 * life: those behind its comm line (same hash, rank, init_ns). Memory: intervals of numbers, and NI_LOG_LIVES_MAX lives. One
 * thread. Ownership: ni_log_state_free(). Failure: -ENOMEM; a file that cannot be read is named in `bad`.
 */
#ifndef NI_LOG_STATE_H
#define NI_LOG_STATE_H

#include "exporter/base/map.h"
#include "exporter/base/seq_set.h"
#include "format/line.h"
#include "format/names.h"

#define NI_LOG_LIVES_MAX 262144u /* communicators in the log of one process; a log with more is not read on */

struct ni_log_life {
  bool final; /* its last lines are there */
  struct {
    struct ni_seq_set records, incomplete, in_flight; /* rec_sn */
    uint64_t flushed;                      /* sum of *_records of its dump_stats lines */
    uint64_t written;                      /* by its final line */
    uint64_t gap[NI_DROP_COUNT], gap_other; /* lost operations as gap lines name them, by cause */
  } kind[NI_KIND_COUNT];
};

struct ni_log_state {
  struct ni_log_life *life;
  size_t n, cap;
  struct ni_map names;    /* hash and rank, begun at init_ns -> life */
  size_t files;
  uint64_t next;          /* the number of a further file: above those of all that were read, wherever they lie */
  bool process_final;     /* the process's own last line is there */
  uint64_t newest_us;     /* newest dump_timestamp_us */
  char *bad;              /* first file that could not be read, with the reason */
};

/* Adds one file. start_ns: of the session; lines before the first process line with it are passed over (0: all count). */
int ni_log_state_read(struct ni_log_state *s, const char *path, uint64_t start_ns);
/* *out: the life, made when it is new, until the next call; init_ns 0: the newest of that rank. 0, -ENOMEM, -EFBIG: too many. */
int ni_log_state_life(struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns, struct ni_log_life **out);
/* The life, or NULL. */
const struct ni_log_life *ni_log_state_find(const struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns);
void ni_log_state_free(struct ni_log_state *s);

#endif
