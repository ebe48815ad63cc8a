#include "link.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

enum { HEAD = 1, BODY = 2, SLACK = 96 };
#define CHUNK ((size_t)1 << 29) /* bytes of a message */

int ni_mpi_rank(void) {
  int k;
  MPI_Comm_rank(MPI_COMM_WORLD, &k);
  return k;
}

int ni_mpi_size(void) {
  int n;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}

static int piece(uint64_t left) { return (int)(left < CHUNK ? left : CHUNK); }

int ni_mpi_share(struct ni_wire *w, uint8_t **hold) {
  uint64_t n = w->n;
  bool sends = ni_mpi_rank() == 0;
  MPI_Bcast(&n, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  uint8_t *bytes = sends ? w->bytes : malloc(n + 1);
  int e = ni_mpi_worst(bytes || !n ? 0 : -ENOMEM);
  for (size_t at = 0; e == 0 && at < n; at += CHUNK)
    MPI_Bcast(bytes + at, piece(n - at), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (sends)
    return e;
  *hold = bytes;
  *w = ni_wire_load(bytes, e == 0 ? n : 0);
  return e;
}

static void reduce(uint64_t *v, size_t n, MPI_Op op) {
  enum { MOST = CHUNK / sizeof *v };
  for (size_t at = 0; at < n; at += MOST)
    MPI_Allreduce(MPI_IN_PLACE, v + at, (int)(n - at < MOST ? n - at : MOST), MPI_UINT64_T, op,
                  MPI_COMM_WORLD);
}

static void sum(uint64_t *v, size_t n) { reduce(v, n, MPI_SUM); }

static void least(uint64_t *v, size_t n) { reduce(v, n, MPI_MIN); }

/*
 * Number and length first, then both bodies in pieces, as many as the longer one has. -1: to nobody, from
 * nobody.
 */
static int exchange(int to, uint64_t id, const uint8_t *bytes, size_t n, int from, uint64_t *got_id,
                    struct ni_bytes *got) {
  const int dest = to < 0 ? MPI_PROC_NULL : to, source = from < 0 ? MPI_PROC_NULL : from;
  const uint64_t mine[2] = {id, to < 0 ? 0 : n};
  uint64_t theirs[2] = {0};
  MPI_Sendrecv(mine, 2, MPI_UINT64_T, dest, HEAD, theirs, 2, MPI_UINT64_T, source, HEAD, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  if (from >= 0 && !(got->at = calloc(1, theirs[1] + SLACK)))
    return -ENOMEM;
  if (from >= 0)
    *got_id = theirs[0], got->n = theirs[1];
  for (size_t at = 0; at < mine[1] || at < theirs[1]; at += CHUNK) {
    const uint64_t out = at < mine[1] ? mine[1] - at : 0, in = at < theirs[1] ? theirs[1] - at : 0;
    MPI_Sendrecv(out ? bytes + at : NULL, piece(out), MPI_BYTE, out ? dest : MPI_PROC_NULL, BODY,
                 in ? got->at + at : NULL, piece(in), MPI_BYTE, in ? source : MPI_PROC_NULL, BODY,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return 0;
}

static int swap(int to, const struct ni_wire *w, int from, struct ni_bytes *got) {
  return exchange(to, 0, to < 0 ? NULL : w->bytes, to < 0 ? 0 : w->n, from, &(uint64_t){0}, got);
}

struct ni_team ni_mpi_team(void) {
  return (struct ni_team){ni_mpi_rank(), ni_mpi_size(), swap, ni_mpi_share, sum, least};
}

int ni_mpi_worst(int e) {
  int worst;
  MPI_Allreduce(&e, &worst, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return worst;
}

void ni_mpi_times(int64_t *first, int64_t *last) {
  int64_t mine[2] = {*first, -*last}, all[2];
  MPI_Allreduce(mine, all, 2, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  *first = all[0];
  *last = -all[1];
}

int ni_mpi_put(void *peer, enum ni_section id, const void *bytes, size_t n) {
  return exchange(((struct ni_mpi_peer *)peer)->rank, id, bytes, n, -1, NULL, NULL);
}

int ni_mpi_get(void *peer, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n) {
  struct ni_mpi_peer *p = peer;
  uint64_t number = 0;
  free(p->got.at);
  p->got = (struct ni_bytes){0};
  int e = exchange(-1, 0, NULL, 0, p->rank, &number, &p->got);
  *id = (enum ni_section)number;
  *bytes = p->got.at;
  *n = p->got.n;
  return e;
}
