#include "rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/ledger/implausible.h"
#include "exporter/model/who/who.h"

enum { GPUS_MAX = 65536, SPARE = 1024 }; /* SPARE: more keys than a member of the plugin's can bring */
#define SEEN(id) \
  (((id)->comm_hash ^ (uint32_t)(id)->rank) % \
   (sizeof((struct ni_rows *)0)->seen / sizeof(struct ni_rows_seen)))

/*
 * ---- which rank of this node comes last to collectives, and how long the others had waited by then ----
 *
 *   records of several logs, flushed up to a second apart ─▶ ring of operations by function and number
 *       ─▶ all are here: the last one
 *
 * "All" are the ranks that the communicator has on this node, as far as anything has named them. What is
 * pushed out of the ring before that counts when half of them came.
 */

enum { COMMS = 64, OPS = 2048, RANKS = 16 };

struct late_op {
  uint64_t sn;
  uint8_t func, size_class, n; /* n: arrivals; 0: free */
  uint64_t arrival[RANKS];     /* 0: did not come */
};
struct late_comm {
  uint64_t hash, used; /* used: 0: free; the least one gives way */
  int32_t rank[RANKS];
  struct ni_live_who who[RANKS];
  uint64_t waited_until[RANKS]; /* Unix ns: so far it counts for how long others waited for that rank */
  uint8_t n;
  struct late_op *op; /* where two ranks are here */
};
struct last_one {
  struct ni_live_who who;
  enum ni_func func;
  uint32_t size_class;
  /*
   * from the middle one's arrival (of an even number the earlier one) to its own, but for what counted before
   */
  uint64_t ns;
};
struct ni_rows_late {
  struct late_comm comm[COMMS];
  struct late_comm *newest; /* most lines are of the communicator of the line before */
  uint64_t now;
};

static struct late_comm *find_or_add_comm(struct ni_rows_late *l, uint64_t hash) {
  struct late_comm *c = l->newest ? l->newest : l->comm;
  for (int i = 0; i < COMMS && (!c->used || c->hash != hash); i++)
    if (l->comm[i].used < c->used || (l->comm[i].used && l->comm[i].hash == hash))
      c = &l->comm[i];
  if (!c->used || c->hash != hash) {
    free(c->op);
    *c = (struct late_comm){.hash = hash};
  }
  c->used = ++l->now;
  return l->newest = c;
}

/*
 * Finds the last rank of an operation that leaves the ring. If a rank is late to several operations that the
 * others have called already, they waited for it once: time that counted for one operation does not count
 * again. So a second has one second of waiting at most.
 */
static bool find_last(struct late_comm *c, struct late_op *o, struct last_one *one) {
  uint64_t sorted[RANKS];
  int n = 0, last = 0;
  for (int i = 0; i < c->n; i++) {
    if (!o->arrival[i])
      continue;
    if (o->arrival[i] > o->arrival[last])
      last = i;
    int k = n++;
    for (; k && sorted[k - 1] > o->arrival[i]; k--)
      sorted[k] = sorted[k - 1];
    sorted[k] = o->arrival[i];
  }
  o->n = 0;
  if (n < 2 || 2 * n < c->n)
    return false;
  uint64_t from = sorted[(n - 1) / 2], to = sorted[n - 1];
  if (from < c->waited_until[last])
    from = c->waited_until[last];
  if (to > from)
    c->waited_until[last] = to;
  *one = (struct last_one){c->who[last], (enum ni_func)o->func, o->size_class, to > from ? to - from : 0};
  return true;
}

/*
 * Notes that there is such a rank here; for func OTHER nothing more. Else the rank came to `sn` at `ns`, Unix
 * ns. true: *one is known now.
 */
static bool note_arrival(struct ni_rows_late *l, uint64_t hash, int32_t rank, const struct ni_live_who *who,
                         enum ni_func func, uint64_t sn, uint32_t size_class, uint64_t ns,
                         struct last_one *one) {
  struct late_comm *c = find_or_add_comm(l, hash);
  int k = 0;
  bool told = false;
  while (k < c->n && c->rank[k] != rank)
    k++;
  if (k == RANKS)
    return false;
  if (k == c->n || func == NI_FUNC_OTHER)
    c->who[k] = *who;
  if (k == c->n)
    c->n++;
  c->rank[k] = rank;
  if (func == NI_FUNC_OTHER || !ns || c->n < 2)
    return false;
  if (!c->op && !(c->op = calloc(OPS, sizeof *c->op)))
    return false;
  /* one behind the other in memory; three functions apart */
  struct late_op *o = &c->op[(sn + 683 * (uint64_t)func) % OPS];
  if (o->n && (o->sn != sn || o->func != func)) {
    if (o->func == func && o->sn > sn)
      return false; /* long past */
    told = find_last(c, o, one);
  }
  if (!o->n)
    *o = (struct late_op){.sn = sn, .func = (uint8_t)func, .size_class = (uint8_t)size_class};
  o->n += !o->arrival[k];
  o->arrival[k] = ns;
  return told || (o->n == c->n && find_last(c, o, one));
}

/* ---- sums ---- */

int ni_rows_open(struct ni_rows *r, bool nvidia, const struct ni_live *known) {
  *r = (struct ni_rows){.nvidia = nvidia};
  int e = ni_scan_new(&r->scan);
  if (e == 0 && !(r->late = calloc(1, sizeof *r->late)))
    e = -ENOMEM;
  for (size_t i = 0; e == 0 && known && i < known->n_lives; i++) {
    const struct ni_live_life *x = &known->life[i];
    e = ni_rows_comm(r, x->pid, x->start_ns, x->hash, x->comm_rank, x->gpu, x->gpu_pci, NULL);
  }
  return e;
}

void ni_rows_close(struct ni_rows *r) {
  ni_scan_free(r->scan);
  for (int i = 0; r->late && i < COMMS; i++)
    free(r->late->comm[i].op);
  free(r->late);
  free(r->gpu);
  free(r->b.counts);
  free(r->b.nvidia);
  free(r->b.accounts);
  ni_index_free(&r->gpus);
  ni_index_free(&r->counts);
  ni_index_free(&r->nvidias);
}

void ni_rows_begin(struct ni_rows *r, const struct ni_live_file *f) {
  r->b = (struct ni_live_batch){.kind = NI_LIVE_LOGS,
                                .file = *f,
                                .counts = r->b.counts,
                                .nvidia = r->b.nvidia,
                                .accounts = r->b.accounts};
  r->b.file.from = f->to;
  ni_scan_begin(r->scan);
  ni_index_free(&r->counts);
  ni_index_free(&r->nvidias);
  memset(r->seen, 0, sizeof r->seen);
}

bool ni_rows_full(const struct ni_rows *r) {
  const uint32_t most = NI_LIVE_KEYS_MAX - SPARE;
  return r->b.n_counts > most || r->b.n_nvidia > most || r->b.n_accounts > most;
}

void ni_rows_job(const struct ni_process_line *p, char job[64], char attempt[16]) {
  const char *id = ni_job_id(p), *again = ni_pairs_value(&p->env, "SLURM_RESTART_COUNT");
  if (!again)
    again = ni_pairs_value(&p->env, "TORCHELASTIC_RESTART_COUNT");
  if (id && *id)
    ni_safe_text(id, memset(job, 0, 64), 64); /* whole arrays are compared */
  ni_safe_text(again && *again ? again : "0", memset(attempt, 0, 16), 16);
}

void ni_rows_pci(const char *pci, char out[16]) {
  ni_safe_text(pci, out, 16);
  for (char *p = out; *p; p++)
    *p = (char)tolower((unsigned char)*p);
}

void ni_rows_turn(struct ni_rows *r) {
  size_t n = r->n_gpus;
  if (n < GPUS_MAX / 2)
    return;
  ni_index_free(&r->gpus);
  r->n_gpus = 0;
  for (size_t i = 0; i < n; i++) {
    const struct ni_rows_gpu g = r->gpu[i];
    if (g.used)
      (void)ni_rows_comm(r, g.pid, g.start_ns, g.hash, g.comm_rank, g.gpu, g.pci, NULL);
  }
}

static struct ni_rows_gpu *find_gpu(struct ni_rows *r, int64_t pid, uint64_t start_ns, uint64_t hash,
                                    int32_t comm_rank, uint64_t *key) {
  uint32_t k;
  *key = ni_hash(ni_hash(ni_hash((uint64_t)pid, start_ns), hash), (uint32_t)comm_rank);
  for (size_t at = 0; (k = ni_index_next(&r->gpus, *key, &at)) != NI_INDEX_NONE;) {
    struct ni_rows_gpu *g = &r->gpu[k];
    const bool is_process = g->pid == pid && g->start_ns == start_ns;
    if (is_process && g->hash == hash && g->comm_rank == comm_rank) {
      g->used = true;
      return g;
    }
  }
  return NULL;
}

int ni_rows_comm(struct ni_rows *r, int64_t pid, uint64_t start_ns, uint64_t hash, int32_t comm_rank,
                 int32_t gpu, const char *pci, const struct ni_live_who *who) {
  uint64_t key;
  struct ni_rows_gpu *g = find_gpu(r, pid, start_ns, hash, comm_rank, &key);
  bool again = g;
  if (who)
    (void)note_arrival(r->late, hash, comm_rank, who, NI_FUNC_OTHER, 0, 0, 0, NULL);
  if (!g && r->n_gpus == GPUS_MAX)
    return 0;
  if (!g) {
    if (!ni_array_room(r->gpu, r->n_gpus, r->cap_gpus) ||
        ni_index_add(&r->gpus, key, (uint32_t)r->n_gpus) < 0)
      return -ENOMEM;
    g = &r->gpu[r->n_gpus++];
  }
  *g = (struct ni_rows_gpu){pid, start_ns, hash, comm_rank, gpu < 0 ? -1 : gpu, "", again};
  ni_rows_pci(pci, g->pci);
  return 0;
}

static uint64_t hash_who(const struct ni_live_who *w) {
  uint64_t h = ni_hash_text(ni_hash_text(ni_hash((uint32_t)w->rank, (uint32_t)w->gpu), w->comm), w->gpu_pci);
  return ni_hash_text(ni_hash_text(h, w->job), w->attempt);
}

/* Whom the line's header names. */
static struct ni_rows_seen *find_or_add_who(struct ni_rows *r, const struct ni_ident *id) {
  struct ni_rows_seen *s = &r->seen[SEEN(id)];
  const char *name = id->comm_name ? id->comm_name : "";
  uint64_t key;
  const bool is_same = s->id.comm_hash == id->comm_hash && s->id.rank == id->rank;
  if (s->id.comm_name && is_same && strncmp(name, s->name, sizeof s->name - 1) == 0)
    return s;
  const struct ni_live_file *f = &r->b.file;
  const struct ni_rows_gpu *g = find_gpu(r, f->pid, f->start_ns, id->comm_hash, id->rank, &key);
  *s = (struct ni_rows_seen){.id = *id,
                             .who = {.rank = f->rank >= 0 ? f->rank
                                         : id->rank < 0   ? -1
                                                          : id->rank,
                                     .gpu = g ? g->gpu : -1}};
  strncpy(s->name, name, sizeof s->name - 1);
  s->id.comm_name = s->name;
  memcpy(s->who.job, f->job, sizeof f->job);
  memcpy(s->who.attempt, f->attempt, sizeof f->attempt);
  ni_safe_text(name, s->who.comm, sizeof s->who.comm);
  if (g)
    memcpy(s->who.gpu_pci, g->pci, sizeof g->pci);
  s->hash = hash_who(&s->who);
  return s;
}

/* Sums stay in the range of the batch, even with hostile numbers. */
static void add_saturated(uint64_t *to, uint64_t n) { *to = n > INT64_MAX - *to ? INT64_MAX : *to + n; }

/* The row of that key, or a new one with only the key; NULL: no room (*e 0, counted) or no memory. */
static struct ni_live_counts *find_or_add_counts(struct ni_rows *r, const struct ni_live_who *w,
                                                 uint64_t hash, const char *func, uint32_t size_class,
                                                 int *e) {
  struct ni_live_counts key;
  uint32_t k;
  memset(&key, 0, sizeof key); /* rows are compared as bytes */
  key.who = *w;
  key.size_class = size_class;
  ni_safe_text(func, key.func, sizeof key.func);
  hash = ni_hash_text(ni_hash(hash, size_class), key.func);
  for (size_t at = 0; (k = ni_index_next(&r->counts, hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(&r->b.counts[k], &key, offsetof(struct ni_live_counts, n)) == 0)
      return &r->b.counts[k];
  bool full = r->b.n_counts == NI_LIVE_KEYS_MAX;
  r->b.totals.keys_left_out += full;
  if (full)
    return NULL;
  if (!ni_array_room(r->b.counts, r->b.n_counts, r->cap_counts) ||
      ni_index_add(&r->counts, hash, r->b.n_counts) < 0)
    *e = -ENOMEM;
  if (*e)
    return NULL;
  r->b.counts[r->b.n_counts] = key;
  return &r->b.counts[r->b.n_counts++];
}

static int add_nvidia(struct ni_rows *r, const struct ni_rows_seen *w, const struct ni_line *l,
                      uint64_t bytes, bool bus) {
  struct ni_live_nvidia key;
  const struct ni_record *o = &l->op;
  char algo[sizeof key.algo_proto / 2], proto[sizeof key.algo_proto / 2];
  uint32_t k;
  memset(&key, 0, sizeof key);
  key.who = w->who;
  key.p2p = l->is_p2p;
  key.size_log2 = bytes ? 63u - (uint32_t)__builtin_clzll(bytes) : 0;
  key.n_ranks = l->ident.n_ranks;
  key.nnodes = l->ident.nnodes;
  ni_safe_text(o->func, key.func, sizeof key.func);
  ni_safe_text(o->algo && *o->algo ? o->algo : "Unknown", algo, sizeof algo);
  ni_safe_text(o->proto && *o->proto ? o->proto : "Unknown", proto, sizeof proto);
  for (char *p = algo + 1; *p; p++)
    *p = (char)tolower((unsigned char)*p); /* "Ring_ll" */
  for (char *p = proto; *p; p++)
    *p = (char)tolower((unsigned char)*p);
  stpcpy(stpcpy(stpcpy(key.algo_proto, algo), "_"), proto);
  uint64_t hash =
      ni_hash_text(ni_hash_text(ni_hash(ni_hash(w->hash, key.size_log2), (uint32_t)key.n_ranks), key.func),
                   key.algo_proto);
  struct ni_live_nvidia *v = NULL;
  for (size_t at = 0; !v && (k = ni_index_next(&r->nvidias, hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(&r->b.nvidia[k], &key, offsetof(struct ni_live_nvidia, n)) == 0)
      v = &r->b.nvidia[k];
  if (!v && r->b.n_nvidia == NI_LIVE_KEYS_MAX)
    return 0;
  if (!v) {
    if (!ni_array_room(r->b.nvidia, r->b.n_nvidia, r->cap_nvidia) ||
        ni_index_add(&r->nvidias, hash, r->b.n_nvidia) < 0)
      return -ENOMEM;
    v = &r->b.nvidia[r->b.n_nvidia++];
    *v = key;
  }
  v->n++;
  v->us += (double)o->exec_us;
  v->bus_n += bus;
  if (bus)
    v->log_bus_gbs += log(o->busbw_gbs);
  return 0;
}

/*
 * Adds all operations since the line before, including those that sampling leaves without a record. They are
 * in no histogram.
 */
static int add_rollup(struct ni_rows *r, const struct ni_line *l) {
  const struct ni_rows_seen *w = find_or_add_who(r, &l->ident);
  int e = 0;
  struct ni_live_counts *c = find_or_add_counts(r, &w->who, w->hash, l->rollup.func, 0, &e);
  if (c) {
    add_saturated(&c->rolled, l->rollup.count);
    add_saturated(&c->rolled_bytes, l->rollup.sum_bytes);
  }
  return e;
}

static int count_op(struct ni_rows *r, const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  struct ni_rows_seen *w = find_or_add_who(r, &l->ident);
  enum ni_func func = ni_func_from_name(o->func);
  bool timed = (o->timing == NI_TIMING_KERNEL_GPU || o->timing == NI_TIMING_KERNEL_CPU) &&
      ni_implausible(o) == NI_PLAUSIBLE;
  bool bus = timed && (o->has & NI_HAS_BUSBW) && o->busbw_gbs > 0;
  uint64_t bytes = o->has & NI_HAS_TESTS_SIZE ? o->tests_bytes : o->msg_bytes, ns = ni_exec_ns(o);
  uint32_t size_class = NI_LIVE_SIZES - 1, i;
  while (size_class && bytes < ni_live_size_from[size_class])
    size_class--;
  int e = 0;
  uint32_t *row = func == NI_FUNC_OTHER ? NULL : &w->row[func][size_class];
  struct ni_live_counts *c =
      row && *row ? &r->b.counts[*row - 1] : find_or_add_counts(r, &w->who, w->hash, o->func, size_class, &e);
  if (!c)
    return e;
  if (row)
    *row = (uint32_t)(c - r->b.counts) + 1;
  c->n++;
  add_saturated(&c->bytes, o->msg_bytes);
  if (timed) {
    for (i = 0; i < NI_LIVE_TOOK && ns > ni_live_took_ns[i]; i++) {}
    c->timed++;
    c->took[i]++;
    add_saturated(&c->ns, ns);
  }
  if (bus) {
    for (i = 0; i < NI_LIVE_BUS && o->busbw_gbs * 1e9 > (double)ni_live_bus_bytes_s[i]; i++) {}
    c->bus_n++;
    c->bus[i]++;
    c->bus_sum += o->busbw_gbs * 1e9;
    add_saturated(&c->bus_ns, ns);
    add_saturated(&c->bus_bytes, (uint64_t)llround(o->busbw_gbs * (double)ns));
  }
  if (r->nvidia && (e = add_nvidia(r, w, l, o->msg_bytes, bus)) < 0)
    return e;
  struct last_one one;
  if (l->is_p2p || o->src != NI_SRC_EVENT || !(o->has & NI_HAS_ENQUEUE))
    return 0;
  if (!note_arrival(r->late, l->ident.comm_hash, l->ident.rank, &w->who, func, o->sn, size_class,
                    o->enqueue_ns, &one))
    return 0;
  c = find_or_add_counts(r, &one.who, hash_who(&one.who), ni_func_table[one.func].name, one.size_class, &e);
  if (c) {
    c->late_n++;
    add_saturated(&c->late_ns, one.ns);
  }
  return e;
}

/* begins: it is a comm line. For a life only the newest numbers are needed. */
static int add_account(struct ni_rows *r, const struct ni_line *l, bool begins) {
  struct ni_live_account *at = NULL,
                         a = {.who = find_or_add_who(r, &l->ident)->who,
                              .hash = l->ident.comm_hash,
                              .comm_rank = l->ident.rank,
                              .begins = begins};
  for (int k = 0; !begins && k < NI_KIND_COUNT; k++) {
    const struct ni_kind_stats *s = &l->stats.kind[k];
    add_saturated(&a.started, s->started);
    add_saturated(&a.written, s->written);
    add_saturated(&a.incomplete, s->incomplete);
    add_saturated(&a.in_flight, s->in_flight);
    for (int i = 0; i < NI_FILTER_COUNT; i++)
      add_saturated(&a.filtered[i], ni_by_count(&s->filtered_by, ni_filter_names[i]));
    for (int i = 0; i < NI_DROP_COUNT; i++)
      add_saturated(&a.dropped[i], ni_by_count(&s->dropped_by, ni_drop_names[i]));
  }
  for (uint32_t i = r->b.n_accounts; !begins && !at && i-- > 0;)
    if (r->b.accounts[i].hash == a.hash && r->b.accounts[i].comm_rank == a.comm_rank) {
      if (r->b.accounts[i].begins)
        break;
      at = &r->b.accounts[i];
    }
  if (!at && r->b.n_accounts == NI_LIVE_KEYS_MAX) {
    r->b.totals.keys_left_out++;
    return 0;
  }
  if (!at && !ni_array_room(r->b.accounts, r->b.n_accounts, r->cap_accounts))
    return -ENOMEM;
  if (!at)
    at = &r->b.accounts[r->b.n_accounts++];
  *at = a;
  return 0;
}

static int add_comm(struct ni_rows *r, const struct ni_line *l) {
  const struct ni_comm_line *c = &l->comm;
  int e = ni_rows_comm(r, r->b.file.pid, r->b.file.start_ns, l->ident.comm_hash, l->ident.rank, c->gpu_index,
                       c->gpu_pci, NULL);
  memset(r->seen, 0, sizeof r->seen);
  (void)note_arrival(r->late, l->ident.comm_hash, l->ident.rank, &find_or_add_who(r, &l->ident)->who,
                     NI_FUNC_OTHER, 0, 0, 0, NULL);
  return e < 0 ? e : add_account(r, l, true);
}

static void add_process(struct ni_rows *r, const struct ni_line *l) {
  struct ni_live_file *f = &r->b.file;
  f->pid = l->meta.pid < 0 ? 0 : l->meta.pid;
  f->start_ns = l->process.start_ns;
  f->rank = l->process.rank < 0 ? -1 : l->process.rank;
  ni_rows_job(&l->process, f->job, f->attempt);
  memset(r->seen, 0, sizeof r->seen);
}

int ni_rows_add_marker(void *arg, char *text, size_t len) {
  int e;
  (void)ni_scan_text(((struct ni_rows *)arg)->scan, text, len, &e);
  return e;
}

int ni_rows_add_line(void *arg, char *text, size_t len) {
  struct ni_rows *r = arg;
  int e;
  const struct ni_line *l = ni_scan_text(r->scan, text, len, &e);
  if (!l)
    return e < 0 ? e : strspn(text, " \t\r") < len;
  bool of_comm = l->ident.comm_hash && l->ident.rank >= 0;
  switch (l->kind) {
    case NI_LINE_PROCESS:
      add_process(r, l);
      return 0;
    case NI_LINE_OP:
      return count_op(r, l);
    case NI_LINE_ROLLUP:
      return of_comm ? add_rollup(r, l) : 0;
    case NI_LINE_COMM:
      return of_comm ? add_comm(r, l) : 0;
    case NI_LINE_DUMP_STATS:
      if (!of_comm && l->stats.final)
        r->b.file.ended = true;
      return of_comm && l->stats.has_accounting ? add_account(r, l, false) : 0;
    default:
      return 0;
  }
}
