/*
 * Where the log of a box lies, what it says already, and where the part may go.
 *
 * What a box says about its log is text that anybody may have written. Its log is a file of the same owner,
 * found among the paths of the command line, where the box says, or in --output; with --output, which names
 * the place, the owner is not asked for. A name out of the box becomes a name in a folder, never a path. A
 * folder that it names is made and written to with the rights of the box's owner alone (as_user.h), and by
 * root for a box of root's own only where root found it itself.
 *
 * What the log says is read from the files of one session (their names begin with <host>-pid<pid>-<start>).
 * Records belong to a communicator's life: those behind its comm line (same hash, rank, init_ns). Memory:
 * intervals of numbers, and NI_LOG_LIVES_MAX lives. A file that cannot be read is named in `bad`.
 *
 * One thread. ni_place_free(). Failure: -ENOMEM.
 */
#ifndef NI_RECOVER_PLACE_H
#define NI_RECOVER_PLACE_H

#include "exporter/base/out_file.h"
#include "exporter/base/map.h"
#include "exporter/base/seq_set.h"
#include "exporter/input/box/sources.h"
#include "format/line.h"
#include "format/names.h"

/* communicators in the log of one process; a log with more is not read on */
#define NI_LOG_LIVES_MAX 262144u

struct ni_log_life {
  bool final; /* its last lines are there */
  struct {
    struct ni_seq_set records, incomplete, in_flight; /* rec_sn */
    uint64_t flushed;                                 /* sum of *_records of its dump_stats lines */
    uint64_t written;                                 /* by its final line */
    uint64_t gap[NI_DROP_COUNT], gap_other;           /* lost operations as gap lines name them, by cause */
  } kind[NI_KIND_COUNT];
};

struct ni_log_state {
  struct ni_log_life *life;
  size_t n, cap;
  struct ni_map names; /* hash and rank, begun at init_ns -> life */
  size_t files;
  /* the number of a further file: above those of all that were read, wherever they lie */
  uint64_t next;
  bool process_final; /* the process's own last line is there */
  uint64_t newest_us; /* newest dump_timestamp_us */
  char *bad;          /* first file that could not be read, with the reason */
};

/*
 * Adds one file. start_ns: of the session; lines before the first process line with it are passed over (0:
 * all count).
 */
int ni_log_state_read(struct ni_log_state *s, const char *path, uint64_t start_ns);
/*
 * *out: the life, made when it is new, until the next call; init_ns 0: the newest of that rank. 0, -ENOMEM,
 * -EFBIG: too many.
 */
int ni_log_state_life(struct ni_log_state *s, uint64_t hash, int32_t rank, uint64_t init_ns,
                      struct ni_log_life **out);
/* The life, or NULL. */
const struct ni_log_life *ni_log_state_find(const struct ni_log_state *s, uint64_t hash, int32_t rank,
                                            uint64_t init_ns);
void ni_log_state_free(struct ni_log_state *s);

struct ni_place {
  struct ni_log_state log;
  char stem[256];     /* name of the part without its extension */
  char *dir;          /* where it goes; NULL: nobody says */
  char *logs;         /* where its log is; NULL: nowhere that we looked */
  char said[4096];    /* where the box says that it is; "": it does not */
  bool elsewhere;     /* the box of a job that was not asked for */
  const char *closed; /* a folder that could not be searched, with its errno; or NULL */
  int error;
};

int ni_place_find(struct ni_place *p, const struct ni_box_sources *s, const struct ni_inputs *in,
                  const char *output, const struct ni_box *b);
void ni_place_free(struct ni_place *p);

/* ---- the part's file ---- */

/*
 * A stream whose lines go to fd as gzip; fclose() syncs and says what went wrong, and leaves fd open. NULL:
 * -ENOMEM.
 */
FILE *ni_recover_lines(int fd);
/*
 * Names the file by the first free stem.N.jsonl.gz from N on; 0 is stem.jsonl.gz. Its name is in name. 0 or
 * -errno.
 */
int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size);

#endif
