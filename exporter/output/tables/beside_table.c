#include "beside_table.h"

#include <math.h>

#include "exporter/base/text/csv_write.h"
#include "exporter/base/text/json_fields.h"

static bool is_gauge(const struct ni_beside_row *r) { return r->what.kind == NI_METRIC_GAUGE; }

void ni_beside_csv(FILE *f, const struct ni_summary *s) {
  char ranks[48];
  fputs(
      "hostname,source,device,ranks,whose,seconds_with,seconds_without,counter,unit,kind,samples,unknown,"
      "with,with_at_least,"
      "with_at_most,without,level_with,level_without,lowest_with,highest_with\n",
      f);
  for (size_t i = 0; i < s->beside.n_rows; i++) {
    const struct ni_beside_row *r = &s->beside.row[i];
    const struct ni_beside_entity *e = &s->beside.entity[r->entity];
    ni_csv_text(f, e->host);
    fprintf(f, ",%s,", ni_source_name(e->source));
    ni_csv_text(f, e->name);
    fprintf(f, ",%s,%s", ni_beside_ranks(s, e, ranks), ni_beside_hows[e->how]);
    ni_csv_doubles(f, (const double[]){e->with_s, e->without_s}, 2);
    putc(',', f);
    ni_csv_text(f, r->name);
    putc(',', f);
    ni_csv_text(f, r->what.unit);
    fprintf(f, ",%s,%llu,%llu", is_gauge(r) ? "gauge" : "counter", (unsigned long long)r->samples,
            (unsigned long long)r->unknown);
    double v[] = {r->with,       r->least,         r->most,   r->without,
                  r->level_with, r->level_without, r->lowest, r->highest};
    for (int k = 0; k < 4; k++)
      v[is_gauge(r) ? k : 4 + k] = NAN;
    ni_csv_doubles(f, v, 8);
    putc('\n', f);
  }
}

static void put_row(struct ni_json *j, const struct ni_beside_row *r) {
  static const struct ni_json_field counter[] = {
      NI_JSON(ni_beside_row, with), NI_JSON_AS(ni_beside_row, least, "with_at_least"),
      NI_JSON_AS(ni_beside_row, most, "with_at_most"), NI_JSON(ni_beside_row, without)};
  static const struct ni_json_field level[] = {
      NI_JSON(ni_beside_row, level_with), NI_JSON(ni_beside_row, level_without),
      NI_JSON_AS(ni_beside_row, lowest, "lowest_with"), NI_JSON_AS(ni_beside_row, highest, "highest_with")};
  ni_json_object(j, NULL);
  ni_json_text(j, "counter", r->name);
  ni_json_text(j, "unit", r->what.unit);
  ni_json_text(j, "kind", is_gauge(r) ? "gauge" : "counter");
  ni_json_u64(j, "samples", r->samples);
  ni_json_u64(j, "unknown", r->unknown);
  ni_json_fields(j, is_gauge(r) ? level : counter, 4, true, r, NULL);
  ni_json_end_object(j);
}

void ni_beside_json(struct ni_json *j, const struct ni_summary *s) {
  if (!s->beside.n_entities)
    return;
  ni_json_u64(j, "counter_samples", s->counter_samples);
  ni_json_array(j, "counters");
  for (size_t i = 0; i < s->beside.n_entities; i++) {
    const struct ni_beside_entity *e = &s->beside.entity[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "hostname", e->host);
    ni_json_text(j, "source", ni_source_name(e->source));
    ni_json_text(j, "device", e->name);
    ni_json_text(j, "about", e->about);
    ni_json_text(j, "whose", ni_beside_hows[e->how]);
    NI_JSON_ARRAY (j, "ranks")
      for (uint32_t k = 0; k < e->n_processes; k++)
        ni_json_i64(j, NULL, s->process[e->process[k]].rank);
    ni_json_f64(j, "link_bytes_per_s", e->link_bytes_s);
    ni_json_f64(j, "seconds_with", e->with_s);
    ni_json_f64(j, "seconds_without", e->without_s);
    NI_JSON_ARRAY (j, "counters")
      for (uint32_t k = e->first; k < e->first + e->n; k++)
        put_row(j, &s->beside.row[k]);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_array(j, "sent");
  for (size_t i = 0; i < s->n_sent; i++) {
    const struct ni_sent *x = &s->sent[i];
    static const struct ni_json_field fields[] = {NI_JSON(ni_sent, nccl_bytes), NI_JSON(ni_sent, nic_bytes),
                                                  NI_JSON_AS(ni_sent, nic_least, "nic_bytes_at_least"),
                                                  NI_JSON_AS(ni_sent, nic_most, "nic_bytes_at_most")};
    ni_json_object(j, NULL);
    ni_json_text(j, "hostname", s->host[x->host].name);
    ni_json_fields(j, fields, 4, true, x, NULL);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}
