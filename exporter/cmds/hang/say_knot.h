/* One knot in words, a part of a verdict (say.h). One thread. */
#ifndef NI_HANG_SAY_KNOT_H
#define NI_HANG_SAY_KNOT_H

#include <stdio.h>

#include "exporter/model/hang/verdict.h"

/* One knot: what and who, the part behind the colon. */
void ni_hang_say_knot(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k);
/* The ranks of a knot that are somewhere: "rank 3 (node-a) and rank 17 (node-c)"; with hosts or without. */
void ni_hang_say_ranks(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k,
                       enum ni_hang_where where);

#endif
