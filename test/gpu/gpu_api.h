/*
 * The parts of NCCL's and the CUDA driver's interface that the GPU driver uses, resolved at run time.
 *
 * Nothing of NVIDIA's is needed to build: the types are written here from the documented C interfaces, and
 * the functions come from dlopen (libnccl.so.2, libcuda.so.1). The CUDA driver interface is used instead of
 * the runtime, because it is there wherever a GPU is, and its streams and events are the runtime's. Functions
 * marked OPTIONAL may be missing.
 *
 * Threads: ni_gpu_open once, before use from any thread; the table is read-only afterwards. Ownership: the
 * libraries stay open until the process ends. Failure: a message with the name of the library or function in
 * `why`.
 */
#ifndef NI_TEST_GPU_API_H
#define NI_TEST_GPU_API_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ni_nccl_comm;
typedef struct CUstream_st *ni_stream;
typedef struct CUevent_st *ni_event;
typedef struct CUgraph_st *ni_graph;
typedef struct CUgraphExec_st *ni_graph_exec;
typedef uint64_t ni_devptr;

struct ni_unique_id {
  char internal[128];
};

enum { NI_NCCL_SUCCESS = 0, NI_NCCL_INVALID_ARGUMENT = 4, NI_NCCL_IN_PROGRESS = 7 };
enum { NI_NCCL_SUM = 0 };
enum { NI_CUDA_SUCCESS = 0, NI_CUDA_NOT_READY = 600 };
enum { NI_CUDA_CC_MAJOR = 75 }; /* device attribute: compute capability, major */

/* NCCL's numbers of datatypes, in the order of its enum; names as NCCL prints them. */
enum { NI_DT_UINT8 = 1, NI_DT_FLOAT32 = 7, NI_DT_FLOAT8E4M3 = 10, NI_DT_COUNT = 12 };
static const char *const ni_dt_names[NI_DT_COUNT] = {
    "ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",   "ncclInt64",      "ncclUint64",
    "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

/*
 * The first members of ncclConfig_t, up to the name. NCCL reads `size` bytes and takes its defaults for the
 * rest; `version` says which members are meant. 2.27 is the oldest release that has a use for the name.
 */
struct ni_nccl_config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char *net_name;
  int split_share, traffic_class;
  const char *comm_name;
};
#define NI_NCCL_CONFIG(name_) \
  {sizeof(struct ni_nccl_config), \
   0xcafebeef, \
   22703, \
   INT_MIN, \
   INT_MIN, \
   INT_MIN, \
   INT_MIN, \
   NULL, \
   INT_MIN, \
   INT_MIN, \
   name_}

/*
 * ncclCollConfig_t of 2.31, which later releases only make longer: a call's own settings, of which the tag is
 * used here. NULL and INT_MIN: NCCL decides.
 */
struct ni_coll_config {
  size_t size;
  unsigned magic;
  unsigned version;
  void *extension;
  int min_ctas, max_ctas, nvls_ctas, cga_cluster_size;
  const char *algorithms;
  int force_algorithms, cta_policy;
  uint64_t tag; /* what a profiler gets as userTag; 0: none */
};
#define NI_COLL_CONFIG(tag_) \
  {sizeof(struct ni_coll_config), \
   0xcafebeef, \
   23100, \
   NULL, \
   INT_MIN, \
   INT_MIN, \
   INT_MIN, \
   INT_MIN, \
   NULL, \
   1, \
   INT_MIN, \
   tag_}
enum { NI_WIN_COLL_SYMMETRIC = 1 }; /* a window in which collectives may take symmetric kernels */

#define NI_NCCL_FUNCTIONS(X, OPTIONAL) \
  X(int, GetVersion, (int *)) \
  X(int, GetUniqueId, (struct ni_unique_id *)) \
  X(const char *, GetErrorString, (int)) \
  X(int, CommInitRankConfig, (ni_nccl_comm *, int, struct ni_unique_id, int, struct ni_nccl_config *)) \
  X(int, CommSplit, (ni_nccl_comm, int, int, ni_nccl_comm *, struct ni_nccl_config *)) \
  X(int, CommFinalize, (ni_nccl_comm)) \
  X(int, CommDestroy, (ni_nccl_comm)) \
  X(int, CommAbort, (ni_nccl_comm)) \
  X(int, CommGetAsyncError, (ni_nccl_comm, int *)) \
  X(int, GroupStart, (void)) \
  X(int, GroupEnd, (void)) \
  X(int, AllReduce, (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream)) \
  X(int, Reduce, (const void *, void *, size_t, int, int, int, ni_nccl_comm, ni_stream)) \
  X(int, Broadcast, (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream)) \
  X(int, AllGather, (const void *, void *, size_t, int, ni_nccl_comm, ni_stream)) \
  X(int, ReduceScatter, (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream)) \
  X(int, Send, (const void *, size_t, int, int, ni_nccl_comm, ni_stream)) \
  X(int, Recv, (void *, size_t, int, int, ni_nccl_comm, ni_stream)) \
  OPTIONAL(int, AlltoAll, (const void *, void *, size_t, int, ni_nccl_comm, ni_stream)) \
  OPTIONAL(const char *, GetLastError, (ni_nccl_comm)) \
  OPTIONAL(int, MemAlloc, (void **, size_t)) \
  OPTIONAL(int, CommWindowRegister, (ni_nccl_comm, void *, size_t, void **, int)) \
  OPTIONAL(int, CommWindowDeregister, (ni_nccl_comm, void *)) \
  OPTIONAL(int, AllReduceConfig, \
           (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *)) \
  OPTIONAL( \
      int, ReduceConfig, \
      (const void *, void *, size_t, int, int, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *)) \
  OPTIONAL(int, BroadcastConfig, \
           (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *)) \
  OPTIONAL(int, AllGatherConfig, \
           (const void *, void *, size_t, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *)) \
  OPTIONAL(int, ReduceScatterConfig, \
           (const void *, void *, size_t, int, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *)) \
  OPTIONAL(int, AlltoAllConfig, \
           (const void *, void *, size_t, int, ni_nccl_comm, ni_stream, const struct ni_coll_config *))

#define NI_CUDA_FUNCTIONS(X) \
  X(cuInit, (unsigned)) \
  X(cuDriverGetVersion, (int *)) \
  X(cuDeviceGetCount, (int *)) \
  X(cuDeviceGet, (int *, int)) \
  X(cuDeviceGetName, (char *, int, int)) \
  X(cuDeviceGetAttribute, (int *, int, int)) \
  X(cuDevicePrimaryCtxRetain, (void **, int)) \
  X(cuCtxSetCurrent, (void *)) \
  X(cuMemAlloc_v2, (ni_devptr *, size_t)) \
  X(cuMemsetD8Async, (ni_devptr, unsigned char, size_t, ni_stream)) \
  X(cuStreamCreate, (ni_stream *, unsigned)) \
  X(cuStreamSynchronize, (ni_stream)) \
  X(cuStreamQuery, (ni_stream)) \
  X(cuEventCreate, (ni_event *, unsigned)) \
  X(cuEventRecord, (ni_event, ni_stream)) \
  X(cuEventElapsedTime, (float *, ni_event, ni_event)) \
  X(cuStreamBeginCapture_v2, (ni_stream, int)) \
  X(cuStreamEndCapture, (ni_stream, ni_graph *)) \
  X(cuGraphInstantiateWithFlags, (ni_graph_exec *, ni_graph, unsigned long long)) \
  X(cuGraphLaunch, (ni_graph_exec, ni_stream)) \
  X(cuGraphExecDestroy, (ni_graph_exec)) \
  X(cuGraphDestroy, (ni_graph))

struct ni_gpu_api {
#define MEMBER(ret, name, args) ret(*name) args;
  NI_NCCL_FUNCTIONS(MEMBER, MEMBER)
#undef MEMBER
#define MEMBER(name, args) int(*name) args;
  NI_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
};

enum { NI_GPU_NO_DRIVER = -2, NI_CUDA_NO_DEVICE = 100 };

/*
 * Opens CUDA first (a fake NCCL looks there), then NCCL. NULL: the usual names. 0; else the reason is in why
 * and the result NI_GPU_NO_DRIVER (no CUDA driver on this machine) or -1.
 */
int ni_gpu_open(struct ni_gpu_api *api, const char *cuda, const char *nccl, char *why, size_t cap);

#endif
