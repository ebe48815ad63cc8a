/*
 * Partial results: what `summary` knows when it has read some of the logs, as bytes that can be put together
 * with others'.
 *
 *   shard i of N:  list of all logs ─▶ ni_shards_plan() ─▶ reads its own (ni_read_all)
 *                  ─▶ ni_partial_store() ─▶ sections
 *   merge:         sections of each ─▶ ni_partial_load() into one struct ni_run
 *                  ─▶ as if it had read all of them itself
 *
 * A partial is the state after reading, and nothing is judged or rounded in it: packed records by rank,
 * function and size; who is who; the account of each log; roll-ups, marks, covers. So what follows gives the
 * same bytes as for one process, late ranks, findings and percentiles included. Names are texts, and all lies
 * in an order that the logs alone determine: the same shards give the same bytes, whatever threads, memory,
 * and tree of merges they came from.
 *
 * Sections: options, list of logs, which shards, tables, pieces of packed records (about 256 KiB each),
 * accounts of logs, end. The first two are compared byte by byte between partials: they are the plan. A
 * section is bounded, so a partial passes through little memory, whether it comes from a file (sections.h) or
 * from another process.
 *
 * What is loaded is hostile: each number is bounded, each record unpacked and looked at. Memory: that of
 * `summary`, and the accounts of all logs, some hundred bytes each.
 *
 * Threads: the main thread, but ni_partial_account(). Ownership: r->partial is freed by ni_partial_free(r).
 * Failure: -errno with a sentence by ni_run_fail().
 */
#ifndef NI_PARTIAL_H
#define NI_PARTIAL_H

#include "exporter/base/bytes/wire.h"
#include "exporter/model/sums/state.h"

#define NI_SHARDS_MAX 65536u
#define NI_PARTIAL_FORMAT 9u

enum ni_section {
  NI_SECTION_OPTIONS = 1,
  NI_SECTION_LOGS,
  NI_SECTION_SHARDS,
  NI_SECTION_TABLES,
  NI_SECTION_PIECES,
  NI_SECTION_ACCOUNTS,
  NI_SECTION_END
};

struct ni_bytes {
  uint8_t *at;
  size_t n;
};

struct ni_partial {
  uint32_t of;                   /* how many shards there are */
  bool *have;                    /* of each: it was read, or loaded; `of` of them */
  uint32_t *shard_of;            /* of each log, from 0 */
  struct ni_bytes *account;      /* of each log, packed; at NULL: not there */
  bool *parquet;                 /* of each log: it has a Parquet file beside the partial */
  struct ni_bytes options, logs; /* the plan, as it is stored */
  bool no_pieces, apart,
      served; /* of a team (team/team.h): records stay where they were read; no process has them on two ranks;
                                * this rank works for rank 0 */
};

/* Where sections go to and come from. */
struct ni_section_to {
  void *arg;
  int (*put)(void *arg, enum ni_section id, const void *bytes, size_t n); /* 0 or -errno */
};
struct ni_section_from {
  void *arg;
  const char *name; /* for messages: the file */
  /* The next one; the bytes are valid until the next call, and 96 more behind them can be read. 0 or -errno,
   * with a sentence told to ni_run_fail(). */
  int (*get)(void *arg, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n);
};

/*
 * Which shard reads which log: files of one process together, the largest first to the shard with least
 * (LPT), ties by name. Depends on names, sizes and N alone. Files of other shards than `mine` are then not
 * read (ni_file.elsewhere). mine: from 1; 0: none is read here. of: 1 to NI_SHARDS_MAX.
 */
int ni_shards_plan(struct ni_run *r, uint32_t mine, uint32_t of);

/*
 * While reading: the account of a log goes into r->partial. Under the lock of whoever reads. Frees what l has
 * of it.
 */
int ni_partial_account(struct ni_run *r, size_t file_no, struct ni_ledger *l);

int ni_partial_store(struct ni_run *r, const struct ni_section_to *to);

/*
 * Loads the plan, which becomes that of r where it has none, else must be the same; then which shards. `with`
 * names the partial that r has its plan of. What is there twice is refused.
 */
int ni_partial_load_plan(struct ni_run *r, const struct ni_section_from *from, const char *with,
                         uint32_t **shard, size_t *n);
/* All the rest, behind that. */
int ni_partial_load(struct ni_run *r, const struct ni_section_from *from, const uint32_t *shard, size_t n);
/* Reads the logs of the plan's shard for their accounts alone: all that `check` wants. */
int ni_partial_read_accounts(struct ni_run *r);
/* All partials are loaded: the accounts become one, in the order of the logs. */
int ni_partial_settle(struct ni_run *r, struct ni_ledger *all);
/* The shards that are missing, as "3, 5-7"; out: 200 bytes. Returns how many. */
uint32_t ni_partial_missing(const struct ni_partial *p, char out[200]);
void ni_partial_free(struct ni_run *r);

/* The bytes of sections (wires.c). */
void ni_partial_wire_options(struct ni_wire *w, struct ni_run *r);
void ni_partial_wire_logs(struct ni_wire *w, struct ni_run *r);

#endif
