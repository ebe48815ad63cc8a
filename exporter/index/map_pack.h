/* The map of a log as bytes. Any thread, one for each map. */
#ifndef NI_MAP_PACK_H
#define NI_MAP_PACK_H

#include "exporter/base/pack/pack.h"
#include "exporter/input/granules.h"

/*
 * Puts a map, or takes one into a map of ni_granules_new(0). What was taken is sound enough to be used, whoever wrote it:
 * granules follow each other, numbers name what is there; p->bad otherwise. An odd map has one granule, which is all of the file.
 */
void ni_map_pack(struct ni_pack *p, struct ni_granules *g);

#endif
