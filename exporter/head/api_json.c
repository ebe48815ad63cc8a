#include "api_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/json_write.h"
#include "exporter/base/text/time_text.h"
#include "exporter/model/live/live.h"

/* Of Unix ns; null for 0. */
static void put_time(struct ni_json *j, const char *key, int64_t ns) {
  char text[40];
  ni_json_text(j, key, ns ? ni_utc_text(ns / 1000, 'T', 6, text) : NULL);
}

static void put_session(struct ni_json *j, const struct ni_session *s) {
  ni_json_object(j, NULL);
  ni_json_text(j, "name", s->name);
  ni_json_text(j, "session_id", s->id);
  ni_json_bool(j, "is_active", s->active);
  ni_json_bool(j, "active", s->active); /* 0.4's word for it, as `frames` is */
  put_time(j, "start_time", s->start_ns);
  put_time(j, "end_time", s->end_ns);
  ni_json_u64(j, "frame_count", s->frames);
  ni_json_u64(j, "frames", s->frames);
  ni_json_text(j, "output_file", s->file);
  ni_json_bool(j, "resuming", s->resuming);
  ni_json_bool(j, "finishing", s->finishing);
  ni_json_u64(j, "late", s->late);
  ni_json_u64(j, "frames_lost", s->frames_lost);
  ni_json_text(j, "error", *s->error ? s->error : NULL);
  ni_json_end_object(j);
}

static void put_sessions(struct ni_json *j, const struct ni_core *c, bool running_alone) {
  struct ni_session *list;
  int n = ni_store_list(c->store, &list);
  uint64_t active = 0;
  ni_json_array(j, "sessions");
  for (int i = 0; i < n; i++) {
    active += list[i].active;
    if (list[i].active || !running_alone) put_session(j, &list[i]);
  }
  ni_json_end_array(j);
  if (n >= 0) free(list);
  if (running_alone) return;
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
  ni_json_array(j, "connected_clients");
  for (size_t i = 0; i < n; i++)
    if (client[i]->connected) ni_json_text(j, NULL, client[i]->id);
  ni_json_end_array(j);
  ni_json_array(j, "gone_clients");
  for (size_t i = 0; i < n; i++)
    if (!client[i]->connected) ni_json_text(j, NULL, client[i]->id);
  ni_json_end_array(j);
  ni_json_object(j, "gpu_info");
  for (size_t i = 0; i < n; i++) {
    if (!client[i]->connected) continue;
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
    ni_json_text(j, "version", *k->version ? k->version : NULL);
    ni_json_u64(j, "taken", k->taken);
    ni_json_u64(j, "late", k->late);
    ni_json_u64(j, "superseded", k->superseded);
    ni_json_u64(j, "lost", k->lost);
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

static void put_job(struct ni_json *j, const struct ni_sample_job *b) {
  ni_json_object(j, NULL);
  ni_json_text(j, "job_id", b->job);
  ni_json_text(j, "attempt", b->attempt);
  ni_json_u64(j, "uid", b->uid);
  ni_json_text(j, "state", ni_live_job_states[b->state % NI_LIVE_JOB_STATES]);
  ni_json_u64(j, "processes", b->processes);
  ni_json_u64(j, "operations", b->operations);
  ni_json_u64(j, "bytes", b->bytes);
  ni_json_f64(j, "bus_bytes", b->bus_bytes);
  ni_json_f64(j, "bus_seconds", b->bus_seconds);
  ni_json_rounded(j, "operations_s", b->operations_s, 6);
  ni_json_rounded(j, "message_gb_s", b->bytes_s / 1e9, 6);
  ni_json_rounded(j, "busbw_gb_s", b->bus_got / b->bus_took / 1e9, 6);
  ni_json_u64(j, "in_flight", b->in_flight);
  ni_json_u64(j, "stuck", b->stuck);
  ni_json_rounded(j, "oldest_s", b->oldest_s, 6);
  ni_json_text(j, "verdict", *b->verdict ? b->verdict : NULL);
  ni_json_end_object(j);
}

static void put_rest(struct ni_json *j, const struct ni_sample *s) {
  ni_json_array(j, "nics");
  for (uint32_t i = 0; i < s->n_nics; i++) {
    ni_json_object(j, NULL);
    ni_json_text(j, "nic", s->nic[i].name);
    ni_json_rounded(j, "rx_bytes_s", s->nic[i].rx, 6);
    ni_json_rounded(j, "tx_bytes_s", s->nic[i].tx, 6);
    ni_json_rounded(j, "link_bytes_s", s->nic[i].link, 6);
    ni_json_rounded(j, "held", s->nic[i].held, 6);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_array(j, "jobs");
  for (uint32_t i = 0; i < s->n_jobs; i++) put_job(j, &s->job[i]);
  ni_json_end_array(j);
  ni_json_array(j, "open");
  for (uint32_t i = 0; i < s->n_open; i++) {
    const struct ni_sample_open *o = &s->open[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "job_id", o->job);
    ni_json_i64(j, "rank", o->rank);
    ni_json_text(j, "comm", o->comm);
    ni_json_text(j, "function", o->function);
    ni_json_u64(j, "sn", o->sn);
    ni_json_rounded(j, "age_s", o->age_s, 6);
    ni_json_bool(j, "stuck", o->stuck);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

/* What one that is gone had: nobody who does not read its state takes old numbers for new ones. For free(); NULL without memory. */
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
  put_time(j, "timestamp", c->now_ns);
  ni_json_object(j, "client_data");
  for (size_t i = 0; i < n; i++) {
    const struct ni_client *k = client[i];
    bool gone = !k->connected && k->state == NI_CLIENT_GONE;
    if (!(gone || k->taken) || (gsprof && !k->connected)) continue; /* gsprof has nobody who is not there */
    struct ni_sample *nothing = gone ? without_numbers(k->last) : NULL;
    const struct ni_sample *shown = gone ? nothing : k->last;
    if (!shown) continue;
    ni_json_object(j, k->id);
    put_metrics(j, gsprof, shown);
    ni_json_text(j, "hostname", k->host);
    ni_json_text(j, "state", state_text[k->state]);
    put_age(j, c, k);
    put_rest(j, shown);
    ni_json_end_object(j);
    free(nothing);
  }
  ni_json_end_object(j);
}

void ni_api_latest(struct ni_json *j, const void *core) { put_latest(j, core, ((const struct ni_core *)core)->gsprof); }
void ni_api_frame(struct ni_json *j, const void *core) { put_latest(j, core, false); }
