#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cmath>
#include <string>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function named as its struct, in C */
extern "C" {
#include "exporter/base/array.h"
#include "exporter/base/map.h"
#include "exporter/base/text/safe_text.h"
#include "rows.h"
}
#pragma GCC diagnostic pop

namespace dom = simdjson::dom;

#define AS(name, what) "label_replace(" what ",\"top\",\"" name "\",\"\",\"\")"
#define P "nccl_inspector_"
#define GAUGE(name, family) AS(name, P family) " or "
#define RATE(family) "sum without(function)(rate(" P family "_total[30s]))"
/* clang-format off */
const char ni_top_query[] =
    GAUGE("in_flight", "in_flight_operations")
    GAUGE("age_s", "oldest_in_flight_seconds")
    GAUGE("stuck", "stuck_operations")
    AS("hangs", "label_replace(" P "job_hang,\"hang\","
                "\"hangs ($1): nccl-inspector-hang/verdict.txt in its log folder says who is missing\","
                "\"verdict\",\"(.*)\")") " or "
    GAUGE("utilization", "gpu_utilization_ratio")
    GAUGE("power_w", "gpu_power_watts")
    GAUGE("sm_hz", "gpu_sm_clock_hertz")
    GAUGE("temperature_c", "gpu_temperature_celsius")
    GAUGE("link_bytes_s", "nic_link_bytes_per_second")
    AS("operations_s", RATE("operations")) " or "
    AS("bus_bytes_s", RATE("bus_bytes") "/" RATE("bus_seconds")) " or "
    AS("late_share", "clamp_max(" RATE("late_seconds") ",1) or 0*" RATE("operations")) " or "
    AS("rx_bytes_s", RATE("nic_receive_bytes")) " or "
    AS("tx_bytes_s", RATE("nic_transmit_bytes")) " or "
    AS("alive", "0*" P "in_flight_operations+on(node,job_id,attempt,user,rank) group_left() " P "process_up")
    " or "
    /* A killed rank: nothing else is told of it, so its row has no communicator. */
    AS("alive", P "process_up==0 unless on(node,job_id,attempt,user,rank) " P "in_flight_operations");
/* clang-format on */

namespace {

/* A text, or a list of texts; a number, or a bool, or a number as text. */
void put(char *item, const ni_top_field &f, dom::element e) {
  std::string_view t;
  std::string all;
  dom::array list;
  double v = NAN;
  bool b;
  if (!e.get(t))
    all = t.substr(0, 4096);
  if (f.text && !e.get(list))
    for (dom::element x : list)
      if (!x.get(t) && all.size() < f.text)
        all.append(all.empty() ? "" : ",").append(t.substr(0, f.text));
  if (f.text) {
    ni_safe_text(all.c_str(), item + f.at, f.text);
    return;
  }
  if (!e.get(b))
    v = b;
  else if (!all.empty())
    v = strtod(all.c_str(), nullptr);
  else if (e.get(v))
    v = NAN;
  if (!(v > -1e18 && v < 1e18))
    v = NAN;
  memcpy(item + f.at, &v, sizeof v);
}

/* An item more, of which only what o says is known. NULL: no room for it. */
char *more(const ni_top *t, const ni_top_source *s, ni_top_items *l, int kind, const char *node,
           dom::object o) {
  const ni_top_table &table = ni_top_tables[kind];
  size_t others = l->n, at = 0;
  double none = NAN;
  for (size_t i = 0; i < t->n_sources; i++)
    if (t->source + i != s)
      others += t->source[i].list[kind].n;
  if (others >= NI_TOP_ROWS_MAX ||
      (l->n == l->cap && !ni_array_more(&l->item, &l->cap, l->n + 1, table.bytes)))
    return nullptr;
  char *item = l->item + l->n++ * table.bytes;
  memset(item, 0, table.bytes);
  for (size_t k = 0; k < table.n; k++)
    if (!table.field[k].text)
      memcpy(item + table.field[k].at, &none, sizeof none);
    else if (strcmp(table.field[k].key, "node") == 0)
      ni_safe_text(node, item + table.field[k].at, table.field[k].text);
  for (auto kv : o)
    for (size_t k = 0; k < table.n; k++, at = (at + 1) % table.n)       /* keys mostly come in an order */
      if ((kv.key == "user" ? "uid" : kv.key) == table.field[at].key) { /* a Prometheus has it as a label */
        put(item, table.field[at], kv.value);
        break;
      }
  return item;
}

const char *read_now(const ni_top *t, ni_top_source *s, ni_top_source *o, dom::element doc) {
  std::string_view schema, name;
  dom::array list;
  dom::object one;
  if (doc["schema"].get(schema) || schema != "nccl-inspector-now-1")
    return "it is no agent: want a document of schema nccl-inspector-now-1";
  std::string node(doc["node"].get(name) || name.empty() ? s->name : name.substr(0, 255));
  ni_safe_text(node.c_str(), o->name, sizeof o->name);
  for (int kind = 0; kind < NI_TOP_KINDS; kind++)
    if (!doc[ni_top_tables[kind].list].get(list))
      for (dom::element e : list)
        if (!e.get(one) && !more(t, s, &o->list[kind], kind, o->name, one))
          break;
  return nullptr;
}

const char *read_prometheus(const ni_top *t, ni_top_source *s, ni_top_source *o, dom::element doc) {
  static const char *const labels[] = {"node", "job_id", "attempt", "user",   "rank",
                                       "gpu",  "comm",   "nic",     "verdict"};
  struct ni_map known[NI_TOP_KINDS] = {};
  dom::array list, value;
  dom::object metric;
  if (doc["data"]["result"].get(list))
    return "it is no Prometheus: want data.result in its answer";
  for (dom::element e : list) {
    std::string_view name, label;
    dom::element v;
    const ni_top_field *into = nullptr;
    int kind = -1;
    if (e["metric"].get(metric) || e["value"].get(value) || value.at(1).get(v) || metric["top"].get(name) ||
        name.empty())
      continue;
    while (!into && ++kind < NI_TOP_KINDS)
      for (size_t k = 0; k < ni_top_tables[kind].n; k++)
        if (name == ni_top_tables[kind].field[k].key)
          into = &ni_top_tables[kind].field[k];
    if (!into || into->text)
      continue;
    uint64_t key = 1;
    for (const char *l : labels)
      key = ni_hash_text(key, metric[l].get(label) ? "" : std::string(label).c_str());
    ni_top_items *l = &o->list[kind];
    int64_t at = ni_map_find_or_add(&known[kind], key, 0, (uint32_t)l->n);
    char *item = at >= 0 && (size_t)at < l->n ? l->item + (size_t)at * ni_top_tables[kind].bytes
        : at < 0                              ? nullptr
                                              : more(t, s, l, kind, "", metric);
    if (item)
      put(item, *into, v);
  }
  for (auto &m : known)
    ni_map_free(&m);
  return nullptr;
}

}  // namespace

extern "C" bool ni_top_read(ni_top *t, ni_top_source *s, const char *json, size_t bytes, bool prometheus,
                            char *why, size_t cap) {
  static dom::parser parser;
  dom::element doc;
  ni_top_source o = *s;
  for (auto &l : o.list)
    l = {};
  simdjson::error_code e = parser.parse(json, bytes).get(doc);
  const char *what =
      e ? simdjson::error_message(e) : (prometheus ? read_prometheus : read_now)(t, s, &o, doc);
  if (what)
    snprintf(why, cap, "%s", what);
  else
    o.known = true, std::swap(*s, o);
  for (auto &l : o.list)
    free(l.item);
  return !what;
}
