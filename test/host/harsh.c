/*
 * harsh SO WHAT    a host that treats the plugin harshly, one way a run:
 *
 *   cancel    a thread whose cancellation is pending calls init and finalize; then everybody else does
 *   leave     another thread calls exit() while init is within linkat, which gives the black box its name
 *   nostatx   the kernel refuses statx with EPERM, as the seccomp filters of old container runtimes do
 *   small     init, operations and finalize on a thread with the smallest stack
 *   locked    mlockall(MCL_FUTURE) before init; says how much memory is resident then
 *   again N   N lives of one communicator, hash and rank the same; the next begins as the last is finalized
 *   overlap N the same, and the next begins before the last is finalized
 *
 * Each life has 20 operations. The last line printed is "done"; 77: this machine cannot do it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/bench/plug.h"

enum { OPS = 20, HASH = 0xabc };
static struct plug plug;
static const char *what;
static int in_linkat[2];

static void die(int rc, const char *why) {
  printf("%s: %s\n", why, strerror(errno));
  exit(rc);
}

static void *begin_as(uint64_t hash) { return plug_init(&plug, hash, "harsh", 1, 1, 0, NULL); }
static void *begin(void) { return begin_as(HASH); }

static void *end(void *ctx) {
  struct plug_op o;
  plug_op_init(&o, 1024, 2);
  for (int i = 0; i < OPS; i++)
    plug_channels(&plug, ctx, &o, plug_launch(&plug, ctx, &o), 2, 20000);
  plug.finalize(ctx);
  return NULL;
}

static void *life(void *arg) {
  (void)arg;
  return end(begin());
}

/* ---- cancel ---- */

static void *cancelled_life(void *arg) {
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  pthread_cancel(pthread_self());
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  life(arg);
  return (void *)1;
}

/* ---- leave ---- */

/* Found before glibc's, also by the plugin. */
int linkat(int from, const char *old, int to, const char *new, int flags) {
  int rc = (int)syscall(SYS_linkat, from, old, to, new, flags);
  if (strcmp(what, "leave") != 0)
    return rc;
  if (write(in_linkat[1], "", 1) != 1)
    _exit(66);
  for (;;)
    pause();
}

static void leave(void) {
  pthread_t t;
  char c;
  if (pipe(in_linkat) || pthread_create(&t, NULL, life, NULL))
    die(66, "thread");
  if (read(in_linkat[0], &c, 1) != 1)
    die(66, "pipe");
  puts("done");
  exit(0);
}

/* ---- nostatx ---- */

static void refuse_statx(void) {
#if defined(__x86_64__)
  enum { ARCH = AUDIT_ARCH_X86_64 };
#else
  enum { ARCH = AUDIT_ARCH_AARCH64 };
#endif
  struct sock_filter f[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ARCH, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
  };
  struct sock_fprog prog = {sizeof f / sizeof *f, f};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
    die(77, "seccomp");
}

/* ---- small ---- */

static size_t stack_used(const unsigned char *stack, size_t n) {
  size_t free_bytes = 0;
  while (free_bytes < n && stack[free_bytes] == 0xa5)
    free_bytes++;
  return n - free_bytes;
}

static void small(void) {
  pthread_t t;
  pthread_attr_t attr;
  size_t n = (size_t)PTHREAD_STACK_MIN;
  /* Its own guard page below: a write beyond the stack ends the process. */
  unsigned char *p = mmap(NULL, n + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *stack = p + 65536;
  if (p == MAP_FAILED || mprotect(stack, n, PROT_READ | PROT_WRITE))
    die(66, "stack");
  memset(stack, 0xa5, n);
  if (pthread_attr_init(&attr) || pthread_attr_setstack(&attr, stack, n))
    die(77, "stack size");
  if (pthread_create(&t, &attr, life, NULL))
    die(77, "thread");
  pthread_join(t, NULL);
  printf("stack: %zu of %zu bytes used\n", stack_used(stack, n), n);
}

/* ---- locked ---- */

static void locked(void) {
  if (mlockall(MCL_FUTURE))
    die(77, "mlockall");
  void *ctx = begin();
  long pages = 0, skip;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &skip, &pages) != 2)
    die(66, "statm");
  fclose(f);
  printf("resident: %ld kB\n", pages * (sysconf(_SC_PAGESIZE) / 1024));
  fflush(stdout);
  if (system("for b in \"$NCCL_INSPECTOR_BLACKBOX\"/*.box; do stat -c 'box: %b blocks' \"$b\"; done") != 0)
    die(66, "stat");
  end(ctx);
}

/* ---- again ---- */

/* Another communicator lives all the time, so that all lives are in one log file. */
static void again(long n, int overlap) {
  void *other = begin_as(HASH + 1), *last = begin();
  while (--n > 0) {
    void *next = overlap ? begin() : NULL;
    end(last);
    last = next ? next : begin();
  }
  end(last);
  end(other);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: harsh SO WHAT [N]\n");
    return 64;
  }
  what = argv[2];
  plug = plug_open(argv[1], 0);
  if (!strcmp(what, "cancel")) {
    pthread_t t;
    void *ended = NULL;
    if (pthread_create(&t, NULL, cancelled_life, NULL) || pthread_join(t, &ended))
      die(66, "thread");
    if (ended != PTHREAD_CANCELED && ended != (void *)1)
      return 3;
    life(NULL);
  } else if (!strcmp(what, "leave")) {
    leave();
  } else if (!strcmp(what, "nostatx")) {
    refuse_statx();
    life(NULL);
  } else if (!strcmp(what, "small")) {
    small();
  } else if (!strcmp(what, "locked")) {
    locked();
  } else if (!strcmp(what, "again") || !strcmp(what, "overlap")) {
    again(argc > 3 ? atol(argv[3]) : 2, *what == 'o');
  } else {
    return 64;
  }
  puts("done");
  return 0;
}
