/* A session's file of what a Prometheus has of the agents that it scrapes. */
#ifndef NI_PROMETHEUS_H
#define NI_PROMETHEUS_H

#include "exporter/cmds/head.h"

/*
 * o: prometheus, since, until, every_ns, name, token_file, ca. 0, or -1 with a sentence in why; then part of
 * it may be in f.
 */
int ni_prometheus_export(const struct ni_session_options *o, FILE *f, char *why, size_t cap);

#endif
