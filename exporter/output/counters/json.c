/* Two sweeps for programs: JSON, which `counters summarize` and `counters compare` read again (netprof/sweep.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "exporter/base/text/json_fields.h"
#include "exporter/input/netprof/names.h"
#include "sweep_json.h"
#include "view.h"

static const struct ni_json_field of_sweep[] = {NI_JSON(ni_sweep, path), NI_JSON(ni_sweep, input_path),
                                                NI_JSON_AS(ni_sweep, started, "started_at"),
                                                NI_JSON_AS(ni_sweep, finished, "finished_at"), NI_JSON(ni_sweep, duration_s)};

void ni_counters_json_finding(struct ni_json *j, const struct ni_counter_finding *f) {
  ni_json_text(j, "level", ni_level_name(f->level));
  ni_json_text(j, "id", f->id);
  ni_json_text(j, "entity", f->entity);
  ni_json_text(j, "counter", f->row ? f->row->name : NULL);
  ni_json_i64(j, "delta", f->delta);
  ni_json_rounded(j, "rate", f->rate, 9);
  ni_json_rounded(j, "share", f->share, 6);
  ni_json_text(j, "text", f->text);
  ni_json_text(j, "advice", f->advice);
}

static void row(struct ni_json *j, const struct ni_counters_view *v, const struct ni_ranked *k, bool cassini) {
  const struct ni_pair_row *r = &v->pair.row[k->row];
  bool number = r->change.state == NI_CHANGE_CHANGED;
  struct ni_metric_member m;
  ni_json_object(j, NULL);
  ni_json_text(j, "name", r->name);
  if (cassini && ni_netprof_id(r->name)) ni_json_u64(j, "metric_id", ni_netprof_id(r->name));
  ni_json_text(j, "state", ni_change_name(r->change.state));
  if (r->change.wrapped) ni_json_bool(j, "wrapped", true);
  ni_sweep_json_value(j, "before", &r->what, &r->before);
  ni_sweep_json_value(j, "after", &r->what, &r->after);
  if (number || r->change.state == NI_CHANGE_LEVEL) ni_json_i64(j, "diff", r->change.delta);
  if (r->change.seconds > 0) ni_json_f64(j, "seconds", r->change.seconds);
  if (number) {
    double share = ni_pair_share(&v->pair, r);
    ni_json_rounded(j, "rate", ni_pair_rate(r), 9);
    if (!isnan(share)) ni_json_rounded(j, "share", share, 6);
    if (!isnan(k->usual)) ni_json_rounded(j, "others_rate", k->usual, 9);
    ni_json_rounded(j, "unusual", k->unusual, 6);
  }
  if (*r->what.unit) ni_json_text(j, "unit", r->what.unit);
  ni_json_array(j, "groups");
  for (size_t at = 0; cassini && ni_metric_next_group(r->name, &at, &m);) ni_json_text(j, NULL, m.group);
  ni_json_end_array(j);
  ni_json_end_object(j);
}

static void entity(struct ni_json *j, const struct ni_counters_view *v, const struct ni_pair_entity *e) {
  uint32_t interface = ni_netprof_interface(e->of);
  ni_json_object(j, NULL);
  ni_sweep_json_entity(j, e->of);
  if (interface) ni_json_u64(j, "interface", interface);
  ni_json_bool(j, "in_before", e->in_before);
  ni_json_bool(j, "in_after", e->in_after);
  ni_json_f64(j, "seconds", e->seconds);
  ni_json_u64(j, "non_zero", e->changed);
  ni_json_u64(j, "resets", e->resets);
  ni_json_bool(j, "reloaded", e->reloaded);
  ni_json_array(j, "counters");
  for (uint32_t i = e->first; i < e->first + e->n; i++)
    if (v->pair.row[v->ranked[i].row].change.state != NI_CHANGE_NONE) row(j, v, &v->ranked[i], interface != 0);
  ni_json_end_array(j);
  ni_json_object(j, "unchanged");
  for (const struct ni_pair_row *r = v->pair.row + e->first; r < v->pair.row + e->first + e->n; r++)
    if (r->change.state == NI_CHANGE_NONE) ni_sweep_json_value(j, r->name, &r->what, &r->after);
  ni_json_end_object(j);
  ni_json_end_object(j);
}

/* ---- under net_prof's names, of Cassini's NICs alone ---- */

/* net_prof's number of a NIC, also as a key; 0: it is none of Cassini's. */
static uint32_t nic(const struct ni_pair_entity *e, char key[16]) {
  uint32_t interface = ni_netprof_interface(e->of);
  snprintf(key, 16, "%u", interface);
  return interface;
}

static void important(struct ni_json *j, const struct ni_pair *p) {
  const char *name;
  char key[16];
  uint32_t id;
  ni_json_object(j, "important_metrics");
  for (size_t i = 0; (name = ni_metric_important(i, &id)); i++) {
    snprintf(key, sizeof key, "%u", id);
    ni_json_object(j, key);
    ni_json_text(j, "metric_name", name);
    ni_json_object(j, "diffs");
    for (uint32_t k = 0; k < p->n_entities; k++) {
      if (!nic(&p->entity[k], key)) continue;
      const struct ni_pair_row *r = ni_pair_row(p, k, name);
      if (r && r->change.state <= NI_CHANGE_LEVEL) ni_json_i64(j, key, r->change.delta);
      else ni_json_text(j, key, NULL);
    }
    ni_json_end_object(j);
    ni_json_end_object(j);
  }
  ni_json_end_object(j);
}

static void top(struct ni_json *j, const struct ni_counters_view *v, const struct ni_pair_entity *e, uint32_t interface) {
  for (uint32_t i = e->first; i < e->first + e->n && i < e->first + NI_COUNTERS_TOP; i++) {
    const struct ni_pair_row *r = &v->pair.row[v->ranked[i].row];
    if (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_LEVEL) break;
    ni_json_object(j, NULL);
    ni_json_u64(j, "iface", interface);
    ni_json_u64(j, "metric_id", ni_netprof_id(r->name));
    ni_json_text(j, "metric_name", r->name);
    ni_json_i64(j, "diff", r->change.delta);
    ni_json_end_object(j);
  }
}

static void of_net_prof(struct ni_json *j, const struct ni_counters_view *v) {
  const struct ni_pair_entity *end = v->pair.entity + v->pair.n_entities;
  uint32_t interface;
  char key[16];
  ni_json_u64(j, "total_non_zero", v->changed);
  ni_json_object(j, "non_zero_per_iface");
  for (const struct ni_pair_entity *e = v->pair.entity; e < end; e++)
    if (nic(e, key)) ni_json_u64(j, key, e->changed);
  ni_json_end_object(j);
  ni_json_object(j, "top20_per_iface");
  for (const struct ni_pair_entity *e = v->pair.entity; e < end; e++) {
    if (!(interface = nic(e, key))) continue;
    ni_json_array(j, key);
    top(j, v, e, interface);
    ni_json_end_array(j);
  }
  ni_json_end_object(j);
  important(j, &v->pair);
}

void ni_counters_json(const struct ni_counters_view *v, FILE *f) {
  struct ni_json j;
  char line[1024];
  ni_json_open(&j, f, "nccl-inspector-counters-1");
  ni_json_text(&j, "verdict", ni_counters_verdict(v, line, sizeof line));
  ni_json_bool(&j, "complete", !v->incomplete);
  ni_json_f64(&j, "seconds", v->pair.seconds);
  for (int k = 0; k < 2; k++) {
    ni_json_object(&j, k ? "after" : "before");
    ni_json_fields(&j, of_sweep, sizeof of_sweep / sizeof *of_sweep, true, &v->sweep[k], NULL);
    ni_json_end_object(&j);
  }
  ni_json_array(&j, "findings");
  for (size_t i = 0; i < v->findings.n; i++) {
    ni_json_object(&j, NULL);
    ni_counters_json_finding(&j, &v->findings.finding[i]);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  ni_json_array(&j, "unread");
  ni_sweep_json_unread(&j, &v->sweep[0].set, "before");
  ni_sweep_json_unread(&j, &v->sweep[1].set, "after");
  ni_json_end_array(&j);
  of_net_prof(&j, v);
  ni_json_array(&j, "entities");
  for (size_t i = 0; i < v->pair.n_entities; i++) entity(&j, v, &v->pair.entity[i]);
  ni_json_end_array(&j);
  ni_json_close(&j);
}
