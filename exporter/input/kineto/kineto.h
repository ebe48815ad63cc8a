/*
 * A Chrome trace as torch.profiler (Kineto) writes it, plain or gzip, event by event: {.., "traceEvents":
 * [{..}, ..], ..}.
 *
 * Memory: 1 MiB for the event at hand, whatever the file's length. Threads: any, a call is by itself.
 * Sources: Kineto's output_json.cpp, PyTorch's profiler/util.cpp (what is said of a collective), the Trace
 * Event Format.
 */
#ifndef NI_KINETO_H
#define NI_KINETO_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/base/progress.h"

#define NI_KINETO_NONE INT64_MIN /* of a number that the file does not state */

/* What an event is to those who look for NCCL. */
enum ni_kineto_what {
  NI_KINETO_OTHER = 0,
  NI_KINETO_FILE, /* no event: what the file says of itself: base_ns, rank, world_size, nccl_version */
  /* no event: a process group as the file's head lists it: group, description, ranks, size */
  NI_KINETO_GROUP,
  NI_KINETO_KERNEL, /* a kernel of NCCL or RCCL, on the GPU: func, and args of collectives */
  NI_KINETO_CALL,   /* PyTorch's call of a collective, on the CPU (record_param_comms): the same args */
  NI_KINETO_LAUNCH, /* the runtime's launch of some kernel, on the CPU: correlation */
  NI_KINETO_STEP,   /* a step of the training loop (ProfilerStep#N): number */
};

/* Numbers: NI_KINETO_NONE where they are not stated. Texts: "" likewise, and valid during the call alone. */
struct ni_kineto_args {
  /* a kernel and its launch; a kernel and its call */
  int64_t correlation, external;
  /* of a kernel; blocks: those of its grid; graph: not 0: replayed from that one */
  int64_t device, stream, blocks, graph;
  /* size: ranks of the group; the last two are global ranks */
  int64_t in_elements, out_elements, size, seq, rank, source, target;
  /* the group's ranks are first_rank, first_rank + stride, ... */
  int64_t first_rank, stride;
  int64_t number; /* of a step */
  /* of the job; of an event, where it is a number */
  int64_t world_size, pid;
  const char *collective, *datatype, *group, *description, *ranks, *nccl_version;
};

struct ni_kineto_event {
  enum ni_kineto_what what;
  /* X slice, i instant, M name, s and f arrow, ...; 0: no event, what the file says */
  char phase;
  uint64_t process, place; /* hashes: of its pid; of pid and tid */
  /* since base_ns; of Unix us in the file a double holds 1/4. NI_KINETO_NONE: no number */
  int64_t ts_ns, dur_ns;
  char name[128], label[128]; /* label: what an M says. Both cut where they are longer */
  /* of an NCCL kernel: its function as in its name (AllReduce, SendRecv, Generic) */
  char func[32];
  int64_t base_ns;            /* NI_KINETO_NONE: not stated */
  int32_t rank;               /* of the job; -1: not stated */
  struct ni_kineto_args args; /* of what is not NI_KINETO_OTHER */
};

/* Does the name of a file end as those of traces do (.json, .json.gz)? */
bool ni_kineto_is_trace(const char *name);

/*
 * *bad: what is no JSON, or too long. progress: bytes of the file; NULL: nobody asks. 0; what take()
 * returned, unless 0; -errno; -EBADMSG: not such a file, or its end is missing (all before it was taken).
 */
int ni_kineto_read(const char *path, int (*take)(void *arg, const struct ni_kineto_event *e), void *arg,
                   uint64_t *bad, struct ni_progress *progress);

#endif
