#include "imported.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "format/line.h"

static const char *const datatypes[] = {"",
                                        "ncclInt8",
                                        "ncclUint8",
                                        "ncclInt32",
                                        "ncclUint32",
                                        "ncclInt64",
                                        "ncclUint64",
                                        "ncclFloat16",
                                        "ncclFloat32",
                                        "ncclFloat64",
                                        "ncclBfloat16",
                                        "ncclFloat8e4m3",
                                        "ncclFloat8e5m2"};
enum { DATATYPES = sizeof datatypes / sizeof *datatypes };

const char *ni_imported_datatype(uint8_t number) { return number < DATATYPES ? datatypes[number] : ""; }

uint8_t ni_imported_datatype_number(const char *name) {
  for (uint8_t i = 1; i < DATATYPES; i++)
    if (strcmp(datatypes[i], name) == 0)
      return i;
  return 0;
}

void ni_imported_init(struct ni_imported *m, const char *path) {
  *m = (struct ni_imported){.path = path,
                            .rank = -1,
                            .world = -1,
                            .nccl_version = -1,
                            .pid = -1,
                            .first_ns = INT64_MAX,
                            .last_ns = INT64_MIN};
}

void ni_imported_free(struct ni_imported *m) {
  free(m->op);
  free(m->comm);
  free(m->step);
  ni_index_free(&m->at_hash);
  ni_imported_init(m, m->path);
}

int ni_imported_add_comm(struct ni_imported *m, uint64_t hash, uint32_t *comm) {
  if (m->n_comms == NI_IMPORTED_COMMS)
    return -EFBIG;
  if (!ni_array_room(m->comm, m->n_comms, m->cap_comms))
    return -ENOMEM;
  *comm = (uint32_t)m->n_comms;
  m->comm[m->n_comms++] = (struct ni_imported_comm){.hash = hash, .gpu = -1};
  return 0;
}

int ni_imported_comm(struct ni_imported *m, uint64_t hash, bool *is_new, uint32_t *comm) {
  uint32_t k;
  *is_new = false;
  for (size_t at = 0; (k = ni_index_next(&m->at_hash, ni_hash(0, hash), &at)) != NI_INDEX_NONE;)
    if (m->comm[k].hash == hash) {
      *comm = k;
      return 0;
    }
  int e = ni_imported_add_comm(m, hash, comm);
  if (e < 0)
    return e;
  *is_new = true;
  return ni_index_add(&m->at_hash, ni_hash(0, hash), *comm);
}

unsigned ni_imported_func(struct ni_imported *m, const char *name) {
  for (unsigned i = 0; i < m->n_funcs; i++)
    if (strcmp(m->funcs[i], name) == 0)
      return i;
  if (m->n_funcs >= NI_IMPORTED_FUNCS - 1)
    name = "Other";
  if (m->n_funcs == NI_IMPORTED_FUNCS)
    return NI_IMPORTED_FUNCS - 1;
  snprintf(m->funcs[m->n_funcs], sizeof m->funcs[0], "%s", name);
  return m->n_funcs++;
}

int ni_imported_op(struct ni_imported *m, const struct ni_imported_op *op) {
  if (m->n == NI_IMPORTED_OPS)
    return -EFBIG;
  if (!ni_array_room(m->op, m->n, m->cap))
    return -ENOMEM;
  m->op[m->n++] = *op;
  return 0;
}

int ni_imported_step(struct ni_imported *m, int64_t ns, uint32_t number) {
  if (m->n_steps == NI_IMPORTED_STEPS)
    return -EFBIG;
  if (!ni_array_room(m->step, m->n_steps, m->cap_steps))
    return -ENOMEM;
  m->step[m->n_steps++] = (struct ni_imported_step){ns, number};
  return 0;
}

static int compare_by_start(const void *a, const void *b) {
  const struct ni_imported_op *x = a, *y = b;
  if (x->start_ns != y->start_ns)
    return x->start_ns < y->start_ns ? -1 : 1;
  if (x->dur_ns != y->dur_ns)
    return x->dur_ns < y->dur_ns ? -1 : 1;
  return x->comm < y->comm ? -1 : x->comm > y->comm;
}

static int compare_by_begin(const void *a, const void *b) {
  const struct ni_imported_step *x = a, *y = b;
  if (x->ns != y->ns)
    return x->ns < y->ns ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

void ni_imported_order(struct ni_imported *m) {
  bool started = false;
  for (size_t i = 0; i < m->n && !started; i++)
    started = m->op[i].start_ns != NI_IMPORTED_NEVER;
  if (started)
    qsort(m->op, m->n, sizeof *m->op, compare_by_start);
  if (m->n_steps)
    qsort(m->step, m->n_steps, sizeof *m->step, compare_by_begin);
  NI_EACH(struct ni_imported_op, op, m->op, m->n) {
    const bool launched = op->enqueue_ns != NI_IMPORTED_NEVER;
    const int64_t from = launched && op->enqueue_ns < op->start_ns ? op->enqueue_ns : op->start_ns;
    const int64_t to = op->start_ns + (int64_t)op->dur_ns;
    size_t i;
    if (op->start_ns == NI_IMPORTED_NEVER)
      continue;
    ni_array_search(i, m->n_steps, m->step[i].ns <= op->enqueue_ns);
    op->step = launched && i > 0 ? m->step[i - 1].number + 1 : 0;
    if (from < m->first_ns)
      m->first_ns = from;
    if (to > m->last_ns)
      m->last_ns = to;
  }
  if (!started)
    m->first_ns = m->last_ns = m->written_ns;
}
