/*
 * Findings of causes: which are told, in which order, whose they are and when; say_cause.h has the words.
 *
 * A cause is told if what it costs is more than chance could make of it; what accuses nobody comes behind
 * what does. Main thread. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_DESCRIBE_H
#define NI_BLAME_DESCRIBE_H

#include "replay.h"

/* Appends to s->finding, and fills what the run's time consists of. 0 or -ENOMEM. */
int ni_describe_causes(const struct ni_blame *b, const struct ni_causes *causes,
                       const struct ni_replay *replay, struct ni_summary *s);

#endif
