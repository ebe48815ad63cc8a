#include "evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/put.h"
#include "exporter/collect/throttle.h"
#include "exporter/model/sums/ranks/quantile.h"

/*
 * A CPU is late if this share more of its operations than of the others' began at once, and so many times as
 * many. Ranks of a healthy job differ by less.
 */
#define LAUNCH_MORE 0.1f
#define LAUNCH_TIMES 2

enum rung { HOST, GPU, NVLINK, NIC, RUNGS };
static const char *const rung_names[RUNGS] = {"host", "GPU", "NVLink", "NIC"};

/*
 * A figure is off where it is `factor` times the others' or more (below 1: or less), and `least` away. In
 * units of the text.
 */
static const struct figure {
  enum rung rung;
  const char *name; /* a counter of the host; else what sources share (metric.h) */
  enum { LEVEL, PER_S, AMOUNT } how;
  double scale, factor, least;
  const char *says, *unit;
} figures[] = {
    {HOST, "run_queue", LEVEL, 1, 1.5, 4, "had", " threads to run"},
    {HOST, "pressure_cpu_some", PER_S, 1e-4, 1.5, 5, "had tasks wait for a CPU", " % of the time"},
    {HOST, "pressure_io_full", PER_S, 1e-4, 1.5, 5, "stood still for I/O", " % of the time"},
    {GPU, "clock_sm", LEVEL, 1, 0.95, 30, "ran at", " MHz"},
    {GPU, "utilization_gpu", LEVEL, 1, 0.8, 10, "was busy", " %"},
    {GPU, "power", LEVEL, 1e-3, 0.8, 20, "took", " W"},
    {NVLINK, "errors", AMOUNT, 1, 2, 1, "had", " link errors"},
    {NIC, "tx_held", PER_S, 1e-7, 1.5, 2, "waited", " % of the time"},
    {NIC, "rx_held", PER_S, 1e-7, 1.5, 2, "kept the network waiting", " % of the time"},
    {NIC, "retries", AMOUNT, 1, 2, 10, "sent again", " times"},
    {NIC, "timeouts", AMOUNT, 1, 2, 1, "had", " timeouts"},
};

/* Rungs to look at, a bit each. */
static unsigned get_rungs(enum ni_finding_kind kind) {
  switch (kind) {
    case NI_FIND_LATE_RANK:
    case NI_FIND_PAUSES:
    case NI_FIND_SLOW_HOST:
    case NI_FIND_THROTTLING:
    case NI_FIND_PERIODIC:
      return 1 << HOST | 1 << GPU | 1 << NIC;
    case NI_FIND_SLOW_STAGE:
      return 1 << HOST | 1 << GPU;
    case NI_FIND_SLOW_NVLINK:
      return 1 << GPU | 1 << NVLINK;
    case NI_FIND_UNEVEN:
      return 0;
    default:
      return 1 << NIC;
  }
}

static double read_figure(const struct ni_beside *b, const struct ni_beside_entity *e,
                          const struct figure *f) {
  const bool gpu = e->source == NI_METRIC_GPU, host = e->source == NI_METRIC_HOST;
  if ((f->rung == HOST) != host || (f->rung == GPU || f->rung == NVLINK) != gpu)
    return NAN;
  const struct ni_beside_row *r = host ? NULL : ni_beside_unified(b, e, f->name);
  for (uint32_t i = e->first; host && i < e->first + e->n; i++)
    if (strcmp(b->row[i].name, f->name) == 0)
      r = &b->row[i];
  if (!r || (f->how != LEVEL && !r->samples))
    return NAN;
  if (f->how == LEVEL)
    return f->scale * (isnan(r->level_with) ? r->level_without : r->level_with);
  if (f->how == AMOUNT)
    return f->scale * r->with;
  bool us = !host && strcmp(r->what.unit, "us") == 0; /* else cycles of 1 GHz, or the scale is for us */
  return e->with_s > 0 ? f->scale * (us ? 1e3 : 1) * r->with / e->with_s : NAN;
}

struct ladder {
  const struct ni_summary *s;
  bool *of; /* entities of the finding */
  float *x; /* scratch */
  struct ni_put_text out;
  const char *gap;
};

static bool has_process(const struct ni_finding *f, uint32_t process) {
  for (size_t k = 0; k < f->n_processes; k++)
    if (f->process[k] == process)
      return true;
  return false;
}

static void mark_entities(struct ladder *l, const struct ni_finding *f) {
  const struct ni_beside *b = &l->s->beside;
  for (size_t i = 0; i < b->n_entities; i++) {
    const struct ni_beside_entity *e = &b->entity[i];
    l->of[i] = false;
    for (uint32_t m = 0; m < e->n_processes; m++)
      l->of[i] |= has_process(f, e->process[m]);
    for (size_t k = 0; k < f->n_processes && e->source == NI_METRIC_HOST; k++)
      l->of[i] |= strcmp(e->host, l->s->host[l->s->process[f->process[k]].host].name) == 0;
  }
}

/*
 * One figure, where it is off. gap: ",": its rung has said something. *seen: it is known of the finding and
 * of others.
 */
static bool put_figure(struct ladder *l, const struct figure *f, const char *gap, bool *seen) {
  const struct ni_beside *b = &l->s->beside;
  const struct ni_beside_entity *worst = NULL;
  size_t others = 0;
  double mine = NAN;
  char host[81], name[81], why[NI_THROTTLE_TEXT];
  for (size_t i = 0; i < b->n_entities; i++) {
    double v = read_figure(b, &b->entity[i], f);
    if (isnan(v))
      continue;
    if (!l->of[i])
      l->x[others++] = (float)v;
    else if (!worst || (f->factor < 1 ? v < mine : v > mine)) {
      mine = v;
      worst = &b->entity[i];
    }
  }
  if (!worst || !others)
    return false;
  const double baseline = ni_blame_quantile(l->x, others, 0.5);
  *seen = true;
  if (fabs(mine - baseline) < f->least ||
      (f->factor < 1 ? mine > f->factor * baseline : mine < f->factor * baseline))
    return false;
  ni_safe_text(worst->host, host, sizeof host);
  if (*gap == ',')
    ni_put(&l->out, ",");
  else if (f->rung == HOST)
    ni_put(&l->out, "%shost %s", gap, host);
  else
    ni_put(&l->out, "%s%s on %s", gap, ni_safe_text(worst->name, name, sizeof name), host);
  ni_put(&l->out, " %s %.0f%s (others %.0f)", f->says, mine, f->unit, baseline);
  uint64_t reasons =
      strcmp(f->name, "clock_sm") == 0 ? ni_beside_figures(b, worst).reasons & ~NI_THROTTLE_WISHED : 0;
  if (reasons)
    ni_put(&l->out, ", throttled by %s", ni_throttle_text(reasons, why));
  return true;
}

static void put_counters(struct ladder *l, const struct ni_finding *f) {
  const char *baseline[RUNGS];
  unsigned n = 0;
  mark_entities(l, f);
  for (unsigned rung = 0; rung < RUNGS; rung++) {
    bool off = false, seen = false;
    for (size_t i = 0; i < sizeof figures / sizeof *figures &&
         get_rungs(f->kind == NI_FIND_FLAPPING ? f->link : f->kind) >> rung & 1;
         i++)
      if (figures[i].rung == rung)
        off |= put_figure(l, &figures[i], off ? "," : l->gap, &seen);
    if (off)
      l->gap = "; ";
    else if (seen)
      baseline[n++] = rung_names[rung];
  }
  for (unsigned i = 0; i < n; i++)
    ni_put(&l->out, "%s%s%s", i ? ", " : l->gap, baseline[i], i + 1 == n ? " as elsewhere" : "");
}

/* Operations that began at once, where the others' had to wait for their GPU. */
static void put_launches(struct ladder *l, const struct ni_blame *b, const struct ni_finding *f) {
  size_t n = 0, others = 0;
  float *mine = l->x + b->n_ranks;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].ops)
      *(has_process(f, b->rank[i].process) ? &mine[n++] : &l->x[others++]) = ni_launch_share(&b->rank[i]);
  float own = ni_blame_quantile(mine, n, 0.5), baseline = ni_blame_quantile(l->x, others, 0.5);
  const bool is_usual = own < baseline + LAUNCH_MORE || own < LAUNCH_TIMES * baseline;
  if (!n || !others || is_usual)
    return;
  ni_put(&l->out,
         "%.0f %% of its kernels started within 60 us of their launch (others %.0f %%): its CPU is late",
         100 * own, 100 * baseline);
  l->gap = "; ";
}

int ni_add_evidence(const struct ni_blame *b, struct ni_summary *s) {
  if (!s->by_own_time)
    return 0;
  struct ladder l = {.s = s,
                     .of = calloc(s->beside.n_entities + 1, sizeof *l.of),
                     .x = calloc(2 * (size_t)b->n_ranks + s->beside.n_entities + 1, sizeof *l.x)};
  int e = l.of && l.x ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < s->n_findings; i++) {
    struct ni_finding *f = &s->finding[i];
    l.out = (struct ni_put_text){f->evidence, sizeof f->evidence};
    l.gap = "";
    if (get_rungs(f->kind == NI_FIND_FLAPPING ? f->link : f->kind) >> HOST & 1)
      put_launches(&l, b, f);
    if (b->r->has_counters)
      put_counters(&l, f);
    else if (i == 0)
      ni_put(&l.out, "%sno counters were recorded: nccl-inspector counters run -- CMD", l.gap);
  }
  free(l.of);
  free(l.x);
  return e;
}
