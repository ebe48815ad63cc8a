/*
 * Retires operations that no callback will complete. Dump role.
 */
#ifndef NI_JUDGE_H
#define NI_JUDGE_H

#include "drain.h"

/* docs/architecture.md, completion. end: its last lines come next. */
void ni_judge(struct ni_drain *d, struct ni_comm_writer *s, enum ni_end end);

#endif
