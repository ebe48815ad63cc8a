/*
 * Calls: how long CPUs take from one call of NCCL to the next (struct ni_blame_cell, call_us).
 *
 * A CPU that is slow, or that something else uses, calls more slowly than others that do the same work,
 * whether its GPU has to wait for it or not: most programs launch ahead. So calls say whose CPU it is, and
 * what the GPUs and the steps lose says what it costs. A bin's value is a lower quartile, which calls that
 * wait for a GPU do not reach.
 *
 * Threads: the main one. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_CALLS_H
#define NI_BLAME_CALLS_H

#include "exporter/model/sums/blame/causes.h"

/* A CPU is slow if it takes so many times as long as others with the same work, */
#define NI_CALLS_SLOW 1.35f
/* and is so many times as far from them as these are from each other (as NI_CAUSE_APART). */
#define NI_CALLS_APART 5.0f
/* So slow CPUs of a whole host are a note where they cost next to nothing. */
#define NI_CALLS_NOTED 1.5f
/* It takes as long as they do where it is no further from the one in the middle of them, as a share. */
#define NI_CALLS_ALIKE 0.03f
/* It is busy in bins in which it takes so many times as long as it usually does. */
#define NI_CALLS_BUSY 1.5f

/*
 * times: by rank, how many times as long its CPU takes as those that do the same work, on other hosts where
 * there are two such ranks; 0: it is not slow by that. Most ranks of a host have to be slow, or else one of
 * its ranks alone is. usual_us: by rank, of its bins the one in the middle; NAN: too few are known.
 */
int ni_calls_compare(const struct ni_blame *b, float *usual_us, float *times);

/*
 * The CPU of this rank takes as long from call to call as those that do the same work on other hosts. Then
 * kernels that begin as soon as they are launched do not say that it is slow: where CPUs pace the job all
 * ranks have them, and one of them has most. false: it does not, or there are too few others. usual_us: of
 * ni_calls_compare(); scratch: one for each rank.
 */
bool ni_calls_are_alike(const struct ni_blame *b, const float *usual_us, uint32_t rank, float *scratch);

/*
 * The CPU of this rank is not slow by how long those of other hosts take from call to call, whatever their
 * work is: all layers of a pipeline call alike. For who has no peers elsewhere. false: it is, or that is not
 * known. usual_us, scratch: as above.
 */
bool ni_calls_are_usual(const struct ni_blame *b, const float *usual_us, uint32_t rank, float *scratch);

/*
 * Where steps differ, as requests of inference do: fills `calls` of the processes. What they do
 * is not compared, so all of them are taken to do the same work.
 */
int ni_calls_tell(const struct ni_blame *b, struct ni_summary *s);

/*
 * Of a host whose CPU is slow: fills pauses_at. Where there are some, fills most_us as well, by these pauses
 * and by what is idle before late launches: the blocks of the replay may have more than their share of the
 * first steps.
 */
int ni_calls_find_pauses(const struct ni_blame *b, struct ni_cause *c);

/*
 * Hosts whose CPUs are busy now and then: a SLOW_HOST with bins. Call it after the pauses are found: those of
 * a whole host in the same bins are one cause with it.
 */
int ni_find_busy_cpus(const struct ni_blame *b, struct ni_causes *out);

#endif
