/*
 * What ranks of MPI say to each other: bytes from rank 0 to all, sections of partial results (partial.h) from
 * one to another.
 *
 * A section is a head of two numbers and its bytes, cut below 1 GiB, since MPI counts by int. MPI itself ends
 * the program when a rank dies or a message cannot be sent. Main thread.
 */
#ifndef NI_MPI_LINK_H
#define NI_MPI_LINK_H

#include "exporter/model/sums/team/team.h"

int ni_mpi_rank(void);
int ni_mpi_size(void);
/*
 * w of rank 0 comes to all others, as one that loads; *hold is what its bytes lie in, to be freed. 0 or
 * -ENOMEM.
 */
int ni_mpi_share(struct ni_wire *w, uint8_t **hold);
struct ni_team ni_mpi_team(void);
/* The worst of all ranks' errors (the least number); all get it. */
int ni_mpi_worst(int e);
/* The earliest and the latest of all ranks. */
void ni_mpi_times(int64_t *first, int64_t *last);

/* The other end of a stream of sections. */
struct ni_mpi_peer {
  int rank;
  struct ni_bytes got; /* what came last; at is freed by the caller */
};
int ni_mpi_put(void *peer, enum ni_section id, const void *bytes, size_t n);
int ni_mpi_get(void *peer, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n);

#endif
