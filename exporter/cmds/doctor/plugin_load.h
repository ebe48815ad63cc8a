#ifndef NI_DOCTOR_PLUGIN_LOAD_H
#define NI_DOCTOR_PLUGIN_LOAD_H

#include "findings.h"

/*
 * Where an installation or a build has the plugin, seen from this program; also for `run`. false: nowhere, or
 * the path does not fit.
 */
bool ni_plugin_beside_us(char *out, size_t cap);
/*
 * What NCCL's rules make of NCCL_PROFILER_PLUGIN, and whether that loads. The other checks, but that of NCCL,
 * go by what it finds.
 */
void ni_doctor_plugin(struct ni_doctor *d);
/*
 * NCCL libraries of this machine, in the order in which a job is likely to meet them; each with its release.
 */
void ni_doctor_nccl(struct ni_doctor *d);

#endif
