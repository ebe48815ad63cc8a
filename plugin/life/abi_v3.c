/* ncclProfiler_v3: NCCL 2.26; later releases only when nothing newer is there. */
#define NI_ABI 3
#include "abi_body.h"
