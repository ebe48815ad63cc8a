#include "recover_gather.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"

/* Hash 0 stands for the whole process in a log. */
static bool sound(const struct ni_ident *id) {
  return id->comm_hash && id->n_ranks > 0 && id->rank >= 0 && id->rank < id->n_ranks && id->nnodes >= 0;
}

static int gather_comms(struct ni_recover_job *j) {
  struct ni_box_comm c;
  while (ni_box_comm_at(j->b, j->n, &c)) j->n++;
  j->life = calloc(j->n + 1, sizeof *j->life);
  if (!j->life) return -ENOMEM;
  for (size_t i = 0; i < j->n; i++) {
    struct ni_recover_life *l = &j->life[i];
    (void)ni_box_comm_at(j->b, i, &l->c);
    l->index = i;
    if (l->c.phase == 0) continue;
    if (!sound(&l->c.id) || l->c.init_ns > INT64_MAX) {
      j->out->damaged++;
      l->c.phase = 0;
      continue;
    }
    l->log = ni_log_state_find(j->log, l->c.id.comm_hash, l->c.id.rank, l->c.init_ns);
    if (l->log && l->log->final) l->c.phase = 0; /* killed between its last write and the release of its page */
    j->out->communicators += l->c.phase != 0;
  }
  return 0;
}

static int keep(struct ni_recover_list *l, struct ni_recover_ref op) {
  if (!ni_array_room(l->op, l->n, l->cap)) return -ENOMEM;
  l->op[l->n++] = op;
  return 0;
}

static int gather_op(const struct ni_box_op *op, void *arg) {
  struct ni_recover_job *j = arg;
  if (op->is == NI_BOX_SLOT_FREE || op->is == NI_BOX_SLOT_RESTING) return 0;
  int64_t i = ni_box_comm_of(j->b, op);
  if (i < 0 || j->life[i].c.phase == 0) return 0;
  struct ni_recover_life *l = &j->life[i];
  struct ni_recover_ref ref = {op->rec_sn, op->ticks_start, op->slot, (uint8_t)op->kind, false};
  if (op->is == NI_BOX_SLOT_CALLED) return j->live || op->bytes > INT64_MAX ? 0 : keep(&l->called, ref);
  if (op->sn > INT64_MAX || op->rec_sn >= l->c.kind[op->kind].started || op->rec_sn > INT64_MAX || op->bytes > INT64_MAX) {
    j->out->damaged++;
    return 0;
  }
  if (op->is == NI_BOX_SLOT_IN_FLIGHT) return keep(&l->in_flight, ref);
  bool given_up = op->is == NI_BOX_SLOT_GIVEN_UP;
  const struct ni_seq_set *has = !l->log ? NULL : given_up ? &l->log->kind[op->kind].incomplete : &l->log->kind[op->kind].records;
  if (has && ni_seq_set_has(has, op->rec_sn)) return 0;
  return keep(given_up ? &l->given_up : &l->finished, ref);
}

/* Its operation may have come since the dump thread looked at the call: then it is no collective of its own. */
static int gather_call(const struct ni_box_op *op, void *arg) {
  struct ni_recover_job *j = arg;
  int64_t i = op->src == NI_SRC_EVENT && op->kind == NI_KIND_COLL ? ni_box_comm_of(j->b, op) : -1;
  uint64_t call;
  if (i < 0 || !j->life[i].called.n || !ni_box_call_of(&j->life[i].c, op, &call)) return 0;
  return ni_seq_set_add(&j->life[i].had_one, call);
}

static int by_number(const void *a, const void *b) {
  const struct ni_recover_ref *x = a, *y = b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  return x->rec_sn < y->rec_sn ? -1 : x->rec_sn > y->rec_sn;
}

/* In order of numbers; a number that comes twice in a box is damage, and comes once into the log. */
void ni_recover_sort(struct ni_recover_job *j, struct ni_recover_list *l) {
  size_t kept = 0;
  if (l->n > 1) qsort(l->op, l->n, sizeof *l->op, by_number);
  for (size_t i = 0; i < l->n; i++) {
    if (kept && by_number(&l->op[kept - 1], &l->op[i]) == 0) j->out->damaged++;
    else l->op[kept++] = l->op[i];
  }
  l->n = kept;
}

static int by_start(const void *a, const void *b) {
  const struct ni_recover_ref *x = a, *y = b;
  if (x->sn != y->sn) return x->sn < y->sn ? -1 : 1; /* ticks_start */
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* As at a process's exit: their groups are over, so no kernel of theirs will come, and they take the next numbers. */
static int number_called(const struct ni_recover_job *j, struct ni_recover_life *l) {
  int e = 0;
  if (l->called.n > 1) qsort(l->called.op, l->called.n, sizeof *l->called.op, by_start);
  for (size_t i = 0; e == 0 && i < l->called.n; i++) {
    struct ni_recover_ref ref = l->called.op[i];
    struct ni_box_op op;
    ni_box_op_at(j->b, ref.slot, &op);
    uint64_t *sn = &l->c.api_sn[ni_func_from_name(op.func)], call;
    if (!ni_box_call_of(&l->c, &op, &call) || ni_seq_set_has(&l->had_one, call)) continue;
    if (*sn > INT64_MAX || l->c.kind[NI_KIND_COLL].started > INT64_MAX) continue;
    ref.sn = (*sn)++;
    ref.rec_sn = l->c.kind[NI_KIND_COLL].started++;
    ref.numbered = true;
    e = keep(&l->finished, ref);
  }
  return e;
}

int ni_recover_gather(struct ni_recover_job *j) {
  int e = gather_comms(j);
  if (e == 0) e = ni_box_each_op(j->b, gather_op, j);
  bool called = false;
  for (size_t i = 0; e == 0 && i < j->n; i++) called |= j->life[i].called.n > 0;
  if (called) e = ni_box_each_op(j->b, gather_call, j);
  for (size_t i = 0; e == 0 && i < j->n; i++) e = number_called(j, &j->life[i]);
  return e;
}

void ni_recover_gather_free(struct ni_recover_job *j) {
  for (size_t i = 0; j->life && i < j->n; i++) {
    free(j->life[i].finished.op);
    free(j->life[i].in_flight.op);
    free(j->life[i].given_up.op);
    free(j->life[i].called.op);
    ni_seq_set_free(&j->life[i].had_one);
  }
  free(j->life);
}
