#include "findings_json.h"

#include <math.h>

#include "exporter/model/sums/findings.h"

/* Where the cause sits. */
static const char *find_level(const struct ni_finding *f) {
  static const char *const names[] = {"rank", "host", "stage", "replica", "communicator", "fabric", "job"};
  switch (f->kind == NI_FIND_FLAPPING ? f->link : f->kind) {
    case NI_FIND_SLOW_NVLINK:
      return "nvlink";
    case NI_FIND_SLOW_NIC:
      return f->level == NI_LEVEL_HOST ? "nic" : "rail";
    case NI_FIND_SLOW_PAIR:
      return "pair";
    default:
      return names[f->level];
  }
}

static void put_rank(struct ni_json *j, const struct ni_summary *s, const struct ni_process *p) {
  ni_json_text(j, "hostname", s->host[p->host].name);
  ni_json_i64(j, "pid", p->pid);
  if (p->ranks > 1) {
    char ranks[48];
    ni_json_text(j, "rank", NULL);
    ni_json_text(j, "ranks_in_process", ni_ranks_text(p, ranks));
  } else
    ni_json_i64(j, "rank", p->rank);
  ni_json_bool(j, "rank_stated", p->rank_stated);
  if (p->gpu >= 0)
    ni_json_i64(j, "gpu", p->gpu);
  if (p->compared)
    ni_json_f64(j, "late_share", (double)p->late / (double)p->compared);
  ni_json_u64(j, "operations", p->compared);
}

/* Whose it is: all ranks, each host once. */
static void put_whose(struct ni_json *j, const struct ni_summary *s, const struct ni_finding *f) {
  NI_JSON_ARRAY (j, "ranks")
    for (size_t i = 0; i < f->n_processes; i++)
      ni_json_i64(j, NULL, s->process[f->process[i]].rank);
  ni_json_array(j, "hosts");
  for (size_t i = 0, k; i < f->n_processes; i++) {
    for (k = 0; k < i && s->process[f->process[k]].host != s->process[f->process[i]].host; k++) {}
    if (k == i)
      ni_json_text(j, NULL, s->host[s->process[f->process[i]].host].name);
  }
  ni_json_end_array(j);
}

static void put_step(struct ni_json *j, const char *key, int64_t step) {
  if (step >= 0)
    ni_json_i64(j, key, step);
  else
    ni_json_f64(j, key, NAN);
}

/* When a flapping link was slow: the first ones. */
static void put_moments(struct ni_json *j, const struct ni_finding *f) {
  ni_json_array(j, "moments");
  for (size_t i = 0; i < f->n_moments; i++) {
    const struct ni_moment *m = &f->moment[i];
    ni_json_object(j, NULL);
    ni_json_i64(j, "step", m->from_step);
    ni_json_i64(j, "end_step", m->to_step);
    ni_json_i64(j, "from_us", m->from_us);
    ni_json_f64(j, "length_s", (double)(m->to_us - m->from_us) / 1e6);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
}

/* What is judged by own time and transfers has a cost and an interval. */
static void put_cost(struct ni_json *j, const struct ni_summary *s, const struct ni_finding *f) {
  put_whose(j, s, f);
  ni_json_f64(j, "cost_s", f->lost_us / 1e6);
  ni_json_f64(j, "cost_low_s", f->low_us / 1e6);
  ni_json_f64(j, "cost_high_s", f->high_us / 1e6);
  ni_json_f64(j, "cost_percent", 100 * f->lost_us / (f->run_us > 0 ? f->run_us : s->cost.run_us));
  ni_json_f64(j, "ratio", f->value);
  ni_json_u64(j, "alike", f->compared);
  put_step(j, "onset_step", f->from_step);
  put_step(j, "end_step", f->to_step);
  if (f->times)
    ni_json_u64(j, "times", f->times);
  if (f->period_steps)
    ni_json_u64(j, "period_steps", f->period_steps);
  if (f->each_us > 0)
    ni_json_f64(j, "length_s", f->each_us / 1e6);
  if (f->of_run > 0)
    ni_json_f64(j, "share_of_steps", f->of_run);
  if (f->kind == NI_FIND_FLAPPING)
    put_moments(j, f);
  if (*f->evidence)
    ni_json_text(j, "evidence", f->evidence);
  if (*f->next)
    ni_json_text(j, "next", f->next);
}

void ni_steps_json(struct ni_json *j, const struct ni_summary *s, uint32_t most) {
  static const size_t at[] = {offsetof(struct ni_step, compute), offsetof(struct ni_step, exposed),
                              offsetof(struct ni_step, waiting), offsetof(struct ni_step, hidden),
                              offsetof(struct ni_step, outside)};
  double us[3];
  if (!ni_steps_us(s, us))
    return;
  uint32_t each = (s->n_step_bins + most - 1) / most;
  ni_json_object(j, "steps");
  ni_json_text(j, "mark", s->step_mark);
  ni_json_u64(j, "bin_steps", (uint64_t)s->bin_steps * each);
  ni_json_u64(j, "n_steps", s->n_steps);
  ni_json_rounded(j, "us_p10", us[0], 7);
  ni_json_rounded(j, "us_p50", us[1], 7);
  ni_json_rounded(j, "us_p90", us[2], 7);
  ni_json_array(j, "bins");
  for (uint32_t i = 0; i < s->n_step_bins; i += each) {
    uint32_t n = s->n_step_bins - i < each ? s->n_step_bins - i : each;
    ni_json_array(j, NULL);
    ni_json_i64(j, NULL, s->step[i].start_us);
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
      double sum = 0;
      for (uint32_t b = i; b < i + n; b++)
        sum += (double)*(const float *)((const char *)&s->step[b] + at[k]);
      ni_json_rounded(j, NULL, sum / n, 5);
    }
    ni_json_end_array(j);
  }
  ni_json_end_array(j);
  ni_json_end_object(j);
}

void ni_findings_json(struct ni_json *j, const struct ni_summary *s) {
  ni_json_array(j, "findings");
  for (size_t i = 0; i < s->n_findings; i++) {
    const struct ni_finding *f = &s->finding[i];
    ni_json_object(j, NULL);
    ni_json_text(j, "kind", ni_finding_names[f->kind]);
    ni_json_text(j, "level", find_level(f));
    ni_json_text(j, "class", f->note ? "note" : "fault");
    ni_json_text(j, "text", f->text);
    if (f->run)
      ni_json_u64(j, "run", f->run);
    if (f->by_waits)
      ni_json_text(j, "told_by", "initial_sync");
    if (f->level == NI_LEVEL_RANK)
      put_rank(j, s, &s->process[f->of]);
    if (f->level == NI_LEVEL_HOST)
      ni_json_text(j, "hostname", s->host[f->of].name);
    if (f->level == NI_LEVEL_COMM)
      ni_json_text(j, "id", s->comm[f->of].id);
    if (!s->by_own_time && f->n_processes)
      put_whose(j, s, f);
    if (s->by_own_time)
      put_cost(j, s, f);
    else if (!isnan(f->cost_us)) {
      ni_json_f64(j, "cost_s", f->cost_us / 1e6);
      ni_json_f64(j, "cost_low_s", f->low_us / 1e6);
      ni_json_f64(j, "cost_high_s", f->high_us / 1e6);
      ni_json_f64(j, "cost_percent", 100 * f->cost_us / f->run_us);
    }
    if (!s->by_own_time && f->level != NI_LEVEL_RANK && !isnan(f->value)) {
      ni_json_f64(j, f->compared ? "transfer_ratio" : "busbw_ratio", f->value);
      if (f->compared)
        ni_json_u64(j, "communicators_alike", f->compared);
    }
    ni_json_f64(j, "lost_us", f->lost_us);
    ni_json_end_object(j);
  }
  ni_json_end_array(j);
  ni_json_u64(j, "findings_left_out", s->findings_left_out);
  if (s->causes_not_judged)
    ni_json_u64(j, "causes_not_judged", s->causes_not_judged);
  ni_json_text(j, "findings_by", s->by_own_time ? "own_time" : "durations");
  if (!s->by_own_time && s->why_durations)
    ni_json_text(j, "findings_by_durations_since", s->why_durations);
  ni_steps_json(j, s, s->n_step_bins);
  if (!s->cost.known)
    return;
  ni_json_object(j, "run");
  ni_json_f64(j, "run_s", s->cost.run_us / 1e6);
  ni_json_f64(j, "without_findings_s", s->cost.without_us / 1e6);
  ni_json_f64(j, "computing_s", s->cost.own * s->cost.run_us / 1e6);
  ni_json_f64(j, "pauses_s", s->cost.pauses * s->cost.run_us / 1e6);
  ni_json_f64(j, "transfer_s", s->cost.transfer * s->cost.run_us / 1e6);
  ni_json_f64(j, "replayed_share", s->cost.model);
  ni_json_end_object(j);
}
