/*
 * What the machine says of a device of PCI beside its counters: address, NUMA node, its link to the host.
 *
 * Any thread; one set, one thread.
 */
#ifndef NI_DEVICE_H
#define NI_DEVICE_H

#include "set.h"

/* Fills in pci, numa and warning of an entity from its device's folder (".../device"), which need not be there. */
void ni_device_about(struct ni_set *s, struct ni_entity *e, const char *device);

#endif
