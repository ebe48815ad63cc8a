/* ncclProfiler_v1: NCCL 2.23; later releases only when nothing newer is there. */
#define NI_ABI 1
#include "abi_body.h"
