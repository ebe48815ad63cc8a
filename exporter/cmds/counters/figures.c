#include "figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/table.h"

/* Which counters make a figure. Of several that fit: errors are added up; of others the largest counts, since one thing has
 * several names (classes of a pause). */
static const struct rule {
  uint8_t source, figure;
  const char *pattern;
} rules[] = {
    {NI_METRIC_CXI, NI_FIG_RX, "hni_sts_rx_ok_octets"},        {NI_METRIC_CXI, NI_FIG_TX, "hni_sts_tx_ok_octets"},
    {NI_METRIC_CXI, NI_FIG_PAUSED, "hni_tx_paused_#"},         {NI_METRIC_CXI, NI_FIG_PAUSED, "hni_rx_paused_std"},
    {NI_METRIC_CXI, NI_FIG_ERRORS, "pct_*_timeouts"},          {NI_METRIC_CXI, NI_FIG_ERRORS, "pct_retry_srb_requests"},
    {NI_METRIC_CXI, NI_FIG_ERRORS, "hni_pcs_uncorrected_cw"},  {NI_METRIC_CXI, NI_FIG_ERRORS, "hni_llr_*_replay_event"},
    {NI_METRIC_CXI, NI_FIG_ERRORS, "hni_discard_cntr_#"},      {NI_METRIC_CXI, NI_FIG_ERRORS, "hni_pfc_fifo_oflw_cntr_#"},
    {NI_METRIC_RH, NI_FIG_ERRORS, "*cancelled*"},              {NI_METRIC_RH, NI_FIG_ERRORS, "*_timeouts"},
    {NI_METRIC_IB, NI_FIG_RX, "port_rcv_data"},                {NI_METRIC_IB, NI_FIG_TX, "port_xmit_data"},
    {NI_METRIC_IB, NI_FIG_RX, "rx_bytes"},                     {NI_METRIC_IB, NI_FIG_TX, "tx_bytes"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "symbol_error"},             {NI_METRIC_IB, NI_FIG_ERRORS, "port_rcv_*errors"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "port_xmit_discards"},       {NI_METRIC_IB, NI_FIG_ERRORS, "link_*"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "packet_seq_err"},           {NI_METRIC_IB, NI_FIG_ERRORS, "local_ack_timeout_err"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "rnr_nak*"},                 {NI_METRIC_IB, NI_FIG_ERRORS, "req_*_exceeded"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "*_retransmits"},            {NI_METRIC_IB, NI_FIG_ERRORS, "seq_err_naks_rcvd"},
    {NI_METRIC_IB, NI_FIG_ERRORS, "retrans_pkts"},             {NI_METRIC_IB, NI_FIG_ERRORS, "rx_drops"},
    {NI_METRIC_ETH, NI_FIG_RX, "rx_bytes"},                    {NI_METRIC_ETH, NI_FIG_TX, "tx_bytes"},
    {NI_METRIC_ETH, NI_FIG_ERRORS, "*x_errors"},               {NI_METRIC_ETH, NI_FIG_ERRORS, "*x_dropped"},
    {NI_METRIC_ETHTOOL, NI_FIG_PAUSED, "*x_prio#_pause_duration"}, {NI_METRIC_ETHTOOL, NI_FIG_PAUSED, "pfc_pri#_*_duration_us"},
    {NI_METRIC_ETHTOOL, NI_FIG_ERRORS, "rx_discards_phy"},     {NI_METRIC_ETHTOOL, NI_FIG_ERRORS, "*_allowance_exceeded"},
    {NI_METRIC_GPU, NI_FIG_BUSY, "utilization_gpu"},           {NI_METRIC_GPU, NI_FIG_CLOCK, "clock_sm"},
    {NI_METRIC_GPU, NI_FIG_POWER, "power"},                    {NI_METRIC_GPU, NI_FIG_THROTTLED, "throttled_*"},
    {NI_METRIC_GPU, NI_FIG_RX, "nvlink_rx_bytes"},             {NI_METRIC_GPU, NI_FIG_TX, "nvlink_tx_bytes"},
    {NI_METRIC_GPU, NI_FIG_ERRORS, "nvlink_*errors"},          {NI_METRIC_GPU, NI_FIG_ERRORS, "pcie_replays"},
    {NI_METRIC_TCP, NI_FIG_ERRORS, "RetransSegs"},             {NI_METRIC_TCP, NI_FIG_ERRORS, "TCPTimeouts"},
};

/* What a row says under that figure; NAN: nothing. */
static double value_of(const struct ni_pair *p, const struct ni_pair_row *r, unsigned figure) {
  if (r->what.kind == NI_METRIC_GAUGE) {
    if (r->after.state != NI_READ_OK) return NAN;
    double v = (double)(int64_t)r->after.value * r->what.scale;
    return figure == NI_FIG_BUSY ? v / 100 : figure == NI_FIG_POWER ? v / 1000 : v;
  }
  if (r->change.state != NI_CHANGE_CHANGED && r->change.state != NI_CHANGE_NONE) return NAN;
  double rate = ni_pair_rate(r);
  if (figure != NI_FIG_PAUSED && figure != NI_FIG_THROTTLED) return rate;
  double share = ni_pair_share(p, r), per_s = strcmp(r->what.unit, "us") == 0 ? 1e6 : 1e9;
  return isnan(share) ? rate / per_s : share;
}

static void add(struct ni_figures *f, const struct ni_pair *p, const struct ni_pair_entity *e) {
  for (uint32_t i = e->first; i < e->first + e->n; i++) {
    const struct ni_pair_row *r = &p->row[i];
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
      if (rules[k].source != e->of->source || !ni_metric_fits(rules[k].pattern, r->name)) continue;
      double v = value_of(p, r, rules[k].figure), *at = &f->at[rules[k].figure];
      if (isnan(v)) continue;
      if (isnan(*at)) *at = v;
      else if (rules[k].figure == NI_FIG_ERRORS) *at += v;
      else if (v > *at) *at = v;
    }
  }
  for (int k = 0; k < 2; k++)
    if (e->of->link_bytes_s > 0) f->at[NI_FIG_RX_SHARE + k] = f->at[NI_FIG_RX + k] / e->of->link_bytes_s;
}

static bool trouble(const struct ni_figures *f) {
  return f->at[NI_FIG_ERRORS] > 0 || f->at[NI_FIG_PAUSED] > 0.01 || f->at[NI_FIG_THROTTLED] > 0.01;
}

static double busy(const struct ni_figures *f) {
  return fmax(fmax(f->at[NI_FIG_RX], 0), fmax(f->at[NI_FIG_TX], 0)) + fmax(f->at[NI_FIG_BUSY], 0);
}

static int by_rank(const void *a, const void *b) {
  const struct ni_figures *x = a, *y = b;
  bool gx = x->of->source == NI_METRIC_GPU, gy = y->of->source == NI_METRIC_GPU;
  if (gx != gy) return gx - gy;
  if (trouble(x) != trouble(y)) return trouble(y) - trouble(x);
  double dx = busy(x), dy = busy(y);
  if (dx != dy) return dx > dy ? -1 : 1;
  return x < y ? -1 : 1;
}

struct ni_figures *ni_figures_make(const struct ni_pair *p, size_t *n) {
  struct ni_figures *list = calloc(p->n_entities + 1, sizeof *list);
  *n = 0;
  for (size_t i = 0; list && i < p->n_entities; i++) {
    const struct ni_entity *e = p->entity[i].of;
    size_t k = 0;
    if (e->source == NI_METRIC_HOST) continue;
    while (k < *n && (strcmp(list[k].of->name, e->name) != 0 || list[k].of->source == NI_METRIC_GPU)) k++;
    if (k == *n) {
      list[k].of = e;
      for (int m = 0; m < NI_FIGURES; m++) list[k].at[m] = NAN;
      (*n)++;
    }
    add(&list[k], p, &p->entity[i]);
  }
  if (list) qsort(list, *n, sizeof *list, by_rank);
  return list;
}

/* ---- shown ---- */

static void cell_bytes(struct ni_table *t, double v) {
  char text[32];
  if (isnan(v)) ni_table_cell(t, "-");
  else ni_table_cell(t, "%s/s", ni_bytes_text((uint64_t)v, text));
}
static void cell_share(struct ni_table *t, double v) {
  if (isnan(v)) ni_table_cell(t, "-");
  else ni_table_cell(t, "%.1f %%", 100 * v);
}
static void cell_number(struct ni_table *t, double v, const char *unit) {
  if (isnan(v)) ni_table_cell(t, "-");
  else ni_table_cell(t, "%.*f%s", v > 0 && v < 10 ? 1 : 0, v, unit);
}

static void print_some(const struct ni_figures *f, size_t n, bool gpus, size_t most, FILE *to) {
  static const struct ni_column nic[] = {{"NIC", .width = 10, .left = true}, {"receives", .width = 10}, {"of link", .width = 7, .drop = 2},
                                         {"sends", .width = 10}, {"of link", .width = 7, .drop = 1}, {"paused", .width = 7},
                                         {"errors/s", .width = 8}};
  static const struct ni_column gpu[] = {{"GPU", .width = 10, .left = true}, {"busy", .width = 7}, {"clock", .width = 9}, {"power", .width = 7},
                                         {"throttled", .width = 9}, {"NVLink in", .width = 10, .drop = 2}, {"out", .width = 10, .drop = 1},
                                         {"errors/s", .width = 8, .drop = 3}};
  struct ni_table t;
  size_t shown = 0;
  if (gpus) ni_table_begin(&t, gpu, sizeof gpu / sizeof *gpu);
  else ni_table_begin(&t, nic, sizeof nic / sizeof *nic);
  for (size_t i = 0; i < n && (!most || shown < most); i++) {
    const double *at = f[i].at;
    if ((f[i].of->source == NI_METRIC_GPU) != gpus) continue;
    shown++;
    ni_table_cell(&t, "%s", f[i].of->name);
    if (gpus) {
      cell_share(&t, at[NI_FIG_BUSY]);
      cell_number(&t, at[NI_FIG_CLOCK], " MHz");
      cell_number(&t, at[NI_FIG_POWER], " W");
      cell_share(&t, at[NI_FIG_THROTTLED]);
    }
    for (int k = 0; k < 2; k++) {
      cell_bytes(&t, at[NI_FIG_RX + k]);
      if (!gpus) cell_share(&t, at[NI_FIG_RX_SHARE + k]);
    }
    if (!gpus) cell_share(&t, at[NI_FIG_PAUSED]);
    cell_number(&t, at[NI_FIG_ERRORS], "");
  }
  ni_table_print(&t, to);
}

void ni_figures_print(const struct ni_figures *f, size_t n, size_t most, FILE *to) {
  print_some(f, n, false, most, to);
  print_some(f, n, true, most, to);
}

void ni_figures_json(struct ni_json *j, const char *key, const struct ni_figures *f, size_t n) {
  static const char *const names[NI_FIGURES] = {"rx_bytes_s", "tx_bytes_s", "rx_share", "tx_share", "paused_share", "errors_s",
                                                "busy_share", "clock_mhz", "power_w", "throttled_share"};
  ni_json_array(j, key);
  for (size_t i = 0; i < n; i++) {
    ni_json_object(j, NULL);
    ni_json_text(j, "name", f[i].of->name);
    ni_json_text(j, "source", ni_source_name(f[i].of->source));
    for (int k = 0; k < NI_FIGURES; k++)
      if (!isnan(f[i].at[k])) ni_json_f64(j, names[k], f[i].at[k]);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}
