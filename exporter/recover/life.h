/*
 * Is the process that wrote a black box alive? docs/blackbox.md, "Alive?", gives the rules.
 *
 * Reads /proc and the clocks. Any thread. Never sends a signal, never writes anything.
 */
#ifndef NI_LIFE_H
#define NI_LIFE_H

#include "box.h"

enum ni_life ni_life_of(const struct ni_box_header *h);

#endif
