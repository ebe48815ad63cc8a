/*
 * Who comes late to collectives, by how long these take on each rank: where own time is not known, as in
 * sampled logs, whose records are hardly ever neighbours, or where no step does what another does, as of
 * engines that serve requests.
 *
 * Model. All ranks of a collective end it together, so a rank that came so much later has so much shorter a
 * duration. Clocks of hosts have no part in that, and neither has which operations are recorded, as long as
 * all ranks record the same ones. A *seat* is a rank in a communicator. How late it comes there is the mean
 * over its operations, beside its peers in the middle: noise and stamps go down with the root of their
 * number, so much less than a kernel's length shows.
 *
 * Who is late may only pass on what it waited for elsewhere:
 * - somebody else was as late in another communicator that it is in: it waited there;
 * - all ranks of another communicator come as late elsewhere, and none of them was late in that one: they are
 *   late together. What they have in common is slow: the transfers of that communicator, or the host they are
 *   on.
 * What remains is late by itself. Three quarters of a host's ranks, of which none stands out, are the host.
 *
 * Threads: ni_seats_build() and ni_seats_find_late() the main one. Ownership: the summary's seats,
 * ni_lates_free(). Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_SEATS_H
#define NI_SUMMARY_SEATS_H

#include "exporter/model/sums/state.h"

/* Fills s->seat and r->seat_at; r->comm_at and r->process_at are there. */
int ni_seats_build(struct ni_run *r, struct ni_summary *s);

struct ni_late {
  bool host;            /* of: a host; else a process */
  bool together;        /* of a rank: it counts only together with others of its host */
  uint32_t of, comm;    /* comm: where it is late, that with the most operations */
  uint32_t late, there; /* of a host: so many of its ranks are late; all of it that met others */
  uint64_t met;         /* operations of that communicator */
  double us, lost_us;   /* how late, of one of these; sum over them, where that is largest */
  /* without it the next one would have been waited for: the sum of these differences */
  double cost_us;
  /* it has no other communicator: the others overlap its operations with computing, and lose less */
  bool at_most;
};

struct ni_lates {
  struct ni_late *item; /* largest loss first */
  size_t n;
};

/* From when to when the communicators of a process have operations, us; none have: INT64_MAX to INT64_MIN. */
struct ni_process_span {
  int64_t first_us, last_us;
};
/* of: by process. */
void ni_seats_find_spans(const struct ni_summary *s, struct ni_process_span *of);

/* slow_us: by communicator, what its transfers took longer than usual in all. */
int ni_seats_find_late(const struct ni_summary *s, const double *slow_us, struct ni_lates *out);
/* What the others waited for this rank alone in this communicator, beyond chance. */
int ni_seats_find_cost(const struct ni_summary *s, uint32_t process, uint32_t comm, double *out);
void ni_lates_free(struct ni_lates *l);

#endif
