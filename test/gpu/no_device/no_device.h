/*
 * A real libnccl.so.2 on a machine without a GPU: the CUDA runtime inside it is replaced, driver and NVML are
 * stand-ins.
 *
 * NCCL has libcudart linked in, which refuses any driver that is not NVIDIA's. Its functions are still named
 * in the library's symbol table; hooks.c puts a jump to one of ours at the beginning of each. What NCCL
 * itself does is NCCL's: it loads the profiler, makes plans, numbers operations, its threads poll and call
 * back, its proxies send through sockets.
 *
 *   hooks.c    cuda* of the runtime inside NCCL; finds them and takes them over
 *   driver.c   cu* and nvml*, which NCCL and gpu_drive look up by name; one machine of eight GPUs
 *   vmm.c      cuMem*: memory by handles that ranks share, as windows for symmetric kernels want it
 *   streams.c  streams (a thread each), events and graphs: the host runs ahead of the device as it really
 *              does
 *   kernel.c   what a kernel of NCCL's does that the host sees: stamps its work begun and done, ends when all
 *              ranks of its communicator have begun it, or at an abort
 *   wire.c     what a kernel does for the network: says that there is something to send, and that it took
 *              what came
 *
 * What a device would compute is not there: "memory" is the host's, nothing is reduced, messages through the
 * network are empty, and a kernel takes NI_NO_DEVICE_KERNEL_US (default 50) beside its waiting.
 * docs/validation.md says what a run proves.
 *
 * Needs NCCL_CUMEM_HOST_ENABLE=0, and NCCL_CUMEM_ENABLE=0 with NCCL_P2P_DISABLE=1; or, for symmetric kernels,
 * NCCL_CUMEM_ENABLE=1 and NCCL_TOPO_FILE=nvlink.xml, which says that two GPUs are joined by NVLink (layout
 * `gpus`, two ranks). x86-64. gpu_drive's layouts: `gpus` (ranks meet in shared memory, no proxy) and
 * `hostid` (network transport over loopback with all its proxy events).
 *   NI_NO_DEVICE_NCCL=SO   the library to take over; without it nothing happens
 *   NI_NO_DEVICE_LOG=1     says what is called and not there
 *
 * Threads: everything may be called from any thread. Ownership: streams, events and memory are never given
 * back, so that nothing pending can point to what is gone; a run of a test is short. Failure: a call that is
 * not there answers "not supported", which NCCL takes as that of a plain machine or reports.
 */
#ifndef NI_TEST_NO_DEVICE_H
#define NI_TEST_NO_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ND_API(name, args) \
  __attribute__((visibility("default"))) int name args; \
  int name args
enum { ND_OUT_OF_MEMORY = 2, ND_NOT_READY = 600, ND_NOT_SUPPORTED = 801, ND_GPUS = 8 };

uint64_t nd_now(void); /* ns since 1970, what the device's global timer says here */
void nd_say(const char *what, const char *name);
int nd_memory(void **p, size_t n); /* zeroes, but for very large ones */
/* A hook or one of driver.c by name, else one that says its name and answers "not supported". */
int nd_entry_point(const char *name, void **p, int *status);
int nd_attribute(int a);
extern _Thread_local int nd_device;
extern int nd_release; /* of the NCCL taken over: 22907 is 2.29.7 */

/* ---- streams.c ----------------------------------------------------------------------------------------- */
struct nd_graph;
/*
 * Runs run(arg) on the stream's thread after what is there already, NULL is the default stream; freed:
 * free(arg) afterwards. While this thread captures, a node of the graph instead.
 */
int nd_enqueue(void *stream, void (*run)(void *), void *arg, bool freed);
int nd_stream_create(void **s);
int nd_stream_destroy(void *s);
int nd_stream_sync(void *s);
int nd_stream_query(void *s);
int nd_device_sync(void);
int nd_event_create(void **e);
int nd_event_record(void *e, void *s);
int nd_event_wait(void *s, void *e); /* the stream, not the caller */
int nd_event_query(void *e);
int nd_event_sync(void *e);
int nd_event_elapsed(float *ms, void *from, void *to);
int nd_capture_begin(void);
struct nd_graph *nd_capturing(void);
int nd_capture_end(struct nd_graph **g);
int nd_graph_launch(struct nd_graph *g, void *stream);
int nd_graph_destroy(struct nd_graph *g);
int nd_graph_at_end(void (*run)(void *), void *arg); /* when the graph that is captured now goes */

/* ---- kernel.c ------------------------------------------------------------------------------------------ */
/*
 * extra: CUDA's list of launch parameters with NCCL's kernel arguments, or NULL for a kernel that is not a
 * communicator's.
 */
int nd_kernel_launch(void *stream, unsigned grid, void **extra);
/*
 * Host memory that NCCL gets: rings of stamps, abort flags and connections are among it. Each before it is
 * used.
 */
void nd_kernel_sees(void *p, size_t n);

/* ---- wire.c -------------------------------------------------------------------------------------------- */
void nd_wire_sees(void *p, size_t n);
void nd_wire_forget(void *p);

#endif
