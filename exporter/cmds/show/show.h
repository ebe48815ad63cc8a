/*
 * What show reads, and says. Main thread; rows of a part belong to the thread that reads it.
 */
#ifndef NI_SHOW_H
#define NI_SHOW_H

#include "exporter/cli/words.h"
#include "exporter/index/atlas.h"
#include "exporter/model/clocks/hosts.h"
#include "exporter/model/ledger/read.h"

/* A record of an operation. */
struct ni_show_row {
  uint64_t hash, sn, bytes, exec_ns;
  int64_t start_ns, pid; /* start_ns: NI_NO_START: not told */
  int64_t job_rank;      /* its rank in the job; -1: not known */
  uint32_t run;
  int32_t rank, n_ranks, peer;
  bool p2p, graph;
  uint8_t timing;
  char func[40], comm[64], host[72], algo[24], proto[24];
};

struct ni_show {
  struct ni_inputs inputs;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_filters filter; /* comm, coll, rank, sn, tag */
  struct ni_atlas_options index;
  bool json;
  /* Of --pattern: */
  bool pattern, all;
  unsigned jobs;
  uint64_t memory;
  const char *step_by;
  struct ni_progress progress;
  struct ni_atlas *atlas;
  struct ni_atlas_wants wants;
  struct ni_ledgers ledgers;
  struct ni_clocks clocks; /* by which starts are right, once all is read */
  struct ni_show_rows {
    struct ni_show_row *item;
    size_t n, cap;
  } rows;
};

/* By what names an operation: 0 where both are records of the same one. */
int ni_show_by_operation(const struct ni_show_row *x, const struct ni_show_row *y);
/* All operations of the rows, which are in order, on standard output. 0 or -ENOMEM. */
int ni_show_say(const struct ni_show *s);

#endif
