/*
 * NVIDIA's NCCL or AMD's RCCL: one interface of plugins, two clocks and two numbers of channels
 * (docs/rccl.md).
 *
 * Pure functions, any thread. The plugin decides at its first init which library it is
 * (plugin/os/nccl_library.h) and says it in the log's process line and in the black box; the exporter reads
 * stamps of a black box by the same functions.
 */
#ifndef NI_LIBRARY_H
#define NI_LIBRARY_H

#include <stdint.h>

enum ni_library {
  NI_LIBRARY_NCCL = 0,
  NI_LIBRARY_RCCL,
  NI_LIBRARY_UNKNOWN, /* neither by its file's name nor by its symbols: treated as NCCL, but for its stamps */
  NI_LIBRARY_COUNT
};

/* How far the rate of the GPU's clock is known. */
enum ni_gpu_trust {
  NI_GPU_CLOCK_SURE = 0, /* NCCL's stamps are ns; or the setting says it */
  /* RCCL's: 100 MHz on the MI series. Believed as long as the host's clock does not contradict */
  NI_GPU_CLOCK_ASSUMED,
  NI_GPU_CLOCK_UNPROVEN, /* an unknown library's: believed once the host's clock agrees */
};

#define NI_NS_KHZ 1000000u /* a clock that counts nanoseconds */
#define NI_RCCL_KHZ 100000u

/* As the log has it. NCCL is not said: a log without the key is NCCL's. */
static inline const char *ni_library_word(enum ni_library l) {
  static const char *const words[NI_LIBRARY_COUNT] = {"", "rccl", "unknown"};
  return (unsigned)l < NI_LIBRARY_COUNT ? words[l] : "unknown";
}

/* As people call it. */
static inline const char *ni_library_title(enum ni_library l) {
  return l == NI_LIBRARY_RCCL ? "RCCL"
      : l == NI_LIBRARY_NCCL  ? "NCCL"
                              : "a library that is neither NCCL nor RCCL by name,";
}

/* khz: of the setting, 0 not set. */
static inline enum ni_gpu_trust ni_gpu_clock_of(enum ni_library l, uint64_t khz) {
  if (khz || l == NI_LIBRARY_NCCL)
    return NI_GPU_CLOCK_SURE;
  return l == NI_LIBRARY_RCCL ? NI_GPU_CLOCK_ASSUMED : NI_GPU_CLOCK_UNPROVEN;
}
static inline uint32_t ni_gpu_khz_of(enum ni_library l, uint64_t khz) {
  if (khz)
    return (uint32_t)khz;
  return l == NI_LIBRARY_RCCL ? NI_RCCL_KHZ : NI_NS_KHZ;
}

/* The most channels that a descriptor may announce and be believed. RCCL has 128 or 256; 255 is taken for
 * "unknown", and 256 comes as 0: both are counted instead. What nobody knows may have as many. */
static inline uint8_t ni_most_channels(enum ni_library l) { return l == NI_LIBRARY_NCCL ? 64 : 254; }

/* A stamp in ns. khz: the clock's ticks in a millisecond, not 0. 0 and all ones, which mean that there is
 * none, stay; what would be longer than 64 bits is garbage, and one below all ones. */
static inline uint64_t ni_gpu_ns(uint64_t ticks, uint32_t khz) {
  if (khz == NI_NS_KHZ || ticks == UINT64_MAX)
    return ticks;
  unsigned __int128 ns = (unsigned __int128)ticks * NI_NS_KHZ / khz;
  return ns < UINT64_MAX ? (uint64_t)ns : UINT64_MAX - 1;
}

#endif
