/*
 * Xids: errors that the driver tells once, when they happen. A thread of its own waits for them, from the first reading on.
 *
 * What happened before ni_xid_watch() is not seen. watch() and free() from one thread, read() from any.
 */
#ifndef NI_XID_H
#define NI_XID_H

#include "nvml.h"

struct ni_xid;

/* NULL without memory, or where this NVML has no events. */
struct ni_xid *ni_xid_new(const struct ni_nvml *n);
/* Before the first read(). *number: the GPU's here. A code of NVML. */
int ni_xid_watch(struct ni_xid *x, ni_nvml_handle device, size_t *number);
/* out[0]: how many, out[1]: the last one, 0: none. A code of NVML: not OK while they cannot be waited for. */
int ni_xid_read(struct ni_xid *x, size_t number, uint64_t out[2]);
/* Waits for the thread, 0.25 s at most. */
void ni_xid_free(struct ni_xid *x);

#endif
