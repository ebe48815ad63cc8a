/* What series are, as figures, tables and JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "stat.h"

#define KIB_S (1024 / 1e9) /* gsprof's KiB/s in GB/s */
const struct ni_stat_field ni_stat_fields[NI_STAT_FIELDS] = {
    {NI_STAT_GPU, "gpu_util", "GPU utilization", "%", 100, true},
    {NI_STAT_GPU, "gpu_memory", "GPU memory", "%", 100, true},
    {NI_STAT_GPU, "dram_bandwidth", "PCIe", "GB/s", KIB_S, true},
    {NI_STAT_GPU, "dram_bandwidth_rx", "PCIe in", "GB/s", KIB_S, false},
    {NI_STAT_GPU, "dram_bandwidth_tx", "PCIe out", "GB/s", KIB_S, false},
    {NI_STAT_GPU, "utilization", "NVLink", "GB/s", KIB_S, true},
    {NI_STAT_GPU, "gpu_power_w", "GPU power", "W", 0, false},
    {NI_STAT_GPU, "gpu_temperature_c", "GPU temperature", "C", 0, false},
    {NI_STAT_GPU, "gpu_sm_mhz", "SM clock", "MHz", 0, false},
    {NI_STAT_CLIENT, "dram_util", "host memory", "%", 0, true},
    {NI_STAT_CLIENT, "disk_util", "disk", "%", 0, true},
    {NI_STAT_CLIENT, "client_cpu", "CPU", "%", 0, true},
    {NI_STAT_CLIENT, "client_age_s", "age of numbers", "s", 0, true},
    {NI_STAT_NIC, "nic_rx", "NIC receive", "GB/s", 0, true},
    {NI_STAT_NIC, "nic_tx", "NIC send", "GB/s", 0, true},
    {NI_STAT_NIC, "nic_held", "NIC held", "%", 0, false},
    {NI_STAT_JOB, "busbw_gb_s", "bus bandwidth", "GB/s", 0, true},
    {NI_STAT_JOB, "operations_s", "operations", "1/s", 0, false},
    {NI_STAT_JOB, "message_gb_s", "messages", "GB/s", 0, false},
    {NI_STAT_JOB, "in_flight", "in flight", "", 0, true},
    {NI_STAT_JOB, "stuck", "stuck", "", 0, false},
    {NI_STAT_JOB, "oldest_s", "oldest in flight", "s", 0, true}};
static const char *const kind_name[NI_STAT_KINDS] = {"gpu", "client", "nic", "job"};

void ni_stat_clear(struct ni_stat_file *file) {
  for (int kind = 0; kind < NI_STAT_KINDS; kind++) {
    struct ni_stat_list *l = &file->kind[kind];
    for (size_t i = 0; i < l->n; i++) {
      for (size_t k = 0; k < NI_STAT_FIELDS; k++)
        free(l->item[i].series[k].slot);
      free(l->item[i].series);
      free(l->item[i].name);
    }
    free(l->item);
  }
  free(file->path);
}

void ni_stat_free(struct ni_stat_files *all) {
  for (size_t i = 0; i < all->n; i++)
    ni_stat_clear(all->file + i);
  free(all->file);
}

static int order(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Of n entities together. */
static struct ni_stat_figures figures(const struct ni_stat_entity *e, size_t n, size_t field) {
  struct ni_stat_figures f = {NAN, NAN, NAN, NAN, NAN};
  double sum = 0;
  uint64_t count = 0;
  size_t most = 0, samples = 0;
  for (size_t i = 0; i < n; i++) {
    const struct ni_stat_series *s = e[i].series + field;
    if (!s->n)
      continue;
    f.min = fmin(f.min, s->min);
    f.max = fmax(f.max, s->max);
    sum += s->sum;
    count += s->n;
    most += s->slots;
  }
  float *sample = count ? malloc(most * sizeof *sample) : NULL;
  f.mean = count ? sum / (double)count : NAN;
  /* one that was only there between samples has means */
  for (int means = 0; sample && !samples && means < 2; means++)
    for (size_t i = 0; i < n; i++)
      for (size_t k = 0; k < e[i].series[field].slots; k++) {
        const struct ni_stat_slot *at = e[i].series[field].slot + k;
        float v = means ? at->mean : at->sample;
        if (!isnan(v))
          sample[samples++] = v;
      }
  if (samples) {
    qsort(sample, samples, sizeof *sample, order);
    f.p50 = sample[(samples - 1) / 2];
    f.p95 = sample[(samples * 95 + 99) / 100 - 1];
  }
  free(sample);
  return f;
}

struct ni_stat_figures ni_stat_over_all(const struct ni_stat_list *l, size_t field) {
  return figures(l->item, l->n, field);
}

/* ---- one file ---- */

/*
 * What the figures of a row are in: its field's unit, of rates the one that leaves a digit before the point
 * of the largest.
 */
struct row_unit {
  const char *name;
  double size; /* in the field's unit */
};
static struct row_unit unit_for(const struct ni_stat_field *f, double most) {
  static const struct row_unit rates[] = {
      {"B/s", 1e-9}, {"kB/s", 1e-6}, {"MB/s", 1e-3}, {"GB/s", 1}, {"TB/s", 1e3}};
  size_t at = sizeof rates / sizeof *rates - 1;
  if (strcmp(f->unit, "GB/s") != 0 || !(fabs(most) > 0))
    return (struct row_unit){f->unit, 1};
  while (at > 0 && fabs(most) < 0.9995 * rates[at].size)
    at--;
  return rates[at];
}

/* Three digits without an exponent: "0.0123", "19.5", "38,726". */
static void cell(struct ni_table *t, double v) {
  v = (float)v; /* as the percentiles are kept: one rounding */
  const double size = fabs(v);
  if (isnan(v))
    ni_table_cell(t, "-");
  else if (size >= 999.5 && size < 1e15)
    ni_table_cell(t, "%s", NI_COUNT(llround(v)));
  else if (size > 0 && size < 1e-3)
    ni_table_cell(t, "%.6f", v);
  else if (size < 0.9995)
    ni_table_cell(t, "%.3g", v);
  else
    ni_table_cell(t, "%.*f", size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2, v);
}

static void row(struct ni_table *t, const char *name, const struct ni_stat_field *f,
                struct ni_stat_figures v) {
  const struct row_unit unit = unit_for(f, v.max);
  ni_table_cell(t, "%s", f->head);
  ni_table_cell(t, "%s", unit.name);
  const double all[] = {v.mean, v.min, v.p50, v.p95, v.max};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    cell(t, all[k] / unit.size);
  ni_table_cell(t, "%s", name);
}

enum { SHOWN = 4 };

static void print_one(const struct ni_stat_file *s, bool every, FILE *f) {
  static const struct ni_column column[] = {{"", .left = true, .width = 16},
                                            {"", .left = true},
                                            {"mean", .width = 8},
                                            {"min", .width = 8},
                                            {"p50", .width = 8},
                                            {"p95", .width = 8},
                                            {"max", .width = 8},
                                            {"of", .left = true}};
  struct ni_table t;
  bool left_out = false;
  ni_table_begin(&t, column, sizeof column / sizeof *column);
  for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
    const struct ni_stat_list *l = &s->kind[ni_stat_fields[k].kind];
    struct ni_stat_figures v = ni_stat_over_all(l, k);
    double *mean = isnan(v.mean) ? NULL : calloc(l->n, sizeof *mean);
    char all[48];
    if (!mean)
      continue;
    size_t low = 0, high = 0;
    for (size_t i = 0; i < l->n; i++) {
      mean[i] = l->item[i].series[k].n ? l->item[i].series[k].sum / (double)l->item[i].series[k].n : v.mean;
      if (mean[i] < mean[low])
        low = i;
      if (mean[i] > mean[high])
        high = i;
    }
    bool differ = mean[high] - mean[low] > 0.005 * fabs(mean[high]);
    snprintf(all, sizeof all, "all %s", NI_COUNT(l->n));
    if (l->n > 1)
      row(&t, all, ni_stat_fields + k, v);
    for (size_t i = 0; i < l->n; i++) {
      bool shown = every || l->n <= SHOWN || (differ && (i == low || i == high));
      if (shown && l->item[i].series[k].n)
        row(&t, l->item[i].name, ni_stat_fields + k, figures(l->item + i, 1, k));
      left_out |= !shown;
    }
    free(mean);
  }
  ni_table_print(&t, f);
  if (left_out)
    ni_say(f, "of more than %d the lowest and the highest: --all has each\n", SHOWN);
}

static void print_head(const struct ni_stat_file *s, FILE *f) {
  char took[32];
  if (!s->frames)
    return (void)ni_say(f, "%s: empty, the session ended before its first frame\n", s->label);
  ni_say(f, "%s: %s %s", s->label, NI_COUNT(s->frames), ni_plural(s->frames, "frame", "frames"));
  if (s->seconds > 0)
    ni_say(f, " in %s", ni_duration_text(s->seconds * 1e6, took));
  ni_say(f, "%s%s%s\n", *s->first ? " from " : "", s->first, s->gsprof ? " (gsprof's file)" : "");
}

/* ---- several ---- */

static const struct ni_stat_entity *named(const struct ni_stat_list *l, const char *name, size_t likely) {
  if (likely < l->n && strcmp(l->item[likely].name, name) == 0)
    return l->item + likely;
  for (size_t i = 0; i < l->n; i++)
    if (strcmp(l->item[i].name, name) == 0)
      return l->item + i;
  return NULL;
}

/* name NULL: all of the kind. A row: the mean in each file, the difference of the last to the first. */
static void row_beside(struct ni_table *t, const struct ni_stat_files *all, size_t k, const char *name,
                       size_t likely) {
  double first = NAN, last = NAN, most = NAN, *mean = calloc(all->n + 1, sizeof *mean);
  for (size_t i = 0; mean && i < all->n; i++) {
    const struct ni_stat_list *l = &all->file[i].kind[ni_stat_fields[k].kind];
    const struct ni_stat_entity *e = name ? named(l, name, likely) : NULL;
    mean[i] = name ? e ? figures(e, 1, k).mean : NAN : ni_stat_over_all(l, k).mean;
    most = fmax(most, mean[i]);
  }
  const struct row_unit unit = unit_for(ni_stat_fields + k, most);
  ni_table_cell(t, "%s", ni_stat_fields[k].head);
  ni_table_cell(t, "%s", unit.name);
  for (size_t i = 0; i < all->n; i++) {
    last = mean ? mean[i] / unit.size : NAN;
    if (i == 0)
      first = last;
    cell(t, last);
  }
  free(mean);
  if (fabs(last - first) < 1e-9 * fabs(first))
    last = first; /* of adding up */
  cell(t, last - first);
  char times[32];
  if (first > 0 && last > 10 * first)
    ni_table_cell(t, "x %s", ni_number_text(last / first, times));
  else if (first > 0 && !isnan(last))
    ni_table_cell(t, "%+.1f %%", 100 * (last - first) / first);
  else
    ni_table_cell(t, "-");
  ni_table_cell(t, "%s", name ? name : "all");
}

static void print_beside(const struct ni_stat_files *all, bool every, FILE *f) {
  size_t n = all->n + 5;
  struct ni_column *column = calloc(n, sizeof *column);
  struct ni_table t;
  if (!column)
    return (void)ni_say(f, "no memory\n");
  column[0] = (struct ni_column){"means", .left = true, .width = 16};
  column[1] = (struct ni_column){"", .left = true};
  for (size_t i = 0; i < all->n; i++)
    column[2 + i] = (struct ni_column){all->file[i].label, .width = 8};
  column[n - 3] = (struct ni_column){"difference", .width = 8};
  column[n - 2] = (struct ni_column){"", .width = 8};
  column[n - 1] = (struct ni_column){"of", .left = true};
  ni_table_begin(&t, column, n);
  for (size_t k = 0; k < NI_STAT_FIELDS; k++) {
    const struct ni_stat_list *l = &all->file->kind[ni_stat_fields[k].kind];
    bool any = false;
    for (size_t i = 0; i < all->n; i++)
      any |= !isnan(ni_stat_over_all(&all->file[i].kind[ni_stat_fields[k].kind], k).mean);
    if (any)
      row_beside(&t, all, k, NULL, 0);
    for (size_t i = 0; any && i < l->n && (every || i < SHOWN); i++)
      if (l->item[i].series[k].n)
        row_beside(&t, all, k, l->item[i].name, i);
  }
  ni_table_print(&t, f);
  free(column);
}

void ni_stat_print(const struct ni_stat_files *all, bool every, FILE *f) {
  for (size_t i = 0; i < all->n; i++)
    print_head(all->file + i, f);
  ni_say(f, "\n");
  if (all->n == 1)
    print_one(all->file, every, f);
  else
    print_beside(all, every, f);
}

/* ---- JSON ---- */

static void json_figures(struct ni_json *j, const struct ni_stat_field *f, struct ni_stat_figures v) {
  if (isnan(v.mean))
    return;
  ni_json_object(j, f->key);
  ni_json_f64(j, "mean", v.mean);
  ni_json_f64(j, "min", v.min);
  ni_json_f64(j, "p50", v.p50);
  ni_json_f64(j, "p95", v.p95);
  ni_json_f64(j, "max", v.max);
  ni_json_end_object(j);
}

static void json_kind(struct ni_json *j, const struct ni_stat_list *l, int kind) {
  ni_json_object(j, kind_name[kind]);
  for (size_t i = 0; i <= l->n; i++) { /* the last: all together */
    ni_json_object(j, i < l->n ? l->item[i].name : "");
    for (size_t k = 0; k < NI_STAT_FIELDS; k++)
      if ((int)ni_stat_fields[k].kind == kind)
        json_figures(j, ni_stat_fields + k, i < l->n ? figures(l->item + i, 1, k) : ni_stat_over_all(l, k));
    ni_json_end_object(j);
  }
  ni_json_end_object(j);
}

void ni_stat_json(const struct ni_stat_files *all, FILE *f) {
  struct ni_json j;
  ni_json_open(&j, f, "nccl-inspector-session-stat-1");
  ni_json_array(&j, "files");
  for (size_t i = 0; i < all->n; i++) {
    const struct ni_stat_file *s = all->file + i;
    ni_json_object(&j, NULL);
    ni_json_text(&j, "path", s->path);
    ni_json_text(&j, "session_name", s->name);
    ni_json_bool(&j, "gsprof", s->gsprof);
    ni_json_u64(&j, "frames", s->frames);
    ni_json_u64(&j, "damaged", s->damaged);
    ni_json_f64(&j, "seconds", s->seconds);
    for (int kind = 0; kind < NI_STAT_KINDS; kind++)
      json_kind(&j, &s->kind[kind], kind);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  ni_json_close(&j);
}
