/*
 * What the driver of a network interface counts, as `ethtool -S` shows it: by ioctl, without privileges.
 *
 * The interface is asked by its name, in this process's network namespace; where the /sys that is read is another's (NI_ROOT),
 * the number of the interface must be the same, else nobody is asked. Threads: as source.h says.
 */
#ifndef NI_ETHTOOL_H
#define NI_ETHTOOL_H

#include "source.h"

/* Adds an interface with the counters of its driver, and their reader. false: it has none, or nobody asks for them. */
bool ni_ethtool_find(struct ni_find *f, const char *interface);

#endif
