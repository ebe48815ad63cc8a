/*
 * Peer groups: who does the same work, and which transfers are compared with each other.
 *
 * Ranks are alike when they do the same work in a step (pass.h, signature) and hold the same place in the
 * pipeline: ranks that communicators join, the one of all ranks apart. Where no messages go between these
 * sets they are no stages, and sets with the same work are one. Links are alike that have as many ranks, are
 * within one host or not, and whose operations are as large and as many in a step. Own time and transfers of
 * a bin are compared with the lower quartile of their peers, since half of these can be slow.
 *
 * Threads: the main one, after all passes. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_PEER_GROUPS_H
#define NI_BLAME_PEER_GROUPS_H

#include "exporter/model/sums/ranks/blame.h"

/*
 * Steps of all ranks get the numbers of the job, and bins one width; classes of ranks; links with their
 * classes and transfers.
 */
int ni_group_peers(struct ni_blame *b);

void ni_blame_free(struct ni_blame *b);
/* Links, classes and bins alone: another run of the folder is judged next. */
void ni_blame_free_links(struct ni_blame *b);
/* What a rank's tables hold. */
void ni_blame_free_rank(struct ni_blame_rank *o);
/* Empties a rank's tables, to be filled once more, now that it is known how many steps there are. */
void ni_blame_reset_rank(struct ni_blame_rank *o, uint64_t ops);

#endif
