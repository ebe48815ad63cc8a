#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

/* Longer beginnings first. */
static const struct {
  const char *begin;
  enum ni_func func;
} collectives[] = {{"allreduce", NI_FUNC_ALLREDUCE},
                   {"all_reduce", NI_FUNC_ALLREDUCE},
                   {"allgather", NI_FUNC_ALLGATHER},
                   {"all_gather", NI_FUNC_ALLGATHER},
                   {"reduce_scatter", NI_FUNC_REDUCESCATTER},
                   {"reducescatter", NI_FUNC_REDUCESCATTER},
                   {"broadcast", NI_FUNC_BROADCAST},
                   {"reduce", NI_FUNC_REDUCE},
                   {"all_to_all", NI_FUNC_ALLTOALL},
                   {"alltoall", NI_FUNC_ALLTOALL},
                   {"gather", NI_FUNC_GATHER},
                   {"scatter", NI_FUNC_SCATTER},
                   {"send", NI_FUNC_SEND},
                   {"recv", NI_FUNC_RECV}};

enum ni_func ni_kineto_collective(const char *name) {
  name += *name == '_';
  for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
    if (strncmp(name, collectives[i].begin, strlen(collectives[i].begin)) == 0)
      return collectives[i].func;
  return NI_FUNC_OTHER;
}

static const struct {
  const char *name, *nccl;
  uint32_t bytes;
} datatypes[] = {{"Float", "ncclFloat32", 4},
                 {"BFloat16", "ncclBfloat16", 2},
                 {"Half", "ncclFloat16", 2},
                 {"Double", "ncclFloat64", 8},
                 {"Int", "ncclInt32", 4},
                 {"Long", "ncclInt64", 8},
                 {"Byte", "ncclUint8", 1},
                 {"Char", "ncclInt8", 1},
                 {"Bool", "ncclUint8", 1},
                 {"UInt32", "ncclUint32", 4},
                 {"UInt64", "ncclUint64", 8},
                 {"Float8_e4m3fn", "ncclFloat8e4m3", 1},
                 {"Float8_e5m2", "ncclFloat8e5m2", 1},
                 {"ComplexFloat", "", 8},
                 {"ComplexDouble", "", 16},
                 {"Short", "", 2},
                 {"Float8_e4m3fnuz", "", 1},
                 {"Float8_e5m2fnuz", "", 1}};

const char *ni_kineto_datatype(const char *name, uint32_t *bytes) {
  for (size_t i = 0; i < sizeof datatypes / sizeof *datatypes; i++)
    if (strcmp(datatypes[i].name, name) == 0) {
      *bytes = datatypes[i].bytes;
      return datatypes[i].nccl;
    }
  *bytes = 0;
  return "";
}

int32_t ni_kineto_release(const char *text) {
  unsigned long part[3] = {0};
  char *end = (char *)(uintptr_t)text;
  for (int i = 0; i < 3; i++) {
    if (!isdigit((unsigned char)*end))
      return -1;
    part[i] = strtoul(end, &end, 10);
    if (part[i] > 99 || (i < 2 && *end++ != '.'))
      return -1;
  }
  return (int32_t)(part[0] * 10000 + part[1] * 100 + part[2]);
}

static int compare_by_rank(const void *a, const void *b) {
  const struct ni_kineto_seat *x = a, *y = b;
  return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int ni_kineto_ranks(struct ni_kineto_ranks *r, const char *text, int64_t size) {
  size_t cap = 0, behind = 0;
  bool cut = false;
  *r = (struct ni_kineto_ranks){0};
  if (size < 0 || size > INT32_MAX)
    return 0;
  for (const char *p = text; *p;) {
    if (strncmp(p, "...", 3) == 0) {
      cut = true;
      behind = r->n;
    }
    if (!isdigit((unsigned char)*p)) {
      p += 1 + 2 * (strncmp(p, "...", 3) == 0);
      continue;
    }
    char *end;
    const unsigned long rank = strtoul(p, &end, 10);
    p = end;
    if (rank > INT32_MAX || r->n >= (size_t)size)
      continue;
    if (!ni_array_room(r->seat, r->n, cap))
      return -ENOMEM;
    r->seat[r->n] = (struct ni_kineto_seat){(int32_t)rank, (int32_t)r->n};
    r->n++;
  }
  /* Those behind the dots are the last ones of the group. */
  for (size_t i = behind; cut && i < r->n; i++)
    r->seat[i].index = (int32_t)((size_t)size - (r->n - i));
  if (r->n)
    qsort(r->seat, r->n, sizeof *r->seat, compare_by_rank);
  return 0;
}

int32_t ni_kineto_index(const struct ni_kineto_ranks *r, int64_t rank) {
  size_t i;
  ni_array_search(i, r->n, r->seat[i].rank < rank);
  return i < r->n && r->seat[i].rank == rank ? r->seat[i].index : -1;
}
