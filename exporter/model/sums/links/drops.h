/*
 * When the links of a cause are slow: all the time of an interval, in drops that come and go (a link that
 * flaps), or where single operations of it stop.
 *
 * Threads: the main one. Ownership: c->at is the cause's. Failure: -ENOMEM.
 */
#ifndef NI_LINKS_DROPS_H
#define NI_LINKS_DROPS_H

#include "judged.h"

/*
 * When the links of a cause are slow. Where they are as fast as usual in most bins and far slower in some,
 * these are its drops: runs of bins above a quarter of how slow they get, which end when two bins in a row
 * lie below. What is slow for one run is slow in from..to; several runs are a link that flaps.
 */
int ni_find_drops(const struct ni_link_judge *w, struct ni_cause *c);
/* When single operations of its links stopped. What they can cost: twice as long as that, of each bin. */
int ni_find_stops(const struct ni_link_judge *w, struct ni_cause *c);

#endif
