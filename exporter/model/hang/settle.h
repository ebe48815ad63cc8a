/* The end of reading: what is known is put in order before it is judged. One thread. */
#ifndef NI_HANG_SETTLE_H
#define NI_HANG_SETTLE_H

#include "model.h"

/*
 * To be called when everything is read and m stays as it is. Sets `who` of each process and member, aligns
 * the clocks of all hosts (clocks.h), and removes from `open` what has finished and what is lost (lost.h). 0
 * or -ENOMEM.
 */
int ni_hang_model_settle(struct ni_hang_model *m);

#endif
