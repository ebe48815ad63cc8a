/*
 * The registry: a number for each communicator of the process, which is its bit in the dirty map and its
 * place in tables. A number that was given back is the next to be given out.
 *
 * Both by whoever holds ni_g.lock: init takes, the dump role gives back.
 */
#ifndef NI_REGISTRY_H
#define NI_REGISTRY_H

#include <stdint.h>

/* 0 and *index; -EMFILE beyond NI_MAX_COMMS communicators at once; -ENOMEM. */
int ni_registry_take(uint32_t *index);
/* Never fails. */
void ni_registry_give(uint32_t index);

#endif
