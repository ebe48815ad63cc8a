#include "collector.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "exporter/base/array.h"
#include "exporter/base/threads.h"
#include "source.h"

const char *ni_near_name(enum ni_near how) {
  static const char *const names[] = {NULL, "SYS", "PHB", "PXB", "PIX"};
  return names[how];
}

/*
 * Of two devices, by where they really lie: ".../pci0000:00/0000:00:01.0/0000:01:00.0", the host bridge
 * first.
 */
static enum ni_near compare_places(const char *a, const char *b) {
  size_t shared = 0, end = 0; /* whole names that both begin with */
  if (!(a = strstr(a, "/pci")) || !(b = strstr(b, "/pci")))
    return NI_NEAR_UNKNOWN;
  for (size_t i = 1; a[i] && a[i] == b[i]; i++)
    if (a[i] == '/') {
      shared++;
      end = i + 1;
    }
  if (shared < 2)
    return shared ? NI_NEAR_PHB : NI_NEAR_SYS;
  return strchr(a + end, '/') || strchr(b + end, '/') ? NI_NEAR_PXB : NI_NEAR_PIX;
}

enum { GPUS = 256 };
struct gpus {
  struct found_gpu {
    char *at; /* where it really lies; its end is its address */
    const char *pci, *name;
    int numa;
  } gpu[GPUS];
  size_t n;
};

/* Where the device really lies, to be freed; NULL: nowhere. */
static char *resolve_place(const char *pci) {
  char path[NI_ROOT_PATH];
  return pci ? realpath(ni_root_path(path, "/sys/bus/pci/devices/%s", pci), NULL) : NULL;
}

/* name NULL: its address is its name. */
static void add_gpu(struct gpus *g, const char *pci, const char *name, int numa) {
  char *at = g->n < GPUS ? resolve_place(pci) : NULL;
  if (!at)
    return;
  pci = strrchr(at, '/') + 1;
  g->gpu[g->n++] = (struct found_gpu){at, pci, name ? name : pci, numa};
}

/* Finds GPUs where NVML names none: display controllers of NVIDIA's. */
static void find_gpus_by_pci(struct gpus *g) {
  struct dirent **names;
  char at[NI_ROOT_PATH], vendor[64], class[64], numa[64];
  int n = ni_root_names(&names, ni_root_path(at, "/sys/bus/pci/devices"));
  for (int i = 0; i < n; i++) {
    ni_root_path(at, "/sys/bus/pci/devices/%s", names[i]->d_name);
    const bool is_nvidia =
        ni_root_line(vendor, sizeof vendor, at, "vendor") > 0 && strcmp(vendor, "0x10de") == 0;
    if (is_nvidia && ni_root_line(class, sizeof class, at, "class") > 0 && strncmp(class, "0x03", 4) == 0)
      add_gpu(g, names[i]->d_name, NULL,
              ni_root_line(numa, sizeof numa, at, "numa_node") > 0 ? atoi(numa) : -1);
  }
  ni_root_names_free(names, n);
}

static void find_nearest(const struct gpus *g, const char *at, int numa, struct ni_nearest *out) {
  int most = 0;
  size_t used = 0, room = sizeof out->all;
  NI_EACH(const struct found_gpu, k, g->gpu, g->n) {
    enum ni_near how = compare_places(at, k->at);
    int rank = 2 * (int)how + (numa >= 0 && numa == k->numa);
    if (!how || rank <= most)
      continue;
    most = rank;
    out->how = how;
    snprintf(out->gpu, sizeof out->gpu, "%s", k->name);
  }
  /* all that are as near */
  for (const struct found_gpu *k = g->gpu; k < g->gpu + g->n && out->how > NI_NEAR_SYS; k++)
    if (compare_places(at, k->at) == out->how && used + strlen(k->pci) + 2 < room)
      used += (size_t)snprintf(out->all + used, room - used, "%s%s", used ? "," : "", k->pci);
}

int ni_nearest_find(const struct ni_set *s, struct ni_nearest *out) {
  struct gpus *g = calloc(1, sizeof *g);
  if (!g)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_entities; i++) {
    const struct ni_entity *e = &s->entity[i];
    if (e->source == NI_METRIC_GPU)
      add_gpu(g, e->pci, e->name, e->numa);
  }
  if (!g->n)
    find_gpus_by_pci(g);
  for (size_t i = 0; i < s->n_entities; i++) {
    const struct ni_entity *e = &s->entity[i];
    char *at = e->source == NI_METRIC_GPU ? NULL : resolve_place(e->pci);
    out[i] = (struct ni_nearest){0};
    if (at)
      find_nearest(g, at, e->numa, &out[i]);
    free(at);
  }
  for (size_t i = 0; i < g->n; i++)
    free(g->gpu[i].at);
  free(g);
  return 0;
}

struct ni_collector {
  struct ni_set set;
  struct ni_find find;
  struct ni_reading *out; /* of the sweep that goes on */
  /* the reader whose turn it is: each thread takes one; the threads' start and end order the rest */
  atomic_size_t next;
};

/*
 * A NIC that shares a switch of PCI with a GPU is there for the job's traffic; others carry storage or the
 * host's own.
 */
static void note_gpu_beside(struct ni_set *s, struct ni_entity *e) {
  char text[500];
  snprintf(text, sizeof text, "%s, beside a GPU", e->kind);
  e->kind = ni_set_text(s, text);
}

int ni_collector_open(struct ni_collector **out, const struct ni_wanted *wanted) {
  static void (*const sources[])(struct ni_find *) = {ni_cxi_find, ni_ib_find, ni_eth_find, ni_gpu_find,
                                                      ni_host_find};
  struct ni_collector *c = calloc(1, sizeof *c);
  *out = NULL;
  if (!c)
    return -ENOMEM;
  c->find = (struct ni_find){.set = &c->set, .wanted = wanted};
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    sources[i](&c->find);
  struct ni_nearest *near = calloc(c->set.n_entities + 1, sizeof *near);
  if (!near || ni_nearest_find(&c->set, near) < 0)
    c->set.failed = true;
  for (size_t i = 0; !c->set.failed && i < c->set.n_entities; i++) {
    struct ni_entity *e = &c->set.entity[i];
    if (*near[i].all)
      e->nearest = ni_set_text(&c->set, near[i].all);
    if (e->kind && near[i].how >= NI_NEAR_PXB)
      note_gpu_beside(&c->set, e);
  }
  free(near);
  if (c->set.failed) {
    ni_collector_close(c);
    return -ENOMEM;
  }
  *out = c;
  return 0;
}

void ni_collector_close(struct ni_collector *c) {
  if (!c)
    return;
  for (size_t i = 0; i < c->find.n_readers; i++)
    c->find.reader[i]->close(c->find.reader[i]);
  free(c->find.reader);
  ni_set_free(&c->set);
  free(c);
}

const struct ni_set *ni_collector_set(const struct ni_collector *c) { return &c->set; }

static void *run_readers(void *arg) {
  struct ni_collector *c = arg;
  for (size_t i; (i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) < c->find.n_readers;) {
    struct ni_counter_reader *r = c->find.reader[i];
    r->read(r, c->out + r->first);
  }
  return NULL;
}

size_t ni_collector_read(struct ni_collector *c, struct ni_reading *out, unsigned threads) {
  size_t bad = 0;
  c->out = out;
  atomic_store_explicit(&c->next, 0, memory_order_relaxed);
  if (threads > c->find.n_readers)
    threads = (unsigned)c->find.n_readers;
  ni_threads(threads ? threads : 1, run_readers, c, 0);
  for (size_t i = 0; i < c->set.n_counters; i++)
    bad += out[i].state != NI_READ_OK;
  return bad;
}

bool ni_collector_changed(const struct ni_collector *c) {
  for (size_t i = 0; i < c->find.n_readers; i++)
    if (c->find.reader[i]->changed)
      return true;
  return false;
}

void ni_collector_raise_limit(void) {
  struct rlimit r;
  if (getrlimit(RLIMIT_NOFILE, &r) != 0)
    return;
  r.rlim_cur = r.rlim_max;
  setrlimit(RLIMIT_NOFILE, &r);
}
