/*
 * Kernels of NCCL's; see no_device.h. Layouts are those of NCCL's src/include/device.h, the same from 2.27 to 2.30 in what is
 * read here; of later releases no source is public, so what is read is looked at before it is believed.
 *
 * A launch has a list of batches per channel. Each batch counts as many works as bits are set in its last word (and in those
 * that extend it); a channel's counter goes on by that. Begun and done are stamped at counter mod 64 in two rings a
 * communicator, 64 channels each: time first, then the counter, which NCCL's thread waits for.
 *
 * Ranks meet at each kernel in a file in /dev/shm: gpu_drive's ranks make their communicators and launches in the same order,
 * so the n-th kernel of the k-th communicator is the same for all. No kernel ends before all ranks have begun it. A
 * rank that never comes keeps the others until they are aborted.
 */
#include "no_device.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHANNELS = 64, SLOTS = 64, MAX_COMMS = 128, COMM_WORDS = 32, MAX_FLAGS = 1024 };
struct stamp {
  uint64_t counter, timestamp;
};
struct batch {
  uint32_t flags; /* next: 14 bits, extends: 1, type: 2, function: 15 */
  uint32_t offset;
  uint64_t works;
};
struct arguments {
  void *const *comm; /* the device's communicator: numbers, and pointers to what is looked for here */
  uint64_t channels; /* mask */
  int storage;
  uint32_t mask;
  void *buffer;
  struct batch batches[];
};
struct launch {
  unsigned grid;
  size_t bytes; /* of arguments; 0: not a communicator's kernel */
  struct arguments arguments[];
};
/* The k-th pair of rings is the k-th communicator's. Its kernels run one after the other. */
static struct {
  struct stamp *begun, *done;
  uint64_t counters[CHANNELS], kernels;
} comms[MAX_COMMS];
static int n_rings, n_flags;
static volatile uint32_t *flags[MAX_FLAGS]; /* what is as small as an abort flag */

void nd_kernel_sees(void *p, size_t n) {
  if (n == sizeof(struct stamp) * CHANNELS * SLOTS && n_rings < 2 * MAX_COMMS) {
    if (n_rings % 2) comms[n_rings / 2].done = p;
    else comms[n_rings / 2].begun = p;
    n_rings++;
  } else if (n == sizeof *flags[0] && n_flags < MAX_FLAGS) {
    flags[n_flags++] = p;
  }
}

/* ---- where ranks meet ------------------------------------------------------------------------------------------- */

struct meeting {
  _Atomic uint64_t arrived[MAX_COMMS]; /* kernels begun, by all ranks; relaxed: nothing else is handed over by it */
};
static char meeting_name[128];
static void leave(void) { shm_unlink(meeting_name); }
static struct meeting *meeting(void) {
  static struct meeting *_Atomic m; /* acquire here with release below; two that open it both get the same memory */
  struct meeting *seen = atomic_load_explicit(&m, memory_order_acquire);
  unsigned long long born = 0;
  if (seen) return seen;
  snprintf(meeting_name, sizeof meeting_name, "/proc/%d/stat", getppid());
  FILE *f = fopen(meeting_name, "re");
  if (f) { /* field 22: pids come again, with another time of birth */
    if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &born) != 1)
      born = 0;
    fclose(f);
  }
  snprintf(meeting_name, sizeof meeting_name, "/ni_no_device-%d-%llu", getppid(), born);
  int fd = shm_open(meeting_name, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof *seen) < 0) {
    perror("no_device: where ranks meet");
    _exit(1);
  }
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (seen == MAP_FAILED) _exit(1);
  atexit(leave);
  atomic_store_explicit(&m, seen, memory_order_release);
  return seen;
}

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

/* Batch i of the launch and those that extend it: how many works. *next is the channel's next one, -1 after its last. */
static unsigned works_of(const struct launch *l, int i, int *next) {
  unsigned n = 0;
  int total = (int)((l->bytes - sizeof *l->arguments) / sizeof(struct batch));
  for (;;) {
    const struct batch *b = &l->arguments->batches[i];
    int jump = b->flags & 0x3fff;
    n += (unsigned)__builtin_popcountll(b->works);
    if (jump == 0 || i + jump >= total) return *next = -1, n;
    i += jump;
    if (!(b->flags & 0x4000)) return *next = i, n;
  }
}

static void put(struct stamp *ring, int channel, uint64_t from, unsigned n) {
  for (uint64_t c = from + 1; c <= from + n; c++) {
    struct stamp *s = &ring[channel * SLOTS + (int)(c % SLOTS)];
    s->timestamp = nd_now();
    __atomic_store_n(&s->counter, c, __ATOMIC_RELEASE); /* with NCCL's volatile read, which takes the time after it */
  }
}

static unsigned pause_us(void) {
  const char *v = getenv("NI_NO_DEVICE_KERNEL_US");
  return v ? (unsigned)atoi(v) : 50;
}

static void run(void *arg) {
  const struct launch *l = arg;
  const struct arguments *a = l->arguments;
  volatile uint32_t *abort_flag = NULL;
  struct {
    int channel, batch, next;
    unsigned works;
  } lanes[CHANNELS];
  int k = -1, n = 0, ranks;
  if (l->bytes == 0) {
    usleep(pause_us());
    return;
  }
  for (int i = 0; i < COMM_WORDS && k < 0; i++)
    for (int c = 0; c < n_rings / 2 && k < 0; c++)
      if (a->comm[i] == (void *)comms[c].begun && a->comm[i + 1] == (void *)comms[c].done) k = c;
  for (int i = 0; i < COMM_WORDS && !abort_flag; i++)
    for (int c = 0; c < n_flags && !abort_flag; c++)
      if (a->comm[i] == (void *)flags[c]) abort_flag = flags[c];
  if (k < 0 || !abort_flag || __builtin_popcountll(a->channels) != (int)l->grid) {
    fprintf(stderr, "no_device: the kernel's arguments are not understood\n");
    _exit(1);
  }
  ranks = ((const int *)a->comm)[1];
  for (int c = 0; c < CHANNELS; c++)
    if (a->channels >> c & 1) lanes[n].channel = c, lanes[n].batch = n, n++;
  atomic_fetch_add_explicit(&meeting()->arrived[k], 1, memory_order_relaxed);
  uint64_t all = ++comms[k].kernels * (uint64_t)ranks;
  for (bool first = true; n > 0; first = false) {
    for (int i = 0; i < n; i++) {
      lanes[i].works = works_of(l, lanes[i].batch, &lanes[i].next);
      put(comms[k].begun, lanes[i].channel, comms[k].counters[lanes[i].channel], lanes[i].works);
    }
    usleep(pause_us());
    while (first && atomic_load_explicit(&meeting()->arrived[k], memory_order_relaxed) < all && !*abort_flag)
      usleep(20);
    if (k == 0 && comms[k].kernels == 1) leave(); /* all ranks have the file open: its name need not outlive a kill */
    int left = 0;
    for (int i = 0; i < n; i++) {
      put(comms[k].done, lanes[i].channel, comms[k].counters[lanes[i].channel], lanes[i].works);
      comms[k].counters[lanes[i].channel] += lanes[i].works;
      if (lanes[i].next < 0) continue;
      lanes[left] = lanes[i];
      lanes[left].batch = lanes[i].next;
      left++;
    }
    n = left;
  }
}

int nd_kernel_launch(void *stream, unsigned grid, void **extra) {
  const void *from = NULL;
  size_t bytes = 0;
  for (; extra && extra[0]; extra += 2) { /* 1: where the arguments are; 2: where their size is */
    if (extra[0] == (void *)1) from = extra[1];
    if (extra[0] == (void *)2) bytes = *(const size_t *)extra[1];
  }
  if (!from || bytes < sizeof(struct arguments)) bytes = 0;
  struct launch *l = malloc(sizeof *l + bytes);
  if (!l) return ND_OUT_OF_MEMORY;
  l->grid = grid;
  l->bytes = bytes;
  if (bytes) memcpy(l->arguments, from, bytes);
  return nd_enqueue(stream, run, l, true);
}
