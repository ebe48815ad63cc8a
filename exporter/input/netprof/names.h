/*
 * net_prof's list of Cassini's counters. A counter's place in it, from 1, is net_prof's metric id; its text
 * files have one value for each name in this order, NIC by NIC. A fact of both formats: names of later
 * Cassinis are not in it, and have no id. Any thread.
 */
#ifndef NI_NETPROF_NAMES_H
#define NI_NETPROF_NAMES_H

#include <stdint.h>

#include "exporter/collect/set.h"

enum { NI_NETPROF_NAMES = 1890 };

/* id: 1 to NI_NETPROF_NAMES. */
const char *ni_netprof_name(uint32_t id);
/* 0: not in the list. */
uint32_t ni_netprof_id(const char *name);
/* net_prof's number of a NIC: "cxi0" is 1. 0: another fabric's, which net_prof knows nothing of. */
uint32_t ni_netprof_interface(const struct ni_entity *e);

#endif
