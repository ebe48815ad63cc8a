/*
 * How the accounts of a communicator stand: started = written + filtered + dropped + incomplete + in flight,
 * by kind of operation and of event. Callbacks and dump side count apart (ni_comm_kind, ni_account); here
 * they are put together.
 *
 * Dump role; callbacks may count meanwhile. `started` is read last, so what starts while we add up appears in
 * flight.
 */
#ifndef NI_ACCOUNTS_H
#define NI_ACCOUNTS_H

#include "comm_writer.h"

struct ni_writer;

/* What of one kind has no record for this cause, by callbacks and dump side together. */
uint64_t ni_accounts_dropped(const struct ni_comm_writer *s, int kind, enum ni_drop why);
/* Operations announced and not yet settled by any counter; negative: counted twice, which never happens. */
int64_t ni_accounts_unsettled(const struct ni_comm_writer *s, int kind);
static inline int ni_accounts_any_unsettled(const struct ni_comm_writer *s) {
  return ni_accounts_unsettled(s, NI_KIND_COLL) || ni_accounts_unsettled(s, NI_KIND_P2P);
}
/* Operations that have finished and whose records are on no disk, of all communicators. */
uint64_t ni_accounts_unwritten(const struct ni_writer *w);
/* Adds what callbacks have announced of both kinds, and what of it found no slot. */
void ni_accounts_add(const struct ni_comm_writer *s, uint64_t *started, uint64_t *dropped);

/* The accounting of one kind, as a dump_stats line has it. */
void ni_accounts_fill(struct ni_comm_writer *s, int kind, int final, struct ni_kind_counts *o);
/* Operations in flight now, by walking the states of their slots. */
uint64_t ni_accounts_walked(struct ni_comm_writer *s, enum ni_kind kind);

/* The same of events: every kind of them. */
void ni_accounts_events(const struct ni_event_store *st, const struct ni_event_writer *ev,
                        struct ni_event_stats *out);
/* The open block is on disk. */
void ni_accounts_settle_events(struct ni_event_writer *ev);

#endif
