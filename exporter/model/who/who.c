#include "who.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/base/order.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan_files.h"

int64_t ni_who_process(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns, const char *origin) {
  if (!ni_array_room(w->process, w->n_processes, w->cap_processes)) return -ENOMEM;
  uint64_t name = ni_hash_text((uint64_t)pid, host), started = ni_hash(name, start_ns);
  int64_t known = start_ns ? ni_map_get(&w->process_names, started, 0) : -1;
  uint32_t next = (uint32_t)(known < 0 ? (int64_t)w->n_processes : known);
  int64_t k = ni_map_find(&w->process_names, ni_hash_text(~name, origin), start_ns, next); /* the origin learns of it, too */
  if (k >= 0 && known >= 0) k = known;
  if (k >= 0 && start_ns && ni_map_find(&w->process_names, started, 0, (uint32_t)k) < 0) k = -ENOMEM;
  if (k < 0) return k;
  struct ni_who_process *p = &w->process[k];
  if ((size_t)k == w->n_processes) {
    *p = (struct ni_who_process){.host = strdup(host), .origin = strdup(origin), .pid = pid};
    w->n_processes++;
    if (!p->host || !p->origin) return -ENOMEM;
  }
  if (start_ns) p->start_ns = start_ns;
  return k;
}

int64_t ni_who_process_in(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns, const char *path) {
  char origin[PATH_MAX];
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(path, NULL), path);
  return ni_who_process(w, host, pid, start_ns, origin);
}

/* The smallest one stays, so that it does not depend on who came first; the communicator's is that of a member. */
static int take_name(struct ni_who_comm *c, struct ni_who_member *m, const char *name) {
  if (m->name && strcmp(name, m->name) >= 0) return 0;
  char *copy = strdup(name);
  if (!copy) return -ENOMEM;
  if (!c->name || strcmp(copy, c->name) < 0) c->name = copy;
  free(m->name);
  m->name = copy;
  return 0;
}

/* The communicator, of which nothing more is said. */
static int64_t find_comm(struct ni_who *w, uint64_t name, uint32_t run, const struct ni_ident *id) {
  if (!ni_array_room(w->comm, w->n_comms, w->cap_comms)) return -ENOMEM;
  int64_t k = ni_map_find(&w->comm_names, name, 0, (uint32_t)w->n_comms);
  if (k == (int64_t)w->n_comms)
    w->comm[w->n_comms++] = (struct ni_who_comm){.hash = id->comm_hash, .run = run, .n_ranks = id->n_ranks};
  return k;
}

int64_t ni_who_member(struct ni_who *w, uint32_t process, uint32_t run, const struct ni_ident *id, uint64_t init_ns) {
  uint64_t comm_name = ni_hash(ni_hash(run, id->comm_hash), (uint32_t)id->n_ranks),
           name = ni_hash(ni_hash(comm_name, process), (uint32_t)id->rank);
  if (!ni_array_room(w->member, w->n_members, w->cap_members)) return -ENOMEM;
  int64_t k = ni_map_find(&w->member_names, name, init_ns, (uint32_t)w->n_members);
  if (k < 0) return k;
  struct ni_who_member *m = &w->member[k];
  if ((size_t)k == w->n_members) { /* lines change their member often, so the communicator is looked up here alone */
    int64_t comm = find_comm(w, comm_name, run, id);
    if (comm < 0) return comm;
    *m = (struct ni_who_member){.process = process, .comm = (uint32_t)comm, .hash = id->comm_hash, .rank = id->rank,
                                .n_ranks = id->n_ranks, .nnodes = id->nnodes};
    w->n_members++;
  }
  struct ni_who_comm *c = &w->comm[m->comm];
  if (init_ns) m->init_ns = init_ns;
  if (id->nnodes > c->nnodes) c->nnodes = id->nnodes;
  return id->comm_name && take_name(c, m, id->comm_name) < 0 ? -ENOMEM : k;
}

void ni_who_rewind(struct ni_who *w) {
  ni_map_rewind(&w->process_names);
  ni_map_rewind(&w->member_names);
}

void ni_who_free(struct ni_who *w) {
  for (size_t i = 0; i < w->n_processes; i++) {
    free(w->process[i].host);
    free(w->process[i].origin);
  }
  for (size_t i = 0; i < w->n_members; i++) free(w->member[i].name);
  free(w->process);
  free(w->comm);
  free(w->member);
  ni_map_free(&w->process_names);
  ni_map_free(&w->comm_names);
  ni_map_free(&w->member_names);
  *w = (struct ni_who){0};
}

enum {
  LINES_MAX = 64,  /* of a file are looked at; communicators stand in the first ones */
  COMMS_MAX = 16,
  RUNS_TRIED = 16, /* the newest; so hostile logs cost no more than others */
  STOP = -ECANCELED
};

/* What the beginning of a file says. */
struct head {
  char *host, *job;
  int64_t pid;
  struct ni_log_head log;
  int64_t at_ns;       /* that, or the time of the first line */
  int32_t rank, world; /* -1: not stated */
  struct {
    uint64_t hash;
    int32_t rank;
  } comm[COMMS_MAX];
  unsigned n_comms;
  size_t file;
};

const char *ni_job_id(const struct ni_process_line *p) {
  static const char *const keys[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
  for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++)
    for (uint32_t i = p->env.n; i-- > 0;)
      if (strcmp(p->env.item[i].key, keys[k]) == 0) return p->env.item[i].value;
  return NULL;
}

/* ---- the beginning of each file -------------------------------------------------------------------------------------- */

static void take_keys(struct ni_log_head *h, const struct ni_line *l) {
  h->has_record = true;
  h->has_name = l->has_header && l->ident.comm_name;
  h->has_timing = l->op.timing != NI_TIMING_NONE;
  h->has_trace = l->trace != NULL;
  h->has_algo = l->op.algo && *l->op.algo;
}

static int take_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct head *h = arg;
  if (l->kind == NI_LINE_COUNTER_NAMES || l->kind == NI_LINE_COUNTERS) return STOP; /* of a recorder, no process of a run */
  if (!h->host) {
    if (!(h->host = strdup(l->meta.hostname))) return -ENOMEM;
    h->pid = l->meta.pid;
    h->at_ns = (int64_t)l->meta.dump_timestamp_us * 1000;
  }
  if (l->kind == NI_LINE_OP && !h->log.has_record) take_keys(&h->log, l);
  if (l->kind == NI_LINE_PROCESS && !h->log.start_ns) {
    const char *job = ni_job_id(&l->process);
    h->log.start_ns = l->process.start_ns;
    if (h->log.start_ns) h->at_ns = (int64_t)h->log.start_ns;
    h->rank = l->process.rank;
    h->world = l->process.world_size;
    if (job && !(h->job = strdup(job))) return -ENOMEM;
  } else if (l->ident.comm_hash && l->ident.rank >= 0) {
    unsigned i = 0;
    while (i < h->n_comms && (h->comm[i].hash != l->ident.comm_hash || h->comm[i].rank != l->ident.rank)) i++;
    if (i == h->n_comms && i < COMMS_MAX) {
      h->comm[h->n_comms].hash = l->ident.comm_hash;
      h->comm[h->n_comms++].rank = l->ident.rank;
    }
  }
  return line_no < LINES_MAX ? 0 : STOP;
}

static int read_head(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p, void **result) {
  struct head *h = (struct head *)arg + p->file_no;
  *h = (struct head){.rank = -1, .world = -1, .file = p->file_no};
  to->arg = h;
  to->take = take_line;
  to->counters = to->head = true;
  int e = ni_scan_file(scan, p->file->path, NULL, to, NULL);
  return e == STOP ? 0 : e;
}

/* ---- runs -------------------------------------------------------------------------------------------------------------- */

struct finding {
  struct ni_runs *r;
  struct ni_files *files;
  struct head *head;
  /* Which processes there are, what each run has: numbers of items by hash. */
  struct seen {
    uint64_t a, b, c;
    uint32_t run;
  } *seen;
  size_t n_seen, cap_seen;
  struct ni_index at_hash;
};

enum { A_PROCESS = 1, A_RANK, A_MEMBER, A_COMM };

/* The run of the thing; 0: nobody has it. put: from now on this run has it. */
static int64_t look(struct finding *x, unsigned what, uint64_t a, uint64_t b, uint32_t put) {
  uint64_t hash = ni_hash(ni_hash(ni_hash(0, what), a), b);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&x->at_hash, hash, &at)) != NI_INDEX_NONE;) {
    struct seen *s = &x->seen[k];
    if (s->a != a || s->b != b || s->c != what) continue;
    if (put) s->run = put;
    return s->run;
  }
  if (!put) return 0;
  if (!ni_array_room(x->seen, x->n_seen, x->cap_seen) || ni_index_add(&x->at_hash, hash, (uint32_t)x->n_seen) < 0) return -ENOMEM;
  x->seen[x->n_seen++] = (struct seen){a, b, what, put};
  return put;
}

static uint64_t rank_in(uint32_t run, int32_t rank) { return (uint64_t)run << 32 | (uint32_t)rank; }

static bool fits(struct finding *x, const struct head *h, uint32_t run) {
  const struct ni_job_run *r = &x->r->run[run - 1];
  if (h->job && r->job && strcmp(h->job, r->job) != 0) return false;
  if (h->rank >= 0 && look(x, A_RANK, rank_in(run, h->rank), (uint32_t)h->world, 0)) return false;
  for (unsigned i = 0; i < h->n_comms; i++)
    if (look(x, A_MEMBER, rank_in(run, h->comm[i].rank), h->comm[i].hash, 0)) return false;
  return true;
}

static uint32_t choose(struct finding *x, const struct head *h) {
  for (unsigned i = 0; i < h->n_comms; i++) {
    uint32_t run = (uint32_t)look(x, A_COMM, h->comm[i].hash, 0, 0);
    if (run && fits(x, h, run)) return run;
  }
  for (size_t i = 0; i < x->r->n && i < RUNS_TRIED; i++)
    if (fits(x, h, (uint32_t)(x->r->n - i))) return (uint32_t)(x->r->n - i);
  return 0;
}

static int place(struct finding *x, const struct head *h) {
  struct ni_runs *r = x->r;
  const char *path = x->files->file[h->file].path;
  char origin[PATH_MAX];
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(path, NULL), path);
  /* Where a file does not say when its process began: files of one name are of one process, and so is a copy. */
  uint64_t who = ni_hash_text((uint64_t)h->pid, h->host), when = h->log.start_ns ? h->log.start_ns : (uint64_t)h->at_ns,
           name = ni_hash_text(0, origin);
  int64_t run = look(x, A_PROCESS, who, when, 0);
  if (!run && !h->log.start_ns) run = look(x, A_PROCESS, who, name, 0);
  if (!run) {
    run = choose(x, h);
    if (!run) {
      if (!ni_array_room(r->run, r->n, r->cap)) return -ENOMEM;
      r->run[r->n++] = (struct ni_job_run){.start_ns = h->at_ns};
      run = (int64_t)r->n;
    }
    r->run[run - 1].processes++;
  }
  struct ni_job_run *of = &r->run[run - 1];
  if (!of->job && h->job && !(of->job = strdup(h->job))) return -ENOMEM;
  x->files->file[h->file].run = (uint32_t)run;
  if (look(x, A_PROCESS, who, when, (uint32_t)run) < 0 || look(x, A_PROCESS, who, name, (uint32_t)run) < 0) return -ENOMEM;
  if (h->rank >= 0 && look(x, A_RANK, rank_in((uint32_t)run, h->rank), (uint32_t)h->world, (uint32_t)run) < 0) return -ENOMEM;
  for (unsigned i = 0; i < h->n_comms; i++)
    if (look(x, A_MEMBER, rank_in((uint32_t)run, h->comm[i].rank), h->comm[i].hash, (uint32_t)run) < 0 ||
        look(x, A_COMM, h->comm[i].hash, 0, (uint32_t)run) < 0)
      return -ENOMEM;
  return 0;
}

static NI_ORDER_BY(by_time, struct head, at_ns, file)

int ni_runs_find(struct ni_runs *out, struct ni_files *files) {
  struct finding x = {.r = out, .files = files, .head = calloc(files->n + 1, sizeof *x.head)};
  struct ni_scan_plan plan = {0};
  unsigned jobs = ni_scan_jobs();
  int e = x.head ? ni_scan_plan(&plan, files, false, jobs) : -ENOMEM;
  if (e == 0) e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = jobs, .arg = x.head, .part = read_head});
  if (e == 0) qsort(x.head, files->n, sizeof *x.head, by_time);
  for (size_t i = 0; e == 0 && i < files->n; i++) {
    files->file[x.head[i].file].head = x.head[i].log;
    if (out && x.head[i].host) e = place(&x, &x.head[i]);
  }
  /* Nobody knows whose a file without a line is: it is read with whatever is read. */
  for (size_t i = 0; x.head && i < files->n; i++) {
    free(x.head[i].host);
    free(x.head[i].job);
  }
  ni_scan_plan_free(&plan);
  ni_index_free(&x.at_hash);
  free(x.seen);
  free(x.head);
  return e;
}

uint32_t ni_runs_named(const struct ni_runs *r, const char *which) {
  uint32_t found = 0;
  char *end;
  if (strcmp(which, "last") == 0) return (uint32_t)r->n;
  for (size_t i = 0; i < r->n; i++)
    if (r->run[i].job && strcmp(r->run[i].job, which) == 0) {
      if (found) return 0; /* a job that was started again: by number */
      found = (uint32_t)i + 1;
    }
  unsigned long n = strtoul(which, &end, 10);
  return found ? found : *which >= '1' && *which <= '9' && !*end && n <= r->n ? (uint32_t)n : 0;
}

const char *ni_run_text(const struct ni_runs *r, size_t run, char out[256]) {
  const struct ni_job_run *x = &r->run[run];
  char when[40] = "";
  if (x->start_ns) ni_utc_text(x->start_ns / 1000, ' ', 0, when);
  snprintf(out, 256, "run %zu (%s%.80s%s%u %s%s%s)", run + 1, x->job ? "job " : "", x->job ? x->job : "", x->job ? ", " : "",
           x->processes, ni_plural(x->processes, "process", "processes"), *when ? ", from " : "", when);
  return out;
}

void ni_runs_free(struct ni_runs *r) {
  for (size_t i = 0; i < r->n; i++) free(r->run[i].job);
  free(r->run);
  *r = (struct ni_runs){0};
}
