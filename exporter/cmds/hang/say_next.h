/* Why a verdict is believed, and what to do next (say.h). One thread. */
#ifndef NI_HANG_SAY_NEXT_H
#define NI_HANG_SAY_NEXT_H

#include "exporter/model/hang/verdict.h"

/* One line each, malloc'ed, the caller's to free; NULL or "": there is nothing to say. */
char *ni_hang_said_why(const struct ni_hang_verdict *v);
char *ni_hang_said_next(const struct ni_hang_verdict *v);

#endif
