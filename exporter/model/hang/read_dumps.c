#include "read_dumps.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/input/flight/tree.h"
#include "exporter/base/mix.h"

#define EXAMINED (1u << 20) /* entries of a dump */
#define TENSORS 64
#define DIMS 16
#define TIME_MAX INT64_C(4000000000000000000)
#define WEEK_MS INT64_C(604800000)
#define SLOW_NS UINT64_C(1000000000)
#define SLOW_MOST 65536

/* Of a process: what the end of reading needs. */
struct dump_state {
  uint64_t newest_ns, changed_ns; /* newest time of an entry; the file's */
  struct ni_hang_op oldest;       /* in flight; enqueue_ns 0: none */
  int64_t member;                 /* of that */
  bool timed;                     /* it says of some operation when it started */
  const char *path;               /* of its dump, the first one; the caller's. NULL: it has none */
  bool guessed;                   /* that dump is this rank's by the last number in its name alone */
};

/*
 * An operation that was completed after a long while, perhaps by the abort. It is known when the abort was
 * once all dumps are read.
 */
struct slow {
  struct ni_hang_op op;
  int64_t member;
};

struct dump_group {
  struct ni_hang_member *x; /* NULL: none of this rank's */
  int64_t member;
  uint64_t taken, last_sn, batch_sn; /* of the entries behind the one at hand; NI_HANG_NONE */
  bool batch_done, batch_started;
  int64_t started, completed; /* the last ones, by its status; -1: it does not say */
};

struct dump_reading {
  struct ni_hang_model *m;
  int64_t rank, process;
  bool guessed;             /* the rank: from the last number in the name of the dump */
  struct dump_state *state; /* by process */
  size_t n_states, cap_states;
  struct slow *slow;
  size_t n_slow, cap_slow;
  uint64_t newest_ns, due_ns; /* of all dumps; due_ns: the first time-out, or NI_HANG_NONE */
  struct dump_group *group;   /* from here on of one dump */
  size_t n, cap;
  struct ni_map names;
  bool whole; /* nothing of it was overwritten */
};

static int64_t get_number(const struct ni_node *x, const char *key, int64_t otherwise) {
  return ni_node_number(ni_node_get(x, key), otherwise);
}

static uint64_t read_time(struct dump_reading *r, const struct ni_node *e, const char *key) {
  int64_t ns = get_number(e, key, 0);
  if (ns <= 0 || ns > TIME_MAX)
    return 0;
  ni_hang_raise(&r->state[r->process].newest_ns, (uint64_t)ns);
  ni_hang_raise(&r->newest_ns, (uint64_t)ns);
  return (uint64_t)ns;
}

/* Bytes of an element by c10's name of its type ("BFloat16", "Float8_e4m3fn"); 0: not known. */
static uint64_t bytes_of_type(const char *type) {
  static const char *const of[][8] = {{"Float8", "Byte", "Char", "Bool"},
                                      {"BFloat16", "Half", "Short"},
                                      {"Float", "Int"},
                                      {"Double", "Long"}};
  for (unsigned i = 0; i < 4; i++)
    for (const char *const *name = of[i]; *name; name++)
      if (strncmp(type, *name, strlen(*name)) == 0)
        return UINT64_C(1) << i;
  return 0;
}

/* Bytes of all tensors; 0: not known. */
static uint64_t bytes_of_tensors(const struct ni_node *sizes, const struct ni_node *dtypes) {
  uint64_t sum = 0, x;
  char type[32];
  size_t n = ni_node_length(sizes), types = ni_node_length(dtypes);
  for (size_t i = 0; i < n && n <= TENSORS; i++, sum += x) {
    const struct ni_node *dims = ni_node_at(sizes, i);
    x = bytes_of_type(ni_node_text(ni_node_at(dtypes, i < types ? i : 0), type, sizeof type));
    if (ni_node_length(dims) > DIMS)
      return 0;
    for (size_t d = 0; d < ni_node_length(dims); d++)
      if (__builtin_mul_overflow(x, (uint64_t)ni_node_number(ni_node_at(dims, d), 0), &x))
        return 0;
  }
  return sum;
}

/* ---- process groups ---- */

/*
 * Reads a text like "[0, 1, 2]": how many numbers are in it, and at which place our rank is, or -1. The
 * numbers go into the hash.
 */
static void read_ranks(const struct ni_node *text, int64_t rank, struct ni_ident *id) {
  size_t n;
  const char *s = ni_node_bytes(text, &n);
  uint64_t number = 0;
  id->rank = -1;
  for (size_t i = 0; i < n; i++) {
    if (!isdigit((unsigned char)s[i]))
      continue;
    number = 10 * number + (uint64_t)(s[i] - '0');
    if (i + 1 < n && isdigit((unsigned char)s[i + 1]))
      continue;
    if (number == (uint64_t)rank)
      id->rank = id->n_ranks;
    id->comm_hash = ni_mix(id->comm_hash + number);
    id->n_ranks++;
    number = 0;
  }
  if (id->n_ranks == 0)
    id->rank = (int32_t)rank;
}

/* The group of that name. config, status: what the dump says of it, or NULL. NULL: no memory, or too many. */
static struct dump_group *find_or_add_group(struct dump_reading *r, const struct ni_node *called,
                                            const struct ni_node *config, const struct ni_node *status) {
  char name[64], desc[64], full[160];
  uint64_t key = ni_hash_text(0, ni_node_text(called, name, sizeof name));
  int64_t k = ni_map_get(&r->names, key, 0);
  if (k >= 0)
    return &r->group[k];
  if (r->n >= NI_HANG_GROUPS || !ni_array_room(r->group, r->n, r->cap))
    return NULL;
  if (ni_map_find_or_add(&r->names, key, 0, (uint32_t)r->n) < 0)
    return NULL;
  struct dump_group *g = &r->group[r->n++];
  *g = (struct dump_group){.last_sn = NI_HANG_NONE,
                           .batch_sn = NI_HANG_NONE,
                           .started = get_number(status, "last_started_collective", -1),
                           .completed = get_number(status, "last_completed_collective", -1)};
  struct ni_ident id = {.comm_hash = 1, .comm_name = full}; /* the same in each run, unlike ni_hash() */
  for (const char *c = name; *c; c++)
    id.comm_hash = ni_mix(id.comm_hash + (unsigned char)*c);
  read_ranks(ni_node_get(config, "ranks"), r->rank, &id);
  if (id.rank < 0)
    return g;
  ni_node_text(ni_node_get(config, "desc"), desc, sizeof desc);
  bool described = *desc && strcmp(desc, "undefined") != 0;
  snprintf(full, sizeof full, "%s%sprocess group %s%s", described ? desc : "", described ? " (" : "", name,
           described ? ")" : "");
  if ((g->member = ni_hang_member_of(r->m, (uint32_t)r->process, &id, 0)) < 0)
    return NULL;
  g->x = r->m->member[g->member];
  g->x->dump = true;
  for (int i = 0; i < NI_KIND_COUNT; i++)
    if (g->x->started[i] == NI_HANG_NONE)
      g->x->started[i] = 0;
  int64_t last = get_number(status, "last_enqueued_collective", 0);
  if (last > 0)
    ni_hang_raise(&g->x->started[0], (uint64_t)last + 1);
  g->x->open_ns |= r->whole || status; /* the time comes at the end */
  struct ni_hang_process *p = &r->m->process[r->process];
  if (p->world < id.n_ranks)
    p->world = id.n_ranks;
  return g;
}

/* ---- entries ---- */

/* What an entry says of its call. */
static int read_call(struct dump_reading *r, const struct ni_node *e, const char *func,
                     struct ni_hang_op *op) {
  char type[32];
  bool out = strncmp(func, "scatter", 7) == 0; /* only its root has an input */
  bool uneven = strstr(func, "all_to_all") || strstr(func, "alltoall");
  const struct ni_node *types = ni_node_get(e, out ? "output_dtypes" : "input_dtypes");
  const char *arrow = op->kind == NI_KIND_P2P ? strpbrk(func, "<-") : NULL; /* "send 0->1", "recv 1<-0" */
  int name = ni_hang_name(r->m, !arrow ? func : *arrow == '-' ? "Send" : "Recv");
  int datatype = ni_hang_name(r->m, ni_node_text(ni_node_at(types, 0), type, sizeof type));
  if (name < 0 || datatype < 0)
    return -ENOMEM;
  int64_t timeout = get_number(e, "timeout_ms", 0);
  op->func = (uint16_t)name;
  op->datatype = (uint16_t)datatype;
  op->bytes = uneven ? 0 : bytes_of_tensors(ni_node_get(e, out ? "output_sizes" : "input_sizes"), types);
  op->enqueue_ns = read_time(r, e, "time_created_ns");
  op->seen_ns = read_time(r, e, "time_discovered_completed_ns");
  op->timeout_ns = timeout > 0 && timeout < WEEK_MS ? (uint64_t)timeout * 1000000u : 0;
  op->root = arrow ? (int32_t)strtol(arrow + 2, NULL, 10) : -1;
  return 0;
}

static int add_open_op(struct dump_reading *r, int64_t member, const struct ni_hang_op *op) {
  struct dump_state *s = &r->state[r->m->who.member[member].process];
  uint64_t begun = op->enqueue_ns;
  if (begun && (!s->oldest.enqueue_ns || begun <= s->oldest.enqueue_ns)) {
    s->oldest = *op;
    s->member = member;
  }
  if (begun && op->timeout_ns && begun + op->timeout_ns < r->due_ns)
    r->due_ns = begun + op->timeout_ns;
  return ni_hang_in_flight(r->m->member[member], op);
}

static int add_finished_op(struct dump_reading *r, int64_t member, const struct ni_hang_op *op) {
  struct ni_hang_op done = *op;
  if (done.kind == NI_KIND_P2P)
    done.rec_sn = NI_HANG_NONE;
  return ni_hang_finished(r->m->member[member], &done);
}

static int add_dump_op(struct dump_reading *r, struct dump_group *g, const struct ni_hang_op *op, bool done) {
  uint64_t took = op->seen_ns > op->enqueue_ns && op->enqueue_ns ? op->seen_ns - op->enqueue_ns : 0;
  g->x->open_ns |= 1;
  ni_hang_raise(&g->x->started[op->kind], op->sn + 1);
  if (!done || (op->timeout_ns && took >= op->timeout_ns))
    return add_open_op(r, g->member, op);
  if (took < SLOW_NS || r->n_slow >= SLOW_MOST)
    return add_finished_op(r, g->member, op);
  if (!ni_array_room(r->slow, r->n_slow, r->cap_slow))
    return -ENOMEM;
  r->slow[r->n_slow++] = (struct slow){*op, g->member};
  return 0;
}

/* What was completed after the first time-out of any dump was ended by the abort. */
static int end_aborted_ops(struct dump_reading *r) {
  uint64_t abort_ns = r->due_ns;
  int e = 0;
  for (size_t i = 0; e == 0 && i < r->n_slow; i++) {
    const struct slow *s = &r->slow[i];
    e = s->op.seen_ns >= abort_ns ? add_open_op(r, s->member, &s->op) : add_finished_op(r, s->member, &s->op);
  }
  return e;
}

/* One entry, the newest first. at: its place in the ring. */
static int read_entry(struct dump_reading *r, const struct ni_node *e, size_t at) {
  char name[96], state[16];
  struct dump_group *g = find_or_add_group(r, ni_node_at(ni_node_get(e, "process_group"), 0), NULL, NULL);
  const char *func = ni_node_text(ni_node_get(e, "profiling_name"), name, sizeof name),
             *colon = strchr(func, ':');
  bool gloo =
      strncmp(func, "gloo:", 5) == 0; /* of nccl, nccl2, ncclx, xccl and others the rules are the same */
  if (colon)
    func = colon + 1;
  bool p2p = get_number(e, "is_p2p", strpbrk(func, "<-") != NULL);
  int64_t sn = get_number(e, p2p ? "p2p_seq_id" : "collective_seq_id", -1);
  const bool has_group = g && g->x;
  if (!has_group || sn < 0 || !*func) {
    r->m->bad_lines++;
    return 0;
  }
  if (g->taken++ >= NI_HANG_ENTRIES || (!p2p && (uint64_t)sn == g->last_sn))
    return 0;
  ni_node_text(ni_node_get(e, "state"), state, sizeof state);
  const bool is_completed = gloo || (!p2p && sn <= g->completed);
  bool done = strcmp(state, "completed") == 0 || (get_number(e, "retired", 0) && is_completed);
  const bool is_started = !p2p && !done && sn <= g->started;
  bool started = strcmp(state, "started") == 0 || read_time(r, e, "time_discovered_started_ns") || is_started;
  r->state[r->process].timed |= started;
  if (!p2p)
    g->last_sn = (uint64_t)sn;
  else if (!strpbrk(func, "<-")) {
    g->batch_sn = (uint64_t)sn;
    g->batch_done = done;
    g->batch_started = started;
    return 0;
  } else if (g->batch_sn == (uint64_t)sn) {
    done = g->batch_done;
    started = g->batch_started;
  }
  struct ni_hang_op op = {.kind = p2p ? NI_KIND_P2P : NI_KIND_COLL,
                          .sn = (uint64_t)sn,
                          .state = started ? NI_HANG_KERNEL : NI_HANG_LAUNCHED,
                          .rec_sn = p2p ? (uint64_t)get_number(e, "record_id", (int64_t)at) : (uint64_t)sn,
                          .want = -1,
                          .started = -1,
                          .stopped = -1,
                          .net_peer = -1,
                          .net_channel = -1};
  int error = read_call(r, e, func, &op);
  return error ? error : add_dump_op(r, g, &op, done);
}

/* ---- files ---- */

bool ni_hang_dump_name(const char *name) {
  const char *dot = strrchr(name, '.');
  return isdigit((unsigned char)name[strlen(name) - 1]) ||
      (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".pkl") == 0 || strcmp(dot, ".pickle") == 0));
}

static bool is_empty_dump(const struct ni_file *f, void *arg) {
  return (geteuid() == 0 && f->owner != 0) || !ni_tree_is_dump(f->path);
}

int ni_hang_find_dumps(struct ni_files *out, const struct ni_inputs *in) {
  out->wanted = ni_hang_dump_name;
  int e = ni_discover(out, in->path, in->n);
  ni_files_drop(out, is_empty_dump, NULL);
  return e;
}

/* The process of that rank that began last, in logs, boxes or dumps; else a new one. */
static int64_t find_or_add_process(const struct dump_reading *r, const struct ni_hang_looks *l) {
  const struct ni_who_process *w = NULL;
  for (size_t i = 0; i < r->m->n_processes + l->n; i++) {
    const struct ni_hang_model *m = i < r->m->n_processes ? r->m : &l->look[i - r->m->n_processes].m;
    size_t k = m == r->m ? i : 0;
    bool is = k < m->n_processes && m->process[k].rank == r->rank;
    if (is && (!w || m->who.process[k].start_ns > w->start_ns))
      w = &m->who.process[k];
  }
  return ni_hang_process_of(r->m, w ? w->host : "", w ? w->pid : r->rank, w ? w->start_ns : 0);
}

static int read_dump(struct dump_reading *r, const struct ni_file *f, const struct ni_node *root) {
  const struct ni_node *entries = ni_node_get(root, "entries");
  const struct ni_node *config = ni_node_get(root, "pg_config");
  struct ni_hang_process *p = &r->m->process[r->process];
  char name[64];
  struct stat st;
  int e = 0;
  p->has_dump = true;
  p->rank = (int32_t)r->rank;
  if (!r->state[r->process].path) {
    r->state[r->process].path = f->path;
    r->state[r->process].guessed = r->guessed;
  }
  if (stat(f->path, &st) == 0)
    ni_hang_raise(&r->state[r->process].changed_ns, (uint64_t)st.st_mtim.tv_sec * 1000000000u);
  if (!p->file && !(p->file = strdup(f->path)))
    return -ENOMEM;
  ni_hang_raise(&p->file_ns, r->state[r->process].changed_ns);
  size_t n = ni_node_length(entries);
  r->whole = n == 0 || get_number(ni_node_at(entries, 0), "record_id", -1) == 0;
  for (size_t i = 0; i + 1 < ni_node_length(config) && i < (size_t)2 * NI_HANG_GROUPS; i += 2) {
    const struct ni_node *called = ni_node_at(config, i), *status = ni_node_get(root, "pg_status");
    status = ni_node_get(status, ni_node_text(called, name, sizeof name));
    (void)find_or_add_group(r, called, ni_node_at(config, i + 1), status);
  }
  for (size_t i = 0; e == 0 && i < n && i < EXAMINED; i++)
    e = read_entry(r, ni_node_at(entries, n - 1 - i), n - 1 - i);
  return e;
}

/* Room for what is kept of each process. */
static int add_dump_states(struct dump_reading *r) {
  while (r->n_states < r->m->n_processes) {
    if (!ni_array_room(r->state, r->n_states, r->cap_states))
      return -ENOMEM;
    r->state[r->n_states++] = (struct dump_state){0};
  }
  return 0;
}

/*
 * Are there two dumps of one rank, one of which has its rank only from the last number in its name? That
 * number may be a node. Both would become one rank that never existed. The second one is left out, and both
 * are named.
 */
static bool has_same_guessed_rank(struct dump_reading *r, const struct ni_file *f) {
  const struct dump_state *s = &r->state[r->process];
  char why[2 * PATH_MAX + 256];
  if (!s->path || !(r->guessed || s->guessed))
    return false;
  const char *doubtful = r->guessed ? f->path : s->path;
  snprintf(why, sizeof why,
           "left out: rank %" PRId64
           " has a dump already, %s. That %s is of the same rank, only the last number in its name "
           "says, and that may be a node's. Name dumps by their ranks, as PyTorch does: nccl_trace_rank_3",
           r->rank, s->path, ni_path_name(doubtful));
  ni_hang_bad_file(r->m, f->path, why);
  return true;
}

static int read_dump_file(struct dump_reading *r, const struct ni_file *f, const struct ni_hang_looks *l) {
  char why[256] = "";
  struct ni_tree *t = ni_tree_read(f->path, why);
  r->rank = t ? get_number(ni_tree_root(t), "rank", -1) : -1;
  r->guessed = false;
  if (t && r->rank < 0)
    r->rank = ni_rank_in_name(f->path, &r->guessed);
  if (t && r->rank < 0)
    snprintf(why, sizeof why, "%s",
             "no rank in it, and no number in its name. Name it as PyTorch does: nccl_trace_rank_3");
  else if (r->rank >= INT32_MAX)
    snprintf(why, sizeof why, "rank %" PRId64 " is none: ranks are below %d", r->rank, INT32_MAX);
  if (!t || *why) {
    ni_hang_bad_file(r->m, f->path, why);
    ni_tree_free(t);
    return 0;
  }
  r->process = find_or_add_process(r, l);
  int e = r->process < 0 ? (int)r->process : add_dump_states(r);
  if (e == 0 && !has_same_guessed_rank(r, f)) {
    r->m->dumps++;
    e = read_dump(r, f, ni_tree_root(t));
  }
  ni_map_free(&r->names);
  r->names = (struct ni_map){0};
  r->n = 0;
  ni_tree_free(t);
  return e;
}

/* After all dumps are read: sets as of when each one is, and what of it has started. */
static void settle_dumps(struct dump_reading *r) {
  uint64_t until = r->due_ns != NI_HANG_NONE && r->due_ns > r->newest_ns ? r->due_ns : r->newest_ns;
  for (size_t i = 0; i < r->m->n_members; i++) {
    struct ni_hang_member *x = r->m->member[i];
    const struct ni_who_process *w = &r->m->who.process[r->m->who.member[i].process];
    if (!x->dump)
      continue;
    const struct dump_state *s = &r->state[r->m->who.member[i].process];
    uint64_t seen = s->changed_ns < until ? s->changed_ns : until;
    ni_hang_raise(&seen, s->newest_ns);
    x->started_ns = seen;
    if (x->open_ns)
      x->open_ns = seen;
    if (!*w->host)
      ni_hang_raise(&r->m->process[w - r->m->who.process].alive_ns, seen);
    for (size_t k = 0; k < x->n_open; k++) {
      struct ni_hang_op *op = &x->open[k];
      bool oldest = s->member == (int64_t)i && op->kind == s->oldest.kind && op->sn == s->oldest.sn;
      op->seen_ns = seen;
      if (!s->timed && oldest)
        op->state = NI_HANG_UNSTATED;
    }
  }
}

int ni_hang_read_dumps(struct ni_hang_model *m, const struct ni_files *dumps,
                       const struct ni_hang_looks *looks) {
  struct dump_reading r = {.m = m, .due_ns = NI_HANG_NONE};
  int e = 0;
  for (int guess = 0; guess < 2; guess++) /* those whose names say the rank come first: they have it */
    for (size_t i = 0; e == 0 && i < dumps->n; i++) {
      bool is_guess;
      (void)ni_rank_in_name(dumps->file[i].path, &is_guess);
      if (is_guess == (guess == 1))
        e = read_dump_file(&r, &dumps->file[i], looks);
    }
  if (e == 0)
    e = end_aborted_ops(&r);
  if (e == 0)
    settle_dumps(&r);
  free(r.slow);
  ni_map_free(&r.names);
  free(r.group);
  free(r.state);
  return e;
}
