#include "page.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/text/json_write.h"
#include "exporter/output/report/page_file.h"

/* [group, counter, unit, meaning] of each member of net_prof's groups that the first NIC of Cassini's has. */
static void put_meanings(struct ni_json *j, const struct ni_pair *p) {
  struct ni_metric_member m;
  char meaning[NI_METRIC_MEANING];
  size_t k = 0;
  while (k < p->n_entities && p->entity[k].of->source != NI_METRIC_CXI)
    k++;
  ni_json_array(j, "meanings");
  const char *group;
  for (size_t g = 0; k < p->n_entities && (group = ni_metric_group(g)); g++)
    for (uint32_t i = p->entity[k].first; i < p->entity[k].first + p->entity[k].n; i++)
      for (size_t at = 0; ni_metric_next_group(p->row[i].name, &at, &m);) {
        if (m.group != group)
          continue;
        ni_json_array(j, NULL);
        ni_json_text(j, NULL, group);
        ni_json_text(j, NULL, p->row[i].name);
        ni_json_text(j, NULL, m.unit);
        ni_json_text(j, NULL, ni_metric_meaning(NI_METRIC_CXI, p->row[i].name, meaning, sizeof meaning));
        ni_json_end_array(j);
      }
  ni_json_end_array(j);
}

static void put_numbers(struct ni_json *j, const char *key, const double *v, size_t n) {
  NI_JSON_ARRAY (j, key)
    for (size_t i = 0; i < n; i++)
      ni_json_rounded(j, NULL, v[i], 6);
}

static void put_series(struct ni_json *j, const struct ni_counters_series *s) {
  ni_json_object(j, "series");
  put_numbers(j, "seconds", s->seconds, s->n);
  NI_JSON_ARRAY (j, "lines")
    for (size_t i = 0; i < s->n_lines; i++)
      NI_JSON_OBJECT (j, NULL) {
        ni_json_text(j, "entity", s->line[i].entity);
        ni_json_text(j, "counter", s->line[i].counter);
        ni_json_text(j, "unit", s->line[i].unit);
        put_numbers(j, "rate", s->line[i].rate, s->n);
      }
  ni_json_end_object(j);
}

int ni_counters_page(const struct ni_counters_view *v, const struct ni_counters_series *series,
                     const char *path) {
  char *json = NULL;
  size_t n = 0;
  struct ni_json j;
  if (!ni_report_available())
    return -ENOTSUP;
  FILE *memory = open_memstream(&json, &n);
  if (!memory)
    return -ENOMEM;
  fputs("{\"pair\":", memory);
  ni_counters_json(v, memory);
  fputs(",\"more\":", memory);
  ni_json_open(&j, memory, NULL);
  put_meanings(&j, &v->pair);
  ni_figures_json(&j, v->figures, v->n_figures);
  if (series)
    put_series(&j, series);
  ni_json_end_object(&j);
  putc('}', memory);
  int rc = ferror(memory) ? -ENOMEM : 0;
  if (fclose(memory) != 0)
    rc = -ENOMEM;
  if (!rc)
    rc = ni_report_put(NI_PAGE_COUNTERS, json, n, path);
  free(json);
  return rc;
}
