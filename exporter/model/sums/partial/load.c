/* Sections into the state of a run: of the first partial the plan, of each what its shards read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/reading/tables.h"
#include "tables.h"

static int damaged(struct ni_run *r, const struct ni_section_from *from) {
  return ni_run_fail(r, -EINVAL, "%s: damaged: what is in it cannot be", from->name);
}

static int get(struct ni_run *r, const struct ni_section_from *from, enum ni_section want,
               struct ni_wire *w) {
  enum ni_section id;
  const uint8_t *bytes;
  size_t n;
  int e = from->get(from->arg, r, &id, &bytes, &n);
  if (e < 0)
    return e;
  if (id != want)
    return damaged(r, from);
  *w = ni_wire_load(bytes, n);
  return 0;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static int keep(struct ni_bytes *to, const uint8_t *at, size_t n) {
  if ((to->at = malloc(n + 1))) {
    to->n = n;
    memcpy(to->at, at, n);
  }
  return to->at ? 0 : -ENOMEM;
}

static bool is_same_file(const struct ni_file *a, const struct ni_file *b) {
  return strcmp(a->path, b->path) == 0 && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns;
}

/* Says which log another plan has otherwise. */
static int other_logs(struct ni_run *r, const struct ni_section_from *from, const char *with,
                      struct ni_wire *w) {
  struct ni_run x = {0};
  const struct ni_files *a = &r->files, *b = &x.files;
  size_t i = 0;
  ni_partial_wire_logs(w, &x);
  while (i < a->n && i < b->n && is_same_file(&a->file[i], &b->file[i]))
    i++;
  const bool both = i < a->n && i < b->n, changed = both && strcmp(a->file[i].path, b->file[i].path) == 0;
  const char *path = i < a->n ? a->file[i].path : i < b->n ? b->file[i].path : "runs or unreadable paths";
  ni_run_fail(r, -ESTALE, "%s is of other logs than %s: %s %s", from->name, with, path,
              changed                 ? "was changed between the two"
                  : i < a->n && !both ? "is not in it"
                                      : "differs");
  ni_files_free(&x.files);
  ni_runs_free(&x.runs);
  return -ESTALE;
}

/* Of the first partial it becomes the plan's, of the others it must be that: else *other. */
static int load_part(struct ni_run *r, const struct ni_section_from *from, enum ni_section id,
                     struct ni_bytes *mine, void (*wire)(struct ni_wire *w, struct ni_run *r), bool first,
                     struct ni_wire *w, bool *other) {
  int e = get(r, from, id, w);
  if (e < 0)
    return e;
  const size_t n = (size_t)(w->end - w->at);
  *other = !first && (mine->n != n || memcmp(mine->at, w->at, n) != 0);
  if (!first)
    return 0;
  if (keep(mine, w->at, n) < 0)
    return -ENOMEM;
  wire(w, r);
  return ni_wire_over(w) ? 0 : damaged(r, from);
}

static int load_plan(struct ni_run *r, const struct ni_section_from *from, const char *with, bool first) {
  struct ni_wire w;
  bool other;
  int e = load_part(r, from, NI_SECTION_OPTIONS, &r->partial->options, ni_partial_wire_options, first, &w,
                    &other);
  if (e < 0)
    return e;
  if (other)
    return ni_run_fail(
        r, -ESTALE,
        "%s was made with other options than %s: filters, --run, --compat, --only, --skip-first, "
        "--step-by, --time-granularity, --comm-map, --groups and the paths must be the same",
        from->name, with);
  e = load_part(r, from, NI_SECTION_LOGS, &r->partial->logs, ni_partial_wire_logs, first, &w, &other);
  return e < 0 ? e : other ? other_logs(r, from, with, &w) : 0;
}

/* r->partial has the plan's bytes alone until N is known. */
static int load_of(struct ni_run *r, const struct ni_section_from *from, uint32_t of) {
  struct ni_partial *plan = r->partial;
  if (of < 1 || of > NI_SHARDS_MAX)
    return damaged(r, from);
  int e = ni_shards_plan(r, 0, of);
  if (!r->partial) {
    r->partial = plan;
    return -ENOMEM;
  }
  r->partial->options = plan->options;
  r->partial->logs = plan->logs;
  free(plan);
  return e;
}

int ni_partial_load_plan(struct ni_run *r, const struct ni_section_from *from, const char *with,
                         uint32_t **shard, size_t *n) {
  const bool first = !r->partial;
  struct ni_wire w;
  uint32_t of = 0;
  *shard = NULL;
  *n = 0;
  if (first && !(r->partial = calloc(1, sizeof *r->partial)))
    return -ENOMEM;
  int e = load_plan(r, from, with, first);
  if (e == 0)
    e = get(r, from, NI_SECTION_SHARDS, &w);
  if (e < 0)
    return e;
  ni_wire_u32(&w, &of);
  ni_wire_count(&w, n, 1);
  if (w.bad)
    return damaged(r, from);
  if (first && (e = load_of(r, from, of)) < 0)
    return e;
  if (of != r->partial->of)
    return ni_run_fail(r, -ESTALE, "%s is of %u shards, %s of %u", from->name, of, with, r->partial->of);
  if (!(*shard = calloc(*n + 1, sizeof **shard)))
    return -ENOMEM;
  for (size_t i = 0; i < *n; i++) {
    ni_wire_below(&w, &(*shard)[i], of);
    if (i && (*shard)[i] <= (*shard)[i - 1])
      w.bad = true;
  }
  return ni_wire_over(&w) ? 0 : damaged(r, from);
}

/* ---- what was read ------------------------------------------------------------------------------------- */

static int load_piece(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x) {
  struct ni_piece *p = calloc(1, sizeof *p);
  uint32_t member = 0, cell = 0;
  if (!p)
    return -ENOMEM;
  ni_wire_below(w, &member, x->member.n);
  ni_wire_below(w, &cell, x->cell.n);
  ni_wire_below(w, &p->file, r->files.n);
  NI_WIRE(w, &p->range, &p->ordinal);
  int e = w->bad || !r->partial->have[r->partial->shard_of[p->file]]
      ? -EINVAL
      : ni_segment_decode(&p->s, &r->store, w, x->mix, x->n_mix);
  if (e == 0) {
    p->member = x->member.number[member];
    e = ni_cell_add_piece(r, x->cell.number[cell], p);
  }
  if (e < 0) {
    ni_segment_free(&p->s, &r->store);
    free(p);
  }
  return e;
}

static int load_account(struct ni_wire *w, struct ni_run *r) {
  uint32_t file = 0;
  size_t n = 0;
  bool parquet = false;
  ni_wire_below(w, &file, r->files.n);
  ni_wire_bool(w, &parquet);
  ni_wire_count(w, &n, 1);
  const uint8_t *at = ni_wire_bytes(w, NULL, n);
  if (w->bad || !r->partial->have[r->partial->shard_of[file]] || r->partial->account[file].at)
    return -EINVAL;
  r->partial->parquet[file] = parquet;
  return keep(&r->partial->account[file], at, n);
}

static int load_rest(struct ni_run *r, const struct ni_section_from *from, struct ni_partial_numbers *x) {
  struct ni_wire w;
  int e = get(r, from, NI_SECTION_TABLES, &w);
  if (e < 0)
    return e;
  ni_partial_wire_tables(&w, r, x);
  if (!ni_wire_over(&w))
    return -EINVAL;
  for (;;) {
    enum ni_section id;
    const uint8_t *bytes;
    size_t n;
    if ((e = from->get(from->arg, r, &id, &bytes, &n)) < 0)
      return e;
    if (id == NI_SECTION_END)
      return n ? -EINVAL : 0;
    if (id != NI_SECTION_PIECES && id != NI_SECTION_ACCOUNTS)
      return -EINVAL;
    w = ni_wire_load(bytes, n);
    while (e == 0 && w.at < w.end)
      e = id == NI_SECTION_PIECES ? load_piece(&w, r, x) : load_account(&w, r);
    if (e < 0)
      return e;
    if (r->stop && *r->stop)
      return -EINTR;
  }
}

int ni_partial_load(struct ni_run *r, const struct ni_section_from *from, const uint32_t *shard, size_t n) {
  struct ni_partial_numbers x = {0};
  struct ni_partial *p = r->partial;
  for (size_t i = 0; i < n; i++)
    p->have[shard[i]] = true;
  int e = load_rest(r, from, &x);
  for (size_t i = 0; e == 0 && i < r->files.n; i++)
    for (size_t k = 0; e == 0 && k < n && !p->account[i].at; k++)
      if (p->shard_of[i] == shard[k])
        e = -EINVAL; /* a log of its shards without an account */
  ni_partial_numbers_free(&x);
  if (e == -EINVAL)
    damaged(r, from); /* the first sentence stays */
  else if (e < 0)
    ni_run_fail(r, e, "%s: %s", from->name, strerror(-e));
  return e;
}
