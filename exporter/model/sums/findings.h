/* What a summary says in sentences: whom it names, and why. Main thread. */
#ifndef NI_SUMMARY_FINDINGS_H
#define NI_SUMMARY_FINDINGS_H

#include "model.h"

/* What is named and from when on: one sentence. */
const char *ni_findings_rules(const struct ni_summary *s, char out[320]); /* returns out */
/* Why own time is not known: a constant. */
extern const char ni_why_sampled[];
/* Noise on all ranks is worth a sentence, but not one for each. NULL: there is none. */
const char *ni_finding_of_all(const struct ni_summary *s, char out[128]);
/* The first line: whose logs these are, hosts, ranks, how long, complete or not. Returns out. */
enum { NI_HEAD_TEXT = 512 };
const char *ni_head_text(const struct ni_summary *s, char out[NI_HEAD_TEXT]);
/* It accuses nobody: shown apart, behind all that does. */
bool ni_finding_is_note(const struct ni_finding *f);
/* What the run's time consists of, and the steps: a line each. NULL: not known. */
const char *ni_cost_text(const struct ni_summary *s, char out[320]);
const char *ni_steps_text(const struct ni_summary *s, char out[320]);
/* How long a step takes, in us: p10, p50, p90 over the bins. False: not known, no memory. */
bool ni_steps_us(const struct ni_summary *s, double out[3]);

#endif
