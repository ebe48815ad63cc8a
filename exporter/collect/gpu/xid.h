/*
 * Xids: errors that the driver tells once, when they happen. A thread of its own waits for them, from the first reading on.
 *
 * What happened before ni_xid_watch() is not seen. watch() and free() from one thread, read() from any.
 */
#ifndef NI_XID_H
#define NI_XID_H

#include "nvml.h"

struct ni_xid;

/* Before the first read(). *x is NULL for the first GPU. A code of NVML. */
int ni_xid_watch(struct ni_xid **x, const struct ni_nvml *n, ni_nvml_handle device);
/* Of a GPU that is watched. out[0]: how many, out[1]: the last one, 0: none. A code of NVML: not OK while they cannot be waited for. */
int ni_xid_read(struct ni_xid *x, ni_nvml_handle device, uint64_t out[2]);
/* Waits for the thread, 0.25 s at most. */
void ni_xid_free(struct ni_xid *x);

#endif
