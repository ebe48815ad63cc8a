/*
 * The result's tables in their order, and what follows once all cells are summed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accounts.h"
#include "build.h"
#include "durations/durations.h"
#include "findings.h"
#include "evidence/seats.h"
#include "reading/long_waits.h"
#include "work/joined.h"
#include "work/untold_sample.h"
#include "evidence/waits.h"
#include "reading/correct_clocks.h"
#include "exporter/base/order.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"

enum { PEAK_RECORDS_MIN = 10 }; /* a communicator's p90 of fewer says nothing about what it can do */

/* The four of NVIDIA's exporter come first, then by name. */
enum { FIRST_FUNCS = 4 };
static int rank_function(const char *func) {
  static const char *const first[FIRST_FUNCS] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};
  for (int i = 0; i < FIRST_FUNCS; i++)
    if (strcmp(func, first[i]) == 0)
      return i;
  return FIRST_FUNCS;
}

static int compare_cells(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_sum_cell *x = &r->cell[*(const uint32_t *)a], *y = &r->cell[*(const uint32_t *)b];
  const char *f = ni_name_text(&r->names, x->func), *g = ni_name_text(&r->names, y->func);
  int k = NI_BY(x, y, type, kind);
  if (k || x->func == y->func)
    return k ? k : NI_BY(x, y, msg_bytes);
  k = rank_function(f) - rank_function(g);
  return k ? k : strcmp(f, g);
}

static int compare_comms(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  const struct ni_who_comm *x = &r->who.comm[i], *y = &r->who.comm[j];
  int k = strcmp(ni_name_text(&r->names, r->comm[i].id), ni_name_text(&r->names, r->comm[j].id));
  return k ? k : NI_BY(x, y, n_ranks, run);
}

static int compare_processes(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  const struct ni_who_process *x = &r->who.process[i], *y = &r->who.process[j];
  int k = r->process[i].host == r->process[j].host ? 0 : strverscmp(x->host, y->host);
  if (k == 0)
    k = strcmp(x->host, y->host);
  if (k == 0)
    k = NI_BY(&r->process[i], &r->process[j], rank);
  if (k == 0)
    k = NI_BY(x, y, pid, start_ns);
  return k ? k : strcmp(x->origin, y->origin);
}

/*
 * A process that does not state its global rank has the one of its largest communicator: usually the world's.
 */
static int guess_ranks(struct ni_run *r, bool *stated) {
  int32_t *size = calloc(r->who.n_processes + 1, sizeof *size);
  uint64_t *hash = calloc(r->who.n_processes + 1, sizeof *hash);
  if (!size || !hash) {
    free(size);
    free(hash);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < r->who.n_processes; i++)
    stated[i] = r->process[i].rank >= 0;
  for (uint32_t i = 0; i < r->who.n_members; i++) {
    const struct ni_who_member *m = &r->who.member[i];
    const uint32_t p = m->process;
    /* Several ranks of one communicator: the lowest, whatever the order in which they were met. */
    const bool is_higher = m->hash > hash[p] || (m->hash == hash[p] && m->rank > r->process[p].rank);
    if (stated[p] || m->rank < 0 || m->n_ranks < size[p])
      continue;
    if (m->n_ranks == size[p] && is_higher)
      continue;
    size[p] = m->n_ranks;
    hash[p] = m->hash;
    r->process[p].rank = m->rank;
  }
  free(size);
  free(hash);
  return 0;
}

static int build_processes(struct ni_run *r, struct ni_summary *s) {
  uint32_t n = r->who.n_processes, *order = NULL;
  s->log_group = r->log_groups.name;
  s->n_log_groups = r->log_groups.n;
  bool *stated = calloc(n + 1, sizeof *stated);
  int e = -ENOMEM;
  s->process = calloc(n + 1, sizeof *s->process);
  s->host = calloc(n + 1, sizeof *s->host);
  r->process_at = calloc(n + 1, sizeof *r->process_at);
  const bool has_room = stated && s->process && s->host && r->process_at;
  if (!has_room || (e = guess_ranks(r, stated)) < 0)
    goto out;
  e = -ENOMEM;
  if (!(order = ni_order(n, compare_processes, r)))
    goto out;
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_sum_process *p = &r->process[order[i]];
    const char *host = ni_name_text(&r->names, p->host);
    uint32_t file = 0;
    r->process_at[order[i]] = i;
    if (s->n_hosts == 0 || s->host[s->n_hosts - 1].name != host)
      s->host[s->n_hosts++] = (struct ni_host){.name = host};
    s->host[s->n_hosts - 1].n_processes++;
    e = ni_name(&r->names, NULL, r->files.file[p->file].path, &file);
    if (e < 0)
      goto out;
    s->process[s->n_processes++] =
        (struct ni_process){.host = (uint32_t)s->n_hosts - 1,
                            .pid = r->who.process[order[i]].pid,
                            .rank = p->rank,
                            .gpu = p->gpu,
                            .rank_stated = stated[order[i]],
                            .log_group = r->log_groups.n ? r->file[p->file].log_group : UINT32_MAX,
                            .file = ni_name_text(&r->names, file),
                            .relative = NAN,
                            .busbw_relative = NAN};
  }
  e = 0;
out:
  free(order);
  free(stated);
  return e;
}

struct member_seat { /* of a member: for counting ranks and hosts of a communicator */
  uint32_t comm, host, process;
  int32_t rank;
};
static int compare_by_rank(const void *a, const void *b) {
  const struct member_seat *x = a, *y = b;
  return NI_BY(x, y, comm, rank);
}

static int compare_by_host(const void *a, const void *b) {
  const struct member_seat *x = a, *y = b;
  return NI_BY(x, y, comm, host);
}

static int compare_by_process(const void *a, const void *b) {
  const struct member_seat *x = a, *y = b;
  return NI_BY(x, y, process, comm, rank);
}

/* How many ranks each process is in one communicator, at most, and which. seat: is put in order. */
static void count_ranks_of_processes(struct ni_summary *s, struct member_seat *seat, uint32_t n_seats) {
  qsort(seat, n_seats, sizeof *seat, compare_by_process);
  for (uint32_t i = 0, n = 0, from = 0; i < n_seats; i++) {
    struct ni_process *p = &s->process[seat[i].process];
    const bool is_same = i > 0 && seat[i].process == seat[i - 1].process && seat[i].comm == seat[i - 1].comm;
    if (!is_same) {
      n = 1;
      from = i;
    } else if (seat[i].rank != seat[i - 1].rank) {
      n++;
    }
    if (n <= p->ranks)
      continue;
    p->ranks = n;
    p->first = seat[from].rank;
    p->last = seat[i].rank;
    if (n > 1)
      p->gpu = -1;
  }
}

/* Ranks and hosts of each communicator. seat: is put in order. */
static void count_ranks_of_comms(struct ni_summary *s, struct member_seat *seat, uint32_t n_seats) {
  qsort(seat, n_seats, sizeof *seat, compare_by_rank);
  for (uint32_t i = 0; i < n_seats; i++)
    if (i == 0 || compare_by_rank(&seat[i - 1], &seat[i]) != 0)
      s->comm[seat[i].comm].ranks_seen++;
  qsort(seat, n_seats, sizeof *seat, compare_by_host);
  for (uint32_t i = 0; i < n_seats; i++) {
    struct ni_comm_row *c = &s->comm[seat[i].comm];
    if (i == 0 || compare_by_host(&seat[i - 1], &seat[i]) != 0)
      c->one_host = c->hosts_seen++ == 0 ? (int32_t)seat[i].host : -1;
  }
}

static uint32_t count_missing_hosts(const struct ni_comm_row *c) {
  const bool has_missing = c->nnodes > 0 && (uint32_t)c->nnodes > c->hosts_seen;
  const uint32_t hosts = has_missing ? (uint32_t)c->nnodes - c->hosts_seen : 0;
  /* with all ranks there, hosts have one name: containers, or several nodes to NCCL on one machine */
  if (c->n_ranks <= 0)
    return hosts;
  const uint32_t ranks = c->ranks_seen < (uint32_t)c->n_ranks ? (uint32_t)c->n_ranks - c->ranks_seen : 0;
  return hosts < ranks ? hosts : ranks;
}

static int count_seats(struct ni_run *r, struct ni_summary *s) {
  const uint32_t n_seats = r->who.n_members;
  struct member_seat *seat = calloc(n_seats + 1, sizeof *seat);
  if (!seat)
    return -ENOMEM;
  for (uint32_t i = 0; i < n_seats; i++) {
    const struct ni_who_member *m = &r->who.member[i];
    seat[i] = (struct member_seat){r->comm_at[m->comm], s->process[r->process_at[m->process]].host,
                                   r->process_at[m->process], m->rank};
  }
  count_ranks_of_processes(s, seat, n_seats);
  count_ranks_of_comms(s, seat, n_seats);
  free(seat);
  for (size_t i = 0; i < s->n_comms; i++) {
    const uint32_t hosts = count_missing_hosts(&s->comm[i]);
    if (hosts > s->input.missing_hosts)
      s->input.missing_hosts = hosts;
  }
  return 0;
}

static int build_comms(struct ni_run *r, struct ni_summary *s) {
  uint32_t n = r->who.n_comms, *order = ni_order(n, compare_comms, r);
  s->comm = calloc(n + 1, sizeof *s->comm);
  r->comm_at = calloc(n + 1, sizeof *r->comm_at);
  if (!order || !s->comm || !r->comm_at) {
    free(order);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_who_comm *c = &r->who.comm[order[i]];
    struct ni_comm_row *x = &s->comm[s->n_comms++];
    r->comm_at[order[i]] = i;
    *x = (struct ni_comm_row){.hash = c->hash,
                              .name = c->name,
                              .type = ni_comm_type_of(r, c->n_ranks, c->nnodes),
                              .n_ranks = c->n_ranks,
                              .nnodes = c->nnodes,
                              .run = c->run,
                              .one_host = -1};
    snprintf(x->id, sizeof x->id, "%s", ni_name_text(&r->names, r->comm[order[i]].id));
  }
  free(order);
  int e = count_seats(r, s);
  if (e == 0)
    e = ni_seats_build(r, s);
  if (e == 0)
    e = ni_long_waits_build(r, s);
  return e < 0 ? e : ni_joined_find(r, s);
}

static int build_cells(struct ni_run *r, struct ni_summary *s) {
  uint32_t *order = r->cell_order = ni_order(r->n_cells, compare_cells, r);
  s->cell = calloc(r->n_cells + 1, sizeof *s->cell);
  if (!order || !s->cell)
    return -ENOMEM;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < r->n_cells; i++) {
    const struct ni_sum_cell *c = &r->cell[order[i]];
    const char *func = ni_name_text(&r->names, c->func);
    const bool is_of_nvidia = c->kind == NI_KIND_COLL && rank_function(func) < FIRST_FUNCS;
    if (c->records == 0 || (r->opt.compat && !is_of_nvidia))
      continue;
    order[kept++] = order[i];
    struct ni_cell *x = &s->cell[s->n_cells++];
    x->type = (enum ni_comm_type)c->type;
    x->kind = (enum ni_kind)c->kind;
    x->func = func;
    x->msg_bytes = c->msg_bytes;
    ni_human_bytes(c->msg_bytes, x->human);
  }
  return 0;
}

/* Has a run before the i-th one the same job? */
static bool is_job_before(const struct ni_runs *runs, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (runs->run[k].job && strcmp(runs->run[k].job, runs->run[i].job) == 0)
      return true;
  return false;
}

/* Jobs and runs whose logs are read together; the texts of more than three ids end in "...". */
static int build_jobs(struct ni_run *r, struct ni_summary *s) {
  enum { SHOWN = 3 };
  char ids[SHOWN * 84] = "", text[81];
  const char *id[SHOWN] = {NULL};
  struct ni_put_text w = {ids, sizeof ids};
  uint32_t code = 0;
  s->job.runs = r->opt.inputs.run || !r->runs.n ? 1 : (uint32_t)r->runs.n;
  s->job.jobs = s->job.id != NULL;
  if (s->job.runs < 2)
    return 0;
  s->job.jobs = 0;
  for (size_t i = 0; i < r->runs.n; i++) {
    const char *job = r->runs.run[i].job;
    if (!job || is_job_before(&r->runs, i))
      continue;
    if (s->job.jobs < SHOWN)
      id[s->job.jobs] = job;
    s->job.jobs++;
  }
  if (s->job.jobs < 2)
    return 0;
  for (uint32_t i = 0; i < s->job.jobs && i < SHOWN; i++) {
    const char *before = i + 1 == s->job.jobs ? " and " : ", ";
    ni_put(&w, "%s%s", i == 0 ? "" : before, ni_safe_text(id[i], text, sizeof text));
  }
  if (s->job.jobs > SHOWN)
    ni_put(&w, ", ...");
  int e = ni_name(&r->names, NULL, ids, &code);
  s->job.ids = ni_name_text(&r->names, code);
  return e;
}

static const char *name_producers(const struct ni_run *r) {
  /* Several sources in one folder: the first one stands for them. */
  static const char *const some[NI_IMPORTS] =
      {"nccl-inspector, some of it imported from Kineto traces",
       "nccl-inspector, some of it imported from Nsight Systems reports",
       "nccl-inspector, some of it imported from logs of ACCL"},
                           *const all[NI_IMPORTS] = {"nccl-inspector import, from Kineto traces",
                                                     "nccl-inspector import, from Nsight Systems reports",
                                                     "nccl-inspector import, from logs of ACCL"};
  const bool ours = r->tally.versions & NI_VERSIONS_OURS;
  for (int i = 0; i < NI_IMPORTS; i++)
    if (r->tally.versions & 1u << (NI_VERSIONS_IMPORTED + i))
      return ours ? some[i] : all[i];
  if (ours)
    return "nccl-inspector";
  return r->tally.records ? "NVIDIA" : "";
}

/* "v4.0, v4.3" */
static int build_job(struct ni_run *r, struct ni_summary *s) {
  char formats[128] = "";
  uint32_t code = 0;
  for (int i = 0; i < 10; i++)
    if (r->tally.versions & 1u << i)
      snprintf(formats + strlen(formats), sizeof formats - strlen(formats), "%sv4.%d", *formats ? ", " : "",
               i);
  int e = ni_name(&r->names, NULL, formats, &code);
  s->job = (struct ni_job_facts){.world_size = -1,
                                 .nccl_version = -1,
                                 .formats = ni_name_text(&r->names, code),
                                 .producers = name_producers(r)};
  const char *job = NULL;
  bool told = false, alike = true;
  /* smallest texts, largest numbers: whoever came first */
  for (uint32_t i = 0; i < r->who.n_processes; i++) {
    const struct ni_sum_process *p = &r->process[i];
    const char *id = p->job ? ni_name_text(&r->names, p->job) : NULL,
               *exe = p->exe ? ni_name_text(&r->names, p->exe) : NULL;
    if (exe || id) { /* it has a line of its own: logs of several jobs have no id that is all theirs */
      const bool is_same = id && job ? strcmp(id, job) == 0 : id == job;
      alike = alike && (!told || is_same);
      told = true;
      job = id;
    }
    if (exe && (!s->job.exe || strcmp(exe, s->job.exe) < 0))
      s->job.exe = exe;
    if (p->world_size > s->job.world_size)
      s->job.world_size = p->world_size;
    if (p->nccl_version > s->job.nccl_version)
      s->job.nccl_version = p->nccl_version;
  }
  s->job.id = alike ? job : NULL;
  return e == 0 ? build_jobs(r, s) : e;
}

/* Of so many collectives one has a record, as the logs count; else as they state, or as it looks. */
static double measure_sampling(const struct ni_run *r) {
  const struct ni_ledger *l = &r->ledger;
  uint64_t written = 0, sampled = 0, stated = 1;
  for (size_t i = 0; i < l->n_members; i++) {
    const struct ni_ledger_kind *k = &l->member[i]->kind[NI_KIND_COLL];
    if (!k->stated)
      continue;
    written += k->written;
    sampled += k->sampled;
  }
  for (size_t i = 0; i < l->n_processes; i++)
    if (l->process[i] && l->process[i]->sample > stated)
      stated = l->process[i]->sample;
  if (sampled && written)
    return (double)(written + sampled) / (double)written;
  return stated > 1 ? (double)stated : ni_find_untold_sampling(&r->ledger);
}

int ni_build_begin(struct ni_run *r, struct ni_summary *s) {
  int e = ni_correct_clocks(r);
  if (!r->opt.compat)
    s->clocks = &r->clocks;
  if (e == 0)
    e = ni_step_marks_find(r);
  if (e == 0)
    e = build_processes(r, s);
  if (e == 0)
    e = build_comms(r, s);
  if (e == 0)
    e = build_cells(r, s);
  if (e == 0)
    e = build_job(r, s);
  s->approximate = r->opt.approximate;
  s->one_in = measure_sampling(r);
  if (e < 0 || !r->tally.any)
    return e;
  s->buckets.width_ns = r->opt.bucket_ns;
  s->first_us = r->tally.first_us;
  s->last_us = r->tally.last_us;
  s->time_from = r->tally.no_start ? NI_TIME_DUMP : NI_TIME_START;
  s->n_bins = s->last_us > s->first_us ? NI_SUM_TIME_BINS : 1;
  return 0;
}

enum { NO_HOST = -1, HOSTS = -2 };

/*
 * Of each group the host that has all of its records; HOSTS: there are several. NULL: no memory. Caller
 * frees.
 */
static int64_t *find_hosts_of_groups(const struct ni_summary *s) {
  int64_t *host = malloc((s->n_groups + 1) * sizeof *host);
  for (size_t i = 0; host && i < s->n_groups; i++)
    host[i] = NO_HOST;
  for (size_t i = 0; host && i < s->n_by_process; i++) {
    int64_t *mine = &host[s->by_process[i].group], h = (int64_t)s->process[s->by_process[i].of].host;
    *mine = *mine == NO_HOST || *mine == h ? h : HOSTS;
  }
  return host;
}

/*
 * A process's bandwidth beside the median of its groups, weighted by records; a host's likewise, of what
 * other hosts do too: what one alone does is spread around its own median, which says nothing of the host.
 * Nor do messages: how long a stage waits for another one in them is the schedule's.
 */
static int compare_bandwidths(struct ni_summary *s) {
  double *sum = calloc(s->n_processes + 1, sizeof *sum), *n = calloc(s->n_processes + 1, sizeof *n);
  double *shared_sum = calloc(s->n_processes + 1, sizeof *sum),
         *shared_n = calloc(s->n_processes + 1, sizeof *n);
  int64_t *only_host = find_hosts_of_groups(s);
  int e = sum && n && shared_sum && shared_n && only_host ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < s->n_by_process; i++) {
    const struct ni_slice *x = &s->by_process[i];
    const double baseline = s->group[x->group].busbw_gbs.p50;
    if (!(baseline > 0) || x->busbw_gbs.n == 0)
      continue;
    double weight = (double)x->busbw_gbs.n, mine = x->busbw_gbs.mean / baseline * weight;
    sum[x->of] += mine;
    n[x->of] += weight;
    if (only_host[x->group] != HOSTS || s->group[x->group].kind == NI_KIND_P2P)
      continue;
    shared_sum[x->of] += mine;
    shared_n[x->of] += weight;
  }
  for (size_t i = 0; e == 0 && i < s->n_processes; i++)
    if (n[i] > 0)
      s->process[i].busbw_relative = sum[i] / n[i];
  for (size_t i = 0; e == 0 && i < s->n_hosts; i++)
    s->host[i].relative = s->host[i].busbw_relative = NAN;
  for (size_t i = 0, k; e == 0 && i < s->n_processes; i = k) {
    struct ni_host *h = &s->host[s->process[i].host];
    double all = 0, weight = 0, relative = 0;
    for (k = i; k < s->n_processes && s->process[k].host == s->process[i].host; k++) {
      const struct ni_process *p = &s->process[k];
      h->records += p->records;
      h->exec_ns += p->exec_ns;
      h->compared += p->compared;
      h->shortest += p->shortest;
      h->late += p->late;
      h->late_ns += p->late_ns;
      if (p->compared)
        relative += p->relative * (double)p->compared;
      all += shared_sum[k];
      weight += shared_n[k];
    }
    if (h->compared)
      h->relative = relative / (double)h->compared;
    if (weight > 0)
      h->busbw_relative = all / weight;
  }
  free(sum);
  free(n);
  free(shared_sum);
  free(shared_n);
  free(only_host);
  return e;
}

/* Groups of one type, kind and function are neighbours; [from, to) are such. */
static void compare_with_best(struct ni_summary *s, size_t from, size_t to, size_t *slice) {
  double best[NI_TIMING_COUNT] = {0};
  for (size_t i = from; i < to; i++) {
    const struct ni_group *g = &s->group[i];
    if (g->busbw_gbs.n && g->busbw_gbs.p90 > best[g->timing])
      best[g->timing] = g->busbw_gbs.p90;
  }
  for (; *slice < s->n_by_comm && s->by_comm[*slice].group < to; ++*slice) {
    const struct ni_slice *x = &s->by_comm[*slice];
    unsigned timing = s->group[x->group].timing;
    if (x->busbw_gbs.n >= PEAK_RECORDS_MIN && x->busbw_gbs.p90 > best[timing])
      best[timing] = x->busbw_gbs.p90;
  }
  for (size_t i = from; i < to; i++) {
    struct ni_group *g = &s->group[i];
    g->of_best = best[g->timing] > 0 ? g->busbw_gbs.p50 / best[g->timing] : NAN;
  }
}

/* Of the operations, and of the run: then durations are believed where own time says nothing. */
#define WAITED_SHARE 0.6
#define WAITED_OF_RUN 0.2

/* Durations say clearly what own time does not: where ranks call at a pace that something else sets, all but
 * the late one are idle before they call. */
static bool is_one_waited_for(const struct ni_summary *s) {
  const double run_us = (double)(s->last_us - s->first_us);
  for (size_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    const bool is_often_late = (double)p->late >= WAITED_SHARE * (double)p->compared;
    const bool costs_much = p->late_ns / 1e3 >= WAITED_OF_RUN * run_us;
    if (p->compared >= NI_FIND_COMPARED_MIN && is_often_late && costs_much)
      return true;
  }
  return false;
}

/* The time of its records; of a fused kernel once. */
static double sum_counted_us(const struct ni_group *g) {
  const double us = g->us.mean * (double)g->us.n - (double)g->tail_ns / 1e3;
  return us > 0 ? us : 0;
}

static bool is_same_function(const struct ni_group *a, const struct ni_group *b) {
  return a->type == b->type && a->kind == b->kind && strcmp(a->func, b->func) == 0;
}

int ni_build_end(struct ni_run *r, struct ni_summary *s) {
  double all = 0;
  size_t slice = 0;
  for (size_t i = 0; i < s->n_groups; i++)
    all += sum_counted_us(&s->group[i]);
  for (size_t from = 0, to; from < s->n_groups; from = to) {
    const struct ni_group *f = &s->group[from];
    for (to = from; to < s->n_groups && is_same_function(&s->group[to], f); to++) {
      struct ni_group *g = &s->group[to];
      g->time_share = all > 0 ? sum_counted_us(g) / all : 0;
    }
    compare_with_best(s, from, to, &slice);
  }
  int e = compare_bandwidths(s);
  const bool waits = !s->approximate && !r->opt.compat;
  if (e == 0 && s->by_own_time && waits)
    e = ni_add_wait_findings(r, s);
  if (s->by_own_time && s->n_findings == 0 && is_one_waited_for(s)) {
    s->by_own_time = false;
    s->why_durations = "own time does not explain whom the others wait for";
  }
  if (!s->by_own_time && s->one_in > 1)
    s->why_durations = ni_why_sampled;
  if (e == 0 && !s->by_own_time && !s->approximate)
    e = ni_judge_by_durations(s);
  if (e == 0 && !s->by_own_time && waits)
    e = ni_add_wait_findings(r, s);
  if (s->n_outliers > NI_SUM_OUTLIERS)
    s->n_outliers = NI_SUM_OUTLIERS;
  ni_buckets_end(r, s);
  if (e == 0)
    e = ni_tag_sums_build(r, s, all * 1e3);
  return e < 0 ? e : ni_judge_input(r, s);
}
