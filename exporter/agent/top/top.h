/*
 * `top`: rows of ranks from the agents, a Prometheus or this node itself (rows.h), on a screen (screen.h) or
 * printed once.
 *
 * One thread: keys and the next look are waited for together.
 */
#ifndef NI_TOP_H
#define NI_TOP_H

#include "exporter/cmds/live.h"

/* name: for messages. The exit code. */
int ni_top(const struct ni_top_options *o, const char *name);

#endif
