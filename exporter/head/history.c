#include "history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/json_write.h"

struct sums {
  double util, pcie, nvlink, nic, oldest;
  size_t with_util, n;
  struct ni_history_job job[NI_HISTORY_JOBS];
};

static void add(double *sum, double value) {
  if (!isnan(value)) *sum = isnan(*sum) ? value : *sum + value;
}

static struct ni_history_job *find(struct ni_history_job *list, size_t n, const char *job, const char *attempt, uint32_t uid) {
  for (size_t i = 0; i < n; i++)
    if (list[i].uid == uid && strcmp(list[i].job, job) == 0 && strcmp(list[i].attempt, attempt) == 0) return &list[i];
  return NULL;
}

static void add_job(struct sums *s, const struct ni_sample_job *b) {
  struct ni_history_job *j = find(s->job, s->n, b->job, b->attempt, b->uid);
  if (!(b->oldest_s <= s->oldest)) s->oldest = b->oldest_s;
  if (!j && s->n == NI_HISTORY_JOBS) return;
  if (!j) {
    j = &s->job[s->n++];
    *j = (struct ni_history_job){.uid = b->uid};
    memcpy(j->job, b->job, sizeof j->job), memcpy(j->attempt, b->attempt, sizeof j->attempt);
  }
  j->nodes++;
  add(&j->bytes, b->bus_bytes), add(&j->seconds, b->bus_seconds);
}

static void add_sample(struct sums *s, const struct ni_sample *of) {
  for (uint32_t i = 0; i < of->n_gpus; i++) {
    const struct ni_sample_gpu *g = &of->gpu[i];
    s->with_util += !isnan(g->util);
    add(&s->util, g->util);
    add(&s->pcie, g->pcie_rx), add(&s->pcie, g->pcie_tx);
    add(&s->nvlink, g->nvlink_rx), add(&s->nvlink, g->nvlink_tx);
  }
  for (uint32_t i = 0; i < of->n_nics; i++) add(&s->nic, of->nic[i].rx), add(&s->nic, of->nic[i].tx);
  for (uint32_t i = 0; i < of->n_jobs; i++) add_job(s, &of->job[i]);
}

/* What finished since the news before, of jobs whose nodes are the same: who comes brings all that it counted so far. */
static void measure(struct ni_history *h, struct ni_history_job *now, int64_t now_ns) {
  const struct ni_history_job *was = find(h->before, h->n_before, now->job, now->attempt, now->uid);
  bool same = was && was->nodes == now->nodes, news = same && now->seconds > was->seconds;
  bool holds = same && now->seconds == was->seconds && now_ns - was->news_ns < 3 * INT64_C(1000000000);
  now->news_ns = holds ? was->news_ns : now_ns;
  now->bandwidth = news ? (now->bytes - was->bytes) / (now->seconds - was->seconds) : holds ? was->bandwidth : NAN;
}

void ni_history_take(struct ni_history *h, const struct ni_core *c) {
  struct sums s = {.util = NAN, .pcie = NAN, .nvlink = NAN, .nic = NAN, .oldest = NAN};
  struct ni_client *const *client;
  struct ni_json j;
  char **point = &h->point[h->n % NI_HISTORY_POINTS];
  size_t n = ni_grid_clients(c->grid, &client), len;
  for (size_t i = 0; i < n; i++)
    if (client[i]->connected && client[i]->taken && client[i]->state == NI_CLIENT_OK) add_sample(&s, client[i]->last);
  free(*point);
  *point = NULL;
  FILE *f = open_memstream(point, &len);
  if (!f) return;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  ni_json_seconds(&j, "time", c->now_ns);
  ni_json_rounded(&j, "util", s.util * 100 / (double)s.with_util, 6);
  ni_json_rounded(&j, "pcie", s.pcie / 1e9, 6);
  ni_json_rounded(&j, "nvlink", s.nvlink / 1e9, 6);
  ni_json_rounded(&j, "nic", s.nic / 1e9, 6);
  ni_json_rounded(&j, "oldest", s.oldest, 6);
  ni_json_array(&j, "jobs");
  for (size_t i = 0; i < s.n; i++) {
    measure(h, &s.job[i], c->now_ns);
    ni_json_object(&j, NULL);
    ni_json_text(&j, "job_id", s.job[i].job);
    ni_json_text(&j, "attempt", s.job[i].attempt);
    ni_json_u64(&j, "uid", s.job[i].uid);
    ni_json_rounded(&j, "busbw", s.job[i].bandwidth / 1e9, 6);
    ni_json_end_object(&j);
  }
  ni_json_end_array(&j);
  ni_json_end_object(&j);
  if (fclose(f) != 0) free(*point), *point = NULL;
  h->n += *point != NULL;
  memcpy(h->before, s.job, sizeof s.job);
  h->n_before = s.n;
}

void ni_history_put(const struct ni_history *h, size_t points, FILE *f) {
  const char *between = "";
  for (uint64_t i = h->n > points ? h->n - points : 0; i < h->n; i++) {
    const char *point = h->point[i % NI_HISTORY_POINTS];
    if (point) fputs(between, f), fputs(point, f), between = ",";
  }
}

void ni_history_free(struct ni_history *h) {
  for (size_t i = 0; i < NI_HISTORY_POINTS; i++) free(h->point[i]);
}
