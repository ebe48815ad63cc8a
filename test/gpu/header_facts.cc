// What gpu_api.h says of NCCL against a release's own nccl.h: numbers, the configuration's layout, every
// function's arguments. Compiled only (test/cases/gpu/gpu_nccl_wheels.sh), with stand-ins for the two headers
// of CUDA that nccl.h asks for.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <nccl.h>

#include "gpu_api.h"

#define SAME(a, b) static_assert((int)(a) == (int)(b), #a " is not " #b)
SAME(NI_NCCL_SUCCESS, ncclSuccess);
SAME(NI_NCCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME(NI_NCCL_IN_PROGRESS, ncclInProgress);
SAME(NI_NCCL_SUM, ncclSum);
SAME(NI_DT_UINT8, ncclUint8);
SAME(NI_DT_FLOAT32, ncclFloat32);
SAME(8, ncclFloat64);
#if NCCL_VERSION_CODE >= 22400
SAME(9, ncclBfloat16);
SAME(NI_DT_FLOAT8E4M3, ncclFloat8e4m3);
SAME(NI_DT_COUNT, ncclNumTypes);
#endif
SAME(NCCL_CONFIG_UNDEF_INT, INT_MIN);
static_assert(sizeof(ni_unique_id) == sizeof(ncclUniqueId), "unique id");

#define MEMBER(ours, theirs) \
  static_assert(offsetof(ni_nccl_config, ours) == offsetof(ncclConfig_t, theirs) && \
                    sizeof(ni_nccl_config::ours) == sizeof(ncclConfig_t::theirs), \
                #theirs)
MEMBER(size, size);
MEMBER(magic, magic);
MEMBER(version, version);
MEMBER(blocking, blocking);
MEMBER(cga_cluster_size, cgaClusterSize);
MEMBER(min_ctas, minCTAs);
MEMBER(max_ctas, maxCTAs);
MEMBER(net_name, netName);
MEMBER(split_share, splitShare);
#if NCCL_VERSION_CODE >= 22700
MEMBER(traffic_class, trafficClass);
MEMBER(comm_name, commName);
static_assert(sizeof(ni_nccl_config) <= sizeof(ncclConfig_t), "NCCL reads `size` bytes");
constexpr ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
static_assert(theirs.magic == 0xcafebeef, "magic");
#endif

// The same number of arguments, each as large and as much a pointer.
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class R, class S, class... A, class... B>
constexpr bool callable(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) != sizeof...(B))
    return false;
  else
    return alike<R, S> && (alike<A, B> && ...);
}
#define FUNCTION(ret, name, args) \
  static_assert(callable((ret(*) args) nullptr, (decltype(&nccl##name))nullptr), "nccl" #name);
#define MAY(ret, name, args)
NI_NCCL_FUNCTIONS(FUNCTION, MAY)
#if NCCL_VERSION_CODE >= 22800
FUNCTION(int, AlltoAll, (const void *, void *, size_t, int, ni_nccl_comm, ni_stream))
#endif
FUNCTION(const char *, GetLastError, (ni_nccl_comm))
