#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "accl.h"
#include "exporter/base/mix.h"
#include "exporter/base/now.h"
#include "exporter/input/discover.h"
#include "format/line.h"
#include "lines.h"

static const char *const begin = "accl_profiler_rank";

/* ---- names --------------------------------------------------------------------------------------------- */

bool ni_accl_is_log(const char *name) {
  static const char *const ends[] = {".jsonl", ".jsonl.gz"};
  const size_t n = strlen(name);
  if (strncmp(ni_path_name(name), begin, strlen(begin)) != 0)
    return false;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
      return true;
  return false;
}

/* "_pid4711_0xabc", as the name ends; a host may have the same in it. */
static const char *parse_name_end(const char *end, const char *from, struct ni_accl_name *name) {
  const char *p = end;
  while (p > from && isxdigit((unsigned char)p[-1]))
    p--;
  if (p == end || p - from < 8 || strncmp(p - 3, "_0x", 3) != 0)
    return NULL;
  const char *hash = p, *pid = p - 3;
  for (p = pid; p > from && isdigit((unsigned char)p[-1]);)
    p--;
  if (p == pid || p - from < 4 || strncmp(p - 4, "_pid", 4) != 0)
    return NULL;
  name->comm = strtoull(hash, NULL, 16);
  name->pid = strtoll(p, NULL, 10);
  return p - 4;
}

bool ni_accl_parse_name(const char *path, struct ni_accl_name *name) {
  const char *text = ni_path_name(path), *end = strstr(text, ".jsonl");
  *name = (struct ni_accl_name){.rank = -1, .pid = -1};
  if (strncmp(text, begin, strlen(begin)) != 0 || !end)
    return false;
  for (const char *more; (more = strstr(end + 1, ".jsonl"));)
    end = more;
  char *host;
  text += strlen(begin);
  const unsigned long rank = isdigit((unsigned char)*text) ? strtoul(text, &host, 10) : INT32_MAX;
  if (rank >= INT32_MAX || *host != '_')
    return false;
  name->rank = (int32_t)rank;
  const char *tail = parse_name_end(end, host, name);
  if (!tail)
    tail = end;
  snprintf(name->host, sizeof name->host, "%.*s", tail > host ? (int)(tail - host - 1) : 0, host + 1);
  return true;
}

/* Older releases name no process: then each file is one. */
int ni_accl_by_process(const char *a, const char *b) {
  struct ni_accl_name x, y;
  ni_accl_parse_name(a, &x);
  ni_accl_parse_name(b, &y);
  const int host = strcmp(x.host, y.host);
  if (host)
    return host;
  if (x.pid != y.pid)
    return x.pid < y.pid ? -1 : 1;
  if (x.comm != y.comm)
    return x.comm < y.comm ? -1 : 1;
  return strcmp(a, b);
}

bool ni_accl_same_process(const char *a, const char *b) {
  struct ni_accl_name x, y;
  if (!ni_accl_parse_name(a, &x) || !ni_accl_parse_name(b, &y))
    return false;
  return x.pid >= 0 && x.pid == y.pid && strcmp(x.host, y.host) == 0;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

struct accl_gathering {
  struct ni_imported *m;
  struct ni_accl_name name;
  uint32_t comm;
  bool seated; /* a line has said who this is */
};

static void find_seat(struct accl_gathering *g, const struct ni_accl_op *op) {
  struct ni_imported_comm *c = &g->m->comm[g->comm];
  const bool known = g->name.comm && op->n_ranks > 0 && op->rank >= 0 && op->rank < op->n_ranks;
  g->seated = true;
  if (known) {
    c->rank = op->rank;
    c->n_ranks = op->n_ranks;
  }
}

static uint8_t number_word(struct ni_imported *m, const char *word) {
  return *word ? (uint8_t)(ni_imported_func(m, word) + 1) : 0;
}

static int add_operation(void *arg, const struct ni_accl_op *x) {
  struct accl_gathering *g = arg;
  struct ni_imported *m = g->m;
  const int32_t channels = x->channels ? x->channels : x->kernels;
  struct ni_imported_op op = {.start_ns = NI_IMPORTED_NEVER,
                              .enqueue_ns = NI_IMPORTED_NEVER,
                              .dur_ns = x->dur_ns,
                              .bytes = x->bytes,
                              .sized = x->sized,
                              .seq = x->sn,
                              .comm = g->comm,
                              .root = -1,
                              .blocks = (uint32_t)channels & 0xffffff,
                              .func = ni_imported_func(m, x->func) & 0xff,
                              .algo = number_word(m, x->algo),
                              .proto = number_word(m, x->proto)};
  op.timing = x->by_gpu ? NI_TIMING_KERNEL_GPU : x->kernels ? NI_TIMING_KERNEL_CPU : NI_TIMING_COLLECTIVE_CPU;
  if (!g->seated)
    find_seat(g, x);
  m->unsized += !x->sized;
  m->ungrouped += m->comm[g->comm].n_ranks == 0;
  return ni_imported_op(m, &op);
}

/* A file without a communicator in its name is of one that is no other rank's. */
static uint64_t hash_communicator(const struct ni_accl_name *name, const char *path) {
  uint64_t hash = 0;
  if (name->comm)
    return name->comm;
  for (; *path; path++)
    hash = ni_mix(hash * 31 + (unsigned char)*path + 1);
  return hash ? hash : 1;
}

static int gather_file(struct ni_imported *m, const char *path, struct ni_progress *progress) {
  struct accl_gathering g = {.m = m};
  struct ni_accl_summary summary = {0};
  struct stat st;
  bool is_new;
  if (!ni_accl_parse_name(path, &g.name))
    return -EBADMSG;
  int e = ni_imported_comm(m, hash_communicator(&g.name, path), &is_new, &g.comm);
  if (e == 0)
    e = ni_accl_lines(path, add_operation, &g, &summary, &m->bad, progress);
  if (e < 0)
    return e;
  struct ni_imported_comm *c = &m->comm[g.comm];
  c->died = !summary.ended;
  c->dropped += summary.dropped;
  c->leaked += summary.leaked;
  c->untimed += summary.proxy;
  snprintf(m->host, sizeof m->host, "%s", g.name.host);
  m->pid = g.name.pid;
  if (stat(path, &st) == 0) {
    const int64_t ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (ni_time_of_a_job(ns) && ns > m->written_ns)
      m->written_ns = ns;
  }
  return 0;
}

int ni_accl_read(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                 struct ni_progress *progress) {
  struct ni_imported m;
  ni_imported_init(&m, path[0]);
  m.numbered = true;
  m.written_ns = NI_IMPORTED_DAY;
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++) {
    e = gather_file(&m, path[i], progress);
    if (e != -EBADMSG || n == 1)
      continue;
    if (m.n_unread++ == 0)
      m.unread = path[i];
    e = 0;
  }
  if (e == 0 && m.n == 0)
    e = m.n_unread ? -EBADMSG : -ENODATA;
  if (e == 0)
    ni_imported_order(&m);
  if (e == 0)
    return take(arg, &m);
  ni_imported_free(&m);
  return e;
}
