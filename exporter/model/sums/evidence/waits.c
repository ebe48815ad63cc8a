#include "waits.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"

/* Chosen on even seeds of test/verdicts/symmetric.py. */
#define WAITS_MIN 64          /* operations of a rank: of fewer, chance has the most part */
#define WAITS_US 3.0          /* it is late by so much in the mean: a barrier takes as long as that */
#define WAITS_OF_RUN 0.003    /* of the run: what costs less is not named; */
#define WAITS_OF_RUN_FEW 0.01 /* of fewer ranks than FEW more, as nobody knows how far they lie apart */
#define WAITS_SIGMA 5.0       /* it is late by so many standard errors, */
#define WAITS_APART 5.0       /* and by so many times what the others lie apart */
#define FEW 8u
#define WAITS_OWN \
  0.5 /* a rank is late by itself if its own time is longer by this part of what it is late by */
/*
 * Of a host's ranks so many are late, and none by more than so many times their mean (as in blame/causes.h).
 */
#define WAITS_OF_HOST 0.75
#define WAITS_OF_HOST_MOST 2.0
/* These quantiles are both of ranks that are not late, and so many standard deviations from each other. */
#define WAITS_SPREAD_LOW 0.1
#define WAITS_SPREAD_HIGH 0.4
#define WAITS_SPREAD 1.03

#define TOLD_BY "told by the kernels' initial_sync, without clocks of hosts"

/* Of one process; us are of an operation, in the mean. */
struct late_process {
  uint32_t process;
  double us, lost_us;
  bool late, explained;
  bool with_host; /* most ranks of its host are as late: it is named with them */
};

static NI_ORDER_OF(by_number, double);

static double get_run_us(const struct ni_summary *s) { return (double)(s->last_us - s->first_us); }

static double mean_us(const struct ni_process *p) { return p->behind_ns / 1e3 / (double)p->timed_waits; }

static double error_us(const struct ni_process *p) {
  const double n = (double)p->timed_waits, mean = mean_us(p), var = p->behind_us2 / n - mean * mean;
  return var > 0 ? sqrt(var / n) : 0;
}

/* What is usual, and how far those lie apart that are not late: 10 and 40 % of them are below two
 * numbers 1.03 deviations apart. */
static bool find_wait_baseline(const struct ni_summary *s, double *us, double *apart, uint32_t *ranks) {
  double *x = malloc((s->n_processes + 1) * sizeof *x);
  uint32_t n = 0;
  if (!x)
    return false;
  for (size_t i = 0; i < s->n_processes; i++)
    if (s->process[i].timed_waits >= WAITS_MIN)
      x[n++] = mean_us(&s->process[i]);
  qsort(x, n, sizeof *x, by_number);
  *us = n ? x[(n - 1) / 4] : 0;
  *apart = 0;
  if (n >= FEW) {
    const size_t low = (size_t)(WAITS_SPREAD_LOW * (n - 1) + 0.5);
    const size_t high = (size_t)(WAITS_SPREAD_HIGH * (n - 1) + 0.5);
    *apart = (x[high] - x[low]) / WAITS_SPREAD;
  }
  *ranks = n;
  free(x);
  return true;
}

static void judge_process(const struct ni_summary *s, struct late_process *l, double baseline, double apart,
                          uint32_t ranks) {
  const struct ni_process *p = &s->process[l->process];
  const double of_run = ranks < FEW ? WAITS_OF_RUN_FEW : WAITS_OF_RUN;
  if (p->timed_waits < WAITS_MIN || p->ranks > 1)
    return;
  l->us = mean_us(p) -
      fmax(baseline, 0); /* the peers of a late one come early by as much as there are few of them */
  l->lost_us = l->us * (double)p->timed_waits;
  const bool is_no_chance = l->us >= WAITS_SIGMA * error_us(p) && l->us >= WAITS_APART * apart;
  l->late = is_no_chance && l->us >= WAITS_US && l->lost_us >= of_run * get_run_us(s);
}

static bool share_comm(const struct ni_run *r, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < r->who.n_members; i++) {
    const struct ni_who_member *x = &r->who.member[i];
    if (r->process_at[x->process] != a)
      continue;
    for (uint32_t k = 0; k < r->who.n_members; k++)
      if (r->who.member[k].comm == x->comm && r->process_at[r->who.member[k].process] == b)
        return true;
  }
  return false;
}

static int by_process(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static int by_loss(const void *a, const void *b) {
  const struct late_process *x = a, *y = b;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  return x->process < y->process ? -1 : x->process > y->process;
}

static struct ni_finding *find_finding_of(struct ni_summary *s, uint32_t process) {
  for (size_t i = 0; i < s->n_findings; i++) {
    struct ni_finding *f = &s->finding[i];
    if (f->level == NI_LEVEL_RANK && f->of == process)
      return f;
    const bool of_host = f->level == NI_LEVEL_HOST && f->of == s->process[process].host;
    const bool of_its_links = f->link == NI_FIND_SLOW_NIC || f->link == NI_FIND_SLOW_NVLINK;
    if (of_host && !of_its_links)
      return f;
    for (size_t k = 0; k < f->n_processes && (f->level == NI_LEVEL_STAGE || f->level == NI_LEVEL_REPLICA);
         k++)
      if (f->process[k] == process)
        return f;
  }
  return NULL;
}

static void append_agreement(const struct ni_summary *s, struct ni_finding *f, const struct late_process *l) {
  char late[32];
  size_t n = strlen(f->evidence);
  struct ni_put_text w = {f->evidence + n, sizeof f->evidence - n};
  ni_put(&w,
         "%srank %d came %s later than its peers to symmetric kernels, by what they waited for it "
         "(initial_sync)",
         n ? "; " : "", s->process[l->process].rank, ni_duration_text(l->us, late));
}

/*
 * Room for a finding that cost lost_us: by loss, before notes. But the last finding may name another one by
 * its number, which stays as it is. NULL: the list is full, which is counted.
 */
static struct ni_finding *insert_finding(struct ni_summary *s, double lost_us) {
  size_t at = 0;
  if (s->n_findings == NI_SUM_FINDINGS) {
    s->findings_left_out++;
    return NULL;
  }
  bool numbered = s->n_findings && s->finding[s->n_findings - 1].kind == NI_FIND_UNDECIDED;
  for (; at < s->n_findings && !s->finding[at].note; at++)
    if (!numbered && !(s->finding[at].lost_us >= lost_us))
      break;
  memmove(&s->finding[at + 1], &s->finding[at], (s->n_findings++ - at) * sizeof *s->finding);
  s->finding[at] = (struct ni_finding){.other = UINT32_MAX,
                                       .value = NAN,
                                       .lost_us = lost_us,
                                       .low_us = NAN,
                                       .high_us = NAN,
                                       .from_step = -1,
                                       .to_step = -1,
                                       .by_waits = true};
  return &s->finding[at];
}

static int append_late_rank(struct ni_summary *s, const struct late_process *l) {
  const struct ni_process *p = &s->process[l->process];
  char host[81], late[32], lost[32];
  uint32_t *of = malloc(sizeof *of);
  if (!of)
    return -ENOMEM;
  struct ni_finding *f = insert_finding(s, l->lost_us);
  if (!f) {
    free(of);
    return 0;
  }
  *of = l->process;
  f->kind = NI_FIND_LATE_RANK;
  f->level = NI_LEVEL_RANK;
  f->of = l->process;
  f->process = of;
  f->n_processes = 1;
  f->compared = p->timed_waits;
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w, "rank %d on %s", p->rank, ni_safe_text(s->host[p->host].name, host, sizeof host));
  if (p->gpu >= 0)
    ni_put(&w, ", GPU %d,", p->gpu);
  if (!p->rank_stated)
    ni_put(&w, " (rank in its largest communicator)");
  ni_put(&w,
         " came %s later than its peers, in the mean, to %" PRIu64
         " symmetric kernels: they waited %s for it in all (" TOLD_BY ")",
         ni_duration_text(l->us, late), p->timed_waits, ni_duration_text(l->lost_us, lost));
  w = (struct ni_put_text){f->next, sizeof f->next};
  ni_put(&w, "trace LOGS --rank %d", p->rank);
  return 0;
}

/* What the late ranks of a host show together: those whose lateness nothing else explains. */
struct late_host {
  uint32_t host, late, timed; /* late ranks; all ranks there whose waits are known */
  /* how late, of an operation: the sum over the late ranks, and of the latest one */
  double us, most_us;
  double lost_us; /* by the one that cost most: its peers wait for the last of them alone */
  uint64_t kernels;
};

static struct late_host sum_up_late_host(const struct ni_summary *s, const struct late_process *l, uint32_t n,
                                         uint32_t host) {
  struct late_host x = {.host = host};
  for (size_t i = 0; i < s->n_processes; i++)
    x.timed += s->process[i].host == host && s->process[i].timed_waits >= WAITS_MIN;
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_process *p = &s->process[l[i].process];
    if (p->host != host || l[i].explained)
      continue;
    x.late++;
    x.us += l[i].us;
    x.most_us = fmax(x.most_us, l[i].us);
    x.lost_us = fmax(x.lost_us, l[i].lost_us);
    if (p->timed_waits > x.kernels)
      x.kernels = p->timed_waits;
  }
  return x;
}

/* A rank that stands out among those of its host is that rank; the only host has none to be compared with. */
static bool is_late_host(const struct ni_summary *s, const struct late_host *x) {
  const bool most_are_late = x->late >= 2 && x->late >= WAITS_OF_HOST * x->timed;
  const bool none_stands_out = x->most_us * x->late <= WAITS_OF_HOST_MOST * x->us;
  return s->n_hosts > 1 && most_are_late && none_stands_out;
}

static int append_late_host(struct ni_summary *s, const struct late_process *l, uint32_t n,
                            const struct late_host *x) {
  char host[81], late[32], lost[32];
  uint32_t *of = malloc(x->late * sizeof *of);
  if (!of)
    return -ENOMEM;
  struct ni_finding *f = insert_finding(s, x->lost_us);
  if (!f) {
    free(of);
    return 0;
  }
  f->kind = NI_FIND_SLOW_HOST;
  f->level = NI_LEVEL_HOST;
  f->of = x->host;
  f->process = of;
  f->compared = x->kernels;
  for (uint32_t i = 0; i < n; i++)
    if (s->process[l[i].process].host == x->host && !l[i].explained)
      of[f->n_processes++] = l[i].process;
  qsort(of, f->n_processes, sizeof *of, by_process);
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w,
         "host %s: %" PRIu32 " of its %" PRIu32
         " ranks came %s later than their peers, in the mean, to %" PRIu64
         " symmetric kernels: what peers waited for one of them is %s and less in all (" TOLD_BY ")",
         ni_safe_text(s->host[x->host].name, host, sizeof host), x->late, x->timed,
         ni_duration_text(x->us / x->late, late), x->kernels, ni_duration_text(x->lost_us, lost));
  w = (struct ni_put_text){f->next, sizeof f->next};
  ni_put(&w, "trace LOGS --rank %d", s->process[of[0]].rank);
  return 0;
}

/* By durations a host may be named for its bandwidth, waiting included. Where it is known for whom all wait,
 * that says nothing. */
static void drop_bandwidth_findings(struct ni_summary *s) {
  size_t kept = 0;
  for (size_t i = 0; i < s->n_findings; i++) {
    struct ni_finding *f = &s->finding[i];
    bool waiting = f->kind == NI_FIND_SLOW_HOST && !f->compared;
    if (waiting)
      free(f->process);
    else
      s->finding[kept++] = *f;
  }
  s->n_findings = kept;
}

static bool is_of_link(enum ni_finding_kind kind) {
  switch (kind) {
    case NI_FIND_FLAPPING:
    case NI_FIND_SLOW_NVLINK:
    case NI_FIND_SLOW_NIC:
    case NI_FIND_SLOW_PAIR:
    case NI_FIND_SLOW_COMM:
      return true;
    default:
      return false;
  }
}

/*
 * A transfer is the least duration over the ranks that are judged by own time. Where the late one is not, its
 * peers' waiting looks like slow transfers of what they have in common with it.
 */
static void drop_transfer_findings(const struct ni_run *r, struct ni_summary *s,
                                   const struct late_process *l) {
  size_t kept = 0;
  for (size_t i = 0; i < s->n_findings; i++) {
    struct ni_finding *f = &s->finding[i];
    const bool link = is_of_link(f->kind);
    bool with_it = false;
    for (size_t k = 0; link && k < f->n_processes && !with_it; k++)
      with_it = share_comm(r, l->process, f->process[k]);
    if (with_it) {
      free(f->process);
      free(f->moment);
    } else
      s->finding[kept++] = *f;
  }
  s->n_findings = kept;
}

/*
 * A rank that lies between those it was late to may have been late, in a communicator that is not in the
 * logs.
 */
static bool may_wait_between(const struct ni_summary *s, uint32_t process) {
  for (size_t i = 0; i < s->n_seats && s->process[process].may_wait_unseen; i++)
    if (s->seat[i].process == process && !s->comm[s->seat[i].comm].neighbours)
      return true;
  return false;
}

/*
 * Marks ranks that are late because they waited for another late one elsewhere (waits.h). Where messages are
 * left out of the logs any of them may have waited for the latest one.
 */
static void explain_lateness(const struct ni_run *r, const struct ni_summary *s, struct late_process *l,
                             uint32_t n) {
  const bool unseen = ni_run_has_left_out(r, NI_KIND_P2P);
  for (uint32_t i = 0; i < n; i++) {
    const double own_us = s->by_own_time ? s->process[l[i].process].own_us : NAN;
    /* false where own time is not known */
    l[i].explained = own_us < WAITS_OWN * l[i].lost_us || may_wait_between(s, l[i].process);
    for (uint32_t k = 0; isnan(own_us) && k < i && !l[i].explained; k++)
      l[i].explained = unseen || (!l[k].explained && share_comm(r, l[i].process, l[k].process));
  }
}

/*
 * One finding for all late ranks of a host; of what another finding names they are evidence, as single ranks
 * are.
 */
static int name_waited_hosts(struct ni_summary *s, struct late_process *l, uint32_t n) {
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < s->n_hosts; h++) {
    const struct late_host x = sum_up_late_host(s, l, n, h);
    if (!is_late_host(s, &x))
      continue;
    bool is_named = false;
    for (uint32_t i = 0; i < n && !is_named; i++) {
      const bool counts = s->process[l[i].process].host == h && !l[i].explained;
      is_named = counts && find_finding_of(s, l[i].process);
    }
    if (is_named)
      continue;
    e = append_late_host(s, l, n, &x);
    for (uint32_t i = 0; i < n; i++)
      l[i].with_host |= s->process[l[i].process].host == h;
  }
  return e;
}

int ni_add_wait_findings(const struct ni_run *r, struct ni_summary *s) {
  struct late_process *l = calloc(s->n_processes + 1, sizeof *l);
  double baseline, apart;
  uint32_t n = 0, ranks;
  if (!l || !find_wait_baseline(s, &baseline, &apart, &ranks)) {
    free(l);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < s->n_processes && ranks > 1; i++) {
    l[n].process = i;
    judge_process(s, &l[n], baseline, apart, ranks);
    if (l[n].late)
      n++;
    else
      l[n] = (struct late_process){0};
  }
  qsort(l, n, sizeof *l, by_loss);
  if (n && !s->by_own_time)
    drop_bandwidth_findings(s);
  explain_lateness(r, s, l, n);
  for (uint32_t i = 0; i < n; i++) {
    const bool own_is_known = s->by_own_time && !isnan(s->process[l[i].process].own_us);
    if (s->by_own_time && !own_is_known && !l[i].explained)
      drop_transfer_findings(r, s, &l[i]);
  }
  int e = name_waited_hosts(s, l, n);
  for (uint32_t i = 0; e == 0 && i < n; i++) {
    if (l[i].explained || l[i].with_host)
      continue;
    struct ni_finding *f = find_finding_of(s, l[i].process);
    if (f)
      append_agreement(s, f, &l[i]);
    else
      e = append_late_rank(s, &l[i]);
  }
  free(l);
  return e;
}
