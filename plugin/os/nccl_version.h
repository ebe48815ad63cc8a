/*
 * Which NCCL has loaded us. Asked once, in the first init of the process; may block (dynamic linker).
 */
#ifndef NI_NCCL_VERSION_H
#define NI_NCCL_VERSION_H

/* ncclGetVersion's number (2.27.3 -> 22703, 2.30.7 -> 23007), 0 when it cannot be found. mask: the activation mask, an
 * int inside libnccl, through which the library is found when its symbols are not global. */
int ni_nccl_version(const void *mask);

#endif
