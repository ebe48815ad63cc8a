#include "gather.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/now.h"
#include "exporter/input/discover.h"
#include "format/line.h"
#include "kineto.h"
#include "words.h"

/* of one group; of all of them. Longer lists are not known */
enum { RANKS_TEXT = 1 << 16, RANKS_TEXTS = 1 << 24 };
#define NO_COMM UINT32_MAX

/* What a kernel or PyTorch's call says of the collective. */
struct op_arguments {
  int64_t in, out, seq, root, peer; /* NI_KINETO_NONE; peer: rank of the job */
  uint32_t comm, element_bytes;     /* NO_COMM; 0 */
  uint8_t func, datatype;           /* enum ni_func; of imported.h */
};
struct kernel {
  int64_t ts_ns, dur_ns, correlation, external;
  struct op_arguments said;
  int32_t gpu;
  uint32_t blocks;
  unsigned stream_comm; /* of a kernel of which nothing is said */
  uint8_t func;         /* of imported.h */
  bool graph;
};
struct cpu_call {
  int64_t external, ts_ns, dur_ns;
  struct op_arguments said;
};
struct launch {
  int64_t correlation, ts_ns;
  bool graph;
};
struct kineto_group { /* of a communicator, by its number */
  char *ranks;        /* NULL: not listed */
  char name[64];
  int64_t size, first, stride;
  struct ni_kineto_ranks seats;
};

struct kineto_gathering {
  struct ni_imported *m;
  struct kernel *kernel;
  struct cpu_call *call;
  struct launch *launch;
  struct kineto_group *group, *listed; /* listed: in the file's head */
  struct ni_imported_step *step;       /* their ns as in the file */
  size_t n_kernels, cap_kernels, n_calls, cap_calls, n_launches, cap_launches, cap_groups, n_listed,
      cap_listed, n_steps, cap_steps;
  size_t texts; /* bytes of all ranks */
  int64_t base_ns;
};

/* ---- communicators ------------------------------------------------------------------------------------- */

/* A hash that is the same in each process. Blanks do not count. */
static uint64_t mix_text(uint64_t hash, const char *text) {
  for (; *text; text++)
    if (*text != ' ')
      hash = ni_mix(hash * 31 + (unsigned char)*text + 1);
  return ni_mix(hash + 0x517cc1b727220a95u);
}

static char *keep_ranks(struct kineto_gathering *g, const char *text) {
  size_t n = strlen(text);
  if (n < 3 || n > RANKS_TEXT || g->texts + n > RANKS_TEXTS)
    return NULL; /* "[]" */
  g->texts += n;
  return strdup(text);
}

/* NO_COMM: nothing is said of it. */
static int find_or_add_communicator(struct kineto_gathering *g, const struct ni_kineto_args *a,
                                    uint32_t *comm) {
  *comm = NO_COMM;
  if (!*a->group || a->size < 1 || a->size > INT32_MAX)
    return 0;
  uint64_t hash = mix_text(mix_text(ni_mix((uint64_t)a->size), a->group), a->ranks);
  bool is_new;
  int e = ni_imported_comm(g->m, hash ? hash : 1, &is_new, comm);
  if (e < 0 || !is_new)
    return e;
  if (!ni_array_room(g->group, *comm, g->cap_groups))
    return -ENOMEM;
  struct kineto_group *x = &g->group[*comm];
  *x = (struct kineto_group){
      .ranks = keep_ranks(g, a->ranks), .size = a->size, .first = NI_KINETO_NONE, .stride = NI_KINETO_NONE};
  snprintf(x->name, sizeof x->name, "%s", a->group);
  bool described = *a->description && strcmp(a->description, "undefined") != 0;
  struct ni_imported_comm *c = &g->m->comm[*comm];
  snprintf(c->name, sizeof c->name, "%s", described ? a->description : a->group);
  c->n_ranks = (int32_t)a->size;
  return 0;
}

/* A kernel of which nothing is said: a communicator of its stream, which is no other rank's. */
static int find_or_add_communicator_of_stream(struct kineto_gathering *g, const struct ni_kineto_event *k,
                                              uint32_t *comm) {
  bool is_new;
  uint64_t hash = ni_mix(mix_text(0, g->m->path) + ni_mix((uint64_t)k->args.stream) +
                         3 * ni_mix((uint64_t)k->args.device));
  int e = ni_imported_comm(g->m, hash ? hash : 1, &is_new, comm);
  if (e < 0 || !is_new)
    return e;
  if (!ni_array_room(g->group, *comm, g->cap_groups))
    return -ENOMEM;
  g->group[*comm] = (struct kineto_group){0};
  return 0;
}

static int add_listed_group(struct kineto_gathering *g, const struct ni_kineto_args *a) {
  if (g->n_listed == NI_IMPORTED_COMMS)
    return 0;
  if (!ni_array_room(g->listed, g->n_listed, g->cap_listed))
    return -ENOMEM;
  struct kineto_group *x = &g->listed[g->n_listed++];
  *x = (struct kineto_group){.ranks = keep_ranks(g, a->ranks), .size = a->size};
  snprintf(x->name, sizeof x->name, "%s", a->group);
  return 0;
}

/* ---- the file's events --------------------------------------------------------------------------------- */

static int note_arguments(struct kineto_gathering *g, const struct ni_kineto_args *a,
                          struct op_arguments *s) {
  const char *datatype = ni_kineto_datatype(a->datatype, &s->element_bytes);
  s->in = a->in_elements;
  s->out = a->out_elements;
  s->seq = a->seq;
  s->root = a->rank;
  s->func = (uint8_t)ni_kineto_collective(a->collective);
  s->datatype = ni_imported_datatype_number(datatype);
  s->peer = s->func == NI_FUNC_SEND ? a->target : s->func == NI_FUNC_RECV ? a->source : NI_KINETO_NONE;
  return find_or_add_communicator(g, a, &s->comm);
}

static int add_kernel(struct kineto_gathering *g, const struct ni_kineto_event *k) {
  struct kernel x = {.ts_ns = k->ts_ns,
                     .dur_ns = k->dur_ns,
                     .correlation = k->args.correlation,
                     .external = k->args.external,
                     .gpu = -1,
                     .func = (uint8_t)ni_imported_func(g->m, k->func),
                     .stream_comm = NO_COMM,
                     .graph = k->args.graph > 0};
  if (k->args.device >= 0 && k->args.device < 1024)
    x.gpu = (int32_t)k->args.device;
  if (k->args.blocks > 0 && k->args.blocks < 1 << 16)
    x.blocks = (uint32_t)k->args.blocks;
  if (g->n_kernels == NI_IMPORTED_OPS)
    return -EFBIG;
  int e = note_arguments(g, &k->args, &x.said);
  if (e == 0 && x.said.comm == NO_COMM)
    e = find_or_add_communicator_of_stream(g, k, &x.stream_comm);
  if (e < 0)
    return e;
  if (!ni_array_room(g->kernel, g->n_kernels, g->cap_kernels))
    return -ENOMEM;
  g->kernel[g->n_kernels++] = x;
  return 0;
}

static int add_call(struct kineto_gathering *g, const struct ni_kineto_event *k) {
  struct cpu_call x = {.external = k->args.external, .ts_ns = k->ts_ns, .dur_ns = k->dur_ns};
  if (k->args.external == NI_KINETO_NONE || k->dur_ns < 0 || g->n_calls == NI_KINETO_CALLS)
    return 0;
  int e = note_arguments(g, &k->args, &x.said);
  if (e < 0)
    return e;
  if (x.said.comm != NO_COMM && k->args.first_rank >= 0) {
    g->group[x.said.comm].first = k->args.first_rank;
    g->group[x.said.comm].stride = k->args.stride;
  }
  if (!ni_array_room(g->call, g->n_calls, g->cap_calls))
    return -ENOMEM;
  g->call[g->n_calls++] = x;
  return 0;
}

static int add_launch(struct kineto_gathering *g, const struct ni_kineto_event *k) {
  if (k->args.correlation == NI_KINETO_NONE || g->n_launches == NI_KINETO_LAUNCHES)
    return 0;
  if (!ni_array_room(g->launch, g->n_launches, g->cap_launches))
    return -ENOMEM;
  g->launch[g->n_launches++] =
      (struct launch){k->args.correlation, k->ts_ns, strstr(k->name, "GraphLaunch") != NULL};
  return 0;
}

static int add_step(struct kineto_gathering *g, const struct ni_kineto_event *k) {
  if (k->args.number == NI_KINETO_NONE || g->n_steps == NI_IMPORTED_STEPS)
    return 0;
  if (!ni_array_room(g->step, g->n_steps, g->cap_steps))
    return -ENOMEM;
  g->step[g->n_steps++] = (struct ni_imported_step){k->ts_ns, (uint32_t)k->args.number};
  return 0;
}

static void note_file(struct kineto_gathering *g, const struct ni_kineto_event *k) {
  const struct ni_kineto_args *a = &k->args;
  if (k->base_ns != NI_KINETO_NONE)
    g->base_ns = k->base_ns;
  if (k->rank >= 0)
    g->m->rank = k->rank;
  if (a->world_size > 0 && a->world_size <= INT32_MAX)
    g->m->world = (int32_t)a->world_size;
  if (*a->nccl_version)
    g->m->nccl_version = ni_kineto_release(a->nccl_version);
}

static int add_event(void *arg, const struct ni_kineto_event *k) {
  struct kineto_gathering *g = arg;
  const bool by_cpu = k->what == NI_KINETO_CALL || k->what == NI_KINETO_LAUNCH || k->what == NI_KINETO_STEP;
  if (by_cpu && g->m->pid < 0 && k->args.pid >= 0)
    g->m->pid = k->args.pid;
  switch (k->what) {
    case NI_KINETO_FILE:
      note_file(g, k);
      return 0;
    case NI_KINETO_GROUP:
      return add_listed_group(g, &k->args);
    case NI_KINETO_KERNEL:
      return add_kernel(g, k);
    case NI_KINETO_CALL:
      return add_call(g, k);
    case NI_KINETO_LAUNCH:
      return add_launch(g, k);
    case NI_KINETO_STEP:
      return add_step(g, k);
    case NI_KINETO_OTHER:
      break;
  }
  return 0;
}

/* ---- at its end: operations ---------------------------------------------------------------------------- */

static int compare_by_correlation(const void *a, const void *b) {
  const struct launch *x = a, *y = b;
  if (x->correlation != y->correlation)
    return x->correlation < y->correlation ? -1 : 1;
  return x->ts_ns < y->ts_ns ? -1 : x->ts_ns > y->ts_ns;
}

static int compare_by_external(const void *a, const void *b) {
  const struct cpu_call *x = a, *y = b;
  if (x->external != y->external)
    return x->external < y->external ? -1 : 1;
  return x->ts_ns < y->ts_ns ? -1 : x->ts_ns > y->ts_ns;
}

static const struct launch *find_launch(const struct kineto_gathering *g, const struct kernel *k) {
  size_t i;
  if (k->correlation == NI_KINETO_NONE)
    return NULL;
  ni_array_search(i, g->n_launches, g->launch[i].correlation < k->correlation);
  const struct launch *l = i < g->n_launches ? &g->launch[i] : NULL;
  return l && l->correlation == k->correlation && l->ts_ns <= k->ts_ns ? l : NULL;
}

/*
 * Old versions number calls and kernels by themselves, so that one number is of two things: then the launch
 * lies elsewhere.
 */
static const struct cpu_call *find_call(const struct kineto_gathering *g, const struct kernel *k,
                                        const struct launch *l) {
  size_t i;
  if (k->external == NI_KINETO_NONE)
    return NULL;
  ni_array_search(i, g->n_calls, g->call[i].external < k->external);
  const struct cpu_call *c = i < g->n_calls ? &g->call[i] : NULL;
  if (!c || c->external != k->external || c->ts_ns > k->ts_ns)
    return NULL;
  /* Their difference may need 64 bits without a sign. */
  return !l || (c->ts_ns <= l->ts_ns && (uint64_t)l->ts_ns - (uint64_t)c->ts_ns <= (uint64_t)c->dur_ns)
      ? c
      : NULL;
}

/* The process's rank in the group, or -1. */
static int32_t find_seat(const struct kineto_gathering *g, const struct kineto_group *x, int64_t rank) {
  if (rank < 0)
    return -1;
  int32_t at = ni_kineto_index(&x->seats, rank);
  const bool has_stride = x->first >= 0 && x->stride > 0;
  if (at < 0 && has_stride && rank >= x->first && (rank - x->first) % x->stride == 0) {
    int64_t k = (rank - x->first) / x->stride;
    if (k < x->size)
      at = (int32_t)k;
  }
  if (at < 0 && x->size == g->m->world && rank < x->size)
    at = (int32_t)rank;
  return at;
}

/* The list of the file's head is whole where that of a kernel is cut. */
static int list_ranks(struct kineto_gathering *g, struct kineto_group *x) {
  const char *text = x->ranks ? x->ranks : "";
  for (size_t i = 0; i < g->n_listed; i++) {
    const struct kineto_group *y = &g->listed[i];
    const bool better = y->ranks && !strstr(y->ranks, "...") && (!*text || strstr(text, "..."));
    if (better && y->size == x->size && strcmp(y->name, x->name) == 0)
      text = y->ranks;
  }
  return ni_kineto_ranks(&x->seats, text, x->size);
}

/*
 * A communicator whose own rank is not known cannot be told from that of another rank: it becomes this file's
 * alone.
 */
static int find_all_seats(struct kineto_gathering *g) {
  struct ni_imported *m = g->m;
  for (size_t i = 0; i < m->n_comms; i++) {
    struct ni_imported_comm *c = &m->comm[i];
    struct kineto_group *x = &g->group[i];
    if (c->n_ranks == 0)
      continue;
    int e = list_ranks(g, x);
    if (e < 0)
      return e;
    c->rank = find_seat(g, x, m->rank);
    if (c->rank >= 0)
      continue;
    c->hash = ni_mix(c->hash + mix_text(0, m->path));
    c->rank = c->n_ranks = 0;
  }
  return 0;
}

static bool is_coll(enum ni_func f) { return f != NI_FUNC_OTHER && f != NI_FUNC_SEND && f != NI_FUNC_RECV; }

/*
 * In bytes, as the log has it: of AllGather and ReduceScatter one rank's share, of AlltoAll that for one
 * peer.
 */
static bool compute_bytes(const struct op_arguments *s, enum ni_func f, int32_t n_ranks, uint64_t *bytes) {
  const bool by_output = f == NI_FUNC_REDUCESCATTER || f == NI_FUNC_SCATTER || f == NI_FUNC_RECV;
  int64_t n = by_output ? s->out : s->in;
  if (n < 0 || !s->element_bytes || n > INT64_MAX / s->element_bytes)
    return false;
  if (f == NI_FUNC_ALLTOALL && n_ranks < 1)
    return false;
  *bytes = (uint64_t)n * s->element_bytes / (f == NI_FUNC_ALLTOALL ? (uint64_t)n_ranks : 1);
  return true;
}

static void set_operation_size(struct kineto_gathering *g, const struct op_arguments *s,
                               struct ni_imported_op *op) {
  struct ni_imported *m = g->m;
  const enum ni_func ran = ni_func_from_name(m->funcs[op->func]), called = (enum ni_func)s->func;
  const bool message = called == NI_FUNC_SEND || called == NI_FUNC_RECV;
  const int32_t n_ranks = m->comm[op->comm].n_ranks;
  /* a part of something larger: an allgather of uneven parts runs as Broadcasts */
  if (is_coll(ran) && ran != called)
    return;
  if (called == NI_FUNC_OTHER) {
    /* Several messages of one batch: to and from whom is not said. */
    if (strcmp(m->funcs[op->func], "SendRecv") == 0)
      op->kind = NI_KIND_P2P;
    return;
  }
  op->func = ni_imported_func(m, ni_func_table[called].name) & 0xff;
  op->datatype = s->datatype;
  op->sized = compute_bytes(s, called, n_ranks, &op->bytes);
  const bool rooted = called == NI_FUNC_BROADCAST || called == NI_FUNC_REDUCE || called == NI_FUNC_GATHER ||
      called == NI_FUNC_SCATTER;
  if (rooted && s->root >= 0 && s->root < n_ranks)
    op->root = (int32_t)s->root;
  if (!message)
    return;
  op->kind = NI_KIND_P2P;
  op->root = find_seat(g, &g->group[op->comm], s->peer);
}

static bool convert_time(const struct kineto_gathering *g, int64_t ts_ns, int64_t *ns) {
  return ts_ns != NI_KINETO_NONE && !__builtin_add_overflow(ts_ns, g->base_ns, ns) && ni_time_of_a_job(*ns);
}

static int make_operation(struct kineto_gathering *g, const struct kernel *k) {
  struct ni_imported *m = g->m;
  const struct launch *l = find_launch(g, k);
  const struct cpu_call *c = find_call(g, k, l);
  struct ni_imported_op op = {.enqueue_ns = NI_IMPORTED_NEVER,
                              .seq = NI_NO_SN,
                              .root = -1,
                              .blocks = k->blocks & 0xffffff,
                              .func = k->func,
                              .timing = NI_TIMING_KERNEL_GPU};
  struct op_arguments s = k->said;
  int64_t end;
  if (!convert_time(g, k->ts_ns, &op.start_ns) || k->dur_ns < 0) {
    m->bad++;
    return 0;
  }
  if (__builtin_add_overflow(op.start_ns, k->dur_ns, &end) || !ni_time_of_a_job(end)) {
    m->bad++;
    return 0;
  }
  op.dur_ns = (uint64_t)k->dur_ns;
  op.graph = k->graph || (l && l->graph);
  if (s.comm == NO_COMM && c)
    s = c->said;
  if (c && c->said.comm == s.comm)
    s.root = c->said.root;
  op.comm = s.comm == NO_COMM ? k->stream_comm : s.comm;
  op.seq = s.seq < 0 ? NI_NO_SN : (uint64_t)s.seq;
  if (l || c)
    (void)convert_time(g, l ? l->ts_ns : c->ts_ns, &op.enqueue_ns);
  if (s.comm != NO_COMM)
    set_operation_size(g, &s, &op);
  m->comm[op.comm].gpu = k->gpu;
  m->unlaunched += op.enqueue_ns == NI_IMPORTED_NEVER;
  m->unsized += !op.sized;
  m->ungrouped += m->comm[op.comm].n_ranks == 0;
  return ni_imported_op(m, &op);
}

static int make_operations(struct kineto_gathering *g) {
  int64_t ns;
  if (g->n_launches)
    qsort(g->launch, g->n_launches, sizeof *g->launch, compare_by_correlation);
  if (g->n_calls)
    qsort(g->call, g->n_calls, sizeof *g->call, compare_by_external);
  int e = find_all_seats(g);
  for (size_t i = 0; e == 0 && i < g->n_kernels; i++)
    e = make_operation(g, &g->kernel[i]);
  for (size_t i = 0; e == 0 && i < g->n_steps; i++)
    if (convert_time(g, g->step[i].ns, &ns))
      e = ni_imported_step(g->m, ns, g->step[i].number);
  if (e == 0)
    ni_imported_order(g->m);
  return e;
}

/*
 * "HOST_PID.TIME.pt.trace.json", as tensorboard_trace_handler names its files: the host, where the pid is
 * that of the file.
 */
static void read_host_from_name(struct ni_imported *m) {
  const char *name = ni_path_name(m->path), *end = strstr(name, ".pt.trace.json");
  if (!end || m->pid < 0)
    return;
  const char *p = end;
  while (p > name && isdigit((unsigned char)p[-1]))
    p--;
  if (p > name && p < end && p[-1] == '.')
    end = p - 1;
  for (p = end; p > name && isdigit((unsigned char)p[-1]);)
    p--;
  const bool has_number = p > name + 1 && p < end && p[-1] == '_';
  if (!has_number || strtoll(p, NULL, 10) != m->pid)
    return;
  snprintf(m->host, sizeof m->host, "%.*s", (int)(p - 1 - name), name);
}

static void free_all(struct kineto_gathering *g) {
  for (size_t i = 0; i < g->m->n_comms && i < g->cap_groups; i++) {
    free(g->group[i].ranks);
    free(g->group[i].seats.seat);
  }
  NI_EACH(struct kineto_group, x, g->listed, g->n_listed) free(x->ranks);
  free(g->kernel);
  free(g->call);
  free(g->launch);
  free(g->group);
  free(g->listed);
  free(g->step);
}

int ni_kineto_gather(struct ni_imported *into, struct ni_progress *progress) {
  struct kineto_gathering g = {.m = into};
  int e = ni_kineto_read(into->path, add_event, &g, &into->bad, progress);
  if (e == 0 && into->rank < 0) {
    into->rank = ni_rank_in_name(into->path, NULL);
    into->rank_of_name = into->rank >= 0;
  }
  if (e == 0)
    read_host_from_name(into);
  if (e == 0)
    e = make_operations(&g);
  if (e == 0 && into->n == 0)
    e = -ENODATA;
  free_all(&g);
  return e;
}
