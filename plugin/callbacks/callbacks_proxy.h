/*
 * Network operations and their steps. Rules of all callbacks: callbacks.h.
 */
#ifndef NI_CALLBACKS_PROXY_H
#define NI_CALLBACKS_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct ni_proxy_start {
  const void *parent;
  int32_t pid, rank, peer, n_steps, chunk;
  uint8_t channel;
  bool send;
};

/* A proxy operation of another process (its pid, or a context that is none of ours) is told apart before
 * anything that its context or parent names is touched. */
void *ni_cb_proxy_start(const void *context, const struct ni_proxy_start *d);
/* Called again for a transfer that has not begun (callbacks 3.3) it returns the same handle. */
void *ni_cb_step_start(const void *parent, int32_t step);

/* ---- for callbacks.c and callbacks_event.c ---- */

void ni_proxy_stop(const void *handle);
void ni_step_stop(const void *handle);
void ni_proxy_state(const void *handle, uint32_t state, const uint64_t *value);
void ni_step_state(const void *handle, uint32_t state, const uint64_t *value);
/*
 * The operation that a step's handle belongs to: 1 with its communicator's page (0: none), number and NCCL's
 * step.
 */
int ni_proxy_of_step(const void *step_handle, uint32_t *comm_page, uint64_t *op_sn, uint32_t *step);

#endif
