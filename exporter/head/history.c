#include "history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/json_write.h"

enum { JOBS = 32 }; /* of a point; more are left out */
struct job_sums {   /* over its nodes */
  char job[64], attempt[16];
  uint32_t uid;
  double bytes, seconds;
};
struct sums {
  double util, pcie, nvlink, nic, oldest;
  size_t with_util, n;
  struct job_sums job[JOBS];
};

static void add(double *sum, double value) {
  if (!isnan(value))
    *sum = isnan(*sum) ? value : *sum + value;
}

static struct job_sums *find(struct job_sums *list, size_t n, const char *job, const char *attempt,
                             uint32_t uid) {
  for (size_t i = 0; i < n; i++)
    if (list[i].uid == uid && strcmp(list[i].job, job) == 0 && strcmp(list[i].attempt, attempt) == 0)
      return &list[i];
  return NULL;
}

static void add_job(struct sums *s, const struct ni_sample_job *b) {
  struct job_sums *j = find(s->job, s->n, b->job, b->attempt, b->uid);
  if (!(b->oldest_s <= s->oldest))
    s->oldest = b->oldest_s;
  if (!j && s->n == JOBS)
    return;
  if (!j) {
    j = &s->job[s->n++];
    *j = (struct job_sums){.uid = b->uid};
    memcpy(j->job, b->job, sizeof j->job);
    memcpy(j->attempt, b->attempt, sizeof j->attempt);
  }
  j->bytes += b->bus_got;
  j->seconds += b->bus_took;
}

static void add_sample(struct sums *s, const struct ni_sample *of) {
  for (uint32_t i = 0; i < of->n_gpus; i++) {
    const struct ni_sample_gpu *g = &of->gpu[i];
    s->with_util += !isnan(g->util);
    add(&s->util, g->util);
    add(&s->pcie, g->pcie_rx);
    add(&s->pcie, g->pcie_tx);
    add(&s->nvlink, g->nvlink_rx);
    add(&s->nvlink, g->nvlink_tx);
  }
  for (uint32_t i = 0; i < of->n_nics; i++) {
    add(&s->nic, of->nic[i].rx);
    add(&s->nic, of->nic[i].tx);
  }
  for (uint32_t i = 0; i < of->n_jobs; i++)
    add_job(s, &of->job[i]);
}

void ni_history_take(struct ni_history *h, const struct ni_core *c) {
  struct sums s = {.util = NAN, .pcie = NAN, .nvlink = NAN, .nic = NAN, .oldest = NAN};
  struct ni_client *const *client;
  struct ni_json j;
  char **point = &h->point[h->n % NI_HISTORY_POINTS];
  size_t n = ni_grid_clients(c->grid, &client), len;
  for (size_t i = 0; i < n; i++)
    if (client[i]->connected && client[i]->taken && client[i]->state == NI_CLIENT_OK)
      add_sample(&s, client[i]->last);
  free(*point);
  *point = NULL;
  FILE *f = open_memstream(point, &len);
  if (!f)
    return;
  ni_json_open(&j, f, NULL);
  ni_json_seconds(&j, "time", c->now_ns);
  ni_json_rounded(&j, "util", s.util * 100 / (double)s.with_util, 6);
  ni_json_rounded(&j, "pcie", s.pcie / 1e9, 6);
  ni_json_rounded(&j, "nvlink", s.nvlink / 1e9, 6);
  ni_json_rounded(&j, "nic", s.nic / 1e9, 6);
  ni_json_rounded(&j, "oldest", s.oldest, 6);
  NI_JSON_ARRAY (&j, "jobs")
    for (size_t i = 0; i < s.n; i++)
      NI_JSON_OBJECT (&j, NULL) {
        ni_json_text(&j, "job_id", s.job[i].job);
        ni_json_text(&j, "attempt", s.job[i].attempt);
        ni_json_u64(&j, "uid", s.job[i].uid);
        ni_json_rounded(&j, "busbw", s.job[i].bytes / s.job[i].seconds / 1e9, 6);
      }
  ni_json_end_object(&j);
  if (fclose(f) != 0) {
    free(*point);
    *point = NULL;
  }
  h->n += *point != NULL;
}

void ni_history_put(const struct ni_history *h, size_t points, FILE *f) {
  const char *between = "";
  for (uint64_t i = h->n > points ? h->n - points : 0; i < h->n; i++) {
    const char *point = h->point[i % NI_HISTORY_POINTS];
    if (point) {
      fputs(between, f);
      fputs(point, f);
      between = ",";
    }
  }
}

void ni_history_free(struct ni_history *h) {
  for (size_t i = 0; i < NI_HISTORY_POINTS; i++)
    free(h->point[i]);
}
