/*
 * Lines of a log -> a batch LOGS: sums by rank, communicator, function and size class.
 *
 *   tail.h ─▶ ni_rows_add_line() ─▶ rows.b: counts, nvidia, accounts; whose log it is: rows.b.file
 *
 * A communicator's GPU stands in its comm line alone, which may lie before the place where a reader goes on,
 * or in an earlier file: so it is kept for each life of a process, and comes as well from the state's lives
 * and from black boxes.
 *
 * One thread. Failure: -ENOMEM.
 */
#ifndef NI_ROWS_H
#define NI_ROWS_H

#include "exporter/base/index.h"
#include "exporter/input/scan.h"
#include "exporter/model/live/live.h"

struct ni_rows_gpu { /* of a rank of a communicator */
  int64_t pid;
  uint64_t start_ns, hash;
  int32_t comm_rank, gpu;
  char pci[16];
  bool used; /* it was asked for, or said again, since ni_rows_turn() made room last */
};
struct ni_rows_seen { /* whom a line's header names */
  struct ni_ident id; /* its name is in `name` */
  char name[256];
  struct ni_live_who who;
  uint64_t hash;                              /* of who */
  uint32_t row[NI_FUNC_COUNT][NI_LIVE_SIZES]; /* of counts, from 1; 0: not known */
};

struct ni_rows {
  struct ni_live_batch b;
  bool nvidia;
  struct ni_scan *scan;
  struct ni_rows_late *late; /* who comes last: 64 communicators, 2048 operations and 16 ranks each at most */
  struct ni_rows_gpu *gpu;
  size_t n_gpus, cap_gpus, cap_counts, cap_nvidia, cap_accounts;
  struct ni_index gpus, counts, nvidias;
  struct ni_rows_seen seen[16];
};

int ni_rows_open(struct ni_rows *r, bool nvidia, const struct ni_live *known);
/*
 * Before the boxes are looked at: of GPUs that fill half the table those stay that somebody asked for since
 * it was so last.
 */
void ni_rows_turn(struct ni_rows *r);
/* An empty batch of that file, which ends where it begins. */
void ni_rows_begin(struct ni_rows *r, const struct ni_live_file *f);
/* As ni_tail_line; arg: struct ni_rows. */
int ni_rows_add_line(void *arg, char *text, size_t len);
/* The same for a line that was taken before and is asked only whose the records behind it are. */
int ni_rows_add_marker(void *arg, char *text, size_t len);
/* So much is in the batch that the next member might not find room. */
bool ni_rows_full(const struct ni_rows *r);
/* A communicator's rank here, and its GPU, from where it is known. who NULL: its GPU alone. */
int ni_rows_comm(struct ni_rows *r, int64_t pid, uint64_t start_ns, uint64_t hash, int32_t comm_rank,
                 int32_t gpu, const char *pci, const struct ni_live_who *who);
/* A PCI address as rows have it: lower case; NULL is "". */
void ni_rows_pci(const char *pci, char out[16]);
void ni_rows_close(struct ni_rows *r);

/* Of a process line; job stays as it is where there is no id. */
void ni_rows_job(const struct ni_process_line *p, char job[64], char attempt[16]);

#endif
