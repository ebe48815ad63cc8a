/*
 * What comes and goes: pauses of ranks, with a period and without, and bursts in which they compute longer.
 *
 * A *pause* is a struct ni_blame_incident: the GPU of a rank was idle for longer than is usual in that place
 * of the step. Pauses of one step are one *moment*. Moments of a rank that are about as long and as far apart
 * in steps are *periodic*: garbage collection, a checkpoint, an evaluation. Ranks with the same period that
 * pause in the same steps do so for one reason and are one cause: most ranks of a host are the host, else
 * they are named one by one. Before that, what nearly all ranks do in the same step is the job's alone: the
 * first steps, an evaluation. It is named if it is periodic. What is left is compared with the
 * pauses of other hosts' ranks, by number and by length (with one's own host where there is one).
 *
 * An *evaluation* that the logs hold is no pause: nearly all ranks do far more in that step, and it takes
 * longer.
 *
 * A *burst* is some bins in a row in which a rank's own time is longer by a sixth or more, while it is as
 * usual between bursts; or one of many single bins, none of them a pause. What lasts is lateness
 * (late_ranks.c); what comes once is an episode of it.
 *
 * What they cost is read off the steps themselves (ni_count_clock_costs() of causes.h): blocks that the
 * replay saw may hold none of a few pauses.
 *
 * Periodic work is a note where it takes SPELLS_NOTE_US or more (nobody collects garbage for half a second, a
 * checkpoint takes seconds), where all ranks do it, or where it comes in the same place of the step each
 * time, always as many steps apart: what the program does each so many steps has its place there, a
 * collection comes where memory happens to run out, a step earlier or later. Else it is a fault. So it is
 * where all ranks of one host do it and nobody else: a loader that is too slow shows only where nothing is
 * launched ahead, as each so many steps, when the program looks at the loss.
 *
 * Threads: the main one. Ownership: causes own what they hold. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_SPELLS_H
#define NI_SUMMARY_SPELLS_H

#include "exporter/model/sums/blame/causes.h"

#define NI_SPELLS_NOTE_US 4.5e5f /* half a second, less what a GPU still had to do */
/* of the run: few pauses, but long ones, are named from there on */
#define NI_SPELLS_LONG_COST 1e-2
#define NI_SPELLS_UNEVEN_LEAST 4 /* steps that have more to do than others */
#define NI_SPELLS_COST 2e-3      /* of the run: periodic work is */

struct ni_spell_moment {
  uint32_t step;
  float us;
  uint32_t in_step; /* before that operation of the rank in the step: of the longest pause */
};

struct ni_period {
  uint32_t steps;    /* 0: there is none */
  uint32_t first, n; /* step of the first moment; moments */
  float us;          /* mean length */
  /* always so many steps: the program counts them. A collection comes a step earlier or later */
  bool exact;
};

/* at: moments of a rank by step. in: set for those that belong to the period. */
struct ni_period ni_find_period(const struct ni_spell_moment *at, uint32_t n, bool *in);

struct ni_bursts {
  uint32_t n, bins; /* bursts; bins in them. n 0: there are none */
  float area;       /* sum of x over bins in a row that are as long, whether these are bursts or not */
  float excess;     /* in them, mean of x */
};
/*
 * Bursts are some bins in a row. Where there are none, so are single bins, if there are some: input that
 * takes longer to compute, a host that has something else to do. A bin alone is more often chance.
 */
enum ni_burst_shape { NI_BURSTS_IN_A_ROW, NI_BURSTS_OF_ONE, NI_BURST_SHAPES };
/*
 * x: own time of each bin beyond that of the peers, as a part of what is usual; NAN: nothing. hit: `bins` of
 * them, set for bins of bursts.
 */
struct ni_bursts ni_find_bursts(const float *x, uint32_t bins, float noise, enum ni_burst_shape shape,
                                bool *hit);

/* Pauses of all ranks; periodic work first. */
int ni_find_pauses(const struct ni_blame *b, struct ni_causes *out);
/* After the pauses: steps with far more operations of all ranks, each so many steps (evaluations.c). */
int ni_find_evaluations(const struct ni_blame *b, struct ni_causes *out);
/* Do all links of the cause touch this host? */
bool ni_cause_touches_host(const struct ni_blame *b, const struct ni_cause *c, uint32_t host);
/*
 * Makes congestion a part of the pauses of a host: all its links touch the host, and nearly all of its bins
 * are such in which the host pauses, far more than chance would make.
 */
void ni_find_busy_host(const struct ni_blame *b, struct ni_causes *causes);
/*
 * Removes a host whose CPU calls slowly now and then where one of its ranks alone pauses, or computes longer,
 * in the same bins: the others there wait for that one, and a CPU that has launched as far ahead as it may
 * calls when its GPU goes on. After all ranks are named.
 */
void ni_drop_waiting_hosts(const struct ni_blame *b, struct ni_causes *causes);
/*
 * Is what a rank does in a step, as long as a pause, a wait that is not in the logs? Where waits may be
 * missing there it is what most ranks of its team do together between their operations: had one of them begun
 * it, the others would have waited within their operations. step: as all ranks number it.
 */
bool ni_is_team_wait(const struct ni_blame *b, uint32_t rank, uint32_t step);
/*
 * Leaves of steps that have more to do than others those that nothing else explains, and removes the cause
 * where they are few. After all others are found.
 */
void ni_settle_uneven_steps(const struct ni_blame *b, struct ni_causes *causes);
/* Is it told as a note? */
bool ni_spells_is_note(const struct ni_cause *c);

#endif
