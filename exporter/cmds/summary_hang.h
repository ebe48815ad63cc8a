/*
 * What `hang` says of the logs of a summary. Main thread.
 *
 * Asked where the logs have operations that had not finished, or processes that have not said that they end.
 * Then the black boxes of these processes are asked, too, if they are on this machine: a process that was
 * killed, or that waits, has not written what it was in.
 */
#ifndef NI_SUMMARY_HANG_H
#define NI_SUMMARY_HANG_H

#include "exporter/model/sums/state.h"

/*
 * Fills hang, hang_verdict and stood_still; they stay empty where there is nothing to say. The account has
 * been judged. alone: no other process reads a part of the logs; otherwise no box is asked. 0 or -ENOMEM.
 */
int ni_summary_judge_hang(struct ni_run *r, struct ni_summary *s, bool alone);

#endif
