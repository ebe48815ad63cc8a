/* How the processes of a job stand, a part of the verdict. One thread. */
#ifndef NI_HANG_FATE_H
#define NI_HANG_FATE_H

#include "exporter/model/hang/verdict.h"

/* Fills fate, earlier and limit_ns. 0 or -ENOMEM. */
int ni_hang_find_fate(struct ni_hang_verdict *v);
/*
 * True: nothing is known of this process as of now. Copies of boxes came from other machines and none from
 * its own, and its log is older than 60 s, or than after_ns if that is less.
 */
bool ni_hang_is_silent(const struct ni_hang_verdict *v, const struct ni_hang_process *p);
uint64_t ni_hang_last_sign(const struct ni_hang_process *p);

#endif
