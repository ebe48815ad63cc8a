/*
 * Slots of the arena linked by ni_op.next, of one owner: the dump role. A zeroed chain is an empty one.
 */
#ifndef NI_CHAIN_H
#define NI_CHAIN_H

#include <stdint.h>

struct ni_chain {
  uint32_t first, last, n;
};

void ni_chain_append(struct ni_chain *c, uint32_t slot); /* at the end */
uint32_t ni_chain_take(struct ni_chain *c);              /* from the front; 0: empty */

#endif
