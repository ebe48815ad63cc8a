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
