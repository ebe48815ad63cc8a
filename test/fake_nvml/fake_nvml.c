/*
 * A libnvidia-ml.so.1 without a GPU. What it says is planted in the file that NI_FAKE_NVML names, which is
 * read anew at each call, so that a test moves counters and faults while somebody samples. A line is "GPU
 * NAME VALUE", GPU "*" for all of them, "0/1" for MIG instance 1 of GPU 0; the last line that fits counts.
 * Names:
 *
 *   gpus N (with GPU *)            how many
 *   util memutil total used free graphics sm memclock power temp reasons gen width maxgen maxwidth pcietx pcierx bus mig
 *   field.ID                       a field's value (of NVLink 0, where links have it); without a line it is
 *                                  not supported
 *   field.ID.LINK, field.ID.all    of another NVLink, of all together
 *   type.ID                        its valueType: 3, if nothing else is said
 *   gpm 1, gpm.ID                  has GPM; its metrics, in thousandths
 *   xids N, xid X                  events until now, and what the newest one says
 *   ret.CALL, delay.CALL           what a call returns instead; ms that it takes. CALL as NVML names it,
 *                                  without "nvmlDeviceGet" or "nvml": ret.PowerUsage; ret.field.ID for one
 *                                  field
 *
 * Built twice: with OLD_DRIVER without names that older drivers have not. Layouts: NVIDIA's nvml.h, asserted
 * below.
 */
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  OK = 0,
  BAD_ARGUMENT = 2,
  NOT_SUPPORTED = 3,
  NOT_FOUND = 6,
  TIMEOUT = 10,
  OTHER_VERSION = 25,
  GPUS = 16,
  MIGS = 8,
  CALLS = 64
};

struct device {
  char key[16];
}; /* what a handle points to */
static struct device gpus[GPUS], migs[GPUS][MIGS];
struct field {
  uint32_t id, scope;
  int64_t time, latency;
  uint32_t type;
  int result;
  uint64_t value;
};
struct event {
  void *device;
  uint64_t type, data;
  uint32_t gpu, compute;
};
struct pci {
  char legacy[16];
  uint32_t domain, bus, device, id, subsystem;
  char text[32];
};
struct memory {
  uint64_t total, free, used;
};
struct memory_v2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};
struct metric {
  uint32_t id;
  int result;
  double value;
  const char *text[3];
};
struct metrics {
  uint32_t version, n;
  void *a, *b;
  struct metric m[333];
};
static_assert(sizeof(struct field) == 40 && offsetof(struct field, value) == 32 &&
                  offsetof(struct field, result) == 28,
              "field");
static_assert(sizeof(struct event) == 32 && offsetof(struct event, data) == 16, "event");
static_assert(sizeof(struct pci) == 68 && offsetof(struct pci, domain) == 16 &&
                  offsetof(struct pci, text) == 36,
              "pci");
static_assert(sizeof(struct memory) == 24 && sizeof(struct memory_v2) == 40 &&
                  offsetof(struct memory_v2, total) == 8,
              "memory");
static_assert(sizeof(struct metric) == 40 && offsetof(struct metrics, m) == 24, "gpm");

/*
 * How often each call was made, and how many were in the driver at once: for tests, which find these
 * functions by dlsym().
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  char name[48];
  long n;
} made[CALLS];
static int inside, most_inside, samples, started;

long fake_calls(const char *name);
int fake_most_at_once(void);
int fake_samples(void);
int fake_started(void);
long fake_calls(const char *name) {
  long n = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < CALLS && *made[i].name; i++)
    if (!*name || !strcmp(made[i].name, name))
      n += made[i].n;
  pthread_mutex_unlock(&lock);
  return n;
}
int fake_most_at_once(void) { return most_inside; }
int fake_samples(void) { return samples; }
int fake_started(void) { return started; }

/*
 * What is planted, as the file has it. A driver's call is quick: where that counts, NI_FAKE_NVML_STILL says
 * that it is read once.
 */
static const char *plan(char text[1 << 14]) {
  static pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
  static char kept[1 << 14];
  bool still = getenv("NI_FAKE_NVML_STILL");
  const char *path = getenv("NI_FAKE_NVML");
  if (still)
    pthread_mutex_lock(&mine);
  char *to = still ? kept : text;
  int fd = !path || (still && *kept) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, to, (1 << 14) - 1);
  if (fd >= 0)
    close(fd);
  if (!still || n > 0)
    to[n > 0 ? n : 0] = 0;
  if (still)
    pthread_mutex_unlock(&mine);
  return to;
}

/* The value of a name for a GPU; otherwise if there is none. */
static int64_t planted(const char *key, const char *name, int64_t otherwise) {
  char text[1 << 14], *line, *rest = text;
  const char *all = plan(text);
  if (!strstr(all, name))
    return otherwise;
  if (all != text)
    strcpy(text, all);
  while ((line = strsep(&rest, "\n"))) {
    char k[8], what[48], value[32];
    if (sscanf(line, "%7s %47s %31s", k, what, value) != 3 || strcmp(what, name))
      continue;
    if (!strcmp(k, "*") || !strcmp(k, key))
      otherwise = (int64_t)strtoull(value, NULL, 0);
  }
  return otherwise;
}

/* Each call begins here: counts, waits, and returns the fault that is planted. */
static int call(const char *name, const char *key) {
  char what[64];
  pthread_mutex_lock(&lock);
  for (int i = 0; i < CALLS; i++) {
    if (!*made[i].name)
      snprintf(made[i].name, sizeof made[i].name, "%s", name);
    if (strcmp(made[i].name, name))
      continue;
    made[i].n++;
    break;
  }
  inside += strcmp(name, "EventSetWait") != 0; /* who waits for events is not in anybody's way */
  if (inside > most_inside)
    most_inside = inside;
  pthread_mutex_unlock(&lock);
  snprintf(what, sizeof what, "delay.%s", name);
  int64_t ms = planted(key, what, planted(key, "delay", 0));
  if (ms)
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
  snprintf(what, sizeof what, "ret.%s", name);
  int r = (int)planted(key, what, planted(key, "ret", OK));
  pthread_mutex_lock(&lock);
  inside -= strcmp(name, "EventSetWait") != 0;
  pthread_mutex_unlock(&lock);
  return r;
}
static const char *key_of(void *d) { return ((struct device *)d)->key; }
static int number(const char *name, void *d, const char *what, uint32_t *out) {
  int r = call(name, key_of(d));
  int64_t v = planted(key_of(d), what, -1);
  if (r == OK && v < 0)
    r = NOT_SUPPORTED;
  if (r == OK)
    *out = (uint32_t)v;
  return r;
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
int nvmlInit_v2(void) {
  int r = call("Init", "*");
  started += r == OK;
  return r;
}
int nvmlInitWithFlags(uint32_t flags) { return (void)flags, nvmlInit_v2(); } /* nvitop calls this one */
int nvmlShutdown(void) { return started--, call("Shutdown", "*"); }
const char *nvmlErrorString(int r) { return r == 999 ? "Unknown Error" : "planted"; }
int nvmlDeviceGetCount_v2(uint32_t *n) { return *n = (uint32_t)planted("*", "gpus", 0), call("Count", "*"); }
int nvmlDeviceGetHandleByIndex_v2(uint32_t i, void **out) {
  if (i >= GPUS)
    return BAD_ARGUMENT;
  snprintf(gpus[i].key, sizeof gpus[i].key, "%u", i);
  *out = &gpus[i];
  return call("HandleByIndex", gpus[i].key);
}
int nvmlDeviceGetName(void *d, char *out, uint32_t size) {
  return snprintf(out, size, "NVIDIA H100 80GB HBM3"), call("Name", key_of(d));
}
int nvmlDeviceGetUUID(void *d, char *out, uint32_t size) {
  return snprintf(out, size, "%s-%s-0000", strchr(key_of(d), '/') ? "MIG" : "GPU", key_of(d)),
         call("UUID", key_of(d));
}
int nvmlDeviceGetPciInfo_v3(void *d, struct pci *p) {
  *p = (struct pci){.domain = 0, .bus = (uint32_t)planted(key_of(d), "bus", 0xc0 + atoi(key_of(d)))};
  snprintf(p->text, sizeof p->text, "%08X:%02X:00.0", p->domain, p->bus);
  return call("PciInfo", key_of(d));
}
int nvmlDeviceGetUtilizationRates(void *d, uint32_t out[2]) {
  int r = number("UtilizationRates", d, "util", &out[0]);
  out[1] = (uint32_t)planted(key_of(d), "memutil", 0);
  return r;
}
static int memory(const char *name, void *d, struct memory *m) {
  const char *k = key_of(d);
  *m = (struct memory){(uint64_t)planted(k, "total", 0), (uint64_t)planted(k, "free", 0),
                       (uint64_t)planted(k, "used", 0)};
  return call(name, k);
}
int nvmlDeviceGetMemoryInfo(void *d, struct memory *m) { return memory("MemoryInfo", d, m); }
#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(void *d, struct memory_v2 *m) {
  struct memory old;
  if (m->version != 0x02000028)
    return OTHER_VERSION;
  int r = memory("MemoryInfo_v2", d, &old);
  *m = (struct memory_v2){m->version, old.total, 0, old.free, old.used};
  return r;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *d, uint64_t *out) {
  *out = (uint64_t)planted(key_of(d), "reasons", 0);
  return call("CurrentClocksEventReasons", key_of(d));
}
#else
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, uint64_t *out) {
  *out = (uint64_t)planted(key_of(d), "reasons", 0);
  return call("CurrentClocksThrottleReasons", key_of(d));
}
#endif
int nvmlDeviceGetClockInfo(void *d, uint32_t which, uint32_t *out) {
  return number("ClockInfo", d, which == 0 ? "graphics" : which == 1 ? "sm" : "memclock", out);
}
int nvmlDeviceGetPowerUsage(void *d, uint32_t *out) { return number("PowerUsage", d, "power", out); }
int nvmlDeviceGetTemperature(void *d, uint32_t sensor, uint32_t *out) {
  return sensor ? BAD_ARGUMENT : number("Temperature", d, "temp", out);
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *d, uint32_t *out) {
  return number("CurrPcieLinkGeneration", d, "gen", out);
}
int nvmlDeviceGetCurrPcieLinkWidth(void *d, uint32_t *out) {
  return number("CurrPcieLinkWidth", d, "width", out);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *d, uint32_t *out) {
  return number("MaxPcieLinkGeneration", d, "maxgen", out);
}
int nvmlDeviceGetMaxPcieLinkWidth(void *d, uint32_t *out) {
  return number("MaxPcieLinkWidth", d, "maxwidth", out);
}
int nvmlDeviceGetPcieThroughput(void *d, uint32_t rx, uint32_t *out) {
  return number("PcieThroughput", d, rx ? "pcierx" : "pcietx", out);
}
int nvmlDeviceGetFieldValues(void *d, int n, struct field *f) {
  int r = call("FieldValues", key_of(d));
  for (int i = 0; r == OK && i < n; i++) {
    char name[48];
    int n_name = snprintf(name, sizeof name, "field.%u", f[i].id);
    if (f[i].scope == UINT32_MAX)
      snprintf(name + n_name, sizeof name - (size_t)n_name, ".all");
    else if (f[i].scope)
      snprintf(name + n_name, sizeof name - (size_t)n_name, ".%u", f[i].scope);
    int64_t v = planted(key_of(d), name, -1);
    f[i].value = (uint64_t)v;
    snprintf(name, sizeof name, "ret.field.%u", f[i].id);
    f[i].result = (int)planted(key_of(d), name, v < 0 ? NOT_SUPPORTED : OK);
    snprintf(name, sizeof name, "type.%u", f[i].id);
    f[i].type = (uint32_t)planted(key_of(d), name, 3);
  }
  return r;
}
int nvmlDeviceGetMigMode(void *d, uint32_t *now, uint32_t *pending) {
  *now = *pending = planted(key_of(d), "mig", 0) > 0;
  return call("MigMode", key_of(d));
}
int nvmlDeviceGetMaxMigDeviceCount(void *d, uint32_t *n) {
  return *n = MIGS, call("MaxMigDeviceCount", key_of(d));
}
/* the first one's place is empty */
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, uint32_t i, void **out) {
  if (i == 0 || i >= MIGS || i > planted(key_of(d), "mig", 0))
    return NOT_FOUND;
  struct device *m = &migs[atoi(key_of(d))][i];
  snprintf(m->key, sizeof m->key, "%.2s/%u", key_of(d), i % MIGS);
  *out = m;
  return call("MigDeviceHandleByIndex", key_of(d));
}

struct set {
  void *device[GPUS];
  int64_t seen[GPUS];
};
int nvmlEventSetCreate(struct set **out) {
  return *out = calloc(1, sizeof **out), call("EventSetCreate", "*");
}
int nvmlEventSetFree(struct set *s) { return free(s), call("EventSetFree", "*"); }
int nvmlDeviceRegisterEvents(void *d, uint64_t types, struct set *s) {
  int i = atoi(key_of(d)), r = call("RegisterEvents", key_of(d));
  if (r != OK || types != 8)
    return r ? r : BAD_ARGUMENT;
  s->device[i] = d;
  s->seen[i] = planted(key_of(d), "xids", 0);
  return OK;
}
int nvmlEventSetWait_v2(struct set *s, struct event *e, uint32_t ms) {
  int r = call("EventSetWait", "*");
  /* as a driver */
  if (getenv("NI_FAKE_NVML_STILL"))
    return nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL), TIMEOUT;
  for (uint32_t waited = 0; r == OK; waited += 5) {
    for (int i = 0; i < GPUS; i++)
      if (s->device[i] && planted(key_of(s->device[i]), "xids", 0) > s->seen[i]) {
        s->seen[i]++;
        *e = (struct event){s->device[i], 8, (uint64_t)planted(key_of(s->device[i]), "xid", 0), UINT32_MAX,
                            UINT32_MAX};
        return OK;
      }
    if (waited >= ms)
      return TIMEOUT;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
  return r;
}

#ifndef OLD_DRIVER
struct sample {
  struct timespec at;
  void *device;
};
int nvmlGpmQueryDeviceSupport(void *d, uint32_t out[2]) {
  out[1] = planted(key_of(d), "gpm", 0) > 0;
  return out[0] == 1 ? call("GpmQueryDeviceSupport", key_of(d)) : OTHER_VERSION;
}
int nvmlGpmSampleAlloc(struct sample **out) {
  return samples++, *out = calloc(1, sizeof **out), call("GpmSampleAlloc", "*");
}
int nvmlGpmSampleFree(struct sample *s) { return samples--, free(s), call("GpmSampleFree", "*"); }
int nvmlGpmSampleGet(void *d, struct sample *s) {
  clock_gettime(CLOCK_MONOTONIC, &s->at);
  s->device = d;
  return call("GpmSampleGet", key_of(d));
}
int nvmlGpmMetricsGet(struct metrics *m) {
  struct sample *a = m->a, *b = m->b;
  int r = call("GpmMetricsGet", key_of(a->device));
  int64_t ms = (b->at.tv_sec - a->at.tv_sec) * 1000 + (b->at.tv_nsec - a->at.tv_nsec) / 1000000;
  if (m->version != 1 || a->device != b->device)
    return BAD_ARGUMENT;
  for (uint32_t i = 0; r == OK && i < m->n; i++) {
    char name[48];
    snprintf(name, sizeof name, "gpm.%u", m->m[i].id);
    int64_t v = planted(key_of(a->device), name, -1);
    m->m[i].result = ms < 100 ? 999 : v < 0 ? NOT_SUPPORTED : OK; /* samples that are too close say nothing */
    m->m[i].value = (double)v / 1000;
  }
  return r;
}
#endif
