/* Causes in words: the findings of the result, those that cost most first. Main thread. 0 or -ENOMEM. */
#ifndef NI_BLAME_DESCRIBE_H
#define NI_BLAME_DESCRIBE_H

#include "replay.h"

int ni_describe_causes(const struct ni_blame *b, const struct ni_causes *causes,
                       const struct ni_replay *replay, struct ni_summary *s);

#endif
