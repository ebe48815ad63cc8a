#include "sweep_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/json_fields.h"
#include "exporter/base/text/time_text.h"
#include "exporter/input/netprof/names.h"

/* As Python writes times: its versions before 3.11 read no "Z". */
static void utc(struct ni_json *j, const char *key, int64_t ns) {
  char text[48];
  ni_utc_text((ns + 500) / 1000, 'T', 6, text);
  size_t n = strlen(text);
  if (n && text[n - 1] == 'Z') memcpy(text + n - 1, "+00:00", sizeof "+00:00");
  ni_json_text(j, key, *text ? text : NULL);
}

static void list(struct ni_json *j, const char *key, const char *name, size_t member, const char *none) {
  struct ni_metric_member m;
  size_t n = 0;
  ni_json_array(j, key);
  for (size_t at = 0; ni_metric_next_group(name, &at, &m); n++) ni_json_text(j, NULL, *(const char **)((char *)&m + member));
  if (!n) ni_json_text(j, NULL, none);
  ni_json_end_array(j);
}

void ni_sweep_json_value(struct ni_json *j, const char *key, const struct ni_metric *m, const struct ni_reading *r) {
  if (r->state != NI_READ_OK) ni_json_text(j, key, r->state == NI_READ_MISSING ? NULL : "unreadable");
  else if (m->kind == NI_METRIC_GAUGE) ni_json_i64(j, key, (int64_t)r->value);
  else ni_json_u64(j, key, r->value);
}

static void counter(struct ni_json *j, const struct ni_set *s, const struct ni_counter *c, const struct ni_reading *r, uint32_t id) {
  ni_json_object(j, NULL);
  ni_json_u64(j, "id", id);
  ni_json_u64(j, "interface", ni_netprof_interface(&s->entity[c->entity]));
  ni_json_text(j, "counter_name", c->name);
  ni_sweep_json_value(j, "value", &c->what, r);
  ni_json_seconds(j, "timestamp", r->real_ns);
  utc(j, "timestamp_ISO_8601", r->real_ns);
  list(j, "groups", c->name, offsetof(struct ni_metric_member, group), "UNGROUPED");
  list(j, "descriptions", c->name, offsetof(struct ni_metric_member, meaning), "No description");
  list(j, "units", c->name, offsetof(struct ni_metric_member, unit), "No Units");
  ni_json_end_object(j);
}

static int by_bytes(const void *a, const void *b, void *set) {
  const struct ni_set *s = set;
  const struct ni_counter *x = &s->counter[*(const uint32_t *)a], *y = &s->counter[*(const uint32_t *)b];
  int d = x->entity == y->entity ? 0 : strcmp(s->entity[x->entity].name, s->entity[y->entity].name);
  return d ? d : strcmp(x->name, y->name);
}

/* As net_prof: NIC by NIC and name by name, both in the order of their bytes; an id counts the files of its NIC. What could
 * not be read has an id and no entry. */
static void counters(struct ni_json *j, const struct ni_set *s, const struct ni_reading *reading, const uint32_t *order) {
  uint32_t id = 0, of = UINT32_MAX;
  ni_json_array(j, "counters");
  for (size_t i = 0; i < s->n_counters; i++) {
    const struct ni_counter *c = &s->counter[order[i]];
    if (!ni_netprof_interface(&s->entity[c->entity])) continue;
    id = c->entity == of ? id + 1 : 1;
    of = c->entity;
    if (reading[order[i]].state == NI_READ_OK) counter(j, s, c, &reading[order[i]], id);
  }
  ni_json_end_array(j);
}

void ni_sweep_json_entity(struct ni_json *j, const struct ni_entity *e) {
  static const struct ni_json_field fields[] = {
      NI_JSON(ni_entity, name), NI_JSON(ni_entity, link), NI_JSON_AS(ni_entity, link_bytes_s, "link_bytes_per_s"), NI_JSON(ni_entity, pci),
      NI_JSON(ni_entity, about), NI_JSON(ni_entity, warning), NI_JSON(ni_entity, numa)};
  ni_json_text(j, "source", ni_source_name(e->source));
  ni_json_fields(j, fields, sizeof fields / sizeof *fields, true, e, NULL);
}

void ni_sweep_json_unread(struct ni_json *j, const struct ni_set *s, const char *sweep) {
  for (size_t i = 0; i < s->n_unread; i++) {
    ni_json_object(j, NULL);
    ni_json_text(j, "sweep", sweep);
    ni_json_text(j, "path", s->unread[i].path);
    ni_json_text(j, "why", s->unread[i].why);
    ni_json_end_object(j);
  }
}

/* Of Cassini's NICs only what net_prof's list has not. */
static void entity(struct ni_json *j, const struct ni_set *s, const struct ni_entity *e, const struct ni_reading *reading) {
  bool cassini = ni_netprof_interface(e) != 0;
  const struct ni_reading *known = NULL;
  ni_json_object(j, NULL);
  ni_sweep_json_entity(j, e);
  ni_json_array(j, "counters");
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const struct ni_reading *r = &reading[i];
    if (r->state == NI_READ_OK && r->mono_ns && !known) known = r;
    if ((cassini && r->state == NI_READ_OK) || r->state == NI_READ_MISSING) continue;
    ni_json_object(j, NULL);
    ni_json_text(j, "name", s->counter[i].name);
    ni_sweep_json_value(j, "value", &s->counter[i].what, r);
    ni_json_seconds(j, "timestamp", r->real_ns);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  if (known) ni_json_seconds(j, "monotonic_ahead_s", known->mono_ns - known->real_ns);
  ni_json_end_object(j);
}

int ni_sweep_json(FILE *f, const struct ni_set *s, const struct ni_reading *reading, const char *input_path, int64_t started, int64_t finished) {
  uint32_t *order = ni_order((uint32_t)s->n_counters, by_bytes, (void *)s);
  struct ni_json j;
  if (!order) return -ENOMEM;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  ni_json_object(&j, "meta");
  ni_json_text(&j, "input_path", input_path);
  utc(&j, "started_at", started);
  utc(&j, "finished_at", finished);
  ni_json_f64(&j, "duration_s", (double)(finished - started) / 1e9);
  ni_json_end_object(&j);
  counters(&j, s, reading, order);
  ni_json_object(&j, "nccl_inspector");
  ni_json_array(&j, "entities");
  for (size_t i = 0; i < s->n_entities; i++) entity(&j, s, &s->entity[i], reading);
  ni_json_end_array(&j);
  ni_json_array(&j, "unread");
  ni_sweep_json_unread(&j, s, NULL);
  ni_json_end_array(&j);
  ni_json_end_object(&j);
  ni_json_end_object(&j);
  ni_json_finish(&j);
  free(order);
  return 0;
}
