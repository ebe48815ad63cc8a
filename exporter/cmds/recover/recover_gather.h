/*
 * Which operations of a box are not in the log, by communicator: what `recover` writes lines of (recover_box.c).
 *
 * One thread. Ownership: ni_recover_gather_free(). Failure: -ENOMEM; what cannot be is counted in out->damaged.
 */
#ifndef NI_RECOVER_GATHER_H
#define NI_RECOVER_GATHER_H

#include "exporter/input/box/box_decode.h"
#include "recover_box.h"
#include "recover_lines.h"

/* Which operation, and its place in the order: the box has the rest, so a large box does not make large lists. */
struct ni_recover_ref {
  uint64_t rec_sn;
  uint64_t sn;       /* of those that are numbered here; of called ones ticks_start until then */
  uint32_t slot;
  uint8_t kind;
  bool numbered;
};

struct ni_recover_list {
  struct ni_recover_ref *op;
  size_t n, cap;
};

/* One communicator whose accounts are not closed yet. */
struct ni_recover_life {
  struct ni_box_comm c;
  size_t index;
  const struct ni_log_life *log; /* NULL: the log does not know it */
  struct ni_recover_list finished, in_flight, given_up;
  struct ni_recover_list called;        /* collectives known by their call alone, without a number yet */
  struct ni_seq_set had_one; /* of communicators that have some: calls whose operation is, or was, in the box */
};

struct ni_recover_job {
  const struct ni_box *b;
  const struct ni_log_state *log;
  struct ni_recover_life *life;  /* by index of the box's communicators; c.phase 0: nothing to do there */
  size_t n;
  bool live, gpu_only;
  bool expires;  /* the process removed old files of its log */
  uint64_t gone; /* records of communicators that are open in them */
  bool news; /* the log does not have it all */
  struct ni_log_part part;
  struct ni_ident process;
  struct ni_recovered *out;
};

int ni_recover_gather(struct ni_recover_job *j);
/* In order of numbers; a number that comes twice in a box is damage, and comes once into the log. */
void ni_recover_sort(struct ni_recover_job *j, struct ni_recover_list *l);
void ni_recover_gather_free(struct ni_recover_job *j);

#endif
