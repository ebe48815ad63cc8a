/*
 * Kernels of NCCL's; see no_device.h. Layouts are those of NCCL's src/include/device.h, the same from 2.27 to
 * 2.30 in what is read here; of later releases no source is public, so what is read is looked at before it is
 * believed.
 *
 * A launch has a list of batches per channel. Each batch counts as many works as bits are set in its last
 * word (and in those that extend it); a channel's counter goes on by that. Begun and done are stamped at
 * counter mod 64 in two rings a communicator, 64 channels each: time first, then the counter, which NCCL's
 * thread waits for.
 *
 * Ranks meet at each kernel in a file in /dev/shm: gpu_drive's ranks make their communicators and launches in
 * the same order, so the n-th kernel of the k-th communicator is the same for all. No kernel ends before all
 * ranks have begun it. A rank that never comes keeps the others until they are aborted.
 */
#include "no_device.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BEGIN, AFTER_OPEN, BEFORE_CLOSE, END, BOUNDS }; /* of a kernel's phases */
enum { CHANNELS = 64, SLOTS = 64, MAX_COMMS = 128, COMM_WORDS = 32, MAX_FLAGS = 1024 };
struct stamp {
  uint64_t counter, timestamp;
};
struct phases { /* of a channel's last works, from 2.31 on */
  struct {
    uint64_t counter, at[BOUNDS];
  } works[64];
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
/*
 * The k-th pair of rings is the k-th communicator's, up to 2.30; from then on each has a second pair, of its
 * symmetric kernels. What is said of a communicator here holds for each pair. Its kernels run one after the
 * other.
 */
static struct {
  struct stamp *begun, *done;
  struct phases *phases; /* NULL: this release has none */
  uint64_t counters[CHANNELS], kernels;
} comms[MAX_COMMS];
static int n_rings, n_flags;
static volatile uint32_t *flags[MAX_FLAGS]; /* what is as small as an abort flag */

void nd_kernel_sees(void *p, size_t n) {
  if (n == sizeof(struct stamp) * CHANNELS * SLOTS && n_rings < 2 * MAX_COMMS) {
    if (n_rings % 2)
      comms[n_rings / 2].done = p;
    else
      comms[n_rings / 2].begun = p;
    n_rings++;
  } else if (n == sizeof(struct phases) * CHANNELS && n_rings && n_rings % 2 == 0 && nd_release >= 23100) {
    comms[n_rings / 2 - 1].phases = p;
  } else if (n == sizeof *flags[0] && n_flags < MAX_FLAGS) {
    flags[n_flags++] = p;
  }
}

/* ---- where ranks meet ---------------------------------------------------------------------------------- */

struct meeting {
  /* kernels begun, by all ranks; relaxed: nothing else is handed over by it */
  _Atomic uint64_t arrived[MAX_COMMS];
};
static char meeting_name[128];
static void leave(void) { shm_unlink(meeting_name); }
static struct meeting *meeting(void) {
  /* acquire here with release below; two that open it both get the same memory */
  static struct meeting *_Atomic m;
  struct meeting *seen = atomic_load_explicit(&m, memory_order_acquire);
  unsigned long long born = 0;
  if (seen)
    return seen;
  snprintf(meeting_name, sizeof meeting_name, "/proc/%d/stat", getppid());
  FILE *f = fopen(meeting_name, "re");
  if (f) { /* field 22: pids come again, with another time of birth */
    if (fscanf(
            f,
            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
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
  if (seen == MAP_FAILED)
    _exit(1);
  atexit(leave);
  atomic_store_explicit(&m, seen, memory_order_release);
  return seen;
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

/*
 * Batch i of the launch and those that extend it: how many works. *next is the channel's next one, -1 after
 * its last.
 */
static unsigned works_of(const struct launch *l, int i, int *next) {
  unsigned n = 0;
  int total = (int)((l->bytes - sizeof *l->arguments) / sizeof(struct batch));
  for (;;) {
    const struct batch *b = &l->arguments->batches[i];
    int jump = b->flags & 0x3fff;
    n += (unsigned)__builtin_popcountll(b->works);
    if (jump == 0 || i + jump >= total)
      return *next = -1, n;
    i += jump;
    if (!(b->flags & 0x4000))
      return *next = i, n;
  }
}

/* The last bound is with the counter: NCCL lets no KernelCh end before it, where phases are asked for. */
static void phase(int k, int channel, uint64_t counter, int bound, uint64_t at) {
  if (!comms[k].phases)
    return;
  comms[k].phases[channel].works[counter % SLOTS].at[bound] = at;
  if (bound == END)
    /* as in put */
    __atomic_store_n(&comms[k].phases[channel].works[counter % SLOTS].counter, counter, __ATOMIC_RELEASE);
}

static void put(struct stamp *ring, int channel, uint64_t from, unsigned n, uint64_t at) {
  for (uint64_t c = from + 1; c <= from + n; c++) {
    struct stamp *s = &ring[channel * SLOTS + (int)(c % SLOTS)];
    s->timestamp = at;
    /* with NCCL's volatile read, which takes the time after it */
    __atomic_store_n(&s->counter, c, __ATOMIC_RELEASE);
  }
}

/*
 * The works that follow number `from` begin, or are done: as kernels that are not symmetric tell it, whose
 * phases, where this release has them (2.31), mean nothing: the first and the last have no length.
 */
static void begin(int k, int channel, uint64_t from, unsigned n) {
  uint64_t now = nd_now();
  for (uint64_t c = from + 1; c <= from + n; c++)
    phase(k, channel, c, BEGIN, now), phase(k, channel, c, AFTER_OPEN, now + 32);
  put(comms[k].begun, channel, from, n, now);
}
static void end(int k, int channel, uint64_t from, unsigned n) {
  uint64_t now = nd_now();
  for (uint64_t c = from + 1; c <= from + n; c++)
    phase(k, channel, c, BEFORE_CLOSE, now), phase(k, channel, c, END, now);
  put(comms[k].done, channel, from, n, now);
}

static unsigned pause_us(void) {
  const char *v = getenv("NI_NO_DEVICE_KERNEL_US");
  return v ? (unsigned)atoi(v) : 50;
}

/* The first of n words that is an abort flag's address, else NULL. */
static const volatile uint32_t *flag_in(void *const *words, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (int c = 0; c < n_flags; c++)
      if (words[i] == (void *)flags[c])
        return flags[c];
  return NULL;
}

/* Until all ranks have begun this kernel of communicator k, or an abort. */
static void meet(int k, int ranks, const volatile uint32_t *abort_flag) {
  uint64_t all = ++comms[k].kernels * (uint64_t)ranks;
  atomic_fetch_add_explicit(&meeting()->arrived[k], 1, memory_order_relaxed);
  while (atomic_load_explicit(&meeting()->arrived[k], memory_order_relaxed) < all && !*abort_flag)
    usleep(20);
  /* all ranks have the file open: its name need not outlive a kill */
  if (k == 0 && comms[k].kernels == 1)
    leave();
}

static _Noreturn void not_understood(void) {
  fprintf(stderr, "no_device: the kernel's arguments are not understood\n");
  _exit(1);
}

/*
 * A symmetric kernel (2.31 and later; before, nothing of it is seen by a profiler). Its arguments begin with
 * two numbers, rank and ranks, and hold the addresses of the rings of stamps, how many channels, the size of
 * shared memory, whether to stamp, and then the count that each channel's work has. Phases as those kernels
 * have them that begin and end with a barrier.
 */
struct symmetric {
  void *begun, *done, *phases;
  int channels, shared, profiled;
};
static const struct symmetric *symmetric_of(const struct launch *l, int *k) {
  const char *from = (const char *)l->arguments;
  for (size_t i = 0; i + sizeof(struct symmetric) <= l->bytes; i += sizeof(void *)) {
    const struct symmetric *s = (const void *)(from + i);
    for (*k = 0; *k < n_rings / 2; ++*k)
      if (s->begun == comms[*k].begun && s->done == comms[*k].done)
        return s;
  }
  return NULL;
}
static void run_symmetric(const struct launch *l, const struct symmetric *s, int k) {
  const char *from = (const char *)l->arguments;
  size_t behind = ((size_t)((const char *)(&s->profiled + 1) - from) + 15) / 16 * 16;
  const uint64_t *counts = (const void *)(from + behind);
  const volatile uint32_t *abort_flag = flag_in((void *const *)(const void *)from, l->bytes / sizeof(void *));
  int ranks = ((const int *)(const void *)from)[3], n = s->profiled ? (int)l->grid : 0;
  if (!abort_flag || ranks < 1 || ranks > 64 || n > CHANNELS ||
      behind + (size_t)n * sizeof *counts > l->bytes)
    not_understood();
  for (int c = 0; c < n; c++) {
    uint64_t now = nd_now();
    phase(k, c, counts[c], BEGIN, now);
    put(comms[k].begun, c, counts[c] - 1, 1, now);
  }
  meet(k, ranks, abort_flag);
  for (int c = 0; c < n; c++)
    phase(k, c, counts[c], AFTER_OPEN, nd_now());
  usleep(pause_us());
  for (int c = 0; c < n; c++)
    phase(k, c, counts[c], BEFORE_CLOSE, nd_now());
  usleep(5);
  for (int c = 0; c < n; c++) {
    uint64_t now = nd_now();
    phase(k, c, counts[c], END, now);
    put(comms[k].done, c, counts[c] - 1, 1, now);
  }
}

static void run(void *arg) {
  const struct launch *l = arg;
  const struct arguments *a = l->arguments;
  struct {
    int channel, batch, next;
    unsigned works;
  } lanes[CHANNELS];
  int k = -1, n = 0;
  if (l->bytes == 0) {
    usleep(pause_us());
    return;
  }
  const struct symmetric *s = symmetric_of(l, &k);
  if (s) {
    run_symmetric(l, s, k);
    return;
  }
  k = -1;
  for (int i = 0; i < COMM_WORDS && k < 0; i++)
    for (int c = 0; c < n_rings / 2 && k < 0; c++)
      if (a->comm[i] == (void *)comms[c].begun && a->comm[i + 1] == (void *)comms[c].done)
        k = c;
  const volatile uint32_t *abort_flag = flag_in(a->comm, COMM_WORDS);
  if (k < 0 || !abort_flag || __builtin_popcountll(a->channels) != (int)l->grid)
    not_understood();
  for (int c = 0; c < CHANNELS; c++)
    if (a->channels >> c & 1)
      lanes[n].channel = c, lanes[n].batch = n, n++;
  for (bool first = true; n > 0; first = false) {
    for (int i = 0; i < n; i++) {
      lanes[i].works = works_of(l, lanes[i].batch, &lanes[i].next);
      begin(k, lanes[i].channel, comms[k].counters[lanes[i].channel], lanes[i].works);
    }
    usleep(pause_us());
    if (first)
      meet(k, ((const int *)a->comm)[1], abort_flag);
    int left = 0;
    for (int i = 0; i < n; i++) {
      end(k, lanes[i].channel, comms[k].counters[lanes[i].channel], lanes[i].works);
      comms[k].counters[lanes[i].channel] += lanes[i].works;
      if (lanes[i].next < 0)
        continue;
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
    if (extra[0] == (void *)1)
      from = extra[1];
    if (extra[0] == (void *)2)
      bytes = *(const size_t *)extra[1];
  }
  if (!from || bytes < sizeof(struct arguments))
    bytes = 0;
  struct launch *l = malloc(sizeof *l + bytes);
  if (!l)
    return ND_OUT_OF_MEMORY;
  l->grid = grid;
  l->bytes = bytes;
  if (bytes)
    memcpy(l->arguments, from, bytes);
  return nd_enqueue(stream, run, l, true);
}
