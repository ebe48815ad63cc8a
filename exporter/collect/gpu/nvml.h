/*
 * NVML without its header or library at build time: the types and calls that are used here, found by dlopen.
 *
 * A call that this driver's library has not is NULL: NI_NVML(n, call, ...) then returns NI_NVML_NO_FUNCTION,
 * as the library would. All calls return one of the codes below and may be made by any thread. Facts:
 * NVIDIA's nvml.h of API 13; names with numbers are tried first, as its macros have them, then those of older
 * drivers.
 */
#ifndef NI_NVML_H
#define NI_NVML_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NI_NVML_OK = 0,
  NI_NVML_NOT_SUPPORTED = 3,
  NI_NVML_NO_PERMISSION = 4,
  NI_NVML_NO_DRIVER = 9,
  NI_NVML_TIMEOUT = 10,
  NI_NVML_NO_FUNCTION = 13,
  NI_NVML_LOST = 15,
  NI_NVML_MISMATCH = 18,
  NI_NVML_OTHER_VERSION = 25,
  NI_NVML_DEPRECATED = 26,
  NI_NVML_UNKNOWN = 999,
  NI_NVML_TEXT = 96,
  NI_NVML_GPM_METRICS = 333
};

typedef void *ni_nvml_handle; /* a device, a MIG instance, a set of events, a sample */

struct ni_nvml_utilization {
  uint32_t gpu, memory;
};
struct ni_nvml_memory {
  uint64_t total, free, used;
};
struct ni_nvml_memory_v2 {
  uint32_t version; /* NI_NVML_MEMORY_V2 */
  uint64_t total, reserved, free, used;
};
#define NI_NVML_MEMORY_V2 (0x02000000u | (uint32_t)sizeof(struct ni_nvml_memory_v2))
struct ni_nvml_pci {
  char legacy[16];
  uint32_t domain, bus, device, id, subsystem;
  char text[32];
};
union ni_nvml_value {
  double d;
  uint32_t u32;
  uint64_t u64;
  int64_t i64;
  int32_t i32;
  uint16_t u16;
};
enum { NI_NVML_DOUBLE = 0, NI_NVML_U32, NI_NVML_ULONG, NI_NVML_U64, NI_NVML_I64, NI_NVML_I32, NI_NVML_U16 };
struct ni_nvml_field {
  uint32_t id, scope;
  int64_t time_us, latency_us;
  uint32_t type; /* which of value */
  uint32_t result;
  union ni_nvml_value value;
};
struct ni_nvml_event {
  ni_nvml_handle device;
  uint64_t type, data;
  uint32_t gpu_instance, compute_instance;
};
struct ni_nvml_gpm_support {
  uint32_t version, supported;
};
struct ni_nvml_gpm_metric {
  uint32_t id, result;
  double value;
  const char *text[3];
};
struct ni_nvml_gpm {
  uint32_t version, n;
  ni_nvml_handle first, second;
  struct ni_nvml_gpm_metric metric[NI_NVML_GPM_METRICS];
};
static_assert(sizeof(struct ni_nvml_memory) == 24 && sizeof(struct ni_nvml_memory_v2) == 40, "memory");
static_assert(sizeof(struct ni_nvml_pci) == 68 && offsetof(struct ni_nvml_pci, text) == 36, "PCI address");
static_assert(sizeof(struct ni_nvml_field) == 40 && offsetof(struct ni_nvml_field, result) == 28, "field");
static_assert(sizeof(struct ni_nvml_event) == 32 && offsetof(struct ni_nvml_event, gpu_instance) == 24,
              "event");
static_assert(sizeof(struct ni_nvml_gpm_metric) == 40 && offsetof(struct ni_nvml_gpm, metric) == 24, "GPM");

/* X(member, arguments, name, name in older drivers) */
#define NI_NVML_CALLS(X) \
  X(init, (void), "nvmlInit_v2", "nvmlInit") \
  X(shutdown, (void), "nvmlShutdown", NULL) \
  X(count, (uint32_t *n), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") \
  X(handle, (uint32_t i, ni_nvml_handle *out), "nvmlDeviceGetHandleByIndex_v2", \
    "nvmlDeviceGetHandleByIndex") \
  X(name, (ni_nvml_handle d, char *out, uint32_t size), "nvmlDeviceGetName", NULL) \
  X(uuid, (ni_nvml_handle d, char *out, uint32_t size), "nvmlDeviceGetUUID", NULL) \
  X(pci, (ni_nvml_handle d, struct ni_nvml_pci * out), "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2") \
  X(utilization, (ni_nvml_handle d, struct ni_nvml_utilization * out), "nvmlDeviceGetUtilizationRates", \
    NULL) \
  X(memory_v2, (ni_nvml_handle d, struct ni_nvml_memory_v2 * out), "nvmlDeviceGetMemoryInfo_v2", NULL) \
  X(memory, (ni_nvml_handle d, struct ni_nvml_memory * out), "nvmlDeviceGetMemoryInfo", NULL) \
  X(clock, (ni_nvml_handle d, uint32_t which, uint32_t *mhz), "nvmlDeviceGetClockInfo", NULL) \
  X(power, (ni_nvml_handle d, uint32_t *mw), "nvmlDeviceGetPowerUsage", NULL) \
  X(temperature, (ni_nvml_handle d, uint32_t sensor, uint32_t *celsius), "nvmlDeviceGetTemperature", NULL) \
  X(reasons, (ni_nvml_handle d, uint64_t *bits), "nvmlDeviceGetCurrentClocksEventReasons", \
    "nvmlDeviceGetCurrentClocksThrottleReasons") \
  X(generation, (ni_nvml_handle d, uint32_t *out), "nvmlDeviceGetCurrPcieLinkGeneration", NULL) \
  X(width, (ni_nvml_handle d, uint32_t *out), "nvmlDeviceGetCurrPcieLinkWidth", NULL) \
  X(max_generation, (ni_nvml_handle d, uint32_t *out), "nvmlDeviceGetMaxPcieLinkGeneration", NULL) \
  X(max_width, (ni_nvml_handle d, uint32_t *out), "nvmlDeviceGetMaxPcieLinkWidth", NULL) \
  X(pcie, (ni_nvml_handle d, uint32_t direction, uint32_t *kb_s), "nvmlDeviceGetPcieThroughput", NULL) \
  X(fields, (ni_nvml_handle d, int n, struct ni_nvml_field *out), "nvmlDeviceGetFieldValues", NULL) \
  X(mig_mode, (ni_nvml_handle d, uint32_t *now, uint32_t *pending), "nvmlDeviceGetMigMode", NULL) \
  X(mig_count, (ni_nvml_handle d, uint32_t *most), "nvmlDeviceGetMaxMigDeviceCount", NULL) \
  X(mig, (ni_nvml_handle d, uint32_t i, ni_nvml_handle *out), "nvmlDeviceGetMigDeviceHandleByIndex", NULL) \
  X(set_create, (ni_nvml_handle * set), "nvmlEventSetCreate", NULL) \
  X(set_free, (ni_nvml_handle set), "nvmlEventSetFree", NULL) \
  X(watch, (ni_nvml_handle d, uint64_t types, ni_nvml_handle set), "nvmlDeviceRegisterEvents", NULL) \
  X(wait, (ni_nvml_handle set, struct ni_nvml_event * out, uint32_t ms), "nvmlEventSetWait_v2", \
    "nvmlEventSetWait") \
  X(gpm_support, (ni_nvml_handle d, struct ni_nvml_gpm_support * out), "nvmlGpmQueryDeviceSupport", NULL) \
  X(gpm_alloc, (ni_nvml_handle * sample), "nvmlGpmSampleAlloc", NULL) \
  X(gpm_free, (ni_nvml_handle sample), "nvmlGpmSampleFree", NULL) \
  X(gpm_sample, (ni_nvml_handle d, ni_nvml_handle sample), "nvmlGpmSampleGet", NULL) \
  X(gpm_metrics, (struct ni_nvml_gpm * both), "nvmlGpmMetricsGet", NULL)

struct ni_nvml {
  void *library;
  const char *(*error_string)(int);
#define NI_NVML_MEMBER(member, args, name, older) int(*member) args;
  NI_NVML_CALLS(NI_NVML_MEMBER)
#undef NI_NVML_MEMBER
};
#define NI_NVML(n, call, ...) ((n)->call ? (n)->call(__VA_ARGS__) : NI_NVML_NO_FUNCTION)

/*
 * Loads and initialises it. NULL: why says what is the matter and what to do, and is "" where there is no
 * such library.
 */
struct ni_nvml *ni_nvml_open(char *why, size_t size);
void ni_nvml_close(struct ni_nvml *n);
/* What a code means and what to do, into out. Returns out. */
const char *ni_nvml_why(const struct ni_nvml *n, int code, char *out, size_t size);

#endif
