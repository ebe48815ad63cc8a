/*
 * Whether logs are a sample that do not say so: they have no accounts (NCCL_INSPECTOR_DUMP_CONTROL_LINES=0).
 *
 * A sample keeps the same operations on all ranks of a communicator, by a hash of their numbers. So all of
 * these have as many records, and what is missing between the records is missing by chance. Small operations
 * that are left out have their places in a step, and records that are lost are one rank's.
 *
 * Pure; the main thread, once all is read.
 */
#ifndef NI_WORK_UNTOLD_SAMPLE_H
#define NI_WORK_UNTOLD_SAMPLE_H

#include "exporter/model/ledger/ledger.h"

/*
 * Of so many collectives one has a record, in the run with the fewest; 1: all, or it does not look like a
 * sample. Also without memory.
 */
double ni_find_untold_sampling(const struct ni_ledger *l);

#endif
