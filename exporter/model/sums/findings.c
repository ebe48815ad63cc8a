#include "findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "durations/durations.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"

const char *const ni_finding_names[NI_FIND_KINDS] = {
    "late_rank",     "slow_communicator", "slow_host",  "rank_pauses",  "slow_nvlink",
    "slow_nic",      "slow_pair",         "slow_stage", "congestion",   "uneven_work",
    "periodic_work", "throttling",        "undecided",  "flapping_link"};

const char ni_why_sampled[] =
    "not all operations are recorded (NCCL_INSPECTOR_SAMPLE), so what ranks do between them is "
    "not known; stages, and who began which pause, are told where it is 1/1";

static NI_ORDER_OF(by_number, double);

const char *ni_findings_rules(const struct ni_summary *s, char out[320]) {
  if (ni_durations_are_of_seats(s))
    snprintf(out, 320,
             "a rank is named when it comes last to collectives again and again, later than it had to wait "
             "elsewhere, "
             "and most of a host's ranks together as the host; a communicator when transfers of the same "
             "function and "
             "size take %.2f times as long as on its like",
             NI_FIND_TRANSFER);
  else if (s->by_own_time)
    snprintf(out, 320,
             "what ranks do between operations and how long transfers take is compared with those of the "
             "same work; "
             "a cost is what the run would save without it");
  else
    snprintf(out, 320,
             "a rank is named when it was late (below 80 %% of its peers' median) in %.0f %% or more of its "
             "operations, and twice as often "
             "as the median rank; a communicator or host when its transfer time is above %.2f times that of "
             "those that did the same "
             "work; a host when its bandwidth is below %.0f %% of the median",
             100 * NI_FIND_LATE_SHARE, NI_FIND_TRANSFER, 100 * NI_FIND_BUSBW);
  return out;
}

const char *ni_finding_of_all(const struct ni_summary *s, char out[128]) {
  /* to short operations of requests somebody always comes last, by a little */
  if (s->late_share_median < NI_FIND_LATE_SHARE || s->steps_differ)
    return NULL;
  snprintf(out, 128,
           "half of the ranks came late to %.0f %% or more of their operations: uneven work or busy hosts "
           "everywhere",
           100 * s->late_share_median);
  return out;
}

/* Of a job whose ranks are not all there; 0: nobody says how many there are, or all are there. */
static uint32_t find_world_size(const struct ni_summary *s, uint32_t seen) {
  int32_t all = s->job.world_size;
  for (size_t i = 0; i < s->n_comms && s->job.world_size < 0; i++)
    if (s->comm[i].n_ranks > all)
      all = s->comm[i].n_ranks;
  return all > 0 && (uint32_t)all > seen ? (uint32_t)all : 0;
}

/* "job 4242, program: ", "2 jobs (6101 and 6102): ", "job 4242, 2 runs: ". */
static void put_job(struct ni_put_text *w, const struct ni_job_facts *job) {
  char text[81];
  const char *gap = "";
  if (job->jobs > 1) {
    ni_put(w, "%u jobs (%s)", job->jobs, job->ids);
    gap = ", ";
  } else if (job->id) {
    ni_put(w, "job %s", ni_safe_text(job->id, text, sizeof text));
    gap = ", ";
  }
  if (job->runs > 1 && job->runs != job->jobs) {
    ni_put(w, "%s%u runs", gap, job->runs);
    gap = ", ";
  }
  if (job->exe) {
    ni_put(w, "%s%s", gap, ni_safe_text(job->exe, text, sizeof text));
    gap = ", ";
  }
  if (*gap)
    ni_put(w, ": ");
}

const char *ni_head_text(const struct ni_summary *s, char out[NI_HEAD_TEXT]) {
  struct ni_put_text w = {out, NI_HEAD_TEXT};
  char took[32];
  uint32_t seen = 0;
  const bool several = s->job.runs > 1;
  *out = 0;
  put_job(&w, &s->job);
  for (size_t i = 0; i < s->n_processes; i++)
    seen += s->process[i].ranks > 1 ? s->process[i].ranks : 1;
  const uint32_t all = several ? 0 : find_world_size(s, seen);
  ni_put(&w, "%s %s, %s ", NI_COUNT(s->n_hosts), ni_plural(s->n_hosts, "host", "hosts"), NI_COUNT(seen));
  if (all)
    ni_put(&w, "of %s ranks", NI_COUNT(all));
  else
    ni_put(&w, "%s%s", ni_plural(seen, "rank", "ranks"), several ? " in all" : "");
  if (s->records)
    ni_put(&w, ", %s%s", ni_duration_text((double)(s->last_us - s->first_us), took),
           s->stood_still ? " till it hung" : "");
  ni_put(&w, ", %s", s->complete ? "COMPLETE" : "INCOMPLETE");
  return out;
}

bool ni_finding_is_note(const struct ni_finding *f) { return f->note; }

const char *ni_cost_text(const struct ni_summary *s, char out[320]) {
  const struct ni_cost *c = &s->cost;
  char t[5][32], pauses[56] = "", without[72] = "", run[24] = "the run";
  if (!c->known)
    return NULL;
  if (c->pauses > 0)
    snprintf(pauses, sizeof pauses, ", %s pauses", ni_duration_text(c->pauses * c->run_us, t[3]));
  size_t replayed = 0; /* what waits alone tell is not in the replay */
  for (size_t i = 0; i < s->n_findings; i++)
    replayed += !s->finding[i].by_waits && s->finding[i].kind != NI_FIND_UNDECIDED;
  if (replayed)
    snprintf(without, sizeof without, "; without %s %s",
             ni_plural(replayed, "this finding", "these findings"), ni_duration_text(c->without_us, t[4]));
  if (s->cost_run)
    snprintf(run, sizeof run, "run %u", s->cost_run);
  snprintf(out, 320, "%s: %s = %s computing, %s transfers%s on the critical path%s", run,
           ni_duration_text(c->run_us, t[0]), ni_duration_text(c->own * c->run_us, t[1]),
           ni_duration_text(c->transfer * c->run_us, t[2]), pauses, without);
  return out;
}

bool ni_steps_us(const struct ni_summary *s, double out[3]) {
  double *us = malloc((s->n_step_bins + 1) * sizeof *us);
  size_t n = 0;
  for (uint32_t i = 0; us && i < s->n_step_bins; i++) {
    const struct ni_step *x = &s->step[i]; /* hidden lies within compute */
    double sum = (double)x->compute + (double)x->exposed + (double)x->waiting + (double)x->outside;
    if (sum > 0)
      us[n++] = sum;
  }
  if (n)
    qsort(us, n, sizeof *us, by_number);
  for (int i = 0; n && i < 3; i++)
    out[i] = us[(size_t)((double)(n - 1) * (0.1 + 0.4 * i) + 0.5)];
  free(us);
  return n > 0;
}

const char *ni_steps_text(const struct ni_summary *s, char out[320]) {
  double us[3];
  char t[3][32];
  if (!ni_steps_us(s, us))
    return NULL;
  int n =
      snprintf(out, 320, "%u %s of %s (p10 %s, p90 %s)", s->n_steps, ni_plural(s->n_steps, "step", "steps"),
               ni_duration_text(us[1], t[1]), ni_duration_text(us[0], t[0]), ni_duration_text(us[2], t[2]));
  if (*s->step_mark)
    snprintf(out + n, 320 - (size_t)n, ", marked by %s", s->step_mark);
  return out;
}
