/* ncclProfiler_v6: NCCL 2.29 and 2.30. */
#define NI_ABI 6
#include "abi_body.h"
