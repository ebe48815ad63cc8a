/*
 * GPM: what a GPU's units did between two samples, from Hopper on, without a profiler's privileges or its conflicts.
 *
 * Two samples are kept from sweep to sweep; what is read lies between them, which are at least 100 ms apart. One thread at a
 * time, in the driver's turn (gpu_call.h).
 */
#ifndef NI_GPM_H
#define NI_GPM_H

#include "nvml.h"

#define NI_GPM_GAP_NS INT64_C(110000000)

struct ni_gpm;

/* Takes the first sample. A code of NVML; NI_NVML_NOT_SUPPORTED: no such GPU, *out is NULL then. */
int ni_gpm_open(struct ni_gpm **out, const struct ni_nvml *n, ni_nvml_handle device);
void ni_gpm_close(struct ni_gpm *g);
/* Takes another sample; value[i] is metric id[i] since the one before, result[i] NVML's code for it. The code of the whole. */
int ni_gpm_read(struct ni_gpm *g, const uint32_t *id, double *value, int *result, size_t n);

#endif
