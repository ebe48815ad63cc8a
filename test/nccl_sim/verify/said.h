/*
 * What the logs say, in memory: records, losses, final accounting. The other side of truth_read.h. One
 * thread; everything belongs to the struct until ni_said_free. Failure: no memory ends the program with a
 * message.
 */
#ifndef NI_SIM_SAID_H
#define NI_SIM_SAID_H

#include "log_source.h"
#include "truth_read.h"

struct ni_said_op {
  int pid, rank, n_ranks, nnodes;
  uint64_t hash;
  struct ni_record r;
  char func[24], dtype[24], algo[24], proto[16], kernel[40], name[256];
  bool named, used;
};

struct ni_said_stats { /* final dump_stats of one communicator */
  int pid, rank;
  uint64_t hash;
  struct {
    uint64_t started, written, filtered, dropped, incomplete, in_flight, late;
  } k[2];
  uint64_t sampled[2]; /* of filtered: not yet met in the truth */
  uint64_t found[2], called[2], filtered_true[2], dropped_true[2], unfinished_true[2];
  bool vague; /* an abort or an end: what moved meanwhile cannot be counted from outside */
};

enum ni_said_kind { NI_SAID_GAP, NI_SAID_LATE, NI_SAID_INCOMPLETE };

struct ni_said_part { /* `gap` ranges, `late` and `incomplete` lines */
  enum ni_said_kind kind;
  int pid, rank, p2p;
  uint64_t hash, from, to;
};

struct ni_said_events { /* by process: what its final lines say of events, and what its proxy lines hold */
  int pid;
  uint64_t started[NI_EVENT_COUNT], dropped[NI_EVENT_COUNT], bytes, steps, step_lines;
};

struct ni_said {
  struct ni_said_op *ops;
  struct ni_said_op *calls; /* records without a Coll event */
  struct ni_said_stats *stats;
  struct ni_said_part *parts;
  struct ni_said_events *events;
  size_t n_ops, n_calls, n_stats, n_parts, n_events;
};

void ni_said_load(struct ni_said *s, const char *logs, struct ni_log_totals *totals);
void ni_said_free(struct ni_said *s);
/* NULL: no final line. */
struct ni_said_stats *ni_said_stats_of(struct ni_said *s, int pid, uint64_t hash, int rank);
/* Made when it is not there. */
struct ni_said_events *ni_said_events_of(struct ni_said *s, int pid);
/* How many lines of that kind are about the operation. */
int ni_said_parts_of(const struct ni_said *s, const struct ni_true_op *o, enum ni_said_kind kind);

#endif
