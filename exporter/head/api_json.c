#include "api_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/json_fields.h"
#include "exporter/model/live/live.h"

/* `active` and `frames` are 0.4's words. */
static const struct ni_json_field of_session[] = {
    NI_JSON(ni_session, name),
    NI_JSON_AS(ni_session, id, "session_id"),
    NI_JSON_AS(ni_session, active, "is_active"),
    NI_JSON(ni_session, active),
    NI_JSON_FROM(ni_json_member_utc, ni_session, start_ns, "start_time"),
    NI_JSON_FROM(ni_json_member_utc, ni_session, end_ns, "end_time"),
    NI_JSON_AS(ni_session, frames, "frame_count"),
    NI_JSON(ni_session, frames),
    NI_JSON_AS(ni_session, file, "output_file"),
    NI_JSON(ni_session, resuming),
    NI_JSON(ni_session, finishing),
    NI_JSON(ni_session, late),
    NI_JSON(ni_session, frames_lost),
    NI_JSON_FROM(ni_json_member_some, ni_session, error, "error")};

static void put_sessions(struct ni_json *j, const struct ni_core *c, bool running_alone) {
  struct ni_session *list;
  int n = ni_store_list(c->store, &list);
  uint64_t active = 0;
  ni_json_array(j, "sessions");
  for (int i = 0; i < n; i++) {
    active += list[i].active;
    if (!list[i].active && running_alone)
      continue;
    NI_JSON_OBJECT (j, NULL)
      NI_JSON_ALL(j, of_session, &list[i], NULL);
  }
  ni_json_end_array(j);
  if (n >= 0)
    free(list);
  if (running_alone)
    return;
  ni_json_u64(j, "total_sessions", n > 0 ? (uint64_t)n : 0);
  ni_json_u64(j, "active_sessions", active);
}

static void put_gpus(struct ni_json *j, const char *key, const struct ni_client *c) {
  ni_json_array(j, key);
  for (uint32_t i = 0; c->last && i < c->last->n_gpus; i++) {
    const struct ni_sample_gpu *g = &c->last->gpu[i];
    char id[400];
    snprintf(id, sizeof id, "%s:%d:%s", c->host, g->index, g->name);
    ni_json_object(j, NULL);
    ni_json_text(j, "id", id);
    ni_json_text(j, "name", g->name);
    ni_json_i64(j, "physical_idx", g->index);
    ni_json_text(j, "hostname", c->host);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

void ni_api_status(struct ni_json *j, const void *core) {
  const struct ni_core *c = core;
  struct ni_client *const *client;
  struct ni_session of;
  size_t n = ni_grid_clients(c->grid, &client);
  uint64_t gpus = 0;
  bool any = ni_store_current(c->store, &of);
  ni_json_u64(j, "freq", c->period_ns / 1000000);
  ni_json_bool(j, "enable_bandwidth_profiling", c->bandwidth);
  ni_json_bool(j, "enable_nvlink_profiling", c->nvlink);
  ni_json_bool(j, "is_profiling", ni_store_running(c->store) > 0);
  ni_json_text(j, "output_filename", any ? of.file : "");
  ni_json_u64(j, "frame_id_counter", any ? of.frames : 0);
  NI_JSON_ARRAY (j, "connected_clients")
    for (size_t i = 0; i < n; i++)
      if (client[i]->connected)
        ni_json_text(j, NULL, client[i]->id);
  NI_JSON_ARRAY (j, "gone_clients")
    for (size_t i = 0; i < n; i++)
      if (!client[i]->connected)
        ni_json_text(j, NULL, client[i]->id);
  ni_json_object(j, "gpu_info");
  for (size_t i = 0; i < n; i++) {
    if (!client[i]->connected)
      continue;
    put_gpus(j, client[i]->id, client[i]);
    gpus += client[i]->last ? client[i]->last->n_gpus : 0;
  }
  ni_json_end_object(j);
  ni_json_u64(j, "total_gpus", gpus);
  put_sessions(j, c, true);
  ni_json_text(j, "degraded", *c->degraded ? c->degraded : NULL);
}

void ni_api_sessions(struct ni_json *j, const void *core) { put_sessions(j, core, false); }

static const char *const state_text[] = {"ok", "stale", "gone"};

static void put_age(struct ni_json *j, const struct ni_core *c, const struct ni_client *k) {
  ni_json_rounded(j, "age_s", k->newest_ns ? (double)(c->now_ns - k->newest_ns) / 1e9 : NAN, 6);
}

void ni_api_clients(struct ni_json *j, const void *core) {
  static const struct ni_json_field counts[] = {
      NI_JSON_FROM(ni_json_member_some, ni_client, version, "version"), NI_JSON(ni_client, taken),
      NI_JSON(ni_client, late), NI_JSON(ni_client, superseded), NI_JSON(ni_client, lost)};
  const struct ni_core *c = core;
  struct ni_client *const *client;
  size_t n = ni_grid_clients(c->grid, &client);
  ni_json_u64(j, "total_clients", n);
  ni_json_array(j, "clients");
  for (size_t i = 0; i < n; i++) {
    const struct ni_client *k = client[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "client_id", k->id);
    ni_json_text(j, "hostname", k->host);
    ni_json_u64(j, "gpu_count", k->last ? k->last->n_gpus : 0);
    put_gpus(j, "gpus", k);
    ni_json_bool(j, "connected", k->connected);
    ni_json_text(j, "state", state_text[k->state]);
    put_age(j, c, k);
    ni_json_rounded(j, "skew_s", (double)k->skew_ns / 1e9, 6);
    ni_json_bool(j, "agent", *k->uuid);
    NI_JSON_ALL(j, counts, k, NULL);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

/* Keys of GPUMetric; scales of the README, or those of gsprof's code (docs/cluster.md). */
static void put_metrics(struct ni_json *j, bool gsprof, const struct ni_sample *s) {
  const double ratio = gsprof ? 1 : 100, bytes = gsprof ? 1.0 / 1024 : 1e-9;
  ni_json_array(j, "gpus_metrics");
  for (uint32_t i = 0; i < s->n_gpus; i++) {
    const struct ni_sample_gpu *g = &s->gpu[i];
    ni_json_object(j, NULL);
    ni_json_i64(j, "physical_idx", g->index);
    ni_json_text(j, "name", g->name);
    ni_json_rounded(j, "gpu_util", g->util * ratio, 6);
    ni_json_rounded(j, "mem_util", g->memory * ratio, 6);
    ni_json_rounded(j, "dram_bw_gbps_rx", g->pcie_rx * bytes, 6);
    ni_json_rounded(j, "dram_bw_gbps_tx", g->pcie_tx * bytes, 6);
    ni_json_rounded(j, "nvlink_bw_gbps_rx", g->nvlink_rx * bytes, 6);
    ni_json_rounded(j, "nvlink_bw_gbps_tx", g->nvlink_tx * bytes, 6);
    ni_json_rounded(j, "power_w", g->power_w, 6);
    ni_json_rounded(j, "temperature_c", g->temperature_c, 6);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_array(j, "p2p_links");
  ni_json_end_array(j);
  ni_json_object(j, "system_metrics");
  ni_json_rounded(j, "dram_util", s->memory * 100, 6);
  ni_json_rounded(j, "disk_util", s->disk * 100, 6);
  ni_json_rounded(j, "cpu_util", s->cpu * 100, 6);
  ni_json_end_object(j);
}

/* clang-format off */
static NI_JSON_FORM(put_job_state, uint8_t, ni_json_text(j, key, ni_live_job_states[*v % NI_LIVE_JOB_STATES]))
static NI_JSON_FORM(put_giga, double, ni_json_rounded(j, key, *v / 1e9, 6))
static NI_JSON_FORM(put_bus, struct ni_sample_job, ni_json_rounded(j, key, v->bus_got / v->bus_took / 1e9, 6))
/* clang-format on */

#define ROUNDED(tag, member, key) NI_JSON_FROM(ni_json_member_rounded, tag, member, key)
    static const struct ni_json_field of_nic[] = {
        NI_JSON_AS(ni_sample_nic, name, "nic"), ROUNDED(ni_sample_nic, rx, "rx_bytes_s"),
        ROUNDED(ni_sample_nic, tx, "tx_bytes_s"), ROUNDED(ni_sample_nic, link, "link_bytes_s"),
        ROUNDED(ni_sample_nic, held, "held")};
static const struct ni_json_field of_job[] = {
    NI_JSON_AS(ni_sample_job, job, "job_id"),
    NI_JSON(ni_sample_job, attempt),
    NI_JSON(ni_sample_job, uid),
    NI_JSON_FROM(put_job_state, ni_sample_job, state, "state"),
    NI_JSON(ni_sample_job, processes),
    NI_JSON(ni_sample_job, operations),
    NI_JSON(ni_sample_job, bytes),
    NI_JSON(ni_sample_job, bus_bytes),
    NI_JSON(ni_sample_job, bus_seconds),
    ROUNDED(ni_sample_job, operations_s, "operations_s"),
    NI_JSON_FROM(put_giga, ni_sample_job, bytes_s, "message_gb_s"),
    NI_JSON_BY(put_bus, "busbw_gb_s"),
    NI_JSON(ni_sample_job, in_flight),
    NI_JSON(ni_sample_job, stuck),
    ROUNDED(ni_sample_job, oldest_s, "oldest_s"),
    NI_JSON_FROM(ni_json_member_some, ni_sample_job, verdict, "verdict")};
static const struct ni_json_field of_open[] = {NI_JSON_AS(ni_sample_open, job, "job_id"),
                                               NI_JSON(ni_sample_open, rank),
                                               NI_JSON(ni_sample_open, comm),
                                               NI_JSON(ni_sample_open, function),
                                               NI_JSON(ni_sample_open, sn),
                                               ROUNDED(ni_sample_open, age_s, "age_s"),
                                               NI_JSON(ni_sample_open, stuck)};

/*
 * What one that is gone had: nobody who does not read its state takes old numbers for new ones. For free();
 * NULL without memory.
 */
static struct ni_sample *without_numbers(const struct ni_sample *last) {
  struct ni_sample *s = ni_sample_new(last ? last->n_gpus : 0, 0, 0, 0);
  for (uint32_t i = 0; s && i < s->n_gpus; i++) {
    s->gpu[i].index = last->gpu[i].index;
    memcpy(s->gpu[i].name, last->gpu[i].name, sizeof s->gpu[i].name);
  }
  return s;
}

static void put_latest(struct ni_json *j, const struct ni_core *c, bool gsprof) {
  struct ni_client *const *client;
  size_t n = ni_grid_clients(c->grid, &client);
  ni_json_utc(j, "timestamp", c->now_ns);
  ni_json_object(j, "client_data");
  for (size_t i = 0; i < n; i++) {
    const struct ni_client *k = client[i];
    bool gone = !k->connected && k->state == NI_CLIENT_GONE;
    if (!(gone || k->taken) || (gsprof && !k->connected))
      continue; /* gsprof has nobody who is not there */
    struct ni_sample *nothing = gone ? without_numbers(k->last) : NULL;
    const struct ni_sample *shown = gone ? nothing : k->last;
    if (!shown)
      continue;
    ni_json_object(j, k->id);
    put_metrics(j, gsprof, shown);
    ni_json_text(j, "hostname", k->host);
    ni_json_text(j, "state", state_text[k->state]);
    put_age(j, c, k);
    NI_JSON_OBJECTS(j, "nics", of_nic, shown->nic, shown->n_nics, NULL);
    NI_JSON_OBJECTS(j, "jobs", of_job, shown->job, shown->n_jobs, NULL);
    NI_JSON_OBJECTS(j, "open", of_open, shown->open, shown->n_open, NULL);
    ni_json_end_object(j);
    free(nothing);
  }
  ni_json_end_object(j);
}

void ni_api_latest(struct ni_json *j, const void *core) {
  put_latest(j, core, ((const struct ni_core *)core)->gsprof);
}
void ni_api_frame(struct ni_json *j, const void *core) { put_latest(j, core, false); }
