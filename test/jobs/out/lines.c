#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clocks.h"
#include "gz_out.h"
#include "plugin/drain/sample.h"
#include "test/jobs/draw.h"
#include "test/jobs/plan/layout.h"

#define DUMP_US 100000 /* between flushes */

enum { NJ_SMALL, NJ_NO_P2P, NJ_SAMPLED, NJ_WHYS }; /* why an operation has no record */

struct side {                                    /* a communicator of a rank */
  uint64_t coll, p2p, sn[NJ_FUNCS], colls, p2ps; /* rec_sn next; coll_sn; call_sn */
  uint64_t left_out[2][NJ_WHYS];                 /* of collectives, of Send and Receive */
  char head[400];                                /* of a line up to the time of the dump */
};

struct file {
  struct nj_out out;
  struct side side[NJ_COMMS];
  char process[400], tail[160]; /* head of lines about the process; what follows the time of the dump */
  int64_t dump_us;              /* of the dump, by the clock that never steps */
  uint64_t records;
  const struct nj_job *job;
  int host;
  bool absent;
};

struct nj_lines {
  const struct nj_job *job;
  struct file *file; /* of each rank */
  uint64_t records;
  bool rccl, unnamed;
};

/*
 * NI_JOB_LIBRARY=rccl: as of AMD's RCCL: its name and ticks of 10 ns; rccl-unnamed: and no communicator has a
 * name.
 */
static bool is_library(const char *word) {
  const char *library = getenv("NI_JOB_LIBRARY");
  return library && strncmp(library, word, strlen(word)) == 0;
}

/* A kernel's time in the ticks of its GPU's clock. */
static int64_t in_ticks(const struct nj_lines *l, int64_t ns) {
  return l->rccl && ns >= 10 ? ns / 10 * 10 : ns;
}

const char *nj_host_name(int host, char out[16]) {
  snprintf(out, 16, "node-%d", host);
  return out;
}

static char *text(char *p, const char *s) {
  size_t n = strlen(s);
  memcpy(p, s, n);
  return p + n;
}

static char *number(char *p, int64_t v) {
  char digits[24], *d = digits + sizeof digits;
  uint64_t u = v < 0 ? (uint64_t)-v : (uint64_t)v;
  do
    *--d = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0)
    *--d = '-';
  size_t n = (size_t)(digits + sizeof digits - d);
  memcpy(p, d, n);
  return p + n;
}

/* Six decimals. */
static char *decimal(char *p, double v) {
  uint64_t u = (uint64_t)(v * 1e6 + 0.5);
  p = number(p, (int64_t)(u / 1000000));
  *p++ = '.';
  u %= 1000000;
  for (uint64_t by = 100000; by; by /= 10)
    *p++ = (char)('0' + u / by % 10);
  return p;
}

static char *key(char *p, const char *name, int64_t v) { return number(text(p, name), v); }

/* A line up to its kind; side NULL: about the process. */
static char *head(struct file *f, const struct side *s) {
  char *p = text(nj_out_room(&f->out), s ? s->head : f->process);
  /* near enough to tell before from after a step */
  double at = (double)(f->dump_us * 1000 - nj_epoch(f->job));
  return text(number(p, f->dump_us + nj_stepped_ns(f->job, f->host, at) / 1000), f->tail);
}

static void end(struct file *f, char *p) { nj_out_line(&f->out, text(p, "}\n")); }

static void make_heads(const struct nj_job *job, int rank, struct file *f) {
  static const char meta[] =
      "},\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"1a2b3c4d5\","
      "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":";
  const struct nj_rank *r = &job->rank[rank];
  char host[16];
  f->job = job;
  f->host = r->host;
  f->absent = job->missing[rank];
  snprintf(f->process, sizeof f->process,
           "{\"header\":{\"id\":\"0x0\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":0%s", rank, job->world, meta);
  snprintf(f->tail, sizeof f->tail,
           ",\"hostname\":\"%s\",\"pid\":%d,\"producer\":\"nccl-inspector-c 0.1.0\"}",
           nj_host_name(job->place.host + r->host, host), job->place.pid + rank);
  for (int i = 0; i < r->n_comms; i++) {
    const struct nj_comm *c = &job->comm[r->comm[i]];
    char name[80] = "";
    if (*c->name && !is_library("rccl-unnamed"))
      snprintf(name, sizeof name, "\"comm_name\":\"%s\",", c->name);
    snprintf(f->side[i].head, sizeof f->side[i].head,
             "{\"header\":{\"id\":\"0x%llx\",%s\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d%s",
             (unsigned long long)c->hash, name, r->member[i], c->n, c->n_hosts, meta);
  }
}

/* Where clocks are far apart. */
static int64_t whole_seconds_off(const struct nj_job *job, int host) {
  return job->weather.offset_s >= 1 ? (int64_t)(nj_host_offset_ns(job, host) / 1e9) : 0;
}

/* Of a file's name, by its host's clock. */
static int64_t first_second(const struct nj_job *job, int host) {
  return nj_epoch(job) / 1000000000 - 2 + whole_seconds_off(job, host);
}

static void clock_line(struct nj_lines *l, int rank, int side, double at) {
  struct file *f = &l->file[rank];
  int host = l->job->rank[rank].host;
  int64_t now = nj_host_ns(l->job, host, at),
          since = nj_steady_ns(l->job, host, at) - nj_epoch(l->job) + 5000000000;
  int64_t stepped = nj_stepped_ns(l->job, host, at);
  since -= whole_seconds_off(l->job, host) * 1000000000; /* a host's uptime knows of no calendar */
  char *p = text(head(f, &f->side[side]), ",\"clock\":{\"source\":\"tsc\"");
  p = key(p, ",\"ticks\":", since * 5 / 2);
  p = key(p, ",\"monotonic_ns\":", since);
  p = key(p, ",\"realtime_ns\":", now);
  p = key(text(p, ",\"ns_per_tick\":0.400000000000"),
          ",\"gpu_offset_ns\":", nj_gpu_offset_ns(l->job, rank) + stepped);
  p = key(p, ",\"gpu_offset_at_ns\":", nj_steady_ns(l->job, host, -1e6) + stepped);
  end(f, text(p, ",\"gpu_samples\":9}"));
}

static const char *job_id(const struct nj_job *job, char out[96]) {
  unsigned long long id = 1000 + job->seed % 1000000;
  *out = 0;
  if (job->place.no_job_id)
    return out;
  if (job->place.attempt < 0)
    snprintf(out, 96, ",\"SLURM_JOB_ID\":\"%llu\"", id);
  else
    snprintf(out, 96, ",\"SLURM_JOB_ID\":\"%llu\",\"SLURM_RESTART_COUNT\":\"%d\"", id, job->place.attempt);
  return out;
}

static const char *settings(const struct nj_weather *w, char out[200]) {
  int n = 0;
  *out = 0;
  if (w->min_bytes > 0)
    n += snprintf(out + n, 200 - (size_t)n, ",\"NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES\":\"%.0f\"", w->min_bytes);
  if (w->no_p2p)
    n += snprintf(out + n, 200 - (size_t)n, ",\"NCCL_INSPECTOR_ENABLE_P2P\":\"0\"");
  if (w->sample > 1)
    snprintf(out + n, 200 - (size_t)n,
             ",\"NCCL_INSPECTOR_SAMPLE\":\"1/%d\",\"NCCL_INSPECTOR_ROLLUP_SECONDS\":\"0\"", w->sample);
  return *out ? out + 1 : out;
}

static void first_lines(struct nj_lines *l, int rank) {
  const struct nj_job *job = l->job;
  const struct nj_rank *r = &job->rank[rank];
  struct file *f = &l->file[rank];
  int64_t start = nj_host_ns(job, r->host, -2e9), init = nj_host_ns(job, r->host, -1e9);
  bool symmetric = job->weather.symmetric;
  char id[96], set[200];
  f->dump_us = start / 1000 + 1000;
  char *p = head(f, NULL);
  p += snprintf(p, 900,
                ",\"process\":{\"start_ns\":%lld,\"boot_id\":\"b-%d\",\"exe\":\"python3\",\"rank\":%d,"
                "\"local_rank\":%d,"
                "\"world_size\":%d,\"env\":{\"RANK\":\"%d\",\"LOCAL_RANK\":\"%d\",\"WORLD_SIZE\":\"%d\"%s},"
                "\"nccl_version\":%d,%s\"interface\":\"%s\",\"settings\":{%s}}",
                (long long)start, job->place.host + r->host, rank, r->local, job->world, rank, r->local,
                job->world, job_id(job, id),
                symmetric          ? 23102
                    : job->call_sn ? 22809
                                   : 22706,
                l->rccl ? "\"library\":\"rccl\",\"gpu_clock_khz\":100000," : "",
                symmetric          ? "v7"
                    : job->call_sn ? "v5"
                                   : "v4",
                settings(&job->weather, set));
  end(f, p);
  f->dump_us = init / 1000 + 1000;
  for (int i = 0; i < r->n_comms; i++) {
    const struct nj_comm *c = &job->comm[r->comm[i]];
    if (job->unrecorded[r->comm[i]])
      continue;
    p = head(f, &f->side[i]);
    p = *c->name && !l->unnamed ? text(text(text(p, ",\"comm\":{\"name\":\""), c->name), "\"")
                                : text(p, ",\"comm\":{\"name\":null");
    p += snprintf(
        p, 400,
        ",\"hash\":\"0x%llx\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":%d,\"gpu_index\":%d,\"gpu_uuid\":null,"
        "\"gpu_pci\":\"0000:%02x:00.0\",\"init_ns\":%lld}",
        (unsigned long long)c->hash, r->member[i], c->n, c->n_hosts, r->local,
        0x1b + 0x10 * r->local + job->place.pid / 1000 - 4, (long long)init);
    end(f, p);
    clock_line(l, rank, i, -1e9 + 2e6);
  }
}

struct nj_lines *nj_lines_open(const struct nj_job *job, const char *dir) {
  struct nj_lines *l = nj_more(NULL, sizeof *l);
  *l = (struct nj_lines){.job = job,
                         .rccl = is_library("rccl"),
                         .unnamed = is_library("rccl-unnamed"),
                         .file = nj_more(NULL, (unsigned)job->world * sizeof *l->file)};
  memset(l->file, 0, (unsigned)job->world * sizeof *l->file);
  for (int r = 0; r < job->world; r++) {
    l->file[r].absent = job->missing[r];
    if (job->missing[r])
      continue;
    char path[480], host[16];
    snprintf(path, sizeof path, "%s/%s-pid%d-%lld.jsonl.gz", dir,
             nj_host_name(job->place.host + job->rank[r].host, host), job->place.pid + r,
             (long long)(first_second(job, job->rank[r].host)));
    nj_out_open(&l->file[r].out, path);
    make_heads(job, r, &l->file[r]);
    first_lines(l, r);
  }
  return l;
}

static double algo_size(const struct nj_comm *c, const struct nj_done *d) { /* nccl-tests' */
  return d->func == NJ_ALL_REDUCE ? d->bytes : d->bytes * c->n;
}

/* Within a host, and of more than a few bytes; NCCL 2.31 has kernels of these functions alone. */
static bool symmetric(const struct nj_job *job, const struct nj_comm *c, const struct nj_done *d) {
  return job->weather.symmetric && c->n_hosts == 1 && d->func != NJ_ALL_TO_ALL && d->bytes >= 65536;
}

/* The barrier opens some us after the last rank has come; the three phases add up to the kernel's time. */
static char *put_phases(char *p, const char *name, const char *form, const struct nj_done *d, int64_t ns) {
  double part = d->end > d->start ? (d->last - d->start) / (d->end - d->start) : 0;
  int64_t opens = 2000 + (int64_t)(3000 * nj_unit(ni_mix((uint64_t)ns + (uint64_t)d->rank))),
          closes = opens / 2;
  int64_t wait = (int64_t)(part * (double)ns) + opens;
  if (wait > ns)
    wait = ns;
  if (closes > ns - wait)
    closes = ns - wait;
  p = text(text(text(p, ",\"symmetric\":true,\"coll_kernel\":\""), name), "_");
  p = key(text(text(p, form), "\""), ",\"initial_sync_ns\":", wait);
  return key(key(p, ",\"compute_ns\":", ns - wait - closes), ",\"final_sync_ns\":", closes);
}

static char *put_coll(const struct nj_job *job, const struct nj_comm *c, struct side *s,
                      const struct nj_done *d, char *p, int64_t ns, int64_t enqueue, int64_t delta) {
  static const char *const names[NJ_FUNCS] = {"AllReduce", "AllGather", "ReduceScatter", "AlltoAll"};
  static const char *const types[NJ_FUNCS] = {"ncclBfloat16", "ncclInt8", "ncclBfloat16", "ncclBfloat16"};
  /* forms with a barrier */
  static const char *const kernels[NJ_FUNCS] = {"RSxLDMC_AGxSTMC", "STMC", "LDMC", ""};
  double size = algo_size(c, d), bus = (double)(c->n - 1) / c->n * (d->func == NJ_ALL_REDUCE ? 2 : 1);
  bool small = d->bytes < 65536;
  p = text(text(text(p, ",\"coll_perf\":{\"coll\":\""), names[d->func]), "\"");
  p = key(p, ",\"coll_sn\":", (int64_t)s->sn[d->func]++);
  p = key(p, ",\"coll_msg_size_bytes\":", (int64_t)d->bytes);
  p = key(p, ",\"coll_exec_time_us\":", (ns + 500) / 1000);
  p = decimal(text(p, ",\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":"), size / (double)ns);
  p = decimal(text(p, ",\"coll_busbw_gbs\":"), size / (double)ns * bus);
  bool phases = symmetric(job, c, d);
  if (phases)
    p = text(text(text(p, ",\"coll_algo\":\""), kernels[d->func]), "\",\"coll_datatype\":\"");
  else
    p = text(p,
             small ? ",\"coll_algo\":\"TREE\",\"coll_proto\":\"LL\",\"coll_datatype\":\""
                   : ",\"coll_algo\":\"RING\",\"coll_proto\":\"SIMPLE\",\"coll_datatype\":\"");
  p = text(text(p, types[d->func]),
           small ? "\",\"coll_root\":0,\"coll_nchannels\":1" : "\",\"coll_root\":0,\"coll_nchannels\":16");
  p = key(p, ",\"coll_exec_time_ns\":", ns);
  p = key(p, ",\"coll_enqueue_ns\":", enqueue);
  p = key(p, ",\"coll_gpu_start_delta_ns\":", delta);
  p = key(p, ",\"rec_sn\":", (int64_t)s->coll++);
  p = key(p, ",\"nccl_tests_size_bytes\":", (int64_t)size);
  if (job->call_sn || job->weather.symmetric)
    p = key(p, ",\"call_sn\":", (int64_t)s->colls++);
  return phases ? put_phases(p, names[d->func], kernels[d->func], d, ns) : p;
}

static char *put_p2p(const struct nj_job *job, struct side *s, const struct nj_done *d, char *p, int64_t ns,
                     int64_t enqueue, int64_t delta) {
  p = text(p, d->recv ? ",\"p2p_perf\":{\"p2p\":\"Recv\"" : ",\"p2p_perf\":{\"p2p\":\"Send\"");
  p = key(p, ",\"p2p_sn\":", (int64_t)s->p2p);
  p = key(p, ",\"p2p_peer\":", d->peer);
  p = key(p, ",\"p2p_msg_size_bytes\":", (int64_t)d->bytes);
  p = key(p, ",\"p2p_exec_time_us\":", (ns + 500) / 1000);
  p = decimal(text(p, ",\"p2p_timing_source\":\"kernel_gpu\",\"p2p_algobw_gbs\":"), d->bytes / (double)ns);
  p = decimal(text(p, ",\"p2p_busbw_gbs\":"), d->bytes / (double)ns);
  p = key(p, ",\"p2p_datatype\":\"ncclBfloat16\",\"p2p_nchannels\":4,\"p2p_exec_time_ns\":", ns);
  p = key(p, ",\"p2p_enqueue_ns\":", enqueue);
  p = key(p, ",\"p2p_gpu_start_delta_ns\":", delta);
  p = key(p, ",\"rec_sn\":", (int64_t)s->p2p++);
  p = key(p, ",\"nccl_tests_size_bytes\":", (int64_t)d->bytes);
  return job->call_sn || job->weather.symmetric ? key(p, ",\"call_sn\":", (int64_t)s->p2ps++) : p;
}

/* Why the plugin's settings leave this operation out; -1: they do not. */
static int why_not(const struct nj_job *job, const struct nj_comm *c, const struct side *s,
                   const struct nj_done *d) {
  const struct nj_weather *w = &job->weather;
  uint64_t sn = d->peer >= 0 ? s->p2p : s->sn[d->func];
  if (d->peer >= 0 && w->no_p2p)
    return NJ_NO_P2P;
  if (d->bytes < w->min_bytes)
    return NJ_SMALL;
  return ni_sample_keeps((uint64_t)w->sample, c->hash, sn) ? -1 : NJ_SAMPLED;
}

void nj_lines_done(void *lines, const struct nj_done *d) {
  struct nj_lines *l = lines;
  const struct nj_job *job = l->job;
  const struct nj_rank *r = &job->rank[d->rank];
  struct file *f = &l->file[d->rank];
  struct side *s = &f->side[d->comm];
  if (f->absent || job->unrecorded[r->comm[d->comm]])
    return;
  const struct nj_comm *c = &job->comm[r->comm[d->comm]];
  int why = why_not(job, c, s, d);
  int64_t start, stop, called = nj_steady_ns(job, r->host, d->enqueue);
  nj_stamps(job, d->rank, f->records++, d->start, d->end, &start, &stop);
  int64_t ns = in_ticks(l, stop - start), enqueue = called + nj_stepped_ns(job, r->host, d->enqueue);
  int64_t dump = (start + ns) / 1000 / DUMP_US * DUMP_US + DUMP_US;
  if (dump > f->dump_us)
    f->dump_us = dump;
  char *p = head(f, s);
  if (d->peer < 0)
    p = put_coll(job, c, s, d, p, ns, enqueue, start - called);
  else
    p = put_p2p(job, s, d, p, ns, enqueue, start - called);
  if (why >= 0) { /* counted, not written */
    s->left_out[d->peer >= 0][why]++;
    return;
  }
  end(f, text(p, "}"));
  l->records++;
}

static uint64_t written(uint64_t n, const uint64_t left_out[NJ_WHYS]) {
  for (int i = 0; left_out && i < NJ_WHYS; i++)
    n -= left_out[i];
  return n;
}

static char *put_kind(char *p, const char *name, uint64_t n, const uint64_t left_out[NJ_WHYS]) {
  static const char *const whys[NJ_WHYS] = {"\"min_size\":", "\"p2p_disabled\":", "\"sampled\":"};
  p = key(text(p, name), ":{\"started\":", (int64_t)n);
  p = text(key(p, ",\"written\":", (int64_t)written(n, left_out)), ",\"filtered_by\":{");
  bool first = true;
  for (int i = 0; left_out && i < NJ_WHYS; i++) {
    if (!left_out[i])
      continue;
    if (!first)
      p = text(p, ",");
    p = key(p, whys[i], (int64_t)left_out[i]);
    first = false;
  }
  return text(p,
              "},\"dropped_by\":{},\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}}");
}

static void stats_line(struct file *f, const struct side *s) {
  char *p = key(head(f, s),
                ",\"dump_stats\":{\"coll_records\":", s ? (int64_t)written(s->coll, s->left_out[0]) : 0);
  p = text(p, ",\"coll_dropped_total\":0,\"coll_dropped_since_last_dump\":0");
  p = key(p, ",\"p2p_records\":", s ? (int64_t)written(s->p2p, s->left_out[1]) : 0);
  p = text(p,
           ",\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0,\"proxy_records\":0,\"proxy_dropped_"
           "total\":0,"
           "\"proxy_dropped_since_last_dump\":0,\"final\":true");
  p = put_kind(p, ",\"coll\"", s ? s->coll : 0, s ? s->left_out[0] : NULL);
  p = put_kind(p, ",\"p2p\"", s ? s->p2p : 0, s ? s->left_out[1] : NULL);
  end(f, text(p, ",\"strays\":{}}"));
}

uint64_t nj_lines_close(struct nj_lines *l, double at) {
  uint64_t records = l->records;
  for (int r = 0; r < l->job->world; r++) {
    struct file *f = &l->file[r];
    if (f->absent)
      continue;
    if (l->job->place.cut) {
      nj_out_close(&f->out);
      continue;
    }
    for (int i = 0; i < l->job->rank[r].n_comms; i++) {
      if (l->job->unrecorded[l->job->rank[r].comm[i]])
        continue;
      clock_line(l, r, i, at + 1e6);
      stats_line(f, &f->side[i]);
      char *p = key(head(f, &f->side[i]), ",\"comm_end\":{\"why\":\"destroy\",\"ns\":",
                    nj_host_ns(l->job, l->job->rank[r].host, at + 2e6));
      end(f, text(p, "}"));
    }
    stats_line(f, NULL);
    nj_out_close(&f->out);
  }
  free(l->file);
  free(l);
  return records;
}
