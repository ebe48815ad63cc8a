/* How the processes of a job stand, a part of the verdict. One thread. */
#ifndef NI_HANG_FATE_H
#define NI_HANG_FATE_H

#include "verdict.h"

/* Fills fate, earlier and wall_ns. 0 or -ENOMEM. */
int ni_hang_find_fate(struct ni_hang_verdict *v);
uint64_t ni_hang_last_sign(const struct ni_hang_process *p);

#endif
