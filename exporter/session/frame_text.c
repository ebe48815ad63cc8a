#include "frame_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/time_text.h"
#include "exporter/model/live/live.h"

/* ---- room ---- */

char *ni_buffer_room(struct ni_buffer *b, size_t more) {
  if (b->failed || (b->cap - b->n < more && !ni_array_more(&b->text, &b->cap, b->n + more, 1)))
    b->failed = true;
  return b->failed ? NULL : b->text + b->n;
}

void ni_buffer_put(struct ni_buffer *b, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  char *p = ni_buffer_room(b, 256);
  int n = p ? vsnprintf(p, 256, format, args) : 0;
  if (n >= 256 && (p = ni_buffer_room(b, (size_t)n + 1)))
    vsnprintf(p, (size_t)n + 1, format, again);
  if (p)
    b->n += (size_t)n;
  va_end(args);
  va_end(again);
}

static void put_text(struct ni_buffer *b, const char *text) {
  char *p = ni_buffer_room(b, 8 * strlen(text) + 3), *from = p;
  if (!p)
    return;
  *p++ = '"';
  while (*text)
    p += ni_json_char(p, &text);
  *p++ = '"';
  *p = 0;
  b->n += (size_t)(p - from);
}

/* With two or three decimals, as "%.2f" has it but for ties, in a tenth of the time. */
static char *put_fixed(char *p, double v, unsigned decimals) {
  char digits[24];
  int n = 0;
  double x = v * (decimals == 2 ? 100 : 1000);
  int64_t whole = llrint(fabs(x));
  if (x < 0 && whole)
    *p++ = '-';
  for (; whole || n < (int)decimals + 2; whole /= 10) {
    digits[n++] = (char)('0' + whole % 10);
    if (n == (int)decimals)
      digits[n++] = '.';
  }
  while (n)
    *p++ = digits[--n];
  return p;
}

static void put_number(struct ni_buffer *b, const char *key, double v) { /* a member of an object */
  char text[40] = "null";
  if (fabs(v) < 1e15)
    *put_fixed(text, v, 3) = 0;
  ni_buffer_put(b, ",\"%s\":%s", key, text);
}

/* ---- columns ---- */

static uint32_t hash_of(const char *text) {
  uint32_t h = 2166136261u;
  while (*text)
    h = (h ^ (unsigned char)*text++) * 16777619u;
  return h;
}

int64_t ni_column_find(const struct ni_columns *c, const char *text, uint32_t behind) {
  uint32_t hash = hash_of(text);
  for (size_t i = 0; i < c->n; i++)
    if (c->at[i].hash == hash && !strcmp(c->at[i].id, text) && behind-- == 0)
      return (int64_t)i;
  return -1;
}

/* How many columns of its text stand before it. */
static uint32_t behind(const struct ni_columns *c, size_t column) {
  uint32_t n = 0;
  for (size_t i = 0; i < column; i++)
    n += c->at[i].hash == c->at[column].hash && !strcmp(c->at[i].id, c->at[column].id);
  return n;
}

int64_t ni_column_claim(struct ni_columns *c, const char *text, uint32_t owner) {
  uint32_t hash = hash_of(text);
  for (size_t k = 0; c->free && k < c->n; k++) { /* mostly it is the next one */
    size_t i = c->cursor + k < c->n ? c->cursor + k : c->cursor + k - c->n;
    if (c->at[i].owner || c->at[i].hash != hash || strcmp(c->at[i].id, text))
      continue;
    c->at[i].owner = owner;
    c->free--;
    c->cursor = i + 1 < c->n ? i + 1 : 0;
    return (int64_t)i;
  }
  char *id = ni_array_room(c->at, c->n, c->cap) ? strdup(text) : NULL;
  if (!id)
    return -1;
  c->at[c->n].id = id;
  c->at[c->n].hash = hash;
  c->at[c->n].owner = owner;
  return (int64_t)c->n++;
}

void ni_columns_release(struct ni_columns *c) {
  for (size_t i = 0; i < c->n; i++)
    c->at[i].owner = 0;
  c->free = c->n;
  c->cursor = 0;
}

bool ni_sums_room(struct ni_sums *s, enum ni_group group, size_t columns) {
  size_t had = s->cap[group];
  if (columns <= had)
    return true;
  if (!ni_array_more(&s->of[group], &s->cap[group], columns, sizeof *s->of[group]))
    return false;
  memset(s->of[group] + had, 0, (s->cap[group] - had) * sizeof *s->of[group]);
  return true;
}

void ni_sums_add(struct ni_sums *to, const struct ni_sums *more, enum ni_group group) {
  for (size_t i = 0; i < more->cap[group]; i++)
    for (int k = 0; k < 2; k++) {
      to->of[group][i].sum[k] += more->of[group][i].sum[k];
      to->of[group][i].n[k] += more->of[group][i].n[k];
    }
}

void ni_sums_free(struct ni_sums *s) {
  free(s->of[0]);
  free(s->of[1]);
  *s = (struct ni_sums){0};
}

/* ---- keys ---- */

enum { ALWAYS, BANDWIDTH, OURS }; /* when a key is there: OURS: not in gsprof's form */
enum { SUM = 1 << 16, STATE, AGE, SEQ };
#define GPU(member) offsetof(struct ni_sample_gpu, member)
#define HOST(member) offsetof(struct ni_sample, member)
#define NIC(member) offsetof(struct ni_sample_nic, member)
static const struct key {
  const char *name;
  enum ni_group group;
  bool text; /* gsprof's readers want texts */
  uint8_t when;
  int8_t sum;
  size_t offset;         /* of a double; or one of SUM, ... */
  double native, gsprof; /* scale */
} keys[] = {
    {"gpu_util", NI_GPUS, true, ALWAYS, 0, GPU(util), 100, 1},
    {"gpu_memory", NI_GPUS, true, ALWAYS, 1, GPU(memory), 100, 1},
    {"dram_bandwidth_rx", NI_GPUS, true, BANDWIDTH, -1, GPU(pcie_rx), 1e-9, 1 / 1024.},
    {"dram_bandwidth_tx", NI_GPUS, true, BANDWIDTH, -1, GPU(pcie_tx), 1e-9, 1 / 1024.},
    {"dram_bandwidth", NI_GPUS, true, ALWAYS, -1, SUM, 1e-9, 1 / 1024.},
    {"dram_util", NI_CLIENTS, true, ALWAYS, 0, HOST(memory), 100, 100},
    {"disk_util", NI_CLIENTS, true, ALWAYS, 1, HOST(disk), 100, 100},
    {"gpu_power_w", NI_GPUS, false, OURS, -1, GPU(power_w), 1, 1},
    {"gpu_temperature_c", NI_GPUS, false, OURS, -1, GPU(temperature_c), 1, 1},
    {"gpu_sm_mhz", NI_GPUS, false, OURS, -1, GPU(sm_hz), 1e-6, 1},
    {"client_state", NI_CLIENTS, false, ALWAYS, -1, STATE, 1, 1},
    {"client_age_s", NI_CLIENTS, false, ALWAYS, -1, AGE, 1, 1},
    {"client_seq", NI_CLIENTS, false, ALWAYS, -1, SEQ, 1, 1},
    {"client_cpu", NI_CLIENTS, false, OURS, -1, HOST(cpu), 100, 1},
    {"nic_rx", NI_NICS, false, OURS, -1, NIC(rx), 1e-9, 1},
    {"nic_tx", NI_NICS, false, OURS, -1, NIC(tx), 1e-9, 1},
    {"nic_link", NI_NICS, false, OURS, -1, NIC(link), 1e-9, 1},
    {"nic_held", NI_NICS, false, OURS, -1, NIC(held), 100, 1},
};
static const char *const id_key[NI_GROUPS] = {"gpu_id", "client_id", "nic_id"};

enum ni_group ni_frame_key(const char *name, const char **none, int *sum) {
  for (const struct key *k = keys; k < keys + sizeof keys / sizeof *keys; k++) {
    if (strcmp(k->name, name))
      continue;
    *none = k->text ? "\"nan\"" : k->offset == STATE ? "\"gone\"" : "null";
    *sum = k->sum;
    return k->group;
  }
  return NI_GROUPS;
}

static double value(const struct ni_frame_text *t, const struct key *k, const void *at) {
  double v = NAN;
  if (k->offset == SUM) {
    const struct ni_sample_gpu *gpu = at;
    v = !t->bandwidth ? 0 : gpu ? gpu->pcie_rx + gpu->pcie_tx : NAN;
  } else {
    const struct ni_frame_client *c = at;
    if (k->group == NI_CLIENTS && at)
      at = c->sample;
    if (k->offset == AGE)
      v = c && c->age_ns != INT64_MAX ? (double)c->age_ns / 1e9 : NAN;
    else if (at)
      memcpy(&v, (const char *)at + k->offset, sizeof v);
  }
  return v * (t->gsprof ? k->gsprof : k->native);
}

static void put_key(const struct ni_frame_text *t, const struct key *k, struct ni_buffer *out) {
  static const char *const states[] = {"\"ok\"", "\"stale\"", "\"gone\""};
  size_t n = t->of[k->group].n;
  ni_buffer_put(out, ",\"%s\":[", k->name);
  char *p = ni_buffer_room(out, 32 * n + 2), *from = p;
  for (size_t i = 0; p && i < n; i++) {
    const void *at = t->at[k->group][i];
    const struct ni_frame_client *c = at;
    if (i)
      *p++ = ',';
    if (k->offset == STATE) {
      p = stpcpy(p, states[c ? c->state : NI_CLIENT_GONE]);
      continue;
    }
    if (k->offset == SEQ) {
      p += sprintf(p, "%llu", c ? (unsigned long long)c->seq : 0);
      continue;
    }
    double v = value(t, k, at);
    if (!(fabs(v) < 1e15)) {
      p = stpcpy(p, k->text ? "\"nan\"" : "null");
      continue;
    }
    if (k->text)
      *p++ = '"';
    p = put_fixed(p, v, k->text ? 2 : 3);
    if (k->text)
      *p++ = '"';
  }
  if (!p)
    return;
  *p++ = ']';
  out->n += (size_t)(p - from);
}

bool ni_frame_sum(const struct ni_frame_text *t, struct ni_sums *s) {
  for (const struct key *k = keys; k < keys + sizeof keys / sizeof *keys; k++) {
    if (k->sum < 0)
      continue;
    if (!ni_sums_room(s, k->group, t->of[k->group].n))
      return false;
    for (size_t i = 0; i < t->of[k->group].n; i++) {
      double v = value(t, k, t->at[k->group][i]);
      if (fabs(v) < 1e15) {
        s->of[k->group][i].sum[k->sum] += v;
        s->of[k->group][i].n[k->sum]++;
      }
    }
  }
  return true;
}

/* ---- who stands where ---- */

struct ni_known {
  int64_t client; /* its column, -1: none yet */
  uint32_t n_gpus, n_nics;
  struct {
    int32_t index;
    uint32_t column;
  } gpu[NI_SAMPLE_GPUS_MAX];
  struct {
    char name[32];
    uint32_t column;
  } nic[NI_SAMPLE_NICS_MAX];
};

static int64_t claim(struct ni_frame_text *t, enum ni_group group, uint32_t owner, const char *format, ...) {
  char plain[400];
  va_list args;
  va_start(args, format);
  vsnprintf(plain, sizeof plain, format, args);
  va_end(args);
  struct ni_buffer text = {0};
  put_text(&text, plain);
  int64_t column = text.failed ? -1 : ni_column_claim(&t->of[group], text.text, owner);
  free(text.text);
  return column;
}

/* Columns for what the client says that it has; false without memory. */
static bool learn(struct ni_frame_text *t, const struct ni_client *c, const struct ni_sample *s) {
  size_t had = t->cap_known;
  if (c->number >= had) {
    if (!ni_array_more(&t->known, &t->cap_known, c->number + 1, sizeof *t->known))
      return false;
    memset(t->known + had, 0, (t->cap_known - had) * sizeof *t->known);
  }
  struct ni_known *k = t->known[c->number];
  uint32_t owner = c->number + 1;
  if (!k) {
    if (!(k = t->known[c->number] = calloc(1, sizeof *k)))
      return false;
    k->client = -1;
  }
  if (k->client < 0 && (k->client = claim(t, NI_CLIENTS, owner, "%s", c->id)) < 0)
    return false;
  for (uint32_t i = 0; s && i < s->n_gpus; i++) {
    uint32_t j = i < k->n_gpus && k->gpu[i].index == s->gpu[i].index ? i : 0; /* mostly it is where it was */
    while (j < k->n_gpus && k->gpu[j].index != s->gpu[i].index)
      j++;
    if (j < k->n_gpus || j == NI_SAMPLE_GPUS_MAX)
      continue;
    int64_t column = claim(t, NI_GPUS, owner, "%s:%d:%s", c->host, s->gpu[i].index, s->gpu[i].name);
    if (column < 0)
      return false;
    k->gpu[k->n_gpus].index = s->gpu[i].index;
    k->gpu[k->n_gpus++].column = (uint32_t)column;
  }
  for (uint32_t i = 0; s && !t->gsprof && i < s->n_nics; i++) {
    uint32_t j = i < k->n_nics && !strcmp(k->nic[i].name, s->nic[i].name) ? i : 0;
    while (j < k->n_nics && strcmp(k->nic[j].name, s->nic[i].name))
      j++;
    if (j < k->n_nics || j == NI_SAMPLE_NICS_MAX)
      continue;
    int64_t column = claim(t, NI_NICS, owner, "%s:%s", c->host, s->nic[i].name);
    if (column < 0)
      return false;
    snprintf(k->nic[k->n_nics].name, sizeof k->nic->name, "%s", s->nic[i].name);
    k->nic[k->n_nics++].column = (uint32_t)column;
  }
  return true;
}

static void stand(struct ni_frame_text *t, const struct ni_frame_client *of) {
  const struct ni_known *k = t->known[of->client->number];
  const struct ni_sample *s = of->sample;
  t->at[NI_CLIENTS][k->client] = of;
  for (uint32_t i = 0; s && i < s->n_gpus; i++) {
    uint32_t j = i < k->n_gpus && k->gpu[i].index == s->gpu[i].index ? i : 0;
    while (j < k->n_gpus && k->gpu[j].index != s->gpu[i].index)
      j++;
    if (j < k->n_gpus)
      t->at[NI_GPUS][k->gpu[j].column] = &s->gpu[i];
  }
  for (uint32_t i = 0; s && i < s->n_nics; i++) {
    uint32_t j = i < k->n_nics && !strcmp(k->nic[i].name, s->nic[i].name) ? i : 0;
    while (j < k->n_nics && strcmp(k->nic[j].name, s->nic[i].name))
      j++;
    if (j < k->n_nics)
      t->at[NI_NICS][k->nic[j].column] = &s->nic[i];
  }
}

/* ---- a frame ---- */

static void put_job(const struct ni_frame_client *of, const struct ni_sample_job *j, struct ni_buffer *out) {
  ni_buffer_put(out, "{\"host\":");
  put_text(out, of->client->host);
  ni_buffer_put(out, ",\"job_id\":");
  put_text(out, j->job);
  ni_buffer_put(out, ",\"attempt\":");
  put_text(out, j->attempt);
  ni_buffer_put(out, ",\"uid\":%u,\"state\":\"%s\",\"processes\":%u", j->uid,
                ni_live_job_states[j->state % NI_LIVE_JOB_STATES], j->processes);
  put_number(out, "operations_s", j->operations_s);
  put_number(out, "message_gb_s", j->bytes_s / 1e9);
  put_number(out, "busbw_gb_s", j->bus_got / j->bus_took / 1e9);
  ni_buffer_put(out, ",\"in_flight\":%llu,\"stuck\":%llu", (unsigned long long)j->in_flight,
                (unsigned long long)j->stuck);
  put_number(out, "oldest_s", j->oldest_s);
  ni_buffer_put(out, ",\"verdict\":");
  if (*j->verdict)
    put_text(out, j->verdict);
  ni_buffer_put(out, *j->verdict ? "}" : "null}");
}

static void put_ids(const struct ni_columns *c, const char *name, struct ni_buffer *out) {
  ni_buffer_put(out, ",\"%s\":[", name);
  for (size_t i = 0; i < c->n; i++) {
    size_t n = strlen(c->at[i].id);
    char *p = ni_buffer_room(out, n + 1);
    if (!p)
      return;
    if (i)
      *p++ = ',';
    memcpy(p, c->at[i].id, n);
    out->n += n + (i > 0);
  }
  ni_buffer_put(out, "]");
}

static void put_nvlinks(const struct ni_frame_text *t, struct ni_buffer *out) {
  const double scale = t->gsprof ? 1 / 1024. : 1e-9;
  ni_buffer_put(out, ",\"gpu_bandwidth\":[");
  bool first = true;
  for (size_t i = 0; i < t->of[NI_GPUS].n; i++) {
    const struct ni_sample_gpu *g = t->at[NI_GPUS][i];
    if (!g || !isfinite(g->nvlink_rx + g->nvlink_tx))
      continue;
    ni_buffer_put(out, "%s{\"id1\":%s,\"id2\":\"NVLink\"", first ? "" : ",", t->of[NI_GPUS].at[i].id);
    put_number(out, "utilization", (g->nvlink_rx + g->nvlink_tx) * scale);
    put_number(out, "rx", g->nvlink_rx * scale);
    put_number(out, "tx", g->nvlink_tx * scale);
    ni_buffer_put(out, "}");
    first = false;
  }
  ni_buffer_put(out, "]");
}

static void put_jobs(const struct ni_frame *f, struct ni_buffer *out) {
  size_t empty = (ni_buffer_put(out, ",\"jobs\":["), out->n);
  for (size_t i = 0; i < f->n; i++)
    for (uint32_t j = 0; f->of[i].sample && j < f->of[i].sample->n_jobs; j++) {
      if (out->n > empty)
        ni_buffer_put(out, ",");
      put_job(&f->of[i], &f->of[i].sample->job[j], out);
    }
  ni_buffer_put(out, "]");
}

void ni_frame_put(struct ni_frame_text *t, const struct ni_frame *f, struct ni_buffer *out) {
  char time[40];
  for (size_t i = 0; i < f->n; i++)
    if (!learn(t, f->of[i].client, f->of[i].sample ? f->of[i].sample : f->of[i].client->last))
      out->failed = true;
  for (int g = 0; g < NI_GROUPS; g++) {
    size_t n = t->of[g].n;
    if (n > t->cap_at[g] && !ni_array_more(&t->at[g], &t->cap_at[g], n, sizeof *t->at[g]))
      out->failed = true;
    else if (n)
      memset(t->at[g], 0, n * sizeof *t->at[g]);
  }
  if (out->failed)
    return;
  for (size_t i = 0; i < f->n; i++)
    stand(t, &f->of[i]);
  if (t->gsprof)
    ni_buffer_put(out, "\"time\":\"%s.%06u\"", ni_second_text(f->tick_ns / 1000000000, 'T', true, time),
                  (unsigned)(f->tick_ns % 1000000000 / 1000));
  else
    ni_buffer_put(out, "\"time\":\"%s\"", ni_utc_text(f->tick_ns / 1000, 'T', 6, time));
  for (int g = 0; g < NI_GROUPS; g++)
    if (!t->gsprof || g != NI_NICS)
      put_ids(&t->of[g], id_key[g], out);
  for (const struct key *k = keys; k < keys + sizeof keys / sizeof *keys; k++)
    if (k->when == ALWAYS || (k->when == BANDWIDTH ? t->bandwidth : !t->gsprof))
      put_key(t, k, out);
  if (t->bandwidth || t->nvlink)
    put_nvlinks(t, out);
  if (!t->gsprof)
    put_jobs(f, out);
  ni_buffer_put(out, "}");
}

void ni_late_put(struct ni_frame_text *late, struct ni_frame_text *frames, const struct ni_frame_client *of,
                 int64_t tick_ns, struct ni_buffer *out) {
  struct ni_frame_client alone = *of;
  struct ni_client one = *of->client;
  const struct ni_frame f = {.tick_ns = tick_ns, .n = 1, .of = &alone};
  alone.client = &one;
  one.number = 0; /* its columns are of this line alone */
  ni_frame_put(late, &f, out);
  if (!learn(frames, of->client, of->sample))
    out->failed = true;
  if (out->failed)
    return;
  const struct ni_known *here = late->known[0], *there = frames->known[of->client->number];
  out->n--; /* the bracket */
  /* Columns of the line are in the order in which the client names them, as those of its frames are. */
  ni_buffer_put(out, ",\"gpu_behind\":[");
  for (uint32_t i = 0; i < here->n_gpus; i++) {
    uint32_t j = 0;
    while (j < there->n_gpus && there->gpu[j].index != here->gpu[i].index)
      j++;
    ni_buffer_put(out, "%s%u", i ? "," : "",
                  j < there->n_gpus ? behind(&frames->of[NI_GPUS], there->gpu[j].column) : 0);
  }
  ni_buffer_put(out, "],\"nic_behind\":[");
  for (uint32_t i = 0; i < here->n_nics; i++) {
    uint32_t j = 0;
    while (j < there->n_nics && strcmp(there->nic[j].name, here->nic[i].name))
      j++;
    ni_buffer_put(out, "%s%u", i ? "," : "",
                  j < there->n_nics ? behind(&frames->of[NI_NICS], there->nic[j].column) : 0);
  }
  ni_buffer_put(out, "]}");
}

void ni_frame_text_free(struct ni_frame_text *t) {
  for (int g = 0; g < NI_GROUPS; g++) {
    for (size_t i = 0; i < t->of[g].n; i++)
      free(t->of[g].at[i].id);
    free(t->of[g].at);
    free(t->at[g]);
  }
  for (size_t i = 0; i < t->cap_known; i++)
    free(t->known[i]);
  free(t->known);
  *t = (struct ni_frame_text){.gsprof = t->gsprof, .bandwidth = t->bandwidth, .nvlink = t->nvlink};
}
