#include "link.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

enum { HEAD = 1, BODY = 2, SLACK = 64 };
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

int ni_mpi_share(struct ni_wire *w, uint8_t **hold) {
  uint64_t n = w->n;
  bool sends = ni_mpi_rank() == 0;
  MPI_Bcast(&n, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  uint8_t *bytes = sends ? w->bytes : malloc(n + 1);
  int e = ni_mpi_worst(bytes || !n ? 0 : -ENOMEM);
  for (size_t at = 0; e == 0 && at < n; at += CHUNK)
    MPI_Bcast(bytes + at, (int)(n - at < CHUNK ? n - at : CHUNK), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (sends) return e;
  *hold = bytes;
  *w = ni_wire_load(bytes, e == 0 ? n : 0);
  return e;
}

static void sum(uint64_t *v, size_t n) {
  for (size_t at = 0; at < n; at += CHUNK / sizeof *v)
    MPI_Allreduce(MPI_IN_PLACE, v + at, (int)(n - at < CHUNK / sizeof *v ? n - at : CHUNK / sizeof *v), MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void least(uint64_t *v, size_t n) {
  for (size_t at = 0; at < n; at += CHUNK / sizeof *v)
    MPI_Allreduce(MPI_IN_PLACE, v + at, (int)(n - at < CHUNK / sizeof *v ? n - at : CHUNK / sizeof *v), MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
}

/* Lengths first, then both bodies in pieces, as many as the longer one has. */
static int swap(int to, const struct ni_wire *w, int from, struct ni_bytes *got) {
  const int dest = to < 0 ? MPI_PROC_NULL : to, source = from < 0 ? MPI_PROC_NULL : from;
  uint64_t n = to < 0 ? 0 : w->n, m = 0;
  MPI_Sendrecv(&n, 1, MPI_UINT64_T, dest, HEAD, &m, 1, MPI_UINT64_T, source, HEAD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (from >= 0 && !(got->at = calloc(1, m + SLACK))) return -ENOMEM;
  if (from >= 0) got->n = m;
  for (size_t at = 0; at < n || at < m; at += CHUNK) {
    const size_t out = at < n ? n - at : 0, in = at < m ? m - at : 0;
    MPI_Sendrecv(out ? w->bytes + at : NULL, (int)(out < CHUNK ? out : CHUNK), MPI_BYTE, out ? dest : MPI_PROC_NULL, BODY,
                 in ? got->at + at : NULL, (int)(in < CHUNK ? in : CHUNK), MPI_BYTE, in ? source : MPI_PROC_NULL, BODY, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  return 0;
}

struct ni_team ni_mpi_team(void) { return (struct ni_team){ni_mpi_rank(), ni_mpi_size(), swap, ni_mpi_share, sum, least}; }

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
  const struct ni_mpi_peer *p = peer;
  const uint64_t head[2] = {id, n};
  MPI_Send(head, 2, MPI_UINT64_T, p->rank, HEAD, MPI_COMM_WORLD);
  for (size_t at = 0; at < n; at += CHUNK)
    MPI_Send((const uint8_t *)bytes + at, (int)(n - at < CHUNK ? n - at : CHUNK), MPI_BYTE, p->rank, BODY, MPI_COMM_WORLD);
  return 0;
}

int ni_mpi_get(void *peer, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n) {
  struct ni_mpi_peer *p = peer;
  uint64_t head[2];
  (void)r;
  MPI_Recv(head, 2, MPI_UINT64_T, p->rank, HEAD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!ni_array_room(p->bytes, head[1] + SLACK, p->cap) || !p->bytes) return -ENOMEM;
  for (size_t at = 0; at < head[1]; at += CHUNK)
    MPI_Recv(p->bytes + at, (int)(head[1] - at < CHUNK ? head[1] - at : CHUNK), MPI_BYTE, p->rank, BODY, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  memset(p->bytes + head[1], 0, SLACK);
  *id = (enum ni_section)head[0];
  *bytes = p->bytes;
  *n = head[1];
  return 0;
}
