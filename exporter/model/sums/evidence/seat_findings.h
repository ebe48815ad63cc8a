/*
 * Findings by who comes last to each operation: of sampled logs (one record in N, the same ones on all ranks
 * of a communicator), where waits are not in the logs, and of requests of inference. And the list of findings
 * that all judgements by durations fill.
 *
 * Threads: the main one. Ownership: the caller frees the list's items, and what a finding holds. Failure:
 * -ENOMEM.
 */
#ifndef NI_SUMMARY_SEAT_FINDINGS_H
#define NI_SUMMARY_SEAT_FINDINGS_H

#include "exporter/base/text/put.h"
#include "exporter/model/sums/state.h"

struct ni_found {
  struct ni_finding *item;
  size_t n, cap;
};

/* A new one, of the level that its kind has mostly; NULL: no memory. */
struct ni_finding *ni_found_append(struct ni_found *l, enum ni_finding_kind kind, uint32_t of);
/*
 * Of requests: what the ranks of a communicator lost of their time (f->lost_us), and what the run would save,
 * which is put into f->cost_us. Of other logs nothing.
 */
int ni_found_put_saving(struct ni_put_text *w, const struct ni_summary *s, uint32_t comm,
                        struct ni_finding *f);

/* slow_us: by communicator. explained: by host; set where what makes it slow is named. */
int ni_found_late_seats(const struct ni_summary *s, const double *slow_us, struct ni_found *out,
                        bool *explained);
/*
 * Who pauses, and in sampled logs with roll-ups who is late by these (rolled_waits.h, rolled_totals.h): these
 * count all operations, so a rank that they contradict is taken out. Without roll-ups by records alone.
 */
int ni_found_waited_for(const struct ni_summary *s, struct ni_found *out, bool *explained);
int ni_found_slow_cpus(const struct ni_summary *s, struct ni_found *out, bool *explained);
/* Hosts whose GPUs are slow, by their paces (blame/host_paces.h), but for those whose CPU is. */
int ni_found_slow_gpus(const struct ni_summary *s, struct ni_found *out, bool *explained);

#endif
