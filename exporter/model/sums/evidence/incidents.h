/*
 * Outliers by cause: of the delayed operations one entry for each incident, with who began it.
 *
 * An operation's late rank was late since it paused before it (pass.h), or since it had waited for one that
 * did. Pauses are known by each rank's own clock. So that those of other hosts can be compared, a moment is
 * told by the bin it lies in and the time since its rank began that bin, as all ranks begin a step together
 * but for what delayed them. An operation is put down to the pause that ended last before it, a step before
 * it at most, and at least NI_INCIDENTS_PART as long as what was lost; those of other ranks and hosts count
 * as a part of a step earlier. Else to a finding with its late rank, or one of its host; else nobody is known
 * to have begun it, and all such operations of a bin are one entry. Slow operations belong to the finding
 * that names their communicator; else those in a row of one communicator, or across hosts, are one incident.
 *
 * A wrong name is worse than none. So a pause counts only if it put off the rank's own operations (is_own),
 * and if others waited for its rank behind it, and had not waited half as long shortly before. Who waited for
 * just as long as it paused (NI_INCIDENTS_AS_LONG) waited for it: then waits for others before it do not
 * count, nor those that an earlier pause of the rank has made. Where the rank has messages its peers need not
 * be seen to wait; then the pause has to be nearly as long as the loss. Of sampled logs nobody is named,
 * since what a rank waited for may be left out; nor is where ranks of several hosts paused at once, nor where
 * what is recorded does not join the rank with all hosts. Ranks of one host that did are named as the host.
 *
 * Threads: the main one; after ni_figures_sum(). Reads and replaces s->outlier. Memory: 40 bytes a pause that
 * is kept, a byte for each rank and entry. 0 or -ENOMEM.
 */
#ifndef NI_INCIDENTS_H
#define NI_INCIDENTS_H

#include "exporter/model/sums/ranks/blame.h"

#define NI_INCIDENTS_OF_ONE 3u   /* of a finding so many pauses have entries */
#define NI_INCIDENTS_ROW 2       /* slow operations of one incident are so many bins apart at most */
#define NI_INCIDENTS_ONCE_US 1e3 /* two pauses that end so near to each other are one */
#define NI_INCIDENTS_PART 0.5    /* of what was lost: a shorter pause did not begin it */
/* The same where nobody is seen to wait for the rank: waits do not grow on the way. */
#define NI_INCIDENTS_UNSEEN 0.9
/* A wait is just as long as a pause if they differ by this part of it: then the wait is no chance. */
#define NI_INCIDENTS_AS_LONG 0.01

int ni_group_incidents(const struct ni_blame *b, struct ni_summary *s);

#endif
