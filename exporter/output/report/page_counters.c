#include "page_counters.h"

#include <math.h>
#include <string.h>

#include "exporter/collect/throttle.h"
#include "page_json.h"

enum { DEVICES = 512, LINES = 96 };

/* A row of the page's table; behind these columns stand its lines. */
struct device {
  struct ni_beside_entity e;
  struct ni_beside_figures f; /* GB/s instead of bytes a second */
  const char *source, *how, *throttled;
  char ranks[48];
  double late; /* share of the operations compared */
};
static const struct ni_json_field columns[] = {NI_PAGE_AS(device, e.host, "host"),
                                               NI_PAGE_AS(device, e.name, "name"),
                                               NI_PAGE(device, source),
                                               NI_PAGE_AS(device, e.about, "about"),
                                               NI_PAGE(device, ranks),
                                               NI_PAGE(device, how),
                                               NI_PAGE_AS(device, e.with_s, "with_s"),
                                               NI_PAGE_AS(device, f.tx_bytes_s, "tx"),
                                               NI_PAGE_AS(device, f.rx_bytes_s, "rx"),
                                               NI_PAGE_AS(device, f.of_link, "of_link"),
                                               NI_PAGE_AS(device, f.held, "held"),
                                               NI_PAGE_AS(device, f.holds, "holds"),
                                               NI_PAGE_AS(device, f.retries, "retries"),
                                               NI_PAGE_AS(device, f.timeouts, "timeouts"),
                                               NI_PAGE_AS(device, f.clock_mhz, "clock"),
                                               NI_PAGE_AS(device, f.lowest_mhz, "lowest"),
                                               NI_PAGE_AS(device, f.busy, "busy"),
                                               NI_PAGE_AS(device, f.power_w, "power"),
                                               NI_PAGE(device, late),
                                               NI_PAGE(device, throttled),
                                               NI_PAGE_AS(device, f.unsure, "unsure"),
                                               {.key = "lines"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static bool is_shown(const struct ni_beside_entity *e, const struct ni_beside_figures *f) {
  return e->source == NI_METRIC_GPU || f->tx_bytes_s > 0 || f->rx_bytes_s > 0;
}

/* Rates by second: bytes as GB/s, cycles as a share of time; levels as they are. */
static void write_line(struct ni_json *j, const char *figure, const struct ni_beside_row *r, unsigned n) {
  double unit = strcmp(r->what.unit, "bytes") == 0 || strcmp(r->what.unit, "cycles") == 0 ? 1e9
      : strcmp(r->what.unit, "us") == 0                                                   ? 1e6
                                                                                          : 1;
  NI_JSON_ARRAY (j, figure)
    for (unsigned i = 0; i < n; i++)
      ni_json_rounded(j, NULL, r->bin[i].seconds > 0 ? r->bin[i].sum / r->bin[i].seconds / unit : NAN, 4);
}

static void write_device(struct ni_json *j, const struct ni_summary *s, const struct ni_beside_entity *e,
                         const struct ni_beside_figures *f, unsigned *lines) {
  const struct ni_process *p = e->n_processes == 1 ? &s->process[e->process[0]] : NULL;
  char why[NI_THROTTLE_TEXT];
  struct device d = {.e = *e,
                     .f = *f,
                     .source = ni_source_name(e->source),
                     .how = ni_beside_hows[e->how],
                     .throttled = e->source == NI_METRIC_GPU ? ni_throttle_text(f->reasons, why) : NULL,
                     .late = p && p->compared ? (double)p->late / (double)p->compared : NAN};
  ni_beside_ranks(s, e, d.ranks);
  d.f.tx_bytes_s /= 1e9;
  d.f.rx_bytes_s /= 1e9;
  ni_json_array(j, NULL);
  ni_json_fields(j, columns, COLUMNS - 1, false, &d, NULL);
  ni_json_object(j, NULL);
  for (size_t k = 0; ni_beside_line(k) && *lines < LINES; k++) {
    const struct ni_beside_row *r = ni_beside_unified(&s->beside, e, ni_beside_line(k));
    if (r && r->bin) {
      ++*lines;
      write_line(j, ni_beside_line(k), r, s->beside.n_bins);
    }
  }
  ni_json_end_object(j);
  ni_json_end_array(j);
}

void ni_page_counters_write(struct ni_json *j, const struct ni_summary *s) {
  size_t all = 0;
  unsigned lines = 0;
  ni_page_table_begin(j, "devices", columns, COLUMNS);
  for (size_t i = 0; i < s->beside.n_entities; i++) {
    const struct ni_beside_entity *e = &s->beside.entity[i];
    struct ni_beside_figures f = ni_beside_figures(&s->beside, e);
    if (is_shown(e, &f) && all++ < DEVICES)
      write_device(j, s, e, &f, &lines);
  }
  ni_page_table_end(j, all, ni_page_at_most(all, DEVICES));
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
