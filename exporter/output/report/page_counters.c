#include "page_counters.h"

#include <math.h>
#include <string.h>

#include "exporter/collect/throttle.h"
#include "page_json.h"

enum { DEVICES = 512, LINES = 96 };

static const struct ni_json_field columns[] = {
    {.key = "host"}, {.key = "name"}, {.key = "source"}, {.key = "about"}, {.key = "ranks"}, {.key = "how"}, {.key = "with_s"},
    {.key = "tx"}, {.key = "rx"}, {.key = "of_link"}, {.key = "held"}, {.key = "holds"}, {.key = "retries"}, {.key = "timeouts"},
    {.key = "clock"}, {.key = "lowest"}, {.key = "busy"}, {.key = "power"}, {.key = "late"}, {.key = "throttled"}, {.key = "unsure"}};

static bool shown(const struct ni_beside_entity *e, const struct ni_beside_figures *f) {
  return e->source == NI_METRIC_GPU || f->tx_bytes_s > 0 || f->rx_bytes_s > 0;
}

static void write_device(struct ni_json *j, const struct ni_summary *s, const struct ni_beside_entity *e, const struct ni_beside_figures *f) {
  const struct ni_process *p = e->n_processes == 1 ? &s->process[e->process[0]] : NULL;
  char ranks[48], why[NI_THROTTLE_TEXT];
  bool gpu = e->source == NI_METRIC_GPU;
  ni_json_array(j, NULL);
  ni_page_name(j, NULL, e->host);
  ni_page_name(j, NULL, e->name);
  ni_json_text(j, NULL, ni_source_name(e->source));
  ni_page_name(j, NULL, e->about);
  ni_json_text(j, NULL, ni_beside_ranks(s, e, ranks));
  ni_json_text(j, NULL, ni_beside_hows[e->how]);
  const double v[] = {e->with_s, f->tx_bytes_s / 1e9, f->rx_bytes_s / 1e9, f->of_link, f->held, f->holds, f->retries, f->timeouts, f->clock_mhz,
                      f->lowest_mhz, f->busy, f->power_w, p && p->compared ? (double)p->late / (double)p->compared : NAN};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) ni_page_num(j, v[i]);
  ni_json_text(j, NULL, gpu ? ni_throttle_text(f->reasons, why) : NULL);
  ni_json_bool(j, NULL, f->unsure);
  ni_json_end_array(j);
}

/* Rates by second: bytes as GB/s, cycles as a share of time; levels as they are. */
static void write_line(struct ni_json *j, const struct ni_summary *s, size_t device, size_t line, const struct ni_beside_row *r) {
  double unit = strcmp(r->what.unit, "bytes") == 0 || strcmp(r->what.unit, "cycles") == 0 ? 1e9 : strcmp(r->what.unit, "us") == 0 ? 1e6 : 1;
  ni_json_array(j, NULL);
  ni_json_u64(j, NULL, device);
  ni_json_text(j, NULL, ni_beside_line(line));
  ni_json_array(j, NULL);
  for (unsigned i = 0; i < s->beside.n_bins; i++)
    ni_json_rounded(j, NULL, r->bin[i].seconds > 0 ? r->bin[i].sum / r->bin[i].seconds / unit : NAN, 4);
  ni_json_end_array(j);
  ni_json_end_array(j);
}

void ni_page_counters_write(struct ni_json *j, const struct ni_summary *s) {
  static const struct ni_json_field lines[] = {{.key = "device"}, {.key = "figure"}, {.key = "values"}};
  const struct ni_beside *b = &s->beside;
  size_t all = 0, n = 0;
  ni_page_table_begin(j, "devices", columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < b->n_entities; i++) {
    struct ni_beside_figures f = ni_beside_figures(b, &b->entity[i]);
    if (shown(&b->entity[i], &f) && all++ < DEVICES) write_device(j, s, &b->entity[i], &f);
  }
  ni_page_table_end(j, all, ni_page_at_most(all, DEVICES));
  ni_page_table_begin(j, "device_lines", lines, sizeof lines / sizeof *lines);
  all = 0;
  for (size_t i = 0, device = 0; i < b->n_entities && device < DEVICES; i++) {
    struct ni_beside_figures f = ni_beside_figures(b, &b->entity[i]);
    if (!shown(&b->entity[i], &f)) continue;
    for (size_t k = 0; ni_beside_line(k); k++) {
      const struct ni_beside_row *r = ni_beside_unified(b, &b->entity[i], ni_beside_line(k));
      if (!r || !r->bin) continue;
      all++;
      if (n < LINES) n++, write_line(j, s, device, k, r);
    }
    device++;
  }
  ni_page_table_end(j, all, n);
  ni_json_array(j, "sent");
  for (size_t i = 0; i < s->n_sent && i < DEVICES; i++) {
    ni_json_array(j, NULL);
    ni_page_name(j, NULL, s->host[s->sent[i].host].name);
    ni_json_u64(j, NULL, s->sent[i].nccl_bytes);
    ni_page_num(j, s->sent[i].nic_bytes);
    ni_page_num(j, s->sent[i].nic_least);
    ni_page_num(j, s->sent[i].nic_most);
    ni_json_end_array(j);
  }
  ni_json_end_array(j);
}
