/*
 * A profiler that does nothing: returns a non-NULL handle for every event. The baseline of benchmarks, and
 * the smallest check of nccl-sim. NI_NOOP_MASK (decimal, or hexadecimal with 0x) is the activation mask, by
 * default Coll, P2p and KernelCh. NI_NOOP_NULL: event bits that get a NULL handle. NI_NOOP_FAIL_INIT=N: the
 * Nth init of the process fails. Threads: any. The callbacks themselves read one word; nothing else costs
 * time.
 */
#include <nccl/profiler_abi.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static int object;         /* its address is the handle of everything */
static uint64_t null_bits; /* relaxed: every init writes the same */
static int inits;          /* relaxed: a counter */

static enum ni_result start_mask(void **ctx, int *mask) {
  const char *m = getenv("NI_NOOP_MASK"), *null = getenv("NI_NOOP_NULL"), *fail = getenv("NI_NOOP_FAIL_INIT");
  int number = __atomic_add_fetch(&inits, 1, __ATOMIC_RELAXED);
  if (null)
    __atomic_store_n(&null_bits, strtoull(null, NULL, 0), __ATOMIC_RELAXED);
  *ctx = &object;
  if (fail && atoi(fail) == number)
    return NI_RES_SYSTEM_ERROR;
  __atomic_store_n(mask, m ? (int)strtol(m, NULL, 0) : NI_EV_COLL | NI_EV_P2P | NI_EV_KERNEL_CH,
                   __ATOMIC_RELAXED);
  return NI_RES_SUCCESS;
}

static enum ni_result init_v4(void **ctx, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  (void)name, (void)hash, (void)nodes, (void)ranks, (void)rank, (void)log;
  return start_mask(ctx, mask);
}

static enum ni_result init_v5(void **ctx, uint64_t id, int *mask, const char *name, int nodes, int ranks,
                              int rank, ni_logger_fn log) {
  (void)name, (void)id, (void)nodes, (void)ranks, (void)rank, (void)log;
  return start_mask(ctx, mask);
}

#define START(version) \
  static enum ni_result start_##version(void *ctx, void **handle, struct ni_prof_descr_##version *descr) { \
    (void)ctx; \
    *handle = descr->type & __atomic_load_n(&null_bits, __ATOMIC_RELAXED) ? NULL : &object; \
    return NI_RES_SUCCESS; \
  }
START(v4)
START(v5)
START(v6)
START(v7)

static enum ni_result stop(void *handle) {
  (void)handle;
  return NI_RES_SUCCESS;
}

static enum ni_result record(void *handle, enum ni_prof_state state, union ni_prof_state_v4 *args) {
  (void)handle, (void)state, (void)args;
  return NI_RES_SUCCESS;
}

EXPORT const struct ni_prof_vtable_v4 ncclProfiler_v4 = {"noop", init_v4, start_v4, stop, record, stop};
EXPORT const struct ni_prof_vtable_v5 ncclProfiler_v5 = {"noop", init_v5, start_v5, stop, record, stop};
EXPORT const struct ni_prof_vtable_v6 ncclProfiler_v6 = {"noop", init_v5, start_v6, stop, record, stop};
EXPORT const struct ni_prof_vtable_v7 ncclProfiler_v7 = {"noop", init_v5, start_v7, stop, record, stop};
