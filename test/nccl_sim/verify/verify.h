/*
 * Private to verify.c, which joins truth and records, and verify_checks.c, which compares what was joined.
 * One thread.
 */
#ifndef NI_SIM_VERIFY_H
#define NI_SIM_VERIFY_H

#include "said.h"

struct ni_verify {
  struct ni_true truth;
  struct ni_said said;
  uint64_t errors, agreed, excused, open;
};

/* A disagreement: counted, and the first ones said. */
void ni_wrong(struct ni_verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Names an operation; valid until the next call. */
const char *ni_verify_name(const struct ni_true_op *o);

void ni_verify_values(struct ni_verify *v, struct ni_true_op *o, const struct ni_said_op *r);
/*
 * Collectives that are known by their call or from the copy engine only: each once, with the call's values.
 */
void ni_verify_calls(struct ni_verify *v);
/*
 * Was each event shown recorded, and each transfer folded, once? Where everything was asked for from the
 * beginning.
 */
void ni_verify_events(struct ni_verify *v);
void ni_verify_stats(struct ni_verify *v); /* after everything else has been joined */

#endif
