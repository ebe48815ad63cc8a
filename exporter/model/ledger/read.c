/*
 * All logs into one account: the account of a part added to that of all parts before it, as if its lines had
 * been read behind theirs.
 *
 * A part that begins within a file does not know when its process began or which instance of a communicator
 * its first lines are about: it has them with 0, which finds the newest there is, as the same lines would
 * have.
 */
#include "read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/input/scan_files.h"
#include "judge.h"
#include "take.h"
#include "ledger.h"

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void move_places(struct ni_where *to, size_t *n, size_t most, struct ni_where *from, size_t m,
                        uint64_t base) {
  for (size_t i = 0; i < m; i++) {
    if (from[i].line)
      from[i].line += base;
    if (*n < most)
      to[(*n)++] = from[i];
    else
      free(from[i].text);
    from[i] = (struct ni_where){0};
  }
}

static int merge_tally(struct ni_tally *a, const struct ni_tally *b) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < b->n; i++)
    e = ni_tally_add(a, b->item[i].name, b->item[i].count);
  a->other += b->other;
  return e;
}

static void merge_clocks(struct ni_ledger *c, struct ni_ledger_process *a, const struct ni_ledger_process *b,
                         uint64_t base) {
  if (!b->has_clock)
    return;
  const char *wrong = ni_ledger_clock_wrong(a->has_clock ? &a->clock : NULL, &b->first_clock);
  if (wrong)
    ni_ledger_problem_at(c, NI_PROBLEM_CLOCK, 1, base + b->first_clock.line_no, " %s", wrong);
  if (!a->has_clock)
    a->first_clock = b->first_clock;
  a->clock = b->clock;
  a->has_clock = true;
}

static int merge_process(struct ni_ledger *c, struct ni_ledger *part, size_t n, uint64_t base) {
  const struct ni_who_process *w = &part->who.process[n];
  struct ni_ledger_process *b = part->process[n];
  int64_t k = ni_ledger_accounts(c, ni_who_process(&c->who, w->host, w->pid, w->start_ns, w->origin));
  if (k < 0)
    return (int)k;
  struct ni_ledger_process *a = c->process[k];
  b->merged = (uint32_t)k;
  a->ours |= b->ours;
  a->control_lines |= b->control_lines;
  a->rollups |= b->rollups;
  a->imported |= b->imported;
  a->has_line |= b->has_line;
  a->killed |= b->killed;
  a->limits |= b->limits;
  a->sample = larger(a->sample, b->sample);
  merge_clocks(c, a, b, base);
  return 0;
}

/*
 * Numbers that the newest line states replace the older ones. Numbers that lines state of themselves are
 * added up.
 */
static int merge_kind(const struct ni_tally *names, struct ni_ledger *c, struct ni_ledger_kind *a,
                      struct ni_ledger_kind *b, bool newest) {
  int e = ni_seq_set_merge(&a->rec_sn, &b->rec_sn);
  ni_add_counts(a->added, b->added);
  a->nvidia_dropped = larger(a->nvidia_dropped, b->nvidia_dropped);
  if (e < 0 || !newest || !b->stated)
    return e;
  a->stated = true;
  memcpy(a->newest, b->newest, sizeof a->newest);
  free(a->cause);
  a->cause = b->cause;
  a->n_causes = b->n_causes;
  b->cause = NULL;
  /* The names of the part are those of all by now; their numbers are others. */
  for (uint32_t i = 0; i < a->n_causes; i++) {
    uint32_t name = a->cause[i].name;
    if (name == NI_LEDGER_NAMES)
      continue;
    if (ni_tally_add(&c->dropped_by, names->item[name].name, 0) < 0)
      return -ENOMEM;
    a->cause[i].name = (uint32_t)c->dropped_by.last;
  }
  return 0;
}

static int merge_member(struct ni_ledger *c, struct ni_ledger *part, size_t n) {
  struct ni_ledger_member *b = part->member[n];
  const struct ni_ident id = ni_who_ident(&part->who.member[n]);
  uint32_t process = b->process->merged, run = c->process[process]->file->run;
  int64_t k = ni_ledger_accounts(c, ni_who_member(&c->who, process, run, &id, part->who.member[n].init_ns));
  if (k < 0)
    return (int)k;
  struct ni_ledger_member *a = c->member[k];
  bool newest = ni_ledger_newest(a, b->final, b->stats_started);
  int e = 0;
  a->final |= b->final;
  a->killed |= b->killed;
  a->proxy_lines += b->proxy_lines;
  a->proxy_flushed += b->proxy_flushed;
  for (int i = 0; e == 0 && i < NI_KIND_COUNT; i++)
    e = merge_kind(&part->dropped_by, c, &a->kind[i], &b->kind[i], newest);
  for (int i = 0; i < NI_EVENT_COUNT; i++) {
    a->events_there[i] += b->events_there[i];
    if (newest && b->events.kind[i].started >= a->events.kind[i].started)
      a->events.kind[i] = b->events.kind[i];
  }
  if (newest)
    a->stats_started = b->stats_started;
  if (e == 0)
    e = ni_anchors_merge(&a->anchors, &b->anchors);
  return e < 0 ? e : ni_ledger_merge_funcs(a, b);
}

static int merge_counts(struct ni_ledger *a, struct ni_ledger *b) {
  ni_add_counts(a->totals, b->totals);
  ni_add_counts(a->reasons, b->reasons);
  ni_add_counts(a->events, b->events);
  ni_add_counts(a->implausible, b->implausible);
  int e = merge_tally(&a->funcs, &b->funcs);
  if (e == 0)
    e = merge_tally(&a->dropped_by, &b->dropped_by);
  if (e == 0)
    e = merge_tally(&a->filtered_by, &b->filtered_by);
  if (e == 0)
    e = merge_tally(&a->strays, &b->strays);
  if (e == 0)
    e = merge_tally(&a->fallback_by, &b->fallback_by);
  return e == 0 ? merge_tally(&a->unknown_kinds, &b->unknown_kinds) : e;
}

/* Adds part, which is empty afterwards. It comes right after what was merged before. 0 or -ENOMEM. */
static int merge_part(struct ni_ledger *all, struct ni_ledger *part) {
  uint64_t base = part->first ? 0 : all->file_lines;
  all->file = part->file;
  int e = merge_counts(all, part);
  for (int i = 0; i < NI_PROBLEM_COUNT; i++) {
    struct ni_problem *a = &all->problem[i], *b = &part->problem[i];
    size_t n = a->places < NI_LEDGER_WHERES ? a->places : NI_LEDGER_WHERES,
           m = b->places < NI_LEDGER_WHERES ? b->places : NI_LEDGER_WHERES;
    move_places(a->where, &n, NI_LEDGER_WHERES, b->where, m, base);
    a->count += b->count;
    a->places += b->places;
    b->places = 0;
  }
  move_places(all->sample, &all->n_samples, NI_LEDGER_SAMPLES, part->sample, part->n_samples, base);
  part->n_samples = 0;
  for (size_t i = 0; e == 0 && i < part->n_processes; i++)
    e = merge_process(all, part, i, base);
  for (size_t i = 0; e == 0 && i < part->n_members; i++)
    e = merge_member(all, part, i);
  if (e == 0)
    e = ni_ledger_merge_series(all, part);
  all->file_lines = base + part->file_lines;
  ni_ledger_free(part);
  return e;
}

int ni_ledgers_init(struct ni_ledgers *l, struct ni_ledger *all, const struct ni_files *files) {
  *l = (struct ni_ledgers){.all = all, .n = files->n, .of_file = calloc(files->n + 1, sizeof *l->of_file)};
  if (!l->of_file)
    return -ENOMEM;
  ni_ledger_files(all, files);
  return 0;
}

void ni_ledgers_drop(void *unused, void *part) {
  ni_ledger_free(part);
  free(part);
}

int ni_ledgers_merge(struct ni_ledgers *l, size_t file_no, struct ni_ledger *part) {
  struct ni_ledger *f = &l->of_file[file_no];
  struct ni_granules *map = part->granules;
  int e = 0;
  part->granules = NULL;
  if (f->file) {
    e = merge_part(f, part);
  } else {
    *f = *part; /* its first part */
    *part = (struct ni_ledger){0};
  }
  if (map && e == 0)
    e = ni_granules_join(&f->granules, map);
  else
    ni_granules_free(map);
  ni_ledgers_drop(NULL, part);
  return e;
}

int ni_ledgers_file_done(struct ni_ledgers *l, size_t file_no) {
  struct ni_ledger *f = &l->of_file[file_no];
  if (l->mapped && f->granules)
    l->mapped(l->arg, file_no, f);
  return merge_part(l->all, f);
}

void ni_ledgers_free(struct ni_ledgers *l) {
  for (size_t i = 0; l->of_file && i < l->n; i++)
    ni_ledger_free(&l->of_file[i]);
  free(l->of_file);
}
