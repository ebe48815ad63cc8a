/*
 * The calls of NVML for one GPU, again and again: what each brought last, and when it may be made next.
 *
 * NVML takes a lock of the driver that the training's own launches need. So, over all GPUs and collectors of
 * this process:
 *   - one call at a time: where calls wait for that lock, there is one of ours among them and not one a GPU;
 *   - all of it stays below 1 % of the time, but for PCIe's throughput, which has a share of its own: a call
 *     that takes more than 5 ms is made rarely, and a GPU whose other calls have taken their part is left
 *     alone for a while. Until a call is made again its values stay as they are, with the time at which they
 *     were read (metric.h: STALE). Opening asks for all once, whatever it takes.
 *
 * A device belongs to one thread at a time.
 */
#ifndef NI_GPU_CALL_H
#define NI_GPU_CALL_H

#include <stdbool.h>

#include "nvml.h"

/*
 * Xids: errors that the driver tells once, when they happen. A thread of its own waits for them, from the
 * first reading on. What happened before ni_xid_watch() is not seen. watch() and free() from one thread,
 * read() from any.
 */
struct ni_xid;

/* Before the first read(). *x is NULL for the first GPU. A code of NVML. */
int ni_xid_watch(struct ni_xid **x, const struct ni_nvml *n, ni_nvml_handle device);
/*
 * Of a GPU that is watched. out[0]: how many, out[1]: the last one, 0: none. A code of NVML: not OK while
 * they cannot be waited for.
 */
int ni_xid_read(struct ni_xid *x, ni_nvml_handle device, uint64_t out[2]);
/* Waits for the thread, 0.25 s at most. */
void ni_xid_free(struct ni_xid *x);

/* In the order in which they are made. Fields go by two calls, each at its pace: cheap ones, and TRAFFIC,
 * which takes 0.2 to 0.4 ms a field. */
enum ni_gpu_kind {
  NI_GPU_UTILIZATION,
  NI_GPU_MEMORY,
  NI_GPU_CLOCK_GRAPHICS,
  NI_GPU_CLOCK_SM,
  NI_GPU_CLOCK_MEMORY,
  NI_GPU_POWER,
  NI_GPU_TEMPERATURE,
  NI_GPU_REASONS,
  NI_GPU_GENERATION,
  NI_GPU_WIDTH,
  NI_GPU_FIELDS,
  NI_GPU_TRAFFIC,
  NI_GPU_GPM,
  NI_GPU_PCIE_TX,
  NI_GPU_PCIE_RX,
  NI_GPU_XID,
  NI_GPU_KINDS
};
enum { NI_GPU_VALUES = 64, NI_GPU_LATER = -1 };

struct ni_gpu_value {
  uint64_t value;
  uint32_t id, scope; /* of a field or of a metric of GPM; else id is the place in what the call brings */
  uint32_t unit;      /* of a field, a metric: one count is so many of our units */
  int result;         /* NVML's code for it */
};

struct ni_gpu_call {
  bool slow;
  size_t n; /* values that are wanted of it; 0: never made */
  struct ni_gpu_value value[NI_GPU_VALUES];
  int64_t real_ns, mono_ns; /* when it brought them; 0: never */
  int64_t took, due;        /* the last one; the next one, on CLOCK_MONOTONIC */
};

struct ni_gpu_device {
  const struct ni_nvml *nvml;
  ni_nvml_handle handle;
  /* GPM: the last one, and room for the next; NULL: it has none, or nobody asks for it */
  ni_nvml_handle sample[2];
  struct ni_xid *xid;
  int64_t credit, credit_at; /* what its calls may take now; since when */
  struct ni_gpu_call call[NI_GPU_KINDS];
};

/*
 * From here on the GPU has its part of the time, until ni_gpu_end(). gpm: what its units did between two
 * samples is asked for; takes the first one, and waits until another may be taken. It has no samples where
 * NVML or the hardware has none.
 */
void ni_gpu_begin(struct ni_gpu_device *d, bool gpm);
void ni_gpu_end(struct ni_gpu_device *d);

/*
 * Makes the call, if it is due. The code of the whole, which each value has as well; NI_NVML_OK where it was
 * not due; NI_GPU_LATER: the GPU has taken its part; what was refused comes first next time.
 */
int ni_gpu_ask(struct ni_gpu_device *d, enum ni_gpu_kind kind);
/* The call is not made any more. Its time goes to the others. */
void ni_gpu_stop_call(struct ni_gpu_device *d, enum ni_gpu_kind kind);

/* The driver's turn is ours: for other calls than these. */
void ni_gpu_enter(void);
void ni_gpu_leave(void);

#endif
