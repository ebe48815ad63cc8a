/* Which shard reads which log, and what a set of partials lacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "exporter/base/order.h"
#include "exporter/index/atlas.h"
#include "exporter/model/ledger/pack.h"
#include "exporter/model/ledger/read.h"
#include "exporter/model/ledger/take.h"
#include "partial.h"

struct unit { /* files of one process: neighbours in the list */
  uint64_t bytes;
  size_t first, n;
};
struct load {
  uint64_t bytes;
  uint32_t shard;
};

static int largest_first(const void *a, const void *b) {
  const struct unit *x = a, *y = b;
  return x->bytes != y->bytes ? NI_BY(y, x, bytes) : NI_BY(x, y, first);
}

#define before(a, b) (NI_BY(&(a), &(b), bytes, shard) < 0)

int ni_shards_plan(struct ni_run *r, uint32_t mine, uint32_t of) {
  struct ni_partial *p = r->partial = calloc(1, sizeof *p);
  size_t n = r->files.n, n_units = 0;
  struct unit *unit = calloc(n + 1, sizeof *unit);
  struct load *load = calloc(of, sizeof *load);
  int e = -ENOMEM;
  if (!p || !unit || !load)
    goto out;
  p->of = of;
  p->have = calloc(of, sizeof *p->have);
  p->shard_of = calloc(n + 1, sizeof *p->shard_of);
  p->account = calloc(n + 1, sizeof *p->account);
  p->parquet = calloc(n + 1, sizeof *p->parquet);
  if (!p->have || !p->shard_of || !p->account || !p->parquet)
    goto out;
  e = 0;
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || !ni_same_stem(r->files.file[i - 1].path, r->files.file[i].path))
      unit[n_units++].first = i;
    unit[n_units - 1].n++;
    unit[n_units - 1].bytes += r->files.file[i].bytes;
  }
  qsort(unit, n_units, sizeof *unit, largest_first);
  for (uint32_t i = 0; i < of; i++)
    load[i].shard = i; /* a heap already */
  for (size_t i = 0; i < n_units; i++) {
    load[0].bytes += unit[i].bytes + 1;
    for (size_t k = 0; k < unit[i].n; k++) {
      p->shard_of[unit[i].first + k] = load[0].shard;
      r->files.file[unit[i].first + k].elsewhere = load[0].shard + 1 != mine;
    }
    ni_heap_down(load, of, 0, before);
  }
  if (mine)
    p->have[mine - 1] = true;
out:
  free(unit);
  free(load);
  return e;
}

int ni_partial_account(struct ni_run *r, size_t file_no, struct ni_ledger *l) {
  if (r->files.file[file_no].elsewhere)
    return 0;
  struct ni_wire w = {0};
  l->file = &r->files.file[file_no]; /* of a file without a part it is not set */
  ni_ledger_wire(&w, l);
  ni_ledger_free(l);
  if (!w.bad)
    ni_array_fit(w.bytes, w.n, w.cap);
  else
    ni_wire_free(&w);
  r->partial->account[file_no] = (struct ni_bytes){w.bytes, w.n};
  return w.bytes ? 0 : -ENOMEM;
}

int ni_partial_read_accounts(struct ni_run *r) {
  r->progress.mode = ni_inputs_progress(&r->opt.inputs, r->opt.quiet);
  struct ni_ledgers l = {0};
  struct ni_ledger none = {0};
  int e = ni_ledgers_init(&l, &none, &r->files);
  if (e == 0)
    e = ni_atlas_read_accounts(NULL, &l, &r->files, r->opt.jobs, &r->progress, false);
  for (size_t i = 0; e == 0 && i < r->files.n; i++)
    e = ni_partial_account(r, i, &l.of_file[i]);
  ni_ledger_free(&none);
  ni_ledgers_free(&l);
  return e;
}

int ni_partial_settle(struct ni_run *r, struct ni_ledger *all) {
  struct ni_partial *p = r->partial;
  char missing[200];
  int e = ni_ledgers_init(&r->ledgers, all, &r->files);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    if (!p->account[i].at)
      continue;
    struct ni_ledger *l = &r->ledgers.of_file[i];
    struct ni_wire w = ni_wire_load(p->account[i].at, p->account[i].n);
    ni_ledger_begin(l, &r->files.file[i], true);
    ni_ledger_wire(&w, l);
    if (!ni_wire_over(&w))
      ni_run_fail(r, e = -EINVAL, "%s: its account in the partial result is damaged", r->files.file[i].path);
    if (e == 0)
      e = ni_ledgers_file_done(&r->ledgers, i);
    free(p->account[i].at);
    p->account[i] = (struct ni_bytes){0};
  }
  ni_ledgers_free(&r->ledgers);
  uint32_t n = ni_partial_missing(p, missing);
  if (n)
    ni_ledger_problem(all, NI_PROBLEM_SHARDS, n, "%s of %u", missing, p->of);
  return e;
}

uint32_t ni_partial_missing(const struct ni_partial *p, char out[200]) {
  uint32_t n = 0;
  size_t at = 0;
  *out = 0;
  for (uint32_t i = 0, to; i < p->of; i = to) {
    for (to = i + 1; to < p->of && p->have[to] == p->have[i];)
      to++;
    if (p->have[i])
      continue;
    n += to - i;
    if (at > 160)
      continue;
    at += (size_t)snprintf(out + at, 200 - at, "%s%u", at ? ", " : "", i + 1);
    if (to - i > 1)
      at += (size_t)snprintf(out + at, 200 - at, "-%u", to);
    if (at > 160)
      snprintf(out + at, 200 - at, ", ...");
  }
  return n;
}

void ni_partial_free(struct ni_run *r) {
  struct ni_partial *p = r->partial;
  if (!p)
    return;
  for (size_t i = 0; p->account && i < r->files.n; i++)
    free(p->account[i].at);
  free(p->account);
  free(p->parquet);
  free(p->shard_of);
  free(p->have);
  free(p->options.at);
  free(p->logs.at);
  free(p);
  r->partial = NULL;
}
