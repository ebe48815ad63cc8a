/* ncclProfiler_v7: NCCL 2.31 and later. */
#define NI_ABI 7
#include "abi_body.h"
