/* The map of a log as bytes. Any thread, one for each map. */
#ifndef NI_MAP_WIRE_H
#define NI_MAP_WIRE_H

#include "exporter/base/bytes/wire.h"
#include "exporter/input/granules.h"

/*
 * Puts a map, or takes one into a map of ni_granules_new(0). What was taken is sound enough to be used,
 * whoever wrote it: granules follow each other, numbers name what is there; w->bad otherwise. An odd map has
 * one granule, which is all of the file. Lines that are kept lie there deflated, and stay so: in the bytes
 * that were loaded, which must last as long.
 */
void ni_map_wire(struct ni_wire *w, struct ni_granules *g);
/* Kept lines of a map that was loaded, for those who ask for them. 0, -ENOMEM, -EBADMSG: they are none. */
int ni_map_unpack(struct ni_granules *g);

#endif
