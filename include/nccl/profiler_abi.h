/*
 * The binary interface between NCCL's core and a profiler plugin, versions 1 to 7, as C structs of our own.
 *
 * Sizes and offsets were measured on x86_64 Linux against NCCL 2.23.4 to 2.31.2; the same LP64 layout holds
 * on aarch64. Every one of them stands beside its member and is asserted, so a change that breaks the
 * interface does not compile. A plugin exports one data object per version it speaks, `ncclProfiler_v1` ..
 * `ncclProfiler_v7` (the vtable itself, not a pointer to it); NCCL takes the newest it knows. Order by
 * release:
 *   2.23: v1   2.24, 2.25: v2 v1   2.26: v3 v2 v1   2.27: v4 v3 v2 v1   2.28: v5 .. v1   2.29, 2.30: v6 .. v1
 *   2.31, 2.32: v7 .. v1
 *
 * Threads: callbacks of one communicator come from its application thread, its CUDA host-function thread and
 * its proxy progress thread at the same time. Ownership: a descriptor and its state arguments live for the
 * call only; strings in it are NCCL's constants, except the communicator name, which belongs to the user.
 * Failure: results other than those of init are ignored by the core. Not promised: fields that a core's
 * translation to an older version leaves unfilled hold stack garbage (p2p.nChannels and all padding through
 * the v4 translation of 2.28 to 2.30). What NCCL declares as bool is a byte here: a bool that holds anything
 * but 0 and 1 is undefined to read, and this comes from elsewhere.
 */
#ifndef NI_NCCL_PROFILER_ABI_H
#define NI_NCCL_PROFILER_ABI_H

#include "nccl/profiler_abi_common.h"
#include "nccl/profiler_abi_v1.h"
#include "nccl/profiler_abi_v2.h"
#include "nccl/profiler_abi_v3.h"
#include "nccl/profiler_abi_v4.h"
#include "nccl/profiler_abi_v5.h"
#include "nccl/profiler_abi_v6.h"
#include "nccl/profiler_abi_v7.h"

#endif
