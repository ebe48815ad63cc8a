#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/base/text/time_text.h"

/* What a figure is made of, by the names that sources share (metrics.def). Errors are added up; of others the
 * largest counts, since one thing has several names (classes of a pause). */
static const struct {
  const char *unified;
  uint8_t figure;
} made_of[] = {{"rx_bytes", NI_FIG_RX},        {"nvlink_rx", NI_FIG_RX},         {"tx_bytes", NI_FIG_TX},
               {"nvlink_tx", NI_FIG_TX},       {"tx_held", NI_FIG_PAUSED},       {"rx_held", NI_FIG_PAUSED},
               {"retries", NI_FIG_ERRORS},     {"timeouts", NI_FIG_ERRORS},      {"errors", NI_FIG_ERRORS},
               {"clock_sm", NI_FIG_CLOCK},     {"utilization_gpu", NI_FIG_BUSY}, {"power", NI_FIG_POWER},
               {"throttled", NI_FIG_THROTTLED}};

/* What a row says under that figure; NAN: nothing. */
static double find_value(const struct ni_pair_row *r, unsigned figure) {
  if (r->what.kind == NI_METRIC_GAUGE) {
    if (r->after.state != NI_READ_OK)
      return NAN;
    double v = (double)(int64_t)r->after.value * r->what.scale;
    return figure == NI_FIG_BUSY ? v / 100 : figure == NI_FIG_POWER ? v / 1000 : v;
  }
  if (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_NONE)
    return NAN;
  if (figure != NI_FIG_PAUSED && figure != NI_FIG_THROTTLED)
    return ni_pair_rate(r);
  /* else ns, or cycles of Cassini's clock of 1 GHz */
  return ni_pair_rate(r) / (strcmp(r->what.unit, "us") == 0 ? 1e6 : 1e9);
}

/*
 * An earlier device of the same source with as many counters, which are most likely the same; NULL: there is
 * none.
 */
static const struct ni_pair_entity *find_similar(const struct ni_pair *p, size_t entity) {
  const struct ni_pair_entity *e = &p->entity[entity];
  for (size_t i = entity; i-- > 0;)
    if (p->entity[i].of->source == e->of->source && p->entity[i].n == e->n)
      return &p->entity[i];
  return NULL;
}

/*
 * The names that sources share, of the rows of a device. A node has eight of a kind: names are looked up for
 * the first.
 */
static void name_rows(const struct ni_pair *p, size_t entity, const char **unified) {
  const struct ni_pair_entity *e = &p->entity[entity], *like = find_similar(p, entity);
  for (uint32_t i = 0; i < e->n; i++) {
    const char *name = p->row[e->first + i].name;
    const bool known = like && strcmp(p->row[like->first + i].name, name) == 0;
    unified[e->first + i] = known ? unified[like->first + i] : ni_metric_unified(e->of->source, name);
  }
}

static void add_rows(struct ni_figures *f, const struct ni_pair *p, const struct ni_pair_entity *e,
                     const char *const *names) {
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const char *unified = names[i];
    for (size_t k = 0; unified && k < sizeof made_of / sizeof *made_of; k++) {
      if (strcmp(made_of[k].unified, unified) != 0)
        continue;
      double v = find_value(&p->row[i], made_of[k].figure), *at = &f->at[made_of[k].figure];
      if (isnan(v))
        continue;
      if (isnan(*at))
        *at = v;
      else if (made_of[k].figure == NI_FIG_ERRORS)
        *at += v;
      else if (v > *at)
        *at = v;
    }
  }
  for (int k = 0; k < 2; k++)
    if (e->of->link_bytes_s > 0)
      f->at[NI_FIG_RX_SHARE + k] = f->at[NI_FIG_RX + k] / e->of->link_bytes_s;
}

static bool is_in_trouble(const struct ni_figures *f) {
  return f->at[NI_FIG_ERRORS] > 0 || f->at[NI_FIG_PAUSED] > 0.01 || f->at[NI_FIG_THROTTLED] > 0.01;
}

static double measure_use(const struct ni_figures *f) {
  return fmax(fmax(f->at[NI_FIG_RX], 0), fmax(f->at[NI_FIG_TX], 0)) + fmax(f->at[NI_FIG_BUSY], 0);
}

static int compare_by_rank(const void *a, const void *b) {
  const struct ni_figures *x = a, *y = b;
  bool gx = x->of->source == NI_METRIC_GPU, gy = y->of->source == NI_METRIC_GPU;
  if (gx != gy)
    return gx - gy;
  if (is_in_trouble(x) != is_in_trouble(y))
    return is_in_trouble(y) - is_in_trouble(x);
  double dx = measure_use(x), dy = measure_use(y);
  if (dx != dy)
    return dx > dy ? -1 : 1;
  return x->of->source != y->of->source ? x->of->source - y->of->source
                                        : strverscmp(x->of->name, y->of->name);
}

struct ni_figures *ni_figures_make(const struct ni_pair *p, size_t *n) {
  struct ni_figures *list = calloc(p->n_entities + 1, sizeof *list);
  const char **names = calloc(p->n_rows + 1, sizeof *names);
  *n = 0;
  if (!names) {
    free(list);
    return NULL;
  }
  for (size_t i = 0; list && i < p->n_entities; i++) {
    const struct ni_entity *e = p->entity[i].of;
    size_t k = 0;
    if (e->source == NI_METRIC_HOST)
      continue;
    while (k < *n && (strcmp(list[k].of->name, e->name) != 0 || list[k].of->source == NI_METRIC_GPU))
      k++;
    if (k == *n) {
      list[k].of = e;
      for (int m = 0; m < NI_FIGURES; m++)
        list[k].at[m] = NAN;
      (*n)++;
    }
    name_rows(p, i, names);
    add_rows(&list[k], p, &p->entity[i], names);
  }
  free(names);
  if (list)
    qsort(list, *n, sizeof *list, compare_by_rank);
  return list;
}

/* ---- shown ---- */

static const struct {
  const char *key, *word; /* in JSON; in a line */
  enum { BYTES, SHARE, NUMBER } form;
  const char *unit;
} shown[NI_FIGURES] = {[NI_FIG_RX] = {"rx_bytes_s", "rx", BYTES, ""},
                       [NI_FIG_TX] = {"tx_bytes_s", "tx", BYTES, ""},
                       [NI_FIG_RX_SHARE] = {"rx_share", NULL, SHARE, ""},
                       [NI_FIG_TX_SHARE] = {"tx_share", NULL, SHARE, ""},
                       [NI_FIG_PAUSED] = {"paused_share", "paused", SHARE, ""},
                       [NI_FIG_ERRORS] = {"errors_s", "errors/s", NUMBER, ""},
                       [NI_FIG_BUSY] = {"busy_share", "busy", SHARE, ""},
                       [NI_FIG_CLOCK] = {"clock_mhz", NULL, NUMBER, " MHz"},
                       [NI_FIG_POWER] = {"power_w", NULL, NUMBER, " W"},
                       [NI_FIG_THROTTLED] = {"throttled_share", "throttled", SHARE, ""}};

static void add_figure_cell(struct ni_table *t, double v, unsigned figure) {
  char text[32];
  if (isnan(v))
    ni_table_cell(t, "-");
  else if (shown[figure].form == BYTES)
    ni_table_cell(t, "%s/s", ni_bytes_text((uint64_t)v, text));
  else if (shown[figure].form == SHARE)
    ni_table_cell(t, "%s", ni_share_text(v, text));
  else if (figure == NI_FIG_ERRORS)
    ni_table_cell(t, "%s", ni_number_text(v, text));
  else
    ni_table_cell(t, "%.*f%s", v > 0 && v < 10 ? 1 : 0, v, shown[figure].unit);
}

static void print_some(const struct ni_figures *f, size_t n, bool gpus, size_t most, FILE *to) {
  static const struct ni_column nic[] = {{"NIC", .width = 10, .left = true},
                                         {"receives", .width = 10},
                                         {"of link", .width = 7, .drop = 2},
                                         {"sends", .width = 10},
                                         {"of link", .width = 7, .drop = 1},
                                         {"paused", .width = 7},
                                         {"errors/s", .width = 8}};
  static const struct ni_column gpu[] = {{"GPU", .width = 10, .left = true},
                                         {"busy", .width = 7},
                                         {"clock", .width = 9},
                                         {"power", .width = 7},
                                         {"throttled", .width = 9},
                                         {"NVLink in", .width = 10, .drop = 2},
                                         {"out", .width = 10, .drop = 1},
                                         {"errors/s", .width = 8, .drop = 3}};
  static const uint8_t of_nic[] = {NI_FIG_RX,       NI_FIG_RX_SHARE, NI_FIG_TX,
                                   NI_FIG_TX_SHARE, NI_FIG_PAUSED,   NI_FIG_ERRORS};
  static const uint8_t of_gpu[] = {NI_FIG_BUSY, NI_FIG_CLOCK, NI_FIG_POWER, NI_FIG_THROTTLED,
                                   NI_FIG_RX,   NI_FIG_TX,    NI_FIG_ERRORS};
  struct ni_table t;
  size_t rows = 0, figures = gpus ? sizeof of_gpu : sizeof of_nic;
  ni_table_begin(&t, gpus ? gpu : nic, figures + 1);
  for (size_t i = 0; i < n && (!most || rows < most); i++) {
    if ((f[i].of->source == NI_METRIC_GPU) != gpus)
      continue;
    rows++;
    ni_table_cell(&t, "%s", f[i].of->name);
    for (size_t k = 0; k < figures; k++)
      add_figure_cell(&t, f[i].at[gpus ? of_gpu[k] : of_nic[k]], gpus ? of_gpu[k] : of_nic[k]);
  }
  ni_table_print(&t, to);
}

void ni_figures_print(const struct ni_figures *f, size_t n, size_t most, FILE *to) {
  print_some(f, n, false, most, to);
  print_some(f, n, true, most, to);
}

void ni_figures_line(const struct ni_figures *f, size_t n, FILE *to) {
  char text[40];
  ni_say(to, "%s", ni_utc_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000), 'T', 0, text));
  for (size_t i = 0; i < n; i++) {
    const char *before = " ";
    ni_say(to, "  %s", f[i].of->name);
    for (unsigned k = 0; k < NI_FIGURES; k++) {
      double v = f[i].at[k];
      const bool is_empty = isnan(v) || (v == 0 && shown[k].form != BYTES);
      if (!shown[k].word || is_empty)
        continue;
      if (shown[k].form == BYTES)
        ni_say(to, "%s%s %s/s", before, shown[k].word, ni_bytes_text((uint64_t)v, text));
      else if (shown[k].form == SHARE)
        ni_say(to, "%s%s %.1f%%", before, shown[k].word, 100 * v);
      else
        ni_say(to, "%s%s %.3g", before, shown[k].word, v);
      before = ", ";
    }
  }
  ni_say(to, "\n");
}

void ni_figures_json(struct ni_json *j, const struct ni_figures *f, size_t n) {
  NI_JSON_ARRAY (j, "figures")
    for (size_t i = 0; i < n; i++)
      NI_JSON_OBJECT (j, NULL) {
        ni_json_text(j, "name", f[i].of->name);
        ni_json_text(j, "source", ni_source_name(f[i].of->source));
        for (int k = 0; k < NI_FIGURES; k++)
          if (!isnan(f[i].at[k]))
            ni_json_f64(j, shown[k].key, f[i].at[k]);
      }
}
