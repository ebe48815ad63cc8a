/*
 * From what init and callbacks have left to what is to be formatted: new communicators, and finished
 * operations.
 *
 *   joining list ─▶ w->comms          done lists, dirty bits ─▶ todo
 *
 * Dump role. Callbacks and init go on meanwhile.
 */
#ifndef NI_COLLECT_H
#define NI_COLLECT_H

#include "drain.h"

/*
 * Takes communicators in that init has announced. One that finds no memory stays announced for the next tick.
 */
void ni_collect_join(struct ni_drain *d);
/* The same, and moves what is on the done lists to todo. 1 if anything moved. */
int ni_collect(struct ni_drain *d);

#endif
