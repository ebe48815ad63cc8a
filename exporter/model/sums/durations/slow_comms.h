/*
 * Which communicators are slow, told by transfer times: the shortest duration of an operation over its ranks,
 * which has no waiting in it, so that a late rank makes nobody slow. Only those that did the same work are
 * compared. Main thread.
 */
#ifndef NI_SLOW_COMMS_H
#define NI_SLOW_COMMS_H

#include "exporter/model/sums/evidence/seat_findings.h"

struct ni_slow_host { /* communicators within one host that are slow */
  uint32_t n, first;
  /* so many of them are slow, of so many that can be compared; 0: where only those that did the same are */
  uint32_t slow, compared;
  double factor, lost_us;
  size_t n_peers;
};

/* By what it was compared: "the median of 8 that did the same work". n_peers counts itself, too. */
void ni_durations_peers_text(const struct ni_summary *s, size_t n_peers, char out[80]);
/*
 * Appends those that are slow beside others with as many operations and bytes. Those within one host are
 * counted in hosts instead, by host, zeroed by the caller. -ENOMEM.
 */
int ni_durations_name_slow_comms(const struct ni_summary *s, struct ni_slow_host *hosts,
                                 struct ni_found *out);
/*
 * The same where they cannot be expected to have as many (sampled logs, requests): by what a byte takes, of
 * one function and about one size. slow_us: by communicator, what its transfers took longer than those of its
 * like, in us, 0 or more. -ENOMEM.
 */
int ni_durations_name_slow_functions(const struct ni_summary *s, struct ni_slow_host *hosts, double *slow_us,
                                     struct ni_found *out);

#endif
