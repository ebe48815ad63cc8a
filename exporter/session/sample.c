#include "sample.h"

#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"

struct ni_sample *ni_sample_new(uint32_t gpus, uint32_t nics, uint32_t jobs, uint32_t open) {
  if (gpus > NI_SAMPLE_GPUS_MAX || nics > NI_SAMPLE_NICS_MAX || jobs > NI_SAMPLE_JOBS_MAX ||
      open > NI_SAMPLE_OPEN_MAX)
    return NULL;
  struct ni_sample *s = calloc(1,
                               sizeof *s + gpus * sizeof *s->gpu + nics * sizeof *s->nic +
                                   jobs * sizeof *s->job + open * sizeof *s->open);
  if (!s)
    return NULL;
  s->n_gpus = gpus;
  s->n_nics = nics;
  s->n_jobs = jobs;
  s->n_open = open;
  s->gpu = (struct ni_sample_gpu *)(s + 1);
  s->nic = (struct ni_sample_nic *)(s->gpu + gpus);
  s->job = (struct ni_sample_job *)(s->nic + nics);
  s->open = (struct ni_sample_open *)(s->job + jobs);
  s->memory = s->disk = s->cpu = NAN;
  NI_EACH(struct ni_sample_gpu, g, s->gpu, gpus)
  g->util = g->memory = g->pcie_rx = g->pcie_tx = g->nvlink_rx = g->nvlink_tx = g->power_w =
      g->temperature_c = g->sm_hz = NAN;
  NI_EACH(struct ni_sample_nic, c, s->nic, nics) c->rx = c->tx = c->link = c->held = NAN;
  return s;
}
