/*
 * The kinds of event: their numbers, their names in settings and logs, and the presets.
 *
 * A set of kinds is a word of bits. Bits 0 to 15 are NCCL's own event types (profiler_abi.h, NI_EV_*), so
 * that the set, cut to what the interface version knows, is NCCL's activation mask; bit 16 is ours. Plain
 * constants; any thread.
 */
#ifndef NI_EVENTS_H
#define NI_EVENTS_H

#include <stdint.h>

/*
 * Control files in the directory of the logs: this one for all ranks; .rankN or .HOST-pidN behind it for one
 * process.
 */
#define NI_CONTROL_FILE "nccl-inspector.control"

#define NI_SAMPLE_MAX 1000000u /* of N in "sample 1/N" there, and in NCCL_INSPECTOR_SAMPLE */

/* Bit number = index of every table below. */
enum ni_event {
  NI_EVENT_GROUP = 0, /* the bracket of one kernel plan */
  NI_EVENT_COLL,
  NI_EVENT_P2P,
  NI_EVENT_PROXY_OP,   /* with the sums of its steps */
  NI_EVENT_PROXY_STEP, /* folded into the sums of their operation */
  NI_EVENT_PROXY_CTRL,
  NI_EVENT_KERNEL_CH,
  NI_EVENT_NET,
  NI_EVENT_GROUP_API,
  NI_EVENT_COLL_API,
  NI_EVENT_P2P_API,
  NI_EVENT_LAUNCH,
  NI_EVENT_CE,
  NI_EVENT_SYNC,
  NI_EVENT_BATCH,
  NI_EVENT_KERNEL_PHASE, /* parts of a symmetric kernel, folded into its operation (interface v7) */
  NI_EVENT_STEPS,        /* every proxy step a line of its own, too */
  NI_EVENT_COUNT
};

#define NI_KINDS(event) (UINT32_C(1) << (event))
#define NI_KINDS_ALL ((UINT32_C(1) << NI_EVENT_COUNT) - 1)

/* In NCCL_INSPECTOR_EVENTS, in control files, and as keys of dump_stats.events. */
/* clang-format off */
#define NI_EVENTS(X) \
  X(GROUP, "group") \
  X(COLL, "coll") \
  X(P2P, "p2p") \
  X(PROXY_OP, "proxyop") \
  X(PROXY_STEP, "proxystep") \
  X(PROXY_CTRL, "proxyctrl") \
  X(KERNEL_CH, "kernelch") \
  X(NET, "net") \
  X(GROUP_API, "groupapi") \
  X(COLL_API, "collapi") \
  X(P2P_API, "p2papi") \
  X(LAUNCH, "launch") \
  X(CE, "ce") \
  X(SYNC, "sync") \
  X(BATCH, "batch") \
  X(KERNEL_PHASE, "kernelphase") \
  X(STEPS, "steps")
/* clang-format on */
#define NI_EVENT_NAME(event, name) name, /* in the order of enum ni_event */
static const char *const ni_event_names[NI_EVENT_COUNT] = {NI_EVENTS(NI_EVENT_NAME)};

#define NI_KINDS_STANDARD (NI_KINDS(NI_EVENT_COLL) | NI_KINDS(NI_EVENT_P2P) | NI_KINDS(NI_EVENT_KERNEL_CH))
/* Lines of the application's calls and groups, and of what names them. */
#define NI_KINDS_API \
  (NI_KINDS(NI_EVENT_GROUP_API) | NI_KINDS(NI_EVENT_COLL_API) | NI_KINDS(NI_EVENT_P2P_API) | \
   NI_KINDS(NI_EVENT_LAUNCH))
/*
 * NCCL's own cost of serving KernelCh is larger than any plugin's: without it, and without anything per
 * transfer.
 */
#define NI_KINDS_LIGHT \
  (NI_KINDS(NI_EVENT_COLL) | NI_KINDS(NI_EVENT_P2P) | NI_KINDS(NI_EVENT_PROXY_OP) | NI_KINDS_API)
#define NI_KINDS_DEEP (NI_KINDS_ALL & ~NI_KINDS(NI_EVENT_STEPS))
#define NI_KINDS_TRACE NI_KINDS_ALL

/* Any of these needs proxy operations. */
#define NI_KINDS_PROXY \
  (NI_KINDS(NI_EVENT_PROXY_OP) | NI_KINDS(NI_EVENT_PROXY_STEP) | NI_KINDS(NI_EVENT_STEPS) | \
   NI_KINDS(NI_EVENT_NET))

#define NI_PRESET_COUNT 4
static const struct ni_preset {
  const char *name;
  uint32_t kinds;
} ni_presets[NI_PRESET_COUNT] = {{"light", NI_KINDS_LIGHT},
                                 {"standard", NI_KINDS_STANDARD},
                                 {"deep", NI_KINDS_DEEP},
                                 {"trace", NI_KINDS_TRACE}};

#endif
