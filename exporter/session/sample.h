/*
 * What a node says of itself at one moment, from whatever client: what frames of sessions are made of.
 *
 * Numbers that are not known are NaN. Units are SI: bytes a second, ratios 0 to 1. Times are Unix ns of the
 * head's clock, if nothing else is said: our agents measure the difference and take it away, of gsprof's
 * clients the head does. A sample is one piece of memory, for free(). Plain data; any thread that owns it.
 */
#ifndef NI_SAMPLE_H
#define NI_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NI_SAMPLE_GPUS_MAX = 64, NI_SAMPLE_NICS_MAX = 64, NI_SAMPLE_JOBS_MAX = 32, NI_SAMPLE_OPEN_MAX = 64 };

struct ni_sample_gpu {
  int32_t index;               /* as NVML counts them */
  char name[48];               /* "NVIDIA H100 80GB HBM3" */
  double util, memory;         /* ratios; memory: of its capacity that is in use */
  double pcie_rx, pcie_tx;     /* bytes/s: into the GPU, out of it */
  double nvlink_rx, nvlink_tx; /* bytes/s, all links together */
  double power_w, temperature_c, sm_hz;
};
struct ni_sample_nic {
  char name[32];
  double rx, tx, link; /* bytes/s; link: what it carries in one direction */
  double held;         /* ratio of time in which it may not send */
};
struct ni_sample_job { /* of this node's ranks */
  char job[64], attempt[16];
  uint32_t uid, processes;
  uint8_t state;                 /* of ni_live_job_states (live.h) */
  uint64_t operations, bytes;    /* finished since the agent knows the job; message bytes */
  double bus_bytes, bus_seconds; /* the same of those with a bus bandwidth: their quotient is the mean */
  uint64_t in_flight, stuck;
  double oldest_s;
  char verdict[512]; /* of a hang; "": none */
  /*
   * Never sent: who takes samples fills them in (rates.h). The mean bus bandwidth of several nodes is the sum
   * of bus_got by that of bus_took.
   */
  double operations_s, bytes_s, bus_got, bus_took;
};
struct ni_sample_open { /* a rank's oldest operation in flight */
  char job[64], comm[64], function[24];
  int32_t rank;
  uint64_t sn;
  double age_s;
  bool stuck;
};

struct ni_sample {
  uint64_t seq; /* 1, 2, ...: of our agents; 0: of gsprof's clients, who do not count */
  int64_t time_ns;
  double memory, disk, cpu; /* of the host: ratios */
  uint32_t n_gpus, n_nics, n_jobs, n_open;
  struct ni_sample_gpu *gpu; /* they lie behind the sample, in the same piece of memory */
  struct ni_sample_nic *nic;
  struct ni_sample_job *job;
  struct ni_sample_open *open;
};

/* An empty sample with room for so many, zeros and NaN; more than the bounds: NULL, as without memory. */
struct ni_sample *ni_sample_new(uint32_t gpus, uint32_t nics, uint32_t jobs, uint32_t open);

#endif
