/*
 * The fake NCCL's communicators, and the proxy thread of each: raises KernelCh when the device, which is a
 * clock, gets there.
 */
#ifndef NI_TEST_GPU_FAKE_PROXY_H
#define NI_TEST_GPU_FAKE_PROXY_H

#include <pthread.h>

#include "format/names.h"
#include "test/nccl_sim/core/core.h"
#include "fake.h"

struct work {
  struct work *next;
  void *handle;
  uint64_t start_ns, end_ns, shown_end_ns;
  int channels;
};

struct ncclComm {
  struct ni_comm_ident id;
  void *ctx;
  bool loaded, stop, abandon; /* stop, abandon: under lock */
  int in_progress;            /* answers left before a non-blocking call is done */
  bool nonblocking;
  unsigned splits;
  uint64_t sn[NI_FUNC_COUNT];
  pthread_t proxy;
  pthread_mutex_t lock;
  pthread_cond_t cond;
  struct work *head, **tail;
  ni_stream hung;
};

/*
 * The proxy thread. comm: struct ncclComm *. Ends when the communicator is stopped and nothing is left, or it
 * is abandoned.
 */
void *ni_fake_proxy(void *comm);

#endif
