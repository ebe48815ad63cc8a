#include "prom.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/json_text.h"
#include "accounts.h"
#include "plugin/os/host.h"
#include "plugin/slots/state.h"

/* of one process; a process with more has files for the first ones */
#define GPUS 16u
#define PATH_BYTES (NI_DIR_MAX_BYTES * 3) /* the folder may lie below a working directory */

struct key {
  const char *func, *algo, *proto; /* of the intern table; NULL: not stated */
  uint64_t from_bytes;             /* smallest size of its class */
  int32_t n_ranks, nnodes;
  uint8_t gpu, kind;
};

struct series {
  struct key k;
  char comm[NI_COMM_NAME_BYTES];
  uint64_t n, n_bus; /* n 0: free */
  double us;
  /* The product of bandwidths is bus * 2^bus_power: no logarithm an operation, no overflow. */
  double bus;
  int64_t bus_power;
};

struct ni_prom {
  struct ni_gpu_id gpu[GPUS];
  struct total {
    uint64_t recorded, dropped;
  } total[GPUS][NI_KIND_COUNT]; /* since the process began */
  uint32_t n_gpus, n_series;
  uint64_t window_ms; /* when it began, of w->now_ms */
  uint8_t full_said;
  /* of the file at hand; not on the stack, which may be a small one of the host's */
  char path[PATH_BYTES], temporary[PATH_BYTES];
  struct series series[NI_PROM_SERIES * 4 / 3]; /* hashed, a quarter stays free */
};
#define SLOTS (sizeof((struct ni_prom *)0)->series / sizeof(struct series))

/* ---- sums ---- */

/* The class is a whole number of the largest unit of 1024 that fits: 1536 bytes are "1-2KB". */
static uint64_t class_of(uint64_t bytes, unsigned *unit) {
  for (*unit = 0; bytes >= 1024 && *unit < 4; ++*unit)
    bytes /= 1024;
  return bytes;
}

static bool same(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static uint64_t hash_text(uint64_t h, const char *s) {
  for (; s && *s; s++)
    h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
  return h * UINT64_C(0x9e3779b97f4a7c15);
}

/* The series' place, or the free place where it belongs. There is always one. */
static bool is_same_key(const struct key *a, const struct key *b) {
  const bool is_same_size =
      a->from_bytes == b->from_bytes && a->n_ranks == b->n_ranks && a->nnodes == b->nnodes;
  const bool is_same_kind = a->gpu == b->gpu && a->kind == b->kind;
  return is_same_size && is_same_kind && same(a->func, b->func) && same(a->algo, b->algo) &&
      same(a->proto, b->proto);
}

static struct series *find(struct ni_prom *p, const struct key *k, const char *comm) {
  uint64_t h = hash_text(
      hash_text(hash_text(hash_text(k->from_bytes ^ (uint64_t)k->gpu << 56, k->func), k->algo), k->proto),
      comm);
  for (size_t i = (size_t)(h >> 16) % SLOTS;; i = (i + 1) % SLOTS) {
    struct series *s = &p->series[i];
    if (s->n == 0)
      return s;
    if (is_same_key(&s->k, k) && strcmp(s->comm, comm) == 0)
      return s;
  }
}

/* The number of the GPU in p->gpu; GPUS: it has no room there. */
static uint32_t gpu_of(struct ni_prom *p, const struct ni_gpu_id *gpu) {
  uint32_t i = 0;
  while (i < p->n_gpus && strcmp(p->gpu[i].uuid, gpu->uuid) != 0)
    i++;
  if (i == p->n_gpus && i < GPUS)
    p->gpu[p->n_gpus++] = *gpu;
  return i;
}

void ni_prom_add(struct ni_writer *w, const struct ni_comm_writer *s, const struct ni_record *r) {
  if (!ni_g.config.prom_dump)
    return;
  struct ni_prom *p = w->prom;
  if (!p) {
    if (!(p = w->prom = calloc(1, sizeof *p)))
      return; /* the next operation tries again */
    p->window_ms = w->now_ms;
  }
  unsigned unit;
  uint64_t from = class_of(r->msg_bytes, &unit);
  struct key k = {.func = r->func,
                  .algo = r->algo,
                  .proto = r->proto,
                  .from_bytes = from << 10 * unit,
                  .n_ranks = s->ident.n_ranks,
                  .nnodes = s->ident.nnodes,
                  .kind = (uint8_t)r->kind,
                  .gpu = (uint8_t)gpu_of(p, &s->gpu)};
  if (k.gpu < GPUS)
    p->total[k.gpu][r->kind].recorded++;
  const char *comm = s->ident.comm_name && *s->ident.comm_name ? s->ident.comm_name : "unknown";
  struct series *x = k.gpu < GPUS ? find(p, &k, comm) : NULL;
  if (!x || (x->n == 0 && p->n_series == NI_PROM_SERIES)) {
    if (!p->full_said)
      ni_log_warn_once(&ni_g.log, NI_LOG_CAUSE_WRITE,
                       "NCCL_INSPECTOR_PROM_DUMP: more than %u series or %u GPUs in one process; "
                       "the others are left out of the .prom files (the log has them)",
                       NI_PROM_SERIES, GPUS);
    p->full_said = 1;
    return;
  }
  if (x->n++ == 0) {
    x->k = k;
    snprintf(x->comm, sizeof x->comm, "%s", comm);
    x->us = 0;
    x->n_bus = 0;
    x->bus = 1;
    x->bus_power = 0;
    p->n_series++;
  }
  x->us += r->has & NI_HAS_EXEC_NS ? (double)r->exec_ns / 1e3 : (double)r->exec_us;
  if (!(r->has & NI_HAS_BUSBW) || !(r->busbw_gbs > 0))
    return;
  int power;
  x->bus = frexp(x->bus * r->busbw_gbs, &power);
  x->bus_power += power;
  x->n_bus++;
}

/* A communicator's losses since the last time go to its GPU, so that nothing falls when it ends. */
void ni_prom_take_dropped(struct ni_writer *w, struct ni_comm_writer *s) {
  struct ni_prom *p = w->prom;
  if (!p || !ni_g.config.prom_dump_stats)
    return;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    uint64_t n = 0;
    for (int why = 0; why < NI_DROP_OF_PLUGIN; why++)
      n += ni_accounts_dropped(s, kind, (enum ni_drop)why);
    if (n <= s->kind[kind].prom_dropped)
      continue;
    uint32_t gpu = gpu_of(p, &s->gpu);
    if (gpu < GPUS)
      p->total[gpu][kind].dropped += n - s->kind[kind].prom_dropped;
    s->kind[kind].prom_dropped = n;
  }
}

/*
 * expl and logl: exp and log of glibc 2.29 and later have another version, and the .so shall load with 2.28.
 */
static double geometric_mean(const struct series *x) {
  long double ln2 = 0.693147180559945309417232121458L;
  return (double)expl((logl((long double)x->bus) + (long double)x->bus_power * ln2) / (long double)x->n_bus);
}

/* ---- text ---- */

struct text {
  char *at;
  size_t n, cap;
};

static bool room(struct text *t, size_t more) {
  if (t->cap - t->n >= more)
    return true;
  size_t cap = 2 * (t->n + more) + 4096;
  char *p = realloc(t->at, cap);
  if (!p)
    return false;
  t->at = p;
  t->cap = cap;
  return true;
}

static bool put(struct text *t, const char *s) {
  size_t n = strlen(s);
  if (!room(t, n))
    return false;
  memcpy(t->at + t->n, s, n);
  t->n += n;
  return true;
}

/* A label: what is hostile in it is escaped, what is no UTF-8 becomes '?'. comma: one goes before. */
static bool label(struct text *t, const char *name, const char *value, bool comma) {
  const unsigned char *s = (const unsigned char *)(value && *value ? value : "unknown");
  if (!put(t, comma ? "," : "") || !put(t, name) || !put(t, "=\""))
    return false;
  if (!room(t, 2 * strlen((const char *)s) + 1))
    return false;
  char *p = t->at + t->n;
  while (*s) {
    int n = *s < 0x80 ? 1 : ni_utf8_length(s);
    if (*s == '\\' || *s == '"')
      *p++ = '\\';
    if (n < 1 || *s < 0x20) {
      *p++ = '?';
      s++;
    } else
      while (n--)
        *p++ = (char)*s++;
  }
  *p++ = '"';
  t->n = (size_t)(p - t->at);
  return true;
}

static bool number_label(struct text *t, const char *name, int64_t v) {
  char digits[24];
  *ni_json_put_i64(digits, v) = 0;
  return label(t, name, digits, true);
}

/* The metric, and the labels that all of them have. */
static bool put_origin(struct text *t, const char *metric, const struct ni_writer *w, uint32_t gpu) {
  const int index = w->prom->gpu[gpu].index;
  char version[16], gpu_name[24] = "";
  snprintf(version, sizeof version, "v%u.1", ni_g.interface);
  if (index >= 0)
    snprintf(gpu_name, sizeof gpu_name, "GPU%d", index);
  bool job = strcmp(w->job.job_id, "unknown-jobid") != 0;
  return put(t, metric) && put(t, "{") && label(t, "version", version, false) &&
      label(t, "slurm_job_id", job ? w->job.job_id : NULL, true) && label(t, "node", w->hostname, true) &&
      label(t, "gpu", gpu_name, true);
}

static bool put_line(struct text *t, const char *metric, const struct ni_writer *w, const struct series *x,
                     double v) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
  char size[56], value[40];
  unsigned unit;
  uint64_t from = class_of(x->k.from_bytes, &unit);
  bool p2p = x->k.kind == NI_KIND_P2P;
  if (from)
    snprintf(size, sizeof size, "%llu-%llu%s", (unsigned long long)from, (unsigned long long)from + 1,
             units[unit]);
  else
    snprintf(size, sizeof size, "0B");
  *ni_json_fixed(value, v, 6) = 0;
  bool ok = put_origin(t, metric, w, x->k.gpu) && label(t, "comm_name", x->comm, true) &&
      number_label(t, "n_nodes", x->k.nnodes) && number_label(t, "nranks", x->k.n_ranks) &&
      label(t, p2p ? "p2p_operation" : "collective", x->k.func, true) && label(t, "message_size", size, true);
  if (ok && !p2p) {
    char both[2 * 64 + 2];
    snprintf(both, sizeof both, "%.64s_%.64s", x->k.algo && *x->k.algo ? x->k.algo : "unknown",
             x->k.proto && *x->k.proto ? x->k.proto : "unknown");
    ok = label(t, "algo_proto", both, true);
  }
  return ok && put(t, "} ") && put(t, value) && put(t, "\n");
}

/* The same HELP in all files: node_exporter counts others as an error. */
static const struct {
  const char *name, *help;
  uint8_t kind, bus;
} metrics[] = {
    {"nccl_bus_bandwidth_gbs",
     "Geometric mean of the bus bandwidth of collectives in the last window, in 1e9 bytes per second.",
     NI_KIND_COLL, 1},
    {"nccl_collective_exec_time_microseconds", "Mean duration of collectives in the last window.",
     NI_KIND_COLL, 0},
    {"nccl_p2p_bus_bandwidth_gbs",
     "Geometric mean of the bandwidth of Sends and Recvs in the last window, in 1e9 bytes per second.",
     NI_KIND_P2P, 1},
    {"nccl_p2p_exec_time_microseconds", "Mean duration of Sends and Recvs in the last window.", NI_KIND_P2P,
     0},
};

static bool put_head(struct text *t, const char *metric, const char *help, const char *type) {
  return put(t, "# HELP ") && put(t, metric) && put(t, " ") && put(t, help) && put(t, "\n# TYPE ") &&
      put(t, metric) && put(t, type);
}

/*
 * NCCL_INSPECTOR_PROM_DUMP_STATS. What was lost counts as one of all, so that the quotient of both is the
 * part that was lost.
 */
static bool write_totals(struct text *t, const struct ni_writer *w, uint32_t gpu) {
  static const struct {
    const char *name, *help;
    uint8_t kind, dropped;
  } totals[] = {
      {"nccl_collectives_total", "Collectives that have finished or were lost.", NI_KIND_COLL, 0},
      {"nccl_collectives_dropped_total", "Collectives without a record, because there was no room for them.",
       NI_KIND_COLL, 1},
      {"nccl_p2p_total", "Sends and Recvs that have finished or were lost.", NI_KIND_P2P, 0},
      {"nccl_p2p_dropped_total", "Sends and Recvs without a record, because there was no room for them.",
       NI_KIND_P2P, 1},
  };
  for (size_t m = 0; m < sizeof totals / sizeof *totals; m++) {
    const struct total *x = &w->prom->total[gpu][totals[m].kind];
    char value[24];
    *ni_json_put_i64(value, (int64_t)(x->dropped + (totals[m].dropped ? 0 : x->recorded))) = 0;
    if (!put_head(t, totals[m].name, totals[m].help, " counter\n") ||
        !put_origin(t, totals[m].name, w, gpu) || !put(t, "} ") || !put(t, value) || !put(t, "\n"))
      return false;
  }
  return true;
}

static bool write_text(struct text *t, const struct ni_writer *w, uint32_t gpu) {
  const struct ni_prom *p = w->prom;
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
    if (!put_head(t, metrics[m].name, metrics[m].help, " gauge\n"))
      return false;
    for (size_t i = 0; i < SLOTS; i++) {
      const struct series *x = &p->series[i];
      if (x->n == 0 || x->k.gpu != gpu || x->k.kind != metrics[m].kind || (metrics[m].bus && x->n_bus == 0))
        continue;
      if (!put_line(t, metrics[m].name, w, x, metrics[m].bus ? geometric_mean(x) : x->us / (double)x->n))
        return false;
    }
  }
  return !ni_g.config.prom_dump_stats || write_totals(t, w, gpu);
}

/* ---- files ---- */

/* Fills both paths. Of a GPU whose UUID nobody knows the file is named by the process. */
static int make_paths(const struct ni_writer *w, const char *dir, uint32_t gpu) {
  struct ni_prom *p = w->prom;
  long long pid = w->origin.pid;
  char who[sizeof w->hostname + 32];
  if (p->gpu[gpu].uuid[0])
    ni_path_component(who, sizeof who, p->gpu[gpu].uuid, "unknown");
  else
    snprintf(who, sizeof who, "%s-pid%lld", w->hostname, pid);
  int n = snprintf(p->path, sizeof p->path, "%s/nccl_inspector_metrics_%s.prom", dir, who);
  int m =
      snprintf(p->temporary, sizeof p->temporary, "%s/.nccl_inspector_metrics_%s.prom.%lld", dir, who, pid);
  return n < (int)sizeof p->path && m < (int)sizeof p->temporary ? 0 : -ENAMETOOLONG;
}

static int write_all(int fd, const char *at, size_t n) {
  while (n) {
    ssize_t k = write(fd, at, n);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return k < 0 ? -errno : -EIO;
    at += k;
    n -= (size_t)k;
  }
  return 0;
}

static int replace(const struct ni_writer *w, const char *dir, uint32_t gpu, const struct text *t) {
  const char *path = w->prom->path, *temporary = w->prom->temporary;
  int e = make_paths(w, dir, gpu);
  if (e < 0)
    return e;
  if (t->n > ni_file_size_limit())
    return -EFBIG;   /* no SIGXFSZ in somebody else's process */
  unlink(temporary); /* of a process of this number that was killed meanwhile */
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0)
    return -errno;
  e = write_all(fd, t->at, t->n);
  /* node_exporter is another user, whatever the job's umask. */
  if (e == 0 && fchmod(fd, 0644) < 0)
    e = -errno;
  if (close(fd) < 0 && e == 0)
    e = -errno;
  if (e == 0 && rename(temporary, path) < 0)
    e = -errno;
  if (e < 0)
    unlink(temporary);
  return e;
}

void ni_prom_tick(struct ni_writer *w, const char *dir) {
  struct ni_prom *p = w->prom;
  uint64_t interval = ni_g.config.interval_us > 0 ? (uint64_t)ni_g.config.interval_us / 1000 : 0;
  if (!p || w->now_ms - p->window_ms < (interval > NI_PROM_WINDOW_MS ? interval : NI_PROM_WINDOW_MS))
    return;
  p->window_ms = w->now_ms;
  for (struct ni_comm_writer *s = w->comms; s; s = s->next)
    ni_prom_take_dropped(w, s);
  for (uint32_t g = 0; g < p->n_gpus; g++) {
    struct text t = {0};
    int e = write_text(&t, w, g) ? replace(w, dir, g, &t) : -ENOMEM;
    free(t.at);
    if (e < 0)
      ni_log_warn_limited(&ni_g.log, NI_LOG_CAUSE_WRITE, w->now_ns,
                          "cannot write nccl_inspector_metrics_*.prom in %s: %s; trying again "
                          "after the next window",
                          dir, strerror(-e));
  }
  for (size_t i = 0; p->n_series && i < SLOTS; i++)
    p->series[i].n = 0;
  p->n_series = 0;
}

void ni_prom_end(struct ni_writer *w, const char *dir) {
  for (uint32_t g = 0; w->prom && g < w->prom->n_gpus; g++)
    if (make_paths(w, dir, g) == 0)
      unlink(w->prom->path);
  free(w->prom);
  w->prom = NULL;
}
