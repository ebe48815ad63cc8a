#include "versus.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/json_write.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/input/netprof/names.h"

static int compare_by_unusual(const void *a, const void *b) {
  const struct ni_versus_row *x = a, *y = b;
  double v = fabs(x->rate[1] - x->rate[0]), w = fabs(y->rate[1] - y->rate[0]);
  if (x->unusual != y->unusual)
    return x->unusual > y->unusual ? -1 : 1;
  if (v != w)
    return v > w ? -1 : 1;
  int d = x->of && y->of ? strverscmp(x->of->name, y->of->name) : 0;
  return d ? d : strcmp(x->name, y->name);
}

static bool has_rate(const struct ni_pair_row *r) {
  return r->change.seconds > 0 && r->change.state <= NI_CHANGE_CHANGED;
}

static int compare_by_counter(const void *a, const void *b) {
  const struct ni_versus_row *x = a, *y = b;
  return x->source != y->source ? (int)x->source - (int)y->source : strcmp(x->name, y->name);
}

/* One row for each counter of a source: what it did at all entities. */
static void sum_counters(struct ni_versus *v) {
  for (size_t i = 0; i < v->n_rows; i++)
    v->sum[i] = v->row[i];
  qsort(v->sum, v->n_rows, sizeof *v->sum, compare_by_counter);
  for (size_t i = 0; i < v->n_rows; i++) {
    struct ni_versus_row *r = &v->sum[i], *to = &v->sum[v->n_sums];
    if (i && compare_by_counter(r, to - 1) == 0) {
      for (int x = 0; x < 2; x++)
        to[-1].rate[x] += r->rate[x];
      continue;
    }
    *to = *r;
    to->of = NULL;
    v->n_sums++;
  }
}

/* Moves the rows that differ enough to the front, in order. Returns how many they are. */
static size_t sort_rows(struct ni_versus_row *row, size_t n, double min_diff) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    struct ni_versus_row *r = &row[i];
    double d = fabs(r->rate[1] - r->rate[0]);
    if (!(d > 0) || d < min_diff)
      continue;
    r->unusual = ni_counter_unusual(r->name, r->rate[1], r->rate[0]);
    row[kept++] = *r;
  }
  qsort(row, kept, sizeof *row, compare_by_unusual);
  return kept;
}

/* All counters that moved in either run, of entities that both have. A gauge's level is no rate. */
static void gather_rows(struct ni_versus *v) {
  const struct ni_pair *good = &v->run[0]->pair, *bad = &v->run[1]->pair;
  const struct ni_pair_entity *same = NULL;
  uint32_t last = UINT32_MAX;
  for (uint32_t i = 0; i < bad->n_rows; i++) {
    const struct ni_pair_row *b = &bad->row[i], *g;
    const struct ni_entity *e = bad->entity[b->entity].of;
    if (last != b->entity) {
      same = ni_pair_entity_of(good, e);
      last = b->entity;
    }
    if (b->what.kind == NI_METRIC_GAUGE || !same ||
        !(g = ni_pair_row(good, (uint32_t)(same - good->entity), b->name)))
      continue;
    if (!has_rate(b) || !has_rate(g)) {
      v->without_number++;
      continue;
    }
    if (!b->change.delta && !g->change.delta)
      continue;
    v->row[v->n_rows++] =
        (struct ni_versus_row){e, e->source, b->name, b->what, {ni_pair_rate(g), ni_pair_rate(b)}, 0};
  }
}

bool ni_versus_make(struct ni_versus *out, const struct ni_counters_view *good,
                    const struct ni_counters_view *bad, double min_diff) {
  size_t most = bad->pair.n_rows + 1;
  *out = (struct ni_versus){
      .run = {good, bad}, .row = malloc(most * sizeof *out->row), .sum = malloc(most * sizeof *out->sum)};
  if (!out->row || !out->sum) {
    ni_versus_free(out);
    return false;
  }
  gather_rows(out);
  sum_counters(out);
  out->n_rows = sort_rows(out->row, out->n_rows, min_diff);
  out->n_sums = sort_rows(out->sum, out->n_sums, min_diff);
  return true;
}

void ni_versus_free(struct ni_versus *v) {
  free(v->row);
  free(v->sum);
  *v = (struct ni_versus){.row = NULL};
}

static bool is_same_finding(const struct ni_counter_finding *a, const struct ni_counter_finding *b) {
  if (strcmp(a->id, b->id) != 0 || strcmp(a->entity, b->entity) != 0)
    return false;
  return a->row && b->row ? strcmp(a->row->name, b->row->name) == 0 : a->row == b->row;
}

const struct ni_counter_finding *ni_versus_new(const struct ni_versus *v, int which, size_t *at) {
  const struct ni_counter_findings *own = &v->run[which]->findings, *other = &v->run[!which]->findings;
  while (*at < own->n) {
    const struct ni_counter_finding *f = &own->finding[(*at)++];
    bool both = false;
    for (size_t i = 0; i < other->n && !both; i++)
      both = is_same_finding(f, &other->finding[i]);
    if (!both)
      return f;
  }
  return NULL;
}

/* How many times as much it is: "x 3.5", "only in BAD". */
static const char *format_factor(const struct ni_versus_row *r, char out[32]) {
  if (r->rate[0] <= 0)
    return "only in BAD";
  if (r->rate[1] <= 0)
    return "only in GOOD";
  snprintf(out, 32, "x %.3g", r->rate[1] / r->rate[0]);
  return out;
}

static void print_rows(const struct ni_versus_row *row, size_t n, unsigned top, const char *head) {
  static const struct ni_column columns[] = {
      {.head = "name", .left = true, .width = 8},
      {.head = "Metric Name", .left = true, .width = 36},
      {.head = "GOOD", .unit = "per second", .width = 11},
      {.head = "BAD", .unit = "per second", .width = 11},
      {.head = "BAD - GOOD", .unit = "per second", .width = 11, .drop = 1},
      {.head = "", .left = true},
      {.head = "unit", .left = true, .drop = 2},
      {.head = "what it counts", .left = true, .drop = 3}};
  struct ni_table t;
  char text[32], meaning[NI_METRIC_MEANING];
  ni_say(stdout, "\n%s: %s differ\n", head, NI_COUNT(n));
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < n && i < top; i++) {
    const struct ni_versus_row *r = &row[i];
    ni_table_cell(&t, "%s", r->of ? r->of->name : ni_source_name(r->source));
    ni_table_cell(&t, "%s", r->name);
    const double more = r->rate[1] - r->rate[0];
    ni_table_cell(&t, "%s", ni_number_text(r->rate[0], text));
    ni_table_cell(&t, "%s", ni_number_text(r->rate[1], text));
    ni_table_cell(&t, "%s%s", more > 0 ? "+" : "", ni_number_text(more, text));
    ni_table_cell(&t, "%s", format_factor(r, text));
    ni_table_cell(&t, "%s", r->what.unit);
    ni_table_cell(&t, "%s", ni_counter_meaning(r->of ? r->of->source : r->source, r->name, meaning));
  }
  ni_table_print(&t, stdout);
  if (n > top)
    ni_say(stdout, "not shown: %s\n", NI_COUNT(n - top));
}

static void print_findings(const struct ni_versus *v) {
  static const char *const words[] = {"gone in BAD", "new in BAD"};
  const struct ni_counter_finding *f;
  size_t said = 0;
  for (int which = 1; which >= 0; which--)
    for (size_t at = 0; (f = ni_versus_new(v, which, &at)); said++)
      ni_say(stdout, "%s, %s: %s%s%s\n", words[which], ni_level_name(f->level), f->text, which ? " " : "",
             which ? f->advice : "");
  if (!said)
    ni_say(stdout, "verdicts: the same in both, %zu %s\n", v->run[1]->findings.n,
           ni_plural(v->run[1]->findings.n, "finding", "findings"));
}

static void print_entities(const struct ni_versus *v) {
  static const struct ni_column columns[] = {{.head = "Interface", .width = 9, .drop = 1},
                                             {.head = "name", .left = true, .width = 8},
                                             {.head = "source", .left = true},
                                             {.head = "GOOD", .width = 8},
                                             {.head = "BAD", .width = 8},
                                             {.head = "BAD - GOOD"}};
  struct ni_table t;
  ni_table_begin(&t, columns, sizeof columns / sizeof *columns);
  for (int which = 1; which >= 0; which--)
    for (size_t i = 0; i < v->run[which]->pair.n_entities; i++) {
      const struct ni_pair_entity *e = &v->run[which]->pair.entity[i],
                                  *o = ni_pair_entity_of(&v->run[!which]->pair, e->of);
      if (!o)
        ni_say(stdout, "only in %s: %s (%s)\n", which ? "BAD" : "GOOD", e->of->name,
               ni_source_name(e->of->source));
      if (!o || !which)
        continue;
      uint32_t interface = ni_netprof_interface(e->of);
      ni_table_cell(&t, interface ? "%u" : "-", interface);
      ni_table_cell(&t, "%s", e->of->name);
      ni_table_cell(&t, "%s", ni_source_name(e->of->source));
      const int64_t more = (int64_t)e->changed - (int64_t)o->changed;
      ni_table_cell(&t, "%s", NI_COUNT(o->changed));
      ni_table_cell(&t, "%s", NI_COUNT(e->changed));
      ni_table_cell(&t, "%s%s", more > 0 ? "+" : "", NI_COUNT(more));
    }
  ni_say(stdout, "\nNon-zero diffs by interface:\n");
  ni_table_print(&t, stdout);
}

void ni_versus_print(const struct ni_versus *v, unsigned top) {
  ni_say(stdout, "GOOD %s, %.6g s; BAD %s, %.6g s\n", v->run[0]->sweep[1].path, v->run[0]->pair.seconds,
         v->run[1]->sweep[1].path, v->run[1]->pair.seconds);
  print_findings(v);
  if (v->without_number)
    ni_say(stdout,
           "left out: %s %s without a rate in one run or both (reset, gone, unreadable, no time between the "
           "sweeps)\n",
           NI_COUNT(v->without_number), ni_plural(v->without_number, "counter", "counters"));
  print_entities(v);
  print_rows(v->sum, v->n_sums, top, "Summed over NICs and GPUs, the most unusual first");
  print_rows(v->row, v->n_rows, top, "One by one, the most unusual first");
}

static void json_rows(struct ni_json *j, const char *key, const struct ni_versus_row *row, size_t n) {
  ni_json_array(j, key);
  for (size_t i = 0; i < n; i++) {
    const struct ni_versus_row *r = &row[i];
    uint32_t interface = r->of ? ni_netprof_interface(r->of) : 0;
    ni_json_object(j, NULL);
    ni_json_text(j, "source", ni_source_name(r->source));
    if (r->of)
      ni_json_text(j, "entity", r->of->name);
    if (interface)
      ni_json_u64(j, "interface", interface);
    ni_json_text(j, "counter", r->name);
    if (r->source == NI_METRIC_CXI && ni_netprof_id(r->name))
      ni_json_u64(j, "metric_id", ni_netprof_id(r->name));
    ni_json_text(j, "unit", r->what.unit);
    ni_json_rounded(j, "good_rate", r->rate[0], 9);
    ni_json_rounded(j, "bad_rate", r->rate[1], 9);
    ni_json_rounded(j, "delta_rate", r->rate[1] - r->rate[0], 9);
    ni_json_rounded(j, "unusual", r->unusual, 6);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

void ni_versus_json(const struct ni_versus *v, FILE *f) {
  static const char *const runs[] = {"good", "bad"}, *const keys[] = {"gone_findings", "new_findings"},
                           *const only[] = {"only_in_good", "only_in_bad"};
  const struct ni_counter_finding *x;
  struct ni_json j;
  ni_json_open(&j, f, "nccl-inspector-counters-compare-1");
  for (int k = 0; k < 2; k++) {
    ni_json_object(&j, runs[k]);
    ni_json_text(&j, "before", v->run[k]->sweep[0].path);
    ni_json_text(&j, "after", v->run[k]->sweep[1].path);
    ni_json_f64(&j, "seconds", v->run[k]->pair.seconds);
    ni_json_u64(&j, "total_non_zero", v->run[k]->changed);
    ni_json_bool(&j, "complete", !v->run[k]->incomplete);
    ni_json_end_object(&j);
  }
  for (int k = 1; k >= 0; k--) {
    NI_JSON_ARRAY (&j, keys[k])
      for (size_t at = 0; (x = ni_versus_new(v, k, &at));)
        ni_counters_json_finding(&j, x);
    NI_JSON_ARRAY (&j, only[k])
      for (size_t i = 0; i < v->run[k]->pair.n_entities; i++)
        if (!ni_pair_entity_of(&v->run[!k]->pair, v->run[k]->pair.entity[i].of))
          ni_json_text(&j, NULL, v->run[k]->pair.entity[i].of->name);
  }
  ni_json_object(&j, "delta_non_zero_per_iface");
  for (size_t i = 0; i < v->run[1]->pair.n_entities; i++) {
    const struct ni_pair_entity *e = &v->run[1]->pair.entity[i],
                                *o = ni_pair_entity_of(&v->run[0]->pair, e->of);
    char key[16];
    snprintf(key, sizeof key, "%u", ni_netprof_interface(e->of));
    if (o && ni_netprof_interface(e->of))
      ni_json_i64(&j, key, (int64_t)e->changed - (int64_t)o->changed);
  }
  ni_json_end_object(&j);
  ni_json_u64(&j, "without_number", v->without_number);
  json_rows(&j, "summed", v->sum, v->n_sums);
  json_rows(&j, "changed_metrics", v->row, v->n_rows);
  ni_json_close(&j);
}
