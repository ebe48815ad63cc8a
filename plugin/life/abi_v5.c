/* ncclProfiler_v5: NCCL 2.28. */
#define NI_ABI 5
#include "abi_body.h"
