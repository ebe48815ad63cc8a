/*
 * What two runs do differently in a step.
 *
 * Of each run a digest is kept, which holds no text of its logs: lanes of its programs, and in each which
 * operations come how often. Programs of the same global rank are compared; what several ranks have
 * differently is one change. Communicators are found again by their label, number of ranks and peer, those
 * left over without their label, since roles are told from what a run does. The order is compared lane by
 * lane.
 *
 * Threads: one. Ownership: ni_digest_free(). Failure: -ENOMEM.
 */
#ifndef NI_PATTERN_CHANGES_H
#define NI_PATTERN_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_pattern;
struct ni_run;
struct ni_summary;

struct ni_digest {
  struct ni_digest_lane *lane;
  struct ni_digest_kind *kind;
  struct ni_digest_program {
    uint32_t first, n; /* lanes */
  } *program;
  struct ni_digest_rank {
    int32_t rank; /* global */
    uint32_t program;
  } *rank; /* by global rank; those with a program */
  size_t n_lanes, cap_lanes, n_kinds, cap_kinds, n_programs, n_ranks;
};

int ni_digest_make(struct ni_digest *d, const struct ni_pattern *p, const struct ni_run *r,
                   const struct ni_summary *s);
void ni_digest_free(struct ni_digest *d);

enum ni_step_change_kind {
  NI_CHANGE_CAME,
  NI_CHANGE_WENT,
  NI_CHANGE_NUMBER, /* as many a step */
  NI_CHANGE_SIZE,
  NI_CHANGE_DATATYPE,
  NI_CHANGE_ALGORITHM,    /* or protocol */
  NI_CHANGE_COMMUNICATOR, /* the same operations on another one */
  NI_CHANGE_ORDER,
  NI_CHANGE_KINDS
};
extern const char *const ni_step_change_names[NI_CHANGE_KINDS];

#define NI_CHANGES 256 /* kept; all are counted */
struct ni_step_change {
  enum ni_step_change_kind kind;
  char func[64], comm[96], comm_b[96]; /* as text for people has them; comm_b: of COMMUNICATOR */
  uint64_t bytes_a, bytes_b;           /* UINT64_MAX: they vary */
  uint64_t times_a, times_b;           /* in a step */
  char was[64], is[64];                /* of DATATYPE, ALGORITHM */
  uint32_t ranks;                      /* that have it */
};
struct ni_step_changes {
  bool known; /* both have programs of the same ranks */
  struct ni_step_change change[NI_CHANGES];
  size_t n, left_out;
  uint32_t ranks; /* compared */
};

int ni_step_changes_find(const struct ni_digest *a, const struct ni_digest *b, struct ni_step_changes *out);
/* The change as a sentence, without a full stop. Returns out. */
const char *ni_step_change_text(const struct ni_step_changes *all, const struct ni_step_change *c,
                                char out[400]);

#endif
