/*
 * The numbers that v1 has for names, as texts. They are those of NCCL 2.23's own enums (ncclFunc_t,
 * ncclDataType_t, the algorithm and protocol numbers of its device.h). The core's later translation to v1
 * puts Send, PAT, SIMPLE and ncclFloat64 for what it does not know (callbacks 1.4), which cannot be seen
 * here. Constant; any thread.
 */
#ifndef NI_ABI_V1_NAMES_H
#define NI_ABI_V1_NAMES_H

static const char *const ni_v1_func[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                         "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const ni_v1_datatype[] = {
    "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
    "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
static const char *const ni_v1_algo[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                         "NVLS_TREE", "PAT"};
static const char *const ni_v1_proto[] = {"LL", "LL128", "SIMPLE"};

#define NI_V1_NAME(table, value) \
  ((value) < sizeof ni_v1_##table / sizeof *ni_v1_##table ? ni_v1_##table[value] : "Unknown")

#endif
