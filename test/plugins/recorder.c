/*
 * A profiler that writes every callback of a run to a file (test/nccl_sim/replay/recording_format.h), for
 * nccl-sim --replay.
 *
 * NI_RECORDER_FILE names it, %p is the process id (default nccl-callbacks-%p.rec); NI_RECORDER_MASK is the
 * activation mask (default: everything that the interface has but ProxyStep). Speaks v4 to v7. It is a tool
 * for looking, not for production: all threads share one lock. Failure: a file that cannot be written is said
 * once through NCCL's logger, and nothing is recorded. What the C library has buffered is lost when the
 * process is killed; finalize and exit flush it. NI_RECORDER_PAUSE=A,B takes KernelCh out of the mask when
 * Coll A of the process has come and back in at Coll B.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/nccl_sim/replay/recording_format.h"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static FILE *file;
static int failed;
static uint64_t numbers, colls;
static int *mask_of_nccl; /* the one of the process */

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void open_file(ni_logger_fn log) {
  const char *pattern = getenv("NI_RECORDER_FILE");
  char path[1024];
  size_t n = 0;
  if (file || failed)
    return;
  if (!pattern || !*pattern)
    pattern = "nccl-callbacks-%p.rec";
  for (const char *s = pattern; *s && n + 16 < sizeof path; s++)
    if (s[0] == '%' && s[1] == 'p')
      n += (size_t)snprintf(path + n, sizeof path - n, "%d", getpid()), s++;
    else
      path[n++] = *s;
  path[n] = 0;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  file = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!file || fwrite(NI_REC_MAGIC, 8, 1, file) != 1) {
    failed = 1;
    if (log)
      log(NI_LOG_WARN, NI_SUB_PROFILE, __func__, __LINE__,
          "recorder: %s cannot be written; nothing is recorded", path);
    return;
  }
  setvbuf(file, NULL, _IOFBF, 1 << 20);
}

/* One record from up to three pieces; returns the number given to a new handle when *handle is 0. */
static uint64_t put(enum ni_rec_kind kind, int version, uint64_t handle, const void *a, size_t an,
                    const void *b, size_t bn, const void *c, size_t cn) {
  struct ni_rec_head h = {(uint16_t)(sizeof h + an + bn + cn), (uint8_t)kind, (uint8_t)version,
                          (uint32_t)syscall(SYS_gettid),       now_ns(),      handle};
  pthread_mutex_lock(&lock);
  if (!h.handle)
    h.handle = ++numbers;
  if (file) {
    fwrite(&h, sizeof h, 1, file);
    if (an)
      fwrite(a, an, 1, file);
    if (bn)
      fwrite(b, bn, 1, file);
    if (cn)
      fwrite(c, cn, 1, file);
  }
  pthread_mutex_unlock(&lock);
  return h.handle;
}

/* Bits that an older table does not have mean something else to other libraries: they are not asked for. */
static int default_mask(int version) {
  static const int known[] = {[4] = 0xff, [5] = 0xfff, [6] = 0x7fff, [7] = NI_EV_ALL};
  return known[version] & ~NI_EV_PROXY_STEP;
}

static enum ni_result init(int version, void **ctx, uint64_t hash, int *mask, const char *name, int nodes,
                           int ranks, int rank, ni_logger_fn log) {
  const char *m = getenv("NI_RECORDER_MASK");
  struct ni_rec_init in = {hash, nodes, ranks, rank, name != NULL};
  pthread_mutex_lock(&lock);
  open_file(log);
  mask_of_nccl = mask;
  pthread_mutex_unlock(&lock);
  if (!name)
    name = "";
  size_t n = strnlen(name, 4096);
  *ctx = (void *)(uintptr_t)put(NI_REC_INIT, version, 0, &in, sizeof in, name, n, "", 1);
  __atomic_store_n(mask, m ? (int)strtol(m, NULL, 0) : default_mask(version), __ATOMIC_RELAXED);
  return NI_RES_SUCCESS;
}

static enum ni_result init_v4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  return init(4, ctx, hash, mask, name, nodes, ranks, rank, log);
}
static enum ni_result init_v5(void **ctx, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  return init(5, ctx, id, mask, name, nodes, ranks, rank, log);
}
static enum ni_result init_v6(void **ctx, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  return init(6, ctx, id, mask, name, nodes, ranks, rank, log);
}

static enum ni_result init_v7(void **ctx, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  return init(7, ctx, id, mask, name, nodes, ranks, rank, log);
}

static void pause_kernels(void) {
  const char *text = getenv("NI_RECORDER_PAUSE");
  uint64_t off, on;
  if (!text || sscanf(text, "%" SCNu64 ",%" SCNu64, &off, &on) != 2)
    return;
  uint64_t n = __atomic_add_fetch(&colls, 1, __ATOMIC_RELAXED);
  if (n == off)
    __atomic_fetch_and(mask_of_nccl, ~(NI_EV_KERNEL_CH | NI_EV_KERNEL_PHASE), __ATOMIC_RELAXED);
  if (n == on)
    __atomic_fetch_or(mask_of_nccl, NI_EV_KERNEL_CH, __ATOMIC_RELAXED);
}

/* `d` has its defined members where v7 has them, which is where v6 has them. */
static enum ni_result start(int version, void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  struct ni_rec_start s = {d->type, (uint64_t)(uintptr_t)ctx, (uint64_t)(uintptr_t)d->parentObj, d->rank, 0};
  const char **at[NI_REC_STRINGS];
  char text[640];
  size_t n = 0;
  s.strings = ni_rec_strings(d, version, at);
  for (int i = 0; i < s.strings; i++) {
    const char *string = *at[i] ? *at[i] : "";
    size_t k = strnlen(string, 100);
    memcpy(text + n, string, k);
    text[n + k] = 0;
    n += k + 1;
  }
  *handle = (void *)(uintptr_t)put(NI_REC_START, version, 0, &s, sizeof s, &d->coll,
                                   ni_rec_member_bytes(d->type, version), text, n);
  if (d->type == NI_EV_COLL)
    pause_kernels();
  return NI_RES_SUCCESS;
}

static enum ni_result start_v7(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  struct ni_prof_descr_v7 e = *d;
  return start(7, ctx, handle, &e);
}

static enum ni_result start_v6(void *ctx, void **handle, struct ni_prof_descr_v6 *d) {
  struct ni_prof_descr_v7 e;
  memset(&e, 0, sizeof e);
  memcpy(&e, d, sizeof *d);
  return start(6, ctx, handle, &e);
}

static enum ni_result start_v5(void *ctx, void **handle, struct ni_prof_descr_v5 *d) {
  struct ni_prof_descr_v7 e;
  memset(&e, 0, sizeof e);
  e.type = d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  size_t n = ni_rec_member_bytes(d->type, 6);
  if (n <= sizeof d->coll)
    memcpy(&e.coll, &d->coll, n);
  return start(5, ctx, handle, &e);
}

static enum ni_result start_v4(void *ctx, void **handle, struct ni_prof_descr_v4 *d) {
  struct ni_prof_descr_v7 e;
  memset(&e, 0, sizeof e);
  e.type = d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  if (d->type == NI_EV_COLL) {
    memcpy(&e.coll, &d->coll, sizeof d->coll);
    e.coll.parentGroup = d->parentObj;
  } else if (d->type == NI_EV_P2P) {
    memcpy(&e.p2p, &d->p2p, sizeof d->p2p);
    e.p2p.parentGroup = d->parentObj;
  } else if (ni_rec_member_bytes(d->type, 6) <= sizeof d->coll) {
    memcpy(&e.coll, &d->coll, ni_rec_member_bytes(d->type, 6));
  }
  return start(4, ctx, handle, &e);
}

static enum ni_result stop(void *handle) {
  if (handle)
    put(NI_REC_STOP, 0, (uint64_t)(uintptr_t)handle, NULL, 0, NULL, 0, NULL, 0);
  return NI_RES_SUCCESS;
}

static enum ni_result record(void *handle, enum ni_prof_state state, union ni_prof_state_v4 *args) {
  struct ni_rec_state s = {(int32_t)state, args != NULL, 0};
  if (args)
    memcpy(&s.args, args, sizeof s.args);
  if (handle)
    put(NI_REC_STATE, 0, (uint64_t)(uintptr_t)handle, &s, sizeof s, NULL, 0, NULL, 0);
  return NI_RES_SUCCESS;
}

static enum ni_result finalize(void *ctx) {
  if (ctx)
    put(NI_REC_FINALIZE, 0, (uint64_t)(uintptr_t)ctx, NULL, 0, NULL, 0, NULL, 0);
  pthread_mutex_lock(&lock);
  if (file)
    fflush(file);
  pthread_mutex_unlock(&lock);
  return NI_RES_SUCCESS;
}

EXPORT const struct ni_prof_vtable_v4 ncclProfiler_v4 = {"recorder", init_v4, start_v4,
                                                         stop,       record,  finalize};
EXPORT const struct ni_prof_vtable_v5 ncclProfiler_v5 = {"recorder", init_v5, start_v5,
                                                         stop,       record,  finalize};
EXPORT const struct ni_prof_vtable_v6 ncclProfiler_v6 = {"recorder", init_v6, start_v6,
                                                         stop,       record,  finalize};
EXPORT const struct ni_prof_vtable_v7 ncclProfiler_v7 = {"recorder", init_v7, start_v7,
                                                         stop,       record,  finalize};
