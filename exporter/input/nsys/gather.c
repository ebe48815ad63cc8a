#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/now.h"
#include "exporter/input/discover.h"
#include "format/line.h"
#include "groups.h"
#include "nsys.h"
#include "tables.h"

/* A communicator as its making was recorded. */
struct comm_making {
  uint64_t process, comm;
  int64_t device, rank, ranks;
};

struct nsys_gathering {
  const char *path;
  struct ni_nsys_tables t;
  struct ni_nsys_groups groups;
  struct comm_making *making; /* by process, communicator and device */
  size_t n_makings, cap_makings, n_processes;
};

/* What is known of a process while it is gathered. */
struct nsys_process {
  struct nsys_gathering *g;
  struct ni_imported *m;
  uint64_t id;       /* globalPid */
  struct comm_seat { /* of each communicator */
    uint64_t comm;
    int64_t device, stream; /* stream: of kernels of which no communicator is known; NI_DB_NONE */
  } *seat;
  size_t cap_seats;
  struct ni_index at_seat;
  uint32_t last; /* most kernels have that of the one before */
};

/* ---- communicators ------------------------------------------------------------------------------------- */

static int compare_by_communicator(const void *a, const void *b) {
  const struct comm_making *x = a, *y = b;
  if (x->process != y->process)
    return x->process < y->process ? -1 : 1;
  if (x->comm != y->comm)
    return x->comm < y->comm ? -1 : 1;
  if (x->device != y->device)
    return x->device < y->device ? -1 : 1;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int find_makings(struct nsys_gathering *g) {
  NI_EACH(const struct ni_nsys_range_row, r, g->t.range, g->t.n_ranges) {
    const struct ni_payload_said *s = &r->said;
    const bool has_size = s->ranks > 0 && s->ranks <= INT32_MAX,
               has_rank = s->rank >= 0 && s->rank < s->ranks;
    if (r->what != NI_NSYS_COMM || !s->comm || !has_size || !has_rank)
      continue;
    if (!ni_array_room(g->making, g->n_makings, g->cap_makings))
      return -ENOMEM;
    g->making[g->n_makings++] =
        (struct comm_making){ni_nsys_process(r->thread), s->comm, s->device, s->rank, s->ranks};
  }
  if (g->n_makings)
    qsort(g->making, g->n_makings, sizeof *g->making, compare_by_communicator);
  return 0;
}

/*
 * Finds the making of that device. Where the process made that communicator once, the device does not matter.
 */
static const struct comm_making *find_making(const struct nsys_gathering *g, uint64_t process, uint64_t comm,
                                             int64_t device) {
  const struct comm_making *found = NULL,
                           of = {.process = process, .comm = comm, .device = INT64_MIN, .rank = INT64_MIN};
  size_t i, n = 0;
  ni_array_search(i, g->n_makings, compare_by_communicator(&g->making[i], &of) < 0);
  for (; i < g->n_makings && n < 1024; i++, n++) {
    const struct comm_making *x = &g->making[i];
    if (x->process != process || x->comm != comm)
      break;
    if (x->device == device)
      return x;
    found = x;
  }
  return n == 1 ? found : NULL;
}

static uint64_t hash_stream(const struct nsys_process *p, const struct comm_seat *s) {
  uint64_t hash = ni_mix(p->id + 1);
  for (const char *c = p->g->path; *c; c++)
    hash = ni_mix(hash * 31 + (unsigned char)*c);
  hash = ni_mix(hash + ni_mix((uint64_t)s->stream) + 3 * ni_mix((uint64_t)s->device));
  return hash ? hash : 1;
}

/* The communicator's number: by its id and the GPU, or where nothing is said of it one for each
 * stream, which is no other rank's. */
static int find_or_add_communicator(struct nsys_process *p, const struct ni_nsys_kernel *k, uint64_t comm,
                                    uint32_t *out) {
  struct ni_imported *m = p->m;
  const struct comm_seat s = {comm, k->device, comm ? NI_DB_NONE : k->stream};
  if (p->last < m->n_comms && memcmp(&p->seat[p->last], &s, sizeof s) == 0) {
    *out = p->last;
    return 0;
  }
  const uint64_t hash = ni_hash(ni_hash(ni_hash(0, s.comm), (uint64_t)s.device), (uint64_t)s.stream);
  uint32_t i;
  for (size_t at = 0; (i = ni_index_next(&p->at_seat, hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(&p->seat[i], &s, sizeof s) == 0) {
      *out = p->last = i;
      return 0;
    }
  if (!ni_array_room(p->seat, m->n_comms, p->cap_seats))
    return -ENOMEM;
  int e = ni_imported_add_comm(m, comm ? comm : hash_stream(p, &s), out);
  if (e == 0)
    e = ni_index_add(&p->at_seat, hash, *out);
  if (e < 0)
    return e;
  p->seat[p->last = *out] = s;
  struct ni_imported_comm *c = &m->comm[*out];
  const struct comm_making *made = comm ? find_making(p->g, p->id, comm, k->device) : NULL;
  if (k->device >= 0 && k->device < 1024)
    c->gpu = (int32_t)k->device;
  c->open = comm && !made;
  if (made) {
    c->rank = (int32_t)made->rank;
    c->n_ranks = (int32_t)made->ranks;
  }
  return 0;
}

/* Is it there with that rank, on whatever device its kernels say they ran? */
static bool is_seated(const struct ni_imported *m, const struct comm_making *x) {
  for (size_t i = 0; i < m->n_comms; i++)
    if (m->comm[i].hash == x->comm && m->comm[i].rank == x->rank && m->comm[i].n_ranks > 0)
      return true;
  return false;
}

/* Those that were made and not used: the job's may be one of them, and says the ranks. */
static int add_unused(struct nsys_process *p) {
  const struct nsys_gathering *g = p->g;
  const struct comm_making of = {.process = p->id, .device = INT64_MIN, .rank = INT64_MIN};
  size_t i;
  uint32_t comm;
  int e = 0;
  ni_array_search(i, g->n_makings, compare_by_communicator(&g->making[i], &of) < 0);
  for (; e == 0 && i < g->n_makings && g->making[i].process == p->id; i++) {
    const struct comm_making *x = &g->making[i];
    if (p->m->n_comms == NI_IMPORTED_COMMS || is_seated(p->m, x))
      continue;
    e = find_or_add_communicator(p, &(struct ni_nsys_kernel){.device = x->device}, x->comm, &comm);
  }
  return e;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static bool convert_time(const struct nsys_process *p, int64_t ns, int64_t *unix_ns) {
  const int64_t base = p->m->undated ? NI_IMPORTED_DAY : p->g->t.session_ns;
  return ns != NI_DB_NONE && !__builtin_add_overflow(ns, base, unix_ns) && ni_time_of_a_job(*unix_ns);
}

static bool is_coll(enum ni_func f) { return f != NI_FUNC_OTHER && f != NI_FUNC_SEND && f != NI_FUNC_RECV; }

static void set_operation_size(struct nsys_process *p, const struct ni_nsys_range_row *call,
                               struct ni_imported_op *op) {
  struct ni_imported *m = p->m;
  const struct ni_payload_said *s = &call->said;
  const enum ni_func ran = ni_func_from_name(m->funcs[op->func]);
  const bool message = call->func == NI_FUNC_SEND || call->func == NI_FUNC_RECV;
  const int64_t at = message ? s->peer : s->root;
  const int32_t n_ranks = m->comm[op->comm].n_ranks;
  if (is_coll(ran) && ran != call->func)
    return; /* a part of something larger */
  op->func = ni_imported_func(m, ni_func_table[call->func].name) & 0xff;
  op->sized = s->bytes >= 0;
  op->bytes = op->sized ? (uint64_t)s->bytes : 0;
  if (message)
    op->kind = NI_KIND_P2P;
  const bool is_rank = at >= 0 && at < INT32_MAX;
  if (is_rank && (n_ranks == 0 || at < n_ranks))
    op->root = (int32_t)at;
}

/* Messages in one kernel, of which nobody says which: to and from whom is not known. PyTorch may know
 * what they make together. */
static void set_operation_name(struct nsys_process *p, const struct ni_nsys_kernel *k,
                               struct ni_imported_op *op) {
  const bool parts = strcmp(k->func, "SendRecv") == 0,
             nameless = parts || ni_func_from_name(k->func) == NI_FUNC_OTHER;
  if (nameless && is_coll(k->torch))
    op->func = ni_imported_func(p->m, ni_func_table[k->torch].name) & 0xff;
  else if (parts)
    op->kind = NI_KIND_P2P;
}

static int make_operation(struct nsys_process *p, const struct ni_nsys_kernel *k) {
  struct ni_imported *m = p->m;
  struct ni_imported_op op = {.enqueue_ns = NI_IMPORTED_NEVER,
                              .seq = NI_NO_SN,
                              .root = -1,
                              .blocks = k->blocks & 0xffffff,
                              .dur_ns = (uint64_t)(k->end - k->start),
                              .graph = k->graph,
                              .timing = NI_TIMING_KERNEL_GPU,
                              .func = ni_imported_func(m, k->func) & 0xff};
  uint64_t comm;
  int64_t end;
  if (!convert_time(p, k->start, &op.start_ns) || !convert_time(p, k->end, &end)) {
    m->bad++;
    return 0;
  }
  (void)convert_time(p, k->launch, &op.enqueue_ns);
  if (k->launch == NI_DB_NONE)
    op.enqueue_ns = NI_IMPORTED_NEVER;
  const struct ni_nsys_range_row *call = ni_nsys_call_of(&p->g->groups, &p->g->t, k, &comm);
  int e = find_or_add_communicator(p, k, comm, &op.comm);
  if (e < 0)
    return e;
  if (call)
    set_operation_size(p, call, &op);
  else
    set_operation_name(p, k, &op);
  m->unlaunched += op.enqueue_ns == NI_IMPORTED_NEVER;
  m->unsized += !op.sized;
  m->ungrouped += m->comm[op.comm].n_ranks == 0 && !m->comm[op.comm].open;
  return ni_imported_op(m, &op);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static int compare_by_word(const void *a, const void *b) {
  const struct ni_nsys_step *x = a, *y = b;
  if (x->process != y->process)
    return x->process < y->process ? -1 : 1;
  if (x->word != y->word)
    return x->word < y->word ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

/* Of several words that could be steps ("iteration 3", in it "microbatch step 1") the one whose
 * numbers rise and that takes longest. */
static int make_steps(struct nsys_process *p) {
  const struct ni_nsys_step *step = p->g->t.step;
  const size_t n = p->g->t.n_steps;
  size_t best = n, best_end = n, i;
  int64_t most = 0, ns;
  int e = 0;
  ni_array_search(i, n, step[i].process < p->id);
  while (i < n && step[i].process == p->id) {
    const size_t from = i;
    int64_t all = 0;
    bool rise = true;
    for (; i < n && step[i].process == p->id && step[i].word == step[from].word; i++) {
      if (__builtin_add_overflow(all, step[i].end - step[i].start, &all))
        all = INT64_MAX;
      rise = rise && (i == from || step[i].number > step[i - 1].number);
    }
    if (rise && i - from >= 2 && all > most) {
      best = from;
      best_end = i;
      most = all;
    }
  }
  for (i = best; e == 0 && i < best_end; i++)
    if (convert_time(p, step[i].start, &ns))
      e = ni_imported_step(p->m, ns, step[i].number);
  return e;
}

/* ---- processes ----------------------------------------------------------------------------------------- */

static void find_rank(const struct nsys_process *p) {
  const struct nsys_gathering *g = p->g;
  struct ni_imported *m = p->m;
  bool is_guess;
  NI_EACH(const struct ni_nsys_rank, r, g->t.rank, g->t.n_ranks)
  if (r->process == p->id)
    m->rank = r->rank;
  if (g->n_processes > 1)
    return; /* the environment is that of the session, the name that of the file */
  if (m->rank < 0 || m->rank == g->t.env_rank) {
    m->rank = g->t.env_rank;
    m->world = g->t.env_world;
  }
  if (m->rank >= 0)
    return;
  const int32_t rank = ni_rank_in_name(g->path, &is_guess);
  const char *name = ni_path_name(g->path);
  /* "report1": nsys counts its own reports like that. */
  const bool counted = is_guess && strncmp(name, "report", 6) == 0 && name[6] >= '0' && name[6] <= '9';
  if (counted)
    return;
  m->rank = rank;
  m->rank_of_name = rank >= 0;
}

static int gather_process(struct nsys_gathering *g, const struct ni_nsys_kernel *k, size_t n,
                          ni_imported_take *take, void *arg) {
  struct ni_imported m;
  ni_imported_init(&m, g->path);
  struct nsys_process p = {.g = g, .m = &m, .id = k->process, .last = UINT32_MAX};
  m.undated = g->t.session_ns == NI_DB_NONE;
  m.pid = (int64_t)(k->process >> 24 & 0xffffff);
  m.bad = g->t.bad;
  g->t.bad = 0; /* whose they were is not known: they are said once */
  snprintf(m.host, sizeof m.host, "%s", g->t.host);
  find_rank(&p);
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++)
    e = make_operation(&p, &k[i]);
  if (e == 0)
    e = add_unused(&p);
  if (e == 0)
    e = make_steps(&p);
  free(p.seat);
  ni_index_free(&p.at_seat);
  if (e == 0)
    ni_imported_order(&m);
  if (e == 0 && m.n > 0)
    return take(arg, &m);
  ni_imported_free(&m);
  return e;
}

static int compare_by_process(const void *a, const void *b) {
  const struct ni_nsys_kernel *x = a, *y = b;
  if (x->process != y->process)
    return x->process < y->process ? -1 : 1;
  if (x->start != y->start)
    return x->start < y->start ? -1 : 1;
  if (x->end != y->end)
    return x->end < y->end ? -1 : 1;
  if (x->device != y->device)
    return x->device < y->device ? -1 : 1;
  return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static int gather_all(struct nsys_gathering *g, ni_imported_take *take, void *arg) {
  struct ni_nsys_kernel *kernel = g->t.kernel;
  const size_t n = g->t.n_kernels;
  int e = 0;
  NI_EACH(struct ni_nsys_kernel, k, kernel, n)
  if (k->process == 0)
    k->process = ni_nsys_process(k->thread);
  if (n)
    qsort(kernel, n, sizeof *kernel, compare_by_process);
  for (size_t i = 0; i < n; i++)
    g->n_processes += i == 0 || kernel[i].process != kernel[i - 1].process;
  if (g->t.n_steps)
    qsort(g->t.step, g->t.n_steps, sizeof *g->t.step, compare_by_word);
  for (size_t from = 0, to; e == 0 && from < n; from = to) {
    for (to = from; to < n && kernel[to].process == kernel[from].process;)
      to++;
    e = gather_process(g, kernel + from, to - from, take, arg);
  }
  return e;
}

bool ni_nsys_is_export(const char *name) {
  static const char *const ends[] = {".sqlite", ".sqlite3", ".db"};
  const size_t n = strlen(name);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
      return true;
  return false;
}

int ni_nsys_read(const char *path, ni_imported_take *take, void *arg, struct ni_progress *progress) {
  struct nsys_gathering g = {.path = path};
  struct ni_db db;
  struct stat st;
  int e = ni_db_open(&db, path);
  if (e < 0)
    return e;
  e = ni_nsys_tables(&g.t, &db);
  ni_db_close(&db);
  if (e == 0)
    e = ni_nsys_groups(&g.groups, &g.t);
  if (e == 0)
    e = find_makings(&g);
  if (e == 0 && stat(path, &st) == 0)
    ni_progress_add(progress, (uint64_t)st.st_size, 0);
  if (e == 0)
    e = gather_all(&g, take, arg);
  ni_nsys_groups_free(&g.groups);
  ni_nsys_tables_free(&g.t);
  free(g.making);
  return e;
}
