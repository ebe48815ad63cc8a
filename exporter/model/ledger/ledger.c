/*
 * What the ledger is made of: problems with their places, counts by name, processes and members by what they are called.
 */
#include "ledger.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/plural.h"
#include "exporter/input/sampling.h"

#define TEXTS(code, name, one, many) {name, one, many},
static const struct {
  const char *name, *one, *many;
} problems[NI_PROBLEM_COUNT] = {NI_PROBLEMS(TEXTS)};

const char *const ni_implausible_names[NI_IMPLAUSIBLE_COUNT] = {"time_zero", "time_over_one_hour", "bandwidth_over_10000_gbs",
                                                                 "bandwidth_negative"};

const char *ni_problem_name(enum ni_problem_code code) { return problems[code].name; }
const char *ni_problem_text(enum ni_problem_code code, uint64_t count) {
  return ni_plural(count, problems[code].one, problems[code].many);
}

static void add_place(struct ni_problem *p, uint64_t count, struct ni_where place) {
  p->count += count;
  if (p->places < NI_LEDGER_WHERES) p->where[p->places] = place;
  else free(place.text);
  p->places++;
}

void ni_ledger_problem(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, const char *where, ...) {
  struct ni_where place = {0};
  va_list ap;
  va_start(ap, where);
  if (c->problem[code].places < NI_LEDGER_WHERES && vasprintf(&place.text, where, ap) < 0) place.text = NULL;
  va_end(ap);
  add_place(&c->problem[code], count, place);
}

/* "PATH:" and what is behind the number. */
static struct ni_where place_at(const struct ni_ledger *c, uint64_t line_no, const char *what, va_list ap) {
  struct ni_where place = {.line = line_no, .at = strlen(c->file->path) + 1};
  char *more = NULL;
  if (vasprintf(&more, what, ap) < 0) more = NULL;
  if (asprintf(&place.text, "%s:%s", c->file->path, more ? more : "") < 0) place.text = NULL;
  free(more);
  return place;
}

void ni_ledger_problem_at(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, uint64_t line_no, const char *what, ...) {
  struct ni_where place = {0};
  va_list ap;
  va_start(ap, what);
  if (c->problem[code].places < NI_LEDGER_WHERES) place = place_at(c, line_no, what, ap);
  va_end(ap);
  add_place(&c->problem[code], count, place);
}

int ni_tally_add(struct ni_tally *t, const char *name, uint64_t count) {
  size_t i = t->last;
  if (i >= t->n || strcmp(t->item[i].name, name) != 0)
    for (i = 0; i < t->n && strcmp(t->item[i].name, name) != 0; i++) {}
  if (i == t->n) {
    if (t->n == NI_LEDGER_NAMES) {
      t->other += count;
      return 0;
    }
    t->item[i].name = strdup(name);
    if (!t->item[i].name) return -ENOMEM;
    t->item[i].count = 0;
    t->n++;
  }
  t->item[i].count += count;
  t->last = i;
  return 0;
}

int ni_ledger_sample(struct ni_ledger *c, uint64_t line_no, const char *what, ...) {
  if (c->n_samples == NI_LEDGER_SAMPLES) return 0;
  va_list ap;
  va_start(ap, what);
  c->sample[c->n_samples] = place_at(c, line_no, what, ap);
  va_end(ap);
  if (!c->sample[c->n_samples].text) return -ENOMEM;
  c->n_samples++;
  return 0;
}

static int new_process(struct ni_ledger *c, const struct ni_file *file, const char *host, int64_t pid) {
  struct ni_ledger_process *p = calloc(1, sizeof *p);
  if (!p) return -ENOMEM;
  c->process[c->n_processes++] = p;
  p->hostname = strdup(host);
  p->origin = strndup(file->path, ni_log_stem(file->path, NULL));
  p->pid = pid;
  p->file = file;
  return p->hostname && p->origin ? 0 : -ENOMEM;
}

/*
 * A process line names a process by its start; else (NVIDIA's logs, a file whose first line was lost, a range of a file) it
 * is the newest one with that host and pid in the files of this name.
 */
int ni_ledger_process_of(struct ni_ledger *c, const struct ni_file *file, const char *host, int64_t pid, uint64_t start_ns,
                         struct ni_ledger_process **out) {
  char origin[PATH_MAX];
  if (!ni_array_room(c->process, c->n_processes, c->cap_processes)) return -ENOMEM;
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(file->path, NULL), file->path);
  uint64_t name = ni_hash_text((uint64_t)pid, host), started = ni_hash(name, start_ns);
  int64_t k = start_ns ? ni_map_get(&c->process_names, started, 0) : -1;
  if (k < 0) k = ni_map_find(&c->process_names, ni_hash_text(~name, origin), start_ns, (uint32_t)c->n_processes);
  if (k >= 0 && start_ns && ni_map_find(&c->process_names, started, 0, (uint32_t)k) < 0) k = -ENOMEM;
  if (k < 0) return (int)k;
  if ((size_t)k == c->n_processes && new_process(c, file, host, pid) < 0) return -ENOMEM;
  *out = c->process[k];
  if (start_ns) (*out)->start_ns = start_ns;
  return 0;
}

/* init_ns 0: the newest instance. A hash can come back in one process after destroy and init; a comm line tells. */
int ni_ledger_member_of(struct ni_ledger *c, struct ni_ledger_process *p, const struct ni_ident *id, uint64_t init_ns,
                        struct ni_ledger_member **out) {
  struct ni_ledger_member *x;
  if (!ni_array_room(c->member, c->n_members, c->cap_members)) return -ENOMEM;
  uint64_t name = ni_hash(ni_hash((uintptr_t)p, id->comm_hash), (uint32_t)id->rank);
  int64_t k = ni_map_find(&c->member_names, name, init_ns, (uint32_t)c->n_members);
  if (k < 0) return (int)k;
  if ((size_t)k == c->n_members) {
    if (!(x = c->member[k] = calloc(1, sizeof *x))) return -ENOMEM;
    c->n_members++;
    x->process = p;
    x->hash = id->comm_hash;
    x->rank = id->rank;
    x->n_ranks = id->n_ranks;
    x->nnodes = id->nnodes;
    x->ours = p->ours;
  }
  x = c->member[k];
  if (init_ns) x->init_ns = init_ns;
  if (!x->name && id->comm_name && !(x->name = strdup(id->comm_name))) return -ENOMEM;
  *out = x;
  return 0;
}

const char *ni_ledger_clock_wrong(const struct ni_ledger_clock *a, const struct ni_ledger_clock *b) {
  if (!a) return NULL;
  if (b->ticks < a->ticks || b->monotonic_ns < a->monotonic_ns) return "runs backwards";
  double told = (double)(b->ticks - a->ticks) * b->ns_per_tick, real = (double)(b->monotonic_ns - a->monotonic_ns);
  double off = fabs(told - real);
  return off > 1e6 && off > 1e-3 * real ? "ticks and monotonic_ns disagree by more than 0.1 %" : NULL;
}

int ni_ledger_merge_funcs(struct ni_ledger_member *a, struct ni_ledger_member *b) {
  for (struct ni_ledger_func *f; (f = b->funcs);) {
    struct ni_ledger_func *g = a->funcs;
    while (g && strcmp(g->name, f->name) != 0) g = g->next;
    if (g) {
      int e = ni_seq_set_merge(&g->sn, &f->sn);
      if (e < 0) return e;
      b->funcs = f->next;
      ni_seq_set_free(&f->sn);
      free(f->name);
      free(f);
    } else {
      b->funcs = f->next;
      f->next = a->funcs;
      a->funcs = f;
    }
  }
  return 0;
}

static void free_member(struct ni_ledger_member *x) {
  for (struct ni_ledger_func *f = x->funcs, *after; f; f = after) {
    after = f->next;
    ni_seq_set_free(&f->sn);
    free(f->name);
    free(f);
  }
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    ni_seq_set_free(&x->kind[k].rec_sn);
    free(x->kind[k].cause);
  }
  free(x->name);
  free(x);
}

void ni_ledger_free(struct ni_ledger *c) {
  for (size_t i = 0; i < c->n_members; i++) free_member(c->member[i]);
  for (size_t i = 0; i < c->n_processes; i++) {
    free(c->process[i]->hostname);
    free(c->process[i]->origin);
    free(c->process[i]);
  }
  for (int i = 0; i < NI_PROBLEM_COUNT; i++)
    for (int k = 0; k < NI_LEDGER_WHERES; k++) free(c->problem[i].where[k].text);
  for (size_t i = 0; i < c->n_samples; i++) free(c->sample[i].text);
  struct ni_tally *tallies[] = {&c->funcs, &c->dropped_by, &c->filtered_by, &c->strays, &c->fallback_by, &c->unknown_kinds};
  for (size_t i = 0; i < sizeof tallies / sizeof *tallies; i++)
    for (size_t k = 0; k < tallies[i]->n; k++) free(tallies[i]->item[k].name);
  free(c->process);
  free(c->member);
  ni_map_free(&c->process_names);
  ni_map_free(&c->member_names);
  *c = (struct ni_ledger){0};
}
