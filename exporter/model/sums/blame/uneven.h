/*
 * Who has more to do than its peers: more bytes to exchange, and so more to compute. That is no slow rank.
 *
 * Bytes of a rank are those of a step, by kind of slot: the messages of all its peers together, and the
 * collectives of each shape (pass.h). A rank has more to do if one of these has more bytes than the lower
 * quartile of its peers has. Where all ranks that some communicators join have more to do, they are a part of
 * the job with a share of the batch of its own: a replica.
 *
 * Pure, but for memory. Threads: the main one, after likeness (peer_groups.h). Failure: -ENOMEM.
 */
#ifndef NI_BLAME_UNEVEN_H
#define NI_BLAME_UNEVEN_H

#include "causes.h"

/* A rank has more to do if it has this share of bytes more than its peers, */
#define NI_UNEVEN_BYTES 0.04f
/* or, in a replica whose ranks agree on it, this share, */
#define NI_UNEVEN_REPLICA 0.02f
/* and if it is so many times as far from its peers as these are from each other. */
#define NI_UNEVEN_APART 6.0f

/*
 * more: by rank: the share of bytes that it has more than its peers; 0: none, or not to be told from chance.
 */
int ni_uneven_find(const struct ni_blame *b, float *more);

/*
 * part: by rank of those marked in `uneven`: the least rank of its replica. Others: NI_BLAME_NONE. Cannot
 * fail.
 */
void ni_uneven_find_replicas(const struct ni_blame *b, const bool *uneven, uint32_t *part);

#endif
