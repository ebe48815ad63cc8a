#include "batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of batches that may wait for their turn, all files together: a share of --memory. */
#define WAITING_SHARE 8

struct write_queue {
  struct ni_batch *first, **end;
  bool done;
};

struct ni_parquet_file {
  pthread_mutex_t lock;
  pthread_cond_t turn;
  struct ni_pq *w;           /* NULL: no Parquet wanted */
  int next;                  /* the range whose rows come now */
  struct write_queue *queue; /* per range */
};

/* In the order of the file. */
enum column_id {
  ID,
  NAME,
  RANK,
  N_RANKS,
  NNODES,
  TYPE,
  FUNC,
  SN,
  MSG,
  EXEC_US,
  TIMING,
  ALGOBW,
  BUSBW,
  VERSION,
  GIT_REV,
  MECHANISM,
  DUMP,
  HOST,
  PID,
  ALGO,
  PROTO,
  DATATYPE,
  ROOT,
  NCHANNELS,
  EXEC_NS,
  ENQUEUE,
  DELTA,
  REC_SN,
  TESTS,
  PRODUCER,
  KIND,
  USER_TAG,
  NCCL_TAG,
  SYMMETRIC,
  KERNEL,
  SHARED,
  INITIAL_SYNC,
  COMPUTE,
  FINAL_SYNC,
  PREV_REPLAY,
  N_COLUMNS
};

enum where { OF_CONTEXT, OF_CONTEXT_OR_NULL, OF_ROW, OF_ROW_OR_NULL }; /* which says where a value stands */

static const struct batch_column {
  const char *name;
  enum ni_pq_type type;
  enum where where;
  size_t values, valid; /* of a row: where in the batch */
  bool ours, rare;
} columns[N_COLUMNS] = {
#define ROW(name) OF_ROW, offsetof(struct ni_batch, name), 0
#define ROW_OR_NULL(name) \
  OF_ROW_OR_NULL, offsetof(struct ni_batch, name), offsetof(struct ni_batch, has_##name)
    [ID] = {"id", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [NAME] = {"comm_name", NI_PQ_STRING, OF_CONTEXT_OR_NULL, 0, 0, false},
    [RANK] = {"rank", NI_PQ_INT64, OF_CONTEXT, 0, 0, false},
    [N_RANKS] = {"n_ranks", NI_PQ_INT64, OF_CONTEXT, 0, 0, false},
    [NNODES] = {"nnodes", NI_PQ_INT64, OF_CONTEXT, 0, 0, false},
    [TYPE] = {"comm_type", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [FUNC] = {"coll", NI_PQ_STRING, ROW(func), false},
    [SN] = {"coll_sn", NI_PQ_INT64, ROW(sn), false},
    [MSG] = {"coll_msg_size_bytes", NI_PQ_INT64, ROW(msg_bytes), false},
    [EXEC_US] = {"coll_exec_time_us", NI_PQ_INT64, ROW(exec_us), false},
    [TIMING] = {"coll_timing_source", NI_PQ_STRING, ROW_OR_NULL(timing), false},
    [ALGOBW] = {"coll_algobw_gbs", NI_PQ_DOUBLE, ROW_OR_NULL(algobw), false},
    [BUSBW] = {"coll_busbw_gbs", NI_PQ_DOUBLE, ROW_OR_NULL(busbw), false},
    [VERSION] = {"inspector_output_format_version", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [GIT_REV] = {"git_rev", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [MECHANISM] = {"rec_mechanism", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [DUMP] = {"dump_timestamp_us", NI_PQ_INT64, ROW(dump_us), false},
    [HOST] = {"hostname", NI_PQ_STRING, OF_CONTEXT, 0, 0, false},
    [PID] = {"pid", NI_PQ_INT64, OF_CONTEXT, 0, 0, false},
    [ALGO] = {"coll_algo", NI_PQ_STRING, ROW_OR_NULL(algo), true},
    [PROTO] = {"coll_proto", NI_PQ_STRING, ROW_OR_NULL(proto), true},
    [DATATYPE] = {"coll_datatype", NI_PQ_STRING, ROW_OR_NULL(datatype), true},
    [ROOT] = {"coll_root", NI_PQ_INT64, ROW_OR_NULL(root), true},
    [NCHANNELS] = {"coll_nchannels", NI_PQ_INT64, ROW_OR_NULL(nchannels), true},
    [EXEC_NS] = {"coll_exec_time_ns", NI_PQ_INT64, ROW_OR_NULL(exec_ns), true},
    [ENQUEUE] = {"coll_enqueue_ns", NI_PQ_INT64, ROW_OR_NULL(enqueue_ns), true},
    [DELTA] = {"coll_gpu_start_delta_ns", NI_PQ_INT64, ROW_OR_NULL(gpu_delta_ns), true},
    [REC_SN] = {"rec_sn", NI_PQ_INT64, ROW_OR_NULL(rec_sn), true},
    [TESTS] = {"nccl_tests_size_bytes", NI_PQ_INT64, ROW_OR_NULL(tests_bytes), true},
    [PRODUCER] = {"producer", NI_PQ_STRING, OF_CONTEXT_OR_NULL, 0, 0, true},
    [KIND] = {"kind", NI_PQ_STRING, ROW(kind), true},
    [USER_TAG] = {"user_tag", NI_PQ_INT64, ROW_OR_NULL(user_tag), true, true},
    [NCCL_TAG] = {"nccl_tag", NI_PQ_INT64, ROW_OR_NULL(nccl_tag), true, true},
    [SYMMETRIC] = {"symmetric", NI_PQ_INT64, ROW_OR_NULL(symmetric), true, true},
    [KERNEL] = {"coll_kernel", NI_PQ_STRING, ROW_OR_NULL(kernel), true, true},
    [SHARED] = {"shared_span", NI_PQ_INT64, ROW_OR_NULL(shared_span), true, true},
    [INITIAL_SYNC] = {"initial_sync_ns", NI_PQ_INT64, ROW_OR_NULL(initial_sync_ns), true, true},
    [COMPUTE] = {"compute_ns", NI_PQ_INT64, ROW_OR_NULL(compute_ns), true, true},
    [FINAL_SYNC] = {"final_sync_ns", NI_PQ_INT64, ROW_OR_NULL(final_sync_ns), true, true},
    [PREV_REPLAY] = {"prev_replay_ns", NI_PQ_INT64, ROW_OR_NULL(prev_replay_ns), true, true},
};

int ni_batch_words(struct ni_run *r, struct ni_batch_words *w) {
  int e = 0;
  for (int i = 0; e == 0 && i < NI_TIMING_COUNT; i++)
    e = ni_name(&r->names, NULL, ni_timing_names[i], &w->timing[i]);
  if (e == 0)
    e = ni_name(&r->names, NULL, "coll", &w->kind[NI_KIND_COLL]);
  if (e == 0)
    e = ni_name(&r->names, NULL, "p2p", &w->kind[NI_KIND_P2P]);
  return e;
}

/* Before the first row of a batch that has any of these: the n rows before it have none. */
static void clear_rare_before(struct ni_batch *b, uint32_t n) {
#define X(name) memset(b->has_##name, 0, n);
  NI_BATCH_RARE(X)
#undef X
}

void ni_batch_add(struct ni_batch *b, const struct ni_batch_words *w, const struct ni_record_row *row) {
  const struct ni_line *l = row->line;
  const struct ni_record *o = &l->op;
  uint32_t i = b->n++, has = o->has;
  if (i > 0 && row->context != b->context[0])
    b->mixed_contexts = true;
  b->context[i] = row->context;
/* a value that may be null */
#define MAY(name, v, there) b->name[i] = (v), b->has_##name[i] = (there)
  b->func[i] = row->func;
  b->kind[i] = w->kind[l->is_p2p];
  b->sn[i] = (int64_t)o->sn;
  b->msg_bytes[i] = (int64_t)o->msg_bytes;
  b->exec_us[i] = (int64_t)o->exec_us;
  b->dump_us[i] = (int64_t)l->meta.dump_timestamp_us;
  b->has_ours |= (has & ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW)) != 0;
  b->has_ours |= row->algo || row->proto || row->datatype || l->is_p2p;
  MAY(timing, w->timing[o->timing], o->timing != NI_TIMING_NONE);
  MAY(algobw, o->algobw_gbs, (has & NI_HAS_ALGOBW) != 0);
  MAY(busbw, o->busbw_gbs, (has & NI_HAS_BUSBW) != 0);
  MAY(algo, row->algo, row->algo != 0);
  MAY(proto, row->proto, row->proto != 0);
  MAY(datatype, row->datatype, row->datatype != 0);
  MAY(root, o->root, l->is_p2p || (has & NI_HAS_ROOT));
  MAY(nchannels, o->nchannels, (has & NI_HAS_NCHANNELS) != 0);
  MAY(exec_ns, (int64_t)o->exec_ns, (has & NI_HAS_EXEC_NS) != 0);
  MAY(enqueue_ns, (int64_t)o->enqueue_ns, (has & NI_HAS_ENQUEUE) != 0);
  MAY(gpu_delta_ns, o->gpu_start_delta_ns, (has & NI_HAS_GPU_DELTA) != 0);
  MAY(rec_sn, (int64_t)o->rec_sn, (has & NI_HAS_REC_SN) != 0);
  MAY(tests_bytes, (int64_t)o->tests_bytes, (has & NI_HAS_TESTS_SIZE) != 0);
  const bool rare =
      o->user_tag || o->nccl_tag || o->symmetric || (has & (NI_HAS_PHASES | NI_HAS_PREV_REPLAY));
  if (rare && !b->has_rare) {
    clear_rare_before(b, i);
    b->has_rare = true;
  }
  if (!b->has_rare)
    return;
  MAY(user_tag, (int64_t)o->user_tag, o->user_tag != 0);
  MAY(nccl_tag, (int64_t)o->nccl_tag, o->nccl_tag != 0);
  MAY(symmetric, o->symmetric, o->symmetric);
  MAY(kernel, row->kernel, row->kernel != 0);
  MAY(shared_span, o->shared_span, o->shared_span);
  MAY(initial_sync_ns, (int64_t)o->initial_sync_ns, (has & NI_HAS_PHASES) != 0);
  MAY(compute_ns, (int64_t)o->compute_ns, (has & NI_HAS_PHASES) != 0);
  MAY(final_sync_ns, (int64_t)o->final_sync_ns, (has & NI_HAS_PHASES) != 0);
  MAY(prev_replay_ns, (int64_t)o->prev_replay_ns, (has & NI_HAS_PREV_REPLAY) != 0);
#undef MAY
}

void ni_batch_clear(struct ni_batch *b) {
  b->n = 0;
  b->next = NULL;
  b->mixed_contexts = b->has_ours = b->has_rare = false;
}

/*
 * Ours come last; NVIDIA's exporter follows the order of keys, where algorithm and protocol stand behind the
 * function.
 */
static int column_at(const struct ni_run *r, int i) {
  if (!r->opt.compat || i <= FUNC || i > PROTO)
    return i;
  return i == FUNC + 1 ? ALGO : i == FUNC + 2 ? PROTO : i - 2;
}

static bool is_wanted(const struct ni_run *r, const struct ni_sum_file *f, int i) {
  if (!r->opt.compat)
    return true;
  if (i == NAME)
    return f->file->head.has_name;
  if (i == TIMING)
    return f->file->head.has_timing;
  if (i == ALGO || i == PROTO)
    return f->file->head.has_algo;
  return !columns[i].ours;
}

int ni_parquet_new(struct ni_sum_file *f) {
  struct ni_parquet_file *p = calloc(1, sizeof *p);
  if (!p)
    return -ENOMEM;
  f->out = p;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->turn, NULL);
  p->queue = calloc((size_t)f->n_ranges + 1, sizeof *p->queue);
  if (!p->queue)
    return -ENOMEM;
  for (int i = 0; i < f->n_ranges; i++)
    p->queue[i].end = &p->queue[i].first;
  return 0;
}

/* Opened with its first row: a log without records gives no file, as with the reference. */
static int open_writer(struct ni_run *r, struct ni_sum_file *f) {
  struct ni_pq_field field[N_COLUMNS];
  char path[4096], message[512];
  size_t n = 0;
  for (int k = 0, i; k < N_COLUMNS; k++)
    if (i = column_at(r, k), is_wanted(r, f, i))
      field[n++] = (struct ni_pq_field){columns[i].name, columns[i].type};
  snprintf(path, sizeof path, "%s/%s/%s.parquet", r->tmp_dir, f->folder ? f->folder : "parquet_files",
           f->parquet);
  struct ni_pq_options o = {.codec = (enum ni_pq_codec)r->opt.codec, .memory_bytes = 8u << 20};
  int e = ni_pq_create(&f->out->w, path, field, n, &o, message, sizeof message);
  return e < 0 ? ni_run_fail(r, e, "%s", message) : e;
}

/*
 * Texts and numbers that stand in the header: one for all rows, or gathered, with a byte for each that is no
 * null behind them. NULL: no memory. Caller frees.
 */
static void *context_column(const struct ni_run *r, const struct ni_batch *b, enum column_id id,
                            struct ni_pq_column *c) {
  uint32_t n = b->mixed_contexts ? b->n : 1;
  int64_t *number = malloc(n * (sizeof *number + 1));
  uint32_t *text = (uint32_t *)(void *)number;
  if (!number)
    return NULL;
  uint8_t *valid = (uint8_t *)(number + n);
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_context *x = &r->context[b->context[i]];
    const struct ni_who_member *m = &r->who.member[x->member];
    switch (id) {
      case ID:
        text[i] = r->comm[m->comm].id;
        break;
      case NAME:
        text[i] = x->text[NI_CTX_COMM_NAME];
        break;
      case TYPE:
        text[i] = (uint32_t)ni_comm_type_of(r, m->n_ranks, x->nnodes);
        break;
      case VERSION:
        text[i] = x->text[NI_CTX_VERSION];
        break;
      case GIT_REV:
        text[i] = x->text[NI_CTX_GIT_REV];
        break;
      case MECHANISM:
        text[i] = x->text[NI_CTX_MECHANISM];
        break;
      case HOST:
        text[i] = r->process[m->process].host;
        break;
      case PRODUCER:
        text[i] = x->text[NI_CTX_PRODUCER];
        break;
      case RANK:
        number[i] = m->rank;
        break;
      case N_RANKS:
        number[i] = m->n_ranks;
        break;
      case NNODES:
        number[i] = x->nnodes;
        break;
      default:
        number[i] = r->who.process[m->process].pid;
        break;
    }
    valid[i] = columns[id].where == OF_CONTEXT || text[i] != 0;
  }
  c->repeat = n == 1;
  c->valid = columns[id].where == OF_CONTEXT ? NULL : valid;
  c->values = number;
  return number;
}

/*
 * One call of the writer for each batch. Columns of the header are gathered into memory of the batch's own,
 * since all columns go at once; a batch of one context has one value in each.
 */
int ni_parquet_write(struct ni_run *r, struct ni_sum_file *f, const struct ni_batch *b) {
  static const uint8_t no[1] = {0};
  struct ni_parquet_file *p = f->out;
  struct ni_pq_column col[N_COLUMNS] = {0};
  struct ni_str types[NI_TYPE_COUNT];
  void *gathered[N_COLUMNS] = {0};
  int e = 0;
  if (b->n == 0)
    return 0;
  if (!p->w && (e = open_writer(r, f)) < 0)
    return e;
  for (int i = 0; i < NI_TYPE_COUNT; i++)
    types[i] = (struct ni_str){ni_comm_type_names[i], (uint32_t)strlen(ni_comm_type_names[i])};
  /* The tables grow while others read; pointers into them hold under the lock. */
  pthread_mutex_lock(&r->lock);
  struct ni_pq_dict type_dict = {types, NI_TYPE_COUNT, 2}, dict = {r->names.text, 0, 1};
  size_t n = 0;
  for (int k = 0, i; e == 0 && k < N_COLUMNS; k++) {
    i = column_at(r, k);
    if (!is_wanted(r, f, i))
      continue;
    struct ni_pq_column *c = &col[n++];
    const struct batch_column *from = &columns[i];
    if (from->type == NI_PQ_STRING)
      c->dict = i == TYPE ? &type_dict : &dict;
    if (from->where == OF_CONTEXT || from->where == OF_CONTEXT_OR_NULL) {
      if (!(gathered[i] = context_column(r, b, (enum column_id)i, c)))
        e = -ENOMEM;
      continue;
    }
    c->values = (const char *)b + from->values;
    if (from->where == OF_ROW_OR_NULL)
      c->valid = (const uint8_t *)b + from->valid;
    /* NVIDIA's lines have none of ours, most of ours none of the rare ones: nulls by the batch. */
    const bool has_none = (from->ours && !b->has_ours) || (from->rare && !b->has_rare);
    if (from->where == OF_ROW_OR_NULL && has_none) {
      c->repeat = true;
      c->valid = no;
    }
  }
  pthread_mutex_lock(&r->names.lock);
  dict.n = r->names.n;
  pthread_mutex_unlock(&r->names.lock);
  pthread_mutex_unlock(&r->lock);
  if (e == 0)
    e = ni_pq_append(p->w, col, b->n);
  if (e < 0)
    ni_run_fail(r, e, "%s", p->w && *ni_pq_error(p->w) ? ni_pq_error(p->w) : strerror(-e));
  for (int i = 0; i < N_COLUMNS; i++)
    free(gathered[i]);
  return e;
}

/* Writes what waits of range p->next. Called without the lock by whoever owns that range's turn. */
static int write_waiting(struct ni_run *r, struct ni_sum_file *f, int range) {
  struct ni_parquet_file *p = f->out;
  for (;;) {
    pthread_mutex_lock(&p->lock);
    struct ni_batch *b = p->queue[range].first;
    if (b) {
      p->queue[range].first = b->next;
      if (!b->next)
        p->queue[range].end = &p->queue[range].first;
    }
    pthread_mutex_unlock(&p->lock);
    if (!b)
      return 0;
    int e = ni_parquet_write(r, f, b);
    free(b);
    atomic_fetch_sub_explicit(&r->waiting_bytes, sizeof *b, memory_order_relaxed);
    if (e < 0)
      return e;
  }
}

int ni_parquet_append(struct ni_run *r, struct ni_sum_file *f, int range, struct ni_batch **batch) {
  struct ni_parquet_file *p = f->out;
  int e = 0;
  if (r->opt.no_parquet) {
    ni_batch_clear(*batch);
    return 0;
  }
  pthread_mutex_lock(&p->lock);
  while (p->next != range && !ni_run_stopped(r) &&
         atomic_load_explicit(&r->waiting_bytes, memory_order_relaxed) > r->opt.memory_bytes / WAITING_SHARE)
    pthread_cond_wait(&p->turn, &p->lock);
  if (p->next != range) {
    struct ni_batch *fresh = ni_run_stopped(r) ? NULL : malloc(sizeof *fresh);
    if (fresh) {
      (*batch)->next = NULL;
      *p->queue[range].end = *batch;
      p->queue[range].end = &(*batch)->next;
      atomic_fetch_add_explicit(&r->waiting_bytes, sizeof *fresh, memory_order_relaxed);
      *batch = fresh;
    } else {
      e = ni_run_stopped(r) ? -ECANCELED : -ENOMEM;
    }
    pthread_mutex_unlock(&p->lock);
    ni_batch_clear(*batch);
    return e;
  }
  pthread_mutex_unlock(&p->lock);
  e = write_waiting(r, f, range);
  if (e == 0)
    e = ni_parquet_write(r, f, *batch);
  ni_batch_clear(*batch);
  return e;
}

int ni_parquet_close(struct ni_run *r, struct ni_sum_file *f) {
  struct ni_parquet_file *p = f->out;
  int e = 0;
  if (p->w && (e = ni_pq_finish(p->w, NULL)) < 0)
    return ni_run_fail(r, e, "%s", ni_pq_error(p->w));
  p->w = NULL;
  ni_parquet_abort(f);
  return 0;
}

int ni_parquet_range_done(struct ni_run *r, struct ni_sum_file *f, int range) {
  struct ni_parquet_file *p = f->out;
  int e = 0;
  pthread_mutex_lock(&p->lock);
  p->queue[range].done = true;
  bool mine = p->next == range;
  pthread_mutex_unlock(&p->lock);
  /*
   * The one whose turn it is goes on through all ranges that are done; the next unfinished one finds its turn
   * itself.
   */
  while (mine && e == 0) {
    int now = p->next;
    e = write_waiting(r, f, now);
    pthread_mutex_lock(&p->lock);
    p->next = now + 1;
    mine = p->next < f->n_ranges && p->queue[p->next].done;
    pthread_cond_broadcast(&p->turn);
    pthread_mutex_unlock(&p->lock);
  }
  if (ni_run_stopped(r)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->turn);
    pthread_mutex_unlock(&p->lock);
  }
  if (atomic_fetch_sub_explicit(&f->left, 1, memory_order_acq_rel) == 1 && e == 0 && !ni_run_stopped(r))
    e = ni_parquet_close(r, f);
  return e;
}

void ni_parquet_abort(struct ni_sum_file *f) {
  struct ni_parquet_file *p = f->out;
  if (!p)
    return;
  f->out = NULL;
  ni_pq_abort(p->w);
  for (int i = 0; p->queue && i < f->n_ranges; i++)
    for (struct ni_batch *b = p->queue[i].first, *next; b; b = next) {
      next = b->next;
      free(b);
    }
  free(p->queue);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->turn);
  free(p);
}
