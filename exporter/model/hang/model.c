#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

/* ---- names ---- */

int ni_hang_name(struct ni_hang_model *m, const char *text) {
  if (!text || !*text)
    return 0;
  for (size_t i = 1; i < m->n_names; i++) /* a few dozen: func, datatype, state */
    if (strcmp(m->name[i], text) == 0)
      return (int)i;
  if (m->n_names == 0)
    m->n_names = 1;
  if (m->n_names > NI_HANG_NAMES)
    return 0;
  if (!ni_array_room(m->name, m->n_names, m->cap_names))
    return -ENOMEM;
  m->name[0] = NULL;
  if (!(m->name[m->n_names] = strdup(text)))
    return -ENOMEM;
  return (int)m->n_names++;
}

const char *ni_hang_text(const struct ni_hang_model *m, uint16_t name) {
  return name == 0 || name >= m->n_names ? "" : m->name[name];
}

void ni_hang_bad_file(struct ni_hang_model *m, const char *path, const char *why) {
  m->unreadable++;
  if (!m->first_bad && asprintf(&m->first_bad, "%s: %s", path, why) < 0)
    m->first_bad = NULL;
}

/* ---- processes and members ---- */

int64_t ni_hang_process_of(struct ni_hang_model *m, const char *host, int64_t pid, uint64_t start_ns) {
  if (!ni_array_room(m->process, m->n_processes, m->cap_processes))
    return -ENOMEM;
  /* A box and a log of one process lie in different places. */
  int64_t k = ni_who_process(&m->who, host, pid, start_ns, "");
  if (k == (int64_t)m->n_processes)
    m->process[m->n_processes++] = (struct ni_hang_process){.rank = -1, .world = -1};
  return k;
}

int64_t ni_hang_member_of(struct ni_hang_model *m, uint32_t process, const struct ni_ident *id,
                          uint64_t init_ns) {
  if (m->n_members >= NI_HANG_MEMBERS)
    return -E2BIG;
  if (!ni_array_room(m->member, m->n_members, m->cap_members))
    return -ENOMEM;
  int64_t k = ni_who_member(&m->who, process, 0, id, init_ns);
  if (k != (int64_t)m->n_members)
    return k;
  struct ni_hang_member *x = m->member[k] = calloc(1, sizeof *x);
  if (!x)
    return -ENOMEM;
  x->started[0] = x->started[1] = NI_HANG_NONE;
  m->n_members++;
  return k;
}

static int raise_func(struct ni_hang_member *x, uint16_t func, uint64_t next) {
  uint8_t i = 0;
  while (i < x->n_fin && x->fin[i].func != func)
    i++;
  if (i == x->n_fin) {
    if (i == NI_HANG_FUNCS)
      return 0; /* more functions than NCCL has: their numbers are then not known */
    if (!ni_array_room_one(x->fin, i, x->cap_fin))
      return -ENOMEM;
    x->fin[x->n_fin++] = (struct ni_hang_func){func, 0};
  }
  ni_hang_raise(&x->fin[i].next, next);
  return 0;
}

/*
 * By the plugin's own numbers. NVIDIA's logs have none: there by time or, without a time, by NCCL's number.
 */
static bool is_older(const struct ni_hang_op *x, const struct ni_hang_op *y) {
  const uint64_t a = x->rec_sn + 1, b = y->rec_sn + 1; /* none is 0 */
  if (a != b)
    return a < b;
  return x->enqueue_ns != y->enqueue_ns ? x->enqueue_ns < y->enqueue_ns : x->sn < y->sn;
}

int ni_hang_finished(struct ni_hang_member *x, const struct ni_hang_op *op) {
  ni_hang_raise(&x->active_ns, op->enqueue_ns > op->seen_ns ? op->enqueue_ns : op->seen_ns);
  ni_hang_raise(&x->passed_ns[op->kind], op->enqueue_ns);
  ni_hang_raise(&x->ended_ns, op->seen_ns);
  if (op->rec_sn != NI_HANG_NONE && ni_seq_set_add(&x->recorded[op->kind], op->rec_sn) < 0)
    return -ENOMEM;
  if (op->kind != NI_KIND_COLL)
    return 0;
  if (raise_func(x, op->func, op->sn + 1) < 0)
    return -ENOMEM;
  /* The newest stay. Records come nearly in order, so the oldest place is nearly always the next one. */
  uint32_t at = x->n_recent;
  if (at == NI_HANG_RECENT) {
    at = 0;
    for (uint32_t i = 1; i < NI_HANG_RECENT; i++)
      if (is_older(&x->recent[i], &x->recent[at]))
        at = i;
    if (!is_older(&x->recent[at], op))
      return 0;
  } else {
    if (!ni_array_room_one(x->recent, at, x->cap_recent))
      return -ENOMEM;
    x->n_recent++;
  }
  x->recent[at] = *op;
  return 0;
}

/*
 * What sources saw of one operation stands together, the newest first. If equally old, the one in which the
 * operation is further comes first.
 */
static int by_sight(const void *a, const void *b) {
  const struct ni_hang_op *x = a, *y = b;
  int k = NI_BY(x, y, kind, rec_sn);
  return k ? k : NI_BY(y, x, seen_ns, stopped);
}

void ni_hang_keep_newest(struct ni_hang_member *x) {
  uint32_t kept = 0;
  if (x->n_open > 1)
    qsort(x->open, x->n_open, sizeof *x->open, by_sight);
  for (uint32_t i = 0; i < x->n_open; i++)
    if (!kept || x->open[i].kind != x->open[kept - 1].kind || x->open[i].rec_sn != x->open[kept - 1].rec_sn)
      x->open[kept++] = x->open[i];
  x->n_open = kept;
}

int ni_hang_in_flight(struct ni_hang_member *x, const struct ni_hang_op *op) {
  ni_hang_raise(&x->active_ns, op->enqueue_ns);
  if (x->n_open == x->cap_open) { /* seldom, since a quarter is free after it */
    ni_hang_keep_newest(x);
    if (x->n_open >= x->cap_open - x->cap_open / 4 && !ni_array_room(x->open, x->cap_open, x->cap_open))
      return -ENOMEM;
  }
  x->open[x->n_open++] = *op;
  return 0;
}

/* ---- merging ---- */

static int import_names(struct ni_hang_model *a, const struct ni_hang_model *b, uint16_t *map) {
  for (size_t i = 1; i < b->n_names; i++) {
    int k = ni_hang_name(a, b->name[i]);
    if (k < 0)
      return k;
    map[i] = (uint16_t)k;
  }
  return 0;
}

static void rename_op(struct ni_hang_op *op, const uint16_t *map) {
  op->func = map[op->func];
  op->datatype = map[op->datatype];
  op->net_state = map[op->net_state];
}

static int copy_text(char **a, const char *b) { return *a || !b || (*a = strdup(b)) ? 0 : -ENOMEM; }

static int merge_process(struct ni_hang_process *a, const struct ni_hang_process *b) {
  if (a->rank < 0)
    a->rank = b->rank;
  if (a->world < 0)
    a->world = b->world;
  if (b->nccl_version > a->nccl_version)
    a->nccl_version = b->nccl_version;
  if (!*a->boot_id)
    memcpy(a->boot_id, b->boot_id, sizeof a->boot_id);
  /* Its own last lines are final. Otherwise the newest look counts. */
  const bool is_newer = a->life != NI_HANG_LEFT && b->look_ns >= a->look_ns;
  if (b->life == NI_HANG_LEFT || (is_newer && b->life))
    a->life = b->life;
  ni_hang_raise(&a->look_ns, b->look_ns);
  ni_hang_raise(&a->alive_ns, b->alive_ns);
  if (b->file && b->file_ns >= a->file_ns) {
    free(a->file);
    a->file = NULL;
  }
  ni_hang_raise(&a->file_ns, b->file_ns);
  ni_hang_raise(&a->longest_operation_ns, b->longest_operation_ns);
  ni_hang_raise(&a->longest_gap_ns, b->longest_gap_ns);
  ni_hang_raise(&a->ended_ns, b->ended_ns);
  a->has_box |= b->has_box;
  a->has_log |= b->has_log;
  a->has_dump |= b->has_dump;
  a->ours |= b->ours;
  a->boxless |= b->boxless;
  ni_hang_raise(&a->unwritten, b->unwritten);
  a->uncounted |= b->uncounted;
  if (!a->run)
    a->run = b->run;
  if (b->unwritten_error)
    a->unwritten_error = b->unwritten_error;
  return copy_text(&a->exe, b->exe) || copy_text(&a->file, b->file) ? -ENOMEM : 0;
}

static int merge_member(struct ni_hang_member *a, const struct ni_hang_member *b, const uint16_t *map) {
  for (int k = 0; k < NI_KIND_COUNT; k++)
    if (ni_seq_set_merge(&a->recorded[k], &b->recorded[k]) < 0)
      return -ENOMEM;
  for (uint8_t i = 0; i < b->n_fin; i++)
    if (raise_func(a, map[b->fin[i].func], b->fin[i].next) < 0)
      return -ENOMEM;
  for (uint32_t i = 0; i < b->n_recent; i++) {
    struct ni_hang_op op = b->recent[i];
    rename_op(&op, map);
    if (ni_hang_finished(a, &op) < 0)
      return -ENOMEM;
  }
  for (uint32_t i = 0; i < b->n_open; i++) {
    struct ni_hang_op op = b->open[i];
    rename_op(&op, map);
    if (ni_hang_in_flight(a, &op) < 0)
      return -ENOMEM;
  }
  if (b->started_ns > a->started_ns || a->started[0] == NI_HANG_NONE) {
    memcpy(a->started, b->started, sizeof a->started);
    a->calls = b->calls;
    a->started_ns = b->started_ns;
  }
  ni_hang_raise(&a->open_ns, b->open_ns);
  ni_hang_raise(&a->active_ns, b->active_ns);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    ni_hang_raise(&a->passed_ns[k], b->passed_ns[k]);
  ni_hang_raise(&a->ended_ns, b->ended_ns);
  ni_hang_raise(&a->log_ns, b->log_ns);
  ni_hang_raise(&a->end_ns, b->end_ns);
  ni_hang_raise(&a->invisible, b->invisible);
  a->destroyed |= b->destroyed;
  a->dump |= b->dump;
  return ni_anchors_merge(&a->anchors, &b->anchors);
}

static void free_member(struct ni_hang_member *x) {
  for (int k = 0; k < NI_KIND_COUNT; k++)
    ni_seq_set_free(&x->recorded[k]);
  free(x->open);
  free(x->fin);
  free(x->recent);
  ni_anchors_free(&x->anchors);
  free(x);
}

int ni_hang_model_merge(struct ni_hang_model *a, const struct ni_hang_model *b) {
  uint16_t *map = calloc(b->n_names + 1, sizeof *map);
  uint32_t *process = calloc(b->n_processes + 1, sizeof *process);
  int e = map && process ? import_names(a, b, map) : -ENOMEM;
  for (size_t i = 0; i < b->n_processes && e == 0; i++) {
    const struct ni_who_process *p = &b->who.process[i];
    int64_t k = ni_hang_process_of(a, p->host, p->pid, p->start_ns);
    e = k < 0 ? (int)k : merge_process(&a->process[process[i] = (uint32_t)k], &b->process[i]);
  }
  for (size_t i = 0; i < b->n_members && e == 0; i++) {
    const struct ni_who_member *x = &b->who.member[i];
    const struct ni_ident id = ni_who_ident(x);
    int64_t k = ni_hang_member_of(a, process[x->process], &id, x->init_ns);
    if (k == -E2BIG)
      a->left_out++;
    else
      e = k < 0 ? (int)k : merge_member(a->member[k], b->member[i], map);
  }
  ni_add_counts(a->totals, b->totals);
  if (b->box_dir)
    a->box_dir = b->box_dir;
  if (b->foreign)
    a->foreign_uid = b->foreign_uid;
  a->foreign += b->foreign;
  if (copy_text(&a->first_bad, b->first_bad) < 0)
    e = -ENOMEM;
  free(map);
  free(process);
  return e;
}

/* ---- the end of reading ---- */

static int64_t first_call_key(const struct ni_hang_op *op) {
  return op->kind == NI_KIND_COLL ? op->func : op->root;
}
static uint64_t second_call_key(const struct ni_hang_op *op) {
  return op->kind == NI_KIND_COLL ? op->sn : op->func;
}

static int by_call(const void *a, const void *b) {
  const struct ni_hang_op *x = a, *y = b;
  if (x->kind != y->kind)
    return x->kind < y->kind ? -1 : 1;
  if (first_call_key(x) != first_call_key(y))
    return first_call_key(x) < first_call_key(y) ? -1 : 1;
  if (second_call_key(x) != second_call_key(y))
    return second_call_key(x) < second_call_key(y) ? -1 : 1;
  return x->rec_sn < y->rec_sn ? -1 : x->rec_sn > y->rec_sn;
}

void ni_hang_order_open(struct ni_hang_member *x) {
  if (x->n_open > 1)
    qsort(x->open, x->n_open, sizeof *x->open, by_call);
}

static bool precedes_key(const struct ni_hang_op *op, enum ni_kind kind, int64_t first, uint64_t second) {
  if (op->kind != kind)
    return op->kind < kind;
  return first_call_key(op) != first ? first_call_key(op) < first : second_call_key(op) < second;
}

const struct ni_hang_op *ni_hang_open_from(const struct ni_hang_member *x, enum ni_kind kind, int64_t first,
                                           uint64_t second) {
  size_t i;
  ni_array_search(i, x->n_open, precedes_key(&x->open[i], kind, first, second));
  return i < x->n_open && x->open[i].kind == kind ? &x->open[i] : NULL;
}

void ni_hang_model_free(struct ni_hang_model *m) {
  for (size_t i = 0; i < m->n_members; i++)
    free_member(m->member[i]);
  for (size_t i = 0; i < m->n_processes; i++) {
    free(m->process[i].exe);
    free(m->process[i].file);
  }
  for (size_t i = 1; i < m->n_names; i++)
    free(m->name[i]);
  free(m->name);
  free(m->process);
  free(m->member);
  ni_who_free(&m->who);
  ni_clocks_free(&m->clocks);
  free(m->first_bad);
  *m = (struct ni_hang_model){0};
}
