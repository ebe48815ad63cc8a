/*
 * The bins of one rank's tables: what two bins come to as one, and the operations of a bin that take far
 * longer than others.
 *
 * Pure; any thread. Nothing fails.
 */
#ifndef NI_BLAME_CELLS_H
#define NI_BLAME_CELLS_H

#include "blame.h"

/*
 * One more operation of the bin that took several times as long as the quickest one of its size. of: what
 * names it on all its ranks; 0: nothing, and it is left out. Of several operations that are slow alike the
 * longest is another one on each rank, by what it waited there besides. So all that are about as long count,
 * and some of them are kept.
 */
void ni_cell_add_long(struct ni_blame_link_cell *l, float us, uint32_t of);
/* Two bins of the rank become one. */
void ni_blame_coarsen(struct ni_blame_rank *o);

#endif
