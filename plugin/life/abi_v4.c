/* ncclProfiler_v4: NCCL 2.27 natively; 2.28 to 2.30 only when v5 and v6 are not there. */
#define NI_ABI 4
#include "abi_body.h"
