/*
 * Chunks of time; for each a query a number: what nodes have is learnt from all answers, then samples are
 * filled, then frames are made of them by what makes the head's (exporter/session/frame_text.h).
 */
#include "prometheus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "exporter/base/array.h"
#include "exporter/base/map.h"
#include "exporter/base/now.h"
#include "exporter/base/text/put.h"
#include "exporter/http/fetch.h"
#include "exporter/session/recover.h"

enum { STEPS = 60, STEPS_MAX = 1000000 };
enum kind { HOST, GPU, NIC, JOB };
#define P "nccl_inspector_"
#define BY_JOB "by(node,job_id,attempt)(" P
/* Of the two newest samples: a series that is younger than the window is not understated. */
#define RATE(family) "irate(" P family "_total[%s])"
#define AT(type, member) offsetof(struct ni_sample##type, member)
enum { AS_DOUBLE, AS_COUNT, AS_ALIVE, AS_USED };
static const struct query {
  enum kind kind;
  size_t at;
  int as;
  const char *text; /* %s: what rates look back over */
} queries[] = {
    {HOST, 0, AS_ALIVE, P "agent_start_time_seconds"},
    {HOST, AT(, cpu), AS_DOUBLE,
     "1-sum by(node)(irate(" P
     "host_cpu_seconds_total{mode=\"idle\"}[%s]))/sum by(node)(" RATE("host_cpu_seconds") ")"},
    {GPU, AT(_gpu, util), AS_DOUBLE, P "gpu_utilization_ratio"},
    {GPU, AT(_gpu, power_w), AS_DOUBLE, P "gpu_power_watts"},
    {GPU, AT(_gpu, memory), AS_DOUBLE,
     P "gpu_memory_used_bytes/on(node,gpu)" P "gpu_level{name=\"memory_total\"}"},
    {GPU, AT(_gpu, temperature_c), AS_DOUBLE, P "gpu_temperature_celsius"},
    {GPU, AT(_gpu, sm_hz), AS_DOUBLE, P "gpu_sm_clock_hertz"},
    {GPU, AT(_gpu, nvlink_rx), AS_DOUBLE, RATE("gpu_nvlink_receive_bytes")},
    {GPU, AT(_gpu, nvlink_tx), AS_DOUBLE, RATE("gpu_nvlink_transmit_bytes")},
    {NIC, AT(_nic, rx), AS_DOUBLE, RATE("nic_receive_bytes")},
    {NIC, AT(_nic, tx), AS_DOUBLE, RATE("nic_transmit_bytes")},
    {NIC, AT(_nic, link), AS_DOUBLE, P "nic_link_bytes_per_second"},
    {JOB, AT(_job, operations), AS_COUNT, "sum " BY_JOB "operations_total)"},
    {JOB, AT(_job, bytes), AS_COUNT, "sum " BY_JOB "message_bytes_total)"},
    {JOB, AT(_job, bus_bytes), AS_DOUBLE, "sum " BY_JOB "bus_bytes_total)"},
    {JOB, AT(_job, bus_seconds), AS_DOUBLE, "sum " BY_JOB "bus_seconds_total)"},
    {JOB, AT(_job, in_flight), AS_COUNT, "sum " BY_JOB "in_flight_operations)"},
    {JOB, AT(_job, stuck), AS_COUNT, "sum " BY_JOB "stuck_operations)"},
    {JOB, AT(_job, oldest_s), AS_DOUBLE, "max " BY_JOB "oldest_in_flight_seconds)"},
    {JOB, 0, AS_USED, "max " BY_JOB "job_processes)"},
};
enum { QUERIES = sizeof queries / sizeof *queries };

struct node {
  struct ni_client client;
  struct ni_sample *shape;     /* what it has: names alone */
  struct ni_sample *at[STEPS]; /* of this chunk */
  struct ni_rates rates;
  bool alive[STEPS];
};
struct export {
  const struct ni_session_options *o;
  struct node **node;
  size_t n, cap;
  struct ni_map names;
  const struct query *q;
  bool fill;       /* the second pass */
  int64_t from_ns; /* of the chunk */
  size_t steps;
  char *text[QUERIES];
  size_t bytes[QUERIES];
  char error[512];
};

static struct node *node_of(struct export *x, const char *name) {
  int64_t at = ni_map_find_or_add(&x->names, ni_hash_text(1, name), 0, (uint32_t)x->n);
  if (at >= 0 && (size_t)at < x->n)
    return x->node[at];
  struct node *n = at < 0 || x->n >= NI_GRID_CLIENTS_MAX || !ni_array_room(x->node, x->n, x->cap)
      ? NULL
      : calloc(1, sizeof *n);
  if (!n || !(n->shape = ni_sample_new(NI_SAMPLE_GPUS_MAX, NI_SAMPLE_NICS_MAX, NI_SAMPLE_JOBS_MAX, 0))) {
    free(n);
    return NULL;
  }
  n->shape->n_gpus = n->shape->n_nics = n->shape->n_jobs = 0;
  n->client.number = (uint32_t)x->n;
  snprintf(n->client.host, sizeof n->client.host, "%s", name);
  snprintf(n->client.id, sizeof n->client.id, "%.250s_prometheus", name);
  return x->node[x->n++] = n;
}

/* The place of a GPU, NIC or job among those of its node; -1: there are too many. */
static int place(struct ni_sample *s, enum kind kind, const char *const *label) {
  uint32_t i = 0;
  int32_t index = (int32_t)strtol(label[1], NULL, 10);
  if (kind == GPU) {
    while (i < s->n_gpus && s->gpu[i].index != index)
      i++;
    if (i == NI_SAMPLE_GPUS_MAX)
      return -1;
    if (i == s->n_gpus) {
      s->gpu[s->n_gpus++].index = index;
      snprintf(s->gpu[i].name, sizeof s->gpu[i].name, "GPU");
    }
  } else if (kind == NIC) {
    while (i < s->n_nics && strncmp(s->nic[i].name, label[2], sizeof s->nic->name - 1) != 0)
      i++;
    if (i == NI_SAMPLE_NICS_MAX)
      return -1;
    if (i == s->n_nics)
      snprintf(s->nic[s->n_nics++].name, sizeof s->nic->name, "%s", label[2]);
  } else if (kind == JOB) {
    while (i < s->n_jobs &&
           (strncmp(s->job[i].job, label[3], sizeof s->job->job - 1) != 0 ||
            strncmp(s->job[i].attempt, label[4], sizeof s->job->attempt - 1) != 0))
      i++;
    if (i == NI_SAMPLE_JOBS_MAX)
      return -1;
    if (i == s->n_jobs) {
      snprintf(s->job[i].job, sizeof s->job->job, "%s", label[3]);
      snprintf(s->job[s->n_jobs++].attempt, sizeof s->job->attempt, "%s", label[4]);
    }
  }
  return (int)i;
}

static void put(struct export *x, struct node *n, size_t step, int at, double v) {
  struct ni_sample *s = n->at[step];
  char *item = x->q->kind == GPU ? (char *)(s->gpu + at)
      : x->q->kind == NIC        ? (char *)(s->nic + at)
      : x->q->kind == JOB        ? (char *)(s->job + at)
                                 : (char *)s;
  uint64_t count = v >= 0 && v < 1e18 ? (uint64_t)v : 0;
  if (x->q->as == AS_ALIVE)
    n->alive[step] = true;
  else if (x->q->as == AS_USED) {
    s->job[at].processes = (uint32_t)count;
    s->job[at].uid = 1;
  } else if (x->q->as == AS_COUNT)
    memcpy(item + x->q->at, &count, sizeof count);
  else
    memcpy(item + x->q->at, &v, sizeof v);
}

/* A series: node, gpu, nic, job_id, attempt, "time, value, time, value". */
static void take_series(void *arg, const char *const *cell) {
  struct export *x = arg;
  struct node *n = *cell[0] ? node_of(x, cell[0]) : NULL;
  int at = n ? place(n->shape, x->q->kind, cell) : -1;
  if (at < 0 || !x->fill)
    return;
  for (const char *p = cell[5], *end; *p; p = end + strspn(end, ", ")) {
    double time = strtod(p, (char **)&end),
           v = end == p ? NAN : strtod(end + strspn(end, ", "), (char **)&end);
    if (end == p)
      return;
    double step = (time - (double)x->from_ns / 1e9) / ((double)x->o->every_ns / 1e9) + 0.5;
    if (step >= 0 && step < (double)x->steps && v > -1e18 && v < 1e18)
      put(x, n, (size_t)step, at, v);
  }
}

static void take_answer(void *arg, size_t i, const char *text, size_t bytes, const char *error) {
  struct export *x = arg;
  size_t k = (size_t)(x->q - queries);
  if (error)
    snprintf(x->error, sizeof x->error, "%s", error);
  else if (!(x->text[k] = malloc(bytes)))
    snprintf(x->error, sizeof x->error, "no memory");
  else
    memcpy(x->text[k], text, x->bytes[k] = bytes);
}

static bool ask(struct export *x, const char *token) {
  char path[4096], text[1024], window[32];
  double every = (double)x->o->every_ns / 1e9, from = (double)x->from_ns / 1e9;
  snprintf(window, sizeof window, "%.0fs", fmax(60, ceil(4 * every)));
  for (x->q = queries; x->q < queries + QUERIES && !*x->error; x->q++) {
    struct ni_put_text w = {path, sizeof path}, t = {text, sizeof text};
    for (const char *c = x->q->text; *c; c++) /* every %s */
      if (*c == '%') {
        ni_put(&t, "%s", window);
        c++;
      } else
        ni_put(&t, "%c", *c);
    ni_put(&w, "/api/v1/query_range?start=%.3f&end=%.3f&step=%.3f&query=", from,
           from + every * ((double)x->steps - 0.5), every);
    ni_fetch_query(&w, text);
    char *url = ni_fetch_url(x->o->prometheus, false, 9090, path);
    const struct ni_fetch_as as = {.token = *token ? token : NULL, .ca = x->o->ca};
    if (!url || ni_fetch_once(url, NULL, &as, take_answer, x) < 0)
      snprintf(x->error, sizeof x->error, "no memory");
    free(url);
  }
  return !*x->error;
}

static bool read_answers(struct export *x, bool fill) {
  static const char *const key[] = {"/metric/node",   "/metric/gpu",     "/metric/nic",
                                    "/metric/job_id", "/metric/attempt", "values"};
  x->fill = fill;
  for (x->q = queries; x->q < queries + QUERIES; x->q++) {
    size_t k = (size_t)(x->q - queries);
    if (ni_answer_rows(x->text[k], x->bytes[k], "/data/result", key, sizeof key / sizeof *key, take_series,
                       x) < 0) {
      snprintf(x->error, sizeof x->error, "it is no Prometheus: want data.result in its answer");
      return false;
    }
  }
  return true;
}

static bool make_samples(struct export *x) {
  for (size_t i = 0; i < x->n; i++)
    for (size_t k = 0; k < x->steps; k++) {
      const struct ni_sample *have = x->node[i]->shape;
      struct ni_sample *s = x->node[i]->at[k] = ni_sample_new(have->n_gpus, have->n_nics, have->n_jobs, 0);
      if (!s) {
        snprintf(x->error, sizeof x->error, "no memory");
        return false;
      }
      for (uint32_t g = 0; g < s->n_gpus; g++) {
        s->gpu[g].index = have->gpu[g].index;
        memcpy(s->gpu[g].name, have->gpu[g].name, sizeof s->gpu->name);
      }
      for (uint32_t g = 0; g < s->n_nics; g++)
        memcpy(s->nic[g].name, have->nic[g].name, sizeof s->nic->name);
      memcpy(s->job, have->job, have->n_jobs * sizeof *s->job);
      s->time_ns = x->from_ns + (int64_t)(k * x->o->every_ns);
      x->node[i]->alive[k] = false;
    }
  return true;
}

static bool write_frames(struct export *x, struct ni_frame_text *text, struct ni_sums *sums, uint64_t *id,
                         FILE *f) {
  struct ni_buffer out = {0};
  struct ni_frame frame = {.of = calloc(x->n + 1, sizeof *frame.of), .n = x->n};
  bool good = frame.of != NULL;
  for (size_t k = 0; k < x->steps && good; k++) {
    frame.tick_ns = x->from_ns + (int64_t)(k * x->o->every_ns);
    for (size_t i = 0; i < x->n; i++) {
      struct node *n = x->node[i];
      struct ni_sample *s = n->at[k];
      uint32_t jobs = 0;
      for (uint32_t j = 0; j < s->n_jobs; j++) /* those that were there then */
        if (s->job[j].uid) {
          s->job[j].uid = 0;
          s->job[j].state = s->job[j].stuck > 0;
          memmove(s->job + jobs++, s->job + j, sizeof *s->job);
        }
      s->n_jobs = jobs;
      if (n->alive[k])
        ni_rates_take(&n->rates, s);
      n->client.last = n->shape;
      frame.of[i] = (struct ni_frame_client){.client = &n->client,
                                             .sample = n->alive[k] ? s : NULL,
                                             .age_ns = n->alive[k] ? 0 : INT64_MAX,
                                             .state = n->alive[k] ? NI_CLIENT_OK : NI_CLIENT_GONE};
    }
    out.n = 0;
    ni_buffer_put(&out, "%s{\"frame_id\":%llu,", *id ? ",\n" : "", (unsigned long long)*id + 1);
    ni_frame_put(text, &frame, &out);
    good = !out.failed && ni_frame_sum(text, sums) && fwrite(out.text, 1, out.n, f) == out.n;
    ++*id;
  }
  for (size_t i = 0; i < x->n; i++) {
    struct node *n = x->node[i];
    for (size_t k = 0; k < x->steps; k++)
      free(n->at[k]);
    memset(n->at, 0, sizeof n->at);
    n->shape->n_jobs = 0;
  }
  if (!good)
    snprintf(x->error, sizeof x->error, "%s", strerror(errno ? errno : ENOMEM));
  free(frame.of);
  free(out.text);
  return good;
}

int ni_prometheus_export(const struct ni_session_options *o, FILE *f, char *why, size_t cap) {
  struct export x = {.o = o};
  struct ni_state state = {.period_ns = (int64_t)o->every_ns};
  struct ni_frame_text text = {.bandwidth = true, .nvlink = true};
  struct ni_sums sums = {0};
  struct ni_buffer ends = {0};
  int64_t now_us = (int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000), every = (int64_t)o->every_ns;
  int64_t from = ni_when_resolve(&o->since, now_us, now_us, now_us) * 1000 / every * every,
          until = ni_when_resolve(&o->until, now_us, now_us, now_us) * 1000;
  char token[NI_FETCH_TOKEN];
  uint64_t frames = 0;
  const char *wrong = ni_fetch_token(o->token_file, token);
  if (!wrong && !ni_session_name(o->name))
    wrong = "a session may not have this name";
  if (!wrong && (until <= from || (until - from) / every > STEPS_MAX))
    wrong = "--since, --until: want an end after the beginning, and 1,000,000 frames at most";
  if (wrong)
    snprintf(x.error, sizeof x.error, "%s", wrong);
  snprintf(state.session.name, sizeof state.session.name, "%s", o->name);
  snprintf(state.session.id, sizeof state.session.id, "prometheus");
  state.session.start_ns = from;
  state.session.end_ns = until;
  ni_file_head(&ends, &state);
  if (!*x.error && !ends.failed)
    fwrite(ends.text, 1, ends.n, f);
  for (x.from_ns = from; !*x.error && x.from_ns < until; x.from_ns += STEPS * every) {
    int64_t left = (until - x.from_ns + every - 1) / every;
    x.steps = left < STEPS ? (size_t)left : STEPS;
    bool good = ask(&x, token) && read_answers(&x, false) && make_samples(&x) && read_answers(&x, true) &&
        write_frames(&x, &text, &sums, &frames, f);
    for (int k = 0; k < QUERIES; k++) {
      free(x.text[k]);
      x.text[k] = NULL;
    }
    if (!good)
      break;
  }
  ends.n = 0;
  ni_file_tail(&ends, &state, text.of, &sums);
  if (!*x.error && !ends.failed)
    fwrite(ends.text, 1, ends.n, f);
  if (!*x.error && !x.n)
    snprintf(x.error, sizeof x.error, "it has nothing of agents in that time");
  for (size_t i = 0; i < x.n; i++) {
    for (size_t k = 0; k < STEPS; k++)
      free(x.node[i]->at[k]);
    ni_rates_free(&x.node[i]->rates);
    free(x.node[i]->shape);
    free(x.node[i]);
  }
  free(x.node);
  ni_map_free(&x.names);
  ni_frame_text_free(&text);
  ni_sums_free(&sums);
  free(ends.text);
  snprintf(why, cap, "%s", x.error);
  return *x.error ? -1 : 0;
}
