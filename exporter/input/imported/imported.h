/*
 * What another program recorded of one rank, as far as a log can hold it: what each format's room
 * (exporter/input/<format>/) gives and `import` (exporter/cmds/import/) makes a log of.
 *
 *   files of a process, or of a host ─▶ read (the format's room)
 *       ─▶ a struct ni_imported for each process, taken one by one
 *   ─▶ what all of them say together (settle.h) ─▶ numbers, by all ranks (align.h) ─▶ lines (log.h)
 *
 * What the source does not say stays unsaid: NI_NO_SN, -1, 0, "" or NI_IMPORTED_NEVER, as the member says.
 *
 * Bounds: so many of each as the constants say; a source with more of them is refused (-EFBIG), so one rank
 * is 150 MB at most. Threads: one for each struct. Ownership: ni_imported_free(). Failure: -errno.
 */
#ifndef NI_IMPORTED_H
#define NI_IMPORTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/index.h"
#include "format/record.h"
#include "kernel.h"

#define NI_IMPORTED_NEVER INT64_MIN
#define NI_IMPORTED_DAY INT64_C(1577836800000000000) /* 2020-01-01 */
enum {
  NI_IMPORTED_OPS = 1 << 21,
  NI_IMPORTED_COMMS = 1 << 12,
  NI_IMPORTED_STEPS = 1 << 16,
  NI_IMPORTED_FUNCS = 64
};

struct ni_imported_op {
  int64_t start_ns;   /* Unix: of its kernel; NI_IMPORTED_NEVER: its length alone is known */
  int64_t enqueue_ns; /* Unix: when the CPU launched it; NI_IMPORTED_NEVER */
  uint64_t dur_ns;
  uint64_t bytes;       /* coll_msg_size_bytes; 0 where `sized` is not set */
  uint64_t seq;         /* the source's number of the collective in its communicator; NI_NO_SN */
  uint32_t comm, step;  /* step: its number + 1; 0: in none */
  int32_t root;         /* of a collective, or the peer; -1 */
  uint32_t blocks : 24; /* channels of its kernel; 0: not known */
  uint32_t func : 8;    /* index into funcs */
  uint8_t datatype;     /* ni_imported_datatype(); 0: none */
  uint8_t kind;         /* enum ni_kind */
  uint8_t algo, proto;  /* index into funcs + 1; 0: not stated */
  uint8_t timing;       /* enum ni_timing: whose clock the length is of */
  bool sized, graph;
};

struct ni_imported_comm {
  uint64_t hash;  /* the same of all its ranks */
  char name[128]; /* "": none */
  /* rank 0 of 0: not known, and no other rank's communicator is this one; gpu: -1 */
  int32_t rank, n_ranks, gpu;
  /* not known, but the hash is that of the others: settle.h looks who they are */
  bool open;
  bool died; /* its recording has no end */
  /* operations without a record: no room for them; begun, and never told to have ended */
  uint64_t dropped, leaked;
  uint64_t untimed; /* of its proxy: operations and steps that were not timed */
};

struct ni_imported_step {
  int64_t ns; /* when it began */
  uint32_t number;
};

struct ni_imported {  /* ni_imported_init() */
  const char *path;   /* the source; the caller's */
  const char *unread; /* one of several files that could not be read; NULL: none. The caller's */
  size_t n_unread;
  char host[256];                    /* "": not stated */
  int32_t rank, world, nccl_version; /* of the job; -1: not stated */
  int64_t pid;                       /* -1: not stated */
  /* what the source covers: first start or launch, last end. first > last: nothing */
  int64_t first_ns, last_ns;
  bool rank_of_name; /* the rank is from the file's name */
  bool rank_of_comm; /* from the communicator that all processes are in */
  bool numbered;     /* seq of each collective is the log's coll_sn */
  bool undated;      /* its times count from NI_IMPORTED_DAY: the source has no date */
  /* Unix: when the source was written last, where operations have no start; 0 */
  int64_t written_ns;
  struct ni_imported_op *op;
  size_t n, cap;
  struct ni_imported_comm *comm;
  size_t n_comms, cap_comms;
  struct ni_index at_hash;
  struct ni_imported_step *step;
  size_t n_steps, cap_steps;
  char funcs[NI_IMPORTED_FUNCS][32];
  unsigned n_funcs;
  /* Of the operations: */
  uint64_t unlaunched; /* no launch is known */
  uint64_t unsized;    /* no size */
  uint64_t ungrouped;  /* no communicator, or no rank in it */
  uint64_t bad;        /* events that could not be read, or whose time cannot be */
};

void ni_imported_init(struct ni_imported *m, const char *path);
void ni_imported_free(struct ni_imported *m);

/* Who takes what was read of a process: it is the taker's from then on. Not 0 ends the reading. */
typedef int ni_imported_take(void *arg, struct ni_imported *m);

/*
 * A communicator by its hash: made, with the other members unset, where it is new (*is_new). -ENOMEM, -EFBIG.
 */
int ni_imported_comm(struct ni_imported *m, uint64_t hash, bool *is_new, uint32_t *comm);
/* Adds a communicator, whoever else has its hash: a process of several GPUs has it more than once. */
int ni_imported_add_comm(struct ni_imported *m, uint64_t hash, uint32_t *comm);
/*
 * The number of a function's name, or of an algorithm's, a protocol's; beyond NI_IMPORTED_FUNCS - 1 different
 * ones, that of "Other".
 */
unsigned ni_imported_func(struct ni_imported *m, const char *name);
int ni_imported_op(struct ni_imported *m, const struct ni_imported_op *op);
int ni_imported_step(struct ni_imported *m, int64_t ns, uint32_t number);

/* Operations by start (those without one stay in their order), steps by begin; each operation gets the step
 * that it was launched in. Sets first_ns and last_ns; without any start both are written_ns. */
void ni_imported_order(struct ni_imported *m);

/* The number of a datatype as the log spells it, and back. 0: "". */
const char *ni_imported_datatype(uint8_t number);
uint8_t ni_imported_datatype_number(const char *name);

#endif
