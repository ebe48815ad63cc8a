#include "up_sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"

static bool update_rates(struct ni_up *u, const struct ni_running *r) {
  while (u->n < r->n) {
    if (!ni_array_room(u->point, u->n, u->cap))
      return false;
    u->point[u->n++] = (struct ni_up_point){.rate = (double)NAN};
  }
  for (size_t i = 0; i < r->n; i++) {
    const struct ni_running_value *v = &r->value[i];
    struct ni_up_point *p = &u->point[i];
    if (!v->known || v->last.mono_ns <= p->mono_ns)
      continue;
    if (p->mono_ns)
      p->rate = (double)(v->total - p->total) * 1e9 / (double)(v->last.mono_ns - p->mono_ns);
    p->total = v->total;
    p->mono_ns = v->last.mono_ns;
  }
  return true;
}

/* A counter of a GPU: where it belongs, and how many of its units are one of the sample's. */
static const struct {
  const char *name;
  size_t at;
  double per;
  bool rate;
} of_gpu[] = {
#define GPU(name, field, per, rate) {name, offsetof(struct ni_sample_gpu, field), per, rate}
    GPU("utilization_gpu", util, 100, false),   GPU("memory_used", memory, 1, false),
    GPU("pcie_rx_bytes", pcie_rx, 1, true),     GPU("pcie_tx_bytes", pcie_tx, 1, true),
    GPU("pcie_rx_rate", pcie_rx, 1e-3, false),  GPU("pcie_tx_rate", pcie_tx, 1e-3, false),
    GPU("nvlink_rx_bytes", nvlink_rx, 1, true), GPU("nvlink_tx_bytes", nvlink_tx, 1, true),
    GPU("power", power_w, 1e3, false),          GPU("temperature", temperature_c, 1, false),
    GPU("clock_sm", sm_hz, 1e-6, false)};

/* What is read of the node while its values are gone through. */
struct node {
  struct ni_sample_gpu gpu[NI_SAMPLE_GPUS_MAX];
  struct ni_sample_nic nic[NI_SAMPLE_NICS_MAX];
  uint8_t source[NI_SAMPLE_NICS_MAX];
  double total[NI_SAMPLE_GPUS_MAX], cpu, idle, available; /* bytes of memory; time a second; KiB */
  uint32_t n_gpus, n_nics;
};

static void add_gpu(struct node *o, const struct ni_running_value *v, double rate) {
  uint32_t k = 0;
  int index, end = 0;
  if (sscanf(v->entity, "gpu%d%n", &index, &end) != 1 || v->entity[end])
    return;
  while (k < o->n_gpus && o->gpu[k].index != index)
    k++;
  struct ni_sample_gpu *g = &o->gpu[k];
  if (k == NI_SAMPLE_GPUS_MAX)
    return;
  if (k == o->n_gpus) {
    const char *comma = strstr(v->about, ", ");
    *g = (struct ni_sample_gpu){.index = index};
    snprintf(g->name, sizeof g->name, "%.*s",
             (int)(comma ? (size_t)(comma - v->about) : strcspn(v->about, ";")), v->about);
    for (size_t i = 0; i < sizeof of_gpu / sizeof *of_gpu; i++)
      *(double *)((char *)g + of_gpu[i].at) = (double)NAN;
    o->total[o->n_gpus++] = (double)NAN;
  }
  for (size_t i = 0; i < sizeof of_gpu / sizeof *of_gpu && v->known; i++)
    if (strcmp(v->name, of_gpu[i].name) == 0)
      *(double *)((char *)g + of_gpu[i].at) = (of_gpu[i].rate ? rate : (double)v->total) / of_gpu[i].per;
  if (v->known && strcmp(v->name, "memory_total") == 0)
    o->total[k] = (double)v->total;
}

static void add_nic(struct node *o, const struct ni_running_value *v, double rate) {
  uint32_t k = 0;
  while (k < o->n_nics &&
         !(o->source[k] == v->source && strncmp(o->nic[k].name, v->entity, sizeof o->nic->name - 1) == 0))
    k++;
  struct ni_sample_nic *c = &o->nic[k];
  if (k == NI_SAMPLE_NICS_MAX)
    return;
  if (k == o->n_nics) {
    double link = v->link_bytes_s > 0 ? v->link_bytes_s : (double)NAN;
    *c = (struct ni_sample_nic){.rx = (double)NAN, .tx = (double)NAN, .link = link, .held = (double)NAN};
    ni_safe_text(v->entity, c->name, sizeof c->name);
    o->source[o->n_nics++] = v->source;
  }
  const char *name = v->known ? ni_metric_unified(v->source, v->name) : NULL;
  if (!name)
    return;
  if (strcmp(name, "rx_bytes") == 0)
    c->rx = fmax(c->rx, rate);
  if (strcmp(name, "tx_bytes") == 0)
    c->tx = fmax(c->tx, rate);
  /* cycles of 1 GHz */
  if (strcmp(name, "tx_held") == 0 && v->source == NI_METRIC_CXI)
    c->held = fmax(c->held, rate / 1e9);
}

static void add_host(struct node *o, const struct ni_running_value *v, double rate) {
  if (strncmp(v->name, "cpu_", 4) == 0)
    o->cpu += rate;
  if (strcmp(v->name, "cpu_idle") == 0 || strcmp(v->name, "cpu_iowait") == 0)
    o->idle += rate;
  if (strcmp(v->name, "memory_available") == 0 && v->known)
    o->available = (double)v->total;
}

static void read_node(struct node *o, const struct ni_up *u, const struct ni_running *r) {
  for (size_t i = 0; i < r->n; i++) {
    const struct ni_running_value *v = &r->value[i];
    double rate = u->point[i].rate;
    if (v->source == NI_METRIC_GPU)
      add_gpu(o, v, rate);
    if (v->source == NI_METRIC_HOST)
      add_host(o, v, rate);
    if (v->source == NI_METRIC_CXI || v->source == NI_METRIC_IB || v->source == NI_METRIC_ETH)
      add_nic(o, v, rate);
  }
}

static void fill_node(struct ni_sample *s, const struct node *o) {
  struct sysinfo host;
  struct statvfs v;
  double all = sysinfo(&host) == 0 ? (double)host.totalram * host.mem_unit / 1024 : 0;
  s->memory = all > 0 ? 1 - o->available / all : (double)NAN;
  if (statvfs("/", &v) == 0 && v.f_blocks > 0) /* as df has it: what root alone may use is not there */
    s->disk = (double)(v.f_blocks - v.f_bfree) / (double)(v.f_blocks - v.f_bfree + v.f_bavail);
  s->cpu = o->cpu > 0 ? 1 - o->idle / o->cpu : (double)NAN;
  memcpy(s->gpu, o->gpu, o->n_gpus * sizeof *s->gpu);
  for (uint32_t i = 0; i < o->n_gpus; i++)
    s->gpu[i].memory /= o->total[i];
  memcpy(s->nic, o->nic, o->n_nics * sizeof *s->nic);
}

static int by_age(const void *a, const void *b) {
  const struct ni_live_open *x = *(const struct ni_live_open *const *)a,
                            *y = *(const struct ni_live_open *const *)b;
  return x->since_ns < y->since_ns ? -1 : x->since_ns > y->since_ns;
}

/* Lists the ranks with operations in flight, the oldest first. The caller frees it; NULL without memory. */
static const struct ni_live_open **list_open(const struct ni_live *l, size_t *n) {
  size_t most = 1;
  for (size_t i = 0; i < l->n_looks; i++)
    most += l->look[i].n_open;
  const struct ni_live_open **all = malloc(most * sizeof *all);
  *n = 0;
  for (size_t i = 0; i < l->n_looks && all; i++)
    for (size_t k = 0; k < l->look[i].n_open; k++)
      if (*l->look[i].open[k].func)
        all[(*n)++] = &l->look[i].open[k];
  if (all)
    qsort(all, *n, sizeof *all, by_age);
  return all;
}

static double age_of(const struct ni_live_open *o, uint64_t unix_ns) {
  return unix_ns > o->since_ns ? (double)(unix_ns - o->since_ns) / 1e9 : 0;
}

static void fill_job(struct ni_sample_job *to, const struct ni_live *l, const struct ni_live_job *j,
                     uint64_t unix_ns) {
  *to = (struct ni_sample_job){.uid = j->uid, .processes = j->alive, .state = ni_live_job_state(j)};
  ni_safe_text(j->job, to->job, sizeof to->job);
  ni_safe_text(j->attempt, to->attempt, sizeof to->attempt);
  ni_safe_text(*j->hang.job ? j->hang.sentence : "", to->verdict, sizeof to->verdict);
  NI_EACH(const struct ni_live_func, f, l->func, l->n_funcs) {
    if (&l->job[l->member[f->member].job] != j)
      continue;
    to->operations += f->n;
    to->bytes += f->bytes;
    to->bus_bytes += (double)f->bus_bytes;
    to->bus_seconds += (double)f->bus_ns / 1e9;
  }
  NI_EACH(const struct ni_live_looked, k, l->look, l->n_looks)
  NI_EACH(const struct ni_live_open, o, k->open, k->n_open) {
    if (k->uid != j->uid || strcmp(o->who.job, j->job) != 0 || strcmp(o->who.attempt, j->attempt) != 0)
      continue;
    to->in_flight += o->in_flight;
    to->stuck += o->stuck;
    if (*o->func)
      to->oldest_s = fmax(to->oldest_s, age_of(o, unix_ns));
  }
}

static uint32_t smaller_of(size_t a, size_t b) { return (uint32_t)(a < b ? a : b); }

struct ni_sample *ni_up_sample(struct ni_up *u, const struct ni_metrics_in *in) {
  const struct ni_live *l = in->live;
  struct node o = {.available = (double)NAN};
  struct ni_sample *s = NULL;
  size_t n_open = 0;
  const struct ni_live_open **open = list_open(l, &n_open);
  if (open && (!in->running || update_rates(u, in->running))) {
    if (in->running)
      read_node(&o, u, in->running);
    s = ni_sample_new(o.n_gpus, o.n_nics, smaller_of(l->n_jobs, NI_SAMPLE_JOBS_MAX),
                      smaller_of(n_open, NI_SAMPLE_OPEN_MAX));
  }
  if (s)
    fill_node(s, &o);
  for (uint32_t ended = 0, n = 0; s && ended < 2; ended++)
    for (size_t i = 0; i < l->n_jobs && n < s->n_jobs; i++)
      if (!l->job[i].ended_ns == !ended)
        fill_job(&s->job[n++], l, &l->job[i], in->unix_ns);
  for (uint32_t i = 0; s && i < s->n_open; i++) {
    struct ni_sample_open *to = &s->open[i];
    *to = (struct ni_sample_open){.rank = open[i]->who.rank, .sn = open[i]->sn, .stuck = open[i]->stuck > 0};
    to->age_s = age_of(open[i], in->unix_ns);
    ni_safe_text(open[i]->who.job, to->job, sizeof to->job);
    ni_safe_text(open[i]->who.comm, to->comm, sizeof to->comm);
    ni_safe_text(open[i]->func, to->function, sizeof to->function);
  }
  free(open);
  return s;
}

void ni_up_free(struct ni_up *u) {
  free(u->point);
  *u = (struct ni_up){0};
}
