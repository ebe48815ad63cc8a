/* The head (docs/cluster.md): one process for a cluster, one epoll loop, and the store's thread. */
#ifndef NI_HEAD_H
#define NI_HEAD_H

#include "exporter/cmds/head.h"

/* Until it is asked to end. name: for messages. The exit code. */
int ni_head_main(const struct ni_head_options *o, const char *name);

#endif
