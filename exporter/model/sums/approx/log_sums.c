#include "log_sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/threads.h"
#include "exporter/model/ledger/implausible.h"
#include "exporter/model/sums/reading/read.h"
#include "exporter/model/sums/reading/tables.h"

/* of a row: squares of the largest values still fit into 128 bits */
#define RECORDS_MAX (UINT64_C(1) << 34)
#define TIME_MAX (INT64_MAX / 4) /* us; a difference of two fits */
#define BUSBW_MAX ((uint64_t)(NI_MAX_BUSBW_GBS * 1e9))

/* ---- a row --------------------------------------------------------------------------------------------- */

/* What a row is about. Texts are of the run's names; loaded without a run they are not kept. */
struct head {
  const char *host, *func;
  int64_t pid;
  uint64_t hash, msg_bytes;
  int32_t n_ranks, rank;
  uint32_t type, kind, timing;
};

struct body {
  uint64_t records, no_bandwidth;
  int64_t first_us, last_us;
  struct ni_dist us, busbw;
  uint64_t mix[NI_MIX_MAX + 1]; /* by the run's codes */
};

/* A text that is looked at, and kept where there is a run. */
static void wire_name(struct ni_wire *w, struct ni_run *r, const char **text) {
  char *looked_at = NULL;
  if (r) {
    ni_wire_kept(w, &r->names, text);
    return;
  }
  ni_wire_text(w, &looked_at);
  w->bad |= !looked_at;
  free(looked_at);
}

/* Rows of one rank follow each other: before has it. */
static void wire_head(struct ni_wire *w, struct ni_run *r, struct head *h, struct head *before) {
  bool same = before->n_ranks && h->pid == before->pid && h->hash == before->hash &&
      NI_BY(h, before, n_ranks, rank) == 0 && strcmp(h->host, before->host) == 0;
  ni_wire_bool(w, &same);
  if (w->load && same)
    *h = *before;
  if (!same) {
    wire_name(w, r, &h->host);
    NI_WIRE(w, &h->pid, &h->hash, &h->n_ranks, &h->rank);
  }
  ni_wire_below(w, &h->type, NI_TYPE_COUNT);
  ni_wire_below(w, &h->kind, NI_KIND_COUNT);
  wire_name(w, r, &h->func);
  ni_wire_u64(w, &h->msg_bytes);
  ni_wire_below(w, &h->timing, NI_TIMING_COUNT);
  w->bad |= h->n_ranks < 1 || h->rank < 0 || (r && (!h->host || !h->func));
  *before = *h;
}

static void wire_mixes(struct ni_wire *w, struct ni_run *r, uint64_t *mix, uint64_t *records) {
  uint32_t n = 0;
  uint64_t all = 0;
  for (unsigned i = 0; !w->load && i <= NI_MIX_MAX; i++)
    n += mix[i] > 0;
  ni_wire_u32(w, &n);
  w->bad |= n > NI_MIX_MAX + 1;
  for (unsigned i = 0, k = 0; k < n && !w->bad; k++, i++) {
    while (!w->load && !mix[i])
      i++;
    const char *algo = w->load ? NULL : ni_name_text(&r->names, r->mix[i].algo),
               *proto = w->load ? NULL : ni_name_text(&r->names, r->mix[i].proto);
    uint64_t count = w->load ? 0 : mix[i];
    uint32_t a = 0, p = 0;
    uint8_t code = 0;
    wire_name(w, r, &algo);
    wire_name(w, r, &proto);
    ni_wire_u64(w, &count);
    all += count;
    if (!w->load || !r || w->bad)
      continue;
    if (ni_name(&r->names, NULL, algo, &a) < 0 || ni_name(&r->names, NULL, proto, &p) < 0 ||
        ni_find_or_add_mix(r, a, p, &code) < 0)
      w->bad = true;
    else
      mix[code] += count;
  }
  w->bad |= all != *records;
}

/* A distribution that records can have made: none above `most`. */
static bool sound(const struct ni_dist *d, uint64_t n, uint64_t most) {
  uint64_t count = 0, before = 0;
  if (d->n != n || n == 0)
    return d->n == n;
  if (d->min > d->max || d->max > most || n > RECORDS_MAX || (!d->coarse && d->n_slots > NI_LOG_SUMS_EXACT))
    return false;
  for (size_t i = 0; i < d->n_slots; before = d->slot[i++].value) {
    if (d->slot[i].value > d->max || (i ? d->slot[i].value <= before : d->slot[i].value != d->min) ||
        d->slot[i].count > n)
      return false;
    count += d->slot[i].count;
  }
  for (unsigned p = 0; d->coarse && p < 64; p++)
    for (unsigned i = 0; d->step[p] && i < NI_DIST_STEPS; i++) {
      if (d->step[p][i] > n)
        return false;
      count += d->step[p][i];
    }
  const unsigned __int128 wide = d->max - d->min;
  return count == n && d->sum >= 0 && (unsigned __int128)d->sum <= wide * n && d->square <= wide * wide * n;
}

/* 0; -EINVAL: no records have made it; -ENOMEM. */
static int wire_body(struct ni_wire *w, struct ni_run *r, struct body *b) {
  NI_WIRE(w, &b->records, &b->no_bandwidth, &b->first_us, &b->last_us);
  wire_mixes(w, r, b->mix, &b->records);
  int e = ni_dist_wire(w, &b->us);
  if (e == 0)
    e = ni_dist_wire(w, &b->busbw);
  if (e < 0 || !w->load)
    return e;
  const bool times = b->first_us >= 0 && b->first_us <= b->last_us && b->last_us <= TIME_MAX;
  const bool counts = b->records > 0 && b->no_bandwidth <= b->records;
  if (w->bad || !times || !counts || !sound(&b->us, b->records, NI_MAX_EXEC_NS))
    return -EINVAL;
  return sound(&b->busbw, b->records - b->no_bandwidth, BUSBW_MAX) ? 0 : -EINVAL;
}

static void body_begin(struct body *b) {
  *b = (struct body){.us.limit = NI_LOG_SUMS_EXACT, .busbw.limit = NI_LOG_SUMS_EXACT};
}

static void body_free(struct body *b) {
  ni_dist_free(&b->us);
  ni_dist_free(&b->busbw);
}

static int body_add(struct body *b, const struct ni_entry *e) {
  const int64_t us = e->start_ns != NI_NO_START ? e->start_ns / 1000 : (int64_t)e->dump_us;
  if (!b->records || us < b->first_us)
    b->first_us = us;
  if (!b->records || us > b->last_us)
    b->last_us = us;
  b->records++;
  b->mix[e->mix]++;
  b->no_bandwidth += e->bytes_per_s == NI_NO_BW;
  int bad = ni_dist_add(&b->us, e->exec_ns);
  return bad < 0 || e->bytes_per_s == NI_NO_BW ? bad : ni_dist_add(&b->busbw, e->bytes_per_s);
}

/* ---- a log --------------------------------------------------------------------------------------------- */

/* What of a run's tally comes from the records of a log that were plausible. */
static void wire_tally(struct ni_wire *w, struct ni_tally_sum *t) {
  NI_WIRE(w, &t->no_bandwidth, &t->first_us, &t->last_us, &t->any, &t->no_start);
  if (w->load)
    w->bad |= t->first_us < 0 || t->first_us > t->last_us || t->last_us > TIME_MAX;
}

/* The next row: its head, and where its body lies. */
static struct ni_wire next_row(struct ni_wire *w, struct ni_run *r, struct head *h, struct head *before) {
  size_t n = 0;
  *h = (struct head){0};
  wire_head(w, r, h, before);
  ni_wire_count(w, &n, 1);
  const uint8_t *at = ni_wire_bytes(w, NULL, n);
  return ni_wire_load(at ? at : w->end, at ? n : 0);
}

bool ni_log_sums_sound(const uint8_t *bytes, size_t n, uint64_t records) {
  struct ni_wire w = ni_wire_load(bytes, n);
  struct ni_tally_sum t = {0};
  struct head before = {0}, h;
  uint64_t counted = 0;
  wire_tally(&w, &t);
  bool fine = true;
  while (fine && !w.bad && w.at < w.end) {
    struct ni_wire packed = next_row(&w, NULL, &h, &before);
    struct body b;
    body_begin(&b);
    fine = !w.bad && wire_body(&packed, NULL, &b) == 0 && ni_wire_over(&packed) &&
        b.records <= records - counted;
    counted += b.records;
    body_free(&b);
  }
  return fine && ni_wire_over(&w) && t.any == (counted > 0) && t.no_bandwidth <= counted;
}

/* A row of a log in the index or, with a piece, records that were read now. */
struct item {
  struct head h;
  struct ni_wire packed;
  struct ni_piece *piece;
};
struct items {
  struct item *item;
  size_t n, cap;
};

static int by_head(const void *a, const void *b) {
  const struct head *x = a, *y = b;
  int k = strcmp(x->host, y->host);
  if (k == 0)
    k = NI_BY(x, y, pid, hash, n_ranks, rank);
  if (k == 0)
    k = NI_BY(x, y, type, kind, msg_bytes);
  return k ? k : strcmp(x->func, y->func);
}

static int by_item(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  int k = by_head(x, y);
  if (k == 0)
    k = (x->piece != NULL) - (y->piece != NULL);
  if (k == 0 && !x->piece)
    k = NI_BY(&x->h, &y->h, timing);
  return k || !x->piece ? k : NI_BY(x->piece, y->piece, range, ordinal);
}

static int add_item(struct items *l, const struct item *x) {
  if (!ni_array_room(l->item, l->n, l->cap))
    return -ENOMEM;
  l->item[l->n++] = *x;
  return 0;
}

struct making {
  struct ni_run *r;
  struct items *of_file;
  atomic_uint next; /* file; relaxed: a ticket */
};

/* Records of a piece, which is used up, by timing source. */
static int add_piece(struct ni_run *r, struct ni_piece *p, struct body *b, struct ni_tally_sum *t) {
  struct ni_segment_reader reader;
  struct ni_entry x;
  int e;
  ni_segment_read(&reader, &p->s, &r->store);
  while ((e = ni_segment_next(&reader, &x)) > 0) {
    if ((e = body_add(&b[x.timing], &x)) < 0)
      break;
    const int64_t end_us =
        x.start_ns != NI_NO_START ? (x.start_ns + (int64_t)x.exec_ns) / 1000 : (int64_t)x.dump_us;
    if (end_us > t->last_us)
      t->last_us = end_us;
    t->no_start |= x.start_ns == NI_NO_START;
  }
  ni_segment_read_end(&reader);
  return e;
}

/* Added, not put: a log's index may have a row twice, whoever wrote it. */
static int add_packed(struct ni_run *r, struct item *x, struct body *to) {
  struct body b;
  body_begin(&b);
  int e = wire_body(&x->packed, r, &b);
  if (!to->records || b.first_us < to->first_us)
    to->first_us = b.first_us;
  if (!to->records || b.last_us > to->last_us)
    to->last_us = b.last_us;
  to->records += b.records;
  to->no_bandwidth += b.no_bandwidth;
  for (unsigned i = 0; i <= NI_MIX_MAX; i++)
    to->mix[i] += b.mix[i];
  if (e == 0)
    e = ni_dist_merge(&to->us, &b.us);
  if (e == 0)
    e = ni_dist_merge(&to->busbw, &b.busbw);
  body_free(&b);
  return e;
}

/* Rows of one rank, function and size: whatever there is of them becomes one for each timing source. */
static int store_rows(struct ni_run *r, struct items *l, size_t from, size_t to, struct ni_tally_sum *t,
                      struct ni_wire *w, struct head *before) {
  struct body *b = calloc(NI_TIMING_COUNT, sizeof *b);
  int e = b ? 0 : -ENOMEM;
  for (unsigned k = 0; b && k < NI_TIMING_COUNT; k++)
    body_begin(&b[k]);
  for (size_t i = from; e == 0 && i < to; i++) {
    struct item *x = &l->item[i];
    e = x->piece ? add_piece(r, x->piece, b, t) : add_packed(r, x, &b[x->h.timing]);
  }
  for (unsigned k = 0; e == 0 && k < NI_TIMING_COUNT; k++) {
    struct ni_wire packed = {0};
    if (!b[k].records)
      continue;
    if (!t->any || b[k].first_us < t->first_us)
      t->first_us = b[k].first_us;
    t->any = true;
    t->no_bandwidth += b[k].no_bandwidth;
    struct head h = l->item[from].h;
    h.timing = k;
    wire_head(w, r, &h, before);
    e = wire_body(&packed, r, &b[k]);
    ni_wire_count(w, &packed.n, 1);
    ni_wire_bytes(w, packed.bytes, packed.n);
    w->bad |= packed.bad;
    ni_wire_free(&packed);
  }
  for (unsigned k = 0; b && k < NI_TIMING_COUNT; k++)
    body_free(&b[k]);
  free(b);
  return e;
}

/* Everything that there is of a log, into its rows and into the index. */
static int make_log(struct ni_run *r, struct items *l, uint32_t file, struct ni_tally_sum known) {
  struct ni_log_sums *out = &r->log_sums[file];
  struct ni_tally_sum t = {.last_us = known.last_us, .no_start = known.no_start};
  struct ni_wire rows = {0};
  struct head before = {0};
  int e = 0;
  if (l->n)
    qsort(l->item, l->n, sizeof *l->item, by_item);
  for (size_t from = 0, to; e == 0 && from < l->n; from = to) {
    for (to = from + 1; to < l->n && by_head(&l->item[from], &l->item[to]) == 0; to++)
      continue;
    e = store_rows(r, l, from, to, &t, &rows, &before);
  }
  wire_tally(&out->own, &t);
  ni_wire_bytes(&out->own, rows.bytes, rows.n);
  if (e == 0 && (rows.bad || out->own.bad))
    e = -ENOMEM;
  ni_wire_free(&rows);
  out->at = out->own.bytes;
  out->n = out->own.n;
  if (e == 0)
    ni_atlas_learn_sums(r->atlas, file, &out->own);
  return e;
}

/* What the index has of the log: its tally, and its rows where more is added to them. */
static int take_known(struct ni_run *r, struct items *l, uint32_t file, struct ni_tally_sum *t) {
  struct ni_log_sums *s = &r->log_sums[file];
  struct ni_wire w = ni_wire_load(s->at, s->n);
  struct head before = {0};
  int e = 0;
  wire_tally(&w, t);
  while (l && e == 0 && !w.bad && w.at < w.end) {
    struct item x = {0};
    x.packed = next_row(&w, r, &x.h, &before);
    e = w.bad ? -ENOMEM : add_item(l, &x);
  }
  return e;
}

static void *make_logs(void *arg) {
  struct making *m = arg;
  struct ni_run *r = m->r;
  int e = 0;
  for (uint32_t i; e == 0 && !ni_run_stopped(r) &&
       (i = atomic_fetch_add_explicit(&m->next, 1, memory_order_relaxed)) < r->files.n;) {
    struct items *l = &m->of_file[i];
    struct ni_tally_sum known = {0};
    r->log_sums[i].at = ni_atlas_sums(r->atlas, i, &r->log_sums[i].n);
    const bool all_known = r->log_sums[i].at && r->plan.of_file[i].n == 1;
    if (r->log_sums[i].at)
      e = take_known(r, all_known ? NULL : l, i, &known);
    /* of what was not read now; reading has added the rest */
    if (r->log_sums[i].at)
      ni_tally_sum_add(r, &known);
    if (e == 0 && !all_known)
      e = make_log(r, l, i, known);
    free(l->item);
  }
  if (e < 0)
    ni_run_fail(r, e, "sums of logs: %s", strerror(-e));
  return NULL;
}

static struct head head_of(const struct ni_run *r, const struct ni_sum_cell *c, uint32_t member) {
  const struct ni_who_member *m = &r->who.member[member];
  const struct ni_who_process *p = &r->who.process[m->process];
  return (struct head){.host = p->host,
                       .func = ni_name_text(&r->names, c->func),
                       .pid = p->pid,
                       .hash = m->hash,
                       .msg_bytes = c->msg_bytes,
                       .n_ranks = m->n_ranks,
                       .rank = m->rank,
                       .type = c->type,
                       .kind = c->kind};
}

/* A row to its cell. */
static int place_row(struct ni_run *r, uint32_t file, const struct head *h, struct ni_wire packed) {
  struct ni_sum_cell key = {.type = (uint8_t)h->type, .kind = (uint8_t)h->kind, .msg_bytes = h->msg_bytes};
  const struct ni_ident id = {.comm_hash = h->hash, .rank = h->rank, .n_ranks = h->n_ranks, .nnodes = -1};
  struct ni_log_row row = {
      .timing = (uint8_t)h->timing, .at = packed.at, .n = (size_t)(packed.end - packed.at)};
  uint32_t host, process, cell;
  uint64_t records = 0;
  int e = ni_name(&r->names, NULL, h->host, &host);
  if (e == 0)
    e = ni_name(&r->names, NULL, h->func, &key.func);
  if (e == 0)
    e = ni_find_or_add_process(r, host, h->pid, r->files.file[file].head.start_ns, file, &process);
  if (e == 0)
    e = ni_find_or_add_member(r, process, r->files.file[file].run, &id, &row.member);
  if (e == 0)
    e = ni_find_or_add_cell(r, &key, &cell);
  if (e < 0)
    return e;
  struct ni_sum_cell *c = &r->cell[cell];
  if (!ni_array_room(c->row, c->n_rows, c->cap_rows))
    return -ENOMEM;
  c->row[c->n_rows++] = row;
  ni_wire_u64(&packed, &records);
  c->records += records;
  return 0;
}

static int place_rows(struct ni_run *r, uint32_t file) {
  const struct ni_log_sums *s = &r->log_sums[file];
  struct ni_wire w = ni_wire_load(s->at, s->n);
  struct ni_tally_sum t = {0};
  struct head before = {0}, h;
  int e = 0;
  wire_tally(&w, &t);
  while (e == 0 && !w.bad && w.at < w.end) {
    const struct ni_wire packed = next_row(&w, r, &h, &before);
    e = w.bad ? -ENOMEM : place_row(r, file, &h, packed);
  }
  return e;
}

int ni_log_sums_all(struct ni_run *r) {
  struct making m = {.r = r, .of_file = calloc(r->files.n + 1, sizeof *m.of_file)};
  int e = m.of_file && (r->log_sums = calloc(r->files.n + 1, sizeof *r->log_sums)) ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < r->n_cells; i++)
    for (size_t k = 0; e == 0 && k < r->cell[i].n; k++) {
      struct ni_piece *p = r->cell[i].piece[k];
      e = add_item(&m.of_file[p->file], &(struct item){.h = head_of(r, &r->cell[i], p->member), .piece = p});
    }
  if (e == 0) {
    (void)ni_threads(r->opt.jobs, make_logs, &m, 0);
    e = r->stop && *r->stop ? -EINTR : atomic_load_explicit(&r->error, memory_order_relaxed);
  }
  free(m.of_file);
  for (uint32_t i = 0; i < r->n_cells; i++)
    ni_cell_drop(r, &r->cell[i]);
  for (uint32_t i = 0; e == 0 && i < r->files.n; i++)
    e = place_rows(r, i);
  r->tally.filtered = 0; /* what the index has is not left out */
  return e;
}

void ni_log_sums_free(struct ni_run *r) {
  for (size_t i = 0; r->log_sums && i < r->files.n; i++)
    ni_wire_free(&r->log_sums[i].own);
  for (uint32_t i = 0; i < r->n_cells; i++)
    free(r->cell[i].row);
  free(r->log_sums);
}

/* ---- a cell -------------------------------------------------------------------------------------------- */

static int add_values(struct ni_value_sums *to, struct body *b) {
  if (!to)
    return -ENOMEM;
  int e = ni_dist_merge(&to->us, &b->us);
  return e < 0 ? e : ni_dist_merge(&to->busbw, &b->busbw);
}

static int add_row(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_log_row *row, struct body *b) {
  const struct ni_who_member *m = &c->r->who.member[row->member];
  const uint32_t comm = c->r->comm_at[m->comm], process = c->r->process_at[m->process];
  struct ni_group_sums *g = ni_group_of(c, row->timing);
  if (!g)
    return -ENOMEM;
  const struct ni_comm_sums times = {.any = true,
                                     .first_us = b->first_us,
                                     .last_us = b->last_us,
                                     .records = b->records,
                                     .first_ns = INT64_MAX,
                                     .last_ns = INT64_MIN};
  g->records += b->records;
  g->no_bandwidth += b->no_bandwidth;
  for (unsigned i = 0; i <= NI_MIX_MAX; i++)
    g->mix[i] += b->mix[i];
  t->process[process].records += b->records;
  t->process[process].exec_ns += b->us.n * b->us.first + (uint64_t)b->us.sum;
  ni_comm_sums_add(&t->comm[comm], &times);
  t->records += b->records;
  c->records += b->records;
  int e = ni_dist_merge(&g->us, &b->us);
  if (e == 0)
    e = ni_dist_merge(&g->busbw, &b->busbw);
  if (e == 0 && g->comm)
    e = add_values(ni_slice_of(&g->comm[comm]), b);
  return e == 0 && g->process ? add_values(ni_slice_of(&g->process[process]), b) : e;
}

int ni_log_sums_cell(struct ni_cell_sums *c, struct ni_sums *t, struct ni_sum_cell *cell) {
  struct body *b = malloc(sizeof *b);
  int e = b ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < cell->n_rows; i++) {
    struct ni_wire w = ni_wire_load(cell->row[i].at, cell->row[i].n);
    body_begin(b);
    e = wire_body(&w, c->r, b);
    if (e == 0)
      e = add_row(c, t, &cell->row[i], b);
    body_free(b);
  }
  free(b);
  return e;
}
