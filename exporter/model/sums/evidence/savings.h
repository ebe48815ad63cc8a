/*
 * What a run would save without the waits in one communicator, where durations tell it: of engines that
 * serve requests by themselves, and of pauses in sampled logs.
 *
 * Model. A *group* is the ranks of such a communicator. Nothing joins it with other ranks while it works, so
 * what its ranks wait for each other delays this group alone. All groups begin together, each has its share
 * of the work, and the run ends with the last of them. So without the waits the run ends sooner by them, but
 * not before the next group. Where all groups end at once somebody stopped them; then a group would have
 * served more, and the run had ended when it did.
 *
 * Stages of a pipeline are one *engine*, and wait for each other. A token is not begun before the last one
 * has left the last stage. So where what the stages compute adds up to no more than the run, they take
 * turns, and what one of them loses all of them lose. Else one computes while another does: it is not known
 * then.
 *
 * Threads: the main one, once seats are there (seats.h). Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_SAVINGS_H
#define NI_SUMMARY_SAVINGS_H

#include "exporter/model/sums/state.h"

/* out: NAN where it is not known. */
int ni_savings_find(const struct ni_summary *s, uint32_t comm, double waited_us, double *out);
/* The same of all groups on a host, which lost lost_us each. */
int ni_savings_find_of_host(const struct ni_summary *s, uint32_t host, double lost_us, double *out);

/*
 * Of sampled logs: whether the run loses what others wait for a rank that stops, in the communicator in which
 * it has most operations. They all do, sooner or later, where computing goes on behind these. A rank with one
 * communicator across hosts computes beside it: the same pause is waited for in several of its operations.
 * In a pipeline others have work left meanwhile. What is not in the logs can have made it wait.
 */
bool ni_savings_is_waited_lost(const struct ni_summary *s, uint32_t process, uint32_t comm);

#endif
