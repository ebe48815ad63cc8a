#include "fake_proxy.h"

#include <string.h>

static uint64_t to_gpu; /* the device's clock counts from 1970 */
__attribute__((constructor)) static void start(void) { to_gpu = ni_unix_now() - ni_now(); }

static bool wait_until(struct ncclComm *c, uint64_t ns) { /* false: abandoned. c->lock held */
  while (!c->abandon) {
    uint64_t now = ni_now();
    if (now >= ns)
      return true;
    uint64_t until = ni_unix_now() + (ns - now < 50000000 ? ns - now : 50000000);
    struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    pthread_cond_timedwait(&c->cond, &c->lock, &t);
  }
  return false;
}

static void play(struct ncclComm *c, struct work *w) { /* c->lock held */
  void *ch[64] = {NULL};
  if (!wait_until(c, w->start_ns))
    return;
  pthread_mutex_unlock(&c->lock);
  for (int i = 0; i < w->channels; i++) {
    struct ni_prof_descr_v7 d;
    memset(&d, 0, sizeof d);
    d.type = NI_EV_KERNEL_CH;
    d.parentObj = w->handle;
    d.kernelCh.channelId = (uint8_t)i;
    d.kernelCh.pTimer = w->start_ns + to_gpu;
    ni_core_start(c->ctx, &ch[i], &d);
  }
  pthread_mutex_lock(&c->lock);
  if (!wait_until(c, w->shown_end_ns))
    return;
  pthread_mutex_unlock(&c->lock);
  for (int i = 0; i < w->channels; i++) {
    union ni_prof_state_v4 a;
    memset(&a, 0, sizeof a);
    a.kernelCh.pTimer = w->shown_end_ns + to_gpu;
    ni_core_record(ch[i], NI_ST_KERNEL_CH_STOP, &a);
    ni_core_stop(ch[i]);
  }
  pthread_mutex_lock(&c->lock);
}

void *ni_fake_proxy(void *arg) {
  struct ncclComm *c = arg;
  pthread_mutex_lock(&c->lock);
  for (;;) {
    while (!c->head && !c->stop && !c->abandon)
      pthread_cond_wait(&c->cond, &c->lock);
    if (c->abandon || !c->head)
      break;
    struct work *w = c->head;
    play(c, w);
    c->head = w->next;
    if (!c->head)
      c->tail = &c->head;
    free(w);
  }
  pthread_mutex_unlock(&c->lock);
  ni_core_flush_counts();
  return NULL;
}
