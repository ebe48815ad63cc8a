#include "truth.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "exporter/base/text/json_write.h"
#include "lines.h"
#include "suspects.h"
#include "test/jobs/model/exposed.h"
#include "test/jobs/plan/fault.h"
#include "test/jobs/plan/layout.h"

void nj_truth_incident(void *truth, const struct nj_incident *i) {
  struct nj_truth *t = truth;
  if (t->n_incidents == t->cap_incidents) {
    t->cap_incidents = t->cap_incidents ? 2 * t->cap_incidents : 64;
    t->incident = nj_more(t->incident, (unsigned)t->cap_incidents * sizeof *t->incident);
  }
  t->incident[t->n_incidents++] = *i;
}

static double in_s(double ns) { return round(ns) / 1e9; }

/* The step, with decimals, in which a moment of true time lies. */
static double step_at(const struct nj_truth *t, double at) {
  int i = 0, n = t->job->steps;
  while (i + 1 < n && t->begin[i + 1] <= at)
    i++;
  double to = i + 1 < n ? t->begin[i + 1] : t->with;
  return i + fmin(1, fmax(0, (at - t->begin[i]) / fmax(1, to - t->begin[i])));
}

static void put_pairs(struct ni_json *j, const char *name, const struct nj_truth *t, const struct nj_fault *f,
                      bool steps) {
  ni_json_array(j, name);
  for (int i = 0; i < f->n_spans; i++) {
    double from = f->from[i], to = f->to[i];
    ni_json_array(j, NULL);
    ni_json_f64(j, NULL, !steps ? in_s(from) : f->timed ? step_at(t, from) : from);
    ni_json_f64(j, NULL, !steps ? in_s(to) : f->timed ? step_at(t, to) : to);
    ni_json_end_array(j);
  }
  ni_json_end_array(j);
}

static void put_spans(struct ni_json *j, const struct nj_truth *t, const struct nj_fault *f) {
  double first = f->n_spans ? f->from[0] : 0, last = f->n_spans ? f->to[f->n_spans - 1] : t->job->steps;
  if (f->timed) {
    first = step_at(t, first);
    last = step_at(t, last);
  }
  ni_json_i64(j, "onset_step", (int64_t)first);
  if (last < t->job->steps)
    ni_json_i64(j, "end_step", (int64_t)last);
  else
    ni_json_text(j, "end_step", NULL);
  put_pairs(j, "spans", t, f, true);
  if (f->timed)
    put_pairs(j, "moments_s", t, f, false);
}

/* What the finding is to be of kinds that have more to say than who and how much. */
static void put_about(struct ni_json *j, const struct nj_truth *t, const struct nj_fault *f) {
  static const char *const findings[NJ_KINDS] = {
      [NJ_GC] = "periodic_work",    [NJ_CHECKPOINT] = "periodic_work", [NJ_EVALUATION] = "periodic_work",
      [NJ_PAUSES] = "rank_pauses",  [NJ_FLAP] = "flapping_link",       [NJ_THROTTLE] = "throttling",
      [NJ_REPLICA] = "uneven_work", [NJ_UNEVEN] = "uneven_work"};
  bool note = f->kind == NJ_CHECKPOINT || f->kind == NJ_EVALUATION || f->kind == NJ_REPLICA;
  ni_json_text(j, "class", note ? "note" : f->kind == NJ_UNEVEN || f->kind == NJ_INFERENCE ? "any" : "fault");
  if (findings[f->kind])
    ni_json_text(j, "finding", findings[f->kind]);
  if (f->period) {
    ni_json_i64(j, "period_steps", f->period);
    ni_json_i64(j, "first_step", f->phase ? f->phase : f->period);
    ni_json_f64(j, "length_s", in_s(f->x));
  }
  if (f->kind == NJ_FLAP)
    ni_json_text(j, "thing", nj_kind_names[f->thing]);
  if (f->kind != NJ_THROTTLE)
    return;
  double in = 0;
  for (int i = 0; i < f->n_spans; i++)
    in += f->to[i] - f->from[i];
  ni_json_f64(j, "share", in / t->job->steps);
}

static void put_culprit(struct ni_json *j, const struct nj_truth *t, int which) {
  const struct nj_job *job = t->job;
  const struct nj_fault *f = &job->fault[which];
  char host[16];
  ni_json_object(j, NULL);
  ni_json_text(j, "kind", nj_kind_names[f->kind]);
  ni_json_text(j, "level", nj_level(f));
  ni_json_f64(j, "strength", nj_in_seconds(f->kind) ? f->x / 1e9 : f->x);
  if (f->rank >= 0)
    ni_json_i64(j, "rank", f->rank);
  if (f->rank_b >= 0)
    ni_json_i64(j, "rank_b", f->rank_b);
  int at = f->rank >= 0 ? job->rank[f->rank].host : f->host;
  if (at >= 0)
    ni_json_text(j, "host", nj_host_name(at, host));
  if (f->host_b >= 0)
    ni_json_text(j, "host_b", nj_host_name(f->host_b, host));
  ni_json_f64(j, "cost_s", in_s(t->cost[which]));
  ni_json_f64(j, "cost_percent", 100 * t->cost[which] / t->with);
  ni_json_bool(j, "identifiable", nj_identifiable(job, f));
  put_spans(j, t, f);
  put_about(j, t, f);
  nj_suspects(j, job, f);
  ni_json_end_object(j);
}

static void put_hosts(struct ni_json *j, const struct nj_job *job) {
  ni_json_array(j, "hosts");
  for (int h = 0; h < job->hosts; h++) {
    char name[16];
    ni_json_object(j, NULL);
    ni_json_text(j, "name", nj_host_name(h, name));
    ni_json_f64(j, "clock_offset_ns", nj_host_offset_ns(job, h));
    ni_json_f64(j, "clock_drift_ppm", nj_host_drift_ppm(job, h));
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

static void put_weather(struct ni_json *j, const struct nj_truth *t) {
  const struct nj_job *job = t->job;
  const struct nj_weather *w = &job->weather;
  char host[16];
  ni_json_object(j, "weather");
  if (w->overlap_ns > 0)
    ni_json_f64(j, "overlap_us", w->overlap_ns / 1e3);
  if (w->timer_ns > 0)
    ni_json_i64(j, "timer_ns", w->timer_ns);
  if (w->drift_ppm > NJ_DRIFT_PPM)
    ni_json_f64(j, "drift_ppm", w->drift_ppm);
  if (w->offset_s > NJ_OFFSET_S)
    ni_json_f64(j, "host_offset_s", w->offset_s);
  if (w->step_s != 0) {
    ni_json_f64(j, "clock_step_s", w->step_s);
    ni_json_text(j, "clock_step_host", nj_host_name(w->step_host, host));
    ni_json_f64(j, "clock_step_at_s", in_s(w->step_ns));
  }
  if (w->sample > 1)
    ni_json_i64(j, "sample", w->sample);
  if (w->min_bytes > 0)
    ni_json_f64(j, "min_bytes", w->min_bytes);
  if (w->no_p2p)
    ni_json_bool(j, "no_p2p", true);
  if (w->symmetric)
    ni_json_bool(j, "symmetric", true);
  if (w->tokens > 0)
    ni_json_f64(j, "tokens", w->tokens);
  if (w->experts > 0 && job->grouped_all_to_all)
    ni_json_f64(j, "experts", w->experts);
  if (w->stages && job->pp > 1)
    ni_json_bool(j, "stages", true);
  if (w->missing) {
    ni_json_array(j, "missing_ranks");
    for (int r = 0; r < job->world; r++)
      if (job->missing[r])
        ni_json_i64(j, NULL, r);
    ni_json_end_array(j);
  }
  if (w->alone) {
    ni_json_array(j, "alone");
    for (int k = 0; k < job->n_comms; k++)
      if (!job->unrecorded[k])
        ni_json_hex_text(j, NULL, job->comm[k].hash);
    ni_json_end_array(j);
  }
  if (w->beside != NJ_ALONE)
    ni_json_text(j, "beside", w->beside == NJ_OTHER_JOB ? "another job" : "an earlier attempt");
  if (w->beside != NJ_ALONE)
    ni_json_f64(j, "begins_s", in_s(t->job->place.begin_ns));
  ni_json_end_object(j);
}

static void put_ranks(struct ni_json *j, const struct nj_job *job) {
  ni_json_array(j, "stages"); /* of each rank */
  for (int r = 0; r < job->world; r++)
    ni_json_i64(j, NULL, job->rank[r].pp);
  ni_json_end_array(j);
  ni_json_array(j, "delivery_ns"); /* how far each rank's GPU times are too late */
  for (int r = 0; r < job->world; r++)
    ni_json_i64(j, NULL, nj_delivery_ns(job, r));
  ni_json_end_array(j);
  ni_json_array(j, "communicators");
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    char role[2] = {c->role, 0};
    ni_json_object(j, NULL);
    ni_json_hex_text(j, "id", c->hash);
    ni_json_text(j, "name", *c->name ? c->name : NULL);
    ni_json_text(j, "role", role);
    ni_json_array(j, "ranks");
    for (int i = 0; i < c->n; i++)
      ni_json_i64(j, NULL, c->rank[i]);
    ni_json_end_array(j);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

/* [function, bytes, role, ranks], of a message also how far its peer is from the rank: peer - rank. */
static void put_call(struct ni_json *j, const struct nj_comm *c, const char *func, double bytes,
                     const int *peer) {
  const char role[2] = {c->role, 0};
  ni_json_array(j, NULL);
  ni_json_text(j, NULL, func);
  ni_json_i64(j, NULL, (int64_t)bytes);
  ni_json_text(j, NULL, role);
  ni_json_i64(j, NULL, c->n);
  if (peer)
    ni_json_i64(j, NULL, *peer);
  ni_json_end_array(j);
}

/*
 * What each rank calls in a step of training, in the order of its launches. Not of large jobs, whose truth
 * would be long.
 */
static void put_programs(struct ni_json *j, const struct nj_job *job) {
  static const char *const funcs[NJ_FUNCS] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"};
  ni_json_array(j, "programs");
  for (int r = 0; r < job->world && job->world <= 64; r++) {
    const struct nj_rank *x = &job->rank[r];
    ni_json_array(j, NULL);
    for (const struct nj_instr *i = x->code[NJ_TRAIN].instr;
         i < x->code[NJ_TRAIN].instr + x->code[NJ_TRAIN].n; i++) {
      const struct nj_comm *c = &job->comm[x->comm[i->comm]];
      if (i->what == NJ_COLL)
        put_call(j, c, funcs[i->func], i->bytes, NULL);
      for (int k = 0; i->what == NJ_P2P && k < i->parts; k++) {
        const struct nj_part *p = &x->part[i->part + k];
        const int peer = p->peer - x->member[i->comm];
        put_call(j, c, p->recv ? "Recv" : "Send", p->bytes, &peer);
      }
    }
    ni_json_end_array(j);
  }
  ni_json_end_array(j);
}

static void put_steps(struct ni_json *j, const struct nj_truth *t) {
  const struct nj_job *job = t->job;
  ni_json_array(j, "step_begin_s");
  for (int i = 0; i < job->steps; i++)
    ni_json_f64(j, NULL, in_s(t->begin[i]));
  ni_json_end_array(j);
  if (!t->exposed)
    return;
  double *ns = nj_more(NULL, (unsigned)job->steps * sizeof *ns);
  ni_json_array(j, "exposed");
  for (int i = 0; i < NJ_TRACKED; i++) {
    nj_exposed_steps(t->exposed, i, ns);
    ni_json_object(j, NULL);
    ni_json_i64(j, "rank", nj_exposed_rank(t->exposed, i));
    ni_json_array(j, "step_ns");
    for (int k = 0; k < job->steps; k++)
      ni_json_i64(j, NULL, (int64_t)ns[k]);
    ni_json_end_array(j);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  free(ns);
}

static void put_incidents(struct ni_json *j, const struct nj_truth *t) {
  ni_json_array(j, "incidents");
  for (int i = 0; i < t->n_incidents; i++) {
    ni_json_object(j, NULL);
    ni_json_i64(j, "rank", t->incident[i].rank);
    ni_json_i64(j, "step", t->incident[i].step);
    ni_json_text(j, "why", t->incident[i].why);
    ni_json_f64(j, "begin_s", in_s(t->incident[i].begin));
    ni_json_f64(j, "length_s", in_s(t->incident[i].ns));
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

void nj_truth_write(const struct nj_truth *t, const char *dir) {
  const struct nj_job *job = t->job;
  char path[512], layout[2] = {job->layout, 0};
  snprintf(path, sizeof path, "%s/truth.json", dir);
  FILE *f = fopen(path, "we");
  struct ni_json j;
  if (f) {
    ni_json_open(&j, f, "ni-jobs-truth-1");
    ni_json_text(&j, "layout", layout);
    ni_json_text(&j, "kind", nj_kind_names[job->kind]);
    ni_json_f64(&j, "size", job->size);
    ni_json_text(&j, "unit", nj_size_unit(job->kind));
    ni_json_u64(&j, "seed", job->seed);
    ni_json_i64(&j, "world", job->world);
    ni_json_i64(&j, "steps", job->steps);
    ni_json_u64(&j, "records", t->records);
    ni_json_f64(&j, "jitter", job->model.jitter);
    ni_json_i64(&j, "epoch_ns", nj_epoch(job));
    ni_json_f64(&j, "job_s", in_s(t->with));
    ni_json_f64(&j, "job_without_s", in_s(t->without));
    ni_json_f64(&j, "cost_s", in_s(t->with - t->without));
    ni_json_f64(&j, "cost_percent", 100 * (t->with - t->without) / t->with);
    put_hosts(&j, job);
    put_weather(&j, t);
    put_ranks(&j, job);
    put_programs(&j, job);
    ni_json_array(&j, "culprits");
    for (int i = 0; i < job->n_faults; i++)
      put_culprit(&j, t, i);
    ni_json_end_array(&j);
    put_steps(&j, t);
    put_incidents(&j, t);
    ni_json_close(&j);
  }
  if (f && !ferror(f) && fclose(f) == 0)
    return;
  fprintf(stderr, "ni-jobs: %s: %s\n", path, strerror(errno));
  exit(1);
}
