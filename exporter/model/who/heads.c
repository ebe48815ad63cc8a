#include "heads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/index.h"
#include "exporter/input/scan_files.h"
#include "who.h"

enum {
  LINES_MAX = 64,  /* of a file are looked at; communicators stand in the first ones */
  DEEP_MAX = 4096, /* where those leave open who belongs together */
  STOP = -ECANCELED
};

const char *ni_job_id(const struct ni_process_line *p) {
  static const char *const keys[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};
  for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++)
    for (uint32_t i = p->env.n; i-- > 0;)
      if (strcmp(p->env.item[i].key, keys[k]) == 0)
        return p->env.item[i].value;
  return NULL;
}

/* How often it was started again, by all who count that. -1: nobody does. */
static int32_t find_attempt(const struct ni_process_line *p) {
  static const char *const keys[] = {"SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"};
  int32_t n = -1;
  for (unsigned k = 0; k < sizeof keys / sizeof *keys; k++)
    for (uint32_t i = 0; i < p->env.n; i++)
      if (strcmp(p->env.item[i].key, keys[k]) == 0) {
        unsigned long count = strtoul(p->env.item[i].value, NULL, 10);
        n = (n < 0 ? 0 : n) + (int32_t)(count < 1000000 ? count * (k ? 1 : 1000) : 0);
      }
  return n;
}

static void read_keys(struct ni_log_head *h, const struct ni_line *l) {
  h->has_record = true;
  h->has_name = l->has_header && l->ident.comm_name;
  h->has_timing = l->op.timing != NI_TIMING_NONE;
  h->has_trace = l->trace != NULL;
  h->has_algo = l->op.algo && *l->op.algo;
}

static void add_seat(struct ni_process_head *h, const struct ni_ident *id) {
  unsigned i = 0;
  while (i < h->n_seats && (h->seat[i].hash != id->comm_hash || h->seat[i].rank != id->rank))
    i++;
  if (i == h->n_seats && i < NI_HEAD_COMMS)
    h->seat[h->n_seats++] = (struct ni_head_seat){id->comm_hash, id->n_ranks, id->rank};
}

static int read_process_line(struct ni_process_head *h, const struct ni_process_line *p) {
  const char *job = ni_job_id(p);
  h->log.start_ns = p->start_ns;
  if (h->log.start_ns)
    h->at_ns = (int64_t)h->log.start_ns;
  h->rank = p->rank;
  h->world = p->world_size;
  h->attempt = find_attempt(p);
  return job && !(h->job = strdup(job)) ? -ENOMEM : 0;
}

static int read_head_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct ni_process_head *h = arg;
  int e = 0;
  /* a recorder, no process of a run */
  if (l->kind == NI_LINE_COUNTER_NAMES || l->kind == NI_LINE_COUNTERS)
    return STOP;
  if (!h->host) {
    if (!(h->host = strdup(l->meta.hostname)))
      return -ENOMEM;
    h->pid = l->meta.pid;
    h->at_ns = (int64_t)l->meta.dump_timestamp_us * 1000;
  }
  if (l->kind == NI_LINE_OP && !h->log.has_record)
    read_keys(&h->log, l);
  if (l->kind == NI_LINE_PROCESS && !h->log.start_ns)
    e = read_process_line(h, &l->process);
  else if (l->ident.comm_hash && l->ident.rank >= 0)
    add_seat(h, &l->ident);
  const char *gpu = l->kind != NI_LINE_COMM ? NULL : l->comm.gpu_uuid ? l->comm.gpu_uuid : l->comm.gpu_pci;
  if (gpu && *gpu && !h->gpu)
    h->gpu = ni_hash_text(0, gpu);
  if (e < 0)
    return e;
  return line_no < (h->deep ? DEEP_MAX : LINES_MAX) ? 0 : STOP;
}

struct head_reading {
  struct ni_process_head *head;
  const bool *wanted;
};

static int read_head(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                     void **result) {
  const struct head_reading *r = arg;
  struct ni_process_head *h = &r->head[p->file_no];
  if (r->wanted && !r->wanted[p->file_no])
    return 0;
  ni_head_free(h);
  *h = (struct ni_process_head){
      .rank = -1, .world = -1, .attempt = -1, .file = p->file_no, .deep = r->wanted != NULL};
  to->arg = h;
  to->take = read_head_line;
  to->counters = to->head = true;
  int e = ni_scan_file(scan, p->file->path, NULL, to, NULL);
  return e == STOP ? 0 : e;
}

int ni_heads_read(struct ni_process_head *head, const struct ni_files *files, const bool *wanted) {
  struct head_reading r = {head, wanted};
  struct ni_scan_plan plan = {0};
  unsigned jobs = ni_scan_jobs();
  int e = ni_scan_plan(&plan, files, false, jobs);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan, .jobs = jobs, .arg = &r, .part = read_head});
  ni_scan_plan_free(&plan);
  return e;
}

void ni_head_free(struct ni_process_head *h) {
  free(h->host);
  free(h->job);
}
