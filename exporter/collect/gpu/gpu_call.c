#include "gpu_call.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "exporter/base/now.h"

#define SLOW_NS INT64_C(5000000)    /* a call that takes longer is slow */
#define CREDIT_NS INT64_C(50000000) /* so much at once is free: the sweeps before and after a short job */
#define SHARE 200                   /* 0.5 % of the time for the slow calls together, and as much for all others */

/* Of the whole process; `turn` guards it, and is held during each call. */
static struct {
  pthread_mutex_t turn;
  int gpus, slow; /* readers; slow calls of theirs */
} driver = {.turn = PTHREAD_MUTEX_INITIALIZER};

void ni_gpu_enter(void) { pthread_mutex_lock(&driver.turn); }
void ni_gpu_leave(void) { pthread_mutex_unlock(&driver.turn); }

static int fetch_memory(struct ni_gpu_call *c, const struct ni_gpu_device *d) {
  struct ni_nvml_memory_v2 m = {.version = NI_NVML_MEMORY_V2};
  int r = NI_NVML(d->nvml, memory_v2, d->handle, &m);
  if (r == NI_NVML_NO_FUNCTION || r == NI_NVML_OTHER_VERSION) {
    struct ni_nvml_memory old = {0};
    r = NI_NVML(d->nvml, memory, d->handle, &old);
    m.used = old.used, m.free = old.free, m.total = old.total;
  }
  uint64_t all[] = {m.used, m.free, m.total};
  for (size_t i = 0; i < c->n; i++) c->value[i].value = all[c->value[i].id];
  return r;
}

static uint64_t whole(const struct ni_nvml_field *f) {
  switch (f->type) {
    case NI_NVML_DOUBLE: return f->value.d > 0 && f->value.d < 1.8e19 ? (uint64_t)f->value.d : 0;
    case NI_NVML_U32: return f->value.u32;
    case NI_NVML_I64: return (uint64_t)f->value.i64;
    case NI_NVML_I32: return (uint64_t)(int64_t)f->value.i32;
    case NI_NVML_U16: return f->value.u16;
    default: return f->value.u64;
  }
}

static int fetch_fields(struct ni_gpu_call *c, const struct ni_gpu_device *d) {
  struct ni_nvml_field f[NI_GPU_VALUES] = {0};
  for (size_t i = 0; i < c->n; i++) f[i] = (struct ni_nvml_field){.id = c->value[i].id, .scope = c->value[i].scope};
  int r = NI_NVML(d->nvml, fields, d->handle, (int)c->n, f);
  for (size_t i = 0; i < c->n && r == NI_NVML_OK; i++) {
    c->value[i].result = (int)f[i].result;
    c->value[i].value = whole(&f[i]) * c->value[i].unit;
    /* Bytes of PCIe that are counted with 32 bits go round several times a second: no difference of them means anything. */
    if (c->kind == NI_GPU_TRAFFIC && f[i].type == NI_NVML_U32) c->value[i].result = NI_NVML_NOT_SUPPORTED;
  }
  return r;
}

static int fetch_gpm(struct ni_gpu_call *c, const struct ni_gpu_device *d) {
  uint32_t id[NI_GPU_VALUES];
  double v[NI_GPU_VALUES];
  int result[NI_GPU_VALUES];
  for (size_t i = 0; i < c->n; i++) id[i] = c->value[i].id;
  int r = ni_gpm_read(d->gpm, id, v, result, c->n);
  for (size_t i = 0; i < c->n && r == NI_NVML_OK; i++) {
    c->value[i].result = result[i];
    c->value[i].value = v[i] > 0 && v[i] < 1e12 ? (uint64_t)(v[i] * c->value[i].unit + 0.5) : 0;
  }
  return r;
}

static int fetch_xid(struct ni_gpu_call *c, const struct ni_gpu_device *d) {
  uint64_t two[2];
  int r = ni_xid_read(d->xid, d->xid_at, two);
  for (size_t i = 0; i < c->n; i++) {
    c->value[i].result = r;
    if (r == NI_NVML_OK) c->value[i].value = two[c->value[i].id];
  }
  return r;
}

static int fetch(struct ni_gpu_call *c, const struct ni_gpu_device *d) {
  const struct ni_nvml *n = d->nvml;
  struct ni_nvml_utilization u = {0};
  uint32_t one = 0;
  uint64_t bits = 0;
  int r;
  for (size_t i = 0; i < c->n; i++) c->value[i].result = NI_NVML_OK;
  switch (c->kind) {
    case NI_GPU_MEMORY: return fetch_memory(c, d);
    case NI_GPU_FIELDS:
    case NI_GPU_TRAFFIC:
    case NI_GPU_LINKS: return fetch_fields(c, d);
    case NI_GPU_GPM: return fetch_gpm(c, d);
    case NI_GPU_UTILIZATION:
      r = NI_NVML(n, utilization, d->handle, &u);
      for (size_t i = 0; i < c->n; i++) c->value[i].value = c->value[i].id ? u.memory : u.gpu;
      return r;
    case NI_GPU_REASONS:
      r = NI_NVML(n, reasons, d->handle, &bits);
      c->value->value = bits;
      return r;
    case NI_GPU_CLOCK_GRAPHICS: r = NI_NVML(n, clock, d->handle, 0, &one); break;
    case NI_GPU_CLOCK_SM: r = NI_NVML(n, clock, d->handle, 1, &one); break;
    case NI_GPU_CLOCK_MEMORY: r = NI_NVML(n, clock, d->handle, 2, &one); break;
    case NI_GPU_POWER: r = NI_NVML(n, power, d->handle, &one); break;
    case NI_GPU_TEMPERATURE: r = NI_NVML(n, temperature, d->handle, 0, &one); break;
    case NI_GPU_GENERATION: r = NI_NVML(n, generation, d->handle, &one); break;
    case NI_GPU_WIDTH: r = NI_NVML(n, width, d->handle, &one); break;
    case NI_GPU_PCIE_TX: r = NI_NVML(n, pcie, d->handle, 0, &one); break;
    case NI_GPU_PCIE_RX: r = NI_NVML(n, pcie, d->handle, 1, &one); break;
    default: return NI_NVML_NOT_SUPPORTED;
  }
  c->value->value = one;
  return r;
}

/*
 * When it is due again. Slow calls share their part of the time, so that it holds whatever each one takes; the others are their
 * GPU's, which has its part of the rest. A time in which others had the processor is not the driver's: what counts then is
 * what the call took before, where that was less.
 */
static void pace(struct ni_gpu_call *c, struct ni_gpu_device *d, int64_t began, int64_t ended, bool off_the_cpu) {
  int64_t took = ended - began, cost = off_the_cpu && c->took && c->took < took ? c->took : took;
  bool slow = cost > SLOW_NS;
  if (!c->slow) d->credit -= cost;
  driver.slow += slow - c->slow;
  c->slow = slow;
  c->took = took;
  c->due = slow ? ended + cost * SHARE * driver.slow : 0;
}

/* Has the GPU something left for a call that is not slow? */
static bool has_credit(struct ni_gpu_device *d, int64_t now) {
  int64_t most = CREDIT_NS / driver.gpus, more = (now - d->credit_at) / SHARE / driver.gpus;
  d->credit = more > most - d->credit ? most : d->credit + more;
  d->credit_at = now;
  return d->credit >= 0;
}

static long switches(void) {
  struct rusage u;
  return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/* In the driver's turn. false: not now. */
static bool timed(struct ni_gpu_call *c, struct ni_gpu_device *d, int *result) {
  int64_t began = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  if (!has_credit(d, began) && !c->slow && c->mono_ns) return false; /* the first time is for finding out */
  long before = switches();
  *result = fetch(c, d);
  pace(c, d, began, (int64_t)ni_now_ns(CLOCK_MONOTONIC), switches() != before);
  if (c->kind == NI_GPU_GPM && c->due < began + NI_GPM_GAP_NS) c->due = began + NI_GPM_GAP_NS;
  return true;
}

bool ni_gpu_ask(struct ni_gpu_call *c, struct ni_gpu_device *d, int *result) {
  bool made = true;
  *result = NI_NVML_OK;
  if (!c->n || (c->due && (int64_t)ni_now_ns(CLOCK_MONOTONIC) < c->due)) return true;
  if (c->kind == NI_GPU_XID) { /* asks our thread, not the driver */
    *result = fetch_xid(c, d);
  } else {
    ni_gpu_enter();
    made = timed(c, d, result);
    ni_gpu_leave();
  }
  if (!made) return false;
  c->mono_ns = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  c->real_ns = (int64_t)ni_now_ns(CLOCK_REALTIME);
  for (size_t i = 0; i < c->n && *result != NI_NVML_OK; i++) c->value[i].result = *result;
  return true;
}

void ni_gpu_count(int more) {
  ni_gpu_enter();
  driver.gpus += more;
  ni_gpu_leave();
}

void ni_gpu_forget(struct ni_gpu_call *c) {
  ni_gpu_enter();
  driver.slow -= c->slow;
  ni_gpu_leave();
  c->n = 0;
  c->slow = false;
}
