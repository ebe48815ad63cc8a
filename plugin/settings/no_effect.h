/*
 * Settings that are accepted and that nothing reads: what other versions and plugins take, so that nobody needs to unset it.
 * NCCL's log says so of each that is set to anything but 0. Constant; for config.c alone.
 */
#ifndef NI_NO_EFFECT_H
#define NI_NO_EFFECT_H

#define NO_OBJECTS "accepted, no effect: operations are recorded without such objects, so there is no pool of them"
#define NO_RING "accepted, no effect: finished operations wait in the arena until they are written, in no ring"
static const struct {
  const char *name, *why;
} no_effect[] = {
    {"NCCL_INSPECTOR_COMM_POOL_SIZE", "accepted, no effect: the table of communicators grows as it is needed"},
    {"NCCL_INSPECTOR_DUMP_COLL_RING_SIZE", NO_RING},
    {"NCCL_INSPECTOR_DUMP_P2P_RING_SIZE", NO_RING},
    {"NCCL_INSPECTOR_PROM_DUMP", "accepted, but there is no Prometheus output yet; the log is written as usual"},
    {"NCCL_INSPECTOR_OTEL_EXPORT", "accepted, but there is no OpenTelemetry output yet; the log is written as usual"},
    {"NCCL_PROFILE_GROUP_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_COLL_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_P2P_API_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_KERNEL_LAUNCH_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_PROXY_CTRL_POOL_SIZE", NO_OBJECTS},
    {"NCCL_PROFILE_PROXY_DETACH_POOL_SIZE", NO_OBJECTS},
};
#define N_NO_EFFECT (sizeof no_effect / sizeof *no_effect)

#endif
