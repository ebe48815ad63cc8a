#include "xid.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "exporter/base/array.h"

enum { WAIT_MS = 250, TYPE_XID = 8 };

struct ni_xid {
  const struct ni_nvml *nvml;
  ni_nvml_handle set;
  struct gpu {
    ni_nvml_handle device;
    uint64_t n, last;
  } *gpu;
  size_t n, cap;
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows, and what gpu[] counts */
  bool started, stop;
  int result; /* of the last wait */
};

static void *wait_for(void *arg) {
  struct ni_xid *x = arg;
  for (bool stop = false; !stop;) {
    struct ni_nvml_event e = {0};
    int r = NI_NVML(x->nvml, wait, x->set, &e, WAIT_MS);
    /* An error may come at once and for ever: a lost GPU. */
    if (r != NI_NVML_OK && r != NI_NVML_TIMEOUT) nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    pthread_mutex_lock(&x->lock);
    x->result = r == NI_NVML_TIMEOUT ? NI_NVML_OK : r;
    for (size_t i = 0; i < x->n && r == NI_NVML_OK; i++)
      if (x->gpu[i].device == e.device && e.type == TYPE_XID) {
        x->gpu[i].n++;
        x->gpu[i].last = e.data;
      }
    stop = x->stop;
    pthread_mutex_unlock(&x->lock);
  }
  return NULL;
}

int ni_xid_watch(struct ni_xid **all, const struct ni_nvml *n, ni_nvml_handle device) {
  struct ni_xid *x = *all;
  if (!x) {
    x = calloc(1, sizeof *x);
    if (!x || NI_NVML(n, set_create, &x->set) != NI_NVML_OK) {
      free(x);
      return NI_NVML_NOT_SUPPORTED;
    }
    x->nvml = n;
    pthread_mutex_init(&x->lock, NULL);
    *all = x;
  }
  int r = NI_NVML(n, watch, device, TYPE_XID, x->set);
  if (r != NI_NVML_OK) return r;
  if (!ni_array_room(x->gpu, x->n, x->cap)) return NI_NVML_UNKNOWN;
  x->gpu[x->n++] = (struct gpu){.device = device};
  return NI_NVML_OK;
}

static bool start(struct ni_xid *x) {
  sigset_t all, before;
  sigfillset(&all); /* signals are the command's, not this thread's */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool done = pthread_create(&x->thread, NULL, wait_for, x) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (done) pthread_setname_np(x->thread, "ni-xid");
  return done;
}

int ni_xid_read(struct ni_xid *x, ni_nvml_handle device, uint64_t out[2]) {
  pthread_mutex_lock(&x->lock);
  if (!x->started) x->started = start(x);
  int r = x->started ? x->result : NI_NVML_UNKNOWN;
  for (size_t i = 0; i < x->n; i++)
    if (x->gpu[i].device == device) out[0] = x->gpu[i].n, out[1] = x->gpu[i].last;
  pthread_mutex_unlock(&x->lock);
  return r;
}

void ni_xid_free(struct ni_xid *x) {
  if (!x) return;
  pthread_mutex_lock(&x->lock);
  x->stop = true;
  pthread_mutex_unlock(&x->lock);
  if (x->started) pthread_join(x->thread, NULL);
  NI_NVML(x->nvml, set_free, x->set);
  pthread_mutex_destroy(&x->lock);
  free(x->gpu);
  free(x);
}
