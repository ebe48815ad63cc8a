/* The map of a log as bytes. Any thread, one for each map. */
#ifndef NI_MAP_WIRE_H
#define NI_MAP_WIRE_H

#include "exporter/base/bytes/wire.h"
#include "exporter/input/granules.h"

/*
 * Puts a map, or takes one into a map of ni_granules_new(0). What was taken is sound enough to be used, whoever wrote it:
 * granules follow each other, numbers name what is there; w->bad otherwise. An odd map has one granule, which is all of the file.
 */
void ni_map_wire(struct ni_wire *w, struct ni_granules *g);

#endif
