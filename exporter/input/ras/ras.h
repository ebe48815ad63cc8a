/*
 * What NCCL's own RAS service says of a job: its answer to STATUS as JSON, asked for over TCP (NCCL 2.28.7
 * and later) or saved in a file (`ncclras -f json >FILE`, plain or gzip).
 *
 *   ask.c: HOST:PORT ─▶ CLIENT PROTOCOL, SET FORMAT json, STATUS ─▶ text ─▶ ras.cc: ni_ras_parse()
 *       ─▶ struct ni_ras
 *                                              FILE ─▶ ni_read_whole() ─┘
 *
 * An answer is foreign text. It is refused with a sentence when it is longer than NI_RAS_BYTES, nested
 * deeper than a log may be, has more communicators or ranks than the bounds below, is cut, or is of other
 * types where the whole rests on them. A communicator that makes no sense by itself (a rank beyond its size,
 * the same rank twice, numbers that are none: NCCL has shown such, its issue 1762) is kept with `odd`, and
 * nobody judges it. RAS writes texts without escapes; quotes, backslashes and control characters in them are
 * borne where the structure can still be seen, in answers of 16 MiB or less.
 *
 * What an answer does not state is absent: counted, init_state and the like have values for it.
 *
 * Threads: any, each answer by itself. Ownership: ni_ras_free(). Source: NCCL's src/ras.
 */
#ifndef NI_RAS_H
#define NI_RAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_RAS_PORT "28028" /* of NCCL_RAS_ADDR when nobody sets it */
enum {
  NI_RAS_BYTES = 128 << 20, /* 16,384 ranks with 8 communicators each are 80 MB */
  NI_RAS_COMMS = 1 << 18,
  NI_RAS_RANKS = 1 << 20, /* of all communicators, missing ones included */
  NI_RAS_SIZE = 1 << 24,  /* ranks that a communicator may say it has */
  NI_RAS_FUNCS = 12,      /* functions that are counted; NCCL has five to eight */
  /* of a number that is not stated; RAS itself says -1 where it does not know a pid */
  NI_RAS_NONE = -1,
  NI_RAS_IN_PROGRESS = 7, /* ncclInProgress: of init_state and async_error it is no error */
};

enum ni_ras_here {
  NI_RAS_HERE = 0, /* it has answered */
  /* its process has answered, and has no such communicator: destroyed, or not made yet */
  NI_RAS_ABSENT,
  NI_RAS_UNRESPONSIVE, /* its process has not answered in time */
  NI_RAS_DEAD,         /* RAS has given its process up */
  NI_RAS_HERE_COUNT
};

struct ni_ras_rank {
  int32_t rank, cuda_dev, nvml_dev;
  int32_t init_state, async_error; /* ncclResult_t: 0 is fine; NI_RAS_NONE: not stated */
  int64_t pid;
  char host[48];                /* an address, "" where RAS does not know */
  uint64_t count[NI_RAS_FUNCS]; /* launched, by function (func of struct ni_ras) */
  bool counted;                 /* it says how many */
  bool finalize, destroy, abort;
  uint8_t here; /* enum ni_ras_here */
};

struct ni_ras_comm {
  uint64_t hash; /* the profiler's id of it */
  char secondary[48];
  int32_t size;
  size_t first, n; /* its ranks: rank[first] and on, in the order of their numbers where it is not odd */
  const char *odd; /* why nobody can make sense of it; NULL: it is sound */
};

struct ni_ras {
  struct ni_ras_comm *comm;
  struct ni_ras_rank *rank;
  size_t n_comms, cap_comms, n_ranks, cap_ranks;
  char func[NI_RAS_FUNCS][32];
  size_t n_funcs;
  size_t funcs_left_out; /* counts of functions beyond NI_RAS_FUNCS */
  char nccl_version[32],
      timestamp[32];   /* timestamp: local time of the process that answered, by its own clock */
  double collection_s; /* how long it took; below 0: not stated */
  int64_t timeouts;    /* legs of it that ran out of time; NI_RAS_NONE: not stated */
  /* the text was no JSON, and was read with what its writer had not escaped, or commas it had left out */
  bool mended;
};

/*
 * Parses len bytes; NI_PARSE_PADDING bytes behind them may be read (parse.h). 0, or -EBADMSG or -ENOMEM: why
 * is a sentence, and there is nothing to free.
 */
int ni_ras_parse(struct ni_ras *out, char *text, size_t len, char *why, size_t cap);
void ni_ras_free(struct ni_ras *r);

/* Does the file begin as an answer of RAS does? NCCL writes its own release first, then CUDA's. */
bool ni_ras_is_answer(const char *path);
/* Is this, of --ras, a file rather than HOST:PORT? It has a slash, or is there. */
bool ni_ras_is_file(const char *where);
/*
 * The answer's text and NI_PARSE_PADDING bytes 0, for free(). where: HOST:PORT, HOST, [ADDRESS]:PORT, :PORT,
 * or "": localhost, the port above; or a file. seconds: for all of it, from the connection to the last byte;
 * of a file nothing. NULL: why is a sentence that names what was asked and what to do.
 */
char *ni_ras_ask(const char *where, unsigned seconds, size_t *len, char *why, size_t cap);

#endif
