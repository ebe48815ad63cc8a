/*
 * A library for the simulator to keep NCCL's activation mask in: the plugin looks which file it lies in, and
 * under which names that file exports what (plugin/os/nccl_library.h). NI_RCCL_NAMES: it has RCCL linked in.
 */
int ncclProfilerEventMask;

#ifdef NI_RCCL_NAMES
int ncclAllToAllv(void);
int ncclAllToAllv(void) { return 0; }
#endif
