#include "sweep_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/time_text.h"
#include "exporter/input/netprof/names.h"
#include "view.h"

/* Puts a time as Python writes it: its versions before 3.11 read no "Z". */
static void put_utc(struct ni_json *j, const char *key, int64_t ns) {
  char text[48];
  ni_utc_text((ns + 500) / 1000, 'T', 6, text);
  size_t n = strlen(text);
  if (n && text[n - 1] == 'Z')
    memcpy(text + n - 1, "+00:00", sizeof "+00:00");
  ni_json_text(j, key, *text ? text : NULL);
}

/*
 * A word for each of net_prof's groups that the counter is in: the group, its unit, or always the same text.
 */
enum of_group { GROUP_NAME, GROUP_UNIT, SAME };

static void put_names(struct ni_json *j, const char *key, const char *name, enum of_group what,
                      const char *same, const char *none) {
  struct ni_metric_member m;
  size_t n = 0;
  ni_json_array(j, key);
  for (size_t at = 0; ni_metric_next_group(name, &at, &m); n++)
    ni_json_text(j, NULL, what == GROUP_NAME ? m.group : what == GROUP_UNIT ? m.unit : same);
  if (!n)
    ni_json_text(j, NULL, none);
  ni_json_end_array(j);
}

static void put_value(struct ni_json *j, const char *key, const struct ni_metric *m,
                      const struct ni_reading *r) {
  if (r->state != NI_READ_OK)
    ni_json_text(j, key, r->state == NI_READ_MISSING ? NULL : "unreadable");
  else if (m->kind == NI_METRIC_GAUGE)
    ni_json_i64(j, key, (int64_t)r->value);
  else
    ni_json_u64(j, key, r->value);
}

static void put_counter(struct ni_json *j, const struct ni_set *s, const struct ni_counter *c,
                        const struct ni_reading *r, uint32_t id) {
  char meaning[NI_METRIC_MEANING];
  ni_json_object(j, NULL);
  ni_json_u64(j, "id", id);
  ni_json_u64(j, "interface", ni_netprof_interface(&s->entity[c->entity]));
  ni_json_text(j, "counter_name", c->name);
  put_value(j, "value", &c->what, r);
  ni_json_seconds(j, "timestamp", r->real_ns);
  put_utc(j, "timestamp_ISO_8601", r->real_ns);
  put_names(j, "groups", c->name, GROUP_NAME, NULL, "UNGROUPED");
  put_names(j, "descriptions", c->name, SAME,
            ni_metric_meaning(NI_METRIC_CXI, c->name, meaning, sizeof meaning), "No description");
  put_names(j, "units", c->name, GROUP_UNIT, NULL, "No Units");
  ni_json_end_object(j);
}

static int compare_by_bytes(const void *a, const void *b, void *set) {
  const struct ni_set *s = set;
  const struct ni_counter *x = &s->counter[*(const uint32_t *)a], *y = &s->counter[*(const uint32_t *)b];
  int d = x->entity == y->entity ? 0 : strcmp(s->entity[x->entity].name, s->entity[y->entity].name);
  return d ? d : strcmp(x->name, y->name);
}

/* As net_prof: NIC by NIC and name by name, both in the order of their bytes; an id counts the files of its
 * NIC. What could not be read has an id and no entry. */
static void put_counters(struct ni_json *j, const struct ni_set *s, const struct ni_reading *reading,
                         const uint32_t *order) {
  uint32_t id = 0, of = UINT32_MAX;
  ni_json_array(j, "counters");
  for (size_t i = 0; i < s->n_counters; i++) {
    const struct ni_counter *c = &s->counter[order[i]];
    if (!ni_netprof_interface(&s->entity[c->entity]))
      continue;
    id = c->entity == of ? id + 1 : 1;
    of = c->entity;
    if (reading[order[i]].state == NI_READ_OK)
      put_counter(j, s, c, &reading[order[i]], id);
  }
  ni_json_end_array(j);
}

static void put_entity(struct ni_json *j, const struct ni_entity *e) {
  static const struct ni_json_field fields[] = {NI_JSON(ni_entity, name),
                                                NI_JSON(ni_entity, link),
                                                NI_JSON_AS(ni_entity, link_bytes_s, "link_bytes_per_s"),
                                                NI_JSON(ni_entity, pci),
                                                NI_JSON(ni_entity, about),
                                                NI_JSON(ni_entity, warning),
                                                NI_JSON(ni_entity, numa)};
  ni_json_text(j, "source", ni_source_name(e->source));
  NI_JSON_ALL(j, fields, e, NULL);
  ni_json_text(j, "kind", e->kind);
  ni_json_text(j, "link_state", ni_link_state_name(e->state));
}

static void put_unread(struct ni_json *j, const struct ni_set *s, const char *sweep) {
  for (size_t i = 0; i < s->n_unread; i++)
    NI_JSON_OBJECT (j, NULL) {
      ni_json_text(j, "sweep", sweep);
      ni_json_text(j, "path", s->unread[i].path);
      ni_json_text(j, "why", s->unread[i].why);
      ni_json_bool(j, "left_out", s->unread[i].skipped);
    }
}

/* Puts an entity. Of Cassini's NICs only what net_prof's list has not. */
static void put_swept_entity(struct ni_json *j, const struct ni_set *s, const struct ni_entity *e,
                             const struct ni_reading *reading) {
  bool cassini = ni_netprof_interface(e) != 0;
  const struct ni_reading *known = NULL;
  ni_json_object(j, NULL);
  put_entity(j, e);
  ni_json_array(j, "counters");
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const struct ni_reading *r = &reading[i];
    if (r->state == NI_READ_OK && r->mono_ns && !known)
      known = r;
    if ((cassini && r->state == NI_READ_OK) || r->state == NI_READ_MISSING)
      continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "name", s->counter[i].name);
    put_value(j, "value", &s->counter[i].what, r);
    ni_json_seconds(j, "timestamp", r->real_ns);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  if (known)
    ni_json_seconds(j, "monotonic_ahead_s", known->mono_ns - known->real_ns);
  ni_json_end_object(j);
}

int ni_sweep_json(FILE *f, const struct ni_set *s, const struct ni_reading *reading, const char *input_path,
                  int64_t started, int64_t finished) {
  uint32_t *order = ni_order((uint32_t)s->n_counters, compare_by_bytes, (void *)s);
  struct ni_json j;
  if (!order)
    return -ENOMEM;
  ni_json_open(&j, f, NULL);
  ni_json_object(&j, "meta");
  ni_json_text(&j, "input_path", input_path);
  put_utc(&j, "started_at", started);
  put_utc(&j, "finished_at", finished);
  ni_json_f64(&j, "duration_s", (double)(finished - started) / 1e9);
  ni_json_end_object(&j);
  put_counters(&j, s, reading, order);
  ni_json_object(&j, "nccl_inspector");
  NI_JSON_ARRAY (&j, "entities")
    for (size_t i = 0; i < s->n_entities; i++)
      put_swept_entity(&j, s, &s->entity[i], reading);
  NI_JSON_ARRAY (&j, "unread")
    put_unread(&j, s, NULL);
  ni_json_end_object(&j);
  ni_json_close(&j);
  free(order);
  return 0;
}

static const struct ni_json_field of_sweep[] = {
    NI_JSON(ni_sweep, path), NI_JSON(ni_sweep, input_path), NI_JSON_AS(ni_sweep, started, "started_at"),
    NI_JSON_AS(ni_sweep, finished, "finished_at"), NI_JSON(ni_sweep, duration_s)};

/* clang-format off */
static NI_JSON_FORM(put_level, uint8_t, ni_json_text(j, key, ni_level_name(*v)))
static NI_JSON_FORM(put_proof, const struct ni_pair_row *, ni_json_text(j, key, *v ? (*v)->name : NULL))
static NI_JSON_FORM(put_rate, double, ni_json_rounded(j, key, *v, 9))
    /* clang-format on */
    static const struct ni_json_field of_finding[] = {
        NI_JSON_FROM(put_level, ni_counter_finding, level, "level"),
        NI_JSON(ni_counter_finding, id),
        NI_JSON(ni_counter_finding, entity),
        NI_JSON_FROM(put_proof, ni_counter_finding, row, "counter"),
        NI_JSON(ni_counter_finding, delta),
        NI_JSON_FROM(put_rate, ni_counter_finding, rate, "rate"),
        NI_JSON_FROM(ni_json_member_rounded, ni_counter_finding, share, "share"),
        NI_JSON(ni_counter_finding, text),
        NI_JSON(ni_counter_finding, advice)};

void ni_counters_json_finding(struct ni_json *j, const struct ni_counter_finding *f) {
  NI_JSON_OBJECT (j, NULL)
    NI_JSON_ALL(j, of_finding, f, NULL);
}

static void put_row(struct ni_json *j, const struct ni_counters_view *v, const struct ni_ranked *k,
                    bool cassini) {
  const struct ni_pair_row *r = &v->pair.row[k->row];
  bool number = r->change.state == NI_CHANGE_CHANGED;
  struct ni_metric_member m;
  char meaning[NI_METRIC_MEANING];
  ni_json_object(j, NULL);
  ni_json_text(j, "name", r->name);
  if (cassini && ni_netprof_id(r->name))
    ni_json_u64(j, "metric_id", ni_netprof_id(r->name));
  ni_json_text(j, "state", ni_change_name(r->change.state));
  if (r->change.wrapped)
    ni_json_bool(j, "wrapped", true);
  put_value(j, "before", &r->what, &r->before);
  put_value(j, "after", &r->what, &r->after);
  if (number || r->change.state == NI_CHANGE_LEVEL)
    ni_json_i64(j, "diff", r->change.delta);
  if (r->change.seconds > 0)
    ni_json_f64(j, "seconds", r->change.seconds);
  if (number) {
    double share = ni_pair_share(&v->pair, r);
    ni_json_rounded(j, "rate", ni_pair_rate(r), 9);
    if (!isnan(share))
      ni_json_rounded(j, "share", share, 6);
    if (!isnan(k->usual))
      ni_json_rounded(j, "others_rate", k->usual, 9);
    ni_json_rounded(j, "unusual", k->unusual, 6);
  }
  if (*r->what.unit)
    ni_json_text(j, "unit", r->what.unit);
  ni_json_text(j, "meaning",
               ni_metric_meaning((enum ni_metric_source)v->pair.entity[r->entity].of->source, r->name,
                                 meaning, sizeof meaning));
  NI_JSON_ARRAY (j, "groups")
    for (size_t at = 0; cassini && ni_metric_next_group(r->name, &at, &m);)
      ni_json_text(j, NULL, m.group);
  ni_json_end_object(j);
}

static void put_pair_entity(struct ni_json *j, const struct ni_counters_view *v,
                            const struct ni_pair_entity *e) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_pair_entity, in_before), NI_JSON(ni_pair_entity, in_after),
      NI_JSON(ni_pair_entity, seconds),   NI_JSON_AS(ni_pair_entity, changed, "non_zero"),
      NI_JSON(ni_pair_entity, resets),    NI_JSON(ni_pair_entity, reloaded)};
  uint32_t interface = ni_netprof_interface(e->of);
  ni_json_object(j, NULL);
  put_entity(j, e->of);
  if (interface)
    ni_json_u64(j, "interface", interface);
  NI_JSON_ALL(j, fields, e, NULL);
  NI_JSON_ARRAY (j, "counters")
    for (uint32_t i = e->first; i < e->first + e->n; i++)
      if (v->pair.row[v->ranked[i].row].change.state != NI_CHANGE_NONE)
        put_row(j, v, &v->ranked[i], interface != 0);
  NI_JSON_OBJECT (j, "unchanged")
    NI_EACH(const struct ni_pair_row, r, v->pair.row + e->first, e->n)
  if (r->change.state == NI_CHANGE_NONE)
    put_value(j, r->name, &r->what, &r->after);
  ni_json_end_object(j);
}

/* ---- under net_prof's names, of Cassini's NICs alone ---- */

/* net_prof's number of a NIC, also as a key; 0: it is none of Cassini's. */
static uint32_t number_nic(const struct ni_pair_entity *e, char key[16]) {
  uint32_t interface = ni_netprof_interface(e->of);
  snprintf(key, 16, "%u", interface);
  return interface;
}

static void put_important(struct ni_json *j, const struct ni_pair *p) {
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
      if (!number_nic(&p->entity[k], key))
        continue;
      const struct ni_pair_row *r = ni_pair_row(p, k, name);
      if (r && r->change.state <= NI_CHANGE_LEVEL)
        ni_json_i64(j, key, r->change.delta);
      else
        ni_json_text(j, key, NULL);
    }
    ni_json_end_object(j);
    ni_json_end_object(j);
  }
  ni_json_end_object(j);
}

static void put_top(struct ni_json *j, const struct ni_counters_view *v, const struct ni_pair_entity *e,
                    uint32_t interface) {
  for (uint32_t i = e->first; i < e->first + e->n && i < e->first + NI_COUNTERS_TOP; i++) {
    const struct ni_pair_row *r = &v->pair.row[v->ranked[i].row];
    if (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_LEVEL)
      break;
    ni_json_object(j, NULL);
    ni_json_u64(j, "iface", interface);
    ni_json_u64(j, "metric_id", ni_netprof_id(r->name));
    ni_json_text(j, "metric_name", r->name);
    ni_json_i64(j, "diff", r->change.delta);
    ni_json_end_object(j);
  }
}

static void put_net_prof(struct ni_json *j, const struct ni_counters_view *v) {
  const struct ni_pair_entity *end = v->pair.entity + v->pair.n_entities;
  uint32_t interface;
  char key[16];
  ni_json_u64(j, "total_non_zero", v->changed);
  NI_JSON_OBJECT (j, "non_zero_per_iface")
    for (const struct ni_pair_entity *e = v->pair.entity; e < end; e++)
      if (number_nic(e, key))
        ni_json_u64(j, key, e->changed);
  ni_json_object(j, "top20_per_iface");
  for (const struct ni_pair_entity *e = v->pair.entity; e < end; e++) {
    if (!(interface = number_nic(e, key)))
      continue;
    NI_JSON_ARRAY (j, key)
      put_top(j, v, e, interface);
  }
  ni_json_end_object(j);
  put_important(j, &v->pair);
}

void ni_counters_json(const struct ni_counters_view *v, FILE *f) {
  struct ni_json j;
  char line[1024];
  ni_json_open(&j, f, "nccl-inspector-counters-1");
  ni_json_text(&j, "verdict", ni_counters_verdict(v, line, sizeof line));
  ni_json_bool(&j, "complete", !v->incomplete);
  ni_json_f64(&j, "seconds", v->pair.seconds);
  for (int k = 0; k < 2; k++)
    NI_JSON_OBJECT (&j, k ? "after" : "before")
      NI_JSON_ALL(&j, of_sweep, &v->sweep[k], NULL);
  NI_JSON_OBJECTS(&j, "findings", of_finding, v->findings.finding, v->findings.n, NULL);
  ni_json_array(&j, "unread");
  put_unread(&j, &v->sweep[0].set, "before");
  put_unread(&j, &v->sweep[1].set, "after");
  ni_json_end_array(&j);
  put_net_prof(&j, v);
  NI_JSON_ARRAY (&j, "entities")
    for (size_t i = 0; i < v->pair.n_entities; i++)
      put_pair_entity(&j, v, &v->pair.entity[i]);
  ni_json_close(&j);
}
