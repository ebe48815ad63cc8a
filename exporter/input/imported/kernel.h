/*
 * Names of NCCL's and RCCL's kernels. Pure; any thread.
 */
#ifndef NI_IMPORTED_KERNEL_H
#define NI_IMPORTED_KERNEL_H

#include <stdbool.h>

/* What is behind a kernel's prefix: ncclDevKernel_AllReduce_Sum_bf16_RING_LL(..),
 * ncclKernel_AllReduce_RING_LL_Sum_float(..), of NCCL before 2.11
 * ncclAllReduceRingLLKernel_sum_f16(..); rccl's alike. false: no kernel of NCCL. */
bool ni_imported_kernel(const char *name, char func[32]);

#endif
