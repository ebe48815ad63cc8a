/*
 * What time does to the state (live.h): windows of rates, NVIDIA's intervals, and what goes. One thread.
 */
#ifndef NI_LIVE_TICK_H
#define NI_LIVE_TICK_H

#include "live.h"

/*
 * Once a second: rates of the last 5 s, NVIDIA's interval of 30 s, and jobs go keep_ns after their end. Files
 * are remembered for as long after they were read, 20 minutes at least: what is forgotten would be read anew.
 * Those of a job that lives stay until their process has ended as well, and take its lives along. true:
 * something went.
 */
bool ni_live_tick(struct ni_live *l, uint64_t mono_ns, uint64_t keep_ns);
/* What was summed up in NVIDIA's form is to be shown from now on, and the next interval begins. */
void ni_live_nvidia_turn(struct ni_live *l, uint64_t mono_ns);

#endif
