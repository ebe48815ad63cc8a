#ifndef NI_RECOVER_RECORD_H
#define NI_RECOVER_RECORD_H

#include "exporter/input/box/box_decode.h"

/* A finished slot as a record, as the plugin's own fill_record has it (docs/internals/blackbox.md, "Values of a record"). */
void ni_recover_record(const struct ni_box *b, const struct ni_box_comm *c, const struct ni_box_op *op,
                       struct ni_record *r, int *fallback); /* *fallback: index of ni_fallback_names, -1 none */

#endif
