/* Whether a process lives, by what its black box says. One thread. */
#ifndef NI_BOX_LIFE_H
#define NI_BOX_LIFE_H

#include "box.h"

/* Is the process that wrote the box alive? docs/internals/blackbox.md, "Alive?". Reads /proc and the clocks, sends no signal. */
enum ni_life ni_life_of(const struct ni_box_header *h);

#endif
