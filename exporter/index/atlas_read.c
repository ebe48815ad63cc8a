/*
 * What is read of a log that the index knows, and in which parts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "atlas.h"
#include "atlas_files.h"
#include "exporter/base/array.h"
#include "exporter/model/ledger/pack.h"
#include "exporter/model/ledger/take.h"
#include "map_wire.h"

/* of granules that follow each other: what a thread reads in one go */
#define PART_BYTES (2u << 20)

static struct ni_atlas_file *find_file(const struct ni_atlas *a, const struct ni_scan_part *p) {
  return &a->file[p->file_no];
}

bool ni_atlas_wants_context(const struct ni_atlas_wants *w, const struct ni_file *file,
                            const struct ni_ident *i, const struct ni_meta *m) {
  const int64_t of_job = ni_job_rank(&file->head, i->rank, i->n_ranks);
  bool comm = !w->comm->n || ni_words_have_comm(w->comm, i->comm_hash, i->comm_name);
  bool host = !w->host->n || ni_words_have(w->host, m->hostname),
       rank = ni_ranks_have_both(w->rank, w->job_rank, i->rank, of_job, comm && host);
  return comm && host && rank;
}

static bool overlaps_ranks(const struct ni_ranks *r, uint64_t low, uint64_t high) {
  if (!r->n)
    return true;
  int64_t from = low < INT64_MAX ? (int64_t)low : INT64_MAX,
          to = high < INT64_MAX ? (int64_t)high : INT64_MAX;
  for (size_t i = 0; i < r->n; i++)
    if (r->span[i].from <= to && r->span[i].to >= from)
      return true;
  return false;
}

/*
 * Of each sort: can a line of it be wanted? The filters are asked what they would have been asked had all
 * lines been read.
 */
static bool *find_wanted_sorts(const struct ni_granules *g, const struct ni_file *file,
                               const struct ni_atlas_wants *w) {
  bool *sort = calloc(g->n_sorts + 1, sizeof *sort), *context = calloc(g->n_contexts + 1, sizeof *context);
  for (size_t i = 0; sort && context && i < g->n_contexts; i++)
    context[i] = ni_atlas_wants_context(w, file, &g->context[i].ident, &g->context[i].meta);
  for (size_t i = 0; sort && context && i < g->n_sorts; i++) {
    const struct ni_granule_sort *s = &g->sort[i];
    if (!context[s->context] || s->kind >= NI_SORT_OTHER)
      continue;
    sort[i] = !w->coll->n || ni_words_have_func(w->coll, s->func);
    if (s->kind == NI_SORT_ROLLUP)
      sort[i] &= w->rollups;
    if (!sort[i] || s->kind != NI_SORT_OP || !w->sn->n)
      continue;
    bool is_touched = ni_ranks_have(w->sn, (int64_t)s->min_sn);
    is_touched |= ni_ranks_have(w->sn, (int64_t)s->max_sn);
    sort[i] = is_touched || overlaps_ranks(w->sn, s->min_sn, s->max_sn);
  }
  if (!context) {
    free(sort);
    sort = NULL;
  }
  free(context);
  return sort;
}

/*
 * The entry's sums are used, if they are sound. What lies behind them must be a granule, or a line and a
 * member that begin there.
 */
static int load_sums(struct ni_atlas_file *f, const struct ni_atlas_wants *w) {
  const struct ni_granules *g = f->map;
  const struct ni_shelf_part *p = &f->entry->sums;
  struct ni_wire bytes = ni_wire_load(p->bytes, p->n);
  uint64_t end = 0, unpacked = 0, most = g->records;
  size_t i = 0;
  NI_WIRE(&bytes, &end, &unpacked);
  while (i < g->n && g->item[i].at < end)
    i++;
  /* will be read */
  for (size_t k = i; k < g->n; k++)
    most -= most < g->item[k].records ? most : g->item[k].records;
  const bool border = end == (i < g->n ? g->item[i].at : g->end);
  /* No writer keeps more: so a forged entry takes no more memory than its log is large, some twenty times. */
  const bool is_too_large = unpacked > NI_SUMS_MAX || p->n > g->end / NI_SUMS_SHARE;
  if (bytes.bad || is_too_large || end > g->end)
    return 0;
  if ((g->entries && !border) || !ni_shelf_is_intact(p))
    return 0;
  uLongf n = unpacked;
  if (!(f->sums = malloc(n + 1)))
    return -ENOMEM;
  if (uncompress(f->sums, &n, bytes.at, (uLong)(bytes.end - bytes.at)) != Z_OK || n != unpacked ||
      !w->sums(f->sums, n, most)) {
    free(f->sums);
    f->sums = NULL;
    return 0;
  }
  f->n_sums = n;
  f->summed = end;
  return 0;
}

/*
 * With --sn alone by that: which of its numbers are there is told of all records, whatever their times and
 * sizes.
 */
static bool is_granule_wanted(const struct ni_granules *g, const struct ni_granule *x,
                              const struct ni_atlas_wants *w, const bool *sort, uint64_t from) {
  if (w->sums)
    return x->at + x->bytes > from;
  bool fits = overlaps_ranks(w->sn, x->min_sn, x->max_sn);
  if (!w->sn->n)
    fits = x->last_us >= w->since_us && x->first_us <= w->until_us &&
        overlaps_ranks(w->size, x->min_bytes, x->max_bytes);
  for (uint32_t i = 0; i < x->n_sorts; i++) {
    uint32_t s = g->list[x->first_sort + i];
    if (sort[s] && (g->sort[s].kind == NI_SORT_ROLLUP || fits))
      return true;
  }
  return false;
}

static int add_part(struct ni_scan_parts *out, size_t *cap, struct ni_range r) {
  size_t n = (size_t)out->n;
  if (!ni_array_room(out->at, n, *cap))
    return -ENOMEM;
  out->at[out->n++] = r;
  return 0;
}

bool ni_atlas_is_intact(const char *path, int *fd, const struct ni_granule *x) {
  uint32_t crc;
  if (*fd < 0)
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  return *fd >= 0 && ni_atlas_sum(*fd, x->at, x->bytes, &crc) == 0 && crc == x->crc;
}

/*
 * Adds the wanted granules, those that follow each other in one part. from: of sums. -ESTALE: their bytes are
 * not those of the index.
 */
static int add_granules(const struct ni_granules *g, const struct ni_file *file,
                        const struct ni_atlas_wants *w, uint64_t from, struct ni_scan_parts *out,
                        size_t *cap) {
  bool *sort = find_wanted_sorts(g, file, w);
  int fd = -1, e = sort ? 0 : -ENOMEM;
  for (size_t i = 0, to; e == 0 && i < g->n; i = to) {
    to = i + 1;
    if (!is_granule_wanted(g, &g->item[i], w, sort, from))
      continue;
    while (to < g->n && g->item[to].at - g->item[i].at < PART_BYTES &&
           is_granule_wanted(g, &g->item[to], w, sort, from))
      to++;
    struct ni_range r = ni_granules_range(g, i, to);
    for (size_t k = i; e == 0 && k < g->n && g->item[k].at < r.to; k++)
      if (!ni_atlas_is_intact(file->path, &fd, &g->item[k]))
        e = -ESTALE;
    if (r.from < from)
      r.from = from;
    if (e == 0)
      e = add_part(out, cap, r);
  }
  if (fd >= 0)
    close(fd);
  free(sort);
  return e;
}

/* -ESTALE: whoever wrote it, it is no account of a log. */
static int load_account(struct ni_atlas_file *f) {
  struct ni_ledger *c = f->account = calloc(1, sizeof *c);
  struct ni_wire bytes = ni_wire_load(f->entry->account.bytes, f->entry->account.n);
  if (!c)
    return -ENOMEM;
  ni_ledger_begin(c, f->file, true);
  ni_ledger_wire(&bytes, c);
  if (ni_wire_over(&bytes))
    return 0;
  ni_ledgers_drop(NULL, c);
  f->account = NULL;
  return -ESTALE;
}

struct atlas_planning {
  struct ni_atlas *a;
  const struct ni_atlas_wants *w;
};

/* Plans a file for ni_scan_plan_known(). */
static int plan_file(void *arg, size_t file_no, struct ni_scan_parts *out) {
  const struct atlas_planning *x = arg;
  struct ni_atlas_file *f = &x->a->file[file_no];
  struct ni_granules *g = f->map;
  size_t cap = 0;
  const bool is_stale = f->state == NI_ATLAS_STALE;
  if (is_stale || (x->w->records && (g->odd || (g->proxy && x->w->proxies))))
    return 0;
  int e = load_account(f);
  const bool wants_map = x->w->records || x->a->opt.maps || f->state == NI_ATLAS_GROWN;
  if (e == 0 && wants_map)
    e = ni_map_unpack(g);
  if (e == 0)
    e = add_part(out, &cap, (struct ni_range){0});
  if (e == 0 && x->w->sums)
    e = load_sums(f, x->w);
  if (e == 0 && x->w->records)
    e = add_granules(g, f->file, x->w, f->summed, out, &cap);
  f->granule_parts = out->n - 1;
  if (e == 0 && f->state == NI_ATLAS_GROWN)
    e = add_part(out, &cap, (struct ni_range){.from = g->end, .to = UINT64_MAX >> 1});
  f->known = e == 0;
  if (e == 0)
    return 1;
  free(out->at);
  *out = (struct ni_scan_parts){0};
  if (e != -ESTALE && e != -EBADMSG)
    return e;
  f->state = NI_ATLAS_STALE; /* its clock and its inode lie */
  ni_granules_free(f->map);
  f->map = NULL;
  return 0;
}

int ni_atlas_plan(struct ni_atlas *a, struct ni_scan_plan *plan, const struct ni_files *files, unsigned jobs,
                  const struct ni_atlas_wants *w) {
  struct atlas_planning x = {a, w};
  return ni_scan_plan_known(plan, files, true, jobs, a && w ? plan_file : NULL, &x);
}

enum ni_atlas_mode ni_atlas_mode(const struct ni_atlas *a, const struct ni_scan_part *p) {
  const struct ni_atlas_file *f = a ? find_file(a, p) : NULL;
  if (!f || !f->known)
    return NI_ATLAS_WHOLE;
  return p->part == 0 ? NI_ATLAS_ACCOUNT : p->part <= f->granule_parts ? NI_ATLAS_GRANULES : NI_ATLAS_TAIL;
}

struct ni_granules *ni_atlas_begin(struct ni_atlas *a, const struct ni_scan_part *p,
                                   struct ni_ledger *ledger) {
  struct ni_atlas_file *f = a ? find_file(a, p) : NULL;
  if (!f)
    return NULL;
  const bool wants_map =
      f->known ? f->state == NI_ATLAS_GROWN : (a->build || a->opt.maps) && f->state != NI_ATLAS_FRESH;
  if (!wants_map)
    return NULL;
  return ledger->granules = ni_granules_new(p->at.from);
}

const struct ni_granules *ni_atlas_map(const struct ni_atlas *a, const struct ni_scan_part *p) {
  return find_file(a, p)->map;
}

struct ni_ledger *ni_atlas_account(struct ni_atlas *a, const struct ni_scan_part *p) {
  struct ni_atlas_file *f = find_file(a, p);
  struct ni_ledger *c = f->account;
  f->account = NULL;
  if (f->state == NI_ATLAS_GROWN) {
    c->granules = f->map;
    f->map = NULL;
  }
  return c;
}

const uint8_t *ni_atlas_sums(const struct ni_atlas *a, size_t file_no, size_t *n) {
  const struct ni_atlas_file *f = a ? &a->file[file_no] : NULL;
  if (!f || !f->known || !f->summed)
    return NULL;
  *n = f->n_sums;
  return f->sums;
}

struct ni_atlas_known ni_atlas_known(const struct ni_atlas *a, size_t file_no) {
  const struct ni_atlas_file *f = a ? &a->file[file_no] : NULL;
  if (!f || f->state == NI_ATLAS_STALE)
    return (struct ni_atlas_known){.state = NI_ATLAS_STALE};
  return (struct ni_atlas_known){f->state, f->entry->account.bytes, f->entry->account.n, f->entry->stat.size};
}

struct ni_granules *ni_atlas_brief(struct ni_atlas *a, size_t file_no, bool whole) {
  struct ni_granules *g = NULL;
  if (!a || !a->build)
    return NULL;
  if (whole) {
    g = ni_granules_new(0);
  } else {
    g = a->file[file_no].map;
    a->file[file_no].map = NULL;
  }
  if (g && ni_granules_brief(g) == 0)
    return g;
  ni_granules_free(g);
  return NULL;
}

const struct ni_granules *ni_atlas_log_map(const struct ni_atlas *a, size_t file_no) {
  const struct ni_granules *g = a ? a->file[file_no].map : NULL;
  return g && !g->odd ? g : NULL;
}

bool ni_atlas_times(const struct ni_atlas *a, size_t file_no, int64_t *first_us, int64_t *last_us) {
  const struct ni_atlas_file *f = a ? &a->file[file_no] : NULL;
  if (!f || f->state != NI_ATLAS_FRESH || f->map->odd)
    return false;
  for (size_t i = 0; i < f->map->n; i++) {
    const struct ni_granule *x = &f->map->item[i];
    if (!x->records)
      continue;
    if (x->first_us < *first_us)
      *first_us = x->first_us;
    if (x->last_us > *last_us)
      *last_us = x->last_us;
  }
  return true;
}

/* ---- the account alone --------------------------------------------------------------------------------- */

struct atlas_reading {
  struct ni_atlas *a;
  struct ni_ledgers *ledgers;
};

static int read_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
                     void **result) {
  struct atlas_reading *x = arg;
  struct ni_scan_end end;
  struct ni_ledger *part = NULL;
  if (ni_atlas_mode(x->a, p) == NI_ATLAS_ACCOUNT) {
    *result = ni_atlas_account(x->a, p);
    return 0;
  }
  part = *result = calloc(1, sizeof *part);
  if (!part)
    return -ENOMEM;
  ni_ledger_begin(part, p->file, p->part == 0);
  *to = (struct ni_scan_to){.arg = part,
                            .take = ni_ledger_take,
                            .fault = ni_ledger_fault,
                            .counters = true,
                            .granules = ni_atlas_begin(x->a, p, part),
                            .team = to->team,
                            .stop = to->stop,
                            .read = to->read};
  int e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
  ni_ledger_end(part, &end);
  return e;
}

static int merge_ledgers(void *arg, const struct ni_scan_part *p, void *part) {
  return ni_ledgers_merge(((struct atlas_reading *)arg)->ledgers, p->file_no, part);
}

static int finish_file(void *arg, size_t file_no) {
  return ni_ledgers_file_done(((struct atlas_reading *)arg)->ledgers, file_no);
}

int ni_atlas_read_accounts(struct ni_atlas *a, struct ni_ledgers *l, const struct ni_files *files,
                           unsigned jobs, struct ni_progress *progress, bool join) {
  struct ni_scan_plan plan = {0};
  struct atlas_reading x = {a, l};
  const struct ni_atlas_wants nothing = {.records = false};
  int e = ni_atlas_plan(a, &plan, files, jobs, &nothing);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan,
                                             .jobs = jobs,
                                             .progress = progress,
                                             .arg = &x,
                                             .part = read_part,
                                             .merge = merge_ledgers,
                                             .file_done = join ? finish_file : NULL,
                                             .drop = ni_ledgers_drop});
  ni_scan_plan_free(&plan);
  return e;
}

int ni_atlas_read_ledger(struct ni_atlas *a, struct ni_ledger *c, const struct ni_files *files, unsigned jobs,
                         struct ni_progress *progress) {
  struct ni_ledgers l;
  int e = ni_ledgers_init(&l, c, files);
  l.mapped = a ? ni_atlas_mapped : NULL;
  l.arg = a;
  if (e == 0)
    e = ni_atlas_read_accounts(a, &l, files, jobs, progress, true);
  ni_ledgers_free(&l);
  return e;
}
