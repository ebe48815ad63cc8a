/*
 * The judgement of `summary`: tables of all ranks, causes, costs and sentences, into `finding`, `cost` and
 * `step` of the result.
 *
 * Where most ranks cannot be judged (logs without start times, no steps or steps that do not repeat,
 * several ranks in a process, records that were sampled or chosen by --coll, --comm or --sn) `by_own_time`
 * stays false and `why_durations` says why; findings.h then judges by durations. Threads: the main one,
 * which starts others; after ni_build_begin(), before ni_figures_sum(), which gives the segments back. 0,
 * -ENOMEM, -errno of the spill file.
 */
#ifndef NI_BLAME_JUDGE_H
#define NI_BLAME_JUDGE_H

#include "causes.h"

/*
 * keep: NULL, or where the tables are left for the caller (diff), who frees them with ni_blame_free(); else
 * they are freed here.
 */
int ni_judge_all(struct ni_run *r, struct ni_summary *s, struct ni_blame *keep);
/*
 * The steps of all ranks and the roles of communicators alone, of all operations, and nobody is judged:
 * b->rank[i].mark says what ends its steps. The caller frees b with ni_blame_free(), in any case.
 */
int ni_judge_steps(struct ni_run *r, struct ni_summary *s, struct ni_blame *b);
/* Do the rank's steps repeat? Where those of most ranks do not, durations judge. 0 or -ENOMEM. */
int ni_judge_repeat(const struct ni_blame_rank *o, bool *repeat);
/*
 * Ranks that are late together may wait for one of them: where the run without the delay of that one saves
 * half of what it saves without the delay of all, the cause becomes that rank's. 0 or -ENOMEM.
 */
int ni_judge_together(struct ni_blame *b, struct ni_causes *causes);
/*
 * A bin of s->step (bins + 1) in which no rank began anything begins with the next one, the last ones with
 * the end of the logs: findings say when they begin and end by these times.
 */
void ni_judge_fill_begins(struct ni_summary *s, uint32_t bins);

#endif
