/*
 * Settings that are accepted and that nothing reads: what other versions and plugins take, so that nobody
 * needs to unset it. NCCL's log says so of each that is set to anything but 0. The first NI_OTHERS are meant
 * for other programs: nothing is said of them. Constant; for config.c alone.
 */
#ifndef NI_NO_EFFECT_H
#define NI_NO_EFFECT_H

#define NO_OBJECTS \
  "accepted, no effect: operations are recorded without such objects, so there is no pool of them"
#define NO_RING \
  "accepted, no effect: finished operations wait in the arena until they are written, in no ring"
#define NO_NESTING "accepted, no effect: each single step has a line of its own (docs/events.md)"
#define NO_LAST \
  "accepted, no effect: a full pool that is fixed keeps the first; what finds no slot is dropped and " \
  "counted"
#define NO_SLICES \
  "accepted, no effect: from NCCL 2.31 on KernelCh that comes and goes spoils the times of kernels; " \
  "NCCL_INSPECTOR_EVENTS=light " \
  "asks for none"
#define NO_OTEL \
  "accepted, no effect in the job: `nccl-inspector agent --otlp URL`, on each node, sends OpenTelemetry's " \
  "metrics of all jobs " \
  "(docs/agent.md)"
enum { NI_OTHERS = 1 };
static const struct {
  const char *name, *why;
} no_effect[] = {
    {"NCCL_INSPECTOR_COMMAND",
     "for the Python package: the path of `nccl-inspector`; the plugin does not read it"},
    {"NCCL_INSPECTOR_CLUSTER",
     "accepted, no effect: for RCCL's inspector; the metrics here have no label `cluster`"},
    {"NCCL_INSPECTOR_COMM_POOL_SIZE",
     "accepted, no effect: the table of communicators grows as it is needed"},
    {"NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", NO_RING},
    {"NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", NO_RING},
    {"NCCL_INSPECTOR_DUMP_PROXY_EVENT_TRACE_SN",
     "accepted, no effect: events of a proxy operation have times and no numbers"},
    {"NCCL_INSPECTOR_DUMP_PROXY_RING_SIZE", NO_RING},
    {"NCCL_INSPECTOR_KERNELCH_DUTY", NO_SLICES},
    {"NCCL_INSPECTOR_MAX_OVERHEAD_PERCENT", NO_SLICES},
    {"NCCL_INSPECTOR_OTEL_EXPORT", NO_OTEL},
    {"NCCL_INSPECTOR_OTEL_VERBOSE", NO_OTEL},
    {"NCCL_INSPECTOR_POOL_KEEP", NO_LAST},
    {"NCCL_INSPECTOR_PROXY_OUTPUT_MODE", NO_NESTING},
    {"NCCL_PROFILE_GROUP_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_COLL_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_P2P_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_KERNEL_LAUNCH_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_PROXY_CTRL_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_PROXY_DETACH_POOL_SIZE", NO_OBJECTS},
};
#define N_NO_EFFECT (sizeof no_effect / sizeof *no_effect)

#endif
