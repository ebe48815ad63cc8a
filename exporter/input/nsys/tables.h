/*
 * An export's tables as arrays: kernels and ranges of NCCL, steps, what is said of the machine. What each
 * row is comes from words.h and payload.h; what belongs together from gather.c.
 *
 * Threads: one for each. Ownership: ni_nsys_tables_free(), also after failure. Failure: see nsys.h.
 */
#ifndef NI_NSYS_TABLES_H
#define NI_NSYS_TABLES_H

#include "database.h"
#include "payload.h"
#include "words.h"

struct ni_nsys_kernel {
  uint64_t process;               /* globalPid, without a thread; 0: not said */
  int64_t correlation;            /* NI_DB_NONE */
  int64_t start, end;             /* ns of the session */
  int64_t device, stream, blocks; /* NI_DB_NONE; blocks: 0 */
  int64_t launch;                 /* when the CPU launched it; NI_DB_NONE */
  uint64_t thread;                /* globalTid of the launch */
  uint32_t range;                 /* the one around the launch; UINT32_MAX: none */
  char func[32];
  uint8_t calls; /* of the first one of its correlation: how many calls had that */
  bool graph;
  enum ni_func torch; /* what PyTorch called it; NI_FUNC_OTHER */
};

struct ni_nsys_range_row {
  uint64_t thread; /* globalTid */
  int64_t start, end;
  enum ni_nsys_range what;
  enum ni_func func;
  uint32_t group; /* of ncclGroupEnd: which one it ends; UINT32_MAX */
  struct ni_payload_said said;
};

struct ni_nsys_step {
  uint64_t process, word; /* word: hash of the text before the number */
  int64_t start, end;
  uint32_t number;
};

struct ni_nsys_tables {            /* all 0: empty */
  struct ni_nsys_kernel *kernel;   /* by process, correlation and start */
  struct ni_nsys_range_row *range; /* by thread and start */
  struct ni_nsys_step *step;
  struct ni_nsys_rank {
    uint64_t process;
    int32_t rank;
  } *rank; /* MPI_RANKS */
  size_t n_kernels, cap_kernels, n_ranges, cap_ranges, n_steps, cap_steps, n_ranks, cap_ranks;
  int64_t session_ns; /* Unix: when ns 0 was; NI_DB_NONE: not said */
  char host[256];
  int32_t env_rank, env_world; /* that of the session's environment; -1 */
  uint64_t bad;                /* kernels whose time cannot be */
};

/* The process of a thread. */
static inline uint64_t ni_nsys_process(uint64_t thread) { return thread & ~UINT64_C(0xffffff); }

int ni_nsys_tables(struct ni_nsys_tables *t, struct ni_db *db);
void ni_nsys_tables_free(struct ni_nsys_tables *t);

#endif
