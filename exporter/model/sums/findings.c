/*
 * What stands out, in sentences: the one judgement that terminal, summary.json and page show.
 *
 * Ranks that are late are told by the durations of one operation on all ranks, so a slow link does not make
 * them. A slow link or host is told by transfer times (the shortest duration over the ranks), which are free
 * of waiting, so a late rank does not make them; only communicators that did the same work are compared. What
 * neither shows, but makes all of a host's bandwidths low, is told last.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/put.h"
#include "exporter/base/order.h"
#include "exporter/base/text/safe_text.h"
#include "findings.h"
#include "evidence/seat_findings.h"
#include "evidence/seats.h"

/* operations and bytes of communicators that did the same work differ by no more */
#define ALIKE 0.02

const char *const ni_finding_names[NI_FIND_KINDS] = {
    "late_rank",     "slow_communicator", "slow_host",  "rank_pauses",  "slow_nvlink",
    "slow_nic",      "slow_pair",         "slow_stage", "congestion",   "uneven_work",
    "periodic_work", "throttling",        "undecided",  "flapping_link"};

const char ni_why_sampled[] =
    "not all operations are recorded (NCCL_INSPECTOR_SAMPLE), so what ranks do between them is "
    "not known; stages, and who began which pause, are told where it is 1/1";

/*
 * By who comes last to each operation: own time is not known, or where it can be compared is not, as steps do
 * not repeat.
 */
static bool is_told_by_seats(const struct ni_summary *s) {
  return !s->by_own_time && (s->one_in > 1 || s->steps_differ);
}

const char *ni_findings_rules(const struct ni_summary *s, char out[320]) {
  if (is_told_by_seats(s))
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

static NI_ORDER_OF(by_number, double);

static double get_late_share(const struct ni_process *p) { return (double)p->late / (double)p->compared; }

/*
 * In which part of its operations the median rank was late (of an even number: the lower one); 0 without
 * ranks.
 */
static int find_median_late_share(const struct ni_summary *s, double *out) {
  double *share = malloc((s->n_processes + 1) * sizeof *share);
  size_t n = 0;
  if (!share)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (s->process[i].compared >= NI_FIND_COMPARED_MIN)
      share[n++] = get_late_share(&s->process[i]);
  qsort(share, n, sizeof *share, by_number);
  *out = n ? share[(n - 1) / 2] : 0;
  free(share);
  return 0;
}

/*
 * What a late rank cost each of its peers is a sum over operations. Those of several streams run at the same
 * time, so it can be more than the run is long: nobody waited for that long, and it is not said.
 */
static const char *waited_text(const struct ni_summary *s, double us, const char *whose, char out[112]) {
  char time[32];
  ni_duration_text(us, time);
  if (us > (double)(s->last_us - s->first_us))
    snprintf(out, 112, "what each of %s waited for it adds up to %s (operations overlap)", whose, time);
  else
    snprintf(out, 112, "each of %s waited %s for it in all", whose, time);
  return out;
}

static bool has_come_late(const struct ni_process *p) {
  return p->compared >= NI_FIND_COMPARED_MIN && (double)p->late >= NI_FIND_LATE_SHARE * (double)p->compared;
}

/* Where one rank in so many comes late, durations do not tell who of them is to blame. */
enum { LATE_ONE_IN = 4 };

/* times the loss by any other rank: it stands out among many that come late */
#define STANDS_OUT 2.0

/*
 * Somebody is the last one in any job. Where a quarter of the ranks and more come late to many operations, on
 * more than one host, who of them is to blame cannot be told from durations, unless one stands out.
 */
static bool have_many_come_late(const struct ni_summary *s) {
  uint32_t late = 0, compared = 0, host = UINT32_MAX;
  bool one_host = true;
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    compared += p->compared >= NI_FIND_COMPARED_MIN;
    if (!has_come_late(p))
      continue;
    late++;
    one_host &= host == UINT32_MAX || host == p->host;
    host = p->host;
  }
  return late > 1 && !one_host && late * LATE_ONE_IN >= compared;
}

static bool stands_out(const struct ni_summary *s, const struct ni_process *p) {
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (&s->process[i] != p && s->process[i].late_ns * STANDS_OUT > p->late_ns)
      return false;
  return true;
}

/* What the rank in the middle spent in operations. */
static int find_baseline_exec_ns(const struct ni_summary *s, double *out) {
  double *ns = malloc((s->n_processes + 1) * sizeof *ns);
  size_t n = 0;
  if (!ns)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (s->process[i].compared)
      ns[n++] = s->process[i].exec_ns;
  qsort(ns, n, sizeof *ns, by_number);
  *out = n ? ns[(n - 1) / 2] : 0;
  free(ns);
  return 0;
}

static int name_ranks_by_durations(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  const bool many = have_many_come_late(s);
  double exec_ns = 0;
  if (find_baseline_exec_ns(s, &exec_ns) < 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    char host[81], gpu[24] = "", waited[112], ranks[48];
    if (!has_come_late(p))
      continue;
    explained[p->host] = true;
    if ((many && !stands_out(s, p)) || get_late_share(p) < 2 * s->late_share_median)
      continue; /* so are all the others: it does not stand out */
    if (p->late_ns < NI_FIND_LATE_LOSS * exec_ns)
      continue; /* somebody is always the last one, by a little */
    struct ni_finding *f = ni_found_append(out, NI_FIND_LATE_RANK, i);
    if (!f)
      return -ENOMEM;
    f->compared = p->compared;
    f->value = get_late_share(p);
    f->lost_us = p->late_ns / 1e3;
    if (p->ranks > 1) { /* durations of its ranks are one sum: who of them it was, the outliers tell */
      snprintf(f->text, sizeof f->text,
               "process %lld on %s (%s) came late to %.0f %% of %s operations with one of its ranks; %s",
               (long long)p->pid, ni_safe_text(s->host[p->host].name, host, sizeof host),
               ni_ranks_text(p, ranks), 100 * f->value, NI_COUNT(p->compared),
               waited_text(s, f->lost_us, "their peers", waited));
      continue;
    }
    if (p->gpu >= 0)
      snprintf(gpu, sizeof gpu, ", GPU %d", p->gpu);
    snprintf(f->text, sizeof f->text, "rank %d on %s%s%s came late to %.0f %% of %s operations; %s", p->rank,
             ni_safe_text(s->host[p->host].name, host, sizeof host), gpu,
             p->rank_stated ? "" : " (rank in its largest communicator)", 100 * f->value,
             NI_COUNT(p->compared), waited_text(s, f->lost_us, "its peers", waited));
  }
  return 0;
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
           s->hang ? " till it hung" : "");
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

/* What one communicator did. Records without a kernel's time are in none of it, as in transfer_ns. */
struct comm_work {
  uint32_t comm, run;
  int type, n_ranks;
  double operations, bytes, transfer_ns;
};

static int by_shape(const void *a, const void *b) {
  const struct comm_work *x = a, *y = b;
  if (x->type != y->type)
    return x->type - y->type;
  return NI_BY(x, y, run, n_ranks, operations, bytes, comm);
}

/* Of two the lower one: then the other is measured by it. scratch has room for n. */
static double find_baseline_transfer(const struct comm_work *w, size_t n, double *scratch) {
  for (size_t i = 0; i < n; i++)
    scratch[i] = w[i].transfer_ns;
  qsort(scratch, n, sizeof *scratch, by_number);
  return n == 2 ? scratch[0] : (scratch[(n - 1) / 2] + scratch[n / 2]) / 2;
}

static bool is_same_work(const struct comm_work *a, const struct comm_work *b) {
  if (a->type != b->type || a->n_ranks != b->n_ranks || a->run != b->run)
    return false;
  return b->operations - a->operations <= ALIKE * b->operations &&
      fabs(b->bytes - a->bytes) <= ALIKE * fmax(a->bytes, b->bytes);
}

static void peers_text(const struct ni_summary *s, size_t n_peers, char out[80]) {
  const char *like = s->steps_differ ? "like it, at equal sizes" : "that did the same work";
  if (n_peers == 2)
    snprintf(out, 80, "the other one %s", like);
  else
    snprintf(out, 80, "the median of %s %s", NI_COUNT(n_peers), like);
}

/*
 * Sampled logs have other operations of one communicator than of the next, and replicas serve other requests,
 * so what they come to cannot be compared: the same function and about the same size can, by the time a byte
 * takes. Sizes of a class are within a fifth of each other, so requests of any length find their like.
 */
#define SIZE_CLASSES 4.0     /* of a factor of two */
#define SLOW_OF_HOST 0.75    /* of the communicators within a host: then it is the host */
#define CROWDED_OF_RUN 0.003 /* what costs less is not named */
enum { SAMPLED_MIN = 8 };    /* of one function and class of sizes on a communicator */

static bool is_same_kind(const struct ni_comm_row *a, const struct ni_comm_row *b) {
  const bool is_same_role = a->type == b->type && a->role == b->role;
  return is_same_role && a->n_ranks == b->n_ranks && a->run == b->run;
}

struct comm_transfers { /* of a communicator */
  double us, peers_us;  /* what its transfers took, and those of its peers would have */
  size_t n_peers;
};

static bool is_slow(const struct comm_transfers *l) {
  return l->n_peers >= 2 && l->us > NI_FIND_TRANSFER * l->peers_us;
}

static bool is_same_class(const struct ni_group *a, const struct ni_group *b) {
  const bool is_same_function = a->type == b->type && a->kind == b->kind && strcmp(a->func, b->func) == 0;
  return is_same_function &&
      floor(SIZE_CLASSES * log2((double)a->msg_bytes)) == floor(SIZE_CLASSES * log2((double)b->msg_bytes));
}

struct class_transfers { /* of a communicator, of one function and class of sizes */
  double us, bytes;
  uint64_t met;
};

struct class_judge {
  const struct ni_summary *s;
  struct class_transfers *sum; /* by communicator; nothing between two classes */
  uint32_t *there;             /* those that have any */
  size_t n_there;
  double *x; /* scratch: communicators */
};

/*
 * Of slices [from, to), which are one class, those timed like that. A rank without a log may have come last:
 * then the least duration is no transfer.
 */
static void add_class(struct class_judge *w, size_t from, size_t to, enum ni_timing timing) {
  const struct ni_summary *s = w->s;
  w->n_there = 0;
  for (size_t i = from; i < to; i++) {
    const struct ni_slice *y = &s->by_comm[i];
    const struct ni_group *g = &s->group[y->group];
    const bool has_all_logs = (int64_t)s->comm[y->of].ranks_seen >= s->comm[y->of].n_ranks;
    if (g->timing != timing || !y->met || !has_all_logs)
      continue;
    struct class_transfers *t = &w->sum[y->of];
    if (!t->met)
      w->there[w->n_there++] = y->of;
    t->met += y->met;
    t->us += y->transfer_us;
    t->bytes += (double)g->msg_bytes * (double)y->met;
  }
}

static void compare_class(struct class_judge *w, struct comm_transfers *of) {
  const struct ni_summary *s = w->s;
  for (size_t i = 0; i < w->n_there; i++) {
    const struct class_transfers *mine = &w->sum[w->there[i]];
    size_t n = 0;
    for (size_t k = 0; k < w->n_there && mine->met >= SAMPLED_MIN; k++) {
      const struct class_transfers *y = &w->sum[w->there[k]];
      if (y->met >= SAMPLED_MIN && is_same_kind(&s->comm[w->there[i]], &s->comm[w->there[k]]))
        w->x[n++] = y->us / y->bytes;
    }
    if (n < 2)
      continue;
    qsort(w->x, n, sizeof *w->x, by_number);
    struct comm_transfers *l = &of[w->there[i]];
    l->us += mine->us;
    l->peers_us += (n == 2 ? w->x[0] : (w->x[(n - 1) / 2] + w->x[n / 2]) / 2) * mine->bytes;
    if (n > l->n_peers)
      l->n_peers = n;
  }
  for (size_t i = 0; i < w->n_there; i++)
    w->sum[w->there[i]] = (struct class_transfers){.met = 0};
}

static int compare_by_function(const struct ni_summary *s, struct comm_transfers *of) {
  struct class_judge w = {.s = s,
                          .sum = calloc(s->n_comms + 1, sizeof *w.sum),
                          .there = malloc((s->n_comms + 1) * sizeof *w.there),
                          .x = malloc((s->n_comms + 1) * sizeof *w.x)};
  const bool has_room = w.sum && w.there && w.x;
  for (size_t from = 0, to; has_room && from < s->n_by_comm; from = to) {
    const struct ni_group *first = &s->group[s->by_comm[from].group];
    for (to = from; to < s->n_by_comm && is_same_class(&s->group[s->by_comm[to].group], first); to++) {}
    for (unsigned t = 0; t < NI_TIMING_COUNT && first->msg_bytes; t++) {
      add_class(&w, from, to, (enum ni_timing)t);
      compare_class(&w, of);
    }
  }
  free(w.sum);
  free(w.there);
  free(w.x);
  return has_room ? 0 : -ENOMEM;
}

/* Slow from some moment on, to the end: no congestion, which comes and goes. Something broke. */
static int name_broken_way(const struct ni_summary *s, const struct ni_congestion *c, struct ni_found *out) {
  const struct ni_comm_row *of = &s->comm[c->comm];
  char name[81], from[32], lost[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_COMM, c->comm);
  if (!f)
    return -ENOMEM;
  f->value = NAN;
  f->lost_us = f->cost_us = c->lost_us;
  f->run_us = (double)(s->last_us - s->first_us);
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(
      &w,
      "%scommunicator %s%s%s and all others across hosts: from %s after the start on, to the end, transfers "
      "take %.2f times as long as before; the job came as far as before %s later; whether it is a NIC, a way "
      "between two hosts, or the network, cannot be told: counters of NICs would",
      ni_role_words[of->role], ni_safe_text(of->name, name, sizeof name), of->name ? " " : "", of->id,
      ni_duration_text((double)(c->from_us - s->first_us), from), c->ratio,
      ni_duration_text(c->lost_us, lost));
  return 0;
}

static int name_congestion(struct ni_summary *s, struct ni_found *out) {
  struct ni_congestion c;
  char crowded[32], from[32], to[32], lost[32], host[81];
  const int e = ni_crossings_find_congestion(s, &c);
  if (e < 0 || !(c.ratio > 0) || c.lost_us < CROWDED_OF_RUN * (double)(s->last_us - s->first_us))
    return e;
  if (c.lasts)
    return name_broken_way(s, &c, out);
  struct ni_finding *f = ni_found_append(out, NI_FIND_CONGESTION, 0);
  if (!f)
    return -ENOMEM;
  f->level = NI_LEVEL_FABRIC;
  f->value = NAN;
  f->lost_us = c.lost_us;
  f->times = c.spells;
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w,
         "the network between hosts: for %s in all, %s to %s after the start, all transfers take %.2f times "
         "as long as "
         "otherwise; the job came as far as otherwise %s later",
         ni_duration_text(c.crowded_us, crowded), ni_duration_text((double)(c.from_us - s->first_us), from),
         ni_duration_text((double)(c.to_us - s->first_us), to), c.ratio, ni_duration_text(c.lost_us, lost));
  if (c.hosts == 1)
    ni_put(&w,
           " (or one host: all communicators across hosts have ranks on %s; counters of its NICs would tell)",
           ni_safe_text(s->host[c.host].name, host, sizeof host));
  else if (c.hosts)
    ni_put(&w,
           " (or one host: all communicators across hosts have ranks on each of %s hosts; counters of their "
           "NICs would tell)",
           NI_COUNT(c.hosts));
  return 0;
}

struct slow_host { /* communicators within one host that are slow */
  uint32_t n, first;
  /* so many of them are slow, of so many that can be compared; 0: where only those that did the same are */
  uint32_t slow, compared;
  double factor, lost_us;
  size_t n_peers;
};

/* Of a host it is one communicator, not the host, where others within the host are as fast as elsewhere. */
static bool is_slow_by_itself(const struct slow_host *h) { return h->slow < SLOW_OF_HOST * h->compared; }

static int name_slow_comm(const struct ni_summary *s, uint32_t comm, double transfer_us, double peers_us,
                          size_t n_peers, struct slow_host *h, struct ni_found *out) {
  const struct ni_comm_row *c = &s->comm[comm];
  double factor = transfer_us / peers_us, lost = (transfer_us - peers_us) * s->one_in;
  if (c->one_host >= 0 && !is_slow_by_itself(&h[c->one_host])) {
    h += c->one_host;
    if (h->n++ == 0)
      h->first = comm;
    h->factor += factor;
    h->n_peers = n_peers;
    if (lost > h->lost_us)
      h->lost_us = lost;
    return 0;
  }
  char name[81], host[81], peers[80], more[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_COMM, comm);
  if (!f)
    return -ENOMEM;
  f->compared = n_peers;
  f->value = factor;
  f->lost_us = lost;
  peers_text(s, n_peers, peers);
  struct ni_put_text w = {f->text, sizeof f->text};
  if (c->one_host >= 0)
    ni_put(&w, "host %s: its ", ni_safe_text(s->host[c->one_host].name, host, sizeof host));
  ni_put(&w, "%scommunicator %s%s%s (%s, %s ranks) needs %.2f times the transfer time of %s: %s more",
         ni_role_words[c->role], ni_safe_text(c->name, name, sizeof name), c->name ? " " : "", c->id,
         ni_comm_type_words[c->type], NI_COUNT(c->n_ranks), factor, peers, ni_duration_text(lost, more));
  if (ni_found_put_saving(&w, s, comm, f) < 0)
    return -ENOMEM;
  if (c->one_host >= 0)
    ni_put(&w, "; others within the host are not slow");
  return 0;
}

static int name_slow_comms(const struct ni_summary *s, struct slow_host *hosts, struct ni_found *out) {
  struct comm_work *w = calloc(s->n_comms + 1, sizeof *w);
  double *scratch = calloc(s->n_comms + 1, sizeof *scratch);
  size_t n = 0;
  int e = w && scratch ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    const struct ni_comm_row *c = &s->comm[i];
    if (c->n_ranks > 1 && c->transfer_ns > 0)
      w[n++] = (struct comm_work){
          i, c->run, (int)c->type, c->n_ranks, (double)c->timed, (double)c->timed_bytes, c->transfer_ns};
  }
  if (n)
    qsort(w, n, sizeof *w, by_shape);
  /* Neighbours that did the same work as the first of them. */
  for (size_t from = 0, to; e == 0 && from < n; from = to) {
    for (to = from + 1; to < n && is_same_work(&w[from], &w[to]); to++) {}
    double baseline = find_baseline_transfer(w + from, to - from, scratch);
    for (size_t i = from; e == 0 && to - from >= 2 && i < to; i++)
      if (w[i].transfer_ns > NI_FIND_TRANSFER * baseline)
        e = name_slow_comm(s, w[i].comm, w[i].transfer_ns / 1e3, baseline / 1e3, to - from, hosts, out);
  }
  free(w);
  free(scratch);
  return e;
}

static int name_slow_functions(const struct ni_summary *s, struct slow_host *hosts, double *slow_us,
                               struct ni_found *out) {
  struct comm_transfers *of = calloc(s->n_comms + 1, sizeof *of);
  int e = of ? compare_by_function(s, of) : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    if (s->comm[i].one_host < 0 || of[i].n_peers < 2)
      continue;
    hosts[s->comm[i].one_host].compared++;
    hosts[s->comm[i].one_host].slow += is_slow(&of[i]);
  }
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    slow_us[i] = fmax(0, of[i].us - of[i].peers_us);
    if (!is_slow(&of[i]))
      continue;
    e = name_slow_comm(s, i, of[i].us, of[i].peers_us, of[i].n_peers, hosts, out);
  }
  free(of);
  return e;
}

/* Of the host in the middle: waiting and noise make it less than 1 where nothing is slow. */
static int find_baseline_busbw(const struct ni_summary *s, double *out) {
  double *x = malloc((s->n_hosts + 1) * sizeof *x);
  size_t n = 0;
  if (!x)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_hosts; i++)
    if (s->host[i].busbw_relative > 0)
      x[n++] = s->host[i].busbw_relative;
  qsort(x, n, sizeof *x, by_number);
  *out = n ? fmin(1, x[n / 2]) : 1;
  free(x);
  return 0;
}

/* What its ranks wait for may not be in the logs. */
static bool has_unseen_waits(const struct ni_summary *s, uint32_t host) {
  for (size_t i = 0; i < s->n_processes; i++)
    if (s->process[i].host == host && s->process[i].may_wait_unseen)
      return true;
  return false;
}

static int name_hosts_by_durations(const struct ni_summary *s, const struct slow_host *slow,
                                   const bool *explained, struct ni_found *out) {
  double baseline;
  int e = find_baseline_busbw(s, &baseline);
  for (uint32_t i = 0; e == 0 && i < s->n_hosts; i++) {
    const struct ni_host *h = &s->host[i];
    const struct slow_host *x = &slow[i];
    const bool told = s->one_in == 1 && !explained[i] && !has_unseen_waits(s, i);
    const bool low = told && h->busbw_relative < NI_FIND_BUSBW * baseline;
    char host[81], name[81], peers[80], more[32];
    if (x->n == 0 && !low)
      continue;
    struct ni_finding *f = ni_found_append(out, x->n ? NI_FIND_SLOW_NVLINK : NI_FIND_SLOW_HOST, i);
    if (!f)
      return -ENOMEM;
    ni_safe_text(h->name, host, sizeof host);
    if (x->n == 0) {
      f->value = h->busbw_relative;
      f->lost_us = (1 - f->value) * h->exec_ns / 1e3 / (h->n_processes ? h->n_processes : 1);
      snprintf(f->text, sizeof f->text,
               "host %s: its bus bandwidth is %.0f %% of the median of like operations on all hosts "
               "(waiting included)",
               host, 100 * f->value);
      continue;
    }
    f->compared = x->n_peers;
    f->value = x->factor / x->n;
    f->lost_us = x->lost_us;
    peers_text(s, x->n_peers, peers);
    const struct ni_comm_row *c = &s->comm[x->first];
    struct ni_put_text w = {f->text, sizeof f->text};
    if (x->n == 1) {
      ni_put(&w,
             "host %s: its %scommunicator %s%s%s (%s ranks) needs %.2f times the transfer time of "
             "%s: %s more",
             host, ni_role_words[c->role], ni_safe_text(c->name, name, sizeof name), c->name ? " " : "",
             c->id, NI_COUNT(c->n_ranks), f->value, peers, ni_duration_text(f->lost_us, more));
      e = ni_found_put_saving(&w, s, x->first, f);
    } else
      snprintf(f->text, sizeof f->text,
               "host %s: %u of its communicators need %.2f times the transfer time of those that "
               "did the same work: up to %s more",
               host, x->n, f->value, ni_duration_text(f->lost_us, more));
  }
  return e;
}

static int by_loss(const void *a, const void *b) {
  const struct ni_finding *x = a, *y = b;
  if (x->note != y->note)
    return x->note ? 1 : -1;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  if (x->kind != y->kind)
    return (int)x->kind - (int)y->kind;
  return x->of < y->of ? -1 : x->of > y->of;
}

static int by_rank(const void *a, const void *b, void *summary) {
  const struct ni_process *process = ((const struct ni_summary *)summary)->process;
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  const int32_t one = process[x].rank, other = process[y].rank;
  return one != other ? (one < other ? -1 : 1) : x < y ? -1 : x > y;
}

/* Whose a slow communicator is: all of its ranks. */
static int fill_processes_of_comm(struct ni_summary *s, struct ni_finding *f) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_seats; i++)
    n += s->seat[i].comm == f->of;
  if (!(f->process = malloc((n + 1) * sizeof *f->process)))
    return -ENOMEM;
  for (size_t i = 0; i < s->n_seats; i++)
    if (s->seat[i].comm == f->of)
      f->process[f->n_processes++] = s->seat[i].process;
  qsort_r(f->process, n, sizeof *f->process, by_rank, s);
  return 0;
}

int ni_judge_by_durations(struct ni_summary *s) {
  struct ni_found found = {0};
  bool *explained = calloc(s->n_hosts + 1, sizeof *explained);
  struct slow_host *hosts = calloc(s->n_hosts + 1, sizeof *hosts);
  double *slow_us = calloc(s->n_comms + 1, sizeof *slow_us);
  const bool sampled = s->one_in > 1, one_by_one = is_told_by_seats(s);
  bool by_seats = one_by_one;
  for (size_t i = 0; i < s->n_processes; i++)
    by_seats |= s->process[i].may_wait_unseen;
  int e = explained && hosts && slow_us ? 0 : -ENOMEM;
  if (e == 0)
    e = find_median_late_share(s, &s->late_share_median);
  if (e == 0)
    e = one_by_one ? name_slow_functions(s, hosts, slow_us, &found) : name_slow_comms(s, hosts, &found);
  if (e == 0 && sampled)
    e = name_congestion(s, &found);
  if (e == 0)
    e = by_seats ? ni_found_late_seats(s, slow_us, &found, explained)
                 : name_ranks_by_durations(s, &found, explained);
  if (e == 0 && one_by_one)
    e = ni_found_waited_for(s, &found, explained);
  if (e == 0)
    e = ni_found_slow_cpus(s, &found, explained);
  if (e == 0)
    e = ni_found_slow_gpus(s, &found, explained);
  if (e == 0)
    e = name_hosts_by_durations(s, hosts, explained, &found);
  if (e == 0) {
    if (found.n)
      qsort(found.item, found.n, sizeof *found.item, by_loss);
    s->n_findings = found.n < NI_SUM_FINDINGS ? found.n : NI_SUM_FINDINGS;
    s->findings_left_out = found.n - s->n_findings;
    if (found.n)
      memcpy(s->finding, found.item, s->n_findings * sizeof *found.item);
  }
  for (size_t i = 0; e == 0 && i < s->n_findings; i++)
    if (s->finding[i].level == NI_LEVEL_COMM)
      e = fill_processes_of_comm(s, &s->finding[i]);
  free(found.item);
  free(explained);
  free(hosts);
  free(slow_us);
  return e;
}
