/*
 * Which GPU the calling thread works on: device index, UUID and PCI address from the CUDA driver, if it is
 * loaded.
 *
 * The driver is looked up with RTLD_NOLOAD: it is never loaded by us, and without it (a CPU test, a
 * simulator) the answer is "not known". Init only: the current context is the calling thread's, and CUDA
 * forbids calls from graph host functions. No state, nothing to free.
 */
#ifndef NI_GPU_ID_H
#define NI_GPU_ID_H

#include <stdint.h>

struct ni_gpu_id {
  /* CUDA device ordinal as this process sees it (CUDA_VISIBLE_DEVICES applies); -1 not known */
  int32_t index;
  char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" as nvidia-smi prints it; "" not known */
  char pci[32];  /* "0000:1b:00.0", lower case; "" not known */
};

/*
 * Fills *id; whatever is not known stays -1 or "". 0: index known. -ENOENT: no CUDA driver in this process.
 * -ENODATA: the driver is there, but the calling thread has no current context or the driver refuses to say.
 */
int ni_gpu_id_read(struct ni_gpu_id *id);

#endif
