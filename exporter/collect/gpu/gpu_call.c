#include "gpu_call.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"

enum { WAIT_MS = 250, TYPE_XID = 8 };

struct ni_xid {
  const struct ni_nvml *nvml;
  ni_nvml_handle set;
  struct watched_gpu {
    ni_nvml_handle device;
    uint64_t n, last;
  } *gpu;
  size_t n, cap;
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows, and what gpu[] counts */
  bool started, stop;
  int result; /* of the last wait */
};

static void *wait_for_xids(void *arg) {
  struct ni_xid *x = arg;
  for (bool stop = false; !stop;) {
    struct ni_nvml_event e = {0};
    int r = NI_NVML(x->nvml, wait, x->set, &e, WAIT_MS);
    /* An error may come at once and for ever: a lost GPU. */
    if (r != NI_NVML_OK && r != NI_NVML_TIMEOUT)
      nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
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
  if (r != NI_NVML_OK)
    return r;
  if (!ni_array_room(x->gpu, x->n, x->cap))
    return NI_NVML_UNKNOWN;
  x->gpu[x->n++] = (struct watched_gpu){.device = device};
  return NI_NVML_OK;
}

static bool start_xid_thread(struct ni_xid *x) {
  sigset_t all, before;
  sigfillset(&all); /* signals are the command's, not this thread's */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_started = pthread_create(&x->thread, NULL, wait_for_xids, x) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (is_started)
    pthread_setname_np(x->thread, "ni-xid");
  return is_started;
}

int ni_xid_read(struct ni_xid *x, ni_nvml_handle device, uint64_t out[2]) {
  pthread_mutex_lock(&x->lock);
  if (!x->started)
    x->started = start_xid_thread(x);
  int r = x->started ? x->result : NI_NVML_UNKNOWN;
  for (size_t i = 0; i < x->n; i++)
    if (x->gpu[i].device == device) {
      out[0] = x->gpu[i].n;
      out[1] = x->gpu[i].last;
    }
  pthread_mutex_unlock(&x->lock);
  return r;
}

void ni_xid_free(struct ni_xid *x) {
  if (!x)
    return;
  pthread_mutex_lock(&x->lock);
  x->stop = true;
  pthread_mutex_unlock(&x->lock);
  if (x->started)
    pthread_join(x->thread, NULL);
  NI_NVML(x->nvml, set_free, x->set);
  pthread_mutex_destroy(&x->lock);
  free(x->gpu);
  free(x);
}

#define SLOW_NS INT64_C(5000000) /* a call that takes longer is slow */
/* so much at once is free: the sweeps before and after a short job */
#define CREDIT_NS INT64_C(50000000)
/* 0.5 % of the time for the slow calls together, and as much for all others */
#define SHARE 200
/* but 4 % for PCIe's throughput, which somebody asked for: each of 16 calls comes every 8 s */
#define PCIE_SHARE 25
#define GPM_GAP_NS INT64_C(110000000) /* NVIDIA asks for 100 ms between two samples */

/* One for the whole process. `turn` guards it, and is held during each call. */
static struct {
  pthread_mutex_t turn;
  int gpus, slow; /* devices; slow calls of theirs */
} driver = {.turn = PTHREAD_MUTEX_INITIALIZER};

void ni_gpu_enter(void) { pthread_mutex_lock(&driver.turn); }
void ni_gpu_leave(void) { pthread_mutex_unlock(&driver.turn); }

static void free_samples(struct ni_gpu_device *d) {
  for (int i = 0; i < 2; i++) {
    if (d->sample[i])
      NI_NVML(d->nvml, gpm_free, d->sample[i]);
    d->sample[i] = NULL;
  }
}

void ni_gpu_end(struct ni_gpu_device *d) {
  for (int i = 0; i < NI_GPU_KINDS; i++)
    ni_gpu_stop_call(d, (enum ni_gpu_kind)i);
  free_samples(d);
  ni_gpu_enter();
  driver.gpus--;
  ni_gpu_leave();
}

void ni_gpu_begin(struct ni_gpu_device *d, bool gpm) {
  struct ni_nvml_gpm_support s = {.version = 1};
  ni_gpu_enter();
  driver.gpus++;
  gpm = gpm && NI_NVML(d->nvml, gpm_support, d->handle, &s) == NI_NVML_OK && s.supported;
  for (int i = 0; gpm && i < 2; i++)
    gpm = NI_NVML(d->nvml, gpm_alloc, &d->sample[i]) == NI_NVML_OK;
  gpm = gpm && NI_NVML(d->nvml, gpm_sample, d->handle, d->sample[0]) == NI_NVML_OK;
  if (!gpm)
    free_samples(d);
  ni_gpu_leave();
  if (gpm)
    nanosleep(&(struct timespec){.tv_nsec = GPM_GAP_NS}, NULL);
}

static int fetch_memory(const struct ni_gpu_device *d, uint64_t got[3]) {
  struct ni_nvml_memory_v2 m = {.version = NI_NVML_MEMORY_V2};
  int r = NI_NVML(d->nvml, memory_v2, d->handle, &m);
  if (r == NI_NVML_NO_FUNCTION || r == NI_NVML_OTHER_VERSION) {
    struct ni_nvml_memory old = {0};
    r = NI_NVML(d->nvml, memory, d->handle, &old);
    m.used = old.used;
    m.free = old.free;
    m.total = old.total;
  }
  got[0] = m.used;
  got[1] = m.free;
  got[2] = m.total;
  return r;
}

static uint64_t convert_to_integer(const struct ni_nvml_field *f) {
  switch (f->type) {
    case NI_NVML_DOUBLE:
      return f->value.d > 0 && f->value.d < 1.8e19 ? (uint64_t)f->value.d : 0;
    case NI_NVML_U32:
      return f->value.u32;
    case NI_NVML_I32:
      return (uint64_t)(int64_t)f->value.i32;
    case NI_NVML_U16:
      return f->value.u16;
    default:
      return f->value.u64;
  }
}

static int fetch_fields(const struct ni_gpu_device *d, struct ni_gpu_value *v, size_t n, bool traffic) {
  struct ni_nvml_field f[NI_GPU_VALUES] = {0};
  for (size_t i = 0; i < n; i++)
    f[i] = (struct ni_nvml_field){.id = v[i].id, .scope = v[i].scope};
  int r = NI_NVML(d->nvml, fields, d->handle, (int)n, f);
  for (size_t i = 0; i < n && r == NI_NVML_OK; i++) {
    v[i].value = convert_to_integer(&f[i]) * v[i].unit;
    /*
     * Bytes of PCIe that are counted with 32 bits go round several times a second: no difference of them
     * means anything.
     */
    v[i].result = traffic && f[i].type == NI_NVML_U32 ? NI_NVML_NOT_SUPPORTED : (int)f[i].result;
  }
  return r;
}

static int fetch_gpm(struct ni_gpu_device *d, struct ni_gpu_value *v, size_t n) {
  struct ni_nvml_gpm ask = {.version = 1, .n = (uint32_t)n, .first = d->sample[0], .second = d->sample[1]};
  int r = ask.second ? NI_NVML(d->nvml, gpm_sample, d->handle, ask.second) : NI_NVML_NOT_SUPPORTED;
  if (r != NI_NVML_OK)
    return r;
  for (size_t i = 0; i < n; i++)
    ask.metric[i].id = v[i].id;
  r = NI_NVML(d->nvml, gpm_metrics, &ask);
  for (size_t i = 0; i < n && r == NI_NVML_OK; i++) {
    double x = ask.metric[i].value;
    v[i].result = (int)ask.metric[i].result;
    v[i].value = x > 0 && x < 1e12 ? (uint64_t)(x * v[i].unit + 0.5) : 0;
  }
  d->sample[0] = ask.second; /* the next one is taken over the older of the two */
  d->sample[1] = ask.first;
  return r;
}

static int fetch_kind(struct ni_gpu_device *d, enum ni_gpu_kind kind) {
  const struct ni_nvml *n = d->nvml;
  struct ni_gpu_call *c = &d->call[kind];
  struct ni_nvml_utilization u = {0};
  uint64_t got[3] = {0};
  uint32_t one = 0;
  int r = NI_NVML_OK;
  switch (kind) {
    case NI_GPU_FIELDS:
      return fetch_fields(d, c->value, c->n, false);
    case NI_GPU_TRAFFIC:
      return fetch_fields(d, c->value, c->n, true);
    case NI_GPU_GPM:
      return fetch_gpm(d, c->value, c->n);
    case NI_GPU_MEMORY:
      r = fetch_memory(d, got);
      break;
    case NI_GPU_XID:
      r = ni_xid_read(d->xid, d->handle, got);
      break;
    case NI_GPU_REASONS:
      r = NI_NVML(n, reasons, d->handle, got);
      break;
    case NI_GPU_UTILIZATION:
      r = NI_NVML(n, utilization, d->handle, &u);
      got[0] = u.gpu;
      got[1] = u.memory;
      break;
    case NI_GPU_CLOCK_GRAPHICS:
      r = NI_NVML(n, clock, d->handle, 0, &one);
      break;
    case NI_GPU_CLOCK_SM:
      r = NI_NVML(n, clock, d->handle, 1, &one);
      break;
    case NI_GPU_CLOCK_MEMORY:
      r = NI_NVML(n, clock, d->handle, 2, &one);
      break;
    case NI_GPU_POWER:
      r = NI_NVML(n, power, d->handle, &one);
      break;
    case NI_GPU_TEMPERATURE:
      r = NI_NVML(n, temperature, d->handle, 0, &one);
      break;
    case NI_GPU_GENERATION:
      r = NI_NVML(n, generation, d->handle, &one);
      break;
    case NI_GPU_WIDTH:
      r = NI_NVML(n, width, d->handle, &one);
      break;
    case NI_GPU_PCIE_TX:
      r = NI_NVML(n, pcie, d->handle, 0, &one);
      break;
    case NI_GPU_PCIE_RX:
      r = NI_NVML(n, pcie, d->handle, 1, &one);
      break;
    case NI_GPU_KINDS:
      break;
  }
  got[0] += one;
  for (size_t i = 0; i < c->n; i++) {
    c->value[i].value = got[c->value[i].id];
    c->value[i].result = r;
  }
  return r;
}

/* Has the GPU something left for a call that is not slow? */
static bool has_time_credit(struct ni_gpu_device *d, int64_t now) {
  int64_t most = CREDIT_NS / driver.gpus, more = (now - d->credit_at) / SHARE / driver.gpus;
  d->credit = more > most - d->credit ? most : d->credit + more;
  d->credit_at = now;
  return d->credit >= 0;
}

static long count_switches(void) {
  struct rusage u;
  return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/*
 * In the driver's turn. When it is due again: slow calls share their part of the time, so that it holds
 * whatever each one takes; the others are their GPU's, which has its part of the rest. A time in which others
 * had the processor is not the driver's: what counts then is what the call took before, where that was less.
 */
static int fetch_timed(struct ni_gpu_device *d, enum ni_gpu_kind kind) {
  struct ni_gpu_call *c = &d->call[kind];
  int64_t began = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  /* the first time is for finding out */
  if (!has_time_credit(d, began) && !c->slow && c->mono_ns)
    return NI_GPU_LATER;
  long before = count_switches();
  int r = fetch_kind(d, kind);
  int64_t ended = (int64_t)ni_now_ns(CLOCK_MONOTONIC), took = ended - began;
  int64_t cost = count_switches() != before && c->took && c->took < took ? c->took : took;
  bool slow = cost > SLOW_NS;
  if (!c->slow)
    d->credit -= cost;
  driver.slow += slow - c->slow;
  c->slow = slow;
  c->took = took;
  int share = kind == NI_GPU_PCIE_TX || kind == NI_GPU_PCIE_RX ? PCIE_SHARE : SHARE;
  c->due = slow ? ended + cost * share * driver.slow : 0;
  if (kind == NI_GPU_GPM && c->due < began + GPM_GAP_NS)
    c->due = began + GPM_GAP_NS;
  return r;
}

int ni_gpu_ask(struct ni_gpu_device *d, enum ni_gpu_kind kind) {
  struct ni_gpu_call *c = &d->call[kind];
  int r;
  if (!c->n || (c->due && (int64_t)ni_now_ns(CLOCK_MONOTONIC) < c->due))
    return NI_NVML_OK;
  if (kind == NI_GPU_XID) { /* asks our thread, not the driver */
    r = fetch_kind(d, kind);
  } else {
    ni_gpu_enter();
    r = fetch_timed(d, kind);
    ni_gpu_leave();
  }
  if (r == NI_GPU_LATER)
    return r;
  c->mono_ns = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  c->real_ns = (int64_t)ni_now_ns(CLOCK_REALTIME);
  for (size_t i = 0; i < c->n && r != NI_NVML_OK; i++)
    c->value[i].result = r;
  return r;
}

void ni_gpu_stop_call(struct ni_gpu_device *d, enum ni_gpu_kind kind) {
  struct ni_gpu_call *c = &d->call[kind];
  ni_gpu_enter();
  driver.slow -= c->slow;
  ni_gpu_leave();
  c->n = 0;
  c->slow = false;
}
