/*
 * The part of the terminal's summary on counters: NICs, then GPUs, with the ranks whose they are, while
 * collectives ran.
 *
 * '~' in front: more than a tenth may have come while no collective ran (exporter/model/counters/beside.h).
 */
#include "summary_counters.h"

#include <inttypes.h>
#include <math.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/table.h"
#include "exporter/collect/throttle.h"

enum { ROWS_SHOWN = 16 };

static const struct ni_column nic_columns[] = {
    {"host", "", .left = true},        {"NIC", "", .left = true},       {"of", "", .left = true, .drop = 3},
    {"sent", "GB/s", .drop = 0},       {"received", "GB/s", .drop = 0}, {"of link", "", .drop = 1},
    {"held", "", .drop = 2},           {"holds", "", .drop = 2},        {"retries", "at most", .drop = 4},
    {"timeouts", "at most", .drop = 5}};
static const struct ni_column gpu_columns[] = {
    {"host", "", .left = true},     {"GPU", "", .left = true},    {"of", "", .left = true, .drop = 3},
    {"SM clock", "MHz", .drop = 0}, {"lowest", "MHz", .drop = 1}, {"busy", "", .drop = 2},
    {"power", "W", .drop = 4},      {"late", "", .drop = 5},      {"throttled", "", .left = true}};

static void add_cell(struct ni_table *t, bool unsure, double v, int digits, const char *unit) {
  if (isnan(v))
    ni_table_cell(t, "-");
  else
    ni_table_cell(t, "%s%.*f%s", unsure ? "~" : "", digits, v, unit);
}

static void add_name_cells(struct ni_table *t, const struct ni_summary *s, const struct ni_beside_entity *e) {
  char ranks[48];
  ni_table_cell(t, "%.60s", e->host);
  ni_table_cell(t, "%.40s", e->name);
  ni_table_cell(t, "%s%s", ni_beside_ranks(s, e, ranks), e->how == NI_BESIDE_NEAREST ? " (nearest)" : "");
}

static void add_nic_row(struct ni_table *t, const struct ni_summary *s, const struct ni_beside_entity *e,
                        const struct ni_beside_figures *f) {
  add_name_cells(t, s, e);
  add_cell(t, f->unsure, f->tx_bytes_s / 1e9, 2, "");
  add_cell(t, f->unsure, f->rx_bytes_s / 1e9, 2, "");
  add_cell(t, false, 100 * f->of_link, 0, "%");
  add_cell(t, false, 100 * f->held, 1, "%");
  add_cell(t, false, 100 * f->holds, 1, "%");
  add_cell(t, false, f->retries, 0, "");
  add_cell(t, false, f->timeouts, 0, "");
}

static void add_gpu_row(struct ni_table *t, const struct ni_summary *s, const struct ni_beside_entity *e,
                        const struct ni_beside_figures *f) {
  const struct ni_process *p = e->n_processes == 1 ? &s->process[e->process[0]] : NULL;
  char why[NI_THROTTLE_TEXT];
  add_name_cells(t, s, e);
  add_cell(t, false, f->clock_mhz, 0, "");
  add_cell(t, false, f->lowest_mhz, 0, "");
  add_cell(t, false, 100 * f->busy, 0, "%");
  add_cell(t, false, f->power_w, 0, "");
  add_cell(t, false, p && p->compared ? 100 * (double)p->late / (double)p->compared : NAN, 1, "%");
  ni_table_cell(t, "%s", ni_throttle_text(f->reasons, why));
}

/* Prints GPUs, or what has a link; only those that moved anything. Returns whether there were any. */
static bool print_counters(const struct ni_summary *s, bool gpus, FILE *f) {
  const struct ni_beside *b = &s->beside;
  struct ni_table t;
  size_t n = 0;
  ni_table_begin(&t, gpus ? gpu_columns : nic_columns,
                 gpus ? sizeof gpu_columns / sizeof *gpu_columns : sizeof nic_columns / sizeof *nic_columns);
  for (size_t i = 0; i < b->n_entities; i++) {
    const struct ni_beside_entity *e = &b->entity[i];
    struct ni_beside_figures x = ni_beside_figures(b, e);
    bool shown = gpus ? e->source == NI_METRIC_GPU && e->with_s > 0
                      : e->source != NI_METRIC_GPU && (x.tx_bytes_s > 0 || x.rx_bytes_s > 0);
    if (!shown || n++ >= ROWS_SHOWN)
      continue;
    (gpus ? add_gpu_row : add_nic_row)(&t, s, e, &x);
  }
  if (n && gpus)
    ni_say(f, "\nGPUs while collectives ran:\n");
  else if (n)
    ni_say(f, "\nNICs while collectives ran (%" PRIu64 " samples; summary/counters.csv has all counters):\n",
           s->counter_samples);
  ni_table_print(&t, f);
  if (n > ROWS_SHOWN)
    ni_say(f, "  and %zu more\n", n - ROWS_SHOWN);
  return n > 0;
}

/* What the NICs of a host sent beside what NCCL sent. */
static void print_sent(const struct ni_summary *s, FILE *f) {
  for (size_t i = 0; i < s->n_sent && i < ROWS_SHOWN; i++) {
    const struct ni_sent *x = &s->sent[i];
    char nccl[32], nic[32], least[32], most[32];
    double sent = (double)x->nccl_bytes;
    ni_say(f, "  %s: NCCL sent %s, its NICs %s while collectives ran (%s to %s): %.2f times%s\n",
           s->host[x->host].name, ni_bytes_text(x->nccl_bytes, nccl),
           ni_bytes_text((uint64_t)x->nic_bytes, nic), ni_bytes_text((uint64_t)x->nic_least, least),
           ni_bytes_text((uint64_t)x->nic_most, most), x->nic_bytes / sent,
           x->nic_least > NI_SENT_MORE * sent ? "; it was sent again, or a neighbour sent as well" : "");
  }
}

void ni_print_beside(const struct ni_summary *s, FILE *f) {
  if (print_counters(s, false, f))
    print_sent(s, f);
  print_counters(s, true, f);
}
