/* What a summary says in sentences: whom it names, and why. Main thread. */
#ifndef NI_SUMMARY_FINDINGS_H
#define NI_SUMMARY_FINDINGS_H

#include "model.h"

/*
 * Judges communicators, processes and hosts, and fills `finding`. Reads comm, process, host and by_comm. -ENOMEM.
 * ni_findings_rules(): what is named and from when on, one sentence.
 */
int ni_findings(struct ni_summary *s);
const char *ni_findings_rules(char out[320]); /* returns out */
/* Noise on all ranks is worth a sentence, but not one for each. NULL: there is none. */
const char *ni_finding_of_all(const struct ni_summary *s, char out[128]);

#endif
