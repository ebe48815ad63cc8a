/*
 * What logs may not have: whether all that the ranks of a job wait for is recorded.
 *
 * The ranks of a job wait for each other. Where nothing that is recorded joins them all, or the job states
 * more ranks than these communicators have, others communicate besides, in communicators that are not in the
 * logs; between its operations a rank can wait in one of them. Ranks that are each other's neighbours
 * communicate most, and wait alike. So of communicators whose ranks are not neighbours nobody knows who was
 * late: it may have been a rank between them.
 *
 * Threads: the main one, once seats are there (evidence/seats.h). Failure: -ENOMEM.
 */
#ifndef NI_WORK_JOINED_H
#define NI_WORK_JOINED_H

#include "exporter/model/sums/state.h"

/* Fills may_wait_unseen of all processes and neighbours of all communicators. */
int ni_joined_find(const struct ni_run *r, struct ni_summary *s);

#endif
