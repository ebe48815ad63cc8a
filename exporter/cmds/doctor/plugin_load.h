#ifndef NI_DOCTOR_PLUGIN_LOAD_H
#define NI_DOCTOR_PLUGIN_LOAD_H

#include "findings.h"

/* What NCCL's rules make of NCCL_PROFILER_PLUGIN, and whether that loads. The other checks, but that of NCCL, go by what it finds. */
void ni_doctor_plugin(struct ni_doctor *d);
/* NCCL libraries of this machine, in the order in which a job is likely to meet them; each with its release. */
void ni_doctor_nccl(struct ni_doctor *d);

#endif
