/*
 * Names that NCCL and the logs use, with the sizes and bus factors that belong to them.
 *
 * One table each for functions, datatypes and timing sources. The plugin looks a name up once, when it first sees
 * NCCL's string; the exporter when it parses a line. Spellings are NCCL's own (src/collectives.cc of 2.30.7,
 * docs/format.md lists them). All functions here are pure and may be called from any thread.
 */
#ifndef NI_NAMES_H
#define NI_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ni_func {
  NI_FUNC_OTHER = 0, /* a name NCCL may bring tomorrow: recorded as it is, bandwidth unknown */
  NI_FUNC_ALLREDUCE,
  NI_FUNC_ALLGATHER,
  NI_FUNC_REDUCESCATTER,
  NI_FUNC_BROADCAST,
  NI_FUNC_REDUCE,
  NI_FUNC_SEND,
  NI_FUNC_RECV,
  NI_FUNC_ALLTOALL,
  NI_FUNC_GATHER,
  NI_FUNC_SCATTER,
  NI_FUNC_COUNT
};

/* How the execution time of a record was measured; NVIDIA's spelling in `coll_timing_source`. */
enum ni_timing {
  NI_TIMING_NONE = 0,   /* not stated (oldest logs) */
  NI_TIMING_KERNEL_GPU, /* latest channel stop - earliest channel start, GPU clock */
  NI_TIMING_KERNEL_CPU, /* arrival of the last channel's stop - arrival of the first channel's start, CPU clock */
  NI_TIMING_COLLECTIVE_CPU, /* the bracket around the enqueue, CPU clock: says nothing about the kernel */
  NI_TIMING_COUNT
};

struct ni_func_info {
  const char *name;
  uint8_t times_ranks; /* 1: the user-visible size S is n_ranks x the bytes b that the descriptor carries */
  uint8_t factor;      /* bus factor: 0 none known, 1 = 1, 2 = (n-1)/n, 3 = 2(n-1)/n */
};

/* S and factor: nccl-tests' src/<collective>.cu, one file per collective. */
static const struct ni_func_info ni_func_table[NI_FUNC_COUNT] = {
    [NI_FUNC_OTHER] = {"", 0, 0},
    [NI_FUNC_ALLREDUCE] = {"AllReduce", 0, 3},
    [NI_FUNC_ALLGATHER] = {"AllGather", 1, 2},
    [NI_FUNC_REDUCESCATTER] = {"ReduceScatter", 1, 2},
    [NI_FUNC_BROADCAST] = {"Broadcast", 0, 1},
    [NI_FUNC_REDUCE] = {"Reduce", 0, 1},
    [NI_FUNC_SEND] = {"Send", 0, 1},
    [NI_FUNC_RECV] = {"Recv", 0, 1},
    [NI_FUNC_ALLTOALL] = {"AlltoAll", 1, 2},
    [NI_FUNC_GATHER] = {"Gather", 1, 2},
    [NI_FUNC_SCATTER] = {"Scatter", 1, 2},
};

static const char *const ni_timing_names[NI_TIMING_COUNT] = {"", "kernel_gpu", "kernel_cpu", "collective_cpu"};

/* Function of a name; NI_FUNC_OTHER when it is not in the table. NULL is NI_FUNC_OTHER. */
static inline enum ni_func ni_func_from_name(const char *name) {
  if (name)
    for (int i = 1; i < NI_FUNC_COUNT; i++)
      if (strcmp(name, ni_func_table[i].name) == 0) return (enum ni_func)i;
  return NI_FUNC_OTHER;
}

static inline enum ni_timing ni_timing_from_name(const char *name) {
  if (name)
    for (int i = 1; i < NI_TIMING_COUNT; i++)
      if (strcmp(name, ni_timing_names[i]) == 0) return (enum ni_timing)i;
  return NI_TIMING_NONE;
}

/*
 * Bytes of one element. NCCL's own table has no case for ncclUint8 and prints "Unknown" (contract 5.1), so "Unknown",
 * NULL and names of the future count as 1 byte.
 */
static inline uint32_t ni_datatype_bytes(const char *name) {
  static const struct {
    const char *name;
    uint8_t bytes;
  } table[] = {{"ncclInt8", 1},    {"ncclUint8", 1},   {"ncclInt32", 4},    {"ncclUint32", 4},
               {"ncclInt64", 8},   {"ncclUint64", 8},  {"ncclFloat16", 2},  {"ncclFloat32", 4},
               {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};
  if (name)
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
      if (strcmp(name, table[i].name) == 0) return table[i].bytes;
  return 1;
}

/* Bus factor for n ranks; 0 when none is known for the function or n < 1. Source: contract 5.2 and nccl-tests. */
static inline double ni_bus_factor(enum ni_func func, int32_t n_ranks) {
  double n = n_ranks;
  if (n_ranks < 1) return 0;
  switch (ni_func_table[func].factor) {
    case 1: return 1;
    case 2: return (n - 1) / n;
    case 3: return 2 * (n - 1) / n;
    default: return 0;
  }
}

/* The size users see in nccl-tests, from the descriptor's bytes. n_ranks < 1 counts as 1. */
static inline uint64_t ni_nccl_tests_bytes(enum ni_func func, uint64_t msg_bytes, int32_t n_ranks) {
  return ni_func_table[func].times_ranks && n_ranks > 1 ? msg_bytes * (uint64_t)n_ranks : msg_bytes;
}

#endif
