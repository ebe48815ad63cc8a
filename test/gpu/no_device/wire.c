/*
 * A kernel's part of the network transport; see no_device.h. Layouts are those of NCCL's src/include/comm.h.
 *
 * Each connection has two pages that device and proxy share: one with `head`, one with `tail` and a queue of
 * eight slots. Sending, the device fills slots (a slot's size is -1 while it is free) and moves tail, the
 * proxy sends and frees. Receiving, the proxy moves tail when something came, and the device moves head when
 * it has read that. Which direction a connection has shows in what NCCL wrote first: sending, offsets of -1,
 * and with shared buffers a negative head. The two pages are the end of a block of host memory.
 *
 * Nothing here knows how long an operation is: whatever can be sent is, and the proxy, which knows, asks for
 * no more. Sizes are 0, which every protocol takes as complete. One thread, which sleeps longer while nothing
 * moves.
 */
#include "no_device.h"

#include <pthread.h>
#include <unistd.h>

enum { PAGE = 4096, STEPS = 8, MAX_CONNECTIONS = 4096 };
struct head_page {
  volatile uint64_t head;
  char pad[PAGE - 8];
};
struct tail_page {
  volatile uint64_t tail;
  char pad[128 - 8];
  char slots[PAGE - 128];
};
_Static_assert(sizeof(struct tail_page) == PAGE, "a page");
static struct connection {
  void *block;
  struct head_page *heads;
  struct tail_page *tails;
  enum { UNKNOWN, SENDS, RECEIVES } what;
} connections[MAX_CONNECTIONS];
static int n_connections;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const uint64_t far_ahead = UINT64_C(1) << 60;

/*
 * A slot is mode, offset, size, pointer; from 2.31 on the offset has 64 bits (seen, its source is not
 * public).
 */
static volatile int64_t *size_of(struct connection *c, int slot) {
  return (volatile int64_t *)(c->tails->slots + slot * (nd_release < 23100 ? 24 : 32) +
                              (nd_release < 23100 ? 8 : 16));
}
static int offset_of(struct connection *c, int slot) {
  return *(volatile int *)(c->tails->slots + slot * (nd_release < 23100 ? 24 : 32) +
                           (nd_release < 23100 ? 4 : 8));
}

static bool turn(struct connection *c) {
  bool moved = false;
  if (c->what == UNKNOWN) {
    bool sends = (int64_t)c->heads->head < 0; /* shared buffers: no credit yet */
    for (int i = 0; i < STEPS; i++)
      sends |= offset_of(c, i) == -1;
    if (c->tails->tail)
      c->what = RECEIVES;
    else if (sends && *size_of(c, 0) == -1)
      c->what = SENDS;
  }
  if (c->what == RECEIVES && c->heads->head != c->tails->tail) {
    c->heads->head = c->tails->tail;
    moved = true;
  }
  for (int i = 0; c->what == SENDS && i < STEPS; i++)
    if (*size_of(c, i) == -1) {
      *size_of(c, i) = 0;
      moved = true;
    }
  if (c->what == SENDS)
    __atomic_store_n(&c->tails->tail, far_ahead, __ATOMIC_RELEASE); /* with the proxy's volatile read */
  return moved;
}

static void *wire(void *unused) {
  (void)unused;
  for (unsigned still = 0;;) {
    pthread_mutex_lock(&lock);
    still++;
    for (int i = 0; i < n_connections; i++)
      if (turn(&connections[i]))
        still = 0;
    pthread_mutex_unlock(&lock);
    usleep(still < 100 ? 50 : 500);
  }
  return NULL;
}

void nd_wire_sees(void *p, size_t n) {
  static bool running;
  pthread_t thread;
  /*
   * Two pages, or two after buffers that make no power of two: the other blocks of this kind (work, stamps,
   * shared buffers) do.
   */
  if (n < 2 * PAGE || n % PAGE || (n > 2 * PAGE && (n & (n - 1)) == 0))
    return;
  pthread_mutex_lock(&lock);
  if (n_connections < MAX_CONNECTIONS)
    connections[n_connections++] =
        (struct connection){p, (void *)((char *)p + n - 2 * PAGE), (void *)((char *)p + n - PAGE), UNKNOWN};
  if (!running && pthread_create(&thread, NULL, wire, NULL) == 0) {
    pthread_detach(thread);
    running = true;
  }
  pthread_mutex_unlock(&lock);
}

void nd_wire_forget(void *p) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < n_connections; i++)
    if (connections[i].block == p)
      connections[i--] = connections[--n_connections];
  pthread_mutex_unlock(&lock);
}
