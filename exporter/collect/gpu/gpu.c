/* NVIDIA's GPUs and their MIG instances: which there are, which counters each has, and the reader of each. */
#include "exporter/collect/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_call.h"

#define LIBRARY "libnvidia-ml.so.1"
enum { MAX_GPUS = 256, NAME = 32, PCIE_TX_BYTES = 197, PCIE_RX_BYTES = 198, ALL_LINKS = UINT32_MAX };

/*
 * Which call a counter comes from and what it is there: the place in what the call brings, a field, a metric
 * of GPM. unit: one count is so many of our units.
 */
static const struct gpu_metric {
  const char *name;
  uint8_t kind;
  uint16_t id;
  uint32_t unit;
} rows[] = {
#define ROW(name, kind, id, unit) {name, NI_GPU_##kind, id, unit}
    ROW("utilization_gpu", UTILIZATION, 0, 1),
    ROW("utilization_memory", UTILIZATION, 1, 1),
    ROW("memory_used", MEMORY, 0, 1),
    ROW("memory_free", MEMORY, 1, 1),
    ROW("memory_total", MEMORY, 2, 1),
    ROW("clock_graphics", CLOCK_GRAPHICS, 0, 1),
    ROW("clock_sm", CLOCK_SM, 0, 1),
    ROW("clock_memory", CLOCK_MEMORY, 0, 1),
    ROW("power", POWER, 0, 1),
    ROW("energy", FIELDS, 83, 1),
    ROW("temperature", TEMPERATURE, 0, 1),
    ROW("temperature_memory", FIELDS, 82, 1),
    ROW("throttle_reasons", REASONS, 0, 1),
    ROW("throttled_power", FIELDS, 74, 1),
    ROW("throttled_sync_boost", FIELDS, 76, 1),
    ROW("throttled_thermal_software", FIELDS, 269, 1),
    ROW("throttled_thermal_hardware", FIELDS, 270, 1),
    ROW("throttled_power_brake", FIELDS, 271, 1),
    ROW("pcie_link_generation", GENERATION, 0, 1),
    ROW("pcie_link_width", WIDTH, 0, 1),
    ROW("pcie_tx_bytes", TRAFFIC, PCIE_TX_BYTES, 1),
    ROW("pcie_rx_bytes", TRAFFIC, PCIE_RX_BYTES, 1),
    ROW("pcie_tx_rate", PCIE_TX, 0, 1),
    ROW("pcie_rx_rate", PCIE_RX, 0, 1),
    ROW("pcie_replays", FIELDS, 94, 1),
    ROW("nvlink_tx_bytes", TRAFFIC, 138, 1024),
    ROW("nvlink_rx_bytes", TRAFFIC, 139, 1024),
    ROW("nvlink_crc_flit_errors", FIELDS, 38, 1),
    ROW("nvlink_crc_data_errors", FIELDS, 45, 1),
    ROW("nvlink_replays", FIELDS, 52, 1),
    ROW("nvlink_recoveries", FIELDS, 59, 1),
    ROW("ecc_corrected", FIELDS, 3, 1),
    ROW("ecc_uncorrected", FIELDS, 4, 1),
    ROW("remapped_rows_corrected", FIELDS, 142, 1),
    ROW("remapped_rows_uncorrected", FIELDS, 143, 1),
    ROW("remapped_rows_pending", FIELDS, 144, 1),
    ROW("remapped_rows_failed", FIELDS, 145, 1),
    ROW("retired_pages_corrected", FIELDS, 29, 1),
    ROW("retired_pages_uncorrected", FIELDS, 30, 1),
    ROW("xid_count", XID, 0, 1),
    ROW("xid_last", XID, 1, 1),
    ROW("gpm_graphics_activity", GPM, 1, 10),
    ROW("gpm_sm_activity", GPM, 2, 10),
    ROW("gpm_sm_occupancy", GPM, 3, 10),
    ROW("gpm_tensor_activity", GPM, 5, 10),
    ROW("gpm_dram_activity", GPM, 10, 10),
    ROW("gpm_pcie_tx_rate", GPM, 20, 1 << 20),
    ROW("gpm_pcie_rx_rate", GPM, 21, 1 << 20),
    ROW("gpm_nvlink_tx_rate", GPM, 61, 1 << 20),
    ROW("gpm_nvlink_rx_rate", GPM, 60, 1 << 20),
};
enum { ROWS = sizeof rows / sizeof *rows };
static_assert(sizeof rows / sizeof *rows <= NI_GPU_VALUES, "a call may have to bring all of them");

/* What the readers of one collector share; the last one that is closed lets go of it. */
struct library {
  struct ni_nvml *nvml;
  struct ni_xid *xid;
  size_t users;
};

struct gpu_reader {
  struct ni_counter_reader reader; /* first: one is the other */
  struct library *library;
  struct ni_gpu_device device;
  size_t next; /* the call that is first in a sweep */
  struct call_place {
    const struct gpu_metric *row;
    size_t at;
  } from[ROWS]; /* of its counters: call[row->kind].value[at] */
};

static void release_library(struct library *l) {
  if (--l->users)
    return;
  ni_xid_free(l->xid);
  ni_nvml_close(l->nvml);
  free(l);
}

static void close_gpu(struct ni_counter_reader *r) {
  struct gpu_reader *g = (struct gpu_reader *)r;
  ni_gpu_end(&g->device);
  release_library(g->library);
  free(g);
}

static bool is_never_supported(int result) {
  return result == NI_NVML_NOT_SUPPORTED || result == NI_NVML_NO_FUNCTION || result == NI_NVML_DEPRECATED;
}

static void read_gpu(struct ni_counter_reader *r, struct ni_reading *out) {
  struct gpu_reader *g = (struct gpu_reader *)r;
  bool lost = false, refused = false;
  size_t first = g->next;
  for (size_t i = 0; i < NI_GPU_KINDS; i++) {
    enum ni_gpu_kind k = (enum ni_gpu_kind)((first + i) % NI_GPU_KINDS);
    if (lost && k != NI_GPU_XID)
      continue; /* they would say the same, each after a wait; its Xid says why */
    int result = ni_gpu_ask(&g->device, k);
    if (result == NI_GPU_LATER && !refused) {
      refused = true;
      g->next = k;
    }
    if (is_never_supported(result))
      ni_gpu_stop_call(&g->device, k);
    lost |= result == NI_NVML_LOST;
  }
  for (size_t i = 0; i < r->n; i++) {
    unsigned kind = g->from[i].row->kind;
    const struct ni_gpu_call *c = &g->device.call[kind];
    const struct ni_gpu_value *v = &c->value[g->from[i].at];
    bool is_gone = (lost && kind != NI_GPU_XID) || v->result == NI_NVML_LOST || is_never_supported(v->result);
    out[i] = (struct ni_reading){.value = v->value, .real_ns = c->real_ns, .mono_ns = c->mono_ns};
    out[i].state = is_gone ? NI_READ_MISSING : v->result == NI_NVML_OK ? NI_READ_OK : NI_READ_UNREADABLE;
  }
}

static bool can_block(unsigned kind) { return kind == NI_GPU_PCIE_TX || kind == NI_GPU_PCIE_RX; }

/*
 * Are counters of this kind asked for at all? Those that block or sample more only by name or with
 * wanted->slow.
 */
static bool is_kind_asked(const struct ni_find *f, uint8_t kind, const char *name) {
  bool costly = kind == NI_GPU_GPM || (can_block(kind) && !f->wanted->pcie);
  if (costly && !f->wanted->slow && !ni_find_is_named(f, name))
    return false;
  return ni_find_is_asked(f, NI_METRIC_GPU, name);
}

/* PCIe's throughput that is asked for in place of its bytes, of a GPU that counts those. */
static bool is_made_needless(const struct ni_find *f, const struct gpu_reader *g, unsigned kind,
                             const char *name) {
  if (!can_block(kind) || f->wanted->slow || ni_find_is_named(f, name))
    return false;
  const struct ni_gpu_call *bytes = &g->device.call[NI_GPU_TRAFFIC];
  for (size_t i = 0; i < bytes->n; i++)
    if (bytes->value[i].id == (kind == NI_GPU_PCIE_TX ? PCIE_TX_BYTES : PCIE_RX_BYTES))
      return !is_never_supported(bytes->value[i].result);
  return false;
}

/*
 * All that is asked for, before it is known what of it this GPU has; Xids are known by xid_result. Returns
 * how many.
 */
static size_t list_candidates(const struct ni_find *f, struct gpu_reader *g, bool mig, int xid_result) {
  size_t n = 0;
  for (const struct gpu_metric *r = rows; r < rows + ROWS; r++) {
    struct ni_gpu_call *call = &g->device.call[r->kind];
    if ((mig && r->kind != NI_GPU_MEMORY) || !is_kind_asked(f, r->kind, r->name))
      continue;
    g->from[n++] = (struct call_place){r, call->n};
    call->value[call->n++] = (struct ni_gpu_value){.id = r->id,
                                                   .scope = r->unit == 1024 ? ALL_LINKS : 0,
                                                   .unit = r->unit,
                                                   .result = r->kind == NI_GPU_XID ? xid_result : NI_NVML_OK};
  }
  return n;
}

static void append_name(char list[512], const char *name) {
  size_t n = strlen(list);
  snprintf(list + n, 512 - n, "%s%.31s", n ? ", " : "", name);
}

/* Puts what the GPU has of n candidates into the set; what it has not is asked for no more, and said once. */
static void keep_supported(struct ni_find *f, struct gpu_reader *g, size_t n) {
  size_t kept[NI_GPU_KINDS] = {0}, all = 0;
  char without[512] = "", root[512] = "", text[NI_NVML_TEXT + 1024];
  for (size_t i = 0; i < n; i++) {
    const struct gpu_metric *row = g->from[i].row;
    struct ni_gpu_value *value = g->device.call[row->kind].value, v = value[g->from[i].at];
    if (is_made_needless(f, g, row->kind, row->name))
      continue;
    if (is_never_supported(v.result)) {
      append_name(without, row->name);
    } else if (v.result == NI_NVML_NO_PERMISSION) {
      append_name(root, row->name);
    } else if (ni_find_counter(f, row->name)) {
      g->from[all++] = (struct call_place){row, kept[row->kind]};
      value[kept[row->kind]++] = v;
    }
  }
  for (size_t i = 0; i < NI_GPU_KINDS; i++) {
    g->device.call[i].n = kept[i];
    if (!kept[i])
      ni_gpu_stop_call(&g->device, (enum ni_gpu_kind)i);
  }
  struct ni_entity *e = &f->set->entity[f->set->n_entities - 1];
  if (*without) {
    snprintf(text, sizeof text, "%s; does not tell: %s", e->about, without);
    e->about = ni_set_text(f->set, text);
  }
  if (*root) {
    snprintf(text, sizeof text, "needs root: %s", root);
    ni_set_unread(f->set, e->name, text);
  }
}

/*
 * The PCIe link: what it is, what it could be. An idle GPU lowers its generation to save power, so that is
 * wrong only while the GPU works; the width is never lowered.
 */
static void describe_link(struct ni_set *s, struct ni_entity *e, const struct ni_gpu_device *d) {
  static const double lane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  uint32_t now = 0, width = 0, most = 0, widest = 0;
  struct ni_nvml_utilization u = {0};
  char text[128], advice[] = "look at the slot, the riser and the BIOS setting";
  if (NI_NVML(d->nvml, generation, d->handle, &now) != NI_NVML_OK)
    return;
  if (NI_NVML(d->nvml, width, d->handle, &width) != NI_NVML_OK)
    return;
  if (NI_NVML(d->nvml, max_generation, d->handle, &most) != NI_NVML_OK)
    most = now;
  if (NI_NVML(d->nvml, max_width, d->handle, &widest) != NI_NVML_OK)
    widest = width;
  bool lower = now < most;
  bool works = lower && NI_NVML(d->nvml, utilization, d->handle, &u) == NI_NVML_OK && u.gpu >= 50;
  int n = snprintf(text, sizeof text, "PCIe generation %u, x%u", now, width);
  if (lower && !works)
    snprintf(text + n, sizeof text - (size_t)n, " (idle; up to generation %u)", most);
  e->link = ni_set_text(s, text);
  e->link_bytes_s = most < sizeof lane / sizeof *lane ? lane[most] * width : 0;
  if (width < widest)
    snprintf(text, sizeof text, "PCIe link x%u of x%u: %s", width, widest, advice);
  else if (works)
    snprintf(text, sizeof text, "PCIe generation %u of %u under load: %s", now, most, advice);
  else
    return;
  e->warning = ni_set_text(s, text);
}

static void describe_gpu(struct ni_set *s, struct ni_entity *e, const struct ni_gpu_device *d,
                         const char *pci) {
  char name[NI_NVML_TEXT] = "", uuid[NI_NVML_TEXT] = "", text[2 * NI_NVML_TEXT + 4], numa[16],
       path[NI_ROOT_PATH];
  NI_NVML(d->nvml, name, d->handle, name, NI_NVML_TEXT);
  NI_NVML(d->nvml, uuid, d->handle, uuid, NI_NVML_TEXT);
  name[NI_NVML_TEXT - 1] = uuid[NI_NVML_TEXT - 1] = 0;
  snprintf(text, sizeof text, "%s%s%s", name, *name && *uuid ? ", " : "", uuid);
  e->about = ni_set_text(s, text);
  if (!*pci)
    return;
  e->pci = ni_set_text(s, pci);
  if (ni_root_line(numa, sizeof numa, ni_root_path(path, "/sys/bus/pci/devices/%s", pci), "numa_node") > 0)
    e->numa = atoi(numa);
}

/* An entity, its counters and its reader, unless nobody asks for it. */
static void add_gpu(struct ni_find *f, struct library *l, ni_nvml_handle handle, const char *name,
                    const char *pci, bool mig) {
  struct ni_entity *e = ni_find_entity(f, NI_METRIC_GPU, name);
  struct gpu_reader *g = e ? calloc(1, sizeof *g) : NULL;
  int xid_result = NI_NVML_NOT_SUPPORTED;
  if (e && !g)
    f->set->failed = true;
  if (!g)
    return;
  *g = (struct gpu_reader){.reader = {.read = read_gpu, .close = close_gpu},
                           .library = l,
                           .device = {.nvml = l->nvml, .handle = handle}};
  l->users++;
  ni_gpu_enter();
  describe_gpu(f->set, e, &g->device, pci);
  if (!mig)
    describe_link(f->set, e, &g->device);
  if (!mig && is_kind_asked(f, NI_GPU_XID, "xid_count"))
    xid_result = ni_xid_watch(&l->xid, l->nvml, handle);
  ni_gpu_leave();
  g->device.xid = l->xid;
  size_t n = list_candidates(f, g, mig, xid_result);
  /* Whether a GPU has GPM shows the second sample only: guests of a hypervisor have it by name alone. */
  ni_gpu_begin(&g->device, g->device.call[NI_GPU_GPM].n > 0);
  for (int i = 0; i < NI_GPU_XID; i++) {
    if (can_block((unsigned)i) &&
        is_made_needless(f, g, (unsigned)i, i == NI_GPU_PCIE_TX ? "pcie_tx_rate" : "pcie_rx_rate"))
      continue;
    ni_gpu_ask(&g->device, (enum ni_gpu_kind)i);
  }
  keep_supported(f, g, n);
  ni_find_reader(f, &g->reader);
}

static void add_migs(struct ni_find *f, struct library *l, ni_nvml_handle gpu, const char *name,
                     const char *pci) {
  uint32_t now = 0, pending = 0, most = 0;
  char mig[NAME + 16];
  ni_nvml_handle h;
  if (NI_NVML(l->nvml, mig_mode, gpu, &now, &pending) != NI_NVML_OK || !now)
    return;
  if (NI_NVML(l->nvml, mig_count, gpu, &most) != NI_NVML_OK)
    return;
  for (uint32_t i = 0; i < most && i < 64; i++) {
    if (NI_NVML(l->nvml, mig, gpu, i, &h) != NI_NVML_OK)
      continue; /* no such instance */
    snprintf(mig, sizeof mig, "%s/mig%u", name, i);
    add_gpu(f, l, h, mig, pci, true);
  }
}

static void find_gpus(struct ni_find *f, struct library *l, uint32_t n) {
  char name[NAME], pci[NAME], why[256];
  ni_nvml_handle h;
  for (uint32_t i = 0; i < n; i++) {
    struct ni_nvml_pci p = {.domain = 0};
    snprintf(name, sizeof name, "gpu%u", i);
    int r = NI_NVML(l->nvml, handle, i, &h);
    if (r != NI_NVML_OK) {
      ni_set_unread(f->set, name, ni_nvml_why(l->nvml, r, why, sizeof why));
      continue;
    }
    *pci = 0;
    if (NI_NVML(l->nvml, pci, h, &p) == NI_NVML_OK)
      snprintf(pci, sizeof pci, "%04x:%02x:%02x.0", p.domain, p.bus & 0xff, p.device & 0xff);
    add_gpu(f, l, h, name, pci, false);
    add_migs(f, l, h, name, pci);
  }
}

void ni_gpu_find(struct ni_find *f) {
  const struct ni_wanted *w = f->wanted;
  char why[256];
  uint32_t n = 0;
  if (!ni_find_source(f, NI_METRIC_GPU))
    return;
  struct library *l = calloc(1, sizeof *l);
  if (!l || !(l->nvml = ni_nvml_open(why, sizeof why))) {
    if (!l)
      f->set->failed = true;
    else if (*why)
      ni_set_unread(f->set, LIBRARY, why);
    else if (w->sources)
      ni_set_unread(f->set, LIBRARY, "not found: no NVIDIA driver is here, or this container has not got it");
    free(l);
    return;
  }
  l->users = 1;
  int r = l->nvml->count(&n);
  if (r != NI_NVML_OK)
    ni_set_unread(f->set, LIBRARY, ni_nvml_why(l->nvml, r, why, sizeof why));
  else
    find_gpus(f, l, n < MAX_GPUS ? n : MAX_GPUS);
  if (n > MAX_GPUS)
    ni_set_skipped(f->set, LIBRARY, "GPUs beyond the first 256");
  const bool leaves_out_slow = w->all && !w->slow && !w->counters;
  if (n && leaves_out_slow)
    ni_set_skipped(f->set, LIBRARY,
                   "gpm_* and pcie_*_rate, which cost more: they are read where --counters names them");
  release_library(l);
}
