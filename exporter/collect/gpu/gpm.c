#include "gpm.h"

#include <stdlib.h>

struct ni_gpm {
  const struct ni_nvml *nvml;
  ni_nvml_handle device, before, now;
  struct ni_nvml_gpm ask; /* large enough for the NVML of any driver */
};

int ni_gpm_open(struct ni_gpm **out, const struct ni_nvml *n, ni_nvml_handle device) {
  struct ni_nvml_gpm_support s = {.version = 1};
  *out = NULL;
  int r = NI_NVML(n, gpm_support, device, &s);
  if (r != NI_NVML_OK || !s.supported) return r != NI_NVML_OK ? r : NI_NVML_NOT_SUPPORTED;
  struct ni_gpm *g = calloc(1, sizeof *g);
  if (!g) return NI_NVML_NOT_SUPPORTED;
  g->nvml = n;
  g->device = device;
  r = NI_NVML(n, gpm_alloc, &g->before);
  if (r == NI_NVML_OK) r = NI_NVML(n, gpm_alloc, &g->now);
  if (r == NI_NVML_OK) r = NI_NVML(n, gpm_sample, device, g->before);
  if (r == NI_NVML_OK) *out = g;
  else ni_gpm_close(g);
  return r;
}

void ni_gpm_close(struct ni_gpm *g) {
  if (!g) return;
  if (g->before) NI_NVML(g->nvml, gpm_free, g->before);
  if (g->now) NI_NVML(g->nvml, gpm_free, g->now);
  free(g);
}

int ni_gpm_read(struct ni_gpm *g, const uint32_t *id, double *value, int *result, size_t n) {
  int r = g ? NI_NVML(g->nvml, gpm_sample, g->device, g->now) : NI_NVML_NOT_SUPPORTED;
  if (r != NI_NVML_OK) return r;
  if (n > NI_NVML_GPM_METRICS) n = NI_NVML_GPM_METRICS;
  g->ask = (struct ni_nvml_gpm){.version = 1, .n = (uint32_t)n, .first = g->before, .second = g->now};
  for (size_t i = 0; i < n; i++) g->ask.metric[i].id = id[i];
  r = NI_NVML(g->nvml, gpm_metrics, &g->ask);
  for (size_t i = 0; i < n; i++) {
    value[i] = g->ask.metric[i].value;
    result[i] = (int)g->ask.metric[i].result;
  }
  g->now = g->before; /* the next one is taken over the older of the two */
  g->before = g->ask.second;
  return r;
}
