/*
 * What the machine says of a device of PCI beside its counters: address, NUMA node, its link to the host.
 *
 * Any thread; one set, one thread.
 */
#ifndef NI_DEVICE_H
#define NI_DEVICE_H

#include "set.h"

/* "0000:c1:00.0", as PCI names its devices? n: its length. */
bool ni_device_is_pci(const char *name, size_t n);
/* Fills in pci, numa and warning of the last entity from its device's folder (".../device"), which need not be there. */
void ni_device_about(struct ni_set *s, const char *device);

#endif
