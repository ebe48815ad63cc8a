/* ncclProfiler_v2: NCCL 2.24 and 2.25; later releases only when nothing newer is there. */
#define NI_ABI 2
#include "abi_body.h"
