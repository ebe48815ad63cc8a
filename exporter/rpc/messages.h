/*
 * The messages between clients and the head, as C structs: gsprof's (all published versions: fields were only
 * ever added) and ours.
 *
 *   gsprof's client ─ gswarm_profiler.ProfilerService: Connect, StreamMetrics, GetStatus, ...
 *       ─▶ head (one answer a call)
 *   our agent ─────── nccl_inspector.v1.Head/Stream, both ways: hello, samples ─▶ head
 *       ─▶ welcome, acknowledgements
 *
 * Ours: the agent says who it is (hello); the head says what it has of it for good (welcome.have) and how
 * often it wants a sample; the agent sends all that comes after, in order; the head acknowledges what is on
 * its disk in the files of all running sessions, or wanted by none. After a cut the same again. Fields that
 * one side does not know it passes over, so that either may be a release older; a `protocol` that is larger
 * is spoken as the smaller one.
 *
 * Decoders take what others send: false for what is no sound message or beyond the bounds. Texts in them are
 * safe to print. Plain data; any thread.
 */
#ifndef NI_MESSAGES_H
#define NI_MESSAGES_H

#include "exporter/base/protobuf.h"
#include "exporter/session/sample.h"

#define NI_GSPROF "/gswarm_profiler.ProfilerService/"
#define NI_HEAD_STREAM "/nccl_inspector.v1.Head/Stream"
enum { NI_MESSAGE_MAX = 4 << 20, NI_HOST_MAX = 256, NI_PROTOCOL = 1 };

/* Connect's InitialInfo; of a sample only index and name of GPUs are set. */
bool ni_initial_decode(const void *bytes, size_t len, char host[NI_HOST_MAX], struct ni_sample **gpus);
void ni_initial_encode(struct ni_pb_writer *w, const char *host, const struct ni_sample *gpus);
/*
 * MetricsUpdate in gsprof's units (fractions, KiB/s, PCIe's rx and tx exchanged) and a sample in ours.
 * time_ns: the client's own clock, 0 where it says none. p2p: the GPUs' NVLink rates that a client sent as
 * links (GB/s), added to its GPUs' nvlink_tx. In proto3 a 0 is not sent: a rate that none of the GPUs has is
 * unknown, NaN; where one has it, it is 0 for the others.
 */
bool ni_update_decode(const void *bytes, size_t len, char host[NI_HOST_MAX], struct ni_sample **s);
void ni_update_encode(struct ni_pb_writer *w, const char *host, const struct ni_sample *s);

struct ni_status { /* StatusResponse */
  uint32_t freq_ms, frames;
  bool bandwidth, nvlink, profiling;
  const char *output;
  const char *const *client; /* connected ones */
  size_t n_clients;
};
void ni_status_encode(struct ni_pb_writer *w, const struct ni_status *s);
/* Of what a head answers the client wants these; clients are counted, not kept, and the output is NULL. */
bool ni_status_decode(const void *bytes, size_t len, struct ni_status *s);

/* ConnectResponse, StopProfilingResponse, Set*ProfilingResponse; with output: StartProfilingResponse. */
struct ni_reply {
  bool success;
  char message[512], output[512];
};
void ni_reply_encode(struct ni_pb_writer *w, const struct ni_reply *r);
bool ni_reply_decode(const void *bytes, size_t len, struct ni_reply *r);
/*
 * StartProfilingRequest, StopProfilingRequest, ReadNodeStatusRequest: field 1; *given: it was there and not
 * empty.
 */
bool ni_name_decode(const void *bytes, size_t len, char name[NI_HOST_MAX], bool *given);
void ni_name_encode(struct ni_pb_writer *w, const char *name);
/* Set*ProfilingRequest */
bool ni_enable_decode(const void *bytes, size_t len, bool *enable);
/*
 * NodeStatus with its GPUs, inside a ClusterStatusResponse (field 4) or a NodeStatusResponse (field 3): units
 * of 0.4, MiB of 16,384.
 */
void ni_node_encode(struct ni_pb_writer *w, uint32_t field, const char *id, const struct ni_sample *s);

/* ---- ours: docs/head.proto ---- */

struct ni_hello {
  char uuid[40], host[NI_HOST_MAX], version[32]; /* uuid: of the agent's state folder; it survives restarts */
  uint32_t protocol;
  uint64_t first, next; /* what it still has: first <= seq < next */
  int64_t skew_ns;      /* its Unix clock against the head's, as measured; 0 in the first hello */
  /* of its numbers: another one, and they began anew. 0: an agent that has none */
  uint64_t epoch;
};
struct ni_from_agent {      /* one of the two */
  struct ni_hello *hello;   /* for free() */
  struct ni_sample *sample; /* for free() */
  int64_t sent_ns;          /* the agent's monotonic clock when it sent this, of samples */
};
bool ni_agent_decode(const void *bytes, size_t len, struct ni_from_agent *m);
void ni_hello_encode(struct ni_pb_writer *w, const struct ni_hello *h);
void ni_sample_encode(struct ni_pb_writer *w, const struct ni_sample *s, int64_t sent_ns);

struct ni_from_head { /* welcome and every acknowledgement have all of it */
  bool welcome;
  uint32_t protocol;
  char version[32];
  /* all of the agent's samples up to this one are safe, or wanted by nobody */
  uint64_t have;
  uint64_t period_ns; /* samples at whole multiples of this, of the head's Unix clock */
  bool bandwidth;     /* it wants PCIe's rates, also where asking for them takes long */
  /* sent_ns of the newest sample; the head's Unix clock when that came, and when this went */
  int64_t echo_ns, received_ns, now_ns;
};
bool ni_head_decode(const void *bytes, size_t len, struct ni_from_head *m);
void ni_head_encode(struct ni_pb_writer *w, const struct ni_from_head *m);

#endif
